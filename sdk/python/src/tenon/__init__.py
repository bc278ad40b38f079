"""Write Tenon plugins in Python.

A plugin is a handful of decorated functions in one file. Built with `tenon build`, it is a component
that any Tenon host loads.

```python
from tenon import ToolError, tool

@tool(read_only=True)
def greet(name: str) -> str:
    \"\"\"Greets somebody.

    Args:
        name: Whom to greet.
    \"\"\"
    if not name.strip():
        raise ToolError("`name` is empty: say whom to greet")
    return f"Hello, {name.strip()}!"
```

The functions stay plain functions, which tests call. `tenon.testing.Host` is a host that a test
scripts.
"""

from . import config, http, inference, log, memory, messaging, notify, secrets, state, tools, user
from ._completion import Suggestions, complete
from ._context import Context, context
from ._errors import DefinitionError, Error, ErrorCode, ToolError
from ._eval import Evaluation, Finding, Subject, eval, finding, summarize
from ._field import Field
from ._hook import Veto, hook
from ._prompt import AssistantMessage, FilledPrompt, PromptMessage, UserMessage, prompt
from ._provider import Provider, provider
from ._resource import resource, uri
from ._tool import tool
from .content import Audio, Content, Image, Other, ResourceContents, ResourceLink, Text, ToolResult
from .models import Completion, CompletionRequest, Message, ModelInfo, ModelTool, Usage

__version__ = "0.1.0"

__all__ = [
    "AssistantMessage", "Audio", "Completion", "CompletionRequest", "Content", "Context",
    "DefinitionError", "Error", "ErrorCode", "Evaluation", "Field", "FilledPrompt", "Finding", "Image",
    "Message", "ModelInfo", "ModelTool", "Other", "PromptMessage", "Provider", "ResourceContents",
    "ResourceLink", "Subject", "Suggestions", "Text", "ToolError", "ToolResult", "Usage",
    "UserMessage", "Veto", "complete", "config", "context", "eval", "finding", "hook", "http",
    "inference", "log", "memory", "messaging", "notify", "prompt", "provider", "resource", "secrets",
    "state", "summarize", "tool", "tools", "uri", "user",
]  # fmt: skip
