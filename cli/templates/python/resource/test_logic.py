import unittest

from logic import planet


class Planet(unittest.TestCase):
    def test_a_planet_is_found_by_its_number(self):
        self.assertEqual(planet(3), "Earth")

    def test_a_number_without_a_planet_is_not_found(self):
        with self.assertRaisesRegex(LookupError, "there is no planet 9"):
            planet(9)


if __name__ == "__main__":
    unittest.main()
