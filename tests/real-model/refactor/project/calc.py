def f(a, b):
    return a + b


def total(numbers):
    result = 0
    for number in numbers:
        result = f(result, number)
    return result
