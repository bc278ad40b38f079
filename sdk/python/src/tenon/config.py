"""The plugin's settings, as the operator wrote them: what `tenon.toml` says under
`[plugins.entries.ID.settings]`."""

from __future__ import annotations

from typing import Any, TypeVar, overload

from . import _host
from ._errors import Error, ErrorCode
from ._types import Mismatch, adapter_of

T = TypeVar("T")


@overload
def get(key: str, default: Any = None) -> Any: ...
@overload
def get(key: str, default: T, type: type[T]) -> T: ...
def get(key: str, default: Any = None, type: Any = Any) -> Any:
    """The value of a setting.

    Args:
        key: Its name.
        default: What it is where the operator set none.
        type: What it is to be: any type that a tool's argument may have.

    Raises:
        Error: With `invalid-input`, if it is not of the type.
    """
    value = _host.current().config(key)
    if value is None:
        return default
    return _as(type, value, f'the setting "{key}"')


def all(type: Any = dict) -> Any:
    """All settings, as a dictionary or as a dataclass of the plugin's own.

    Raises:
        Error: With `invalid-input`, if they are not of the type.
    """
    return _as(type, _host.current().settings(), "the settings")


def _as(type: Any, value: Any, what: str) -> Any:
    try:
        return adapter_of(type).parse(value, "")
    except Mismatch as mismatch:
        raise Error(ErrorCode.INVALID_INPUT, f"{what}: {mismatch}") from None
