"""What a function is told about the call it serves."""

from __future__ import annotations

import contextvars
import dataclasses
import time
from typing import Any

from . import _host


@dataclasses.dataclass
class Context:
    """The call at hand: `tenon.context()`, or a parameter of the type `Context`."""

    #: Names this call among all calls of the host.
    call_id: str
    #: The agent on whose behalf the call is made.
    agent_id: str | None = None
    #: The conversation or session that the call belongs to.
    session_id: str | None = None
    #: The W3C Trace Context `traceparent` to pass on.
    traceparent: str | None = None
    #: Seconds that were left when the call was handed over.
    time_left: float | None = None
    #: What else the host says of the call.
    extra: dict[str, Any] = dataclasses.field(default_factory=dict)
    _since: float = dataclasses.field(default_factory=time.monotonic, repr=False, compare=False)
    _is_cancelled: bool = dataclasses.field(default=False, repr=False, compare=False)

    def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Tells whoever waits how far the call has come.

        Args:
            progress: Grows with each report and reaches `total` at the end.
            total: Where it ends, if that is known.
            message: What is being done.
        """
        _host.current().progress(self.call_id, float(progress), total, message)

    def remaining(self) -> float | None:
        """Seconds until the host ends the call; `None` where there is no deadline."""
        if self.time_left is None:
            return None
        return max(0.0, self.time_left - (time.monotonic() - self._since))

    def is_cancelled(self) -> bool:
        """Whether the call should end: its time is over, or `tenon.testing.Host.cancel` said so.

        A component of Python serves one call at a time, so its host cannot tell it that the caller
        gave up: it discards the instance.
        """
        return self._is_cancelled or self.remaining() == 0


_CURRENT: contextvars.ContextVar[Context] = contextvars.ContextVar("tenon.context")


def context() -> Context:
    """The call that is being served.

    Raises:
        RuntimeError: If no call is: at import, or in a test without `tenon.testing.Host`.
    """
    try:
        return _CURRENT.get()
    except LookupError:
        raise RuntimeError(
            "no call is being served; in a test, `tenon.testing.Host().call_tool(…)` serves one"
        ) from None


class serving:
    """Serves a call for as long as it is entered. It is no generator: exceptions of the component
    tool cannot be thrown into one."""

    def __init__(self, call: Context) -> None:
        self.call = call

    def __enter__(self) -> Context:
        self.token = _CURRENT.set(self.call)
        return self.call

    def __exit__(self, *_: object) -> None:
        _CURRENT.reset(self.token)
