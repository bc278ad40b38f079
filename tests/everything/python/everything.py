"""A plugin in Python that has what the conformance suite of MCP asks a server for, under the names that the suite
knows.

The modules `wit_world` and `componentize_py_types` are made from the WIT by componentize-py.
"""

import json
import re
import time
from base64 import b64decode
from collections.abc import Callable
from dataclasses import dataclass

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports.completions import (
    ArgumentCompletion,
    CompletionReference_Prompt,
    CompletionReference_ResourceTemplate,
    Suggestions,
)
from wit_world.exports.evals import EvalDefinition, Evaluation
from wit_world.exports.hooks import HookEvent, HookOutcome, HookRegistration
from wit_world.exports.lifecycle import Identity
from wit_world.exports.prompts import (
    Prompt,
    PromptArgument,
    PromptDefinition,
    PromptMessage,
    PromptPage,
    PromptRole,
)
from wit_world.exports.providers import ProviderDefinition
from wit_world.exports.resources import (
    ListedResource,
    ResourcePage,
    ResourceTemplate,
    TemplatePage,
)
from wit_world.imports import atomics, inference, log, notify, store, user
from wit_world.imports.atomics import CasError, CasError_CasFailed, CasError_StoreError
from wit_world.imports.model import (
    Completion,
    CompletionRequest,
    Message,
    ModelInfo,
    Part_Text,
    Role,
    SamplingOptions,
    ToolChoice_Auto,
)
from wit_world.imports.types import (
    CallContext,
    Content,
    Content_Audio,
    Content_Image,
    Content_Resource,
    Content_Text,
    ContentBlock,
    Error,
    ErrorCode,
    Media,
    ResourceBody,
    ResourceBody_Blob,
    ResourceBody_Text,
    ResourceContents,
    ResourceLink,
    ToolAnnotations,
    ToolDefinition,
    ToolResult,
)
from wit_world.imports.user import FormAnswer_Accepted, FormAnswer_Declined, FormRequest

PNG = b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
)
WAV = b64decode("UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=")

# The URI of the resource that changes.
WATCHED = "test://watched-resource"


def error(code: ErrorCode, message: str) -> Err:
    return Err(Error(code, message, retry_after=None, data=None))


def only_page(cursor: str | None) -> None:
    """Refuses a cursor: every listing has one page."""
    if cursor is not None:
        raise error(ErrorCode.INVALID_INPUT, f"there is no page {cursor!r}")


# Content


def text(text: str) -> Content:
    return Content_Text(text)


def image() -> Content:
    return Content_Image(Media(PNG, "image/png"))


def embedded(uri: str, text: str, mime_type: str) -> Content:
    return Content_Resource(ResourceContents(uri, mime_type, ResourceBody_Text(text), extra=None))


def block(content: Content) -> ContentBlock:
    return ContentBlock(content, extra=None)


def result(*content: Content, is_error: bool = False) -> ToolResult:
    return ToolResult([block(body) for body in content], None, is_error, extra=None)


# What is kept. Each call has a new instance, so that nothing is kept in variables.


def of_contract(problem: store.Error | CasError) -> Err:
    """An error of the store as one of the contract. Raised as it is, it would be a trap."""
    match problem:
        case CasError_StoreError(cause):
            return of_contract(cause)
        case store.Error_AccessDenied():
            return error(ErrorCode.DENIED, "state is not granted")
        case store.Error_NoSuchStore():
            return error(ErrorCode.NOT_FOUND, "there is no such state")
        case store.Error_Other(message):
            return error(ErrorCode.FAILED, message)
        case _:
            return error(ErrorCode.FAILED, "another call has changed the state")


def updates() -> int:
    """How often the watched resource has changed."""
    try:
        return int(store.open("default").get("updates") or 0)
    except Err as err:
        raise of_contract(err.value)


def update() -> None:
    """Says that it has changed once more."""
    try:
        atomics.increment(store.open("default"), "updates", 1)
    except Err as err:
        raise of_contract(err.value)


def remember(word: str) -> int:
    """Adds a word to those that are kept, and returns how many these are."""
    try:
        seen = atomics.Cas.new(store.open("default"), "words")
        while True:
            words = [*json.loads(seen.current() or "[]"), word]
            try:
                atomics.swap(seen, json.dumps(words).encode())
                return len(words)
            except Err as err:
                if not isinstance(err.value, CasError_CasFailed):
                    raise
                # Another call was faster, and this is what it has written.
                seen = err.value.value
    except Err as err:
        raise of_contract(err.value)


# Tools


@dataclass
class Tool:
    description: str
    run: Callable[..., ToolResult]
    arguments: tuple[str, ...]


TOOLS: dict[str, Tool] = {}


def tool(description: str, *arguments: str):
    """Makes a tool of a function. Its arguments, which are texts, follow the context of the call."""

    def add(run: Callable[..., ToolResult]):
        TOOLS[run.__name__] = Tool(description, run, arguments)
        return run

    return add


@tool("Tests simple text content response")
def test_simple_text(context: CallContext) -> ToolResult:
    return result(text("This is a simple text response for testing."))


@tool("Tests image content response")
def test_image_content(context: CallContext) -> ToolResult:
    return result(image())


@tool("Tests audio content response")
def test_audio_content(context: CallContext) -> ToolResult:
    return result(Content_Audio(Media(WAV, "audio/wav")))


@tool("Tests embedded resource content response")
def test_embedded_resource(context: CallContext) -> ToolResult:
    words = "This is an embedded resource content."
    return result(embedded("test://embedded-resource", words, "text/plain"))


@tool("Tests response with multiple content types")
def test_multiple_content_types(context: CallContext) -> ToolResult:
    data = '{"test":"data","value":123}'
    return result(
        text("Multiple content types test:"),
        image(),
        embedded("test://mixed-content-resource", data, "application/json"),
    )


@tool("Tests tool that emits log messages during execution")
def test_tool_with_logging(context: CallContext) -> ToolResult:
    for words in ["Tool execution started", "Tool processing data", "Tool execution completed"]:
        log.write(log.Level.INFO, words, [])
    return result(text("Tool with logging executed successfully"))


@tool("Tests tool that reports progress notifications")
def test_tool_with_progress(context: CallContext) -> ToolResult:
    for step in (0, 50, 100):
        if step > 0:
            time.sleep(0.05)
        notify.progress(context.call_id, step, 100, f"Completed step {step} of 100")
    return result(text("Tool with progress executed successfully"))


@tool("Tests error response handling")
def test_error_handling(context: CallContext) -> ToolResult:
    words = "This tool intentionally returns an error for testing"
    return result(text(words), is_error=True)


@tool("Changes the watched resource")
def test_update_watched_resource(context: CallContext) -> ToolResult:
    update()
    notify.resource_updated(WATCHED)
    return result(text("Resource updated"))


@tool("Says that the list of tools has changed")
def test_trigger_tool_change(context: CallContext) -> ToolResult:
    notify.contributions_changed()
    return result(text("Tools changed"))


@tool("Tests sampling", "prompt")
def test_sampling(context: CallContext, prompt: str) -> ToolResult:
    request = CompletionRequest(
        model="default",
        messages=[Message(Role.USER, [Part_Text(prompt)])],
        tools=[],
        tool_choice=ToolChoice_Auto(),
        sampling=SamplingOptions(
            max_tokens=100, temperature=None, top_p=None, stop_sequences=[], seed=None
        ),
        response_schema=None,
        extra=None,
    )
    parts = inference.complete(request).parts
    answer = "".join(part.value for part in parts if isinstance(part, Part_Text))
    return result(text(f"LLM response: {answer}"))


@tool("Tests elicitation", "message")
def test_elicitation(context: CallContext, message: str) -> ToolResult:
    schema = {
        "type": "object",
        "properties": {"username": {"type": "string"}, "email": {"type": "string"}},
        "required": ["username"],
    }
    match user.ask(FormRequest(message, json.dumps(schema), extra=None)):
        case FormAnswer_Accepted(value):
            filled_in = json.loads(value)
            answer = f"accept, {filled_in['username']}, {filled_in.get('email', '')}"
        case FormAnswer_Declined():
            answer = "decline"
        case _:
            answer = "cancel"
    return result(text(f"User response: {answer}"))


@tool("Remembers a word", "word")
def test_remember(context: CallContext, word: str) -> ToolResult:
    return result(text(str(remember(word))))


@tool("Waits until nobody wants an answer")
def test_wait(context: CallContext) -> ToolResult:
    while True:
        pass


class Tools(exports.Tools):
    def list_tools(self) -> list[ToolDefinition]:
        return [
            ToolDefinition(
                name=name,
                title=None,
                description=tool.description,
                input_schema=json.dumps(
                    {
                        "type": "object",
                        "properties": {name: {"type": "string"} for name in tool.arguments},
                        "required": tool.arguments,
                    }
                ),
                output_schema=None,
                annotations=ToolAnnotations(None, None, None, None),
                capabilities=[],
                extra=None,
            )
            for name, tool in TOOLS.items()
        ]

    def call_tool(self, name: str, arguments: str, context: CallContext) -> ToolResult:
        if name not in TOOLS:
            raise error(ErrorCode.NOT_FOUND, f"there is no tool {name!r}")
        return TOOLS[name].run(context, **json.loads(arguments))


# Resources


TEMPLATE = "test://template/{id}/data"


def link(uri: str, title: str, description: str, mime_type: str) -> ResourceLink:
    name = uri.removeprefix("test://")
    return ResourceLink(uri, name, title, description, mime_type, size=None)


RESOURCES = [
    link("test://static-text", "Static Text Resource", "A static text resource", "text/plain"),
    link("test://static-binary", "Static Binary Resource", "A static image", "image/png"),
    link(WATCHED, "Watched Resource", "A resource that a tool changes", "text/plain"),
]


def contents(uri: str, body: ResourceBody, mime_type: str) -> list[ResourceContents]:
    return [ResourceContents(uri, mime_type, body, extra=None)]


class Resources(exports.Resources):
    def list_resources(self, cursor: str | None, context: CallContext) -> ResourcePage:
        only_page(cursor)
        return ResourcePage([ListedResource(link, extra=None) for link in RESOURCES], next=None)

    def list_templates(self, cursor: str | None, context: CallContext) -> TemplatePage:
        only_page(cursor)
        template = ResourceTemplate(
            uri_template=TEMPLATE,
            name="template",
            title="Resource Template",
            description="A resource template with parameter substitution",
            mime_type="application/json",
            extra=None,
        )
        return TemplatePage([template], next=None)

    def read_resource(self, uri: str, context: CallContext) -> list[ResourceContents]:
        if uri == "test://static-text":
            words = "This is the content of the static text resource."
            return contents(uri, ResourceBody_Text(words), "text/plain")
        if uri == "test://static-binary":
            return contents(uri, ResourceBody_Blob(PNG), "image/png")
        if uri == WATCHED:
            words = f"Watched resource content, changed {updates()} times"
            return contents(uri, ResourceBody_Text(words), "text/plain")
        if found := re.fullmatch("test://template/([^/]+)/data", uri):
            data = {"id": found[1], "templateTest": True, "data": f"Data for ID: {found[1]}"}
            return contents(uri, ResourceBody_Text(json.dumps(data)), "application/json")
        raise error(ErrorCode.NOT_FOUND, f"there is no resource {uri}")


class Subscriptions(exports.Subscriptions):
    """Says what can be subscribed to. No instance knows who did, so every change is told."""

    def subscribe(self, uri: str, context: CallContext) -> None:
        if uri != WATCHED:
            raise error(ErrorCode.NOT_FOUND, f"{uri} never changes")

    def unsubscribe(self, uri: str, context: CallContext) -> None:
        pass


# Prompts


def argument(name: str, description: str) -> PromptArgument:
    return PromptArgument(name, None, description, required=True, extra=None)


def prompt(name: str, description: str, *arguments: PromptArgument) -> PromptDefinition:
    return PromptDefinition(name, None, description, list(arguments), extra=None)


PROMPTS = [
    prompt("test_simple_prompt", "A simple prompt without arguments"),
    prompt(
        "test_prompt_with_arguments",
        "A prompt with required arguments",
        argument("arg1", "First test argument"),
        argument("arg2", "Second test argument"),
    ),
    prompt(
        "test_prompt_with_embedded_resource",
        "A prompt that includes an embedded resource",
        argument("resourceUri", "URI of the resource to embed"),
    ),
    prompt("test_prompt_with_image", "A prompt that includes image content"),
]


def filled_in(name: str, given: dict[str, str]) -> list[Content]:
    match name:
        case "test_simple_prompt":
            return [text("This is a simple prompt for testing.")]
        case "test_prompt_with_arguments":
            words = f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'"
            return [text(words)]
        case "test_prompt_with_embedded_resource":
            words = "Embedded resource content for testing."
            resource = embedded(given["resourceUri"], words, "text/plain")
            return [resource, text("Please process the embedded resource above.")]
        case _:
            return [image(), text("Please analyze the image above.")]


class Prompts(exports.Prompts):
    def list_prompts(self, cursor: str | None, context: CallContext) -> PromptPage:
        only_page(cursor)
        return PromptPage(PROMPTS, next=None)

    def get_prompt(
        self, name: str, arguments: list[tuple[str, str]], context: CallContext
    ) -> Prompt:
        prompt = next((prompt for prompt in PROMPTS if prompt.name == name), None)
        if prompt is None:
            raise error(ErrorCode.NOT_FOUND, f"there is no prompt {name!r}")
        given = dict(arguments)
        if given.keys() != {argument.name for argument in prompt.arguments}:
            raise error(ErrorCode.INVALID_INPUT, f"{name} takes other arguments")
        messages = [
            PromptMessage(PromptRole.USER, block(content), extra=None)
            for content in filled_in(name, given)
        ]
        return Prompt(prompt.description, messages, extra=None)


class Completions(exports.Completions):
    def complete_argument(
        self, argument: ArgumentCompletion, context: CallContext
    ) -> Suggestions:
        match argument.reference, argument.name:
            case CompletionReference_Prompt("test_prompt_with_arguments"), "arg1":
                known = ["paris", "park", "party", "test", "testing"]
            case CompletionReference_ResourceTemplate(uri), "id" if uri == TEMPLATE:
                known = ["123", "124", "200"]
            case _:
                known = []
        values = [value for value in known if value.startswith(argument.value)]
        return Suggestions(values, total=len(values), has_more=False, extra=None)


# The rest of the world, of which this plugin has nothing.


class Lifecycle(exports.Lifecycle):
    def start(self) -> Identity:
        description = "Has what the conformance suite of MCP asks a server for."
        return Identity("everything", "0.1.0", description, None)

    def stop(self) -> None:
        pass


class Cancellation(exports.Cancellation):
    """Needed on shared instances only."""

    def cancel(self, call_id: str) -> None:
        pass


class Hooks(exports.Hooks):
    def list_hooks(self) -> list[HookRegistration]:
        return []

    def handle_event(self, event: HookEvent, context: CallContext) -> HookOutcome:
        raise error(ErrorCode.NOT_FOUND, f"{event.point} is not handled")


class Providers(exports.Providers):
    def list_providers(self) -> list[ProviderDefinition]:
        return []

    def list_models(self) -> list[ModelInfo]:
        return []

    def complete(self, request: CompletionRequest, context: CallContext) -> Completion:
        raise error(ErrorCode.NOT_FOUND, f"there is no model {request.model!r}")


class Evals(exports.Evals):
    def list_evals(self) -> list[EvalDefinition]:
        return []

    def evaluate(
        self, strategy: str, subject: str, options: str, context: CallContext
    ) -> Evaluation:
        raise error(ErrorCode.NOT_FOUND, f"there is no strategy {strategy!r}")
