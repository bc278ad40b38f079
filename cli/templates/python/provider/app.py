"""{{description}}."""

from tenon import Completion, CompletionRequest, Error, Text, Usage, provider

birds = provider("{{name}}", "Repeats what it is told")


@birds.model("parrot", title="Parrot")
def parrot(request: CompletionRequest) -> Completion:
    """Answers with the last message of the user."""
    told = request.last_user_text
    if told is None:
        raise Error("invalid-input", "the request has no user message")
    words = len(told.split())
    return Completion([Text(told)], usage=Usage(input=words, output=words))
