"""What the plugin does."""


def repeat(texts: list[str]) -> tuple[str, int]:
    """What the model answers to the texts of a message, and how many words that has."""
    text = "".join(texts)
    return text, len(text.split())
