"""What the plugin does."""

import json


def concise(output: object, most: int = 100) -> tuple[float, str]:
    """How short an output is, from 0 to 1, and why."""
    text = output if isinstance(output, str) else json.dumps(output)
    words = len(text.split())
    score = 1.0 if words <= most else most / words
    return score, f"it has {words} words, and {most} are the most"
