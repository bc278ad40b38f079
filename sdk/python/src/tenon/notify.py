"""News from the plugin. None of it answers."""

from __future__ import annotations

from . import _host


def resource_updated(uri: str) -> None:
    """Says that the resource with this URI is another one now. The host tells those who subscribed."""
    _host.current().resource_updated(uri)


def contributions_changed() -> None:
    """Says that the plugin lists other things than before."""
    _host.current().contributions_changed()
