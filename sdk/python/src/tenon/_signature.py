"""The parameters of a plugin's function, as JSON has them, and calls with these."""

from __future__ import annotations

import inspect
import typing
from typing import Any, Callable

from . import _run
from ._context import Context, context
from ._docstring import Docstring
from ._errors import Error, ErrorCode
from ._field import Field
from ._names import suggestion
from ._source import mistake, unwrapped
from ._types import Mismatch, Unsupported, adapter_of
from ._types.objects import MISSING, MemberOf, Parameters

#: The usual names of the functions that decorators return.
_WRAPPERS = ("wrapper", "wrapped", "inner", "decorated")

_OF_DECORATOR = "write `@functools.wraps(function)` above what your decorator returns: it keeps the name and parameters"

_MUTABLE = (list, dict, set, bytearray)


class Signature:
    """A function's parameters and result.

    Args:
        function: The function.
        what: What it is, for messages: `tool "greet"`.
        first: Types of leading parameters that are not arguments, such as the context of a hook.

    Raises:
        DefinitionError: If a parameter has no type, or one without a JSON form.
    """

    def __init__(self, function: Callable[..., Any], what: str, first: int = 0) -> None:
        self.function, self.what = function, what
        plain = unwrapped(function)
        if inspect.isgeneratorfunction(plain) or inspect.isasyncgenfunction(plain):
            raise mistake(
                function,
                f"the {what} yields, and a host takes one answer",
                "return a list, and report on the way there with `tenon.context().progress(…)`",
            )
        self.docstring = Docstring.of(function)
        self.hints = self._hints()
        #: The names of leading parameters, which the caller passes by position.
        self.leading: list[str] = []
        #: The names of parameters that receive the `Context`.
        self.contexts: list[str] = []
        self.parameters = Parameters(what)
        for parameter in inspect.signature(unwrapped(function)).parameters.values():
            self._add(parameter, first)
        self.returns = self.hints.get("return", MISSING)
        self._check_documented()

    def _check_documented(self) -> None:
        known = inspect.signature(unwrapped(self.function)).parameters
        for name in self.docstring.parameters:
            if name not in known:
                left = [parameter for parameter in known if parameter not in self.docstring.parameters]
                raise mistake(
                    self.function,
                    f"the docstring of the {self.what} describes the parameter `{name}`, which it has not"
                    f"{suggestion(name, left)}",
                    f"rename `{name}` in the docstring, or remove it there",
                )

    def _hints(self) -> dict[str, Any]:
        try:
            return typing.get_type_hints(unwrapped(self.function), include_extras=True)
        except NameError as missing:
            raise mistake(
                self.function,
                f"a type of the {self.what} is not known: {missing}",
                "import the type at the top of the file, also outside of `if TYPE_CHECKING`",
            ) from None
        except TypeError as wrong:
            raise mistake(
                self.function, f"a type of the {self.what} is none: {wrong}", "write a type after the colon"
            ) from None

    def _add(self, parameter: inspect.Parameter, first: int) -> None:
        name = parameter.name
        hint = self.hints.get(name, MISSING)
        if hint is Context or Context in typing.get_args(hint):
            self.contexts.append(name)
            return
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            stars = "*" if parameter.kind is parameter.VAR_POSITIONAL else "**"
            raise mistake(
                self.function,
                f"the {self.what} takes `{stars}{name}`, which has no names for a caller",
                _OF_DECORATOR
                if "<locals>" in self.function.__qualname__ and self.function.__name__ in _WRAPPERS
                else "name each argument, or take one `dict[str, …]` or `list[…]`",
            )
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise mistake(
                self.function,
                f"the parameter `{name}` of the {self.what} has no name for a caller",
                "remove the `/` of the signature",
            )
        if name in ("self", "cls"):
            raise mistake(
                self.function,
                f"the {self.what} is a method: nothing could be its `{name}`",
                "make it a function of the module",
            )
        if len(self.leading) < first:
            self.leading.append(name)
            return
        self.parameters.members[name] = self._member(parameter, hint)

    def _member(self, parameter: inspect.Parameter, hint: Any) -> MemberOf:
        name, default = parameter.name, parameter.default
        if hint is MISSING:
            raise mistake(
                self.function,
                f"the parameter `{name}` of the {self.what} has no type",
                f"write its type: `{name}: {'Context' if name in ('ctx', 'context') else 'str'}`",
            )
        if isinstance(default, Field):
            raise mistake(
                self.function,
                f"the parameter `{name}` of the {self.what} has a `Field` as its default value",
                f"write it at the type: `{name}: Annotated[str, Field(…)]`",
            )
        if isinstance(default, _MUTABLE):
            raise mistake(
                self.function,
                f"the default of the parameter `{name}` of the {self.what} is a {type(default).__name__}, "
                "which all calls would share",
                f"write `{name}: … | None = None`, and make the {type(default).__name__} in the function",
            )
        try:
            adapter = adapter_of(hint, f"the parameter `{name}` of the {self.what}")
        except Unsupported as unsupported:
            raise mistake(self.function, str(unsupported), unsupported.hint) from None
        is_required = default is parameter.empty
        if not is_required and default is not None:
            try:
                adapter.dump(default, "")
            except Mismatch as mismatch:
                raise mistake(
                    self.function,
                    f"the default of the parameter `{name}` of the {self.what} is not of its type: {mismatch}",
                    "change the type or the default",
                ) from None
        return MemberOf(
            name,
            adapter,
            is_required,
            MISSING if is_required else default,
            self.docstring.parameters.get(name),
        )

    def call(self, leading: list[Any], arguments: dict[str, Any]) -> Any:
        """Calls the function with values of its types, to its end."""
        keywords = dict(zip(self.leading, leading)) | arguments
        if self.contexts:
            keywords |= dict.fromkeys(self.contexts, context())
        return _run.call(self.function, **keywords)

    def parse(self, arguments: Any) -> dict[str, Any]:
        """Arguments in JSON as values of their types.

        Raises:
            Error: With `invalid-input`, if they do not fit.
        """
        try:
            return self.parameters.parse(arguments, "")
        except Mismatch as mismatch:
            raise Error(
                ErrorCode.INVALID_INPUT,
                f"{self.what}: {mismatch}",
                data=[{"path": path, "problem": problem} for path, problem in mismatch.problems],
            ) from None

    def parse_texts(self, texts: dict[str, str]) -> dict[str, Any]:
        """Arguments that are texts, as those of prompts and URIs are.

        Raises:
            Error: With `invalid-input`, if they do not fit.
        """
        members = self.parameters.members
        problems = []
        for name in texts:
            if name not in members:
                left = [known for known in members if known not in texts]
                problems.append(f'unknown argument "{name}"{suggestion(name, left)}')
        values: dict[str, Any] = {}
        for name, member in members.items():
            if name in texts:
                try:
                    values[name] = member.adapter.from_text(texts[name], name)
                except Mismatch as mismatch:
                    problems.append(str(mismatch))
            elif member.is_required:
                problems.append(f'the argument "{name}" is missing')
        if problems:
            raise Error(ErrorCode.INVALID_INPUT, f"{self.what}: {'; '.join(problems)}")
        return values
