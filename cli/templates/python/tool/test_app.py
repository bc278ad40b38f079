import unittest

from tenon.testing import Host

from app import greet


class Greet(unittest.TestCase):
    def test_somebody_is_greeted(self):
        self.assertEqual(greet(" Ada "), "Hello, Ada!")

    def test_the_model_reads_why_nobody_is_greeted(self):
        result = Host().call_tool(greet, {"name": ""})
        self.assertTrue(result.is_error)
        self.assertEqual(result.text, "`name` is empty: say whom to greet")


if __name__ == "__main__":
    unittest.main()
