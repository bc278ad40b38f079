import unittest

from tenon import Error
from tenon.testing import Host

from app import planet


class Planet(unittest.TestCase):
    def test_a_planet_is_found_by_its_number(self):
        self.assertEqual(Host().read_resource("planets://3")[0].body, "Earth")
        self.assertEqual(planet(3), "Earth")

    def test_a_number_without_a_planet_is_not_found(self):
        with self.assertRaises(Error) as caught:
            Host().read_resource("planets://9")
        self.assertEqual(caught.exception.code, "not-found")


if __name__ == "__main__":
    unittest.main()
