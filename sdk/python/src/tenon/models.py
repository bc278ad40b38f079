"""What a language model is asked and what it answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Sequence, Union

from .content import Audio, Content, Image, Other, Text


@dataclass
class Reasoning:
    """Reasoning that a model shows. Providers that sign it need it back unchanged."""

    text: str
    signature: str | None = None


@dataclass
class ToolCall:
    """The wish of a model to have a tool called. The arguments are what it wrote: they may not
    match the schema."""

    id: str
    name: str
    arguments: Any


@dataclass
class ToolCallResult:
    """What a tool answered to the call with this id."""

    id: str
    content: list[Content]
    is_error: bool = False


#: A piece of a message.
Part = Union[Text, Image, Audio, Reasoning, ToolCall, ToolCallResult, Other]


@dataclass
class Message:
    """One turn of a conversation.

    Args:
        role: `system`, `user`, `assistant` or `tool`.
        parts: What is said; a text is a single part.
    """

    role: str
    parts: list[Part]

    def __init__(self, role: str, parts: Union[str, Sequence[Any]]) -> None:
        self.role = role
        given = [parts] if isinstance(parts, str) else parts
        self.parts = [Text(part) if isinstance(part, str) else part for part in given]

    @property
    def text(self) -> str:
        """Its texts, one after the other."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))


@dataclass
class ModelTool:
    """A tool as a model sees it, with the JSON Schema of its arguments."""

    name: str
    description: str
    input_schema: dict[str, Any]


@dataclass
class CompletionRequest:
    """One request to a model. Members that are `None` mean the provider's defaults.

    Args:
        model: The model's id.
        messages: The conversation, oldest first.
        tools: The tools that the model may ask for.
        tool_choice: `auto`, `none`, `required`, or the name of the tool that it must call.
        max_tokens: The greatest number of tokens to generate.
        response_schema: A JSON Schema that the answer must match.
        extra: Settings of the provider's own.
    """

    model: str
    messages: list[Message]
    tools: list[ModelTool] = field(default_factory=list)
    tool_choice: str = "auto"
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    stop_sequences: list[str] = field(default_factory=list)
    seed: int | None = None
    response_schema: dict[str, Any] | None = None
    extra: dict[str, Any] | None = None

    @property
    def last_user_text(self) -> str | None:
        """The texts of the last message of the user; `None` where there is none."""
        said = [message.text for message in self.messages if message.role == "user"]
        return said[-1] if said else None


@dataclass
class Usage:
    """Tokens, as the provider counts them; zero where it does not."""

    input: int = 0
    output: int = 0
    cached_input: int = 0
    reasoning: int = 0


@dataclass
class Completion:
    """An answer of a model.

    Args:
        parts: Text, reasoning and tool calls, in order.
        model: The model that answered, where it is more exact than the one asked for.
        stop_reason: `end-turn`, `max-tokens`, `stop-sequence`, `tool-use`, `refusal`, or another.
        usage: What it took.
        extra: What else the provider reports.
    """

    parts: list[Part]
    model: str = ""
    stop_reason: str = "end-turn"
    usage: Usage = field(default_factory=Usage)
    extra: dict[str, Any] | None = None

    @property
    def text(self) -> str:
        """The texts of the answer, one after the other."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))


@dataclass
class ModelInfo:
    """A model that a provider offers.

    Args:
        id: The name by which requests choose it, unique in the plugin.
        title: The name that people see.
        context_window: The tokens it can take into account, input and output together.
        max_output_tokens: The most tokens it writes in one answer.
        tools: It calls tools.
        images: It reads images.
        audio: It reads audio.
        response_schema: It answers in the form of a given JSON Schema.
    """

    id: str
    title: str | None = None
    context_window: int | None = None
    max_output_tokens: int | None = None
    tools: bool = False
    images: bool = False
    audio: bool = False
    response_schema: bool = False
    #: The provider it belongs to.
    provider: str = ""
