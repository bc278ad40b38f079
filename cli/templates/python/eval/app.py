"""{{description}}."""

from typing import Annotated

from tenon import Evaluation, Field, Finding, Subject, eval


@eval
def concise(
    subject: Subject, most: Annotated[int, Field("The most words.", minimum=1)] = 100
) -> Evaluation:
    """Passes when the output is short. Beyond that the score falls with its length."""
    words = len(subject.output_text.split())
    score, verdict = (1.0, "pass") if words <= most else (most / words, "fail")
    reason = f"it has {words} words, and {most} are the most"
    return Evaluation(score, verdict, [Finding("words", verdict, reason, score)])
