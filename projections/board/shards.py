"""A dictionary by ids that goes easy on others when it is large: it grows, and is freed, in small steps.

Pure. To make room in one dictionary of a million takes tens of milliseconds, and so does freeing it. Nobody else has a
turn meanwhile. So one that is large consists of many.
"""

from collections.abc import Iterable
from typing import Final, Generic, TypeVar

from engine.process.freeing import free_in_steps

WHOLE_MAX: Final = 16_384
"""Entries of a dictionary that is not divided."""
RUN_BITS: Final = 10
"""Ids that differ in these last bits alone have one dictionary. Ids are given in ascending order: were each in another
dictionary than the one before, all dictionaries would have to make room at the same time."""
_LAST: Final = 0b111111
"""The last number of a dictionary. It is in the bits of an id before those."""

_Id = TypeVar("_Id", bound=int)
_V = TypeVar("_V")


class Shards(Generic[_Id, _V]):
    """Values by ids. Where it must be fast, look an id up in `whole or part(id)`."""

    __slots__ = ("_parts", "whole")

    def __init__(self) -> None:
        self.whole: dict[_Id, _V] = {}  # empty once it is divided
        self._parts: list[dict[_Id, _V]] = []

    def __del__(self) -> None:
        if self._parts:
            free_in_steps(self._parts)

    def __len__(self) -> int:
        return len(self.whole) or sum(map(len, self._parts))

    def __eq__(self, other: object) -> bool:
        """Whether both have the same entries. Both are divided, or neither is, if they have."""
        return isinstance(other, Shards) and self.whole == other.whole and self._parts == other._parts

    __hash__ = None  # type: ignore[assignment]

    def part(self, key: _Id) -> dict[_Id, _V]:
        """The dictionary that has the entry of an id, if there is one."""
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
        copy = Shards[_Id, _V]()
        copy.whole, copy._parts = self.whole.copy(), [part.copy() for part in self._parts]
        return copy

    def _divide(self) -> None:
        whole, self.whole = self.whole, {}
        self._parts = [{} for _ in range(_LAST + 1)]
        self.update(whole.items())
