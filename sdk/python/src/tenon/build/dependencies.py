"""Installs the packages that go into the component: their wheels in pure Python."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from .problem import BuildError, Problem, ToolChainError
from .project import PYTHON, Project, line_of, name_of

_PURE = [
    "--only-binary=:all:",
    "--platform",
    "any",
    "--implementation",
    "py",
    "--abi",
    "none",
    "--python-version",
    PYTHON,
]


def install(project: Project, work: Path) -> Path:
    """Installs the dependencies if they have changed since the last build, and returns their folder.

    Raises:
        BuildError: If one cannot be installed, or has machine code.
        ToolChainError: If there is no pip.
    """
    site, mark = work / "site", work / "dependencies"
    wanted = project.dependencies
    key = hashlib.sha256(json.dumps([PYTHON, wanted]).encode()).hexdigest()
    if site.is_dir() and mark.is_file() and mark.read_text() == key:
        return site
    shutil.rmtree(site, ignore_errors=True)
    mark.unlink(missing_ok=True)
    site.mkdir()
    if wanted:
        if importlib.util.find_spec("pip") is None:
            raise ToolChainError(
                "pip, which installs the dependencies, is missing", f"{sys.executable} -m ensurepip"
            )
        done = _pip([*_PURE, "--target", str(site), "--no-compile", *wanted])
        if done.returncode != 0:
            raise BuildError(*(_with_machine_code(project) or [_failure(project, done.stderr)]))
        # The programs of packages are of no use in a component.
        shutil.rmtree(site / "bin", ignore_errors=True)
    mark.write_text(key)
    return site


def _pip(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--quiet", *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def _failure(project: Project, said: str) -> Problem:
    """What pip says of another failure, such as a version that does not exist."""
    errors = [line[len("ERROR: ") :] for line in said.splitlines() if line.startswith("ERROR: ")]
    named = [name for name in map(name_of, project.dependencies) if name in said.lower()]
    return Problem(
        "\n  ".join(["the dependencies cannot be installed", *(errors or said.strip().splitlines()[-3:])]),
        "correct the `dependencies`, or see whether the package index can be reached",
        "pyproject.toml",
        line_of(project.folder, named[0] if named else "dependencies"),
    )


def _with_machine_code(project: Project) -> list[Problem]:
    """The dependencies without a pure wheel, with what needs them."""
    with tempfile.TemporaryDirectory() as nowhere:
        target = ["--target", nowhere]
        resolved = _pip(["--dry-run", "--report", "-", "--ignore-installed", *target, *project.dependencies])
        if resolved.returncode != 0:
            return []
        installs = json.loads(resolved.stdout)["install"]
        requires = {
            one["metadata"]["name"]: set(map(name_of, one["metadata"].get("requires_dist", [])))
            for one in installs
        }
        problems = []
        for one in installs:
            name, version = one["metadata"]["name"], one["metadata"]["version"]
            if one["download_info"]["url"].endswith("-none-any.whl"):
                continue
            pure = _pip([*_PURE, "--dry-run", "--no-deps", *target, f"{name}=={version}"])
            if pure.returncode == 0:
                continue
            needing = [other for other, names in requires.items() if name_of(name) in names]
            problems.append(_machine_code(project, name, version, needing))
        return problems


def _machine_code(project: Project, name: str, version: str, needing: list[str]) -> Problem:
    because = f", which {' and '.join(needing)} needs," if needing else ""
    direct = set(map(name_of, project.dependencies))
    named = [one for one in [name, *needing] if name_of(one) in direct]
    return Problem(
        f"{name} {version}{because} has no pure-Python wheel: "
        "it has machine code, which cannot run in a component",
        "remove it from the `dependencies` of pyproject.toml, or take a package in pure Python",
        "pyproject.toml",
        line_of(project.folder, name_of(named[0]) if named else "dependencies"),
    )
