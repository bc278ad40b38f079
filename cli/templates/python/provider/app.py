"""{{description}}.

This is the glue: what the host asks, in the types of the contract. What the plugin does is in
`logic.py`, which tests import without any of this. componentize-py makes the modules `wit_world` and
`componentize_py_types` of the folder `wit`; for an editor to know them too,
`componentize-py -d wit -w component bindings .bindings` writes them down.
"""

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports.lifecycle import Identity
from wit_world.exports.providers import ProviderDefinition
from wit_world.imports.model import (
    Completion,
    CompletionRequest,
    CompletionSummary,
    ModelFeatures,
    ModelInfo,
    Part_Text,
    Role,
    StopReason_EndTurn,
    TokenUsage,
)
from wit_world.imports.types import CallContext, Error, ErrorCode

import logic

MODEL = "parrot"


def error(code: ErrorCode, message: str) -> Err:
    return Err(Error(code, message, retry_after=None, data=None))


class Lifecycle(exports.Lifecycle):
    def start(self) -> Identity:
        return Identity("{{name}}", "0.1.0", "{{description}}.", None)

    def stop(self) -> None:
        pass


class Providers(exports.Providers):
    def list_providers(self) -> list[ProviderDefinition]:
        return [ProviderDefinition("{{name}}", "Repeats what it is told")]

    def list_models(self) -> list[ModelInfo]:
        return [
            ModelInfo(
                id=MODEL,
                provider="{{name}}",
                title="Parrot",
                context_window=None,
                max_output_tokens=None,
                features=ModelFeatures(0),
            )
        ]

    def complete(self, request: CompletionRequest, context: CallContext) -> Completion:
        if request.model != MODEL:
            raise error(ErrorCode.NOT_FOUND, f"there is no model {request.model!r}")
        told = [message.parts for message in request.messages if message.role == Role.USER]
        if not told:
            raise error(ErrorCode.INVALID_INPUT, "the request has no user message")
        texts = [part.value for part in told[-1] if isinstance(part, Part_Text)]
        text, words = logic.repeat(texts)
        summary = CompletionSummary(
            model=request.model,
            stop_reason=StopReason_EndTurn(),
            usage=TokenUsage(input=words, output=words, cached_input=0, reasoning=0),
            extra=None,
        )
        return Completion(parts=[Part_Text(text)], summary=summary)
