"""Ids by the keys that an organiser gave them. Only what has a key takes memory. Pure.

Growing or freeing one dictionary of a million entries would block the event loop for tens of milliseconds, so the keys
are divided among several.
"""

from typing import Final, Generic, TypeVar

_SHARDS: Final = 64
_ENTRY_BYTES: Final = 200
"""A key of some characters, an id, and their entry."""

_Id = TypeVar("_Id", bound=int)


class Keys(Generic[_Id]):
    def __init__(self) -> None:
        self._shards: tuple[dict[str, _Id], ...] = ()

    def __bool__(self) -> bool:
        """Whether an item had a key at any time."""
        return bool(self._shards)

    def __eq__(self, other: object) -> bool:
        """Whether both have the same keys now."""
        if not isinstance(other, Keys):
            return NotImplemented
        return self._shards == other._shards or not (any(self._shards) or any(other._shards))

    __hash__ = None  # type: ignore[assignment]

    def get(self, key: str) -> _Id | None:
        """The id that has this key; None: none has."""
        return self._shards[hash(key) % _SHARDS].get(key) if self._shards else None

    def change(self, item_id: _Id, before: str | None, after: str | None) -> None:
        """Notes the key that an item has after a change, and forgets the one it had before."""
        self._shards = self._shards or tuple([{} for _ in range(_SHARDS)])
        if before is not None and self.get(before) == item_id:
            del self._shards[hash(before) % _SHARDS][before]
        if after is not None:
            self._shards[hash(after) % _SHARDS][after] = item_id

    def copy(self) -> "Keys[_Id]":
        copy = Keys[_Id]()
        copy._shards = tuple([shard.copy() for shard in self._shards])
        return copy

    @property
    def size_bytes(self) -> int:
        """Bytes in memory, estimated."""
        return sum(map(len, self._shards)) * _ENTRY_BYTES
