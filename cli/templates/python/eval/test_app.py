import unittest

from tenon.testing import Host

from app import concise


class Concise(unittest.TestCase):
    def test_what_is_short_passes(self):
        self.assertEqual(Host().evaluate(concise, {"output": "yes"}).verdict, "pass")

    def test_what_is_long_fails_by_degrees(self):
        found = Host().evaluate(concise, {"output": "one two three four"}, most=3)
        self.assertEqual(found.score, 0.75)
        self.assertEqual(found.findings[0].reason, "it has 4 words, and 3 are the most")


if __name__ == "__main__":
    unittest.main()
