"""What the host remembers: `memory = ["search"]` in plugin.toml."""

from __future__ import annotations

from dataclasses import dataclass

from . import _host


@dataclass
class MemoryEntry:
    """Something remembered: how well it fits, from 0 to 1, and where it comes from."""

    text: str
    score: float = 1.0
    source: str | None = None


def search(query: str, limit: int = 10) -> list[MemoryEntry]:
    """Searches the host's memory, best match first. The host may lower the limit.

    Raises:
        Error: With `denied` where it is not granted.
    """
    return _host.current().search_memory(query, limit)
