"""Why the author's module cannot be imported: natively, or in a component that is being built."""

from __future__ import annotations

import inspect
import os
import re
import sys
import traceback

from ._errors import DefinitionError
from ._names import nearest, suggestion
from ._source import OWN, short


def problem_of(exception: BaseException, module: str, folder: str) -> DefinitionError:
    """The mistake behind an exception of an import."""
    if isinstance(exception, DefinitionError):
        return exception
    if isinstance(exception, SyntaxError):
        file = short(exception.filename or os.path.join(folder, f"{module}.py"))
        return DefinitionError(exception.msg, hint="correct the syntax", file=file, line=exception.lineno)
    if isinstance(exception, ModuleNotFoundError):
        return _missing(exception, folder)
    file, line = _place(exception, folder)
    message, hint = _of_package(exception) or _of_module(exception, module)
    return DefinitionError(message, hint=hint, file=file, line=line)


def _of_module(exception: BaseException, module: str) -> tuple[str, str]:
    """The message and hint for what the module itself does."""
    if isinstance(exception, SystemExit):
        return (
            f"importing {module} ended the interpreter with {exception.code or 0}",
            "what is at the top of the file runs once, when the component is built",
        )
    # What a service says to do is for calls.
    said = str(exception).partition("\n  hint: ")[0]
    message = f"importing {module} failed: {type(exception).__name__}: {said}"
    innermost = traceback.extract_tb(exception.__traceback__)[-1].filename
    if isinstance(exception, EOFError):
        return message, "a plugin has no terminal: ask the user with `tenon.user.ask`, or read a setting with `tenon.config`"
    if os.path.abspath(innermost).startswith(OWN):
        # The service of a host, or the call at hand.
        return message, "a module is imported once, when the component is built: do this within a function"
    return message, "correct this line, or what it calls: it runs when the module is imported"


#: What Python says of a name or an option that there is not. What it says next depends on its version.
_NO_NAME = re.compile(r"^cannot import name '(?P<name>\w+)' from '(?P<of>tenon[\w.]*)'")
_NO_MEMBER = re.compile(r"^module '(?P<of>tenon[\w.]*)' has no attribute '(?P<name>\w+)'")
_NO_OPTION = re.compile(r"^(?P<of>[\w.]+)\(\) got an unexpected keyword argument '(?P<name>\w+)'")


def _of_package(exception: BaseException) -> tuple[str, str] | None:
    """The message and hint for a name that this package has not, or an option that a decorator has not."""
    text = str(exception)
    if isinstance(exception, (ImportError, AttributeError)):
        found = _NO_NAME.match(text) or _NO_MEMBER.match(text)
        known = getattr(sys.modules.get(found["of"]), "__dict__", {}) if found else {}
        if found and known:
            names = known.get("__all__") or [name for name in known if not name.startswith("_")]
            meant = nearest(found["name"], names)
            hint = f"write `{meant}`" if meant else f"it has {', '.join(names)}"
            if found["name"] in ("FastMCP", "MCP", "Server"):
                hint = _SERVERS
            return f'{found["of"]} has no "{found["name"]}"{suggestion(found["name"], names)}', hint
    if isinstance(exception, TypeError):
        found = _NO_OPTION.match(text)
        decorator = found["of"].removesuffix(".__init__") if found else ""
        of = getattr(sys.modules["tenon"], decorator, None)
        if found and callable(of) and of.__module__.startswith("tenon."):
            names = list(inspect.signature(of).parameters)
            message = f'`{decorator}` has no option "{found["name"]}"{suggestion(found["name"], names)}'
            return message, f"its options are {', '.join(names)}"
    return None


def _missing(missing: ModuleNotFoundError, folder: str) -> DefinitionError:
    file, line = _place(missing, folder)
    top = (missing.name or "").split(".")[0]
    if missing.name in ("tenon.testing", "tenon.build"):
        hint = "components do not have it: import it in tests alone"
    elif top in _WITHOUT:
        hint = f"a component has {_WITHOUT[top]}"
    elif top in _INSTEAD:
        hint = _INSTEAD[top]
    elif top in sys.stdlib_module_names:
        hint = "components have no such module"
    else:
        hint = f'add "{top}" to the `dependencies` of pyproject.toml'
    return DefinitionError(f'there is no module "{missing.name}"', hint=hint, file=file, line=line)


#: What no component has.
_WITHOUT = {
    "ssl": "no sockets: use tenon.http",
    "_ssl": "no sockets: use tenon.http",
    "ctypes": "no machine code",
    "_ctypes": "no machine code",
    "sqlite3": "no SQLite: use tenon.state",
    "_sqlite3": "no SQLite: use tenon.state",
    "readline": "no terminal",
    "_multiprocessing": "no processes",
    "multiprocessing": "no processes",
    "tkinter": "no windows",
    "curses": "no terminal",
}


_SERVERS = (
    "a plugin is no server, for the host serves its tools: write `from tenon import tool`, and `@tool` above each function"
)

_CLIENTS = "a component has no sockets: use tenon.http, which has `get`, `post` and the like"

_COMPILED = "it has machine code, which cannot run in a component: take a package in pure Python, or a plugin in Rust"

#: What authors often import from packages that no component can use.
_INSTEAD = {
    "fastmcp": _SERVERS, "mcp": _SERVERS,
    "requests": _CLIENTS, "httpx": _CLIENTS, "aiohttp": _CLIENTS, "urllib3": _CLIENTS, "websockets": _CLIENTS,
    "numpy": _COMPILED, "pandas": _COMPILED, "scipy": _COMPILED, "torch": _COMPILED, "PIL": _COMPILED, "lxml": _COMPILED,
}  # fmt: skip


def _place(exception: BaseException, folder: str) -> tuple[str, int | None]:
    """The innermost line of the author's own."""
    root = os.path.abspath(folder)
    frames = traceback.extract_tb(exception.__traceback__)
    own = [frame for frame in frames if os.path.abspath(frame.filename).startswith(root + os.sep)]
    return (short(own[-1].filename), own[-1].lineno) if own else ("", None)
