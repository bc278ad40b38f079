"""Models of pydantic, known by their methods: version 1 is pure Python and works in a component;
version 2 is not, and serves natively only."""

from __future__ import annotations

import json
from typing import Any

from .base import Adapter, Mismatch, expected


def is_model(kind: Any) -> bool:
    """Whether a type is a model of pydantic."""
    if not isinstance(kind, type):
        return False
    return hasattr(kind, "model_json_schema") or (hasattr(kind, "parse_obj") and hasattr(kind, "schema"))


class Model(Adapter):
    """A model of pydantic."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind
        self.is_second = hasattr(kind, "model_json_schema")

    def schema(self) -> dict[str, Any]:
        schema = self.kind.model_json_schema() if self.is_second else self.kind.schema()
        text = json.dumps(schema).replace('"#/definitions/', '"#/$defs/')
        schema = json.loads(text)
        if "definitions" in schema:
            schema["$defs"] = schema.pop("definitions")
        _close(schema)
        return schema

    def parse(self, value: Any, path: str) -> Any:
        try:
            return self.kind.model_validate(value) if self.is_second else self.kind.parse_obj(value)
        except ValueError as wrong:
            errors = getattr(wrong, "errors", None)
            if errors is None:
                raise Mismatch((path, str(wrong))) from wrong
            problems = []
            for error in errors():
                at = ".".join(str(part) for part in error["loc"])
                problems.append((f"{path}.{at}".strip("."), error["msg"]))
            raise Mismatch(*problems) from wrong

    def dump(self, value: Any, path: str) -> Any:
        if not isinstance(value, self.kind):
            raise expected(path, f"a {self.kind.__name__}", value)
        return json.loads(value.model_dump_json() if self.is_second else value.json())


def _close(schema: Any) -> None:
    """Allows no other members than those that are named."""
    if isinstance(schema, dict):
        if schema.get("type") == "object" and "properties" in schema:
            schema.setdefault("additionalProperties", False)
        for part in schema.values():
            _close(part)
    elif isinstance(schema, list):
        for part in schema:
            _close(part)
