import unittest

from tenon.testing import Host

from app import sign


class Sign(unittest.TestCase):
    def test_a_message_is_signed(self):
        host = Host(config={"signature": "Yours, Ada"})
        signed = host.handle(sign, {"message": "Hi", "channel": "x"})
        self.assertEqual(signed, {"message": "Hi\nYours, Ada", "channel": "x"})

    def test_what_is_no_message_is_left_alone(self):
        self.assertEqual(Host().handle(sign, {}), {})


if __name__ == "__main__":
    unittest.main()
