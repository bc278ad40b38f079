"""Messages that the host sends: `messaging = ["ops"]` in plugin.toml names the channels."""

from __future__ import annotations

from typing import Any

from . import _host


def send(text: str, channel: str | None = None, extra: dict[str, Any] | None = None) -> None:
    """Sends a message.

    Args:
        text: What it says.
        channel: Where to; by default to the user at hand.
        extra: What else the channel understands.

    Raises:
        Error: With `denied` for a channel that is not granted, `not-found` for one that does not exist.
    """
    _host.current().send_message(text, channel, extra)
