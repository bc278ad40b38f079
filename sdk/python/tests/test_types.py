"""Types as JSON Schema, values made from JSON, and JSON made from them."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import pathlib
import sys
import typing
import unittest
import uuid
from typing import Annotated, Any, Literal, Optional, TypedDict, Union

import support  # noqa: F401
from tenon import Field
from tenon._types import Mismatch, Unsupported, adapter_of, root_schema


class Colour(enum.Enum):
    RED = "red"
    GREEN = "green"


@dataclasses.dataclass
class Point:
    """A point.

    Attributes:
        x: To the right.
    """

    x: float
    y: float = 0.0


@dataclasses.dataclass
class Tree:
    name: str
    children: "list[Tree]" = dataclasses.field(default_factory=list)


class Depth(TypedDict):
    depth: int


class Options(Depth, total=False):
    """How."""

    name: str


if sys.version_info >= (3, 11):

    class Marked(TypedDict):
        """How."""

        depth: int
        name: typing.NotRequired[str]

else:
    Marked = Options


POINT = {
    "type": "object",
    "description": "A point.",
    "properties": {
        "x": {"type": "number", "description": "To the right."},
        "y": {"type": "number", "default": 0.0},
    },
    "required": ["x"],
    "additionalProperties": False,
}
TREE = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "children": {"type": "array", "items": {"$ref": "#/$defs/Tree"}},
    },
    "required": ["name"],
    "additionalProperties": False,
}

#: Type, schema, JSON, value.
FIT: list[tuple[Any, dict[str, Any], Any, Any]] = [
    (str, {"type": "string"}, "a", "a"),
    (int, {"type": "integer"}, 3.0, 3),
    (float, {"type": "number"}, 3, 3.0),
    (bool, {"type": "boolean"}, True, True),
    (None, {"type": "null"}, None, None),
    (Any, {}, {"a": [1]}, {"a": [1]}),
    (Optional[int], {"type": ["integer", "null"]}, None, None),
    (Union[float, int], {"type": ["number", "integer"]}, 3, 3),
    (str | None, {"type": ["string", "null"]}, "a", "a"),
    (list[int], {"type": "array", "items": {"type": "integer"}}, [1, 2], [1, 2]),
    (list, {"type": "array", "items": {}}, [1, "a"], [1, "a"]),
    (set[str], {"type": "array", "items": {"type": "string"}, "uniqueItems": True}, ["a"], {"a"}),
    (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}, [1], (1,)),
    (
        tuple[int, str],
        {
            "type": "array",
            "prefixItems": [{"type": "integer"}, {"type": "string"}],
            "items": False,
            "minItems": 2,
            "maxItems": 2,
        },
        [1, "a"],
        (1, "a"),
    ),
    (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}, {"a": 1}, {"a": 1}),
    (dict, {"type": "object", "additionalProperties": True}, {"a": 1}, {"a": 1}),
    (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}, "b", "b"),
    (Literal[1, "b"], {"enum": [1, "b"]}, 1, 1),
    (Colour, {"type": "string", "enum": ["red", "green"]}, "red", Colour.RED),
    (Point, POINT, {"x": 1}, Point(1.0)),
    (
        Tree,
        {"$ref": "#/$defs/Tree", "$defs": {"Tree": TREE}},
        {"name": "a", "children": [{"name": "b"}]},
        Tree("a", [Tree("b")]),
    ),
    (
        Options,
        {
            "type": "object",
            "description": "How.",
            "properties": {"depth": {"type": "integer"}, "name": {"type": "string"}},
            "required": ["depth"],
            "additionalProperties": False,
        },
        {"depth": 1},
        {"depth": 1},
    ),
    (
        Marked,
        {
            "type": "object",
            "description": "How.",
            "properties": {"depth": {"type": "integer"}, "name": {"type": "string"}},
            "required": ["depth"],
            "additionalProperties": False,
        },
        {"depth": 1},
        {"depth": 1},
    ),
    (
        datetime.datetime,
        {"type": "string", "format": "date-time"},
        "2025-01-31T12:00:00Z",
        datetime.datetime(2025, 1, 31, 12, tzinfo=datetime.timezone.utc),
    ),
    (datetime.date, {"type": "string", "format": "date"}, "2025-01-31", datetime.date(2025, 1, 31)),
    (
        datetime.timedelta,
        {"type": "string", "format": "duration"},
        "P1DT90S",
        datetime.timedelta(days=1, seconds=90),
    ),
    (
        uuid.UUID,
        {"type": "string", "format": "uuid"},
        "12345678-1234-5678-1234-567812345678",
        uuid.UUID(int=0x12345678123456781234567812345678),
    ),
    (pathlib.Path, {"type": "string", "format": "path"}, "a/b", pathlib.Path("a/b")),
    (decimal.Decimal, {"type": "string", "format": "decimal"}, "1.50", decimal.Decimal("1.50")),
    (bytes, {"type": "string", "contentEncoding": "base64"}, "AAE=", b"\x00\x01"),
    (
        Annotated[int, Field(description="How many", minimum=1)],
        {"type": "integer", "description": "How many", "minimum": 1},
        1,
        1,
    ),
    (
        Annotated[list[int], Field(max_length=2)],
        {"type": "array", "items": {"type": "integer"}, "maxItems": 2},
        [1],
        [1],
    ),
    (Annotated[str, "A name"], {"type": "string", "description": "A name"}, "a", "a"),
    (typing.NewType("Id", str), {"type": "string"}, "a", "a"),
]

#: Type, JSON, and what is said of it.
MISFIT: list[tuple[Any, Any, str]] = [
    (int, "3", 'expected an integer, got "3"'),
    (int, True, "expected an integer, got true"),
    (str, 3, "expected a text, got 3"),
    (list[int], [1, "a", "b"], '[1]: expected an integer, got "a"; [2]: expected an integer, got "b"'),
    (Colour, "gren", 'expected one of "red", "green", got "gren": did you mean "green"?'),
    (Literal[1, 2], 3, "expected one of 1, 2, got 3"),
    (Point, {"x": 1, "z": 2}, 'unknown member "z"'),
    (Point, {}, 'the member "x" is missing'),
    (list[Point], [{"x": 0}, {"x": "a"}], '[1].x: expected a number, got "a"'),
    (Tree, {"name": "a", "children": [{"name": 1}]}, "children[0].name: expected a text, got 1"),
    (Options, {"depth": "a"}, 'depth: expected an integer, got "a"'),
    (Optional[int], "a", 'expected an integer, got "a"'),
    (Union[int, list[int]], "a", 'expected int or list[int], got "a"'),
    (Optional[Point], {"x": "a"}, 'x: expected a number, got "a"'),
    (set[int], [1, 1], "expected items that differ from each other"),
    (tuple[int, str], [1], "expected a list of 2 items, got [1]"),
    (datetime.date, "tomorrow", 'expected a date such as 2025-01-31, got "tomorrow"'),
    (uuid.UUID, "x", 'expected a UUID, got "x"'),
    (bytes, "ä", 'expected bytes in base64, got "ä"'),
    (Annotated[int, Field(minimum=1)], 0, "expected at least 1, got 0"),
    (Annotated[float, Field(exclusive_maximum=1)], 1, "expected less than 1, got 1"),
    (Annotated[int, Field(multiple_of=5)], 7, "expected a multiple of 5, got 7"),
    (Annotated[str, Field(min_length=2)], "a", "expected at least 2 characters, got 1"),
    (Annotated[str, Field(pattern="^[a-z]+$")], "A", "expected text like /^[a-z]+$/, got 'A'"),
    (dict[str, int], {"a": "b"}, 'a: expected an integer, got "b"'),
]

UNSUPPORTED = [
    (object().__class__ and complex, "the type complex has no JSON form"),
    (typing.Callable[[int], int], "has no JSON form"),
    (dict[int, str], "keys of the type int have no JSON form"),
    (list[complex], "the type complex has no JSON form"),
    (type("Own", (), {}), "the type Own has no JSON form"),
]


class Types(unittest.TestCase):
    maxDiff = None

    def test_a_value_goes_from_json_and_back(self) -> None:
        for kind, schema, given, value in FIT:
            with self.subTest(str(kind)):
                adapter = adapter_of(kind)
                self.assertEqual(root_schema(adapter), schema)
                parsed = adapter.parse(given, "")
                self.assertEqual((parsed, type(parsed)), (value, type(value)))
                self.assertEqual(adapter.parse(adapter.dump(value, ""), ""), value)

    def test_what_does_not_fit_says_where_and_what_was_expected(self) -> None:
        for kind, given, said in MISFIT:
            with self.subTest(said):
                with self.assertRaises(Mismatch) as caught:
                    adapter_of(kind).parse(given, "")
                self.assertEqual(str(caught.exception), said)

    def test_a_type_without_a_json_form_is_named_with_a_remedy(self) -> None:
        for kind, said in UNSUPPORTED:
            with self.subTest(said):
                with self.assertRaises(Unsupported) as caught:
                    adapter_of(kind)
                self.assertIn(said, str(caught.exception))
                self.assertTrue(caught.exception.hint)

    def test_a_number_that_json_has_not_is_refused(self) -> None:
        with self.assertRaisesRegex(Mismatch, "expected a finite number"):
            adapter_of(float).dump(float("nan"), "")

    def test_text_becomes_a_value_where_a_user_types(self) -> None:
        for kind, text, value in [
            (int, "3", 3),
            (bool, "true", True),
            (Colour, "red", Colour.RED),
            (Optional[float], "1.5", 1.5),
            (Literal[1, 2], "2", 2),
        ]:
            self.assertEqual(adapter_of(kind).from_text(text, "x"), value)


class Model:
    """A model as pydantic of version 1 makes them."""

    def __init__(self, name: str) -> None:
        self.name = name

    @classmethod
    def schema(cls) -> dict[str, Any]:
        part = {"type": "object", "properties": {}}
        return {
            "type": "object",
            "properties": {"name": {"$ref": "#/definitions/Part"}},
            "definitions": {"Part": part},
        }

    @classmethod
    def parse_obj(cls, value: dict[str, Any]) -> "Model":
        if "name" not in value:
            raise ValueError("field required")
        return cls(value["name"])

    def json(self) -> str:
        return f'{{"name": "{self.name}"}}'


class Models(unittest.TestCase):
    def test_a_model_of_pydantic_is_known_by_its_methods(self) -> None:
        adapter = adapter_of(Model)
        schema = root_schema(adapter)
        self.assertEqual(schema["properties"], {"name": {"$ref": "#/$defs/Part"}})
        self.assertEqual(schema["additionalProperties"], False)
        self.assertEqual(schema["$defs"]["Part"]["additionalProperties"], False)
        self.assertEqual(adapter.dump(adapter.parse({"name": "a"}, ""), ""), {"name": "a"})
        with self.assertRaisesRegex(Mismatch, "field required"):
            adapter.parse({}, "")


if __name__ == "__main__":
    unittest.main()
