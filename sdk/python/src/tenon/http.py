"""HTTP: `network = ["https://api.example.com/*"]` in plugin.toml names what can be reached.

```python
from tenon import http

weather = http.get("https://api.example.com/weather", params={"city": "Graz"}).raise_for_status().json()
```

The functions whose names begin with `a` are the same for `async` functions, where several requests
run at once. Every request is checked by the host, and each redirect is a request.
"""

from __future__ import annotations

import json as json_module
import time
from dataclasses import dataclass, field
from typing import Any, AsyncIterator, Iterable, Iterator, Mapping, Protocol
from urllib.parse import urlencode, urljoin, urlsplit, urlunsplit

from . import _host
from ._errors import Error, ErrorCode

#: Methods that can be repeated.
_IDEMPOTENT = ("GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE")

#: Statuses that another attempt may not have.
_TRANSIENT = (429, 502, 503, 504)

_REDIRECTS = (301, 302, 303, 307, 308)

_MOST_REDIRECTS = 10

#: The longest pause before another attempt, in seconds.
_LONGEST_PAUSE = 30.0

_DEFAULT_TIMEOUT = 30.0

_CHUNK = 64 << 10


class HTTPStatusError(Error):
    """A response whose status says that the request failed."""

    def __init__(self, code: ErrorCode, message: str, response: "Response") -> None:
        super().__init__(code, message, retry_after=response.retry_after, data={"status": response.status})
        self.response = response


class Headers(Mapping[str, str]):
    """Headers by their names, in any spelling. Of a name with several values, these are joined."""

    def __init__(self, entries: Iterable[tuple[str, str]] = ()) -> None:
        self.entries = [(name.lower(), value) for name, value in entries]

    def __getitem__(self, name: str) -> str:
        values = self.get_all(name)
        if not values:
            raise KeyError(name)
        return ", ".join(values)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(name for name, _ in self.entries))

    def __len__(self) -> int:
        return len({name for name, _ in self.entries})

    def get_all(self, name: str) -> list[str]:
        """All values of a name."""
        return [value for known, value in self.entries if known == name.lower()]

    def __repr__(self) -> str:
        return f"Headers({self.entries!r})"


@dataclass
class Request:
    """A request as it is sent."""

    method: str
    url: str
    headers: Headers = field(default_factory=Headers)
    body: bytes = b""
    #: Seconds until the response has begun, and between its pieces; `None` waits as long as the call.
    timeout: float | None = _DEFAULT_TIMEOUT

    def json(self) -> Any:
        """The body as JSON.

        Raises:
            ValueError: If it is none.
        """
        return json_module.loads(self.body)


class RawResponse(Protocol):
    """A response whose body is still to be read: what a host answers."""

    status: int
    headers: list[tuple[str, str]]

    async def read(self, size: int, waiter: Any) -> bytes:
        """The next piece of the body, which is empty at its end."""

    def close(self) -> None:
        """Gives up the rest."""


class Waiter(Protocol):
    """How to wait: the whole instance, or one task of the event loop."""

    async def pollable(self, pollable: Any) -> None:
        """Waits until something of `wasi:io` is ready."""

    async def sleep(self, seconds: float) -> None:
        """Waits some time."""


class _Blocking:
    """Has the whole instance wait."""

    async def pollable(self, pollable: Any) -> None:
        pollable.block()

    async def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class _Loop:
    """Has a task of the event loop wait."""

    async def pollable(self, pollable: Any) -> None:
        import asyncio

        await asyncio.get_running_loop().wait_for_pollable(pollable)  # type: ignore[attr-defined]

    async def sleep(self, seconds: float) -> None:
        import asyncio

        await asyncio.sleep(seconds)


class Response:
    """A response. Its body is read when it is asked for."""

    def __init__(self, request: Request, raw: RawResponse, waiter: Waiter) -> None:
        #: What was asked; after redirects, the last request.
        self.request = request
        self.status = raw.status
        self.headers = Headers(raw.headers)
        self._raw, self._waiter = raw, waiter
        self._content: bytes | None = None

    @property
    def url(self) -> str:
        """The URL that answered."""
        return self.request.url

    @property
    def ok(self) -> bool:
        """Whether the status says that the request succeeded."""
        return 200 <= self.status < 300

    @property
    def retry_after(self) -> float | None:
        """Seconds to wait before another attempt, if the response says that."""
        value = self.headers.get("retry-after", "")
        return float(value) if value.isdigit() else None

    @property
    def content(self) -> bytes:
        """The whole body.

        Raises:
            Error: If the connection breaks off.
        """
        if self._content is None:
            self._content = b"".join(self.iter_bytes())
        return self._content

    async def aread(self) -> bytes:
        """The whole body, for `async` functions.

        Raises:
            Error: If the connection breaks off.
        """
        if self._content is None:
            self._content = b"".join([piece async for piece in self.aiter_bytes()])
        return self._content

    @property
    def text(self) -> str:
        """The whole body as text, in the encoding that the headers name, or else UTF-8."""
        kind = self.headers.get("content-type", "")
        _, found, charset = kind.lower().partition("charset=")
        try:
            return self.content.decode(charset.split(";")[0].strip(' "') if found else "utf-8", "replace")
        except LookupError:
            return self.content.decode("utf-8", "replace")

    def json(self) -> Any:
        """The whole body as JSON.

        Raises:
            Error: With `failed`, if it is none.
        """
        try:
            return json_module.loads(self.content)
        except ValueError as wrong:
            raise Error(ErrorCode.FAILED, f"{self.url} answered something else than JSON: {wrong}") from None

    def raise_for_status(self) -> "Response":
        """The response itself, if its status is less than 400.

        Raises:
            HTTPStatusError: With `not-found` for 404 and 410, `denied` for 401 and 403,
                `unavailable` for 429 and from 500 on, and `failed` otherwise.
        """
        if self.status < 400:
            return self
        codes = {404: "not-found", 410: "not-found", 401: "denied", 403: "denied", 429: "unavailable"}
        code = ErrorCode(codes.get(self.status, "unavailable" if self.status >= 500 else "failed"))
        beginning = self.text[:200].strip()
        said = f": {beginning}" if beginning else ""
        raise HTTPStatusError(
            code, f"{self.request.method} {_public(self.url)} answered {self.status}{said}", self
        )

    def iter_bytes(self, size: int = _CHUNK) -> Iterator[bytes]:
        """The body in pieces, as they arrive.

        Raises:
            Error: If the connection breaks off.
        """
        if self._content is not None:
            yield self._content
            return
        while piece := _now(self._raw.read(size, self._waiter)):
            yield piece
        self._raw.close()

    async def aiter_bytes(self, size: int = _CHUNK) -> AsyncIterator[bytes]:
        """The same for `async` functions."""
        if self._content is not None:
            yield self._content
            return
        while piece := await self._raw.read(size, self._waiter):
            yield piece
        self._raw.close()

    def iter_lines(self) -> Iterator[str]:
        """The lines of the body, as they arrive, without their ends."""
        rest = b""
        for piece in self.iter_bytes():
            *lines, rest = (rest + piece).split(b"\n")
            yield from (line.rstrip(b"\r").decode("utf-8", "replace") for line in lines)
        if rest:
            yield rest.decode("utf-8", "replace")

    def close(self) -> None:
        """Gives up what is left of the body."""
        self._raw.close()

    def __enter__(self) -> "Response":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Response {self.status} {_public(self.url)}>"


def request(method: str, url: str, **options: Any) -> Response:
    """Sends a request.

    Args:
        method: `GET`, `POST` and so on.
        url: The URL.
        params: Members of the query.
        headers: Headers, by their names.
        json: A body that is sent as JSON.
        data: Members of a form, which is sent as one.
        content: A body as text or bytes.
        timeout: Seconds until the response has begun and between its pieces; 30 by default, and
            `None` for as long as the call may last.
        retries: How often a request is repeated that failed on its way, or got the status 429, 502,
            503 or 504. By default twice for methods that can be repeated, and never for others.
        follow_redirects: Whether redirects are followed; by default they are.

    Raises:
        Error: With `denied` where it is not granted, `timeout`, or `unavailable` where the server
            cannot be reached. A status such as 404 is no error; see `Response.raise_for_status`.
    """
    return _now(_request(_Blocking(), method, url, **options))


def get(url: str, **options: Any) -> Response:
    """Sends a GET request; the options are those of `request`."""
    return request("GET", url, **options)


def post(url: str, **options: Any) -> Response:
    """Sends a POST request; the options are those of `request`."""
    return request("POST", url, **options)


def put(url: str, **options: Any) -> Response:
    """Sends a PUT request; the options are those of `request`."""
    return request("PUT", url, **options)


def patch(url: str, **options: Any) -> Response:
    """Sends a PATCH request; the options are those of `request`."""
    return request("PATCH", url, **options)


def delete(url: str, **options: Any) -> Response:
    """Sends a DELETE request; the options are those of `request`."""
    return request("DELETE", url, **options)


async def arequest(method: str, url: str, **options: Any) -> Response:
    """Sends a request without blocking other tasks; the options are those of `request`.

    The body has arrived when it returns, unless `stream=True`: then `Response.aiter_bytes` reads it.

    Raises:
        Error: As for `request`.
    """
    stream = options.pop("stream", False)
    response = await _request(_Loop(), method, url, **options)
    if not stream:
        await response.aread()
    return response


async def aget(url: str, **options: Any) -> Response:
    """Sends a GET request without blocking other tasks."""
    return await arequest("GET", url, **options)


async def apost(url: str, **options: Any) -> Response:
    """Sends a POST request without blocking other tasks."""
    return await arequest("POST", url, **options)


def _now(awaitable: Any) -> Any:
    """What a coroutine returns that blocks where it waits, and so never gives way."""
    try:
        awaitable.send(None)
    except StopIteration as end:
        return end.value
    awaitable.close()
    raise RuntimeError("a host of a test waits where it should answer")


async def _request(
    waiter: Waiter,
    method: str,
    url: str,
    *,
    params: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
    json: Any = None,
    data: Mapping[str, Any] | None = None,
    content: str | bytes | None = None,
    timeout: float | None = _DEFAULT_TIMEOUT,
    retries: int | None = None,
    follow_redirects: bool = True,
) -> Response:
    sent = _build(method, url, params, headers, json, data, content, timeout)
    attempts = retries if retries is not None else 2 if sent.method in _IDEMPOTENT else 0
    for _ in range(_MOST_REDIRECTS + 1):
        response = await _attempt(waiter, sent, attempts)
        target = response.headers.get("location")
        if not follow_redirects or response.status not in _REDIRECTS or target is None:
            return response
        response.close()
        sent = _redirected(sent, response.status, target)
    raise Error(ErrorCode.FAILED, f"{_public(url)} redirects more than {_MOST_REDIRECTS} times")


def _build(
    method: str, url: str, params: Any, headers: Any, json: Any, data: Any, content: Any, timeout: Any
) -> Request:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise Error(ErrorCode.INVALID_INPUT, f"{url!r} is no URL of http or https")
    if params:
        query = urlencode({name: value for name, value in params.items() if value is not None}, doseq=True)
        parts = parts._replace(query=f"{parts.query}&{query}".strip("&"))
    given = [(name, str(value)) for name, value in (headers or {}).items()]
    names = {name.lower() for name, _ in given}
    body, kind = b"", None
    if json is not None:
        body, kind = json_module.dumps(json, ensure_ascii=False).encode(), "application/json"
    elif data is not None:
        body, kind = urlencode(data, doseq=True).encode(), "application/x-www-form-urlencoded"
    elif content is not None:
        body = content.encode() if isinstance(content, str) else bytes(content)
    if kind and "content-type" not in names:
        given.append(("content-type", kind))
    if "user-agent" not in names:
        given.append(("user-agent", "tenon-python"))
    without_fragment = urlunsplit(parts._replace(fragment=""))
    return Request(method.upper(), without_fragment, Headers(given), body, timeout)


async def _attempt(waiter: Waiter, request: Request, retries: int) -> Response:
    """Sends a request, and again where that may help."""
    for attempt in range(retries + 1):
        is_last = attempt == retries
        try:
            raw = await _host.current().send_request(request, waiter)
        except Error as error:
            if is_last or error.code is not ErrorCode.UNAVAILABLE:
                raise
            pause = None
        else:
            response = Response(request, raw, waiter)
            if is_last or response.status not in _TRANSIENT:
                return response
            pause = response.retry_after
            if pause is not None and pause > _LONGEST_PAUSE:
                return response
            response.close()
        await waiter.sleep(0.2 * 2**attempt if pause is None else pause)
    raise AssertionError("the last attempt returns or raises")


def _redirected(request: Request, status: int, target: str) -> Request:
    url = urljoin(request.url, target)
    before, after = urlsplit(request.url), urlsplit(url)
    headers = request.headers.entries
    if (before.scheme, before.netloc) != (after.scheme, after.netloc):
        # Whoever is redirected to has not been told the secrets of the one before.
        headers = [
            (name, value)
            for name, value in headers
            if name not in ("authorization", "cookie", "proxy-authorization")
        ]
    method, body = request.method, request.body
    if status == 303 or (status in (301, 302) and method == "POST"):
        method, body = ("HEAD" if method == "HEAD" else "GET"), b""
        headers = [(name, value) for name, value in headers if not name.startswith("content-")]
    return Request(method, url, Headers(headers), body, request.timeout)


def _public(url: str) -> str:
    """A URL for a message, without its query, which may have a key."""
    return url.split("?")[0]
