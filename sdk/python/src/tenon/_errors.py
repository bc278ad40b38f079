"""How a plugin's function fails, and how a mistake in its source is told."""

from __future__ import annotations

import enum
from typing import Any


class ErrorCode(str, enum.Enum):
    """What kind of error it is. Codes are those of the contract."""

    #: The caller's input is wrong, and the same input will be wrong again.
    INVALID_INPUT = "invalid-input"
    #: What the input names does not exist.
    NOT_FOUND = "not-found"
    #: Policy forbids it, or a capability is not granted.
    DENIED = "denied"
    #: It took longer than it may.
    TIMEOUT = "timeout"
    #: The caller asked for it to stop.
    CANCELLED = "cancelled"
    #: It cannot be served now; the same request may succeed later.
    UNAVAILABLE = "unavailable"
    #: It failed for another reason.
    FAILED = "failed"

    def __str__(self) -> str:
        return self.value


class ToolError(Exception):
    """Says that a tool could not do what was asked, in words that the model reads and may act on.

    In a tool it becomes a result with `is_error`; elsewhere an error with the code `failed`.
    """


class Error(Exception):
    """An error of the contract: what the model cannot mend.

    Args:
        code: An `ErrorCode`, or its text such as `"not-found"`.
        message: For people.
        retry_after: Seconds to wait before another attempt; it goes with `unavailable`.
        data: What programs can read about it: any JSON value.

    Raises:
        ValueError: If there is no such code.
    """

    def __init__(
        self,
        code: ErrorCode | str,
        message: str,
        *,
        retry_after: float | None = None,
        data: Any = None,
    ) -> None:
        super().__init__(message)
        try:
            self.code = ErrorCode(code)
        except ValueError:
            codes = ", ".join(f'"{known}"' for known in ErrorCode)
            raise ValueError(f'there is no error code "{code}"; the codes are {codes}') from None
        self.message = message
        self.retry_after = retry_after
        self.data = data

    def __str__(self) -> str:
        return self.message

    def __repr__(self) -> str:
        return f"Error({self.code.value!r}, {self.message!r})"


class DefinitionError(TypeError):
    """A mistake in the plugin's source, found when the source is imported or built.

    Its text says where the mistake is, what is wrong, and what to write instead.
    """

    def __init__(self, message: str, *, hint: str = "", file: str = "", line: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.file = file
        self.line = line

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}: " if self.file and self.line else ""
        hint = f"\n  hint: {self.hint}" if self.hint else ""
        return f"{place}{self.message}{hint}"
