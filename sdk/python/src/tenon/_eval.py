"""Evaluation: strategies that score what an agent or a model has produced."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Callable, TypeVar

from ._errors import Error, ErrorCode
from ._failure import to_error
from ._registry import Contribution, attach
from ._signature import Signature
from ._source import mistake, place
from ._types import root_schema

F = TypeVar("F", bound=Callable[..., Any])

VERDICTS = ("pass", "fail", "inconclusive")


@dataclass
class Subject:
    """What is judged."""

    #: What was produced: any JSON value.
    output: Any
    #: What it was produced from.
    input: Any = None
    #: What should have been produced.
    expected: Any = None
    #: What else the caller passed.
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def output_text(self) -> str:
        """The output as text: a text as it is, anything else as JSON."""
        return self.output if isinstance(self.output, str) else json.dumps(self.output, ensure_ascii=False)

    @classmethod
    def of(cls, value: dict[str, Any]) -> "Subject":
        """A subject of JSON.

        Raises:
            Error: With `invalid-input`, if it has no output.
        """
        if "output" not in value:
            raise Error(ErrorCode.INVALID_INPUT, 'the subject has no "output"')
        more = {name: member for name, member in value.items() if name not in ("output", "input", "expected")}
        return cls(value["output"], value.get("input"), value.get("expected"), more)


@dataclass
class Finding:
    """What one criterion found: its verdict, `pass`, `fail` or `inconclusive`, and why."""

    criterion: str
    verdict: str
    reason: str = ""
    #: From 0 to 1, for criteria that have degrees.
    score: float | None = None


@dataclass
class Evaluation:
    """What an evaluation found: a score from 0 (worst) to 1 (best), and its short form."""

    score: float
    verdict: str
    findings: list[Finding] = field(default_factory=list)
    extra: dict[str, Any] | None = None


def finding(criterion: str, passed: bool, reason: str = "") -> Finding:
    """A finding that passed or failed, without degrees."""
    return Finding(criterion, "pass" if passed else "fail", reason)


def summarize(findings: list[Finding]) -> Evaluation:
    """Sums findings up: the score is the share that passed, and the verdict is `pass` when all did.
    Without findings it is inconclusive."""
    if not findings:
        return Evaluation(0.0, "inconclusive", [])
    passed = sum(one.verdict == "pass" for one in findings)
    verdict = "pass" if passed == len(findings) else "fail"
    return Evaluation(passed / len(findings), verdict, list(findings))


class Eval(Contribution):
    """A strategy as the host lists and asks it."""

    kind = "strategy"

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        super().__init__(function, options["name"] or function.__name__)
        self.signature = Signature(function, self.what, first=1)
        if not self.signature.leading:
            raise mistake(
                function,
                f"the {self.what} takes nothing to judge",
                f"write `def {function.__name__}(subject: Subject):`",
            )
        self.description = options["description"] or self.signature.docstring.description
        if not self.description:
            raise mistake(
                function, f"the {self.what} has no description", "write a docstring below its `def`"
            )

    def options_schema(self) -> dict[str, Any] | None:
        """The schema of its options, where it takes any."""
        return root_schema(self.signature.parameters) if self.signature.parameters.members else None

    def evaluate(self, subject: dict[str, Any], options: dict[str, Any]) -> Evaluation:
        """Judges a subject.

        Raises:
            Error: If it cannot.
        """
        try:
            returned = self.signature.call([Subject.of(subject)], self.signature.parse(options))
        except Exception as exception:
            raise to_error(exception) from exception
        return self._evaluation(returned)

    def _evaluation(self, value: Any) -> Evaluation:
        if isinstance(value, bool):
            value = Evaluation(float(value), "pass" if value else "fail")
        elif isinstance(value, (int, float)):
            value = Evaluation(float(value), "pass" if value >= 0.5 else "fail")
        elif isinstance(value, list) and all(isinstance(one, Finding) for one in value):
            value = summarize(value)
        problem = None
        if not isinstance(value, Evaluation):
            problem = (
                f"expected an Evaluation, a number, a bool or a list of Finding, got {type(value).__name__}"
            )
        elif not 0 <= value.score <= 1:
            problem = f"expected a score from 0 to 1, got {value.score}"
        else:
            verdicts = [value.verdict, *(one.verdict for one in value.findings)]
            wrong = [verdict for verdict in verdicts if verdict not in VERDICTS]
            if wrong:
                problem = f'expected the verdict "pass", "fail" or "inconclusive", got {wrong[0]!r}'
        if problem:
            file, line = place(self.function)
            raise Error(
                ErrorCode.FAILED,
                f"the {self.what} returned something else than an evaluation: {problem} ({file}:{line} in {self.function.__name__})"
                "\n  hint: return a score from 0 to 1, whether the subject passes, or a list of `finding(…)`",
            )
        return value


def eval(function: Any = None, /, *, name: str | None = None, description: str | None = None) -> Any:
    """Makes a function a strategy, which judges what an agent or a model has produced.

    Its first parameter is the `Subject`; the others are the strategy's options. It returns an
    `Evaluation`; a list of `Finding`; a score from 0 to 1, which passes from a half on; or whether
    the subject passes.

    Args:
        name: Its name; by default that of the function.
        description: What it judges; by default what the docstring says.

    Raises:
        DefinitionError: If a parameter has no type, or the function no description.
    """
    options = {"name": name, "description": description}

    def decorate(function: F) -> F:
        attach("eval", function, lambda: Eval(function, options))
        return function

    return decorate if function is None else decorate(function)
