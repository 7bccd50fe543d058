"""What is read from the log once, and then kept current.

No board has all that was ever recorded, because few requests need it. So it is read from the log when it is first
needed. From then on, each event that the live folds updates it.

THE RULE. Updates that come while the log is read wait, and are made in order once it has been read. If one of them
cannot be made, or if the board is replaced, the value is dropped, and read again when somebody needs it.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Generic, Protocol, TypeVar

from engine.domain.events import Recorded
from engine.domain.terms import RankingId
from engine.process.background import SharedTasks
from engine.process.time_slices import TimeSlice
from projections.board.board import Board, HasBoard
from projections.live.tries import Tries

_T = TypeVar("_T")
Update = Callable[[_T], bool | None]
"""Changes a value in place. Returns False, and changes nothing, if the value must be read again."""
UpdateBy = Callable[[Recorded], Update[_T] | None]
"""The update by an event that the board shows; None: it does not concern the value."""
ReadLog = Callable[[], Coroutine[Any, Any, _T]]
"""Reads a value from the log up to the live's head at the call."""


def unfollowed(_: object) -> bool:
    """The update by an event after which the value must be read again."""
    return False


class Kept(Generic[_T]):
    """One such value. `value`: as it is now; None: it must be read."""

    def __init__(self, update_by: UpdateBy[_T]) -> None:
        self.value: _T | None = None
        self._update_by = update_by
        self._waiting: deque[Update[_T]] | None = None  # None: nothing is being read
        self._reading = SharedTasks[None, None]()

    @property
    def size_bytes(self) -> int:
        """Bytes in memory, estimated, if the value knows them."""
        return getattr(self.value, "size_bytes", 0)

    async def look_up(self, read: ReadLog[_T]) -> None:
        """Reads the value if there is none, once for all who ask meanwhile. It may have been dropped again when this
        returns. Raises the errors of `read`."""
        if self.value is None:
            await asyncio.shield(self._reading.begun(None, lambda: self._look_up(read)))

    async def current(self, read: ReadLog[_T]) -> _T:
        """The value, which is current until the caller pauses. Raises Overtaken, and the errors of `read`."""
        tries = Tries()
        while True:
            await self.look_up(read)
            if self.value is not None:
                return self.value
            tries.again()

    async def _look_up(self, read: ReadLog[_T]) -> None:
        waiting = self._waiting = deque[Update[_T]]()
        try:
            value, is_followed, time_slice = await read(), True, TimeSlice()
            while waiting and is_followed:
                is_followed = waiting.popleft()(value) is not False
                if time_slice.over:
                    await time_slice.give_way()
            if is_followed:
                self.value = value
        finally:
            self._waiting = None

    def follow(self, recorded: Recorded) -> None:
        """Takes an event that the live has folded."""
        if self.value is None and self._waiting is None:
            return
        if (update := self._update_by(recorded)) is not None:
            self._make(update)

    def clear(self) -> None:
        """Drops the value. Call it when the board was replaced."""
        self._make(unfollowed)

    def _make(self, update: Update[_T]) -> None:
        if self._waiting is not None:
            self._waiting.append(update)
        elif self.value is not None and update(self.value) is False:
            self.value = None


class _Live(HasBoard, Protocol):
    def keep(self, kept: "KeptOfRankings[Any]", /) -> object: ...


class KeptOfRankings(Generic[_T]):
    """Such a value of each ranking of `live` that needed one. `update_of` is the UpdateBy of a ranking."""

    def __init__(self, live: _Live, update_of: Callable[[Board, RankingId, Recorded], Update[_T] | None]) -> None:
        self._live = live
        self._update_of = update_of
        self._kept: dict[RankingId, Kept[_T]] = {}

    def of(self, ranking_id: RankingId) -> Kept[_T]:
        """The value of the ranking, kept current from now on."""
        if ranking_id not in self._kept:
            if not self._kept:
                self._live.keep(self)
            self._kept[ranking_id] = Kept(lambda recorded: self._update_of(self._live.board, ranking_id, recorded))
        return self._kept[ranking_id]

    def get(self, ranking_id: RankingId, /) -> _T | None:
        """The value of the ranking; None: it must be read."""
        kept = self._kept.get(ranking_id)
        return None if kept is None else kept.value

    @property
    def size_bytes(self) -> int:
        """Bytes in memory, estimated."""
        return sum([kept.size_bytes for kept in self._kept.values()])

    def follow(self, recorded: Recorded) -> None:
        """Takes an event that the live has folded."""
        named = getattr(recorded.event, "ranking_id", None)
        if named is None:
            for kept in self._kept.values():
                kept.follow(recorded)
        elif named in self._kept:
            self._kept[named].follow(recorded)

    def clear(self) -> None:
        """Drops all values. Call it when the board was replaced."""
        for kept in self._kept.values():
            kept.clear()
