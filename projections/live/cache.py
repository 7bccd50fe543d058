"""Rendered parts of answers about one tournament, kept until the data they show changes, and bounded in bytes."""

from collections.abc import Callable, Hashable
from typing import Any, Final, Generic, Protocol, TypeVar, cast
from weakref import WeakValueDictionary

from msgspec import Struct

from engine.domain.terms import CompetitorId

RENDERED_BYTES_MAX: Final = 64 * 1024 * 1024
"""Rendered pieces of answers that are kept for one tournament."""
KEPT_BYTES_MAX: Final = RENDERED_BYTES_MAX // 4
"""Bytes of one piece that is kept. A larger one is rendered but not kept, so that it does not evict all others."""

PIECES_BYTES_MAX: Final = 16 * 1024 * 1024
"""Bytes of the shapes of single competitors that are kept for one tournament."""
WINDOWS_BYTES_MAX: Final = 4 * 1024 * 1024
"""Bytes of the windows that are kept for one tournament, all computed at its head."""
MOMENTS_BYTES_MAX: Final = 16 * 1024 * 1024
"""Bytes of past tables shown on boards that are kept for one tournament, all computed at its head."""

_PIECE_OVERHEAD_BYTES: Final = 150
_OVERHEAD_BYTES: Final = 800
"""The overhead of a kept piece in addition to its own bytes: key, stamp, places in dictionaries, surrounding
objects."""

_T = TypeVar("_T")
_Key = TypeVar("_Key", bound=Hashable)


class Sized(Protocol):
    """A value that knows its size in memory."""

    @property
    def size_bytes(self) -> int: ...


_S = TypeVar("_S", bound=Sized)


class RenderCache:
    """The rendered pieces of one tournament, by key. A stamp tells whether a piece is still up to date. `resized`: the
    size may have changed since somebody set this to False.

    Up to RENDERED_BYTES_MAX are kept; the oldest keys are evicted first. A piece of more than KEPT_BYTES_MAX is not
    kept.
    """

    def __init__(self) -> None:
        self.resized = True
        self._size_bytes = 0
        self.small: SmallPieces[CompetitorId] = SmallPieces(self, PIECES_BYTES_MAX)
        self.windows: SmallPieces[Hashable] = SmallPieces(self, WINDOWS_BYTES_MAX)
        self.moments: SmallPieces[Hashable] = SmallPieces(self, MOMENTS_BYTES_MAX)
        self._pieces: dict[Hashable, _Piece] = {}
        self._shared: WeakValueDictionary[Hashable, object] = WeakValueDictionary()

    @property
    def size_bytes(self) -> int:
        """Bytes in memory."""
        return self._size_bytes + self.small.size_bytes + self.windows.size_bytes + self.moments.size_bytes

    def clear(self) -> None:
        """Drops all pieces."""
        self._pieces.clear()
        self._shared.clear()
        self._size_bytes = 0
        for pieces in (self.small, self.windows, self.moments):
            pieces.clear()

    def rendered(self, key: Hashable, stamp: object, render: Callable[[], _T], size_bytes: Callable[[_T], int]) -> _T:
        """The result of `render`, which is called once for `key`, and again when `stamp` has changed."""
        kept = self._pieces.get(key)
        if kept is not None and kept.stamp == stamp:
            rendered: _T = kept.value
            return rendered
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
        """The result of `make`. All callers with the same `key` share it for as long as one of them keeps it."""
        found = self._shared.get(key)
        if found is None:
            found = self._shared[key] = make()
        return cast(_T, found)

    def _keep(self, key: Hashable, fresh: "_Piece") -> None:
        before = self._pieces.get(key)
        if before is not None:
            if fresh.size_bytes == before.size_bytes:  # as standings mostly have before and after points
                self._pieces[key] = fresh
                return
            self._size_bytes -= before.size_bytes
        self.resized = True
        if fresh.size_bytes > KEPT_BYTES_MAX:
            self._pieces.pop(key, None)
            return
        self._pieces[key] = fresh
        self._size_bytes += fresh.size_bytes
        while self._size_bytes > RENDERED_BYTES_MAX:
            self._size_bytes -= self._pieces.pop(next(iter(self._pieces))).size_bytes


class SmallPieces(Generic[_Key]):
    """Rendered pieces by key: the shapes of competitors, windows, and moments. All have the same `stamp`, which only
    grows. A piece whose content changes without a new stamp must be dropped.

    The kept pieces take up to `bytes_max`. Further ones are not kept, but rendered when they are shown, which takes
    some microseconds each.
    """

    def __init__(self, cache: RenderCache, bytes_max: int) -> None:
        self.size_bytes = 0
        self.stamp = 0
        self._cache = cache
        self._bytes_max = bytes_max
        self._pieces: dict[_Key, bytes] = {}
        self.get: Final = self._pieces.get

    def renew(self, stamp: int) -> None:
        """Drops everything with an earlier stamp, and keeps pieces with this stamp from now on."""
        if stamp > self.stamp:
            self.clear()
            self.stamp = stamp

    def clear(self) -> None:
        """Drops everything."""
        self._pieces.clear()
        self.size_bytes = 0
        self._cache.resized = True

    def keep(self, key: _Key, piece: bytes) -> None:
        """Keeps a piece, unless another caller has stored one meanwhile."""
        size_bytes = len(piece) + _PIECE_OVERHEAD_BYTES
        if key not in self._pieces and self.size_bytes + size_bytes <= self._bytes_max:
            self._pieces[key] = piece
            self.size_bytes += size_bytes
            self._cache.resized = True

    def drop(self, key: _Key) -> None:
        piece = self._pieces.pop(key, None)
        if piece is not None:
            self.size_bytes -= len(piece) + _PIECE_OVERHEAD_BYTES
            self._cache.resized = True


class _Piece(Struct):
    stamp: object
    value: Any
    size_bytes: int
