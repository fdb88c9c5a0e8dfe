from calc import f, total


def report(numbers):
    return f"sum of first two: {f(numbers[0], numbers[1])}, total: {total(numbers)}"
