"""What a type does not say of a value: its description and its limits."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Field:
    """Says more of a parameter or member than its type: `Annotated[int, Field(minimum=1)]`.

    Args:
        description: What the value is, for the model.
        title: The name that people see.
        minimum: The least number.
        maximum: The greatest number.
        exclusive_minimum: The number has to be greater than this.
        exclusive_maximum: The number has to be less than this.
        multiple_of: The number has to be a multiple of this.
        min_length: The least number of characters of a text, or of items of a list.
        max_length: The greatest number of them.
        pattern: A regular expression that a text has to contain.
        format: The `format` of a text, such as `email`. It is not checked.
        examples: Values that could be meant.
        complete: Values to suggest as a user types an argument of a prompt or resource.
        extra: Further members of the JSON Schema.
    """

    description: str | None = None
    title: str | None = None
    minimum: float | None = None
    maximum: float | None = None
    exclusive_minimum: float | None = None
    exclusive_maximum: float | None = None
    multiple_of: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None
    format: str | None = None
    examples: tuple[Any, ...] | list[Any] | None = None
    complete: tuple[str, ...] | list[str] | None = None
    extra: dict[str, Any] | None = None

    @classmethod
    def of(cls, metadata: Any) -> "Field | None":
        """What a member of `Annotated` says: a `Field`, a plain text as description, or what
        `annotated_types` and pydantic call limits."""
        if isinstance(metadata, cls):
            return metadata
        if isinstance(metadata, str):
            return cls(description=metadata)
        known = {
            "minimum": "ge", "maximum": "le", "exclusive_minimum": "gt", "exclusive_maximum": "lt",
            "multiple_of": "multiple_of", "min_length": "min_length", "max_length": "max_length",
            "pattern": "pattern", "description": "description", "title": "title",
        }  # fmt: skip
        found: dict[str, Any] = {}
        for part in [metadata, *(getattr(metadata, "metadata", None) or ())]:
            for name, theirs in known.items():
                value = getattr(part, theirs, None)
                if isinstance(value, (int, float, str)) and not isinstance(value, bool):
                    found[name] = value
        return cls(**found) if found else None

    def describe(self, schema: dict[str, Any]) -> dict[str, Any]:
        """A schema with what this says."""
        of_items = schema.get("type") == "array"
        members = {
            "title": self.title,
            "description": self.description,
            "minimum": self.minimum,
            "maximum": self.maximum,
            "exclusiveMinimum": self.exclusive_minimum,
            "exclusiveMaximum": self.exclusive_maximum,
            "multipleOf": self.multiple_of,
            "minItems" if of_items else "minLength": self.min_length,
            "maxItems" if of_items else "maxLength": self.max_length,
            "pattern": self.pattern,
            "format": self.format,
            "examples": list(self.examples) if self.examples else None,
            **(self.extra or {}),
        }
        return {**schema, **{name: value for name, value in members.items() if value is not None}}

    def problem(self, value: Any) -> str | None:
        """What is wrong with a value, if anything."""
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return self._problem_of_number(value)
        if isinstance(value, (str, list)):
            what = "characters" if isinstance(value, str) else "items"
            if self.min_length is not None and len(value) < self.min_length:
                return f"expected at least {self.min_length} {what}, got {len(value)}"
            if self.max_length is not None and len(value) > self.max_length:
                return f"expected at most {self.max_length} {what}, got {len(value)}"
        if self.pattern is not None and isinstance(value, str) and not re.search(self.pattern, value):
            return f"expected text like /{self.pattern}/, got {value!r}"
        return None

    def _problem_of_number(self, value: float) -> str | None:
        if self.minimum is not None and value < self.minimum:
            return f"expected at least {self.minimum}, got {value}"
        if self.maximum is not None and value > self.maximum:
            return f"expected at most {self.maximum}, got {value}"
        if self.exclusive_minimum is not None and value <= self.exclusive_minimum:
            return f"expected more than {self.exclusive_minimum}, got {value}"
        if self.exclusive_maximum is not None and value >= self.exclusive_maximum:
            return f"expected less than {self.exclusive_maximum}, got {value}"
        if self.multiple_of and abs(value / self.multiple_of - round(value / self.multiple_of)) > 1e-9:
            return f"expected a multiple of {self.multiple_of}, got {value}"
        return None
