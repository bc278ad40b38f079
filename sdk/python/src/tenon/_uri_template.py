"""URI templates (RFC 6570): which URIs match one, and the URI for given values.

Matching has to be certain, so variables are single: no `{x*}` and no `{x:3}`.
"""

from __future__ import annotations

import re
from typing import Mapping
from urllib.parse import quote, unquote

_EXPRESSION = re.compile(r"\{([^{}]*)\}")
_VARIABLE = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*$")
_RESERVED = ":/?#[]@!$&'()*+,;="

#: For each operator: what comes first, what comes between, whether names are written, whether
#: reserved characters stay, and what a value looks like in a URI.
_OPERATORS: dict[str, tuple[str, str, bool, bool, str]] = {
    "": ("", ",", False, False, r"[^/?#,&]+"),
    "+": ("", ",", False, True, r".+"),
    "#": ("#", ",", False, True, r".*"),
    ".": (".", ".", False, False, r"[^/?#.]+"),
    "/": ("/", "/", False, False, r"[^/?#]+"),
    ";": (";", ";", True, False, r"[^/?#;]*"),
    "?": ("?", "&", True, False, r"[^&#]*"),
    "&": ("&", "&", True, False, r"[^&#]*"),
}


class TemplateError(ValueError):
    """A text that is no template, or one whose matches are uncertain."""


class UriTemplate:
    """A URI template, or a URI without variables.

    Raises:
        TemplateError: If the text is none.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.parts: list[tuple[str, list[str]] | str] = []
        end = 0
        for match in _EXPRESSION.finditer(text):
            self._literal(text[end : match.start()])
            self._expression(match[1])
            end = match.end()
        self._literal(text[end:])
        if not re.match(r"^[A-Za-z][A-Za-z0-9+.-]*:", text):
            raise TemplateError(f'"{text}" has no scheme: write it as `notes://…`')
        if len(set(self.variables)) < len(self.variables):
            raise TemplateError(f'"{text}" has a variable twice')
        self.pattern = re.compile("".join(self._pattern(part) for part in self.parts))

    @property
    def variables(self) -> list[str]:
        """The names of the variables, in their order."""
        return [name for part in self.parts if isinstance(part, tuple) for name in part[1]]

    @property
    def optional(self) -> set[str]:
        """Variables that a matching URI may lack: those of a query."""
        return {
            name
            for part in self.parts
            if isinstance(part, tuple) and part[0] in "?&;#" and part[0]
            for name in part[1]
        }

    @property
    def is_fixed(self) -> bool:
        """Whether it is a URI without variables."""
        return not self.variables

    def _literal(self, text: str) -> None:
        if "{" in text or "}" in text:
            raise TemplateError(f'"{self.text}" has a brace without its counterpart')
        if text:
            self.parts.append(text)

    def _expression(self, text: str) -> None:
        operator = text[0] if text and text[0] in "+#./;?&" else ""
        names = text[len(operator) :].split(",")
        for name in names:
            if name.endswith("*") or ":" in name:
                raise TemplateError(
                    f'the variable "{name}" of "{self.text}" stands for many values or a part of one; write "{{{name.rstrip("*").split(":")[0]}}}"'
                )
            if not _VARIABLE.match(name):
                raise TemplateError(f'"{name}" in "{self.text}" is no name of a variable')
        if len(names) > 1 and operator in ("+", "#"):
            raise TemplateError(f'"{{{text}}}" in "{self.text}" can be matched in two ways')
        before = self.parts[-1] if self.parts else None
        if isinstance(before, tuple) and operator in ("", "+"):
            raise TemplateError(
                f'two variables of "{self.text}" follow each other without a text between them'
            )
        self.parts.append((operator, names))

    def _pattern(self, part: tuple[str, list[str]] | str) -> str:
        if isinstance(part, str):
            return re.escape(part)
        operator, names = part
        first, between, named, _, value = _OPERATORS[operator]
        if operator in ("?", "&"):
            return r"(?P<_query%d>%s[^#]*)?" % (self.parts.index(part), re.escape(first))
        groups = [f"{re.escape(name) + '=' if named else ''}(?P<{name}>{value})" for name in names]
        pattern = re.escape(first) + re.escape(between).join(groups)
        return f"(?:{pattern})?" if operator in (";", "#") else pattern

    def match(self, uri: str) -> dict[str, str] | None:
        """The values of the variables in a URI, or `None` if it does not match."""
        found = self.pattern.fullmatch(uri)
        if found is None:
            return None
        values = {}
        for name, value in found.groupdict().items():
            if value is None:
                continue
            if not name.startswith("_query"):
                values[name] = unquote(value)
                continue
            names = self.parts[int(name[6:])][1]
            for pair in value[1:].split("&"):
                key, _, text = pair.partition("=")
                if key and key not in names:
                    return None
                if key:
                    values[key] = unquote(text)
        return values

    def expand(self, values: Mapping[str, object]) -> str:
        """The URI for these values.

        Raises:
            TemplateError: If a variable has no value, or a value no variable.
        """
        for name in values:
            if name not in self.variables:
                raise TemplateError(f'"{self.text}" has no variable "{name}"')
        return "".join(self._expanded(part, values) for part in self.parts)

    def _expanded(self, part: tuple[str, list[str]] | str, values: Mapping[str, object]) -> str:
        if isinstance(part, str):
            return part
        operator, names = part
        first, between, named, reserved, _ = _OPERATORS[operator]
        written = []
        for name in names:
            value = values.get(name)
            if value is None or value == "":
                if name in self.optional:
                    continue
                raise TemplateError(f'the variable "{name}" of "{self.text}" has no value')
            text = quote(str(value), safe=_RESERVED if reserved else "")
            written.append(f"{name}={text}" if named else text)
        return first + between.join(written) if written else ""
