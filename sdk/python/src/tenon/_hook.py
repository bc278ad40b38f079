"""Hooks: a plugin's say at well-known moments of the host's work."""

from __future__ import annotations

import copy
import json
from typing import Any, Callable, TypeVar

from ._errors import Error, ErrorCode
from ._failure import to_error
from ._names import suggestion
from ._registry import Contribution, attach
from ._signature import Signature
from ._source import mistake, place
from ._types import Mismatch
from ._types.scalar import plain

F = TypeVar("F", bound=Callable[..., Any])

#: The points of the contract.
POINTS = (
    "before-plan", "after-plan", "before-execute", "after-execute", "before-evaluate",
    "after-evaluate", "on-learning", "on-pattern", "message-received", "message-sending",
    "before-completion", "after-completion", "before-tool-call", "after-tool-call",
)  # fmt: skip


class Veto(Exception):
    """Stops what was about to happen. A handler returns it or raises it; the reason is for people.

    Points that report something which has happened do not allow it: the host takes it for the
    handler's failure there.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Hook(Contribution):
    """A handler of one or several points."""

    kind = "hook"

    def __init__(
        self, function: Callable[..., Any], points: tuple[Any, ...], priority: int, audit: bool
    ) -> None:
        super().__init__(function, function.__name__)
        if not points or not all(isinstance(point, str) for point in points):
            raise mistake(
                function,
                f"the {self.what} names no point",
                'write the point in its decorator: `@hook("before-tool-call")`',
            )
        for point in points:
            _check_point(function, self.what, point)
        self.points, self.priority, self.audit = points, priority, audit
        self.signature = Signature(function, self.what, first=1)
        if not self.signature.leading or self.signature.parameters.members:
            raise mistake(
                function,
                f"the {self.what} has other parameters than the context",
                f"write `def {function.__name__}(context: dict):`, and `call: Context` beside it for the call",
            )

    def handle(self, context: dict[str, Any]) -> tuple[str, Any]:
        """`("continue", None)`, `("replace", context)` or `("veto", reason)`.

        Raises:
            Error: If the handler fails.
        """
        mine = copy.deepcopy(context)
        try:
            outcome = self.signature.call([mine], {})
        except Veto as veto:
            return "veto", veto.reason
        except Exception as exception:
            raise to_error(exception) from exception
        if isinstance(outcome, Veto):
            return "veto", outcome.reason
        if outcome is None:
            # A handler may change the context in place.
            outcome = mine
        if not isinstance(outcome, dict):
            raise self._wrong(f"expected a context, a Veto or None, got {type(outcome).__name__}")
        try:
            replaced = plain(outcome, "")
        except Mismatch as mismatch:
            raise self._wrong(f"its context is no JSON: {mismatch}") from None
        return ("continue", None) if replaced == context else ("replace", replaced)

    def _wrong(self, problem: str) -> Error:
        file, line = place(self.function)
        return Error(
            ErrorCode.FAILED,
            f"the {self.what} returned something else than a handler may: {problem} ({file}:{line} in {self.name})"
            "\n  hint: return None to go on, the context to go on with, or `Veto(\"why\")`",
        )


def _check_point(function: Callable[..., Any], what: str, point: str) -> None:
    prefix, colon, name = point.partition(":")
    if point in POINTS or (colon and prefix and name):
        return
    meant = suggestion(point.replace("_", "-"), POINTS)
    raise mistake(
        function,
        f'the {what} names the point "{point}", which does not exist{meant}',
        f"the points are {', '.join(POINTS)}; a point of a host's own has a prefix: `acme:deploy`",
    )


def hook(*points: str, priority: int = 0, audit: bool = False) -> Callable[[F], F]:
    """Makes a function handle points of the host's work.

    The function takes the context, a dictionary. It returns `None` to go on, with whatever it has
    changed in the context; another context to go on with that; or a `Veto`, which it may also raise.

    Args:
        points: The names of the points: `before-tool-call`, or one of a host's own such as
            `acme:deploy`.
        priority: Handlers of a greater priority are called earlier.
        audit: The host records the outcome and does not honour it.

    Raises:
        DefinitionError: If there is no such point, or the function takes something else.
    """

    def decorate(function: F) -> F:
        attach("hook", function, lambda: Hook(function, given, priority, audit))
        return function

    if len(points) == 1 and callable(points[0]):  # `@hook` without parentheses
        given: tuple[Any, ...] = ()
        return decorate(points[0])  # type: ignore[return-value]
    given = points
    return decorate


def registrations(hooks: list[Hook]) -> list[tuple[str, bool, int]]:
    """Point, audit and priority, one for each point: the greatest priority counts."""
    joined: dict[str, tuple[bool, int]] = {}
    for one in hooks:
        for point in one.points:
            audit, priority = joined.get(point, (one.audit, one.priority))
            joined[point] = (audit, max(priority, one.priority))
    return [(point, audit, priority) for point, (audit, priority) in joined.items()]


def disagreements(hooks: list[Hook]) -> list[Any]:
    """Handlers of one point of which some audit and some do not: the host asks a plugin once."""
    problems: list[Any] = []
    seen: dict[str, Hook] = {}
    for one in hooks:
        for point in one.points:
            first = seen.setdefault(point, one)
            if first.audit != one.audit:
                problems.append(
                    mistake(
                        one.function,
                        f'of the handlers of "{point}", one audits and the other does not: `{first.name}` is at {first.file}:{first.line}',
                        "make both audit, or put one into a plugin of its own",
                    )
                )
    return problems


def handle(hooks: list[Hook], point: str, text: str) -> tuple[str, Any]:
    """The outcome of all handlers of a point, those of a greater priority first. A veto ends it.

    Raises:
        Error: If no handler has the point, or one fails.
    """
    asked = [one for one in hooks if point in one.points]
    if not asked:
        raise Error(ErrorCode.NOT_FOUND, f'this plugin does not handle "{point}"')
    context = json.loads(text)
    result: tuple[str, Any] = ("continue", None)
    for one in sorted(asked, key=lambda one: -one.priority):
        outcome = one.handle(context)
        if outcome[0] == "veto":
            return outcome
        if outcome[0] == "replace":
            context, result = outcome[1], outcome
    return result
