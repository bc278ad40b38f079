"""Removes sections from a component that no host needs: the names of the interpreter's functions.

Tracebacks of Python do not need them: files and lines are in the memory of the component.
"""

from __future__ import annotations

from typing import Iterator

_PREAMBLE = 8
_COMPONENT = b"\0asm\x0d\0\x01\0"
_MODULE = b"\0asm\x01\0\0\0"

#: Numbers of sections: custom ones in both formats, and those of a component that nest a binary.
_CUSTOM, _CORE_MODULE, _NESTED_COMPONENT = 0, 1, 4

#: The custom sections with names in a core module, and in a component.
_NAMES = {b"name", b"component-name"}


def without_names(binary: bytes) -> bytes:
    """A component or core module without the sections that have names alone."""
    return b"".join(_stripped(memoryview(binary)))


def _stripped(binary: memoryview) -> Iterator[bytes | memoryview]:
    preamble = bytes(binary[:_PREAMBLE])
    is_component = preamble == _COMPONENT
    if not is_component and preamble != _MODULE:
        raise ValueError("it is neither a component nor a core module")
    yield preamble
    at = _PREAMBLE
    while at < len(binary):
        number = binary[at]
        size, content = _number(binary, at + 1)
        end = content + size
        if end > len(binary):
            raise ValueError("a section is longer than its binary")
        if is_component and number in (_CORE_MODULE, _NESTED_COMPONENT):
            nested = without_names(bytes(binary[content:end]))
            yield bytes([number]) + _encoded(len(nested))
            yield nested
        elif number != _CUSTOM or _name(binary, content) not in _NAMES:
            yield binary[at:end]
        at = end


def _name(binary: memoryview, at: int) -> bytes:
    """The name of the custom section whose content is here."""
    size, begin = _number(binary, at)
    return bytes(binary[begin : begin + size])


def _number(binary: memoryview, at: int) -> tuple[int, int]:
    """An unsigned number in LEB128, and where it ends."""
    number = shift = 0
    while True:
        byte = binary[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return number, at


def _encoded(number: int) -> bytes:
    encoded = bytearray()
    while number >= 0x80:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)
