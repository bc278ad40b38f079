"""What the component exports: the interfaces of the contract, over what the plugin contributes."""

from __future__ import annotations

import functools
import json
import sys
from typing import Any, Callable

from .. import _completion, _eval, _hook, _prompt, _provider, _resource
from .._context import serving
from .._errors import Error, ErrorCode
from .._failure import to_error
from .._registry import REGISTRY, Registry
from .._tool import Tool
from .._worlds import awaits, exports, worlds
from . import console, convert, imports, services, wit
from .wit import Err

#: Who the plugin says it is.
IDENTITY: dict[str, str] = {}


def exported(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method that the host calls: whatever it raises is an error of the contract, and no trap."""

    @functools.wraps(method)
    def call(self: Any, *arguments: Any) -> Any:
        imports.enter()
        console.enter()
        try:
            return method(self, *arguments)
        except BaseException as exception:  # `SystemExit` as well: there is no process to end.
            error = to_error(exception)
        finally:
            services.end_call()
            console.leave()
        raise Err(convert.lower_error(error))

    return call


def _unknown(what: str, name: str) -> Error:
    return Error(ErrorCode.NOT_FOUND, f'this plugin has no {what} "{name}"')


def _named(kind: Any, what: str, name: str) -> Any:
    for one in REGISTRY.of(kind):
        if one.name == name:
            return one
    raise _unknown(what, name)


class Lifecycle:
    """Who the plugin is."""

    @exported
    def start(self) -> Any:
        return wit.lifecycle.Identity(IDENTITY["name"], IDENTITY["version"], IDENTITY["description"], None)

    @exported
    def stop(self) -> None:
        pass


class Tools:
    """Its tools."""

    @exported
    def list_tools(self) -> list[Any]:
        return [_tool(tool.definition()) for tool in REGISTRY.of(Tool)]

    @exported
    def call_tool(self, name: str, arguments: str, context: Any) -> Any:
        tool = _named(Tool, "tool", name)
        with serving(convert.lift_context(context)):
            return convert.lower_result(tool.call(_object("the arguments", arguments)))


def _tool(definition: dict[str, Any]) -> Any:
    hints = definition["annotations"]
    annotations = wit.types.ToolAnnotations(
        hints.get("readOnlyHint"),
        hints.get("destructiveHint"),
        hints.get("idempotentHint"),
        hints.get("openWorldHint"),
    )
    return wit.types.ToolDefinition(
        definition["name"],
        definition["title"],
        definition["description"],
        json.dumps(definition["inputSchema"], ensure_ascii=False),
        convert.to_json(definition["outputSchema"]),
        annotations,
        definition["capabilities"],
        convert.to_json(definition["extra"]),
    )


def _object(what: str, text: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError as wrong:
        raise Error(ErrorCode.INVALID_INPUT, f"{what} are no JSON: {wrong}") from None
    if not isinstance(value, dict):
        raise Error(ErrorCode.INVALID_INPUT, f"{what} are no JSON object")
    return value


class Hooks:
    """Its handlers."""

    @exported
    def list_hooks(self) -> list[Any]:
        modes = {True: wit.hooks.HookMode.AUDIT, False: wit.hooks.HookMode.ENFORCE}
        found = _hook.registrations(REGISTRY.of(_hook.Hook))
        return [wit.hooks.HookRegistration(point, modes[audit], priority) for point, audit, priority in found]

    @exported
    def handle_event(self, event: Any, context: Any) -> Any:
        with serving(convert.lift_context(context)):
            outcome, value = _hook.handle(REGISTRY.of(_hook.Hook), event.point, event.event_context)
        if outcome == "veto":
            return wit.hooks.HookOutcome_Veto(value)
        if outcome == "replace":
            return wit.hooks.HookOutcome_Replace(json.dumps(value, ensure_ascii=False))
        return wit.hooks.HookOutcome_Continue()


class Evals:
    """Its strategies."""

    @exported
    def list_evals(self) -> list[Any]:
        return [
            wit.evals.EvalDefinition(one.name, one.description, convert.to_json(one.options_schema()))
            for one in REGISTRY.of(_eval.Eval)
        ]

    @exported
    def evaluate(self, strategy: str, subject: str, options: str, context: Any) -> Any:
        one = _named(_eval.Eval, "strategy", strategy)
        with serving(convert.lift_context(context)):
            found = one.evaluate(
                _object("the members of the subject", subject), _object("the options", options)
            )
        findings = [
            wit.evals.Finding(
                each.criterion, wit.evals.Verdict[each.verdict.upper()], each.score, each.reason
            )
            for each in found.findings
        ]
        verdict = wit.evals.Verdict[found.verdict.upper()]
        return wit.evals.Evaluation(float(found.score), verdict, findings, convert.to_json(found.extra))


class Resources:
    """Its resources."""

    @exported
    def list_resources(self, cursor: str | None, context: Any) -> Any:
        with serving(convert.lift_context(context)):
            links, following = _resource.list_resources(REGISTRY.of(_resource.Resource), cursor)
        listed = [
            wit.resources.ListedResource(convert.lower_link(link), convert.to_json(link.extra))
            for link in links
        ]
        return wit.resources.ResourcePage(listed, following)

    @exported
    def list_templates(self, cursor: str | None, context: Any) -> Any:
        found, following = _resource.list_templates(REGISTRY.of(_resource.Resource), cursor)
        templates = [
            wit.resources.ResourceTemplate(
                one.uri, one.name, one.options["title"], one.description, one.options["mime_type"],
                convert.to_json(one.options["extra"]),
            )
            for one in found
        ]  # fmt: skip
        return wit.resources.TemplatePage(templates, following)

    @exported
    def read_resource(self, uri: str, context: Any) -> list[Any]:
        one, values = _resource.find(REGISTRY.of(_resource.Resource), uri)
        with serving(convert.lift_context(context)):
            return [convert.lower_contents(part) for part in one.read(uri, values)]


class Subscriptions:
    """Says what can be subscribed to."""

    @exported
    def subscribe(self, uri: str, context: Any) -> None:
        _resource.subscribe(REGISTRY.of(_resource.Resource), uri)

    @exported
    def unsubscribe(self, uri: str, context: Any) -> None:
        pass


class Prompts:
    """Its prompts."""

    @exported
    def list_prompts(self, cursor: str | None, context: Any) -> Any:
        found, following = _prompt.list_prompts(REGISTRY.of(_prompt.Prompt), cursor)
        prompts = [
            wit.prompts.PromptDefinition(
                one.name,
                one.options["title"],
                one.description,
                [
                    wit.prompts.PromptArgument(
                        each["name"], each["title"], each["description"], each["required"], None
                    )
                    for each in one.arguments()
                ],
                convert.to_json(one.options["extra"]),
            )
            for one in found
        ]
        return wit.prompts.PromptPage(prompts, following)

    @exported
    def get_prompt(self, name: str, arguments: list[tuple[str, str]], context: Any) -> Any:
        one = _named(_prompt.Prompt, "prompt", name)
        with serving(convert.lift_context(context)):
            filled = one.fill(dict(arguments))
        messages = [
            wit.prompts.PromptMessage(
                wit.prompts.PromptRole[each.role.upper()], convert.lower_content(each.content), None
            )
            for each in filled.messages
        ]
        return wit.prompts.Prompt(filled.description, messages, None)


class Completions:
    """Values for the arguments of its prompts and resources."""

    @exported
    def complete_argument(self, argument: Any, context: Any) -> Any:
        target = _target(argument.reference)
        with serving(convert.lift_context(context)):
            found = _completion.suggest(
                target,
                REGISTRY.of(_completion.Completion),
                argument.name,
                argument.value,
                dict(argument.others),
            )
        return wit.completions.Suggestions(found.values, found.total, found.has_more, None)


def _target(reference: Any) -> Any:
    if type(reference).__name__ == "CompletionReference_Prompt":
        return _named(_prompt.Prompt, "prompt", reference.value)
    for one in REGISTRY.of(_resource.Resource):
        if one.uri == reference.value:
            return one
    raise _unknown("resource template", reference.value)


class Providers:
    """Its language models."""

    @exported
    def list_providers(self) -> list[Any]:
        found = _provider.providers(REGISTRY.of(_provider.Model))
        return [wit.providers.ProviderDefinition(one.name, one.description) for one in found]

    @exported
    def list_models(self) -> list[Any]:
        return [convert.lower_model(info) for one in REGISTRY.of(_provider.Model) for info in one.models()]

    @exported
    def complete(self, request: Any, context: Any) -> Any:
        with serving(convert.lift_context(context)):
            answer = _provider.complete(REGISTRY.of(_provider.Model), convert.lift_request(request))
        return convert.lower_completion(answer)


#: The class of each world, and of each interface beside them.
_CLASSES: dict[str, Any] = {
    "tool": Tools, "hook": Hooks, "eval": Evals, "resource": Resources, "prompt": Prompts, "provider": Providers,
    "subscriptions": Subscriptions, "completions": Completions,
}  # fmt: skip


def of(registry: Registry) -> dict[str, Any]:
    """The classes for what is contributed, by their names."""
    if "asyncio" in sys.modules or awaits(registry):
        from . import loop  # It is large, and most plugins do without it.

        loop.install()
    if wit.outgoing_handler is not None:
        from . import web  # noqa: F401  It has to be in the snapshot.
    found = [Lifecycle, *(_CLASSES[name] for name in [*worlds(registry), *exports(registry)])]
    return {each.__name__: each for each in found}
