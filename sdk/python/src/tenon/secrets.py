"""Secrets that the user keeps for the plugin: `secrets = ["api-key"]` in plugin.toml.

What the host gives out here it masks wherever it shows what the plugin says.
"""

from __future__ import annotations

from . import _host


def get(name: str) -> str:
    """The value of a secret.

    Raises:
        Error: With `denied` for one that is not granted, `not-found` for one that nobody has set.
    """
    return _host.current().secret(name)
