"""{{description}}.

This is the glue: what the host asks, in the types of the contract. What the plugin does is in
`logic.py`, which tests import without any of this. componentize-py makes the modules `wit_world` and
`componentize_py_types` of the folder `wit`; for an editor to know them too,
`componentize-py -d wit -w component bindings .bindings` writes them down.
"""

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports.lifecycle import Identity
from wit_world.exports.prompts import (
    Prompt,
    PromptArgument,
    PromptDefinition,
    PromptMessage,
    PromptPage,
    PromptRole,
)
from wit_world.imports.types import CallContext, Content_Text, ContentBlock, Error, ErrorCode

import logic


def argument(name: str, description: str, required: bool) -> PromptArgument:
    return PromptArgument(name, None, description, required, extra=None)


EXPLAIN = PromptDefinition(
    name="explain",
    title=None,
    description="Asks for an explanation.",
    arguments=[
        argument("topic", "What to explain.", required=True),
        argument("audience", "Whom to explain it to.", required=False),
    ],
    extra=None,
)


def error(code: ErrorCode, message: str) -> Err:
    return Err(Error(code, message, retry_after=None, data=None))


def check(given: dict[str, str], arguments: list[PromptArgument]) -> None:
    """Refuses arguments that do not exist, and the lack of those that are required."""
    if unknown := given.keys() - {argument.name for argument in arguments}:
        raise error(ErrorCode.INVALID_INPUT, f"there is no argument {min(unknown)!r}")
    if missing := {argument.name for argument in arguments if argument.required} - given.keys():
        raise error(ErrorCode.INVALID_INPUT, f"the argument {min(missing)!r} is missing")


class Lifecycle(exports.Lifecycle):
    def start(self) -> Identity:
        return Identity("{{name}}", "0.1.0", "{{description}}.", None)

    def stop(self) -> None:
        pass


class Prompts(exports.Prompts):
    def list_prompts(self, cursor: str | None, context: CallContext) -> PromptPage:
        if cursor is not None:
            raise error(ErrorCode.INVALID_INPUT, f"there is no page {cursor!r}")
        return PromptPage([EXPLAIN], next=None)

    def get_prompt(
        self, name: str, arguments: list[tuple[str, str]], context: CallContext
    ) -> Prompt:
        if name != EXPLAIN.name:
            raise error(ErrorCode.NOT_FOUND, f"there is no prompt {name!r}")
        given = dict(arguments)
        check(given, EXPLAIN.arguments)
        block = ContentBlock(body=Content_Text(logic.explain(**given)), extra=None)
        message = PromptMessage(PromptRole.USER, block, extra=None)
        return Prompt(EXPLAIN.description, [message], extra=None)
