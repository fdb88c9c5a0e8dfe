import unittest


class Sum(unittest.TestCase):
    def test_sum(self):
        self.assertEqual(1 + 1, 3)
