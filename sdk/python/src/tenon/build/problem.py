"""Why a component cannot be built."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Problem:
    """What the author has to change.

    Attributes:
        message: What is wrong.
        hint: What to do about it.
        file: Where it is, from the plugin's folder.
        line: The line of the file, from 1.
    """

    message: str
    hint: str = ""
    file: str = ""
    line: int | None = None

    def __str__(self) -> str:
        line = f":{self.line}" if self.line else ""
        place = f"{self.file}{line}: " if self.file else ""
        hint = f"\n  hint: {self.hint}" if self.hint else ""
        return f"{place}{self.message}{hint}"

    def to_json(self) -> dict[str, Any]:
        """The problem as `--json` prints it."""
        return asdict(self)


class BuildError(Exception):
    """The plugin has problems."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


class ToolChainError(Exception):
    """Something that builds components is missing.

    Args:
        message: What is missing.
        hint: What installs it.
    """

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(f"{message}\n  hint: {hint}")
