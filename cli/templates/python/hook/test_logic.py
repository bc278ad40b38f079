import unittest

from logic import sign


class Sign(unittest.TestCase):
    def test_a_message_is_signed(self):
        signed = sign({"message": "Hi", "channel": "x"}, "Yours, Ada")
        self.assertEqual(signed, {"message": "Hi\nYours, Ada", "channel": "x"})

    def test_what_is_no_message_is_left_alone(self):
        self.assertIsNone(sign({}, "Yours, Ada"))


if __name__ == "__main__":
    unittest.main()
