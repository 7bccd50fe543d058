"""A dictionary by ids that goes easy on others when it is large: it takes little memory, and it grows and is freed in
small steps.

Pure. With few entries it is a plain dictionary, which is the fastest. To make room in one of a million takes tens of
milliseconds, and so does freeing it, and nobody else has a turn meanwhile. So one that is large consists of many parts.
Each of these has its ids in order, and finds one of them in half a microsecond. An entry takes 16 bytes there, and some
100 in a dictionary.
"""

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, MutableSequence
from typing import Any, Final, Generic, TypeVar

from engine.process.freeing import free_in_steps

WHOLE_MAX: Final = 16_384
"""Entries of a dictionary that is not divided."""
RUN_BITS: Final = 10
"""Ids that differ in these last bits alone are in one part. Ids are given in ascending order: were each in another part
than the one before, all parts would have to make room at the same time."""
_LAST: Final = 0b111111
"""The last number of a part. It is in the bits of an id before those."""

_Id = TypeVar("_Id", bound=int)
_V = TypeVar("_V")


class Part(Generic[_Id, _V]):
    """Some of the entries, in the order of their ids: a column of ids, and one of values, which the caller makes."""

    __slots__ = ("_ids", "_values")

    def __init__(self, values: MutableSequence[_V]) -> None:
        self._ids = array("q")
        self._values = values

    def __len__(self) -> int:
        return len(self._ids)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Part) and self._ids == other._ids and self._values == other._values

    __hash__ = None  # type: ignore[assignment]

    def __getitem__(self, key: _Id) -> _V:
        ids = self._ids
        at = bisect_left(ids, key)
        if at == len(ids) or ids[at] != key:
            raise KeyError(key)
        return self._values[at]

    def get(self, key: _Id) -> _V | None:
        ids = self._ids
        at = bisect_left(ids, key)
        return self._values[at] if at < len(ids) and ids[at] == key else None

    def __setitem__(self, key: _Id, value: _V) -> None:
        ids = self._ids
        if not ids or ids[-1] < key:  # as nearly always: ids are given in ascending order
            ids.append(key)
            self._values.append(value)
            return
        at = bisect_left(ids, key)
        if ids[at] == key:
            self._values[at] = value
        else:
            ids.insert(at, key)
            self._values.insert(at, value)

    def copy(self) -> "Part[_Id, _V]":
        copy = Part[_Id, _V](self._values[:])
        copy._ids = self._ids[:]
        return copy


class Shards(Generic[_Id, _V]):
    """Values by ids. Where it must be fast, look an id up in `whole or part(id)`. `column` makes what parts keep values
    in, such as an array for numbers."""

    __slots__ = ("_column", "_parts", "whole")

    def __init__(self, column: Callable[[], Any] = list) -> None:
        self.whole: dict[_Id, _V] = {}  # empty once it is divided
        self._parts: list[Part[_Id, _V]] = []
        self._column: Callable[[], MutableSequence[_V]] = column

    def __del__(self) -> None:
        if self._parts:
            free_in_steps(self._parts)

    def __len__(self) -> int:
        return len(self.whole) or sum(map(len, self._parts))

    def __eq__(self, other: object) -> bool:
        """Whether both have the same entries. Both are divided, or neither is, if they have."""
        return isinstance(other, Shards) and self.whole == other.whole and self._parts == other._parts

    __hash__ = None  # type: ignore[assignment]

    @property
    def size_bytes(self) -> int:
        """Bytes in memory, estimated, without what values take that are objects of some size."""
        return len(self.whole) * _WHOLE_ENTRY_BYTES + sum(map(len, self._parts)) * _PART_ENTRY_BYTES

    def part(self, key: _Id) -> dict[_Id, _V] | Part[_Id, _V]:
        """What has the entry of an id, if there is one."""
        return self._parts[key >> RUN_BITS & _LAST] if self._parts else self.whole

    def __getitem__(self, key: _Id) -> _V:
        return (self.whole or self.part(key))[key]

    def __setitem__(self, key: _Id, value: _V) -> None:
        (self.whole or self.part(key))[key] = value
        if len(self.whole) > WHOLE_MAX:
            self._divide()

    def get(self, key: _Id) -> _V | None:
        return (self.whole or self.part(key)).get(key)

    def update(self, entries: Iterable[tuple[_Id, _V]]) -> None:
        """Sets these, of which there should be few thousand."""
        parts = self._parts
        if parts:
            for key, value in entries:
                parts[key >> RUN_BITS & _LAST][key] = value
            return
        self.whole.update(entries)
        if len(self.whole) > WHOLE_MAX:
            self._divide()

    def copy(self) -> "Shards[_Id, _V]":
        copy = Shards[_Id, _V](self._column)
        copy.whole, copy._parts = self.whole.copy(), [part.copy() for part in self._parts]
        return copy

    def _divide(self) -> None:
        whole, self.whole = self.whole, {}
        self._parts = [Part(self._column()) for _ in range(_LAST + 1)]
        self.update([(key, whole[key]) for key in sorted(whole)])


_WHOLE_ENTRY_BYTES: Final = 100
_PART_ENTRY_BYTES: Final = 18
