"""The host that the plugin's code turns to: that of the component, one of a test, or none.

Services such as `tenon.state` call it; they do not know which of them it is.
"""

from __future__ import annotations

import contextvars
import logging
from typing import TYPE_CHECKING, Any

from ._errors import Error, ErrorCode

if TYPE_CHECKING:
    from .content import ToolResult
    from .http import Request, RawResponse
    from .memory import MemoryEntry
    from .models import Completion, CompletionRequest
    from .user import Answer

#: What requests each service in `plugin.toml`, under `[capabilities]`.
LINES = {
    "secrets": 'secrets = ["api-key"]',
    "state": 'state = ["project"]',
    "user": 'user = ["ask"]',
    "inference": 'providers = ["default"]',
    "tools": 'tools = ["*"]',
    "messaging": 'messaging = ["*"]',
    "memory": 'memory = ["search"]',
    "http": 'network = ["https://api.example.com/*"]',
}


def not_requested(service: str) -> Error:
    """That the component was built without a service."""
    return Error(
        ErrorCode.DENIED,
        f"tenon.{service} is not in this component: its plugin.toml does not request it"
        f"\n  hint: write `{LINES[service]}` under [capabilities] and build again",
    )


class Host:
    """A host that lends nothing: what the plugin's code meets outside of a component and of
    `tenon.testing.Host`. Its configuration is empty and its log is that of Python."""

    def _deny(self, service: str) -> Error:
        return Error(
            ErrorCode.DENIED,
            f"tenon.{service} needs a host, and there is none here"
            "\n  hint: in a test, run the function by `tenon.testing.Host`, or within `with Host(…):`; "
            f"plugin.toml requests it with `{LINES[service]}` under [capabilities]",
        )

    def config(self, key: str) -> Any:
        """The value of a setting, or `None`."""
        return self.settings().get(key)

    def settings(self) -> dict[str, Any]:
        """All settings."""
        return {}

    def log(self, level: str, message: str, fields: dict[str, str]) -> None:
        """Writes a line to the log."""
        number = {"trace": 5, "warn": logging.WARNING}.get(level) or getattr(logging, level.upper())
        logging.getLogger("tenon").log(number, "%s", message)

    def progress(self, call_id: str, progress: float, total: float | None, message: str | None) -> None:
        """Reports how far a call has come."""

    def resource_updated(self, uri: str) -> None:
        """Says that a resource has changed."""

    def contributions_changed(self) -> None:
        """Says that the plugin contributes other things than before."""

    def secret(self, name: str) -> str:
        """The value of a secret."""
        raise self._deny("secrets")

    def state_get(self, bucket: str, key: str) -> bytes | None:
        """The bytes of a key, if it has any."""
        raise self._deny("state")

    def state_set(self, bucket: str, key: str, value: bytes) -> None:
        """Sets the bytes of a key."""
        raise self._deny("state")

    def state_delete(self, bucket: str, key: str) -> None:
        """Removes a key."""
        raise self._deny("state")

    def state_keys(self, bucket: str) -> list[str]:
        """The keys, in the order of their bytes."""
        raise self._deny("state")

    def state_increment(self, bucket: str, key: str, by: int) -> int:
        """Adds to a number."""
        raise self._deny("state")

    def state_update(self, bucket: str, key: str, change: Any) -> None:
        """Sets the bytes of a key to what a function makes of them, and calls it again where
        another call was faster."""
        raise self._deny("state")

    def ask(self, message: str, schema: dict[str, Any]) -> "Answer":
        """Has the user fill in a form."""
        raise self._deny("user")

    def ask_url(self, message: str, url: str, id: str | None) -> str:
        """Asks the user to open a page."""
        raise self._deny("user")

    def complete(self, request: "CompletionRequest") -> "Completion":
        """Has a model complete a request."""
        raise self._deny("inference")

    def list_tools(self) -> list[dict[str, Any]]:
        """The tools that the plugin may call."""
        raise self._deny("tools")

    def call_tool_of_host(self, name: str, arguments: dict[str, Any]) -> "ToolResult":
        """Calls a tool."""
        raise self._deny("tools")

    def send_message(self, text: str, channel: str | None, extra: dict[str, Any] | None) -> None:
        """Sends a message."""
        raise self._deny("messaging")

    def search_memory(self, query: str, limit: int) -> "list[MemoryEntry]":
        """Searches what the host remembers."""
        raise self._deny("memory")

    async def send_request(self, request: "Request", waiter: Any) -> "RawResponse":
        """Sends a request over HTTP. `waiter` says how to wait: at once, or by the event loop."""
        raise self._deny("http")


_NONE = Host()
_CURRENT: contextvars.ContextVar[Host] = contextvars.ContextVar("tenon.host")

#: That of the component. A variable of the context would not be in calls of other threads.
_component: Host | None = None


def current() -> Host:
    """The host that the code turns to."""
    return _CURRENT.get(None) or _component or _NONE


def enter(host: Host) -> contextvars.Token[Host]:
    """Turns the code to a host, until the token is given to `leave`."""
    return _CURRENT.set(host)


def leave(token: contextvars.Token[Host]) -> None:
    """Turns the code to the host before."""
    _CURRENT.reset(token)


def install(host: Host) -> None:
    """Makes a host that of the component."""
    global _component
    _component = host
