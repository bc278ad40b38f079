"""{{description}}.

This is the glue: what the host asks, in the types of the contract. What the plugin does is in
`logic.py`, which tests import without any of this. componentize-py makes the modules `wit_world` and
`componentize_py_types` of the folder `wit`; for an editor to know them too,
`componentize-py -d wit -w component bindings .bindings` writes them down.
"""

import json

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports.hooks import (
    HookEvent,
    HookMode,
    HookOutcome,
    HookOutcome_Continue,
    HookOutcome_Replace,
    HookRegistration,
)
from wit_world.exports.lifecycle import Identity
from wit_world.imports import config
from wit_world.imports.types import CallContext, Error, ErrorCode

import logic


def error(code: ErrorCode, message: str) -> Err:
    return Err(Error(code, message, retry_after=None, data=None))


class Lifecycle(exports.Lifecycle):
    def start(self) -> Identity:
        return Identity("{{name}}", "0.1.0", "{{description}}.", None)

    def stop(self) -> None:
        pass


class Hooks(exports.Hooks):
    def list_hooks(self) -> list[HookRegistration]:
        return [HookRegistration("message-sending", HookMode.ENFORCE, priority=0)]

    def handle_event(self, event: HookEvent, context: CallContext) -> HookOutcome:
        if event.point != "message-sending":
            raise error(ErrorCode.NOT_FOUND, "this point is not handled")
        setting = config.get("signature")
        signature = json.loads(setting) if setting is not None else "Sent with {{name}}"
        signed = logic.sign(json.loads(event.event_context), signature)
        return HookOutcome_Continue() if signed is None else HookOutcome_Replace(json.dumps(signed))
