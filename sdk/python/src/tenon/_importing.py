"""Why the author's module cannot be imported: natively, or in a component that is being built."""

from __future__ import annotations

import os
import sys
import traceback

from ._errors import DefinitionError, Error
from ._source import short


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
    name = type(exception).__name__
    hint = "correct what runs when the module is imported"
    if isinstance(exception, Error):
        hint = "a module is imported once, when the component is built: do this within a function"
    message = f"importing {module} failed: {name}: {exception}"
    return DefinitionError(message, hint=hint, file=file, line=line)


def _missing(missing: ModuleNotFoundError, folder: str) -> DefinitionError:
    file, line = _place(missing, folder)
    top = (missing.name or "").split(".")[0]
    if missing.name in ("tenon.testing", "tenon.build"):
        hint = "components do not have it: import it in tests alone"
    elif top in _WITHOUT:
        hint = f"a component has {_WITHOUT[top]}"
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


def _place(exception: BaseException, folder: str) -> tuple[str, int | None]:
    """The innermost line of the author's own."""
    root = os.path.abspath(folder)
    frames = traceback.extract_tb(exception.__traceback__)
    own = [frame for frame in frames if os.path.abspath(frame.filename).startswith(root + os.sep)]
    return (short(own[-1].filename), own[-1].lineno) if own else ("", None)
