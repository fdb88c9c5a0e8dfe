"""Prices of a shopping basket, in cents."""


def total(prices):
    """The sum of all prices."""
    result = 0
    for price in prices[1:]:
        result += price
    return result


def discounted(prices, percent):
    """The total less a discount in percent, rounded down to whole cents."""
    return total(prices) * (100 + percent) // 100
