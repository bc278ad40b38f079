"""Lists, tuples, sets, mappings, alternatives and values with limits."""

from __future__ import annotations

from typing import Any

from .._field import Field
from .base import Adapter, Mismatch, expected, shown
from .scalar import Integer


def each(steps: list[tuple[Any, str, Any]], convert: str) -> list[Any]:
    """Converts values by their adapters, and tells all that do not fit at once."""
    values: list[Any] = []
    problems: list[tuple[str, str]] = []
    for adapter, path, value in steps:
        try:
            values.append(getattr(adapter, convert)(value, path))
        except Mismatch as mismatch:
            problems.extend(mismatch.problems)
    if problems:
        raise Mismatch(*problems)
    return values


class Sequence(Adapter):
    """`list`, `set` and the like, of one type."""

    def __init__(self, item: Adapter, make: Any, is_set: bool) -> None:
        self.item, self.make, self.is_set = item, make, is_set

    def schema(self) -> dict[str, Any]:
        schema: dict[str, Any] = {"type": "array", "items": self.item.schema()}
        return {**schema, "uniqueItems": True} if self.is_set else schema

    def _each(self, value: Any, path: str, convert: str) -> list[Any]:
        return each([(self.item, f"{path}[{at}]", item) for at, item in enumerate(value)], convert)

    def parse(self, value: Any, path: str) -> Any:
        if not isinstance(value, list):
            raise expected(path, "a list", value)
        items = self._each(value, path, "parse")
        if self.is_set and len(set(items)) < len(items):
            raise Mismatch((path, "expected items that differ from each other"))
        return self.make(items)

    def dump(self, value: Any, path: str) -> Any:
        if not isinstance(value, (list, tuple, set, frozenset)):
            raise expected(path, "a list", value)
        items = self._each(value, path, "dump")
        return sorted(items, key=repr) if self.is_set else items


class Tuple(Adapter):
    """`tuple[int, str]`: so many items, each of its type."""

    def __init__(self, items: list[Adapter]) -> None:
        self.items = items

    def schema(self) -> dict[str, Any]:
        items = [item.schema() for item in self.items]
        count = {"minItems": len(items), "maxItems": len(items)}
        return {"type": "array", "prefixItems": items, "items": False, **count}

    def _each(self, value: Any, path: str, convert: str) -> list[Any]:
        if not isinstance(value, (list, tuple)) or len(value) != len(self.items):
            raise expected(path, f"a list of {len(self.items)} items", value)
        return each([(a, f"{path}[{at}]", v) for at, (a, v) in enumerate(zip(self.items, value))], convert)

    def parse(self, value: Any, path: str) -> Any:
        return tuple(self._each(value, path, "parse"))

    def dump(self, value: Any, path: str) -> Any:
        return self._each(value, path, "dump")


class Mapping(Adapter):
    """`dict[str, T]`."""

    def __init__(self, key: Adapter, value: Adapter) -> None:
        self.key, self.value = key, value

    def schema(self) -> dict[str, Any]:
        members = self.value.schema()
        schema: dict[str, Any] = {"type": "object", "additionalProperties": members or True}
        names = self.key.schema()
        return schema if names == {"type": "string"} else {**schema, "propertyNames": names}

    def _each(self, value: Any, path: str, convert: str) -> dict[Any, Any]:
        if not isinstance(value, dict):
            raise expected(path, "an object", value)
        paths = [f"{path}.{key}" if path else str(key) for key in value]
        keys = each([(self.key, at, key) for at, key in zip(paths, value)], convert)
        values = each([(self.value, at, member) for at, member in zip(paths, value.values())], convert)
        return dict(zip(keys, values))

    def parse(self, value: Any, path: str) -> Any:
        return self._each(value, path, "parse")

    def dump(self, value: Any, path: str) -> Any:
        return self._each(value, path, "dump")


class Union(Adapter):
    """`A | B`: the first alternative that fits; for a number without a fraction, `int` before `float`."""

    def __init__(self, alternatives: list[Adapter], names: list[str]) -> None:
        self.alternatives, self.names = alternatives, names

    def schema(self) -> dict[str, Any]:
        schemas = [alternative.schema() for alternative in self.alternatives]
        types = [schema.get("type") for schema in schemas]
        if all(isinstance(kind, str) and len(schema) == 1 for kind, schema in zip(types, schemas)):
            return {"type": types}
        return {"anyOf": schemas}

    def _first(self, value: Any, path: str, convert: str) -> Any:
        order = self.alternatives
        if isinstance(value, int):
            order = sorted(order, key=lambda one: not isinstance(one, Integer))
        mismatches = []
        for alternative in order:
            try:
                return getattr(alternative, convert)(value, path)
            except Mismatch as mismatch:
                mismatches.append(mismatch)
        # One that went deeper than this value is the one that was meant.
        deeper = [one for one in mismatches if all(at != path for at, _ in one.problems)]
        if len(deeper) == 1:
            raise deeper[0]
        without_none = [one for one, name in zip(mismatches, self.names) if name != "None"]
        if len(without_none) == 1:
            raise without_none[0]
        raise Mismatch((path, f"expected {' or '.join(self.names)}, got {shown(value)}"))

    def parse(self, value: Any, path: str) -> Any:
        return self._first(value, path, "parse")

    def dump(self, value: Any, path: str) -> Any:
        return self._first(value, path, "dump")

    def from_text(self, text: str, path: str) -> Any:
        return self._first(text, path, "from_text")

    def choices(self) -> list[str]:
        return [choice for alternative in self.alternatives for choice in alternative.choices()]


class Limited(Adapter):
    """`Annotated[T, Field(…)]`."""

    def __init__(self, inner: Adapter, fields: list[Field]) -> None:
        self.inner, self.fields = inner, fields

    def schema(self) -> dict[str, Any]:
        schema = self.inner.schema()
        for field in self.fields:
            schema = field.describe(schema)
        return schema

    def _check(self, value: Any, path: str) -> None:
        for field in self.fields:
            problem = field.problem(value)
            if problem:
                raise Mismatch((path, problem))

    def parse(self, value: Any, path: str) -> Any:
        parsed = self.inner.parse(value, path)
        self._check(value, path)
        return parsed

    def dump(self, value: Any, path: str) -> Any:
        dumped = self.inner.dump(value, path)
        self._check(dumped, path)
        return dumped

    def from_text(self, text: str, path: str) -> Any:
        value = self.inner.from_text(text, path)
        self._check(value, path)
        return value

    def choices(self) -> list[str]:
        given = [str(one) for field in self.fields for one in field.complete or ()]
        return given or self.inner.choices()
