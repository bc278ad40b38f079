"""{{description}}."""

from tenon import prompt


@prompt
def explain(topic: str, audience: str = "a beginner") -> str:
    """Asks for an explanation.

    Args:
        topic: What to explain.
        audience: Whom to explain it to.
    """
    return f"Explain {topic} to {audience}."
