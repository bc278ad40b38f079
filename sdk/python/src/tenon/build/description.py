"""What the author's source contributes, which a process of its own finds out by importing it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from .._host import LINES
from .problem import BuildError, Problem
from .project import MODULE, Project

#: How many seconds the import of the author's module may take.
_TIME_LIMIT = 60

#: The capabilities that have other names than their services.
_CAPABILITIES = {"http": "network", "inference": "providers"}


def describe(project: Project, paths: list[Path]) -> dict[str, Any]:
    """What the author's module contributes, as `tenon.describe` says it.

    Args:
        project: The plugin.
        paths: The folders of modules that the component gets.

    Raises:
        BuildError: If the module cannot be imported, or its definitions have mistakes.
    """
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    # `-S`: a component has none of the packages that are installed beside the builder.
    command = [sys.executable, "-S", "-m", "tenon.describe", MODULE]
    file, hint = f"{MODULE}.py", "what is at the top of the file runs once, when the component is built"
    try:
        done = subprocess.run(
            command,
            cwd=project.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            encoding="utf-8",
            timeout=_TIME_LIMIT,
        )
    except subprocess.TimeoutExpired:
        problem = Problem(f"importing {MODULE} takes longer than {_TIME_LIMIT} s", hint, file)
        raise BuildError(problem) from None
    if not done.stdout.strip():
        problem = Problem(f"importing {MODULE} ended the interpreter with {done.returncode}", hint, file)
        raise BuildError(problem)
    description: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    if description["problems"]:
        raise BuildError(*(Problem(**problem) for problem in description["problems"]))
    return description


def warnings(description: dict[str, Any], capabilities: dict[str, Any]) -> list[Problem]:
    """The services that the source names and the manifest does not request."""
    found = []
    for service, (file, line) in description["services"].items():
        capability = _CAPABILITIES.get(service, service)
        if capability not in capabilities:
            message = f"tenon.{service} is used, and plugin.toml does not request `{capability}`"
            hint = f"write `{LINES[service]}` under [capabilities] of plugin.toml"
            found.append(Problem(message, hint, file, line))
    return found
