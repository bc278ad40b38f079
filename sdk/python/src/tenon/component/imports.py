"""Modules in a component: those that were imported when it was built, and no others, since it has no
files of the interpreter's."""

from __future__ import annotations

import ast
import importlib
import linecache
import sys
from typing import Any, Iterator

#: Modules that functions of the standard library import when they are first called.
_LATE = [
    "_strptime", "locale", "encodings.ascii", "encodings.latin_1", "encodings.utf_8",
    "encodings.utf_8_sig", "encodings.utf_16", "encodings.utf_16_le", "encodings.utf_16_be",
    "encodings.cp1252", "encodings.idna", "encodings.raw_unicode_escape", "encodings.unicode_escape",
    "encodings.hex_codec", "stringprep", "unicodedata", "copyreg", "random",
]  # fmt: skip

#: Modules of the component's own, whose imports within functions are made by name.
_OTHERS = {
    "tenon",
    "tenon_entry",
    "wit_world",
    "componentize_py_async_support",
    "componentize_py_types",
    "poll_loop",
}


def complete() -> None:
    """Imports what the author's functions, and those of the dependencies, import when they are called."""
    for name in _LATE:
        _attempt(name)
    seen: set[str] = set()
    while True:
        late = [name for module in _modules() for name in _late(module, seen)]
        if not late:
            return
        for name in late:
            _attempt(name)


def _modules() -> list[Any]:
    """The modules of the author and of the dependencies."""
    found = []
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        top = module.__name__.split(".")[0]
        if file and file.endswith(".py") and top not in _OTHERS and top not in sys.stdlib_module_names:
            found.append(module)
    return found


def _late(module: Any, seen: set[str]) -> Iterator[str]:
    if module.__name__ in seen:
        return
    seen.add(module.__name__)
    try:
        with open(module.__file__, encoding="utf-8") as source:
            text = source.read()
        tree = ast.parse(text)
    except (OSError, SyntaxError, ValueError):
        return
    # A traceback shows lines; `mtime` of `None` says not to look for the file again.
    linecache.cache[module.__file__] = (len(text), None, text.splitlines(True), module.__file__)
    package = module.__name__ if hasattr(module, "__path__") else module.__name__.rpartition(".")[0]
    for function in ast.walk(tree):
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            for node in ast.walk(function):
                yield from _imported(node, package)


def _imported(node: ast.AST, package: str) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            parts = package.split(".")
            parts = parts[: len(parts) - node.level + 1]
            base = ".".join([*parts, base] if base else parts)
        yield base
        yield from (f"{base}.{alias.name}" for alias in node.names)


def _attempt(name: str) -> None:
    """Imports a module, if it is there: what is not may be optional."""
    if not name or name in sys.modules:
        return
    try:
        importlib.import_module(name)
    except Exception:  # A module may fail in any way for want of what a component has not.
        return


class _Absent:
    """Finds no module, and says why."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> None:
        if path is not None and name.rpartition(".")[0] in sys.modules:
            top = name.split(".")[0]
        else:
            top = name
        raise ModuleNotFoundError(
            f'the module "{name}" is not in the component, which has those that were imported when it was '
            f"built: write `import {name}` at the top of the file, or add {top} to the dependencies",
            name=name,
        )


#: What finds modules in a component, and where. `enter` puts it in place: until the component is
#: built, the component tool imports modules of its own.
_FINDERS: list[Any] = []
_PATH: list[str] = []
_BEFORE: list[Any] = []


def prepare() -> None:
    """Makes ready what `enter` does, which is done again in each instance and has to be quick."""
    kept = [
        finder
        for finder in sys.meta_path
        if getattr(finder, "__name__", "") in ("BuiltinImporter", "FrozenImporter")
    ]
    _FINDERS[:] = [*kept, _Absent]
    # Nothing that was there before is freed in an instance: that would copy its memory.
    _BEFORE[:] = [sys.meta_path, sys.path]
    sys.path_importer_cache.clear()
    linecache.updatecache = lambda *_: []  # type: ignore[assignment]


def enter() -> None:
    """Has imports from now on look for no files, which a host would refuse and log."""
    sys.meta_path = _FINDERS
    sys.path = _PATH
