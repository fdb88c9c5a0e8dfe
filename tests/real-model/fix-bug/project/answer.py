def answer():
    return 6 * 6


print(answer())
