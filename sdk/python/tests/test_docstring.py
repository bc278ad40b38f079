"""Docstrings in the styles that authors write."""

from __future__ import annotations

import unittest

import support  # noqa: F401
from tenon._docstring import Docstring

GOOGLE = """Finds notes.

    Looks everywhere.

    Args:
        query: What to find,
            in words.
        limit (int, optional): How many: at most.

    Returns:
        The notes.

    Raises:
        ValueError: Never.
    """

NUMPY = """Finds notes.

    Looks everywhere.

    Parameters
    ----------
    query : str
        What to find,
        in words.
    limit : int, optional
        How many: at most.

    Returns
    -------
    The notes.
    """

SPHINX = """Finds notes.

    Looks everywhere.

    :param query: What to find,
        in words.
    :param int limit: How many: at most.
    :returns: The notes.
    :raises ValueError: Never.
    """


class Docstrings(unittest.TestCase):
    def test_three_styles_say_the_same(self) -> None:
        for name, text in {"google": GOOGLE, "numpy": NUMPY, "sphinx": SPHINX}.items():
            with self.subTest(name):
                found = Docstring(text)
                self.assertEqual(
                    found.parameters, {"query": "What to find, in words.", "limit": "How many: at most."}
                )
                self.assertEqual(
                    found.description, "Finds notes.\n\nLooks everywhere.\n\nReturns: The notes."
                )

    def test_text_without_sections_stays_as_it_is(self) -> None:
        for text, said in [(None, ""), ("One.", "One."), ("One:\n\n* a\n* b", "One:\n\n* a\n* b")]:
            self.assertEqual(Docstring(text).description, said)


if __name__ == "__main__":
    unittest.main()
