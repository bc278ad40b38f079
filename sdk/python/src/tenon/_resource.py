"""Resources: things to read, by their URIs."""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, TypeVar

from . import _run
from ._errors import Error, ErrorCode
from ._failure import to_error
from ._page import page
from ._registry import Contribution, attach, contribution_of
from ._signature import Signature
from ._source import mistake, place
from ._types import Mismatch
from ._types.base import shown
from ._types.scalar import plain
from ._uri_template import TemplateError, UriTemplate
from .content import ResourceContents, ResourceLink, to_json

F = TypeVar("F", bound=Callable[..., Any])


class Resource(Contribution):
    """A resource, or a family of them by a template."""

    kind = "resource"

    def __init__(self, function: Callable[..., Any], uri: str, options: dict[str, Any]) -> None:
        super().__init__(function, options["name"] or function.__name__)
        if not uri:
            raise mistake(
                function,
                f"the {self.what} names no URI",
                f'write it in its decorator: `@resource("{self.name}://all")`',
            )
        try:
            self.template = UriTemplate(uri)
        except TemplateError as wrong:
            raise mistake(
                function,
                f"the URI of the {self.what} is none: {wrong}",
                'write a scheme, and each variable by itself: `@resource("notes://{folder}/{name}")`',
            ) from None
        self.uri, self.options = uri, options
        self.signature = Signature(function, self.what)
        self.description = options["description"] or self.signature.docstring.description or None
        self._check_variables()
        if options["list"] is not None and self.template.is_fixed:
            raise mistake(
                function,
                f"the {self.what} has a fixed URI and lists itself",
                "remove `list=`, or write a template",
            )

    def _check_variables(self) -> None:
        variables, members = set(self.template.variables), self.signature.parameters.members
        for name in sorted(variables - set(members)):
            raise mistake(
                self.function,
                f"the {self.what} has no parameter for the variable `{name}` of its URI",
                f"add `{name}: str` to its parameters",
            )
        for name, member in members.items():
            if name not in variables and member.is_required:
                raise mistake(
                    self.function,
                    f"the parameter `{name}` of the {self.what} is no variable of its URI",
                    f"write `{{{name}}}` into the URI, or remove the parameter",
                )
            if name in self.template.optional and member.is_required:
                raise mistake(
                    self.function,
                    f"the URI of the {self.what} may lack the variable `{name}`",
                    f"give the parameter a default: `{name}: … | None = None`",
                )

    def link(self, uri: str, **more: Any) -> ResourceLink:
        """How the host lists a URI of it."""
        mime_type = self.options["mime_type"]
        link = ResourceLink(
            uri, self.name, self.options["title"], self.description, mime_type, self.options["size"],
            self.options["extra"],
        )  # fmt: skip
        return dataclasses.replace(link, **{name: value for name, value in more.items() if value is not None})

    def read(self, uri: str, values: dict[str, str]) -> list[ResourceContents]:
        """Reads it.

        Raises:
            Error: If it cannot be read.
        """
        try:
            returned = self.signature.call([], self.signature.parse_texts(values))
        except Exception as exception:
            raise to_error(exception) from exception
        parts = returned if _is_parts(returned) else [returned]
        return [self._contents(uri, part) for part in parts]

    def _contents(self, uri: str, value: Any) -> ResourceContents:
        mime_type = self.options["mime_type"]
        if isinstance(value, ResourceContents):
            of_body = value.mime_type if mime_type is None or value.mime_type != "text/plain" else mime_type
            return dataclasses.replace(value, uri=value.uri or uri, mime_type=of_body)
        if isinstance(value, str):
            return ResourceContents(value, mime_type or "text/plain", uri)
        if isinstance(value, (bytes, bytearray)):
            return ResourceContents(bytes(value), mime_type or "application/octet-stream", uri)
        if value is None:
            raise Error(ErrorCode.NOT_FOUND, f'this plugin has no resource "{uri}"', data={"uri": uri})
        try:
            return ResourceContents(to_json(plain(value, "")), mime_type or "application/json", uri)
        except Mismatch as mismatch:
            file, line = place(self.function)
            raise Error(
                ErrorCode.FAILED,
                f"the {self.what} returned something else than a resource may be: {mismatch} ({file}:{line} in {self.function.__name__})"
                "\n  hint: return str, bytes, a dataclass, a dict, ResourceContents or a list of these",
            ) from None

    def listed(self) -> list[ResourceLink]:
        """What there is now of it."""
        if self.template.is_fixed:
            return [self.link(self.uri)]
        lister = self.options["list"]
        if lister is None:
            return []
        try:
            return [self._entry(entry) for entry in _run.call(lister)]
        except Exception as exception:
            raise to_error(exception) from exception

    def _entry(self, entry: Any) -> ResourceLink:
        """A listed resource: a link, a dictionary of variables, or the value of the only variable."""
        if isinstance(entry, ResourceLink):
            if self.template.match(entry.uri) is None:
                raise self._wrong_entry(
                    f'"{entry.uri}", which is no URI of it', f"list URIs such as {self.uri}, or variables alone"
                )
            return entry
        if isinstance(entry, str):
            variables = [name for name in self.template.variables if name not in self.template.optional]
            if len(variables) != 1:
                named = ", ".join(f'"{name}": …' for name in variables)
                raise self._wrong_entry(
                    f"the text {entry!r}, and its template has several variables", f"list dictionaries: {{{named}}}"
                )
            entry = {variables[0]: entry}
        if not isinstance(entry, dict):
            raise self._wrong_entry(type(entry).__name__, "list texts, dictionaries of variables, or ResourceLink")
        try:
            uri = self.template.expand(entry)
        except TemplateError as wrong:
            raise self._wrong_entry(
                f"{shown(entry)}: {wrong}", f"its variables are {', '.join(self.template.variables)}"
            ) from None
        return self.link(uri, name="/".join(str(value) for value in entry.values()))

    def _wrong_entry(self, entry: str, hint: str) -> Error:
        file, line = place(self.options["list"])
        text = f"the list of the {self.what} has {entry} ({file}:{line})\n  hint: {hint}"
        return Error(ErrorCode.FAILED, text)


def _is_parts(value: Any) -> bool:
    return (
        isinstance(value, list) and bool(value) and all(isinstance(part, ResourceContents) for part in value)
    )


def resource(
    uri: str,
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    mime_type: str | None = None,
    size: int | None = None,
    list: Callable[[], Any] | None = None,
    subscribe: bool = False,
    extra: dict[str, Any] | None = None,
) -> Callable[[F], F]:
    """Makes a function a resource, or a family of them.

    It returns text, bytes, anything with a JSON form, `ResourceContents` or a list of these; `None`
    says that there is no such resource.

    Args:
        uri: Its URI, or a template of those it has: `notes://{name}`. The variables become
            parameters, of any type that a text can stand for.
        name: The name that programs use; by default that of the function.
        title: The name that people see.
        description: What is in it; by default what the docstring says.
        mime_type: Its media type.
        size: Its size in bytes.
        list: Of a template, a function that says what there is now: for each resource a
            dictionary of the variables, the value of the only one, or a `ResourceLink`.
        subscribe: Whether it tells of its changes, with `tenon.notify.resource_updated`.
        extra: Further members of its MCP form.

    Raises:
        DefinitionError: If the URI and the parameters do not fit.
    """
    options = {
        "name": name, "title": title, "description": description, "mime_type": mime_type,
        "size": size, "list": list, "subscribe": subscribe, "extra": extra,
    }  # fmt: skip

    def decorate(function: F) -> F:
        attach("resource", function, lambda: Resource(function, given, options))
        return function

    if callable(uri):  # `@resource` without parentheses
        given = ""
        return decorate(uri)  # type: ignore[return-value]
    given = uri
    return decorate


def uri(function: Callable[..., Any], **values: object) -> str:
    """The URI of a resource, for these values of the variables of its template.

    Raises:
        TemplateError: If a variable has no value, or there is none of a name.
    """
    return contribution_of(function, Resource, "resource").template.expand(values)


def find(resources: list[Resource], uri: str) -> tuple[Resource, dict[str, str]]:
    """The resource of a URI, and the values of its variables. A fixed URI goes before a template.

    Raises:
        Error: With `not-found`, if there is none.
    """
    for is_fixed in (True, False):
        for one in resources:
            values = one.template.match(uri) if one.template.is_fixed == is_fixed else None
            if values is not None:
                return one, values
    raise Error(ErrorCode.NOT_FOUND, f'this plugin has no resource "{uri}"', data={"uri": uri})


def list_resources(resources: list[Resource], cursor: str | None) -> tuple[list[ResourceLink], str | None]:
    """A page of what there is now."""
    return page("resources", [link for one in resources for link in one.listed()], cursor)


def list_templates(resources: list[Resource], cursor: str | None) -> tuple[list[Resource], str | None]:
    """A page of the templates."""
    return page("templates", [one for one in resources if not one.template.is_fixed], cursor)


def subscribe(resources: list[Resource], uri: str) -> None:
    """Checks that a resource tells of its changes. No instance knows who subscribed, so every change
    is told."""
    one, _ = find(resources, uri)
    if not one.options["subscribe"]:
        raise Error(ErrorCode.NOT_FOUND, f'"{uri}" does not tell of changes', data={"uri": uri})
