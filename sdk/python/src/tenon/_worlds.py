"""Which worlds and interfaces of the contract the contributions are of."""

from __future__ import annotations

from typing import Any

from . import _completion, _eval, _hook, _prompt, _provider, _resource
from ._registry import Registry
from ._run import is_async
from ._tool import Tool

#: The worlds, by what they are for.
WORLDS: dict[str, Any] = {
    "tool": Tool,
    "hook": _hook.Hook,
    "provider": _provider.Model,
    "eval": _eval.Eval,
    "resource": _resource.Resource,
    "prompt": _prompt.Prompt,
}


def worlds(registry: Registry) -> list[str]:
    """The worlds that the contributions are of."""
    return [world for world, kind in WORLDS.items() if registry.of(kind)]


def exports(registry: Registry) -> list[str]:
    """The interfaces that are exported beside those of the worlds."""
    found = []
    resources, completions = registry.of(_resource.Resource), registry.of(_completion.Completion)
    if any(one.options["subscribe"] for one in resources):
        found.append("subscriptions")
    targets: list[Any] = [*resources, *registry.of(_prompt.Prompt)]
    if any(_completion.completes(one, completions) for one in targets):
        found.append("completions")
    return found


def awaits(registry: Registry) -> bool:
    """Whether any function is `async`, and needs an event loop."""
    functions = [one.function for one in registry.contributions]
    functions += [one.options["list"] for one in registry.of(_resource.Resource)]
    functions += [one.given for one in registry.of(_provider.Model)]
    return any(callable(function) and is_async(function) for function in functions)
