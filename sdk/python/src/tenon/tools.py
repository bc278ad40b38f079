"""The host's other tools: `tools = ["text_tools__*"]` in plugin.toml."""

from __future__ import annotations

from typing import Any

from . import _host
from .content import ToolResult


def list() -> Any:
    """The tools that the plugin may call: `name`, `description`, `inputSchema` and so on, in the
    words of MCP.

    Raises:
        Error: Where the host cannot say.
    """
    return _host.current().list_tools()


def call(name: str, arguments: dict[str, Any] | None = None, /, **more: Any) -> ToolResult:
    """Calls a tool. That the tool could not do it is no error, but a result with `is_error`.

    Args:
        name: The tool, by the name that callers use.
        arguments: Its arguments; they may also be given by their names.

    Raises:
        Error: With `denied` for a tool that is not granted, and those of the tool itself.
    """
    return _host.current().call_tool_of_host(name, {**(arguments or {}), **more})
