"""{{description}}.

This is the glue: what the host asks, in the types of the contract. What the plugin does is in
`logic.py`, which tests import without any of this. componentize-py makes the modules `wit_world` and
`componentize_py_types` of the folder `wit`; for an editor to know them too,
`componentize-py -d wit -w component bindings .bindings` writes them down.
"""

import json

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports.evals import EvalDefinition, Evaluation, Finding, Verdict
from wit_world.exports.lifecycle import Identity
from wit_world.imports.types import CallContext, Error, ErrorCode

import logic

CONCISE = EvalDefinition(
    name="concise",
    description="Passes when the output is short. Beyond that the score falls with its length.",
    options_schema=json.dumps(
        {
            "type": "object",
            "properties": {
                "most": {"type": "integer", "minimum": 1, "description": "The most words."}
            },
            "additionalProperties": False,
        }
    ),
)


def error(code: ErrorCode, message: str) -> Err:
    return Err(Error(code, message, retry_after=None, data=None))


class Lifecycle(exports.Lifecycle):
    def start(self) -> Identity:
        return Identity("{{name}}", "0.1.0", "{{description}}.", None)

    def stop(self) -> None:
        pass


class Evals(exports.Evals):
    def list_evals(self) -> list[EvalDefinition]:
        return [CONCISE]

    def evaluate(
        self, strategy: str, subject: str, options: str, context: CallContext
    ) -> Evaluation:
        if strategy != CONCISE.name:
            raise error(ErrorCode.NOT_FOUND, f"there is no strategy {strategy!r}")
        # The host has checked the options against the schema.
        score, reason = logic.concise(json.loads(subject).get("output"), **json.loads(options))
        verdict = Verdict.PASS if score == 1 else Verdict.FAIL
        finding = Finding(criterion="words", verdict=verdict, score=score, reason=reason)
        return Evaluation(score=score, verdict=verdict, findings=[finding], extra=None)
