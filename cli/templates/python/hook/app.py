"""{{description}}."""

from tenon import config, hook


@hook("message-sending")
def sign(context: dict) -> None:
    """Signs a message; what is none is left alone."""
    if isinstance(context.get("message"), str):
        context["message"] += "\n" + config.get("signature", "Sent with {{name}}")
