"""{{description}}.

This is the glue: what the host asks, in the types of the contract. What the plugin does is in
`logic.py`, which tests import without any of this. componentize-py makes the modules `wit_world` and
`componentize_py_types` of the folder `wit`; for an editor to know them too,
`componentize-py -d wit -w component bindings .bindings` writes them down.
"""

import json

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports.hook_handler import Event, Outcome, Outcome_Continue, Outcome_Replace
from wit_world.exports.plugin import Identity, Registration
from wit_world.imports import config
from wit_world.imports.types import Error_NotFound, HookPoint_MessageSending

import logic


class Plugin(exports.Plugin):
    def register(self) -> Registration:
        return Registration(
            identity=Identity("{{name}}", "0.1.0", "{{description}}."),
            tools=[],
            hooks=[HookPoint_MessageSending()],
            providers=[],
            evals=[],
            resources=False,
            prompts=False,
        )

    def shutdown(self) -> None:
        pass


class HookHandler(exports.HookHandler):
    def handle(self, event: Event) -> Outcome:
        if not isinstance(event.point, HookPoint_MessageSending):
            raise Err(Error_NotFound("this point is not handled"))
        setting = config.get("signature")
        signature = json.loads(setting) if setting is not None else "Sent with {{name}}"
        context = logic.sign(json.loads(event.context), signature)
        return Outcome_Continue() if context is None else Outcome_Replace(json.dumps(context))
