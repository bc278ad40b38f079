"""What the source does that fails, or does something else, in a component: found by its text alone, before the build.

A module can be imported natively and not in a component, or its functions fail there. These are warnings: the
text does not show whether a line is ever reached.
"""

from __future__ import annotations

import ast
import os
from pathlib import Path
from typing import Any, Iterator

from .problem import Problem

#: The modules that do not work in a component, with the cause and the remedy.
_MODULES = {
    "socket": ("a component has no sockets", "use tenon.http"),
    "ssl": ("a component has no sockets", "use tenon.http"),
    "urllib.request": ("a component has no sockets", "use tenon.http"),
    "http.client": ("a component has no sockets", "use tenon.http"),
    "threading": ("a component has no threads", "write `async` functions, and `asyncio.gather` for what runs at once"),
    "concurrent.futures": (
        "a component has no threads", "write `async` functions, and `asyncio.gather` for what runs at once",
    ),
    "multiprocessing": ("a component has no processes", "call the functions one after the other"),
    "subprocess": ("a component has no processes", "call a tool of the host with `tenon.tools.call`"),
    "sqlite3": ("a component has no SQLite", "use tenon.state"),
    "ctypes": ("a component has no machine code", "take a package in pure Python"),
    "tkinter": ("a component has no windows", "ask the user with `tenon.user.ask`"),
    "curses": ("a component has no terminal", "ask the user with `tenon.user.ask`"),
}  # fmt: skip

#: The calls that do not work in a component.
_CALLS = {
    "input": ("a component has no terminal", "ask the user with `tenon.user.ask`"),
    "os.system": ("a component has no processes", "call a tool of the host with `tenon.tools.call`"),
    "os.popen": ("a component has no processes", "call a tool of the host with `tenon.tools.call`"),
}

#: What needs a capability: the cause and the line of `plugin.toml`.
_FILES = ("filesystem", "a component sees no files that it does not request", 'filesystem = ["read:~/notes/**"]')
_VARIABLES = (
    "environment", "a component sees no variables that it does not request", 'environment = ["LANG"]',
)  # fmt: skip
_GRANTED = {"open": _FILES, "os.listdir": _FILES, "os.environ": _VARIABLES, "os.getenv": _VARIABLES}

#: How many seconds a call may sleep. Hosts end calls that take longer.
_LONGEST_SLEEP = 30


def warnings(folder: Path, capabilities: dict[str, Any]) -> list[Problem]:
    """What the files of a plugin's folder do that a component with these capabilities cannot."""
    found: list[Problem] = []
    for root, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _NOT_BUILT)
        for name in sorted(files):
            if name.endswith(".py") and not name.startswith("test_"):
                found += _of_file(Path(root, name), folder, capabilities)
    return found


#: Folders whose files are in no component.
_NOT_BUILT = {"__pycache__", "tests", "venv", "node_modules"}


def _of_file(path: Path, folder: Path, capabilities: dict[str, Any]) -> list[Problem]:
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return []  # The description says what is wrong with it.
    reader = _Reader(capabilities)
    reader.visit(tree)
    file = path.relative_to(folder).as_posix()
    return [Problem(message, hint, file, line) for line, message, hint in reader.found]


class _Reader(ast.NodeVisitor):
    """Reads one file."""

    def __init__(self, capabilities: dict[str, Any]) -> None:
        self.capabilities = capabilities
        self.found: list[tuple[int, str, str]] = []
        #: The functions that the node is within; of a coroutine `True`.
        self.functions: list[bool] = []

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._function(node, False)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._function(node, True)

    def _function(self, node: ast.AST, is_async: bool) -> None:
        self.functions.append(is_async)
        self.generic_visit(node)
        self.functions.pop()

    def visit_If(self, node: ast.If) -> None:
        # What a file does as a script, it does in no component.
        if "__main__" not in ast.dump(node.test):
            self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._module(node, alias.name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.level == 0 and node.module and not self._module(node, node.module):
            for alias in node.names:
                self._module(node, f"{node.module}.{alias.name}")

    def _module(self, node: ast.stmt, name: str) -> bool:
        for known in _prefixes(name):
            if known in _MODULES:
                cause, remedy = _MODULES[known]
                self.found.append((node.lineno, f"`{known}` is imported: {cause}", remedy))
                return True
        return False

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self._uses(node, ast.unparse(node))
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = ast.unparse(node.func)
        if name == "open":
            self._uses(node, name)
        if name in _CALLS:
            cause, remedy = _CALLS[name]
            self.found.append((node.lineno, f"`{name}` is called: {cause}", remedy))
        if name == "print" and not self.functions:
            message = "`print` is called at the top of the file, which runs once, when the component is built"
            self.found.append((node.lineno, message, "call `tenon.log.info` in a function"))
        if name == "time.sleep":
            self._sleeps(node)
        self.generic_visit(node)

    def _uses(self, node: ast.expr, name: str) -> None:
        if name not in _GRANTED:
            return
        capability, cause, request = _GRANTED[name]
        # The build itself sees files: what the top of a file reads is in the component.
        if capability not in self.capabilities and (self.functions or capability != "filesystem"):
            hint = f"write `{request}` under [capabilities] of plugin.toml"
            if capability == "environment":
                hint += ", or use tenon.config for settings and tenon.secrets for secrets"
            self.found.append((node.lineno, f"`{name}` is used: {cause}", hint))

    def _sleeps(self, node: ast.Call) -> None:
        seconds = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else 0
        if isinstance(seconds, (int, float)) and seconds > _LONGEST_SLEEP:
            message = f"`time.sleep({seconds})` is called: hosts end calls that take so long"
            hint = f'raise `Error("unavailable", "…", retry_after={seconds})`: callers try again then'
            self.found.append((node.lineno, message, hint))
        elif self.functions and self.functions[-1]:
            message = "`time.sleep` is called in an `async` function, where everything else waits for it"
            self.found.append((node.lineno, message, "write `await asyncio.sleep(…)`"))


def _prefixes(name: str) -> Iterator[str]:
    parts = name.split(".")
    return (".".join(parts[:length]) for length in range(1, len(parts) + 1))
