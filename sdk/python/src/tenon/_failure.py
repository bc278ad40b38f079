"""What becomes of an exception that a plugin's function raises.

Errors that the function raises on purpose keep what they say. Any other exception is a defect of
the plugin, as a panic is in Rust: the model cannot mend it, so it is an error of the contract with
the code `failed`, and no result that the model reads. It names the exception, its message and the
line of the plugin's own file; the log has the traceback. It is no trap, since the instance is sound:
calls that share it go on.
"""

from __future__ import annotations

import linecache
import os
import sys
import traceback
from types import TracebackType
from typing import Any

from . import _host
from ._errors import Error, ErrorCode, ToolError
from ._source import OWN, short
from ._types import Mismatch

#: The folders of the interpreter's own modules.
_LIBRARY = os.path.dirname(os.path.abspath(os.__file__))

#: The folder of the author's module, in a component; elsewhere it is whatever is of no library.
author_folder: str | None = None

#: How many frames of a traceback are shown at its beginning and at its end.
_SHOWN = (4, 12)


def to_error(exception: BaseException) -> Error:
    """An exception as an error of the contract; a defect's traceback is logged."""
    if isinstance(exception, Error):
        return exception
    if isinstance(exception, ToolError):
        return Error(ErrorCode.FAILED, str(exception))
    if isinstance(exception, Mismatch):
        return Error(ErrorCode.INVALID_INPUT, str(exception))
    if isinstance(exception, TimeoutError):
        return Error(ErrorCode.TIMEOUT, described(exception))
    for line in formatted(exception).splitlines():
        _host.current().log("error", line, {"target": "traceback"})
    frame = _own_frame(exception.__traceback__)
    hint = _hint(exception)
    data = {"exception": type(exception).__name__}
    if frame is not None:
        data |= {"file": short(frame.filename), "line": frame.lineno, "function": frame.name}
    text = f"{described(exception)}\n  hint: {hint}" if hint else described(exception)
    return Error(ErrorCode.FAILED, text, data=data)


def _hint(exception: BaseException) -> str:
    """What to write instead of what no component can do, or only where it is granted."""
    if isinstance(exception, EOFError):
        return "a plugin has no terminal: ask the user with `tenon.user.ask`"
    if isinstance(exception, (FileNotFoundError, PermissionError)):
        return (
            'a plugin sees what plugin.toml requests with `filesystem = ["read:~/notes/**"]`, by absolute paths; '
            "what stands beside app.py is read at the top of the file"
        )
    if isinstance(exception, RecursionError):
        return "end the recursion, or write a loop"
    codes = [frame.f_code for frame, _ in traceback.walk_tb(exception.__traceback__)]
    if isinstance(exception, KeyError) and codes and codes[-1].co_filename in (os.__file__, "<frozen os>"):
        return (
            'a plugin sees the variables that plugin.toml requests with `environment = ["LANG"]`; '
            "settings are in `tenon.config`, and secrets in `tenon.secrets`"
        )
    if codes and codes[-1].co_name == "run" and codes[-1].co_filename.endswith(_RUNNERS):
        return "the function is run by an event loop already: make it `async`, and write `await …`"
    return ""


#: The module of `asyncio.run`.
_RUNNERS = os.path.join("asyncio", "runners.py")


def described(exception: BaseException) -> str:
    """`KeyError: 'x' (app.py:12 in greet)`."""
    name = type(exception).__name__
    message = str(exception)
    text = f"{name}: {message}" if message else name
    frame = _own_frame(exception.__traceback__)
    if frame is None:
        return text
    return f"{text} ({short(frame.filename)}:{frame.lineno} in {frame.name})"


def formatted(exception: BaseException) -> str:
    """The traceback of the plugin's own frames, with the exceptions that caused this one."""
    parts = []
    cause = exception.__cause__ or (None if exception.__suppress_context__ else exception.__context__)
    if cause is not None and cause is not exception:
        parts.append(formatted(cause))
        parts.append("which led to")
    frames = [frame for frame in _frames(exception.__traceback__) if not _is_hidden(frame.filename)]
    if frames:
        parts.append("Traceback (most recent call last):")
    first, last = _SHOWN
    for at, frame in enumerate(frames):
        if first <= at < len(frames) - last:
            if at == first:
                parts.append(f"  … {len(frames) - first - last} frames")
            continue
        parts.append(f"  {short(frame.filename)}:{frame.lineno} in {frame.name}")
        # In a component no file can be read: lines are there if the build has kept them.
        if frame.line:
            parts.append(f"    {frame.line.strip()}")
    message = str(exception)
    name = type(exception).__name__
    parts.append(f"{name}: {message}" if message else name)
    for note in getattr(exception, "__notes__", ()):
        parts.append(f"  {note}")
    return "\n".join(parts)


def _frames(trace: TracebackType | None) -> list[traceback.FrameSummary]:
    frames = []
    for frame, line in traceback.walk_tb(trace):
        code = frame.f_code
        # `lookup_line=False` and a line of its own: `linecache` would look for the file.
        lines = linecache.cache.get(code.co_filename)
        text = ""
        if lines and len(lines) > 2 and 0 < (line or 0) <= len(lines[2]):
            text = lines[2][line - 1]
        elif not _is_component():
            text = linecache.getline(code.co_filename, line or 0)
        frames.append(
            traceback.FrameSummary(code.co_filename, line, code.co_name, lookup_line=False, line=text)
        )
    return frames


def _is_component() -> bool:
    return sys.platform == "wasi"


def _is_hidden(file: str) -> bool:
    # The frames of this package are nobody's concern.
    return file.startswith((OWN, "<frozen", "<string"))


def _own_frame(trace: TracebackType | None) -> Any:
    """The innermost frame of the plugin's own: neither of this package, nor of the library."""
    frames = [frame for frame in _frames(trace) if not _is_hidden(frame.filename)]
    own = [frame for frame in frames if _is_author(frame.filename)]
    return own[-1] if own else None


def _is_author(file: str) -> bool:
    if author_folder is not None:
        return file.startswith(author_folder + os.sep)
    return not file.startswith(_LIBRARY) and f"{os.sep}site-packages{os.sep}" not in file
