"""What a tool's function may return, and the result that the host gets of it."""

from __future__ import annotations

import types
import typing
from typing import Any

from . import content
from ._errors import Error, ErrorCode
from ._source import mistake, place
from ._types import Adapter, Mismatch, Unsupported, adapter_of, root_schema
from ._types.objects import MISSING
from ._types.resolve import name_of
from ._types.scalar import plain

if typing.TYPE_CHECKING:
    from ._signature import Signature

_CONTENT = (str, bytes, bytearray, content.ToolResult, *content.CONTENT, None, type(None))


class Answer:
    """How a tool's answers are made of what its function returns.

    Texts, bytes and content are what the model reads. Everything else is structured: the result has
    it as JSON for programs, and the same as text for readers that know only text. JSON that is no
    object stands in the member `result` of one, as MCP requires.
    """

    def __init__(self, signature: "Signature") -> None:
        self.signature = signature
        self.adapter: Adapter | None = None
        self.is_wrapped = False
        hint = signature.returns
        if hint is MISSING or hint is Any or hint is list or _is_content(hint):
            return
        try:
            self.adapter = adapter_of(hint, f"the result of the {signature.what}")
        except Unsupported as unsupported:
            raise mistake(
                signature.function,
                str(unsupported),
                f"return str, a dataclass, a TypedDict, a dict, Image, Audio, ResourceLink, or a list of these; {unsupported.hint}",
            ) from None
        schema = root_schema(self.adapter)
        at = schema.get("$ref", "").removeprefix("#/$defs/")
        self.is_wrapped = schema.get("$defs", {}).get(at, schema).get("type") != "object"

    def schema(self) -> dict[str, Any] | None:
        """The schema of structured answers, where there are such."""
        if self.adapter is None:
            return None
        schema = root_schema(self.adapter)
        if not self.is_wrapped:
            # MCP wants the type at the top.
            return {"type": "object", **schema}
        definitions = {"$defs": schema.pop("$defs")} if "$defs" in schema else {}
        return {
            "type": "object",
            "properties": {"result": schema},
            "required": ["result"],
            "additionalProperties": False,
            **definitions,
        }

    def of(self, value: Any) -> content.ToolResult:
        """The result for what the function has returned."""
        if isinstance(value, content.ToolResult):
            return value
        if self.adapter is not None:
            try:
                data = self.adapter.dump(value, "")
            except Mismatch as mismatch:
                raise self._wrong(str(mismatch)) from None
            return _structured(data, self.is_wrapped)
        if self.signature.returns is not MISSING and self.signature.returns is not Any:
            self._check(value)
        return self._by_value(value)

    def _by_value(self, value: Any) -> content.ToolResult:
        """The result by what a value is, for functions that do not say their result's type."""
        if value is None:
            return content.ToolResult([])
        block = content.block(value)
        if block is not None:
            return content.ToolResult([block])
        if isinstance(value, (list, tuple)) and value:
            blocks = [content.block(item) for item in value]
            if None not in blocks:
                return content.ToolResult([block for block in blocks if block is not None])
        try:
            data = plain(value, "")
        except Mismatch:
            raise self._wrong(
                f"{type(value).__name__} is nothing that a tool can answer",
                "return str, a dataclass, a dict, Image, Audio, ResourceLink, or a list of these",
            ) from None
        return _structured(data, not isinstance(data, dict))

    def _check(self, value: Any) -> None:
        """That a value of content is of the type that the function says."""
        if not _is_instance(value, self.signature.returns):
            raise self._wrong(f"expected {name_of(self.signature.returns)}, got {type(value).__name__}")

    def _wrong(self, problem: str, hint: str = "") -> Error:
        file, line = place(self.signature.function)
        name = self.signature.function.__name__
        hint = hint or f"return what `-> {name_of(self.signature.returns)}` promises, or change what follows `->`"
        return Error(
            ErrorCode.FAILED,
            f"the {self.signature.what} returned something else than it says: {problem} ({file}:{line} in {name})"
            f"\n  hint: {hint}",
            data={"file": file, "line": line, "function": name},
        )


def _structured(data: Any, is_wrapped: bool) -> content.ToolResult:
    structured = {"result": data} if is_wrapped else data
    text = data if isinstance(data, str) else content.to_json(data)
    return content.ToolResult([content.Text(text)], structured=structured)


def _is_content(hint: Any) -> bool:
    """Whether a type is what the model reads, and nothing for programs."""
    if hint in _CONTENT if isinstance(hint, (type, type(None))) else False:
        return True
    if hint is content.Content:
        return True
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return _is_content(arguments[0])
    if origin in (typing.Union, types.UnionType):
        return all(_is_content(one) for one in arguments)
    # A list of texts is data: it is content only among other content.
    if origin in (list, tuple):
        inner = [one for one in arguments if one is not Ellipsis]
        return bool(inner) and all(_is_content(one) for one in inner) and any(one is not str for one in inner)
    return False


def _is_instance(value: Any, hint: Any) -> bool:
    if hint is None:
        return value is None
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return _is_instance(value, arguments[0])
    if origin in (typing.Union, types.UnionType):
        return any(_is_instance(value, one) for one in arguments)
    if origin in (list, tuple):
        inner = [one for one in arguments if one is not Ellipsis]
        return isinstance(value, (list, tuple)) and all(
            any(_is_instance(item, one) for one in inner) for item in value
        )
    if isinstance(hint, type):
        return isinstance(value, hint)
    return True
