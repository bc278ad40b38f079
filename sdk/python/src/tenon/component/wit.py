"""The modules that componentize-py makes of the world, as far as this component has them."""

from __future__ import annotations

import importlib
from typing import Any

from componentize_py_types import Err  # noqa: F401  Others import it from here.


def _imported(*names: str) -> Any:
    """The first module of these names. An interface has a longer name where another one has its own."""
    for name in names:
        try:
            return importlib.import_module(f"wit_world.imports.{name}")
        except ModuleNotFoundError:
            continue
    return None


def _exported(name: str) -> Any:
    try:
        return importlib.import_module(f"wit_world.exports.{name}")
    except ModuleNotFoundError:
        return None


types: Any = _imported("tenon_plugin_types", "types")
config: Any = _imported("config")
log: Any = _imported("log")
notify: Any = _imported("notify")

model: Any = _imported("model")
secrets: Any = _imported("secrets")
user: Any = _imported("user")
inference: Any = _imported("inference")
host_tools: Any = _imported("host_tools")
messaging: Any = _imported("messaging")
memory: Any = _imported("memory")
store: Any = _imported("store")
atomics: Any = _imported("atomics")

http: Any = _imported("wasi_http_types")
outgoing_handler: Any = _imported("outgoing_handler")
streams: Any = _imported("streams")
poll: Any = _imported("poll")
monotonic_clock: Any = _imported("monotonic_clock")

lifecycle: Any = _exported("lifecycle")
hooks: Any = _exported("hooks")
evals: Any = _exported("evals")
resources: Any = _exported("resources")
prompts: Any = _exported("prompts")
providers: Any = _exported("providers")
completions: Any = _exported("completions")
