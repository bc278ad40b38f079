"""Prompts: messages prepared by a plugin for a user to choose."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable, TypeVar

from . import content
from ._errors import Error, ErrorCode
from ._failure import to_error
from ._page import page
from ._registry import Contribution, attach
from ._signature import Signature
from ._source import mistake, place
from ._types.container import Limited

F = TypeVar("F", bound=Callable[..., Any])


@dataclass
class PromptMessage:
    """A message of a prompt: who says it, `user` or `assistant`, and what is said."""

    role: str
    content: Any


def UserMessage(content: Any) -> PromptMessage:
    """A message of the user: text or other content."""
    return PromptMessage("user", content)


def AssistantMessage(content: Any) -> PromptMessage:
    """A message of the assistant: text or other content."""
    return PromptMessage("assistant", content)


@dataclass
class FilledPrompt:
    """A prompt, filled in: its messages, and what it does with these arguments."""

    messages: list[PromptMessage] = field(default_factory=list)
    description: str | None = None


class Prompt(Contribution):
    """A prompt as the host lists it and fills it in."""

    kind = "prompt"

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        super().__init__(function, options["name"] or function.__name__)
        self.options = options
        self.signature = Signature(function, self.what)
        self.description = options["description"] or self.signature.docstring.description or None
        for name, member in self.signature.parameters.members.items():
            if type(member.adapter).__name__ in (
                "Sequence",
                "Tuple",
                "Mapping",
                "Record",
                "TypedDictionary",
                "Defined",
            ):
                raise mistake(
                    function,
                    f"the argument `{name}` of the {self.what} is no single value: a user types it as text",
                    f"write `{name}: str`, or a number, bool, Literal, Enum or date",
                )

    def arguments(self) -> list[dict[str, Any]]:
        """Its arguments, in the words of MCP."""
        return [
            {
                "name": name,
                "title": _said(member.adapter, "title"),
                "description": member.description or _said(member.adapter, "description"),
                "required": member.is_required,
            }
            for name, member in self.signature.parameters.members.items()
        ]

    def fill(self, arguments: dict[str, str]) -> FilledPrompt:
        """Fills it in.

        Raises:
            Error: With `invalid-input`, if the arguments do not fit.
        """
        try:
            returned = self.signature.call([], self.signature.parse_texts(arguments))
        except Exception as exception:
            raise to_error(exception) from exception
        if isinstance(returned, FilledPrompt):
            messages, description = returned.messages, returned.description
        else:
            messages = list(returned) if isinstance(returned, (list, tuple)) else [returned]
            description = None
        return FilledPrompt([self._message(one) for one in messages], description or self.description)

    def _message(self, value: Any) -> PromptMessage:
        role, said = (value.role, value.content) if isinstance(value, PromptMessage) else ("user", value)
        block = content.block(said)
        file, line = place(self.function)
        if role not in ("user", "assistant"):
            raise Error(
                ErrorCode.FAILED,
                f'the {self.what} returned a message of the role "{role}" ({file}:{line} in {self.function.__name__})'
                "\n  hint: write `UserMessage(…)` or `AssistantMessage(…)`: prompts have no other roles",
            )
        if block is None:
            raise Error(
                ErrorCode.FAILED,
                f"the {self.what} returned something else than a prompt may: expected text, content, UserMessage or "
                f"AssistantMessage, got {type(said).__name__} ({file}:{line} in {self.function.__name__})"
                "\n  hint: return a str, or a list such as `[UserMessage(\"…\"), AssistantMessage(\"…\")]`",
            )
        return PromptMessage(role, block)


def _said(adapter: Any, what: str) -> str | None:
    fields = adapter.fields if isinstance(adapter, Limited) else []
    return next((getattr(field, what) for field in fields if getattr(field, what)), None)


def prompt(
    function: Any = None,
    /,
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    extra: dict[str, Any] | None = None,
) -> Any:
    """Makes a function a prompt, which a user chooses and fills in.

    It returns text or other content, which is a message of the user; `UserMessage`,
    `AssistantMessage`; a list of these; or a `FilledPrompt`.

    Args:
        name: Its name; by default that of the function.
        title: The name that people see.
        description: What it is for; by default what the docstring says.
        extra: Further members of its MCP form.

    Raises:
        DefinitionError: If a parameter has no type, or one that no text can stand for.
    """
    options = {"name": name, "title": title, "description": description, "extra": extra}

    def decorate(function: F) -> F:
        attach("prompt", function, lambda: Prompt(function, options))
        return function

    return decorate if function is None else decorate(function)


def list_prompts(prompts: list[Prompt], cursor: str | None) -> tuple[list[Prompt], str | None]:
    """A page of the prompts."""
    return page("prompts", prompts, cursor)
