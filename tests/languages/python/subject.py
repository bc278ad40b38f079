"""A plugin in Python.

The modules `wit_world` and `componentize_py_types` are made from the WIT by componentize-py.
"""

import json

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports.lifecycle import Identity
from wit_world.imports import log
from wit_world.imports.types import (
    CallContext,
    Content_Text,
    ContentBlock,
    Error,
    ErrorCode,
    ToolAnnotations,
    ToolDefinition,
    ToolResult,
)


def echo(text: str = "") -> ToolResult:
    """Answers with its `text`."""
    return answer(text)


def fail(text: str = "") -> ToolResult:
    """Answers with an error, the `text`."""
    return answer(text, is_error=True)


def hang(text: str = "") -> ToolResult:
    """Never answers."""
    while True:
        pass


def answer(text: str, is_error: bool = False) -> ToolResult:
    block = ContentBlock(body=Content_Text(text), extra=None)
    return ToolResult(content=[block], structured=None, is_error=is_error, extra=None)


TOOLS = {tool.__name__: tool for tool in (echo, fail, hang)}

SCHEMA = json.dumps({"type": "object", "properties": {"text": {"type": "string"}}})


def definition(name: str) -> ToolDefinition:
    return ToolDefinition(
        name=name,
        title=None,
        description=TOOLS[name].__doc__,
        input_schema=SCHEMA,
        output_schema=None,
        annotations=ToolAnnotations(None, None, None, None),
        capabilities=[],
        extra=None,
    )


# componentize-py looks for one class for each interface that the world exports, by these names.
class Lifecycle(exports.Lifecycle):
    def start(self) -> Identity:
        return Identity("subject", "0.1.0", "Three tools in Python.", None)

    def stop(self) -> None:
        pass


class Tools(exports.Tools):
    def list_tools(self) -> list[ToolDefinition]:
        return [definition(name) for name in TOOLS]

    def call_tool(self, name: str, arguments: str, context: CallContext) -> ToolResult:
        log.write(log.Level.DEBUG, f"{name} is called", [("call", context.call_id)])
        if name not in TOOLS:
            raise Err(Error(ErrorCode.NOT_FOUND, f"there is no tool {name!r}", None, None))
        return TOOLS[name](**json.loads(arguments))
