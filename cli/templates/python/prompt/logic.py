"""What the plugin does."""


def explain(topic: str, audience: str = "a beginner") -> str:
    """The message that asks for an explanation."""
    return f"Explain {topic} to {audience}."
