"""Completion: values for the arguments of prompts and resources, as a user types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, TypeVar, Union

from ._errors import Error, ErrorCode
from ._failure import to_error
from ._names import suggestion
from ._prompt import Prompt
from ._registry import ATTRIBUTE, Contribution, attach
from ._resource import Resource
from ._signature import Signature
from ._source import mistake, place

F = TypeVar("F", bound=Callable[..., Any])

#: How many values an answer has at most.
MOST_VALUES = 100


@dataclass
class Suggestions:
    """What could be meant, the likeliest first; how many there are in all, if that is known."""

    values: list[str]
    total: int | None = None
    has_more: bool = False


class Completion(Contribution):
    """A function that suggests values of an argument."""

    kind = "completion"

    def __init__(self, function: Callable[..., Any], target: Any, argument: str) -> None:
        super().__init__(function, function.__name__)
        of = getattr(target, ATTRIBUTE, None)
        if not isinstance(of, (Prompt, Resource)):
            raise mistake(
                function,
                f"`@complete` of `{self.name}` names neither a prompt nor a resource",
                'write `@complete(translate, "language")` below the function `translate`, which `@prompt` or `@resource` decorates',
            )
        arguments = of.signature.parameters.members
        if argument not in arguments:
            raise mistake(
                function,
                f'the {of.what} has no argument "{argument}"{suggestion(argument, arguments)}',
                f"its arguments are {', '.join(arguments) or 'none'}",
            )
        self.target, self.argument = of, argument
        self.name = f"{of.kind} {of.name} {argument}"
        self.signature = Signature(function, f'completion of "{argument}"', first=2)
        if not self.signature.leading or self.signature.parameters.members:
            raise mistake(
                function,
                f"the {self.signature.what} has other parameters than what was typed",
                f"write `def {function.__name__}(typed: str):`, or `(typed: str, others: dict[str, str])`",
            )


def complete(target: Any, argument: str) -> Callable[[F], F]:
    """Makes a function suggest values for an argument of a prompt or resource.

    It takes what was typed and, as a second parameter, the arguments that have their values
    already. It returns texts, the likeliest first, or `Suggestions`. Arguments that are a
    `Literal`, an `Enum` or have `Field(complete=[…])` suggest their values without it.

    Args:
        target: The function that `@prompt` or `@resource` decorates.
        argument: The name of the argument.

    Raises:
        DefinitionError: If there is no such argument.
    """

    def decorate(function: F) -> F:
        attach("complete", function, lambda: Completion(function, target, argument))
        return function

    return decorate


def completes(target: Union[Prompt, Resource], completions: list[Completion]) -> bool:
    """Whether anything suggests values for an argument of it."""
    members = target.signature.parameters.members.values()
    return any(one.target is target for one in completions) or any(one.adapter.choices() for one in members)


def suggest(
    target: Union[Prompt, Resource],
    completions: list[Completion],
    argument: str,
    typed: str,
    others: dict[str, str],
) -> Suggestions:
    """Values for an argument.

    Raises:
        Error: With `invalid-input`, if there is no such argument.
    """
    member = target.signature.parameters.members.get(argument)
    if member is None:
        raise Error(ErrorCode.INVALID_INPUT, f'the {target.what} has no argument "{argument}"')
    for one in completions:
        if one.target is target and one.argument == argument:
            return _asked(one, typed, others)
    choices = [choice for choice in member.adapter.choices() if choice.lower().startswith(typed.lower())]
    return _bounded(choices)


def _asked(one: Completion, typed: str, others: dict[str, str]) -> Suggestions:
    try:
        returned = one.signature.call([typed, others][: len(one.signature.leading)], {})
    except Exception as exception:
        raise to_error(exception) from exception
    if isinstance(returned, Suggestions):
        return returned
    if not isinstance(returned, (list, tuple)) or not all(isinstance(value, str) for value in returned):
        file, line = place(one.function)
        raise Error(
            ErrorCode.FAILED,
            f"the {one.signature.what} returned something else than texts ({file}:{line} in {one.function.__name__})"
            "\n  hint: return a list of str, or `Suggestions([…])`",
        )
    return _bounded(list(returned))


def _bounded(values: list[str]) -> Suggestions:
    return Suggestions(values[:MOST_VALUES], total=len(values), has_more=len(values) > MOST_VALUES)
