"""The host of a component, by what the component imports."""

from __future__ import annotations

import json
from typing import Any, Callable

from .. import _host
from .._errors import Error, ErrorCode
from ..content import ToolResult
from ..memory import MemoryEntry
from ..models import Completion, CompletionRequest
from ..user import Answer
from . import convert, wit
from .wit import Err

#: How often an update is tried again that others were faster than.
_MOST_ATTEMPTS = 100


def asked(service: str, interface: Any, call: Callable[[], Any]) -> Any:
    """What a call to the host returns.

    Raises:
        Error: That of the host, or that the component does not import the service.
    """
    if interface is None:
        raise _host.not_requested(service)
    try:
        return call()
    except Err as err:
        raise convert.lift_error(err.value) from None


class ComponentHost(_host.Host):
    """Asks the host that runs the component."""

    def config(self, key: str) -> Any:
        return convert.from_json(wit.config.get(key))

    def settings(self) -> dict[str, Any]:
        return json.loads(wit.config.all())

    def log(self, level: str, message: str, fields: dict[str, str]) -> None:
        wit.log.write(wit.log.Level[level.upper()], message, list(fields.items()))

    def progress(self, call_id: str, progress: float, total: float | None, message: str | None) -> None:
        wit.notify.progress(call_id, progress, None if total is None else float(total), message)

    def resource_updated(self, uri: str) -> None:
        wit.notify.resource_updated(uri)

    def contributions_changed(self) -> None:
        wit.notify.contributions_changed()

    def secret(self, name: str) -> str:
        return asked("secrets", wit.secrets, lambda: wit.secrets.get(name))

    def state_get(self, bucket: str, key: str) -> bytes | None:
        return _kept(lambda: _open(bucket).get(key))

    def state_set(self, bucket: str, key: str, value: bytes) -> None:
        _kept(lambda: _open(bucket).set(key, value))

    def state_delete(self, bucket: str, key: str) -> None:
        _kept(lambda: _open(bucket).delete(key))

    def state_keys(self, bucket: str) -> list[str]:
        def all_pages() -> list[str]:
            opened, keys, cursor = _open(bucket), [], None
            while True:
                page = opened.list_keys(cursor)
                keys += page.keys
                cursor = page.cursor
                if cursor is None:
                    return keys

        return _kept(all_pages)

    def state_increment(self, bucket: str, key: str, by: int) -> int:
        return _kept(lambda: wit.atomics.increment(_open(bucket), key, by))

    def state_update(self, bucket: str, key: str, change: Any) -> None:
        def swapped() -> bool:
            seen = wit.atomics.Cas.new(_open(bucket), key)
            for _ in range(_MOST_ATTEMPTS):
                value = change(seen.current())
                try:
                    wit.atomics.swap(seen, value)
                    return True
                except Err as err:
                    if not isinstance(err.value, wit.atomics.CasError_CasFailed):
                        raise
                    # Another call was faster, and this is what it has written.
                    seen = err.value.value
            return False

        if not _kept(swapped):
            raise Error(ErrorCode.UNAVAILABLE, f'others change the state of "{key}" all the time')

    def ask(self, message: str, schema: dict[str, Any]) -> Answer[Any]:
        text = json.dumps(schema, ensure_ascii=False)
        answer = asked("user", wit.user, lambda: wit.user.ask(wit.user.FormRequest(message, text, None)))
        match type(answer).__name__:
            case "FormAnswer_Accepted":
                return Answer("accepted", json.loads(answer.value))
            case "FormAnswer_Declined":
                return Answer("declined")
            case _:
                return Answer("cancelled")

    def ask_url(self, message: str, url: str, id: str | None) -> str:
        answer = asked(
            "user", wit.user, lambda: wit.user.ask_url(wit.user.UrlRequest(message, url, id, None))
        )
        return answer.name.lower()

    def complete(self, request: CompletionRequest) -> Completion:
        answer = asked(
            "inference", wit.inference, lambda: wit.inference.complete(convert.lower_request(request))
        )
        return convert.lift_completion(answer)

    def list_tools(self) -> list[dict[str, Any]]:
        found = asked("tools", wit.host_tools, lambda: wit.host_tools.list_tools())
        return [_definition(one) for one in found]

    def call_tool_of_host(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        text = json.dumps(arguments, ensure_ascii=False)
        return convert.lift_result(
            asked("tools", wit.host_tools, lambda: wit.host_tools.call_tool(name, text))
        )

    def send_message(self, text: str, channel: str | None, extra: dict[str, Any] | None) -> None:
        def send() -> None:
            wit.messaging.send_message(wit.messaging.OutgoingMessage(channel, text, convert.to_json(extra)))

        asked("messaging", wit.messaging, send)

    def search_memory(self, query: str, limit: int) -> list[MemoryEntry]:
        found = asked("memory", wit.memory, lambda: wit.memory.search_memory(query, limit))
        return [MemoryEntry(one.text, one.score, one.source) for one in found]

    async def send_request(self, request: Any, waiter: Any) -> Any:
        if wit.outgoing_handler is None:
            raise _host.not_requested("http")
        from . import web  # It is there where the component imports HTTP.

        return await web.send(request, waiter)


def _definition(tool: Any) -> dict[str, Any]:
    """A tool of the host in the words of MCP."""
    hints = tool.annotations
    annotations = {
        "readOnlyHint": hints.read_only, "destructiveHint": hints.destructive,
        "idempotentHint": hints.idempotent, "openWorldHint": hints.open_world,
    }  # fmt: skip
    members = {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": json.loads(tool.input_schema),
        "outputSchema": convert.from_json(tool.output_schema),
        "annotations": {name: hint for name, hint in annotations.items() if hint is not None},
    }
    return {name: member for name, member in members.items() if member is not None}


def _open(bucket: str) -> Any:
    return wit.store.open(bucket)


def _kept(call: Callable[[], Any]) -> Any:
    """What a call to the store returns.

    Raises:
        Error: For what the store says; an error of `wasi:keyvalue` is none of the contract.
    """
    if wit.store is None:
        raise _host.not_requested("state")
    try:
        return call()
    except Err as err:
        problem = err.value
        if type(problem).__name__ == "CasError_StoreError":
            problem = problem.value
        match type(problem).__name__:
            case "Error_AccessDenied":
                raise Error(ErrorCode.DENIED, "this state is not granted") from None
            case "Error_NoSuchStore":
                raise Error(ErrorCode.NOT_FOUND, "there is no such state") from None
            case _:
                raise Error(ErrorCode.FAILED, str(getattr(problem, "value", problem))) from None


def end_call() -> None:
    """Gives up what a call has left open."""
    if wit.outgoing_handler is not None:
        from . import web

        web.close_unread()
