"""What a tool answers, a prompt says and a resource contains."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Union

#: Annotations and `_meta` of MCP, which travel unchanged.
Extra = Union[dict[str, Any], None]


@dataclass
class Text:
    """Plain text for the model or the user."""

    text: str
    extra: Extra = None


@dataclass
class Image:
    """An image: its bytes, and their media type such as `image/png`."""

    data: bytes
    mime_type: str = "image/png"
    extra: Extra = None


@dataclass
class Audio:
    """A sound: its bytes, and their media type such as `audio/wav`."""

    data: bytes
    mime_type: str = "audio/wav"
    extra: Extra = None


@dataclass
class ResourceLink:
    """A pointer to a resource that the reader may fetch.

    Args:
        uri: The resource's URI.
        name: The name that programs use; by default the URI.
        title: The name that people see.
        description: What is in it.
        mime_type: Its media type.
        size: Its size in bytes.
    """

    uri: str
    name: str = ""
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    extra: Extra = None

    def __post_init__(self) -> None:
        self.name = self.name or self.uri


@dataclass
class ResourceContents:
    """What was read from a resource, or a resource that an answer carries along.

    Args:
        body: Text, or bytes.
        mime_type: The media type; by default `text/plain` of text.
        uri: The URI of this part; by default that which is read.
    """

    body: str | bytes
    mime_type: str | None = None
    uri: str = ""
    extra: Extra = None

    def __post_init__(self) -> None:
        if self.mime_type is None and isinstance(self.body, str):
            self.mime_type = "text/plain"


@dataclass
class Other:
    """A block of a type that this package does not name, as the whole JSON object with its `type`."""

    block: dict[str, Any]


#: One piece of an answer or of a prompt.
Content = Union[Text, Image, Audio, ResourceLink, ResourceContents, Other]

CONTENT = (Text, Image, Audio, ResourceLink, ResourceContents, Other)


@dataclass
class ToolResult:
    """The answer of a tool.

    Args:
        content: What the model and the user get; texts and bytes become content.
        structured: A JSON value for programs.
        is_error: That the tool could not do what was asked; the content says why.
        extra: `_meta` and the like, which travel unchanged.
    """

    content: list[Content]
    structured: Any = None
    is_error: bool = False
    extra: Extra = None

    def __post_init__(self) -> None:
        blocks = [block(one) for one in self.content]
        if None in blocks:
            wrong = self.content[blocks.index(None)]
            raise TypeError(
                f"{type(wrong).__name__} is no content: pass texts, bytes, Image, Audio, ResourceLink or ResourceContents"
            )
        self.content = [one for one in blocks if one is not None]

    @property
    def text(self) -> str:
        """The texts of the answer, joined by line breaks."""
        return "\n".join(block.text for block in self.content if isinstance(block, Text))


#: The first bytes of the usual formats.
_MAGIC: list[tuple[bytes, type, str]] = [
    (b"\x89PNG\r\n\x1a\n", Image, "image/png"),
    (b"\xff\xd8\xff", Image, "image/jpeg"),
    (b"GIF8", Image, "image/gif"),
    (b"ID3", Audio, "audio/mpeg"),
    (b"OggS", Audio, "audio/ogg"),
    (b"fLaC", Audio, "audio/flac"),
]


def of_bytes(data: bytes) -> Content:
    """Bytes as what they are by their beginning: an image or a sound of a usual format, or a
    resource of unknown type."""
    for magic, kind, mime_type in _MAGIC:
        if data.startswith(magic):
            return kind(data, mime_type)
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return Image(data, "image/webp")
    if data[:4] == b"RIFF" and data[8:12] == b"WAVE":
        return Audio(data, "audio/wav")
    return ResourceContents(data, "application/octet-stream", uri="data:application/octet-stream")


def block(value: Any) -> Content | None:
    """A value as one piece of content, if it is one: text, bytes or a class of this module."""
    if isinstance(value, str):
        return Text(value)
    if isinstance(value, (bytes, bytearray)):
        return of_bytes(bytes(value))
    return value if isinstance(value, CONTENT) else None


def to_json(value: Any) -> str:
    """A JSON text, as short as it can be read."""
    return json.dumps(value, ensure_ascii=False)
