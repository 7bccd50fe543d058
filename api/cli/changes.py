"""Options that change a value: an absent option keeps it, an empty one clears it."""

from collections.abc import Callable
from typing import TypeVar

from msgspec import UNSET, UnsetType

_T = TypeVar("_T")


def changed(text: str | None, read: Callable[[str], _T]) -> _T | None | UnsetType:
    """What an option says of a field of a command, if `read` reads what is not empty. Raises as `read`."""
    if text is None:
        return UNSET
    return read(text) if text else None
