import unittest

from logic import repeat


class Repeat(unittest.TestCase):
    def test_a_parrot_repeats(self):
        self.assertEqual(repeat(["Polly wants", " a cracker"]), ("Polly wants a cracker", 4))

    def test_silence_has_no_words(self):
        self.assertEqual(repeat([]), ("", 0))


if __name__ == "__main__":
    unittest.main()
