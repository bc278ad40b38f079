"""What the plugin does."""


def sign(context: dict, signature: str) -> dict | None:
    """The context of a message with a signature below it; nothing where there is no message."""
    if not isinstance(context.get("message"), str):
        return None
    return {**context, "message": f"{context['message']}\n{signature}"}
