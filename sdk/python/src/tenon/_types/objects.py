"""Objects with named members: dataclasses, `TypedDict`s, and the parameters of a function."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any, Callable

from .._docstring import Docstring
from .._names import suggestion
from .base import Adapter, Mismatch, expected
from .container import each

#: That a member has no default value.
MISSING: Any = object()


@dataclasses.dataclass
class MemberOf:
    """A member of an object."""

    name: str
    adapter: Adapter
    is_required: bool
    default: Any = MISSING
    description: str | None = None

    def schema(self) -> dict[str, Any]:
        schema = self.adapter.schema()
        if self.description and "description" not in schema:
            schema = {**schema, "description": self.description}
        if self.default is not MISSING:
            try:
                schema = {**schema, "default": self.adapter.dump(self.default, "")}
            except Mismatch:
                pass  # A default of another type, such as a mark for "not given", is not the caller's.
        return schema


class Object(Adapter):
    """An object whose members have names and types."""

    def __init__(self, name: str, kind: str = "member", description: str = "") -> None:
        self.name, self.kind, self.description = name, kind, description
        self.members: dict[str, MemberOf] = {}

    def schema(self) -> dict[str, Any]:
        schema: dict[str, Any] = {"type": "object"}
        if self.description:
            schema["description"] = self.description
        schema["properties"] = {name: member.schema() for name, member in self.members.items()}
        required = [name for name, member in self.members.items() if member.is_required]
        if required:
            schema["required"] = required
        return {**schema, "additionalProperties": False}

    def parse_members(self, value: Any, path: str) -> dict[str, Any]:
        """The members that are there, as values of their types."""
        if not isinstance(value, dict):
            raise expected(path, "an object", value)
        problems: list[tuple[str, str]] = []
        for name in value:
            if name not in self.members:
                left = [known for known in self.members if known not in value]
                problems.append((path, f'unknown {self.kind} "{name}"{suggestion(name, left)}'))
        for name, member in self.members.items():
            if member.is_required and name not in value:
                problems.append((path, f'the {self.kind} "{name}" is missing'))
        there = [
            (m.adapter, f"{path}.{n}" if path else n, value[n]) for n, m in self.members.items() if n in value
        ]
        try:
            values = each(there, "parse")
        except Mismatch as mismatch:
            problems.extend(mismatch.problems)
        if problems:
            raise Mismatch(*problems)
        return dict(zip([name for name in self.members if name in value], values))

    def dump_members(self, values: dict[str, Any], path: str) -> dict[str, Any]:
        there = [
            (m.adapter, f"{path}.{n}" if path else n, values[n])
            for n, m in self.members.items()
            if n in values
        ]
        return dict(zip([name for name in self.members if name in values], each(there, "dump")))


class Record(Object):
    """A dataclass."""

    def __init__(self, kind: type) -> None:
        docstring = Docstring.of(kind)
        super().__init__(kind.__name__, description=docstring.description)
        self.type = kind

    def fill(self, hints: dict[str, Any], adapter: Callable[[Any, str], Adapter]) -> None:
        """Adds the members. They may be of the type itself, which is known by then."""
        said = Docstring.of(self.type).parameters
        for field in dataclasses.fields(self.type):
            if not field.init:
                continue
            default = field.default if field.default is not dataclasses.MISSING else MISSING
            has_default = default is not MISSING or field.default_factory is not dataclasses.MISSING
            description = field.metadata.get("description") or said.get(field.name)
            of = adapter(hints[field.name], f"{self.name}.{field.name}")
            self.members[field.name] = MemberOf(field.name, of, not has_default, default, description)

    def parse(self, value: Any, path: str) -> Any:
        members = self.parse_members(value, path)
        try:
            return self.type(**members)
        except (ValueError, TypeError) as wrong:  # Of `__post_init__`.
            raise Mismatch((path, str(wrong))) from wrong

    def dump(self, value: Any, path: str) -> Any:
        if not isinstance(value, self.type):
            raise expected(path, f"a {self.name}", value)
        return self.dump_members({name: getattr(value, name) for name in self.members}, path)


class TypedDictionary(Object):
    """A `TypedDict`."""

    def __init__(self, kind: Any) -> None:
        docstring = Docstring.of(kind)
        super().__init__(kind.__name__, description=docstring.description)
        self.type, self.said = kind, docstring.parameters

    def parse(self, value: Any, path: str) -> Any:
        return self.parse_members(value, path)

    def dump(self, value: Any, path: str) -> Any:
        if not isinstance(value, dict):
            raise expected(path, "an object", value)
        problems = [
            (path, f'the member "{n}" is missing')
            for n, m in self.members.items()
            if m.is_required and n not in value
        ]
        problems += [(path, f'unknown member "{name}"') for name in value if name not in self.members]
        if problems:
            raise Mismatch(*problems)
        return self.dump_members(value, path)


class Parameters(Object):
    """The parameters of a function, which JSON has as one object."""

    def __init__(self, name: str) -> None:
        super().__init__(name, kind="argument")

    def parse(self, value: Any, path: str) -> dict[str, Any]:
        """The keyword arguments."""
        given = self.parse_members(value, path)
        for name, member in self.members.items():
            # What a call does to a default stays in that call.
            if name not in given and member.default is not MISSING:
                given[name] = copy.copy(member.default)
        return given


class Reference(Adapter):
    """A type within itself, such as a tree's nodes: its schema stands under `$defs`."""

    def __init__(self, target: Object) -> None:
        self.target = target

    def schema(self) -> dict[str, Any]:
        return {"$ref": f"#/$defs/{self.target.name}"}

    def parse(self, value: Any, path: str) -> Any:
        return self.target.parse(value, path)

    def dump(self, value: Any, path: str) -> Any:
        return self.target.dump(value, path)


class Defined(Adapter):
    """The outermost use of a type that is within itself."""

    def __init__(self, target: Object) -> None:
        self.target = target

    def schema(self) -> dict[str, Any]:
        return {"$ref": f"#/$defs/{self.target.name}", "$defs": {self.target.name: self.target.schema()}}

    def parse(self, value: Any, path: str) -> Any:
        return self.target.parse(value, path)

    def dump(self, value: Any, path: str) -> Any:
        return self.target.dump(value, path)
