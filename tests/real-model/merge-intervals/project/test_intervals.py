import unittest

from intervals import merge


class MergeTest(unittest.TestCase):
    def check(self, given, wanted):
        self.assertEqual([list(interval) for interval in merge(given)], wanted, f"merge({given})")

    def test_empty(self):
        self.check([], [])

    def test_single(self):
        self.check([[1, 3]], [[1, 3]])

    def test_unsorted(self):
        self.check([[8, 10], [1, 3], [2, 6]], [[1, 6], [8, 10]])

    def test_touching(self):
        self.check([[1, 4], [4, 5]], [[1, 5]])

    def test_contained(self):
        self.check([[1, 10], [2, 3]], [[1, 10]])

    def test_chained(self):
        self.check([[1, 3], [2, 5], [4, 8], [9, 9]], [[1, 8], [9, 9]])


if __name__ == "__main__":
    unittest.main()
