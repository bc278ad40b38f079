import unittest

from logic import explain


class Explain(unittest.TestCase):
    def test_the_audience_is_named(self):
        self.assertEqual(explain("tides", "a child"), "Explain tides to a child.")

    def test_the_audience_may_be_left_out(self):
        self.assertEqual(explain("tides"), "Explain tides to a beginner.")


if __name__ == "__main__":
    unittest.main()
