"""Runs componentize-py, which makes the component."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from .problem import BuildError, Problem, ToolChainError
from .project import MODULE

#: The release whose Python, bindings and memory the package is written for.
VERSION = "0.25.1"

#: componentize-py has no `__main__`, and its script may be in another folder than the interpreter.
_PROGRAM = "import sys; from componentize_py import script; sys.exit(script())"

#: The module that componentize-py is given.
_ENTRY = "tenon_entry"


def check() -> None:
    """Looks for componentize-py in the environment of this interpreter.

    Raises:
        ToolChainError: If it is missing, or another release.
    """
    hint = f"{sys.executable} -m pip install componentize-py=={VERSION}"
    try:
        found = importlib.metadata.version("componentize-py")
    except importlib.metadata.PackageNotFoundError:
        raise ToolChainError("componentize-py, which makes the component, is missing", hint) from None
    if found != VERSION:
        raise ToolChainError(f"componentize-py {found} is installed, and {VERSION} is needed", hint)


def write_entry(folder: Path, identity: dict[str, str]) -> Path:
    """Writes the module that exports what the author's module contributes."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    text = f"from tenon.component import serve\n\nglobals().update(serve({MODULE!r}, **{identity!r}))\n"
    (folder / f"{_ENTRY}.py").write_text(text, encoding="utf-8")
    return folder


def componentize(wit: Path, entry: Path, paths: list[Path], output: Path) -> None:
    """Makes the component.

    Args:
        wit: The folder with the world `component`.
        entry: The folder of the module that `write_entry` has written.
        paths: The other folders of modules.
        output: The file of the component.

    Raises:
        BuildError: If the author's module cannot be imported in a component, or the tool fails.
    """
    command = [sys.executable, "-c", _PROGRAM, "--quiet", "--wit-path", str(wit), "--world", "component"]
    command += ["componentize", _ENTRY, "--output", str(output)]
    for path in [entry, *paths]:
        command += ["--python-path", str(path)]
    done = subprocess.run(
        command,
        cwd=entry,
        env={**os.environ, "VIRTUAL_ENV": str(_environment(entry.parent))},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
    )
    if done.returncode == 0:
        return
    # The author's module can be imported natively, and not in a component: it needs what that has not.
    problem = re.search(r"tenon-problem: (\{.*\})", done.stderr)
    if problem:
        raise BuildError(Problem(**json.loads(problem[1])))
    raise BuildError(Problem(f"componentize-py ended with {done.returncode}\n{done.stderr.strip()}"))


def _environment(work: Path) -> Path:
    """A virtual environment without packages. Without one, componentize-py would let the component import
    whatever is installed for the `python3` of PATH."""
    folder = work / "environment"
    (folder / "lib" / "site-packages").mkdir(parents=True, exist_ok=True)
    return folder
