"""Texts, numbers, truth values, choices, and what is written as text."""

from __future__ import annotations

import base64
import binascii
import datetime
import enum
import re
from typing import Any, Callable

from .._names import suggestion
from .base import Adapter, Mismatch, Unsupported, expected, shown


class AnyValue(Adapter):
    """Any JSON value."""

    def schema(self) -> dict[str, Any]:
        return {}

    def parse(self, value: Any, path: str) -> Any:
        return value

    def dump(self, value: Any, path: str) -> Any:
        return plain(value, path)

    def from_text(self, text: str, path: str) -> Any:
        return text


class Null(Adapter):
    """`None`."""

    def schema(self) -> dict[str, Any]:
        return {"type": "null"}

    def parse(self, value: Any, path: str) -> Any:
        if value is not None:
            raise expected(path, "null", value)
        return None

    dump = parse

    def from_text(self, text: str, path: str) -> Any:
        raise expected(path, "nothing", text)


class Text(Adapter):
    """`str`."""

    def schema(self) -> dict[str, Any]:
        return {"type": "string"}

    def parse(self, value: Any, path: str) -> Any:
        if not isinstance(value, str):
            raise expected(path, "a text", value)
        return value

    dump = parse

    def from_text(self, text: str, path: str) -> Any:
        return text


class Boolean(Adapter):
    """`bool`."""

    def schema(self) -> dict[str, Any]:
        return {"type": "boolean"}

    def parse(self, value: Any, path: str) -> Any:
        if not isinstance(value, bool):
            raise expected(path, "true or false", value)
        return value

    dump = parse

    def from_text(self, text: str, path: str) -> Any:
        if text.lower() not in ("true", "false"):
            raise expected(path, "true or false", text)
        return text.lower() == "true"

    def choices(self) -> list[str]:
        return ["true", "false"]


class Integer(Adapter):
    """`int`."""

    def schema(self) -> dict[str, Any]:
        return {"type": "integer"}

    def parse(self, value: Any, path: str) -> Any:
        # JSON has one kind of numbers: 3.0 is an integer.
        if isinstance(value, float) and value.is_integer():
            return int(value)
        if not isinstance(value, int) or isinstance(value, bool):
            raise expected(path, "an integer", value)
        return value

    dump = parse

    def from_text(self, text: str, path: str) -> Any:
        try:
            return int(text)
        except ValueError:
            raise expected(path, "an integer", text) from None


class Number(Adapter):
    """`float`."""

    def schema(self) -> dict[str, Any]:
        return {"type": "number"}

    def parse(self, value: Any, path: str) -> Any:
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            raise expected(path, "a number", value)
        return float(value)

    def dump(self, value: Any, path: str) -> Any:
        if value != value or value in (float("inf"), float("-inf")):
            raise expected(path, "a finite number, for JSON has no other", str(value))
        self.parse(value, path)
        return value

    def from_text(self, text: str, path: str) -> Any:
        try:
            return float(text)
        except ValueError:
            raise expected(path, "a number", text) from None


class Choice(Adapter):
    """`Literal[…]`: one of a few values."""

    def __init__(self, values: tuple[Any, ...]) -> None:
        self.values = values

    def schema(self) -> dict[str, Any]:
        return {**_type_of(self.values), "enum": list(self.values)}

    def parse(self, value: Any, path: str) -> Any:
        for known in self.values:
            if type(known) is type(value) and known == value:
                return known
        raise not_among(path, value, self.values)

    dump = parse

    def from_text(self, text: str, path: str) -> Any:
        for known in self.values:
            if text == str(known):
                return known
        raise not_among(path, text, self.values)

    def choices(self) -> list[str]:
        return [str(value) for value in self.values]


class Member(Adapter):
    """An `Enum`, by the values of its members."""

    def __init__(self, kind: type[enum.Enum]) -> None:
        self.kind = kind
        self.by_value = Choice(tuple(member.value for member in kind))

    def schema(self) -> dict[str, Any]:
        return self.by_value.schema()

    def parse(self, value: Any, path: str) -> Any:
        return self.kind(self.by_value.parse(value, path))

    def dump(self, value: Any, path: str) -> Any:
        if not isinstance(value, self.kind):
            raise expected(path, f"a {self.kind.__name__}", value)
        return value.value

    def from_text(self, text: str, path: str) -> Any:
        return self.kind(self.by_value.from_text(text, path))

    def choices(self) -> list[str]:
        return self.by_value.choices()


class Written(Adapter):
    """A value that JSON has as a text of some format."""

    def __init__(
        self, kind: type, what: str, schema: dict[str, Any],
        read: Callable[[str], Any], write: Callable[[Any], str] = str,
    ) -> None:  # fmt: skip
        self.kind, self.what, self.read, self.write = kind, what, read, write
        self._schema = schema

    def schema(self) -> dict[str, Any]:
        return dict(self._schema)

    def parse(self, value: Any, path: str) -> Any:
        if not isinstance(value, str):
            raise expected(path, self.what, value)
        try:
            return self.read(value)
        except (ValueError, ArithmeticError):
            raise expected(path, self.what, value) from None

    def dump(self, value: Any, path: str) -> Any:
        if not isinstance(value, self.kind):
            raise expected(path, f"a {self.kind.__name__}", value)
        return self.write(value)

    def from_text(self, text: str, path: str) -> Any:
        return self.parse(text, path)


def not_among(path: str, value: Any, known: tuple[Any, ...]) -> Mismatch:
    """That a value is none of the allowed ones."""
    allowed = ", ".join(shown(one) for one in known)
    hint = suggestion(value, [one for one in known if isinstance(one, str)]) if isinstance(value, str) else ""
    return Mismatch((path, f"expected one of {allowed}, got {shown(value)}{hint}"))


def plain(value: Any, path: str) -> Any:
    """A value as JSON, by what it is and not by a type: for members of the type `Any`."""
    from .resolve import adapter_of  # The types of members lead back here.

    if value is None or isinstance(value, (str, bool, int)):
        return value.value if isinstance(value, enum.Enum) else value
    if isinstance(value, float):
        return Number().dump(value, path)
    if isinstance(value, dict):
        return {
            str(key): plain(member, f"{path}.{key}" if path else str(key)) for key, member in value.items()
        }
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item, f"{path}[{at}]") for at, item in enumerate(value)]
    try:
        adapter = adapter_of(type(value))
    except Unsupported:
        adapter = AnyValue()
    if isinstance(adapter, AnyValue):
        raise Mismatch((path, f"{type(value).__name__} has no JSON form"))
    return adapter.dump(value, path)


def _type_of(values: tuple[Any, ...]) -> dict[str, Any]:
    names = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}
    types = {names.get(type(value)) for value in values}
    return {"type": types.pop()} if len(types) == 1 and None not in types else {}


def _datetime(text: str) -> datetime.datetime:
    # `fromisoformat` knows `Z` from Python 3.11 on.
    return datetime.datetime.fromisoformat(re.sub(r"[zZ]$", "+00:00", text))


def _time(text: str) -> datetime.time:
    return datetime.time.fromisoformat(re.sub(r"[zZ]$", "+00:00", text))


_DURATION = re.compile(
    r"^(-?)P(?:(\d+(?:\.\d+)?)W)?(?:(\d+(?:\.\d+)?)D)?"
    r"(?:T(?:(\d+(?:\.\d+)?)H)?(?:(\d+(?:\.\d+)?)M)?(?:(\d+(?:\.\d+)?)S)?)?$"
)


def _duration(text: str) -> datetime.timedelta:
    match = _DURATION.match(text)
    if not match or not any(match.groups()[1:]):
        raise ValueError(text)
    weeks, days, hours, minutes, seconds = (float(part or 0) for part in match.groups()[1:])
    span = datetime.timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)
    return -span if match[1] else span


def _write_duration(span: datetime.timedelta) -> str:
    sign = "-" if span < datetime.timedelta() else ""
    return f"{sign}PT{abs(span).total_seconds():g}S"


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ValueError(text) from None


def _text(format: str) -> dict[str, Any]:
    return {"type": "string", "format": format}


#: What is written as text, by the module and name of its type. A type of a module that nothing has
#: imported is nobody's, so that the modules need not be in each component.
_WRITTEN: dict[tuple[str, str], tuple[str, dict[str, Any], Callable[[str], Any] | None, Callable[[Any], str]]] = {
    ("datetime", "datetime"): ("a time such as 2025-01-31T12:00:00Z", _text("date-time"), _datetime, lambda time: time.isoformat()),
    ("datetime", "date"): ("a date such as 2025-01-31", _text("date"), lambda text: datetime.date.fromisoformat(text), lambda date: date.isoformat()),
    ("datetime", "time"): ("a time such as 12:00:00", _text("time"), _time, lambda time: time.isoformat()),
    ("datetime", "timedelta"): ("a duration such as PT90S", _text("duration"), _duration, _write_duration),
    ("uuid", "UUID"): ("a UUID", _text("uuid"), None, str),
    ("pathlib", "Path"): ("a path", _text("path"), None, str),
    ("pathlib", "PurePath"): ("a path", _text("path"), None, str),
    ("decimal", "Decimal"): ("a decimal number as text", _text("decimal"), None, str),
    ("builtins", "bytes"): (
        "bytes in base64", {"type": "string", "contentEncoding": "base64"}, _bytes,
        lambda data: base64.b64encode(data).decode(),
    ),
}  # fmt: skip


def written(kind: type) -> Written | None:
    """The adapter of a type that JSON has as text."""
    # From Python 3.13 on, `pathlib.Path` is of `pathlib._local` or the like.
    found = _WRITTEN.get((kind.__module__.split(".")[0].lstrip("_"), kind.__name__))
    if found is None:
        return None
    what, schema, read, write = found
    return Written(kind, what, schema, read or kind, write)
