"""{{description}}."""

from tenon import ToolError, tool


@tool(read_only=True, idempotent=True)
def greet(name: str) -> str:
    """Greets somebody.

    Args:
        name: Whom to greet.
    """
    if not name.strip():
        raise ToolError("`name` is empty: say whom to greet")
    return f"Hello, {name.strip()}!"
