"""Structs of one kind by their ids, kept as the bytes of MessagePack: a third of what the structs would take.

Pure. An item is unpacked at each access, which takes about a microsecond. Items are in the order in which they were
added, and none is ever removed. So each has a number, from 1, and a run of numbers is found without counting.
"""

from array import array
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final, Generic, TypeVar, cast

import msgspec
from msgspec import Struct

from engine.domain.state import Keyed
from projections.columns.keys import Keys
from projections.columns.shards import Shards

RECENT_MAX: Final = 16
"""Items that stay unpacked, because the same ones are often needed again. Few, because one may be large."""
WALK_CHUNK_ITEMS: Final = 100
"""Items that callers who walk through all look at without a pause, at 1 to 2 µs each."""

_COPIED_IN_A_LOOK_UP: Final = 150
"""How many items are copied in the time of one look-up."""

packed: Final = msgspec.msgpack.Encoder().encode
"""An item as `Packed` keeps it."""
_ITEM_BYTES: Final = 70
"""The overhead of an item in addition to its packed bytes and its entry by id: the object, and its place in the
order."""

_Id = TypeVar("_Id", bound=int)
_T = TypeVar("_T", bound=Struct)


class Packed(Keyed[_Id, _T], Generic[_Id, _T]):
    """Items of `kind`. Add one, or replace one, by setting it. Those that have a `key` are found by it, too.

    Items equal to those of `like` share their memory.
    """

    def __init__(self, kind: type[_T], like: "Packed[_Id, _T] | None" = None) -> None:
        self._kind = kind
        self._like: Shards[_Id, bytes] | None = None if like is None else like._packed
        self._unpack: Callable[[bytes], _T] = msgspec.msgpack.Decoder(kind).decode
        self._packed: Shards[_Id, bytes] = Shards()
        self._ids = array("q")
        self._packed_bytes = 0
        self._keys = Keys[_Id]()
        self._recent: dict[_Id, _T] = {}

    def __getitem__(self, item_id: _Id) -> _T:
        found = self._recent.get(item_id)
        if found is None:
            found = self._unpack(self.packed(item_id))
            self._remember(item_id, found)
        return found

    def __setitem__(self, item_id: _Id, item: _T) -> None:
        self.put(item_id, packed(item), getattr(item, "key", None))
        self._remember(item_id, item)

    def __contains__(self, item_id: object) -> bool:
        known = self._packed  # without a call for each, as in `Enrolment`
        return isinstance(item_id, int) and (known.whole or known.shard(item_id)).get(item_id) is not None  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[_Id]:
        return cast("Iterator[_Id]", iter(self._ids))

    def __len__(self) -> int:
        return len(self._ids)

    def __eq__(self, other: object) -> bool:
        return self._packed == other._packed if isinstance(other, Packed) else super().__eq__(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(dict(self))

    def packed(self, item_id: _Id) -> bytes:
        """An item as it is kept. Raises KeyError."""
        return self._packed[item_id]

    def by_key(self, key: str) -> _Id | None:
        return self._keys.get(key)

    @property
    def size_bytes(self) -> int:
        """Bytes in memory, estimated."""
        own = self._packed_bytes + len(self._ids) * _ITEM_BYTES
        return own + self._packed.size_bytes + self._keys.size_bytes

    def ids(self, first: int, last: int) -> list[_Id]:
        """The ids of the items numbered `first` to `last`, both inclusive; fewer if there are no more."""
        return self._ids[max(first, 1) - 1 : max(last, 0)].tolist()  # type: ignore[return-value]

    def run(self, first: int, last: int) -> Iterator[tuple[_Id, _T]]:
        """The items numbered `first` to `last` with their ids, as `ids` has them. They do not stay unpacked, so a walk
        through all does not evict items that are needed often."""
        for item_id in self.ids(first, last):
            yield item_id, self._unpack(self.packed(item_id))

    def walk(self) -> Iterator[tuple[_Id, _T]]:
        """All items with their ids, each as it is when it is yielded. They do not stay unpacked. Items may be added
        meanwhile."""
        for first in range(1, len(self) + 1, WALK_CHUNK_ITEMS):
            yield from self.run(first, first + WALK_CHUNK_ITEMS - 1)

    def held(self, item_ids: Collection[_Id]) -> Iterator[tuple[_Id, _T]]:
        """Those of the given items that exist, with their ids, in the state at the call. Each is unpacked when it is
        yielded, and does not stay unpacked."""
        found: Iterable[tuple[_Id, bytes | None]]
        if len(item_ids) * _COPIED_IN_A_LOOK_UP < len(self):
            found = [(item_id, self._packed.get(item_id)) for item_id in item_ids]
        else:
            then = self._packed.copy()
            found = ((item_id, then.get(item_id)) for item_id in item_ids)
        return ((item_id, self._unpack(item)) for item_id, item in found if item is not None)

    def is_just(self, other: "Packed[_Id, _T]") -> bool:
        """Whether both have the same items in the same order, found by the same keys."""
        return self._packed == other._packed and self._ids == other._ids and self._keys == other._keys

    def copy(self) -> "Packed[_Id, _T]":
        """A copy that stays as it is when this one changes."""
        copy = Packed[_Id, _T](self._kind)
        copy._packed, copy._ids, copy._packed_bytes = self._packed.copy(), self._ids[:], self._packed_bytes
        copy._keys = self._keys.copy()
        return copy

    def put(self, item_id: _Id, packed: bytes, key: str | None = None) -> None:
        """Sets an item that is packed already, and has this key."""
        before = self._packed.get(item_id)
        if self._like is not None and (same := self._like.get(item_id)) == packed:
            packed = same
        if key is not None or (before is not None and self._keys):
            self._keys.change(item_id, None if before is None else getattr(self._unpack(before), "key", None), key)
        if before is None:
            self._ids.append(item_id)
        else:
            self._packed_bytes -= len(before)
            self._recent.pop(item_id, None)
        self._packed[item_id] = packed
        self._packed_bytes += len(packed)

    def _remember(self, item_id: _Id, item: _T) -> None:
        if len(self._recent) >= RECENT_MAX:
            del self._recent[next(iter(self._recent))]
        self._recent[item_id] = item
