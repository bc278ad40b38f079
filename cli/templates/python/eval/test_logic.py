import unittest

from logic import concise


class Concise(unittest.TestCase):
    def test_what_is_short_passes(self):
        self.assertEqual(concise("yes")[0], 1)

    def test_what_is_long_fails_by_degrees(self):
        score, reason = concise("one two three four", most=3)
        self.assertEqual(score, 0.75)
        self.assertEqual(reason, "it has 4 words, and 3 are the most")


if __name__ == "__main__":
    unittest.main()
