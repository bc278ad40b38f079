"""Language models of the host: `providers = ["default"]` in plugin.toml."""

from __future__ import annotations

from typing import Any, Sequence

from . import _host
from .models import Completion, CompletionRequest, Message


def complete(
    prompt: str | Sequence[Message] | CompletionRequest,
    *,
    model: str = "default",
    system: str | None = None,
    **settings: Any,
) -> Completion:
    """Has a model complete a prompt, a conversation or a whole request.

    Args:
        prompt: A text of the user, messages, or a `CompletionRequest`, which says everything.
        model: The model's id; `default` is the one that the host chooses.
        system: Instructions that go before the prompt.
        settings: Members of `CompletionRequest`, such as `max_tokens=100`.

    Raises:
        Error: With `denied` for a model that is not granted, and those of the provider.
    """
    if isinstance(prompt, CompletionRequest):
        return _host.current().complete(prompt)
    messages = [Message("user", prompt)] if isinstance(prompt, str) else list(prompt)
    if system is not None:
        messages.insert(0, Message("system", system))
    return _host.current().complete(CompletionRequest(model, messages, **settings))
