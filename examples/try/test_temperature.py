import unittest

from temperature import to_celsius, to_fahrenheit


class TemperatureTest(unittest.TestCase):
    def test_boiling_water_in_fahrenheit(self):
        self.assertEqual(to_fahrenheit(100), 212)

    def test_boiling_water_in_celsius(self):
        self.assertEqual(to_celsius(212), 100)

    def test_there_and_back(self):
        self.assertEqual(to_celsius(to_fahrenheit(25)), 25)


if __name__ == "__main__":
    unittest.main()
