"""What a docstring says: of the function as a whole, and of each of its parameters.

Sections in the styles of Google, NumPy and Sphinx are understood.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

_PARAMETERS = {"args", "arguments", "parameters", "params", "attributes", "keyword args"}
_OTHERS = {"returns", "return", "yields", "raises", "raise", "example", "examples", "note", "notes"}
_DROPPED = {"raises", "raise", "example", "examples"}

_GOOGLE = re.compile(r"^([A-Za-z][A-Za-z ]*):\s*$")
_ENTRY = re.compile(r"^\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$")
_NUMPY_ENTRY = re.compile(r"^\*{0,2}(\w+(?:\s*,\s*\w+)*)\s*(?::.*)?$")
_SPHINX = re.compile(r"^:(\w+)\s*([^:]*):\s*(.*)$")


class Docstring:
    """A docstring, taken apart."""

    def __init__(self, text: str | None) -> None:
        #: What it says of the function, for the model.
        self.description = ""
        #: What it says of each parameter.
        self.parameters: dict[str, str] = {}
        if text:
            self._parse(inspect.cleandoc(text).splitlines())

    @classmethod
    def of(cls, thing: Any) -> "Docstring":
        """That of a function or class; what a dataclass makes of itself is none."""
        text = thing.__doc__
        if isinstance(thing, type) and text and text.startswith(f"{thing.__name__}("):
            text = None
        return cls(text)

    def _parse(self, lines: list[str]) -> None:
        kept: list[str] = []
        at = 0
        while at < len(lines):
            line = lines[at]
            below = lines[at + 1].strip() if at + 1 < len(lines) else ""
            name = line.strip().lower()
            google = _GOOGLE.match(line)
            if name in _PARAMETERS | _OTHERS and below and set(below) == {"-"}:
                body, at = _until_numpy_section(lines, at + 2)
                self._section(name, body, kept, numpy=True)
            elif google and google[1].lower() in _PARAMETERS | _OTHERS:
                body, at = _indented(lines, at + 1)
                self._section(google[1].lower(), body, kept, numpy=False)
            elif match := _SPHINX.match(line):
                body, at = _continued(lines, at + 1)
                self._field(match, body, kept)
            else:
                kept.append(line)
                at += 1
        text = "\n".join(kept).strip()
        self.description = re.sub(r"\n{3,}", "\n\n", text)

    def _section(self, name: str, body: list[str], kept: list[str], *, numpy: bool) -> None:
        if name in _PARAMETERS:
            entries = _numpy_entries(body) if numpy else _google_entries(body)
            self.parameters.update(entries)
        elif name not in _DROPPED:
            text = " ".join(line.strip() for line in body).strip()
            if text:
                kept += ["", f"{name.capitalize()}: {text}"]

    def _field(self, match: re.Match[str], body: list[str], kept: list[str]) -> None:
        field, subject, first = match.groups()
        text = " ".join([first, *(line.strip() for line in body)]).strip()
        if field in ("param", "parameter", "arg", "argument", "key", "keyword") and subject:
            # `:param int x:` names the type first.
            self.parameters[subject.split()[-1].lstrip("*")] = text
        elif field in ("return", "returns"):
            kept += ["", f"Returns: {text}"]


def _indented(lines: list[str], at: int) -> tuple[list[str], int]:
    body: list[str] = []
    while at < len(lines) and (not lines[at].strip() or lines[at][0].isspace()):
        body.append(lines[at])
        at += 1
    return inspect.cleandoc("\n" + "\n".join(body)).splitlines(), at


def _continued(lines: list[str], at: int) -> tuple[list[str], int]:
    body: list[str] = []
    while at < len(lines) and lines[at].strip() and lines[at][0].isspace():
        body.append(lines[at])
        at += 1
    return body, at


def _until_numpy_section(lines: list[str], at: int) -> tuple[list[str], int]:
    body: list[str] = []
    while at < len(lines):
        below = lines[at + 1].strip() if at + 1 < len(lines) else ""
        if lines[at].strip() and below and set(below) == {"-"}:
            break
        body.append(lines[at])
        at += 1
    return body, at


def _google_entries(body: list[str]) -> dict[str, str]:
    entries: dict[str, list[str]] = {}
    name = None
    for line in body:
        match = None if line[:1].isspace() else _ENTRY.match(line)
        if match:
            name = match[1]
            entries[name] = [match[2]]
        elif name is not None:
            entries[name].append(line.strip())
    return {name: " ".join(text).strip() for name, text in entries.items()}


def _numpy_entries(body: list[str]) -> dict[str, str]:
    entries: dict[str, str] = {}
    names: list[str] = []
    for line in body:
        match = None if line[:1].isspace() else _NUMPY_ENTRY.match(line)
        if match:
            names = [name.strip() for name in match[1].split(",")]
            entries.update(dict.fromkeys(names, ""))
        else:
            for name in names:
                entries[name] = f"{entries[name]} {line.strip()}".strip()
    return entries
