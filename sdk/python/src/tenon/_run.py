"""Runs a plugin's function, whether it is `async` or not."""

from __future__ import annotations

import inspect
from typing import Any, Awaitable

from ._errors import Error, ErrorCode
from ._source import place, unwrapped


def is_async(function: Any) -> bool:
    """Whether a function is `async`, also behind decorators that keep to `functools.wraps`."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(unwrapped(function))


def call(function: Any, *arguments: Any, **keywords: Any) -> Any:
    """Calls a function to its end.

    Raises:
        Error: If it returns what would have to be awaited.
    """
    value = function(*arguments, **keywords)
    waits = is_async(function)
    if waits:
        value = drive(value)
    if inspect.isawaitable(value):
        if inspect.iscoroutine(value):
            value.close()
        file, line = place(function)
        name = function.__name__
        raise Error(
            ErrorCode.FAILED,
            f"`{name}` returned something that nobody awaits ({file}:{line} in {name})"
            "\n  hint: "
            + ("write `return await …`" if waits else f"make it `async def {name}`, and await there what it calls"),
        )
    return value


def drive(awaitable: Awaitable[Any]) -> Any:
    """Drives a coroutine to its end on an event loop, which in a component is `component.loop`.

    Tasks that it leaves behind are cancelled.
    """
    # Plugins without `async` functions do without it.
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(_wrapped(awaitable))
    raise RuntimeError(
        "an `async` function is called within an event loop: await it there, and call the Host's "
        "methods from a test that is not `async`"
    )


async def _wrapped(awaitable: Awaitable[Any]) -> Any:
    return await awaitable
