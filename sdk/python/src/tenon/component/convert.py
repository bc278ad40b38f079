"""Values of this package as those of the contract, and back."""

from __future__ import annotations

import json
from typing import Any

from .. import content, models
from .._context import Context
from .._errors import Error, ErrorCode
from .wit import model, types


def to_json(value: Any) -> str | None:
    """JSON text of a value; nothing of `None`."""
    return None if value is None else json.dumps(value, ensure_ascii=False)


def from_json(text: str | None) -> Any:
    """A value of JSON text; `None` of nothing."""
    return None if text is None else json.loads(text)


# Errors and calls.


def lower_error(error: Error) -> Any:
    """An error as one of the contract."""
    retry_after = None if error.retry_after is None else round(error.retry_after * 1000)
    code = types.ErrorCode[error.code.name]
    return types.Error(code, error.message, retry_after, to_json(error.data))


def lift_error(error: Any) -> Error:
    """An error of the contract."""
    retry_after = None if error.retry_after is None else error.retry_after / 1000
    try:
        data = from_json(error.data)
    except ValueError:
        data = error.data
    return Error(ErrorCode[error.code.name], error.message, retry_after=retry_after, data=data)


def lift_context(context: Any) -> Context:
    """What the host says of a call."""
    time_left = None if context.time_left is None else context.time_left / 1000
    extra = from_json(context.extra) or {}
    return Context(
        context.call_id, context.agent_id, context.session_id, context.traceparent, time_left, extra
    )


# Content.


def lower_content(block: content.Content) -> Any:
    """One piece of content."""
    return types.ContentBlock(_body(block), to_json(getattr(block, "extra", None)))


def _body(block: content.Content) -> Any:
    if isinstance(block, content.Text):
        return types.Content_Text(block.text)
    if isinstance(block, content.Image):
        return types.Content_Image(types.Media(bytes(block.data), block.mime_type))
    if isinstance(block, content.Audio):
        return types.Content_Audio(types.Media(bytes(block.data), block.mime_type))
    if isinstance(block, content.ResourceLink):
        return types.Content_ResourceLink(lower_link(block))
    if isinstance(block, content.ResourceContents):
        return types.Content_Resource(lower_contents(block, with_extra=False))
    return types.Content_Other(json.dumps(block.block, ensure_ascii=False))


def lower_link(link: content.ResourceLink) -> Any:
    """A pointer to a resource."""
    return types.ResourceLink(link.uri, link.name, link.title, link.description, link.mime_type, link.size)


def lower_contents(contents: content.ResourceContents, *, with_extra: bool = True) -> Any:
    """What was read from a resource."""
    text = isinstance(contents.body, str)
    body = types.ResourceBody_Text(contents.body) if text else types.ResourceBody_Blob(bytes(contents.body))  # type: ignore[arg-type]
    extra = to_json(contents.extra) if with_extra else None
    return types.ResourceContents(contents.uri or "resource:content", contents.mime_type, body, extra)


def lift_content(block: Any) -> content.Content:
    """One piece of content."""
    value, extra = block.body.value, from_json(block.extra)
    match type(block.body).__name__:
        case "Content_Text":
            return content.Text(value, extra)
        case "Content_Image":
            return content.Image(value.data, value.mime_type, extra)
        case "Content_Audio":
            return content.Audio(value.data, value.mime_type, extra)
        case "Content_ResourceLink":
            return content.ResourceLink(
                value.uri, value.name, value.title, value.description, value.mime_type, value.size, extra
            )
        case "Content_Resource":
            return content.ResourceContents(
                value.body.value, value.mime_type, value.uri, extra or from_json(value.extra)
            )
        case _:
            return content.Other(json.loads(value))


def lower_result(result: content.ToolResult) -> Any:
    """The answer of a tool."""
    blocks = [lower_content(block) for block in result.content]
    return types.ToolResult(blocks, to_json(result.structured), result.is_error, to_json(result.extra))


def lift_result(result: Any) -> content.ToolResult:
    """The answer of another tool."""
    blocks = [lift_content(block) for block in result.content]
    return content.ToolResult(blocks, from_json(result.structured), result.is_error, from_json(result.extra))


# Models.

_ROLES = ("system", "user", "assistant", "tool")


def lower_part(part: models.Part) -> Any:
    """A piece of a message."""
    if isinstance(part, content.Text):
        return model.Part_Text(part.text)
    if isinstance(part, content.Image):
        return model.Part_Image(types.Media(bytes(part.data), part.mime_type))
    if isinstance(part, content.Audio):
        return model.Part_Audio(types.Media(bytes(part.data), part.mime_type))
    if isinstance(part, models.Reasoning):
        return model.Part_Reasoning(model.Reasoning(part.text, part.signature))
    if isinstance(part, models.ToolCall):
        return model.Part_ToolCall(
            model.ToolCall(part.id, part.name, json.dumps(part.arguments, ensure_ascii=False))
        )
    if isinstance(part, models.ToolCallResult):
        blocks = [lower_content(block) for block in part.content]
        return model.Part_ToolCallResult(model.ToolCallResult(part.id, blocks, part.is_error))
    return model.Part_Other(json.dumps(part.block, ensure_ascii=False))


def lift_part(part: Any) -> models.Part:
    """A piece of a message."""
    value = part.value
    match type(part).__name__:
        case "Part_Text":
            return content.Text(value)
        case "Part_Image":
            return content.Image(value.data, value.mime_type)
        case "Part_Audio":
            return content.Audio(value.data, value.mime_type)
        case "Part_Reasoning":
            return models.Reasoning(value.text, value.signature)
        case "Part_ToolCall":
            return models.ToolCall(value.id, value.name, _arguments(value.arguments))
        case "Part_ToolCallResult":
            return models.ToolCallResult(
                value.id, [lift_content(block) for block in value.content], value.is_error
            )
        case _:
            return content.Other(json.loads(value))


def _arguments(text: str) -> Any:
    """What a model wrote as arguments: JSON, if it is some."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def lower_request(request: models.CompletionRequest) -> Any:
    """A request to a model of the host."""
    if request.messages and any(message.role not in _ROLES for message in request.messages):
        wrong = next(message.role for message in request.messages if message.role not in _ROLES)
        raise Error(ErrorCode.INVALID_INPUT, f"there is no role {wrong!r}; the roles are {', '.join(_ROLES)}")
    choices = {
        "auto": model.ToolChoice_Auto,
        "none": model.ToolChoice_None_,
        "required": model.ToolChoice_Required,
    }
    choice = choices.get(request.tool_choice)
    return model.CompletionRequest(
        model=request.model,
        messages=[
            model.Message(model.Role[message.role.upper()], [lower_part(part) for part in message.parts])
            for message in request.messages
        ],
        tools=[
            model.ModelTool(tool.name, tool.description, json.dumps(tool.input_schema))
            for tool in request.tools
        ],
        tool_choice=choice() if choice else model.ToolChoice_Named(request.tool_choice),
        sampling=model.SamplingOptions(
            request.max_tokens, request.temperature, request.top_p, list(request.stop_sequences), request.seed
        ),
        response_schema=to_json(request.response_schema),
        extra=to_json(request.extra),
    )


def lift_request(request: Any) -> models.CompletionRequest:
    """A request to a model of the plugin."""
    choices = {"ToolChoice_Auto": "auto", "ToolChoice_None_": "none", "ToolChoice_Required": "required"}
    choice = choices.get(type(request.tool_choice).__name__) or request.tool_choice.value
    sampling = request.sampling
    return models.CompletionRequest(
        model=request.model,
        messages=[
            models.Message(message.role.name.lower(), [lift_part(part) for part in message.parts])
            for message in request.messages
        ],
        tools=[
            models.ModelTool(tool.name, tool.description, json.loads(tool.input_schema))
            for tool in request.tools
        ],
        tool_choice=choice,
        max_tokens=sampling.max_tokens,
        temperature=sampling.temperature,
        top_p=sampling.top_p,
        stop_sequences=sampling.stop_sequences,
        seed=sampling.seed,
        response_schema=from_json(request.response_schema),
        extra=from_json(request.extra),
    )


_STOPS = {
    "end-turn": "EndTurn", "max-tokens": "MaxTokens", "stop-sequence": "StopSequence",
    "tool-use": "ToolUse", "refusal": "Refusal",
}  # fmt: skip


def lower_completion(completion: models.Completion) -> Any:
    """An answer of a model of the plugin."""
    named = _STOPS.get(completion.stop_reason)
    reason = (
        getattr(model, f"StopReason_{named}")() if named else model.StopReason_Other(completion.stop_reason)
    )
    used = completion.usage
    usage = model.TokenUsage(used.input, used.output, used.cached_input, used.reasoning)
    summary = model.CompletionSummary(completion.model, reason, usage, to_json(completion.extra))
    parts = [content.Text(part) if isinstance(part, str) else part for part in completion.parts]
    return model.Completion([lower_part(part) for part in parts], summary)


def lift_completion(completion: Any) -> models.Completion:
    """An answer of a model of the host."""
    summary = completion.summary
    names = {f"StopReason_{name}": text for text, name in _STOPS.items()}
    reason = names.get(type(summary.stop_reason).__name__) or summary.stop_reason.value
    used = summary.usage
    usage = models.Usage(used.input, used.output, used.cached_input, used.reasoning)
    parts = [lift_part(part) for part in completion.parts]
    return models.Completion(parts, summary.model, reason, usage, from_json(summary.extra))


def lower_model(info: models.ModelInfo) -> Any:
    """A model that the plugin provides."""
    features = model.ModelFeatures(0)
    for name in ("tools", "images", "audio", "response_schema"):
        if getattr(info, name):
            features |= model.ModelFeatures[name.upper()]
    return model.ModelInfo(
        info.id, info.provider, info.title, info.context_window, info.max_output_tokens, features
    )
