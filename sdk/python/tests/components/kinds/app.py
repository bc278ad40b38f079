"""Everything that a plugin contributes."""

from typing import Annotated, Literal

from tenon import (
    AssistantMessage, CompletionRequest, Evaluation, Field, Image, ResourceLink, Subject, UserMessage,
    complete, eval, finding, inference, memory, messaging, prompt, provider, resource, summarize, tool, tools, user,
)  # fmt: skip

PNG = b"\x89PNG\r\n\x1a\n"


@tool
def draw() -> list[str | Image | ResourceLink]:
    """Answers with content of several kinds."""
    return ["a picture", Image(PNG), ResourceLink("notes://1", title="One")]


@tool
def raw() -> bytes:
    """Answers with bytes."""
    return PNG


@resource("notes://{name}", mime_type="text/markdown", list=lambda: ["one", "two"])
def note(name: Literal["one", "two"]) -> str:
    """A note."""
    return f"# {name}"


@resource("notes:help")
def help() -> bytes:
    """Help."""
    return b"\x00\x01"


@prompt
def translate(text: str, language: Annotated[str, Field(complete=["English", "French"])] = "English") -> list:
    """Has a text translated."""
    return [AssistantMessage("What?"), UserMessage(f"Translate into {language}: {text}")]


@complete(translate, "text")
def texts(typed: str, others: dict[str, str]) -> list[str]:
    """Suggests what was typed, in another language."""
    return [f"{typed} in {others.get('language', 'English')}"]


@eval
def concise(subject: Subject, most: Annotated[int, Field(minimum=1)] = 3) -> Evaluation:
    """Judges length."""
    words = len(subject.output_text.split())
    return summarize([finding("words", words <= most, f"it has {words} words")])


birds = provider("birds", "Repeats what it is told")


@birds.model("parrot", title="Parrot", context_window=100)
def parrot(request: CompletionRequest) -> str:
    """Repeats."""
    return request.last_user_text or ""


@tool
def think(text: str) -> str:
    """Asks a model."""
    return inference.complete(text, model="kinds/parrot", max_tokens=5).text


@tool
def relay() -> str:
    """Calls another tool."""
    names = [one["name"] for one in tools.list()]
    return f"{names} {tools.call('kinds__raw').content[0].mime_type}"


@tool
def form() -> str:
    """Asks the user."""
    from dataclasses import make_dataclass

    answer = user.ask("Where?", make_dataclass("Trip", [("city", str), ("nights", int)]))
    return f"{answer.value.nights} in {answer.value.city}" if answer else answer.outcome


@tool
def send() -> str:
    """Sends and remembers."""
    messaging.send("hi", "ops")
    return str(memory.search("x", 3))
