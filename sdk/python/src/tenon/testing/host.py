"""The scripted host: what a test tells it, what it calls, and what came of it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Callable, Iterable

from .. import _completion, _eval, _hook, _host, _prompt, _provider, _resource, _run
from .._context import Context, serving
from .._errors import Error, ErrorCode, ToolError
from .._registry import ATTRIBUTE, REGISTRY, contribution_of
from .._source import caller
from .._tool import Tool
from .._types import Mismatch
from .._types.scalar import plain
from ..content import ResourceContents, ResourceLink, Text, ToolResult, block
from ..memory import MemoryEntry
from ..models import Completion, CompletionRequest, Message
from ..state import SCOPES
from ..user import Answer
from .web import Web


@dataclass
class LogLine:
    """A line that the plugin wrote to the log."""

    level: str
    message: str
    fields: dict[str, str] = field(default_factory=dict)


@dataclass
class ProgressReport:
    """A report of the plugin on how far a call has come."""

    call_id: str
    progress: float
    total: float | None = None
    message: str | None = None


@dataclass
class SentMessage:
    """A message that the plugin sent."""

    text: str
    channel: str | None = None
    extra: dict[str, Any] | None = None


class Host(_host.Host):
    """A host that does what it was told to. It grants what it is given, and nothing else.

    Args:
        config: The plugin's settings.
        secrets: Secrets that are granted, by their names; `None` is one that nobody has set.
        state: The scopes that are granted, such as `["project"]`; a dictionary presets them, as in
            `{"project": {"tasks": []}}`.
        tools: Other tools, by their names: functions of the arguments, or what they answer.
        models: Models, by their ids: functions of the request, or what they answer.
        http: URLs, with or without a method in front: `{"GET https://x.org/*": {"a": 1}}`. They
            answer with text, bytes, JSON, a `WebAnswer`, an exception, or what a function of the
            request returns.
        user: What the user answers to forms: a dictionary, `DECLINED`, `CANCELLED`, or a function of
            the message and the schema.
        pages: What the user makes of pages: `accepted`, `declined`, `cancelled`, or a function of the
            message and the URL.
        messaging: The channels that are granted; `"*"` is any, and the user.
        memory: What the host remembers: entries or texts, or a function of the query and the limit.
        agent: The agent on whose behalf calls are made.
        session: The session that calls belong to.
        time_left: Seconds that calls are given. The host only says so: it ends none.
    """

    def __init__(
        self,
        *,
        config: dict[str, Any] | None = None,
        secrets: dict[str, str | None] | None = None,
        state: Iterable[str] | dict[str, dict[str, Any]] = (),
        tools: dict[str, Any] | None = None,
        models: dict[str, Any] | None = None,
        http: dict[str, Any] | None = None,
        user: Any = None,
        pages: Any = None,
        messaging: Iterable[str] = (),
        memory: Any = None,
        agent: str | None = None,
        session: str | None = None,
        time_left: float | None = None,
    ) -> None:
        self._config = json.loads(json.dumps(config or {}))
        self._secrets = dict(secrets or {})
        self._state: dict[str, dict[str, bytes]] = {}
        for scope in state:
            if scope not in SCOPES:
                raise ValueError(f"there is no scope {scope!r}; the scopes are {', '.join(SCOPES)}")
            preset = state[scope] if isinstance(state, dict) else {}
            self._state[scope] = {key: json.dumps(value).encode() for key, value in preset.items()}
        self._tools, self._models = dict(tools or {}), dict(models or {})
        self._user, self._pages, self._memory = user, pages, memory
        self._channels = set(messaging)
        self._caller: dict[str, Any] = {"agent_id": agent, "session_id": session, "time_left": time_left}
        self._calls = 0
        self._tokens: list[Any] = []
        self._web = Web()
        for pattern, answer in (http or {}).items():
            self._web.add(pattern, answer)
        #: What was logged so far.
        self.logged: list[LogLine] = []
        #: What was reported of progress so far.
        self.progressed: list[ProgressReport] = []
        #: The messages that were sent so far.
        self.messages: list[SentMessage] = []
        #: The URIs of the resources that were said to have changed so far.
        self.resource_updates: list[str] = []
        #: How often the plugin said that it contributes other things than before.
        self.contribution_changes = 0

    @property
    def requests(self) -> list[Any]:
        """The requests that were sent over HTTP so far."""
        return self._web.requests

    # Running what is tested.

    def __enter__(self) -> "Host":
        self._tokens.append((_host.enter(self), serving(self.context())))
        self._tokens[-1][1].__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        token, call = self._tokens.pop()
        call.__exit__()
        _host.leave(token)

    def run(self, awaitable: Any) -> Any:
        """Drives a coroutine to its end. What it asks for, this host answers."""
        with self:
            return _run.drive(awaitable)

    def context(self) -> Context:
        """The context of another call."""
        self._calls += 1
        return Context(f"call-{self._calls}", **self._caller)

    def cancel(self, call: Context) -> None:
        """Has `Context.is_cancelled` say that a call should end."""
        call._is_cancelled = True

    def call_tool(self, function: Callable[..., Any], arguments: dict[str, Any] | None = None) -> ToolResult:
        """Calls a tool with arguments that go through JSON, as a host calls it.

        Raises:
            Error: What the model cannot mend; a `ToolError` is a result with `is_error`.
        """
        tool = contribution_of(function, Tool, "tool")
        with self:
            result = tool.call(_through_json(arguments or {}))
        result.structured = _through_json(result.structured)
        return result

    def handle(self, function: Callable[..., Any], context: dict[str, Any]) -> dict[str, Any] | _hook.Veto:
        """The context after a handler, or the `Veto` with which it stopped.

        Raises:
            Error: If the handler fails.
        """
        handler = contribution_of(function, _hook.Hook, 'hook("…")')
        given = _through_json(context)
        with self:
            outcome, value = handler.handle(given)
        return _hook.Veto(value) if outcome == "veto" else value if outcome == "replace" else given

    def evaluate(
        self, function: Callable[..., Any], subject: dict[str, Any], **options: Any
    ) -> _eval.Evaluation:
        """Has a strategy judge a subject.

        Raises:
            Error: If it cannot, or the options do not fit.
        """
        strategy = contribution_of(function, _eval.Eval, "eval")
        with self:
            return strategy.evaluate(_through_json(subject), _through_json(options))

    def read_resource(self, uri: str, *functions: Callable[..., Any]) -> list[ResourceContents]:
        """Reads a resource of these functions, or of all that the plugin has.

        Raises:
            Error: With `not-found`, if there is none.
        """
        one, values = _resource.find(self._resources(functions), uri)
        with self:
            return one.read(uri, values)

    def list_resources(self, *functions: Callable[..., Any]) -> list[ResourceLink]:
        """What is listed of these resources, or of all that the plugin has.

        Raises:
            Error: If a function fails that lists.
        """
        with self:
            return [link for one in self._resources(functions) for link in one.listed()]

    def subscribe(self, uri: str, *functions: Callable[..., Any]) -> None:
        """Subscribes to a resource.

        Raises:
            Error: With `not-found`, if it does not tell of changes.
        """
        _resource.subscribe(self._resources(functions), uri)

    def get_prompt(
        self, function: Callable[..., Any], arguments: dict[str, str] | None = None
    ) -> _prompt.FilledPrompt:
        """Fills a prompt in.

        Raises:
            Error: With `invalid-input`, if the arguments do not fit.
        """
        prompt = contribution_of(function, _prompt.Prompt, "prompt")
        with self:
            return prompt.fill(arguments or {})

    def complete_argument(
        self,
        function: Callable[..., Any],
        argument: str,
        typed: str = "",
        others: dict[str, str] | None = None,
    ) -> list[str]:
        """The values that are suggested for an argument of a prompt or resource.

        Raises:
            Error: With `invalid-input`, if there is no such argument.
        """
        target = getattr(function, ATTRIBUTE, None)
        if not isinstance(target, (_prompt.Prompt, _resource.Resource)):
            raise TypeError(f"`{getattr(function, '__name__', function)}` is neither a prompt nor a resource")
        with self:
            found = _completion.suggest(
                target, REGISTRY.of(_completion.Completion), argument, typed, others or {}
            )
        return found.values

    def complete_with(self, function: Callable[..., Any], request: str | CompletionRequest) -> Completion:
        """Asks a model of the plugin.

        Raises:
            Error: Those of the model.
        """
        model = contribution_of(function, _provider.Model, "provider.model")
        if isinstance(request, str):
            request = CompletionRequest(model.name, [Message("user", request)])
        with self:
            return model.complete(request)

    def _resources(self, functions: tuple[Callable[..., Any], ...]) -> list[_resource.Resource]:
        if not functions:
            return REGISTRY.of(_resource.Resource)
        return [contribution_of(function, _resource.Resource, 'resource("…")') for function in functions]

    # What the plugin's services come to.

    def settings(self) -> dict[str, Any]:
        return dict(self._config)

    def log(self, level: str, message: str, fields: dict[str, str]) -> None:
        self.logged.append(LogLine(level, message, fields))

    def progress(self, call_id: str, progress: float, total: float | None, message: str | None) -> None:
        self.progressed.append(ProgressReport(call_id, progress, total, message))

    def resource_updated(self, uri: str) -> None:
        self.resource_updates.append(uri)

    def contributions_changed(self) -> None:
        self.contribution_changes += 1

    def secret(self, name: str) -> str:
        if name not in self._secrets:
            raise _not_granted(f'the secret "{name}"', f'secrets = ["{name}"]', "secrets")
        value = self._secrets[name]
        if value is None:
            raise Error(ErrorCode.NOT_FOUND, f'the secret "{name}" is not set')
        return value

    def _bucket(self, name: str) -> dict[str, bytes]:
        scope = (
            next((scope for scope in SCOPES if scope in self._state), "project")
            if name == "default"
            else name
        )
        if scope not in self._state:
            raise _not_granted(f'keeping state of the scope "{scope}"', f'state = ["{scope}"]', "state")
        return self._state[scope]

    def state_get(self, bucket: str, key: str) -> bytes | None:
        return self._bucket(bucket).get(key)

    def state_set(self, bucket: str, key: str, value: bytes) -> None:
        self._bucket(bucket)[key] = value

    def state_delete(self, bucket: str, key: str) -> None:
        self._bucket(bucket).pop(key, None)

    def state_keys(self, bucket: str) -> list[str]:
        return sorted(self._bucket(bucket), key=str.encode)

    def state_increment(self, bucket: str, key: str, by: int) -> int:
        kept = self._bucket(bucket)
        try:
            value = int(kept.get(key, b"0")) + by
        except ValueError:
            raise Error(ErrorCode.FAILED, f'the state of "{key}" is no number') from None
        kept[key] = str(value).encode()
        return value

    def state_update(self, bucket: str, key: str, change: Any) -> None:
        kept = self._bucket(bucket)
        kept[key] = change(kept.get(key))

    def ask(self, message: str, schema: dict[str, Any]) -> Answer[Any]:
        if self._user is None:
            raise _not_granted("asking the user", 'user = ["ask"]', "user")
        answer = self._user(message, schema) if callable(self._user) else self._user
        return answer if isinstance(answer, Answer) else Answer("accepted", _through_json(answer))

    def ask_url(self, message: str, url: str, id: str | None) -> str:
        if self._pages is None:
            raise _not_granted("asking the user to open a page", 'user = ["ask-url"]', "pages")
        return self._pages(message, url) if callable(self._pages) else self._pages

    def complete(self, request: CompletionRequest) -> Completion:
        if request.model not in self._models:
            raise _not_granted(
                f'asking the model "{request.model}"', f'providers = ["{request.model}"]', "models"
            )
        answer = self._models[request.model]
        answer = answer(request) if callable(answer) else answer
        if isinstance(answer, Exception):
            raise answer
        return Completion([Text(answer)], model=request.model) if isinstance(answer, str) else answer

    def list_tools(self) -> list[dict[str, Any]]:
        return [
            {"name": name, "description": "A tool of the test", "inputSchema": {"type": "object"}}
            for name in self._tools
        ]

    def call_tool_of_host(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        """What another tool answers."""
        if name not in self._tools:
            raise _not_granted(f'calling the tool "{name}"', f'tools = ["{name}"]', "tools")
        answer, given = self._tools[name], _through_json(arguments)
        try:
            answer = answer(given) if callable(answer) else answer
        except ToolError as failure:
            return ToolResult([Text(str(failure))], is_error=True)
        if isinstance(answer, ToolResult):
            return answer
        content = block(answer)
        if content is not None:
            return ToolResult([content])
        return ToolResult([Text(json.dumps(answer))], structured=_through_json(answer))

    def send_message(self, text: str, channel: str | None, extra: dict[str, Any] | None) -> None:
        if "*" not in self._channels and channel not in self._channels:
            raise _not_granted(
                f"sending a message to {channel or 'the user'}",
                f'messaging = ["{channel or "*"}"]',
                "messaging",
            )
        self.messages.append(SentMessage(text, channel, extra))

    def search_memory(self, query: str, limit: int) -> list[MemoryEntry]:
        if self._memory is None:
            raise _not_granted("searching the memory", 'memory = ["search"]', "memory")
        found = self._memory(query, limit) if callable(self._memory) else self._memory
        return [MemoryEntry(one) if isinstance(one, str) else one for one in found][:limit]

    async def send_request(self, request: Any, waiter: Any) -> Any:
        return await self._web.send(request)


def _through_json(value: Any) -> Any:
    try:
        return json.loads(json.dumps(value))
    except TypeError as wrong:
        try:
            plain(value, "")
        except Mismatch as mismatch:
            wrong = TypeError(str(mismatch))
        raise TypeError(f"a host passes on JSON: {wrong}") from None


def _not_granted(tried: str, line: str, option: str) -> Error:
    file, number = caller()
    return Error(
        ErrorCode.DENIED,
        f"{tried} is not granted ({file}:{number})"
        f"\n  hint: plugin.toml requests it with `{line}` under [capabilities], and a test grants it with `Host({option}=…)`",
    )
