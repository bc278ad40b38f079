"""Which adapter a type has."""

from __future__ import annotations

import collections.abc
import dataclasses
import enum
import types
import typing
from typing import Any

from .._field import Field
from .base import Adapter, Unsupported
from .container import Limited, Mapping, Sequence, Tuple, Union
from .models import Model, is_model
from .objects import Defined, MemberOf, Object, Record, Reference, TypedDictionary
from .scalar import (
    AnyValue, Boolean, Choice, Integer, Member, Null, Number, Text, Written, written,
)  # fmt: skip

_PLAIN: dict[Any, type[Adapter]] = {
    str: Text, int: Integer, float: Number, bool: Boolean, None: Null, type(None): Null,
    Any: AnyValue, object: AnyValue,
}  # fmt: skip

_SEQUENCES: dict[Any, tuple[Any, bool]] = {
    list: (list, False), set: (set, True), frozenset: (frozenset, True),
    collections.abc.Sequence: (list, False), collections.abc.Iterable: (list, False),
    collections.abc.Collection: (list, False), collections.abc.Set: (set, True),
    collections.abc.MutableSequence: (list, False),
}  # fmt: skip

_MAPPINGS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)

_HINT = "use str, int, float, bool, list, dict, tuple, set, Literal, an Enum, a dataclass or a TypedDict"


def adapter_of(annotation: Any, where: str = "") -> Adapter:
    """The adapter of a type.

    Raises:
        Unsupported: If the type has no JSON form.
    """
    return _Resolver().resolve(annotation, where)


def name_of(annotation: Any) -> str:
    """A type as it is written."""
    if annotation is None or annotation is type(None):
        return "None"
    named = (type, types.FunctionType, types.BuiltinFunctionType)
    if isinstance(annotation, named) and not typing.get_args(annotation):
        return annotation.__name__
    return str(annotation).replace("typing.", "")


class _Resolver:
    """Remembers the objects that it is within, for types that are within themselves."""

    def __init__(self) -> None:
        self.within: dict[Any, Object] = {}
        self.referred: set[Any] = set()

    def resolve(self, annotation: Any, where: str) -> Adapter:
        if annotation in _PLAIN if _is_hashable(annotation) else False:
            return _PLAIN[annotation]()
        if isinstance(annotation, typing.TypeVar):
            return AnyValue()
        if hasattr(annotation, "__supertype__"):  # NewType
            return self.resolve(annotation.__supertype__, where)
        if type(annotation).__name__ == "TypeAliasType":
            return self.resolve(annotation.__value__, where)
        origin = typing.get_origin(annotation)
        if origin is not None:
            return self.generic(annotation, origin, typing.get_args(annotation), where)
        if annotation in _SEQUENCES:
            make, is_set = _SEQUENCES[annotation]
            return Sequence(AnyValue(), make, is_set)
        if annotation is tuple:
            return Sequence(AnyValue(), tuple, False)
        if annotation in _MAPPINGS:
            return Mapping(Text(), AnyValue())
        if isinstance(annotation, type):
            return self.named(annotation, where)
        if callable(annotation):
            meant = "Any" if annotation is any else "the type that it returns"
            raise Unsupported(
                f"the type {name_of(annotation)}{_of(where)} is a function", f"write a type: {meant}"
            )
        raise Unsupported(f"the type {name_of(annotation)}{_of(where)} has no JSON form", _HINT)

    def generic(self, annotation: Any, origin: Any, args: tuple[Any, ...], where: str) -> Adapter:
        if origin is typing.Annotated:
            return self.annotated(args, where)
        if origin is typing.Union or origin is types.UnionType:
            alternatives = [self.resolve(one, where) for one in args]
            return Union(alternatives, [name_of(one) for one in args])
        if origin is typing.Literal:
            return Choice(args)
        if getattr(origin, "__name__", getattr(origin, "_name", None)) in (
            "Required",
            "NotRequired",
            "ReadOnly",
            "Final",
        ):
            return self.resolve(args[0], where)
        if origin in _SEQUENCES:
            make, is_set = _SEQUENCES[origin]
            if len(args) != 1:
                inner = ", ".join(map(name_of, args))
                raise Unsupported(
                    f"the type {name_of(annotation)}{_of(where)} has {len(args)} types of items",
                    f"write {name_of(origin)}[{inner.replace(', ', ' | ')}], or tuple[{inner}] for items in this order",
                )
            return Sequence(self.resolve(args[0], where), make, is_set)
        if origin is tuple:
            if len(args) == 2 and args[1] is Ellipsis:
                return Sequence(self.resolve(args[0], where), tuple, False)
            return Tuple([self.resolve(one, where) for one in args if one != ()])
        if origin in _MAPPINGS:
            if len(args) != 2:
                raise Unsupported(
                    f"the type {name_of(annotation)}{_of(where)} has not one type of keys and one of values",
                    "write dict[str, …]",
                )
            return Mapping(self.key(args[0], where), self.resolve(args[1], where))
        raise Unsupported(f"the type {name_of(annotation)}{_of(where)} has no JSON form", _HINT)

    def key(self, annotation: Any, where: str) -> Adapter:
        adapter = self.resolve(annotation, where)
        if not isinstance(adapter, (Text, Choice, Member, Written, Limited)):
            raise Unsupported(
                f"keys of the type {name_of(annotation)}{_of(where)} have no JSON form",
                "JSON has texts as keys: write dict[str, …]",
            )
        return adapter

    def annotated(self, args: tuple[Any, ...], where: str) -> Adapter:
        fields = [field for field in map(Field.of, args[1:]) if field is not None]
        inner = self.resolve(args[0], where)
        return Limited(inner, fields) if fields else inner

    def named(self, kind: Any, where: str) -> Adapter:
        as_text = written(kind)
        if as_text is not None:
            return as_text
        if issubclass(kind, enum.Enum):
            values = [member.value for member in kind]
            if not all(isinstance(value, (str, int, float)) for value in values):
                raise Unsupported(
                    f"the values of the enum {kind.__name__}{_of(where)} are neither texts nor numbers",
                    "give its members texts",
                )
            return Member(kind)
        if is_model(kind):
            return Model(kind)
        if dataclasses.is_dataclass(kind) or typing.is_typeddict(kind):
            return self.object(kind)
        raise Unsupported(
            f"the type {kind.__name__}{_of(where)} has no JSON form",
            _HINT if kind.__module__ == "builtins" else f"make {kind.__name__} a dataclass, or {_HINT}",
        )

    def object(self, kind: Any) -> Adapter:
        if kind in self.within:
            self.referred.add(kind)
            return Reference(self.within[kind])
        is_record = isinstance(kind, type) and dataclasses.is_dataclass(kind)
        made: Object = Record(kind) if is_record else TypedDictionary(kind)
        self.within[kind] = made
        try:
            hints = typing.get_type_hints(kind, include_extras=True)
        except NameError as missing:
            raise Unsupported(
                f"a member of {kind.__name__} has a type that is not known: {missing}",
                "import the type where the class is defined",
            ) from None
        if isinstance(made, Record):
            made.fill(hints, self.resolve)
        else:
            assert isinstance(made, TypedDictionary)
            for name, hint in hints.items():
                adapter = self.resolve(hint, f"{kind.__name__}.{name}")
                # The names that a `TypedDict` keeps do not see through annotations that are texts.
                mark = getattr(typing.get_origin(hint), "_name", None)
                is_required = mark == "Required" or (mark != "NotRequired" and name in kind.__required_keys__)
                made.members[name] = MemberOf(name, adapter, is_required, description=made.said.get(name))
        del self.within[kind]
        return Defined(made) if kind in self.referred else made


def _is_hashable(annotation: Any) -> bool:
    try:
        hash(annotation)
    except TypeError:
        return False
    return True


def _of(where: str) -> str:
    return f" of {where}" if where else ""
