#!/usr/bin/env python3
"""Writes the WIT of the contract into the package: `wit/plugin` in its sync edition, and `wit/keyvalue`.

    update_wit.py [--check]

The sync edition is that of `sync_edition` of the crate tenon-contract. `--check` writes nothing, and
ends with 1 if the package has another WIT than the checkout.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

SDK = Path(__file__).resolve().parent
CONTRACT = SDK.parent.parent / "wit"
PACKAGED = SDK / "src" / "tenon" / "build" / "wit"

#: What only async code can use: interfaces with streams, and the worlds that need one.
ASYNC_FILES = {"provider-stream.wit"}
ASYNC_WORLDS = ("world streaming-provider {",)


def contract() -> dict[str, str]:
    """The files of the contract, by their paths in the package."""
    files = {
        f"tenon-plugin/{file.name}": sync_edition(file.read_text(encoding="utf-8"))
        for file in sorted((CONTRACT / "plugin").glob("*.wit"))
        if file.name not in ASYNC_FILES
    }
    keyvalue = CONTRACT / "keyvalue" / "keyvalue.wit"
    return {**files, "keyvalue/keyvalue.wit": keyvalue.read_text(encoding="utf-8")}


def sync_edition(text: str) -> str:
    """A file of the contract without `async` and without the worlds that need it."""
    blocks = text.rstrip().split("\n\n")
    kept = [block for block in blocks if not any(world in block for world in ASYNC_WORLDS)]
    return "\n\n".join(kept).replace("async func(", "func(") + "\n"


def packaged() -> dict[str, str]:
    """The files of the contract that the package has."""
    found = [file for folder in ("tenon-plugin", "keyvalue") for file in (PACKAGED / folder).glob("*")]
    return {file.relative_to(PACKAGED).as_posix(): file.read_text(encoding="utf-8") for file in found}


def main() -> int:
    """Writes the files, or compares them."""
    wanted = contract()
    if "--check" in sys.argv[1:]:
        there = packaged()
        names = sorted(wanted.keys() | there.keys())
        differing = [name for name in names if wanted.get(name) != there.get(name)]
        for name in differing:
            print(f"error: {name} is not that of the contract", file=sys.stderr)
        if differing:
            print(f"  hint: run {Path(__file__).name}", file=sys.stderr)
        return 1 if differing else 0
    for folder in ("tenon-plugin", "keyvalue"):
        shutil.rmtree(PACKAGED / folder, ignore_errors=True)
    for name, text in wanted.items():
        (PACKAGED / name).parent.mkdir(parents=True, exist_ok=True)
        (PACKAGED / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
