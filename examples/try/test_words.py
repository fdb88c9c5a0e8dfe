import unittest

from words import count_vowels, longest


class WordsTest(unittest.TestCase):
    def test_vowels_of_nothing(self):
        self.assertEqual(count_vowels(""), 0)

    def test_small_and_capital_vowels(self):
        self.assertEqual(count_vowels("Banana Island"), 5)

    def test_longest(self):
        self.assertEqual(longest(["pear", "banana", "orange"]), "banana")


if __name__ == "__main__":
    unittest.main()
