"""What is printed and logged, as lines of the host's log."""

from __future__ import annotations

import io
import logging
import sys
from typing import Any

from .. import _host

#: What a record of `logging` has itself; everything else was given as `extra`.
_RECORD = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}

#: The longest line that is kept together.
_LONGEST = 64 << 10


class LineWriter(io.TextIOBase):
    """A text stream whose lines go to the host's log."""

    def __init__(self, name: str, level: str) -> None:
        self.stream, self.level = name, level
        self.line = ""

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8"

    @property
    def buffer(self) -> "_Bytes":
        """The stream as bytes."""
        return _Bytes(self)

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        *lines, self.line = (self.line + text).split("\n")
        for line in lines:
            self._log(line)
        if len(self.line) > _LONGEST:
            self.finish()
        return len(text)

    def finish(self) -> None:
        """Writes a line that was not ended."""
        line, self.line = self.line, ""
        if line:
            self._log(line)

    def _log(self, line: str) -> None:
        line = line.rstrip("\r")
        if line:
            _host.current().log(self.level, line, {"target": self.stream})


class _Bytes(io.RawIOBase):
    """The bytes of a text stream."""

    def __init__(self, text: LineWriter) -> None:
        self.text = text

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return self.text.write(bytes(data).decode("utf-8", "replace"))


class HostHandler(logging.Handler):
    """Writes records of `logging` to the host's log."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            message = record.getMessage()
            if record.exc_info and record.exc_info[1] is not None:
                from .._failure import formatted

                message = f"{message}\n{formatted(record.exc_info[1])}"
            fields = {"target": record.name}
            fields.update((name, str(value)) for name, value in vars(record).items() if name not in _RECORD)
            for line in message.splitlines():
                _host.current().log(_level(record.levelno), line, fields)
        except Exception:  # As all handlers: a failure to log is no failure of the call.
            self.handleError(record)


def _level(number: int) -> str:
    for least, level in [
        (logging.ERROR, "error"),
        (logging.WARNING, "warn"),
        (logging.INFO, "info"),
        (logging.DEBUG, "debug"),
    ]:
        if number >= least:
            return level
    return "trace"


_OUT, _ERR = LineWriter("stdout", "info"), LineWriter("stderr", "warn")


def prepare() -> None:
    """Has `logging` write to the host's log. A level that the author has set stays; otherwise the host
    decides what it shows."""
    root = logging.getLogger()
    for handler in root.handlers[:]:
        if isinstance(handler, logging.StreamHandler) and handler.stream in (sys.stdout, sys.stderr):
            root.removeHandler(handler)
    root.addHandler(HostHandler())
    if root.level == logging.WARNING:
        root.setLevel(logging.DEBUG)


def enter() -> None:
    """Turns the standard streams to the host's log: when the component is built they are the builder's."""
    sys.stdout, sys.stderr = _OUT, _ERR  # type: ignore[assignment]


def leave() -> None:
    """Writes lines that were not ended."""
    _OUT.finish()
    _ERR.finish()
