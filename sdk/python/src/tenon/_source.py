"""Where a function of the plugin's source is, for messages."""

from __future__ import annotations

import linecache
import os
import re
import sys
from typing import Any, Callable

from ._errors import DefinitionError

#: The folder of this package, with a separator at its end.
OWN = os.path.dirname(os.path.abspath(__file__)) + os.sep

#: How many lines the decorators of a function have at most.
_MOST_DECORATORS = 50

_DEFINITION = re.compile(r"\s*(async\s+)?def\s")


def short(path: str) -> str:
    """A path as its author knows it: from the folder of the plugin, where it is in that."""
    if sys.platform == "wasi":
        # The folders of the build are `/0`, `/1` and so on in the component.
        return re.sub(r"^/?\d+/", "", path)
    try:
        relative = os.path.relpath(path)
    except (OSError, ValueError):  # A component has no current folder.
        return os.path.basename(path)
    return os.path.basename(path) if relative.startswith("..") else relative


def place(function: Callable[..., Any]) -> tuple[str, int | None]:
    """The file of a function, and the line of its `def`."""
    code = getattr(unwrapped(function), "__code__", None)
    if code is None:
        return "", None
    line = code.co_firstlineno
    if code.co_name == "<lambda>":
        return short(code.co_filename), line
    # Decorators come first.
    for at in range(line, line + _MOST_DECORATORS):
        if _DEFINITION.match(linecache.getline(code.co_filename, at)):
            return short(code.co_filename), at
    return short(code.co_filename), line


def caller() -> tuple[str, int | None]:
    """The file and line of the plugin that called into this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(OWN):
        frame = frame.f_back
    return short(frame.f_code.co_filename), frame.f_lineno


def unwrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself, behind decorators that keep to `functools.wraps`."""
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function


def mistake(function: Callable[..., Any], message: str, hint: str = "") -> DefinitionError:
    """A mistake in a function's definition."""
    file, line = place(function)
    return DefinitionError(message, hint=hint, file=file, line=line)
