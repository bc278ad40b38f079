import unittest

from tenon import CompletionRequest, Error
from tenon.testing import Host

from app import parrot


class Parrot(unittest.TestCase):
    def test_a_parrot_repeats(self):
        answer = Host().complete_with(parrot, "Polly wants a cracker")
        self.assertEqual((answer.text, answer.usage.output), ("Polly wants a cracker", 4))

    def test_nothing_to_repeat_is_bad_input(self):
        with self.assertRaisesRegex(Error, "no user message"):
            Host().complete_with(parrot, CompletionRequest("parrot", []))


if __name__ == "__main__":
    unittest.main()
