import unittest

from solution import fib


class FibTest(unittest.TestCase):
    def test_first_numbers(self):
        self.assertEqual([fib(n) for n in range(8)], [0, 1, 1, 2, 3, 5, 8, 13])

    def test_large_number(self):
        self.assertEqual(fib(30), 832040)

    def test_negative_number(self):
        with self.assertRaises(ValueError):
            fib(-1)


if __name__ == "__main__":
    unittest.main()
