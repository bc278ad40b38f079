"""The host's log.

What the module `logging` and `print` write arrives there as well. Natively these write as ever.
"""

from __future__ import annotations

from typing import Any

from . import _host

LEVELS = ("trace", "debug", "info", "warn", "error")


def write(level: str, message: str, **fields: Any) -> None:
    """Writes a message at a level, with fields for machines.

    Args:
        level: `trace`, `debug`, `info`, `warn` or `error`.
        message: One or several lines.
        fields: What belongs to it, by names.

    Raises:
        ValueError: If there is no such level.
    """
    if level not in LEVELS:
        raise ValueError(f"there is no level {level!r}; the levels are {', '.join(LEVELS)}")
    texts = {name: value if isinstance(value, str) else str(value) for name, value in fields.items()}
    _host.current().log(level, str(message), texts)


def trace(message: str, **fields: Any) -> None:
    """Writes a message at the level `trace`."""
    write("trace", message, **fields)


def debug(message: str, **fields: Any) -> None:
    """Writes a message at the level `debug`."""
    write("debug", message, **fields)


def info(message: str, **fields: Any) -> None:
    """Writes a message at the level `info`."""
    write("info", message, **fields)


def warn(message: str, **fields: Any) -> None:
    """Writes a message at the level `warn`."""
    write("warn", message, **fields)


def error(message: str, **fields: Any) -> None:
    """Writes a message at the level `error`."""
    write("error", message, **fields)
