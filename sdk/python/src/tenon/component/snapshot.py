"""The memory with which each instance begins, which is most of a component."""

from __future__ import annotations

import gc

#: What an object of bytes takes beside its bytes, in a 32-bit interpreter.
_HEADER = 17

#: The sizes of blocks of the C library, in bytes, the largest first.
_LARGE = [1 << power for power in range(20, 9, -1)]

#: The sizes of the interpreter's small blocks, in bytes.
_SMALL = range(512, 31, -16)

#: How many blocks in a row lie above what was used before, when all holes of their size are filled.
_ABOVE = 32


def clean() -> None:
    """Collects garbage, and overwrites what it has left with zeros, which a component does not store.

    Compiling the modules has filled much more memory than they take. All holes are filled with zeros
    and given back.

    What is left is never garbage. The collector does not look at it again: a call would have to copy
    the memory that it marks.
    """
    gc.collect()
    top = max(map(id, gc.get_objects()))
    held: list[bytes] = []
    for sizes, most in ((_LARGE, 1), (_SMALL, _ABOVE)):
        for size in sizes:
            above = 0
            while above < most:
                block = bytes(size - _HEADER)
                held.append(block)
                above = above + 1 if id(block) > top else 0
    held.clear()
    gc.collect()
    gc.freeze()
