"""The WIT of a component: a world of what it contributes and what it requests."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

#: The contract in its sync edition, and the part of WASI that components import beside it.
WIT = Path(__file__).parent / "wit"

_VERSION = "0.2.0"

#: The imports that each capability of `plugin.toml` stands for.
_IMPORTS = {
    "secrets": [f"tenon:plugin/secrets@{_VERSION}"],
    "tools": [f"tenon:plugin/host-tools@{_VERSION}"],
    "providers": [f"tenon:plugin/inference@{_VERSION}"],
    "user": [f"tenon:plugin/user@{_VERSION}"],
    "messaging": [f"tenon:plugin/messaging@{_VERSION}"],
    "memory": [f"tenon:plugin/memory@{_VERSION}"],
    "state": ["wasi:keyvalue/store@0.2.0-draft2", "wasi:keyvalue/atomics@0.2.0-draft2"],
    "network": ["wasi:http/types@0.2.0", "wasi:http/outgoing-handler@0.2.0", "wasi:io/streams@0.2.0"],
}

#: What functions that await need, and HTTP.
_WAITING = ["wasi:io/poll@0.2.0", "wasi:clocks/monotonic-clock@0.2.0"]

#: Names of worlds that are words of WIT.
_ESCAPED = {"resource": "%resource"}


def world(description: dict[str, Any], capabilities: dict[str, Any]) -> str:
    """The text of the world `component`."""
    worlds = [_ESCAPED.get(name, name) for name in description["worlds"]]
    imports = [name for capability in _IMPORTS if capability in capabilities for name in _IMPORTS[capability]]
    if description["awaits"] or "network" in capabilities:
        imports += _WAITING
    lines = [f"    include tenon:plugin/{name}@{_VERSION};" for name in worlds]
    lines += [f"    export tenon:plugin/{name}@{_VERSION};" for name in description["exports"]]
    lines += [f"    import {name};" for name in imports]
    return "\n".join(["package local:plugin;", "", "world component {", *lines, "}", ""])


def write(folder: Path, text: str) -> Path:
    """Writes a folder of WIT with a world and what it refers to."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(WIT, folder / "deps")
    (folder / "component.wit").write_text(text, encoding="utf-8")
    return folder
