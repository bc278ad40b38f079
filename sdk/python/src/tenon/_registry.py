"""What the plugin contributes, as its decorators said."""

from __future__ import annotations

import inspect
from typing import Any, Callable, TypeVar

from ._errors import DefinitionError
from ._source import caller, mistake, place, unwrapped
from ._types.base import shown

T = TypeVar("T")


class Contribution:
    """Something that a decorated function contributes."""

    #: What it is, for messages.
    kind = "contribution"

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self.function, self.name = function, name
        self.file, self.line = place(function)

    @property
    def what(self) -> str:
        """`tool "greet"`."""
        return f'{self.kind} "{self.name}"'


class Registry:
    """All contributions, in the order in which they were defined."""

    def __init__(self) -> None:
        self.contributions: list[Contribution] = []
        #: Mistakes of decorators, where `collects` is set: it reports all of them at once.
        self.problems: list[DefinitionError] = []
        self.collects = False

    def add(self, contribution: Contribution) -> None:
        """Adds one. One of the same place in the source takes its place: the module was loaded again."""
        same = [
            known
            for known in self.contributions
            if type(known) is type(contribution)
            and (known.file, known.line, known.name)
            == (contribution.file, contribution.line, contribution.name)
        ]
        for known in same:
            self.contributions.remove(known)
        self.contributions.append(contribution)

    def of(self, kind: type[T]) -> list[T]:
        """Those of a kind."""
        return [one for one in self.contributions if isinstance(one, kind)]

    def duplicates(self) -> list[DefinitionError]:
        """Contributions of one kind with one name, where the host would know but one of them."""
        problems: list[DefinitionError] = []
        seen: dict[tuple[str, str], Contribution] = {}
        for one in self.contributions:
            key = (one.kind, one.name)
            if one.kind != "hook" and key in seen:
                first = seen[key]
                problems.append(
                    DefinitionError(
                        f'there are two {one.kind}s of the name "{one.name}": the other is at {first.file}:{first.line}',
                        hint="rename one of the functions, or write `name=` in its decorator",
                        file=one.file,
                        line=one.line,
                    )
                )
            seen.setdefault(key, one)
        return problems

    def reports(self, define: Callable[[], T]) -> T | None:
        """What `define` makes. A mistake is kept where mistakes are collected, and raised elsewhere."""
        try:
            return define()
        except DefinitionError as problem:
            if not self.collects:
                raise
            self.problems.append(problem)
            return None


#: That of this process: a component, a test or `tenon.describe` has one plugin.
REGISTRY = Registry()

#: The attribute of a function that holds its contribution.
ATTRIBUTE = "__tenon__"


def attach(decorator: str, function: Callable[..., Any], define: Callable[[], Contribution]) -> None:
    """Registers what a function contributes.

    Raises:
        DefinitionError: If the decorator stands above something else than a function.
    """
    if not inspect.isfunction(unwrapped(function)):
        file, line = caller()
        what = f"the class `{function.__name__}`" if isinstance(function, type) else shown(function)
        # Whatever uses the decorated thing would fail next, so this is raised also where mistakes are collected.
        raise DefinitionError(
            f"`@{decorator}` is given {what}, which is no function",
            hint=f"write `@{decorator}` above the `def` of a function, with its options by their names",
            file=file,
            line=line,
        )
    contribution = REGISTRY.reports(define)
    if contribution is not None:
        setattr(function, ATTRIBUTE, contribution)
        REGISTRY.add(contribution)


def contribution_of(function: Any, kind: type[T], decorator: str) -> T:
    """What a function contributes.

    Raises:
        DefinitionError: If it is no contribution of this kind.
    """
    found = getattr(function, ATTRIBUTE, None)
    if not isinstance(found, kind):
        name = getattr(function, "__name__", repr(function))
        raise mistake(function, f"`{name}` is no {kind.kind}", f"write `@{decorator}` above its function")  # type: ignore[attr-defined]
    return found
