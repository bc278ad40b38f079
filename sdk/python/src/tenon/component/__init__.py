"""The plugin as a component: classes that componentize-py exports.

This package is imported when a component is built, where the modules `wit_world` and
`componentize_py_types` are. It imports the author's module then, so that the snapshot of the memory
with which each instance begins has everything that was imported.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
from typing import Any

from .. import _failure, _host
from .._importing import problem_of
from .._registry import REGISTRY
from . import console, imports, snapshot


def serve(module: str, **identity: str) -> dict[str, Any]:
    """Imports the author's module, and returns the classes to export for what it contributes.

    Args:
        module: The name of the author's module.
        identity: `name`, `version` and `description` of the plugin.
    """
    file = _imported(module).__file__
    _failure.author_folder = os.path.dirname(file) if file else None
    imports.complete()
    # The bindings depend on the world that is built; so do these modules.
    from . import exports, services

    exports.IDENTITY.update(identity)
    _host.install(services.ComponentHost())
    console.prepare()
    imports.prepare()
    classes = exports.of(REGISTRY)
    snapshot.clean()
    return classes


class ImportFailed(Exception):
    """The author's module cannot be imported in a component. `tenon build` reads the message: a mark,
    and the mistake as `tenon.describe` has it."""

    MARK = "tenon-problem: "


def _imported(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except Exception as exception:
        origin = getattr(importlib.util.find_spec(module), "origin", None) or ""
        problem = problem_of(exception, module, os.path.dirname(origin))
    said = {"file": problem.file, "line": problem.line, "message": problem.message, "hint": problem.hint}
    raise ImportFailed(ImportFailed.MARK + json.dumps(said, ensure_ascii=False))
