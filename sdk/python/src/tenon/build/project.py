"""What `plugin.toml` and `pyproject.toml` of a plugin's folder say."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable

from ..describe import RESERVED
from .problem import BuildError, Problem

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

#: The module with the plugin's functions.
MODULE = "app"

#: The Python that componentize-py puts into components.
PYTHON = "3.14"

#: The package with `tenon` itself, which every component gets.
PACKAGE = "tenon-sdk"


@dataclass(frozen=True)
class Project:
    """A plugin's folder.

    Attributes:
        folder: Its absolute path.
        identity: `name`, `version` and `description` of the plugin.
        capabilities: What the manifest requests.
        dependencies: The packages that go into the component, without this package itself.
    """

    folder: Path
    identity: dict[str, str]
    capabilities: dict[str, Any]
    dependencies: list[str]


def read(folder: Path) -> Project:
    """Reads a plugin's folder.

    Raises:
        BuildError: If there is no manifest, or a file is no TOML or has members of other types.
    """
    manifest = _table(folder, "plugin.toml")
    if manifest is None:
        hint = "run it in the plugin's folder; `tenon new NAME --lang python` makes a plugin"
        raise BuildError(Problem(f"there is no plugin.toml in {folder}", hint))
    package = (_table(folder, "pyproject.toml") or {}).get("project", {})
    about = manifest.get("plugin", {})
    if not isinstance(about, dict) or not isinstance(about.get("id"), str):
        problem = Problem("the plugin has no id", 'write `id = "NAME"` under [plugin]', "plugin.toml", 1)
        raise BuildError(problem)
    dependencies = package.get("dependencies", [])
    if not isinstance(dependencies, list) or not all(isinstance(one, str) for one in dependencies):
        file, line = "pyproject.toml", line_of(folder, "dependencies")
        problem = Problem("`dependencies` is no list of texts", 'write `dependencies = ["NAME"]`', file, line)
        raise BuildError(problem)
    _check_python(folder, package.get("requires-python", ""))
    _check_modules(folder)
    return Project(
        folder=folder,
        identity={
            "name": about["id"],
            "version": about.get("version") or package.get("version", "0.0.0"),
            "description": about.get("description") or package.get("description", ""),
        },
        capabilities=manifest.get("capabilities", {}),
        dependencies=[one for one in dependencies if name_of(one) != PACKAGE],
    )


#: Which versions a clause of `requires-python` allows.
_ALLOWS: dict[str, Callable[[tuple[int, ...], tuple[int, ...]], bool]] = {
    ">=": lambda has, wanted: has >= wanted,
    ">": lambda has, wanted: has > wanted,
    "<": lambda has, wanted: has < wanted,
    "<=": lambda has, wanted: has <= wanted,
}


def _check_python(folder: Path, requires: Any) -> None:
    """That the Python of components is of the versions that the project requires."""
    has = tuple(map(int, PYTHON.split(".")))
    for sign, version in re.findall(r"(>=|<=|>|<)\s*(\d+(?:\.\d+)?)", str(requires)):
        if not _ALLOWS[sign](has, tuple(map(int, version.split(".")))):
            raise BuildError(
                Problem(
                    f'the project requires Python "{requires}", and components have Python {PYTHON}',
                    f'write `requires-python = ">=3.10"`, and use nothing newer than Python {PYTHON}',
                    "pyproject.toml",
                    line_of(folder, "requires-python"),
                )
            )


def _check_modules(folder: Path) -> None:
    """That no file of the plugin hides a module that a component needs. `tenon.describe` would be the first."""
    for name in sorted(RESERVED - {"component"}):
        if (folder / f"{name}.py").exists():
            file = f"{name}.py"
            problem = Problem(f"{file} hides the module {name}, which a component needs", "rename the file", file, 1)
            raise BuildError(problem)


def name_of(requirement: str) -> str:
    """The name of the package that a requirement such as `Some_Name[x] >= 1` is about, normalized."""
    name = re.split(r"[^A-Za-z0-9_.-]", requirement.strip())[0]
    return re.sub(r"[-_.]+", "-", name).lower()


def line_of(folder: Path, name: str) -> int | None:
    """The line of `pyproject.toml` that names a package or sets a member, or else the one with `dependencies`."""
    try:
        lines = (folder / "pyproject.toml").read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return None
    spelled = "[-_.]+".join(map(re.escape, name.split("-")))
    pattern = re.compile(rf"[\"']{spelled}\b", re.I)
    found = [at for at, line in enumerate(lines, 1) if pattern.search(line)]
    found += [at for at, line in enumerate(lines, 1) if re.match(rf"({spelled}|dependencies)\b", line)]
    return found[0] if found else None


def _table(folder: Path, name: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads((folder / name).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as error:  # The errors of TOML and of UTF-8.
        message, _, place = str(error).partition(" (at line ")
        line = re.match(r"\d+", place)
        message = message[:1].lower() + message[1:]
        raise BuildError(
            Problem(message, "correct the TOML", name, int(line[0]) if line else None)
        ) from error
