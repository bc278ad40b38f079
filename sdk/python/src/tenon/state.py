"""What the plugin keeps between calls, as JSON: `state = ["project"]` in plugin.toml, or `"user"` or
`"session"`.

Each call has an instance of its own, so variables of a module do not outlive it. The functions here
use the narrowest scope that is granted; `bucket("user")` is another.
"""

from __future__ import annotations

import json
from typing import Any, Callable

from . import _host
from ._errors import Error, ErrorCode
from ._source import caller
from ._types import Mismatch
from ._types.scalar import plain

SCOPES = ("session", "project", "user")


class Bucket:
    """The state of a scope."""

    def __init__(self, name: str) -> None:
        self.name = name

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a key, or the default where it has none.

        Raises:
            Error: With `denied` where the scope is not granted, `failed` where the value is no JSON.
        """
        kept = _host.current().state_get(self.name, key)
        return default if kept is None else _read(key, kept)

    def get_bytes(self, key: str) -> bytes | None:
        """The bytes of a key, if it has any.

        Raises:
            Error: With `denied` where the scope is not granted.
        """
        return _host.current().state_get(self.name, key)

    def set(self, key: str, value: Any) -> None:
        """Sets the value of a key. It is on the disk when this returns.

        Raises:
            Error: With `denied` where the scope is not granted, `failed` where it is full or the
                value has no JSON form.
        """
        _host.current().state_set(self.name, key, _written(key, value))

    def set_bytes(self, key: str, value: bytes) -> None:
        """Sets the bytes of a key.

        Raises:
            Error: As for `set`.
        """
        _host.current().state_set(self.name, key, value)

    def update(self, key: str, change: Callable[[Any], Any], default: Any = None) -> Any:
        """Sets the value of a key to what a function makes of it, and returns that.

        Where another call has changed the value meanwhile, the function is called again with the
        new one.

        Args:
            key: The key.
            change: Takes the value, or the default where there is none, and returns the new one.
            default: What it takes where the key has no value. Each call gets a copy.

        Raises:
            Error: As for `get` and `set`.
        """
        changed: list[Any] = []

        def as_bytes(kept: bytes | None) -> bytes:
            before = json.loads(json.dumps(default)) if kept is None else _read(key, kept)
            changed[:] = [change(before)]
            return _written(key, changed[0])

        _host.current().state_update(self.name, key, as_bytes)
        return changed[0]

    def increment(self, key: str, by: int = 1) -> int:
        """Adds to a number, which is 0 where it has no value, and returns the sum.

        Raises:
            Error: With `failed` where the value is no number.
        """
        return _host.current().state_increment(self.name, key, by)

    def contains(self, key: str) -> bool:
        """Whether a key has a value.

        Raises:
            Error: As for `get`.
        """
        return _host.current().state_get(self.name, key) is not None

    def delete(self, key: str) -> None:
        """Removes a key. One that is not there is no error.

        Raises:
            Error: As for `set`.
        """
        _host.current().state_delete(self.name, key)

    def keys(self) -> list[str]:
        """The keys, in the order of their bytes.

        Raises:
            Error: As for `get`.
        """
        return _host.current().state_keys(self.name)


def _read(key: str, kept: bytes) -> Any:
    try:
        return json.loads(kept)
    except ValueError as wrong:
        raise Error(ErrorCode.FAILED, f'the state of "{key}" is no JSON: {wrong}') from None


def _written(key: str, value: Any) -> bytes:
    try:
        return json.dumps(plain(value, ""), ensure_ascii=False).encode()
    except Mismatch as mismatch:
        file, line = caller()
        raise Error(
            ErrorCode.FAILED,
            f'the state of "{key}" has no JSON form: {mismatch} ({file}:{line})'
            "\n  hint: keep a text, a number, a list, a dict or a dataclass, or bytes with `set_bytes`",
        ) from None


def bucket(scope: str) -> Bucket:
    """The state of a scope: `project`, `user` or `session`.

    Raises:
        ValueError: If there is no such scope.
    """
    if scope not in SCOPES:
        raise ValueError(f"there is no scope {scope!r}; the scopes are {', '.join(SCOPES)}")
    return Bucket(scope)


_DEFAULT = Bucket("default")
get = _DEFAULT.get
get_bytes = _DEFAULT.get_bytes
set = _DEFAULT.set
set_bytes = _DEFAULT.set_bytes
update = _DEFAULT.update
increment = _DEFAULT.increment
contains = _DEFAULT.contains
delete = _DEFAULT.delete
keys = _DEFAULT.keys
