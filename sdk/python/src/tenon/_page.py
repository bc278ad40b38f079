"""Listings in pages."""

from __future__ import annotations

from typing import TypeVar

from ._errors import Error, ErrorCode

T = TypeVar("T")

#: How many entries a page has.
SIZE = 100


def page(what: str, entries: list[T], cursor: str | None) -> tuple[list[T], str | None]:
    """A page, and the cursor of the next one.

    Raises:
        Error: With `invalid-input`, for a cursor of something else.
    """
    start = 0
    if cursor is not None:
        name, dash, number = cursor.rpartition("-")
        if name != what or not dash or not number.isdigit() or int(number) >= len(entries):
            raise Error(ErrorCode.INVALID_INPUT, f'there is no page "{cursor}"')
        start = int(number)
    end = start + SIZE
    return entries[start:end], f"{what}-{end}" if end < len(entries) else None
