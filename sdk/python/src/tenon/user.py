"""Questions to the user: `user = ["ask"]` in plugin.toml, and `"ask-url"` for pages."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from . import _host
from ._errors import Error, ErrorCode
from ._types import Mismatch, Unsupported, adapter_of, root_schema

T = TypeVar("T")


@dataclass
class Answer(Generic[T]):
    """What the user made of a question. In a condition it is true if it was answered."""

    #: `accepted`, `declined`, or `cancelled` where the user went away or the host could not ask.
    outcome: str
    #: What was filled in.
    value: T | None = None

    def __bool__(self) -> bool:
        return self.outcome == "accepted"


def accepted(value: Any) -> Answer[Any]:
    """An answer with what was filled in, for a host that a test scripts."""
    return Answer("accepted", value)


DECLINED: Answer[Any] = Answer("declined")
CANCELLED: Answer[Any] = Answer("cancelled")


def ask(message: str, form: Any) -> Answer[Any]:
    """Has the user fill in a form.

    Args:
        message: What is asked and why.
        form: A dataclass or `TypedDict` whose members are texts, numbers, truth values or choices;
            or the JSON Schema of an object, as a dictionary.

    Raises:
        Error: With `denied` where it is not granted or there is no user, `invalid-input` where the
            form has other members or asks for a secret, `failed` where the answer is of other types.
    """
    if isinstance(form, dict):
        return _host.current().ask(message, form)
    try:
        adapter = adapter_of(form)
    except Unsupported as unsupported:
        raise Error(ErrorCode.INVALID_INPUT, f"{unsupported}: {unsupported.hint}") from None
    schema = root_schema(adapter)
    if schema.get("type") != "object":
        name = form.__name__ if inspect.isclass(form) else repr(form)
        raise Error(
            ErrorCode.INVALID_INPUT, f"{name} is no form: pass a dataclass, whose members are asked for"
        )
    # A form of MCP has flat members and no more.
    schema.pop("additionalProperties", None)
    answer = _host.current().ask(message, schema)
    if not answer:
        return answer
    try:
        return Answer(answer.outcome, adapter.parse(answer.value, ""))
    except Mismatch as mismatch:
        raise Error(ErrorCode.FAILED, f"the answer of the user is not what was asked: {mismatch}") from None


def ask_url(message: str, url: str, id: str | None = None) -> str:
    """Asks the user to open a page, where a secret is typed in or something is paid for.

    Returns `accepted`, `declined` or `cancelled`. That the page was opened does not mean that anything
    was done there.

    Args:
        message: What the page is for.
        url: Its address.
        id: A name for this request, unique in the plugin.

    Raises:
        Error: With `denied` where it is not granted or there is no user.
    """
    return _host.current().ask_url(message, url, id)
