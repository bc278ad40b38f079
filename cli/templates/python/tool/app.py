"""{{description}}.

This is the glue: what the host asks, in the types of the contract. What the plugin does is in
`logic.py`, which tests import without any of this. componentize-py makes the modules `wit_world` and
`componentize_py_types` of the folder `wit`; for an editor to know them too,
`componentize-py -d wit -w component bindings .bindings` writes them down.
"""

import json

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports.lifecycle import Identity
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

import logic

GREET = ToolDefinition(
    name="greet",
    title=None,
    description="Greets somebody.",
    input_schema=json.dumps(
        {
            "type": "object",
            "properties": {"name": {"type": "string", "description": "Whom to greet."}},
            "required": ["name"],
            "additionalProperties": False,
        }
    ),
    output_schema=None,
    annotations=ToolAnnotations(read_only=True, destructive=None, idempotent=True, open_world=None),
    capabilities=[],
    extra=None,
)


def error(code: ErrorCode, message: str) -> Err:
    return Err(Error(code, message, retry_after=None, data=None))


def answer(text: str, is_error: bool = False) -> ToolResult:
    block = ContentBlock(body=Content_Text(text), extra=None)
    return ToolResult(content=[block], structured=None, is_error=is_error, extra=None)


class Lifecycle(exports.Lifecycle):
    def start(self) -> Identity:
        return Identity("{{name}}", "0.1.0", "{{description}}.", None)

    def stop(self) -> None:
        pass


class Tools(exports.Tools):
    def list_tools(self) -> list[ToolDefinition]:
        return [GREET]

    def call_tool(self, name: str, arguments: str, context: CallContext) -> ToolResult:
        if name != GREET.name:
            raise error(ErrorCode.NOT_FOUND, f"there is no tool {name!r}")
        try:
            # The host has checked the arguments against the schema.
            return answer(logic.greet(**json.loads(arguments)))
        except ValueError as wrong:
            # The model reads this, and may do better. Any other exception is a trap.
            return answer(str(wrong), is_error=True)
