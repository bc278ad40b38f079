"""{{description}}.

This is the glue: what the host asks, in the types of the contract. What the plugin does is in
`logic.py`, which tests import without any of this. componentize-py makes the modules `wit_world` and
`componentize_py_types` of the folder `wit`; for an editor to know them too,
`componentize-py -d wit -w component bindings .bindings` writes them down.
"""

import re

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports.lifecycle import Identity
from wit_world.exports.resources import (
    ListedResource,
    ResourcePage,
    ResourceTemplate,
    TemplatePage,
)
from wit_world.imports.types import (
    CallContext,
    Error,
    ErrorCode,
    ResourceBody_Text,
    ResourceContents,
    ResourceLink,
)

import logic

ALL = ResourceLink(
    uri="planets://all",
    name="all",
    title=None,
    description="All planets, a line each.",
    mime_type="text/plain",
    size=None,
)

PLANET = ResourceTemplate(
    uri_template="planets://{number}",
    name="planet",
    title=None,
    description="One planet, by its number from the sun.",
    mime_type="text/plain",
    extra=None,
)


def error(code: ErrorCode, message: str) -> Err:
    return Err(Error(code, message, retry_after=None, data=None))


def only_page(cursor: str | None) -> None:
    """Refuses a cursor: each listing has one page."""
    if cursor is not None:
        raise error(ErrorCode.INVALID_INPUT, f"there is no page {cursor!r}")


class Lifecycle(exports.Lifecycle):
    def start(self) -> Identity:
        return Identity("{{name}}", "0.1.0", "{{description}}.", None)

    def stop(self) -> None:
        pass


class Resources(exports.Resources):
    def list_resources(self, cursor: str | None, context: CallContext) -> ResourcePage:
        only_page(cursor)
        return ResourcePage([ListedResource(ALL, extra=None)], next=None)

    def list_templates(self, cursor: str | None, context: CallContext) -> TemplatePage:
        only_page(cursor)
        return TemplatePage([PLANET], next=None)

    def read_resource(self, uri: str, context: CallContext) -> list[ResourceContents]:
        if uri == ALL.uri:
            text = "\n".join(logic.PLANETS)
        elif found := re.fullmatch("planets://([0-9]{1,9})", uri):
            try:
                text = logic.planet(int(found[1]))
            except LookupError as wrong:
                raise error(ErrorCode.NOT_FOUND, str(wrong))
        else:
            raise error(ErrorCode.NOT_FOUND, f"there is no resource {uri!r}")
        return [ResourceContents(uri, "text/plain", ResourceBody_Text(text), extra=None)]
