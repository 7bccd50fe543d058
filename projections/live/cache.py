"""What was rendered of one tournament, kept until what it shows has changed, and bounded in bytes."""

from collections.abc import Callable, Hashable
from typing import Any, Final, Protocol, TypeVar, cast
from weakref import WeakValueDictionary

from msgspec import Struct

RENDERED_BYTES_MAX: Final = 64 * 1024 * 1024
"""Rendered pieces of answers that are kept for one tournament."""
KEPT_BYTES_MAX: Final = RENDERED_BYTES_MAX // 4
"""Bytes of one piece that is kept. A larger one is made but not kept, so that it does not drive out all others."""

_OVERHEAD_BYTES: Final = 800
"""What a kept piece takes beside its own bytes: key, stamp, places in dictionaries, the objects around."""

_T = TypeVar("_T")


class Sized(Protocol):
    """A value that knows what it takes in memory."""

    @property
    def size_bytes(self) -> int: ...


_S = TypeVar("_S", bound=Sized)


class RenderCache:
    """The rendered pieces of one tournament, by key. A stamp tells whether a piece is still up to date.

    Up to RENDERED_BYTES_MAX are kept; the keys that came first go first. A piece that takes more than KEPT_BYTES_MAX is
    not kept.
    """

    def __init__(self) -> None:
        self.size_bytes = 0
        self._pieces: dict[Hashable, _Piece] = {}
        self._shared: WeakValueDictionary[Hashable, object] = WeakValueDictionary()

    def rendered(self, key: Hashable, stamp: object, render: Callable[[], _T], size_bytes: Callable[[_T], int]) -> _T:
        """What `render` makes: made once for `key`, and again when `stamp` has changed."""
        kept = self._pieces.get(key)
        if kept is not None and kept.stamp == stamp:
            return cast(_T, kept.value)
        value = render()
        self._keep(key, _Piece(stamp, value, size_bytes(value) + _OVERHEAD_BYTES))
        return value

    def part(self, key: Hashable, stamp: object, make: Callable[[], _S]) -> _S:
        """As `rendered`, for a value that knows its size. The size may change while the value is kept."""
        kept = self._pieces.get(key)
        if kept is None or kept.stamp != stamp:
            value = make()
            self._keep(key, _Piece(stamp, value, value.size_bytes + _OVERHEAD_BYTES))
            return value
        size_bytes = kept.value.size_bytes + _OVERHEAD_BYTES
        if size_bytes != kept.size_bytes:
            self._keep(key, _Piece(stamp, kept.value, size_bytes))
        return cast(_S, kept.value)

    def shared(self, key: Hashable, make: Callable[[], _T]) -> _T:
        """What `make` makes. All who ask for `key` get the same value while somebody still has it."""
        found = self._shared.get(key)
        if found is None:
            found = self._shared[key] = make()
        return cast(_T, found)

    def _keep(self, key: Hashable, fresh: "_Piece") -> None:
        before = self._pieces.get(key)
        if before is not None:
            self.size_bytes -= before.size_bytes
        if fresh.size_bytes > KEPT_BYTES_MAX:
            self._pieces.pop(key, None)
            return
        self._pieces[key] = fresh
        self.size_bytes += fresh.size_bytes
        while self.size_bytes > RENDERED_BYTES_MAX:
            self.size_bytes -= self._pieces.pop(next(iter(self._pieces))).size_bytes


class _Piece(Struct):
    stamp: object
    value: Any
    size_bytes: int
