"""Says what a plugin's source contributes, for `tenon build`: `python -m tenon.describe app` prints JSON.

Members: `worlds` and `exports` of the contract, `contributions` by their kinds, `awaits` for `async` functions,
`services` that the source names, and `problems` with file, line, message and hint. It ends with 1 if
there are problems.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import os
import sys
from typing import Any

from . import _hook, _host, _provider
from ._errors import DefinitionError
from ._importing import problem_of
from ._names import suggestion
from ._registry import REGISTRY, Registry
from ._source import short
from ._tool import Tool
from ._worlds import WORLDS, awaits, exports, worlds

#: Names that the component's own modules have.
RESERVED = {
    "tenon", "tenon_entry", "wit_world", "componentize_py_types", "componentize_py_runtime",
    "componentize_py_async_support", "poll_loop", "component",
}  # fmt: skip


def check(registry: Registry) -> list[DefinitionError]:
    """The mistakes in what was defined."""
    problems = [*registry.problems, *registry.duplicates(), *_hook.disagreements(registry.of(_hook.Hook))]
    for tool in registry.of(Tool):
        for name in tool.options["capabilities"]:
            if name not in CAPABILITIES:
                problems.append(
                    DefinitionError(
                        f'the {tool.what} needs the capability "{name}", which does not exist{suggestion(name, CAPABILITIES)}',
                        hint=f"the capabilities are {', '.join(CAPABILITIES)}",
                        file=tool.file,
                        line=tool.line,
                    )
                )
    return sorted(problems, key=lambda one: (one.file, one.line or 0))


CAPABILITIES = (
    "filesystem", "network", "environment", "secrets", "tools", "providers", "user", "state", "messaging", "memory",
)  # fmt: skip


def describe(module: str, folder: str, registry: Registry = REGISTRY) -> dict[str, Any]:
    """Imports a module of a folder, and says what it contributes."""
    problems: list[DefinitionError] = []
    registry.collects = True
    try:
        _import(module, folder)
    except DefinitionError as problem:
        problems.append(problem)
    problems += check(registry)
    if not problems:  # What is wrong with its models could be among them.
        problems += _provider.without_models(registry.of(_provider.Model))
    found = worlds(registry)
    if not found and not problems:
        file = f"{module}.py"
        problems.append(
            DefinitionError(
                f"{file} contributes nothing",
                hint="write `from tenon import tool` at the top of the file, and `@tool` above a function",
                file=file,
                line=1,
            )
        )
    return {
        "worlds": found,
        "exports": exports(registry),
        "contributions": {world: [one.name for one in registry.of(kind)] for world, kind in WORLDS.items()},
        "awaits": awaits(registry),
        "services": services(folder),
        "problems": [
            {"file": one.file, "line": one.line, "message": one.message, "hint": one.hint} for one in problems
        ],
    }


def _import(module: str, folder: str) -> None:
    """Imports the author's module.

    Raises:
        DefinitionError: If that fails, saying where and why.
    """
    path = os.path.join(folder, f"{module}.py")
    if module.split(".")[0] in RESERVED:
        raise DefinitionError(
            f'the module cannot have the name "{module}", which a component needs itself',
            hint="name it app.py",
            file=path,
            line=1,
        )
    if not os.path.exists(path) and not os.path.isdir(os.path.join(folder, module)):
        raise DefinitionError(
            f"there is no {module}.py in {os.path.abspath(folder)}",
            hint=f"write the plugin's functions into {module}.py beside plugin.toml",
            file=f"{module}.py",
            line=1,
        )
    for name in sorted(RESERVED - {"component"}):
        if os.path.exists(os.path.join(folder, f"{name}.py")):
            raise DefinitionError(
                f"{name}.py hides the module {name}, which a component needs",
                hint="rename the file",
                file=f"{name}.py",
                line=1,
            )
    sys.path.insert(0, folder)
    try:
        importlib.import_module(module)
    except (Exception, SystemExit) as exception:
        raise problem_of(exception, module, folder) from exception


def services(folder: str) -> dict[str, list[Any]]:
    """The services that the source names, each with the first file and line, by its text alone."""
    found: dict[str, list[Any]] = {}
    for root, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".") and name != "__pycache__"]
        for file in files:
            if file.endswith(".py") and not file.startswith("test_"):
                _services_of(os.path.join(root, file), found)
    return found


def _services_of(path: str, found: dict[str, list[Any]]) -> None:
    try:
        with open(path, encoding="utf-8") as source:
            tree = ast.parse(source.read())
    except (OSError, SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.module == "tenon":
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tenon."):
            names = [(node.module or "").split(".")[1]]
        elif (
            isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "tenon"
        ):
            names = [node.attr]
        for name in names:
            if name in _host.LINES:
                found.setdefault(name, [short(path), getattr(node, "lineno", 1)])


def main() -> int:
    """Prints the description of a module."""
    parser = argparse.ArgumentParser(
        prog="python -m tenon.describe", description="Say what a plugin contributes, as JSON"
    )
    parser.add_argument("module", nargs="?", default="app", help="the module with its functions")
    parser.add_argument("--folder", default=".", help="the folder of the module")
    arguments = parser.parse_args()
    printed = sys.stdout
    # What the module prints when it is imported is no part of the answer.
    sys.stdout = sys.stderr
    description = describe(arguments.module, arguments.folder)
    print(json.dumps(description, ensure_ascii=False), file=printed)
    return 1 if description["problems"] else 0


if __name__ == "__main__":
    sys.exit(main())
