"""The name that somebody may have meant."""

from __future__ import annotations

import difflib
from typing import Iterable


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most like this one, if any is."""
    names = {str(candidate).lower(): str(candidate) for candidate in known}
    found = difflib.get_close_matches(name.lower(), names, n=1, cutoff=0.6)
    return names[found[0]] if found else None


def suggestion(name: str, known: Iterable[str]) -> str:
    """`: did you mean "…"?`, or nothing."""
    found = nearest(name, known)
    return f': did you mean "{found}"?' if found else ""
