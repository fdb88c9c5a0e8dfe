import unittest

from basket import discounted, total


class BasketTest(unittest.TestCase):
    def test_total_of_nothing(self):
        self.assertEqual(total([]), 0)

    def test_total_counts_every_price(self):
        self.assertEqual(total([250, 100, 50]), 400)

    def test_discount_makes_it_cheaper(self):
        self.assertEqual(discounted([1000], 10), 900)


if __name__ == "__main__":
    unittest.main()
