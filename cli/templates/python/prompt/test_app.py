import unittest

from tenon.testing import Host

from app import explain


class Explain(unittest.TestCase):
    def test_the_audience_is_named(self):
        self.assertEqual(explain("tides", "a child"), "Explain tides to a child.")

    def test_the_audience_may_be_left_out(self):
        filled = Host().get_prompt(explain, {"topic": "tides"})
        self.assertEqual(filled.messages[0].content.text, "Explain tides to a beginner.")


if __name__ == "__main__":
    unittest.main()
