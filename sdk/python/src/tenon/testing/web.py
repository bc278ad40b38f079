"""The web of a scripted host."""

from __future__ import annotations

import inspect
import json
import re
from dataclasses import dataclass, field
from typing import Any

from .._errors import Error, ErrorCode
from ..http import Request


@dataclass
class WebAnswer:
    """What a server of a test answers.

    Args:
        status: The status.
        body: Text or bytes; anything else is sent as JSON.
        headers: Its headers.
    """

    status: int = 200
    body: Any = ""
    headers: dict[str, str] = field(default_factory=dict)


class ScriptedResponse:
    """An answer as the HTTP client reads it."""

    def __init__(self, answer: WebAnswer) -> None:
        self.status = answer.status
        given = {name.lower(): value for name, value in answer.headers.items()}
        if isinstance(answer.body, (str, bytes)):
            self.rest = answer.body.encode() if isinstance(answer.body, str) else answer.body
        else:
            self.rest = json.dumps(answer.body).encode()
            given.setdefault("content-type", "application/json")
        self.headers = list(given.items())

    async def read(self, size: int, waiter: Any) -> bytes:
        """The next piece of the body."""
        piece, self.rest = self.rest[:size], self.rest[size:]
        return piece

    def close(self) -> None:
        """Gives up the rest."""
        self.rest = b""


class Web:
    """The URLs that are granted, and what they answer."""

    def __init__(self) -> None:
        self.answers: list[tuple[str, re.Pattern[str], Any]] = []
        #: What was sent so far.
        self.requests: list[Request] = []

    def add(self, pattern: str, answer: Any) -> None:
        """Grants a URL, with or without a method in front; `*` stands for any text."""
        method, space, url = pattern.rpartition(" ")
        text = ".*".join(re.escape(part) for part in (url if space else pattern).split("*"))
        self.answers.append((method.upper(), re.compile(text), answer))

    async def send(self, request: Request) -> ScriptedResponse:
        """What a request is answered."""
        self.requests.append(request)
        for method, pattern, answer in self.answers:
            if method in ("", request.method) and (
                pattern.fullmatch(request.url) or pattern.fullmatch(request.url.split("?")[0])
            ):
                value = answer(request) if callable(answer) else answer
                value = await value if inspect.isawaitable(value) else value
                if isinstance(value, Exception):
                    raise value
                return ScriptedResponse(value if isinstance(value, WebAnswer) else WebAnswer(body=value))
        raise Error(
            ErrorCode.DENIED,
            f"network access to {request.url} is not granted"
            f'\n  hint: plugin.toml requests it with `network = ["{request.url.split("?")[0]}"]` under [capabilities], '
            "and a test grants it with `Host(http=…)`",
        )
