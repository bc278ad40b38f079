"""The command `python -m tenon.build --output FILE`.

It ends with 0, with 1 if the plugin has problems, and with 2 if it was called wrongly or something
that builds components is missing.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from . import componentize, dependencies, description, project, sections, unavailable, world
from .problem import BuildError, ToolChainError

#: The package, which goes into the component without these parts.
_PACKAGE = Path(__file__).resolve().parent.parent
_LEFT_OUT = {"build", "testing"}


def main() -> int:
    """Builds a component as the arguments say."""
    parser = argparse.ArgumentParser(
        prog="python -m tenon.build", description="Build the component of a plugin"
    )
    parser.add_argument("--output", type=Path, required=True, metavar="FILE", help="the component to write")
    parser.add_argument(
        "--folder", type=Path, default=Path("."), metavar="DIR", help="the folder with plugin.toml and app.py"
    )
    parser.add_argument("--json", action="store_true", help="print problems and the result as JSON")
    parser.add_argument("--timings", action="store_true", help="say how long each step takes")
    arguments = parser.parse_args()
    try:
        built = build(arguments.folder.resolve(), arguments.output.resolve(), arguments.timings)
    except ToolChainError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except BuildError as error:
        if arguments.json:
            print(json.dumps({"problems": [problem.to_json() for problem in error.problems]}))
        else:
            for problem in error.problems:
                print(f"error: {problem}", file=sys.stderr)
        return 1
    if arguments.json:
        print(json.dumps(built))
    else:
        print(f"{arguments.output}: {built['size']} bytes, {', '.join(built['worlds'])}")
    return 0


def build(folder: Path, output: Path, shows_timings: bool = False) -> dict[str, Any]:
    """Builds the component of a folder, and says which worlds it has and how many bytes.

    Raises:
        BuildError: If the plugin has problems.
        ToolChainError: If something that builds components is missing.
    """
    timings = _Timings()
    plugin = project.read(folder)
    componentize.check()
    work = _work(folder)
    site = dependencies.install(plugin, work)
    timings.end("dependencies")
    package = _copy_package(work / "sdk")
    described = description.describe(plugin, [package, site])
    timings.end("describe")
    for warning in [
        *description.warnings(described, plugin.capabilities),
        *unavailable.warnings(folder, plugin.capabilities),
    ]:
        print(f"warning: {warning}", file=sys.stderr)
    wit = world.write(work / "wit", world.world(described, plugin.capabilities))
    entry = componentize.write_entry(work / "entry", plugin.identity)
    whole = work / "component.wasm"
    componentize.componentize(wit, entry, [folder, site, package], whole)
    timings.end("componentize")
    component = sections.without_names(whole.read_bytes())
    whole.unlink()
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_bytes(component)
    timings.end("strip")
    if shows_timings:
        timings.show()
    return {"worlds": described["worlds"], "size": len(component)}


def _work(folder: Path) -> Path:
    """The folder of what a build keeps for the next."""
    work = folder / ".tenon" / "build"
    work.mkdir(parents=True, exist_ok=True)
    (work / ".gitignore").write_text("*\n")
    return work


def _copy_package(to: Path) -> Path:
    """Copies what goes into the component of this package."""

    def left_out(folder: str, names: list[str]) -> set[str]:
        return {"__pycache__"} | (_LEFT_OUT if Path(folder) == _PACKAGE else set())

    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(_PACKAGE, to / _PACKAGE.name, ignore=left_out)
    return to


class _Timings:
    """How long the steps take."""

    def __init__(self) -> None:
        self._last = time.monotonic()
        self._steps: list[tuple[str, float]] = []

    def end(self, step: str) -> None:
        now = time.monotonic()
        self._steps.append((step, now - self._last))
        self._last = now

    def show(self) -> None:
        for step, seconds in self._steps:
            print(f"{step}: {seconds:.2f} s", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
