"""Tools: functions that a model or a program calls by name."""

from __future__ import annotations

import re
from typing import Any, Callable, Sequence, TypeVar, overload

from . import content
from ._errors import ToolError
from ._failure import to_error
from ._registry import Contribution, attach
from ._result import Answer
from ._signature import Signature
from ._source import mistake

F = TypeVar("F", bound=Callable[..., Any])

_NAME = re.compile(r"^[A-Za-z0-9_.-]{1,128}$")


class Tool(Contribution):
    """A tool as the host lists and calls it."""

    kind = "tool"

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        super().__init__(function, options["name"] or function.__name__)
        if self.name == "<lambda>":
            raise mistake(
                function,
                "a lambda has no name, no types and no description, which a tool needs",
                "write a function with `def`, and `@tool` above it",
            )
        if not _NAME.match(self.name):
            raise mistake(
                function,
                f'"{self.name}" can be no name of a tool',
                "use 1 to 128 characters of A-Z a-z 0-9 _ - .",
            )
        self.signature = Signature(function, self.what)
        self.answer = Answer(self.signature)
        self.options = options
        self.description = options["description"] or self.signature.docstring.description
        if not self.description:
            raise mistake(
                function,
                f"the {self.what} has no description, by which a model would choose it",
                "write a docstring below its `def` that says what it does and when to use it",
            )

    def definition(self) -> dict[str, Any]:
        """How the host lists it, in the words of MCP."""
        from ._types import root_schema

        hints = {
            "readOnlyHint": self.options["read_only"],
            "destructiveHint": self.options["destructive"],
            "idempotentHint": self.options["idempotent"],
            "openWorldHint": self.options["open_world"],
        }
        return {
            "name": self.name,
            "title": self.options["title"],
            "description": self.description,
            "inputSchema": root_schema(self.signature.parameters),
            "outputSchema": self.answer.schema(),
            "annotations": {name: hint for name, hint in hints.items() if hint is not None},
            "capabilities": list(self.options["capabilities"]),
            "extra": self.options["extra"],
        }

    def call(self, arguments: Any) -> content.ToolResult:
        """Serves a call with arguments in JSON.

        Raises:
            Error: What the model cannot mend.
        """
        try:
            return self.answer.of(self.signature.call([], self.signature.parse(arguments)))
        except ToolError as failure:
            return content.ToolResult([content.Text(str(failure))], is_error=True)
        except Exception as exception:
            raise to_error(exception) from exception


@overload
def tool(function: F, /) -> F: ...
@overload
def tool(
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    read_only: bool | None = None,
    destructive: bool | None = None,
    idempotent: bool | None = None,
    open_world: bool | None = None,
    capabilities: Sequence[str] = (),
    extra: dict[str, Any] | None = None,
) -> Callable[[F], F]: ...
def tool(function: Any = None, /, **options: Any) -> Any:
    """Makes a function a tool, which a model or a program calls by name.

    The types of its parameters become the JSON Schema, and its docstring the descriptions. The
    function stays as it is.

    Args:
        name: Its name; by default that of the function.
        title: The name that people see.
        description: What it does and when to use it; by default what the docstring says.
        read_only: It changes nothing.
        destructive: It may destroy or overwrite something.
        idempotent: A second call with the same arguments changes nothing more.
        open_world: It reaches outside of what the host knows, such as the web.
        capabilities: The capabilities without which it is not listed, such as `network`.
        extra: Further members of its MCP form, such as `_meta`.

    Raises:
        DefinitionError: If a parameter has no type, or the function no description.
    """
    known = {
        "name": None, "title": None, "description": None, "read_only": None, "destructive": None,
        "idempotent": None, "open_world": None, "capabilities": (), "extra": None,
    }  # fmt: skip

    def decorate(function: F) -> F:
        attach("tool", function, lambda: Tool(_checked(function, options, known, "tool"), {**known, **options}))
        return function

    return decorate if function is None else decorate(function)


def _checked(function: Any, options: dict[str, Any], known: dict[str, Any], decorator: str) -> Any:
    """The function itself, if the decorator's options are known."""
    from ._names import suggestion

    for option in options:
        if option not in known:
            raise mistake(
                function,
                f'`@{decorator}` of `{function.__name__}` has no option "{option}"{suggestion(option, known)}',
                f"its options are {', '.join(known)}",
            )
    return function
