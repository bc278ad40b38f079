"""HTTP over `wasi:http` 0.2."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

from .._errors import Error, ErrorCode
from ..http import Request, Waiter
from . import wit
from .wit import Err

_TIMEOUTS = (
    "DnsTimeout",
    "ConnectionTimeout",
    "ConnectionReadTimeout",
    "ConnectionWriteTimeout",
    "HttpResponseTimeout",
)
_UNREACHABLE = (
    "DnsError", "DestinationNotFound", "DestinationUnavailable", "DestinationIpUnroutable",
    "ConnectionRefused", "ConnectionTerminated", "ConnectionLimitReached", "HttpResponseIncomplete",
)  # fmt: skip


async def send(request: Request, waiter: Waiter) -> "IncomingResponse":
    """Sends a request, and waits until the response has begun.

    Raises:
        Error: If it is not granted, or the server cannot be reached.
    """
    try:
        outgoing = _outgoing(request)
        body = outgoing.body() if request.body else None
        future = wit.outgoing_handler.handle(outgoing, _options(request.timeout))
        if body is not None:
            await _write(body, request.body, waiter)
        with future:
            while (answer := future.get()) is None:
                await waiter.pollable(future.subscribe())
    except Err as err:
        raise failure(err.value, request.url) from None
    # The outer result says whether the answer was taken already, which it was not.
    incoming = answer.value
    if isinstance(incoming, Err):
        raise failure(incoming.value, request.url)
    return IncomingResponse(incoming.value, request.url)


def _outgoing(request: Request) -> Any:
    headers = [(name, value.encode("latin-1", "replace")) for name, value in request.headers.entries]
    if request.body or request.method in ("POST", "PUT", "PATCH"):
        headers.append(("content-length", str(len(request.body)).encode()))
    try:
        fields = wit.http.Fields.from_list(headers)
    except Err as err:
        problem = _words(type(err.value).__name__.removeprefix("HeaderError_"))
        raise Error(
            ErrorCode.INVALID_INPUT, f"a header of the request to {request.url} cannot be sent: {problem}"
        ) from None
    outgoing = wit.http.OutgoingRequest(fields)
    parts = urlsplit(request.url)
    known = getattr(wit.http, f"Method_{request.method.capitalize()}", None)
    outgoing.set_method(known() if known else wit.http.Method_Other(request.method))
    outgoing.set_scheme(wit.http.Scheme_Https() if parts.scheme == "https" else wit.http.Scheme_Http())
    outgoing.set_authority(parts.netloc.rpartition("@")[2])
    outgoing.set_path_with_query((parts.path or "/") + (f"?{parts.query}" if parts.query else ""))
    return outgoing


def _options(timeout: float | None) -> Any:
    if timeout is None:
        return None
    options, span = wit.http.RequestOptions(), round(timeout * 1e9)
    options.set_connect_timeout(span)
    options.set_first_byte_timeout(span)
    options.set_between_bytes_timeout(span)
    return options


async def _write(body: Any, data: bytes, waiter: Waiter) -> None:
    with body.write() as stream:
        at, is_flushed = 0, False
        while True:
            room = stream.check_write()
            if room == 0:
                await waiter.pollable(stream.subscribe())
            elif at < len(data):
                piece = data[at : at + room]
                stream.write(piece)
                at += len(piece)
            elif not is_flushed:
                stream.flush()
                is_flushed = True
            else:
                break
    wit.http.OutgoingBody.finish(body, None)


class IncomingResponse:
    """A response whose body is still to be read."""

    def __init__(self, incoming: Any, url: str) -> None:
        self.url = url
        self.status: int = incoming.status()
        with incoming.headers() as fields:
            self.headers = [(name, value.decode("latin-1")) for name, value in fields.entries()]
        self.body: Any = incoming.consume()
        self.stream: Any = self.body.stream()
        _UNREAD.add(self)

    async def read(self, size: int, waiter: Waiter) -> bytes:
        """The next piece of the body, which is empty at its end.

        Raises:
            Error: If the connection breaks off.
        """
        while self.stream is not None:
            try:
                piece = self.stream.read(size)
            except Err as err:
                if isinstance(err.value, wit.streams.StreamError_Closed):
                    self.close()
                    break
                cause = err.value.value
                code = wit.http.http_error_code(cause)
                said = cause.to_debug_string() if code is None else None
                raise (
                    failure(code, self.url)
                    if said is None
                    else Error(ErrorCode.UNAVAILABLE, f"{self.url}: {said}")
                ) from None
            if piece:
                return piece
            await waiter.pollable(self.stream.subscribe())
        return b""

    def close(self) -> None:
        """Gives up the rest."""
        if self.stream is not None:
            _UNREAD.discard(self)
            self.stream.__exit__(None, None, None)
            self.stream = None
            self.body.__exit__(None, None, None)


#: The responses whose bodies nobody has read to their ends. They are kept until the call ends: a body must not be dropped
#: before its stream, and who collects garbage knows no such order.
_UNREAD: set[IncomingResponse] = set()


def close_unread() -> None:
    """Gives up the bodies of all responses that were not read to their ends."""
    for response in list(_UNREAD):
        response.close()


def failure(code: Any, url: str) -> Error:
    """An error of `wasi:http` as one of the contract."""
    name = type(code).__name__.removeprefix("ErrorCode_")
    said = _words(name)
    detail = getattr(code, "value", None)
    if isinstance(detail, str):
        said = f"{said}: {detail}"
    public = url.split("?")[0]
    if name == "HttpRequestDenied":
        # The host adds the line that requests it.
        return Error(ErrorCode.DENIED, f"network access to {public} is not granted")
    if name in _TIMEOUTS:
        return Error(ErrorCode.TIMEOUT, f"{public} did not answer in time ({said})")
    unreachable = name in _UNREACHABLE
    return Error(
        ErrorCode.UNAVAILABLE if unreachable else ErrorCode.FAILED, f"the request to {public} failed: {said}"
    )


def _words(name: str) -> str:
    """`ConnectionRefused` as `connection refused`."""
    return re.sub(r"(?<!^)(?=[A-Z])", " ", name).lower()
