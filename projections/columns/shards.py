"""A dictionary by ids that never blocks for long: a large one takes little memory, and grows and is freed in small
steps.

A small one is a plain dictionary, which is fastest. But growing or freeing a plain dictionary of a million entries
blocks the event loop for tens of milliseconds. So a large one consists of many shards. Each holds its ids in order and
finds one about as fast. An entry takes 17 bytes in a shard, and some 100 in a dictionary.

Pure, except that the event loop, if one runs, frees the shards one per round (`freeing.py`). No value depends on that.
"""

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable
from copy import copy
from itertools import chain
from typing import Final, Generic, Protocol, Self, TypeVar

from engine.process.freeing import free_in_steps

WHOLE_MAX: Final = 8_192
"""Entries of a dictionary that is not divided."""
RUN_BITS: Final = 10
"""Ids that differ only in these last bits are in the same shard. Ids are given in ascending order: if consecutive ids
were in different shards, all shards would grow at the same time."""
_SHARD_BITS: Final = 6
"""The number of bits of an id, above those, that give the number of its shard."""
_IN_RUN: Final = (1 << RUN_BITS) - 1
_LAST: Final = (1 << _SHARD_BITS) - 1

_TUPLE_VALUES: Final = 16
"""Values in a tuple. The collector comes when there are some thousand new objects, and looks once at what each has."""

_Id = TypeVar("_Id", bound=int)
_V = TypeVar("_V")


class ShardColumn(Protocol[_V]):
    """The container of a shard's values: an array for numbers, `Values` for anything else."""

    def __getitem__(self, at: int, /) -> _V: ...
    def __setitem__(self, at: int, value: _V, /) -> None: ...
    def append(self, value: _V, /) -> None: ...
    def insert(self, at: int, value: _V, /) -> None: ...
    def __copy__(self) -> Self: ...


class Values(Generic[_V]):
    """A list of values without references, such as bytes. The garbage collector visits every item of a list, which
    takes 30 ms for a million; a tuple of such values it visits once and then skips.
    """

    __slots__ = ("_full", "_last")

    def __init__(self, values: Iterable[_V] = ()) -> None:
        self._full: list[tuple[_V, ...]] = []  # _TUPLE_VALUES in each
        self._last: list[_V] = []  # fewer
        self.extend(values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Values) and self._full == other._full and self._last == other._last

    __hash__ = None  # type: ignore[assignment]

    def __getitem__(self, at: int) -> _V:
        number = at // _TUPLE_VALUES
        return (self._full[number] if number < len(self._full) else self._last)[at % _TUPLE_VALUES]

    def __setitem__(self, at: int, value: _V) -> None:
        number, at = divmod(at, _TUPLE_VALUES)
        if number < len(self._full):
            before = self._full[number]
            self._full[number] = (*before[:at], value, *before[at + 1 :])
        else:
            self._last[at] = value

    def append(self, value: _V) -> None:
        self._last.append(value)
        if len(self._last) == _TUPLE_VALUES:
            self._full.append(tuple(self._last))
            self._last.clear()

    def extend(self, values: Iterable[_V]) -> None:
        for value in values:
            self.append(value)

    def insert(self, at: int, value: _V) -> None:
        number, at = divmod(at, _TUPLE_VALUES)
        behind = [*chain.from_iterable(self._full[number:]), *self._last]
        behind.insert(at, value)
        del self._full[number:]
        self._last.clear()
        self.extend(behind)

    def __copy__(self) -> Self:
        copied = type(self)()
        copied._full, copied._last = self._full.copy(), self._last.copy()
        return copied


class Shard(Generic[_Id, _V]):
    """Some of the entries, in the order of their ids: a column of ids, and one of values that the caller provides."""

    __slots__ = ("_gaps", "_ids", "_values")

    def __init__(self, values: ShardColumn[_V]) -> None:
        self._ids = array("q")
        self._values = values
        self._gaps = 0  # the ids that are missing before the one that was found last, counted from id 0

    def __len__(self) -> int:
        return len(self._ids)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Shard) and self._ids == other._ids and self._values == other._values

    __hash__ = None  # type: ignore[assignment]

    def __getitem__(self, key: _Id) -> _V:
        at = self._find(key)
        if at is None:
            raise KeyError(key)
        return self._values[at]

    def get(self, key: _Id) -> _V | None:
        ids = self._ids
        if not ids or ids[-1] < key:  # nearly always so for a missing id, because it is new
            return None
        at = self._find(key)
        return None if at is None else self._values[at]

    def _find(self, key: int) -> int | None:
        """The index of an id's entry; None: there is none. Ids are mostly consecutive. Then the number of missing ids
        before this one is the same as before the last one found, and no search is needed."""
        ids = self._ids
        number = key >> RUN_BITS + _SHARD_BITS << RUN_BITS | key & _IN_RUN
        at = number - self._gaps
        if 0 <= at < len(ids) and ids[at] == key:
            return at
        at = bisect_left(ids, key)
        if at == len(ids) or ids[at] != key:
            return None
        self._gaps = number - at
        return at

    def __setitem__(self, key: _Id, value: _V) -> None:
        ids = self._ids
        if not ids or ids[-1] < key:  # nearly always so for a new id: ids are given in ascending order
            ids.append(key)
            self._values.append(value)
            return
        at = bisect_left(ids, key)
        if ids[at] == key:
            self._values[at] = value
        else:
            ids.insert(at, key)
            self._values.insert(at, value)

    def copy(self) -> "Shard[_Id, _V]":
        copied = Shard[_Id, _V](copy(self._values))
        copied._ids = self._ids[:]
        return copied


class Shards(Generic[_Id, _V]):
    """Values by ids. For speed, look an id up in `whole or shard(id)`."""

    __slots__ = ("_column", "_shards", "whole")

    def __init__(self, column: Callable[[], ShardColumn[_V]] = Values) -> None:
        self.whole: dict[_Id, _V] = {}  # empty once it is divided
        self._shards: list[Shard[_Id, _V]] = []
        self._column = column

    def __del__(self) -> None:
        if self._shards:
            free_in_steps(self._shards)

    def __len__(self) -> int:
        return len(self.whole) or sum(map(len, self._shards))

    def __eq__(self, other: object) -> bool:
        """Whether both have the same entries. If they have, either both are divided or neither is."""
        return isinstance(other, Shards) and self.whole == other.whole and self._shards == other._shards

    __hash__ = None  # type: ignore[assignment]

    @property
    def size_bytes(self) -> int:
        """Bytes in memory, estimated. A value counts as a number or a reference."""
        return len(self.whole) * _WHOLE_ENTRY_BYTES + sum(map(len, self._shards)) * _SHARD_ENTRY_BYTES

    def shard(self, key: _Id) -> dict[_Id, _V] | Shard[_Id, _V]:
        """The shard or dictionary that has the entry of an id, if there is one."""
        return self._shards[key >> RUN_BITS & _LAST] if self._shards else self.whole

    def __getitem__(self, key: _Id) -> _V:
        return (self.whole or self.shard(key))[key]

    def __setitem__(self, key: _Id, value: _V) -> None:
        (self.whole or self.shard(key))[key] = value
        if len(self.whole) > WHOLE_MAX:
            self._divide()

    def get(self, key: _Id) -> _V | None:
        return (self.whole or self.shard(key)).get(key)

    def update(self, entries: Iterable[tuple[_Id, _V]]) -> None:
        """Sets entries: at most a few thousand, because it does not pause."""
        shards = self._shards
        if shards:
            for key, value in entries:
                shards[key >> RUN_BITS & _LAST][key] = value
            return
        self.whole.update(entries)
        if len(self.whole) > WHOLE_MAX:
            self._divide()

    def copy(self) -> "Shards[_Id, _V]":
        copied = Shards[_Id, _V](self._column)
        copied.whole, copied._shards = self.whole.copy(), [shard.copy() for shard in self._shards]
        return copied

    def _divide(self) -> None:
        whole, self.whole = self.whole, {}
        self._shards = [Shard(self._column()) for _ in range(_LAST + 1)]
        self.update([(key, whole[key]) for key in sorted(whole)])


_WHOLE_ENTRY_BYTES: Final = 100
_SHARD_ENTRY_BYTES: Final = 17
