"""What every type offers, and how a value is told that does not fit."""

from __future__ import annotations

import json
from typing import Any


class Unsupported(Exception):
    """A type that has no JSON form. The message says which, and what to write instead."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class Mismatch(Exception):
    """A value that is not of its type. It says where in the value, and what was expected."""

    def __init__(self, *problems: tuple[str, str]) -> None:
        super().__init__("; ".join(f"{path}: {problem}" if path else problem for path, problem in problems))
        #: Pairs of a path such as `points[2].x` and what is wrong there.
        self.problems = problems


def expected(path: str, what: str, value: Any) -> Mismatch:
    """That something else was expected than this value."""
    return Mismatch((path, f"expected {what}, got {shown(value)}"))


def shown(value: Any) -> str:
    """A value for a message: short, and in JSON where it has that form."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = f"{type(value).__name__} {value!r}"
    return text if len(text) <= 60 else text[:57] + "…"


class Adapter:
    """A type as JSON."""

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of its values."""
        raise NotImplementedError

    def parse(self, value: Any, path: str) -> Any:
        """A value of the type from JSON.

        Raises:
            Mismatch: If the JSON is of another form.
        """
        raise NotImplementedError

    def dump(self, value: Any, path: str) -> Any:
        """The JSON of a value of the type.

        Raises:
            Mismatch: If the value is of another type.
        """
        raise NotImplementedError

    def from_text(self, text: str, path: str) -> Any:
        """A value from the text of a prompt's argument or a URI's variable.

        Raises:
            Mismatch: If the text means no value of the type.
        """
        raise expected(path, "JSON", text)

    def choices(self) -> list[str]:
        """The texts that a value can be, where these are few."""
        return []


def root_schema(adapter: Adapter) -> dict[str, Any]:
    """The schema of a type by itself: definitions of its parts stand at its top."""
    definitions: dict[str, Any] = {}
    schema = _without_definitions(adapter.schema(), definitions)
    return {**schema, "$defs": definitions} if definitions else schema


def _without_definitions(schema: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(schema, list):
        return [_without_definitions(part, definitions) for part in schema]
    if not isinstance(schema, dict):
        return schema
    for name, part in (schema.get("$defs") or {}).items():
        definitions[name] = _without_definitions(part, definitions)
    return {key: _without_definitions(part, definitions) for key, part in schema.items() if key != "$defs"}
