import unittest

from logic import greet


class Greet(unittest.TestCase):
    def test_somebody_is_greeted(self):
        self.assertEqual(greet(" Ada "), "Hello, Ada!")

    def test_nobody_is_not_greeted(self):
        with self.assertRaisesRegex(ValueError, "say whom to greet"):
            greet("")


if __name__ == "__main__":
    unittest.main()
