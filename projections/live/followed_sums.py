"""The sums of competitions for the rankings of a tournament that requests needed: read from the log once, then kept
current by the fold."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Protocol

from engine.domain.events import Points, Recorded
from engine.domain.terms import RankingId, Sequence
from engine.log.heads import Head
from engine.process.background import SharedTasks
from engine.process.time_slices import TimeSlice
from projections.board.board import HasBoard, give_sums, what_counts
from projections.board.competition_sums import CompetitionSums, WhatCounts
from projections.live.tries import Tries

ReadSums = Callable[[Sequence, WhatCounts], Awaitable[CompetitionSums]]
"""Reads the sums of a ranking from the log as they were after an event, of the lines that count then."""


class _Owner(HasBoard, Protocol):
    """`expired_by`: the time up to which due points have expired; None: nothing expires."""

    @property
    def head(self) -> Head: ...
    @property
    def expired_by(self) -> datetime | None: ...


class FollowedSums:
    """Those of one tournament, which `owner` has in memory."""

    def __init__(self, owner: _Owner) -> None:
        self._owner = owner
        self._redated = 0  # how often dates have changed while the log was read
        self._reading = SharedTasks[RankingId, None]()
        self._missed: dict[RankingId, deque[tuple[Sequence, Points]]] = {}
        self._followed: set[RankingId] = set()

    def clear(self) -> None:
        """Drops everything. Call it when the board is replaced."""
        self._followed.clear()

    @property
    def size_bytes(self) -> int:
        """Bytes in memory, estimated."""
        followed = [self._owner.board.rankings[one].competition_sums for one in self._followed]
        return sum([sums.size_bytes for sums in followed if sums is not None])

    def note(self, recorded: Recorded) -> None:
        """Notes an event for readers of the log that have started already. Call it for each folded event."""
        event = recorded.event
        if self._missed and isinstance(event, Points) and event.ranking_id in self._missed:
            self._missed[event.ranking_id].append((recorded.sequence, event))
        elif self._missed and event.redates:
            self._redated += 1

    async def follow(self, ranking_id: RankingId, read: ReadSums) -> None:
        """Reads the ranking's sums of competitions onto the board, once for all who ask meanwhile. The fold may have
        dropped them when this returns. Raises Overtaken, and the errors of `read`."""
        if self._owner.board.rankings[ranking_id].competition_sums is None:
            await asyncio.shield(self._reading.begun(ranking_id, lambda: self._follow(ranking_id, read)))

    async def _follow(self, ranking_id: RankingId, read: ReadSums) -> None:
        tries = Tries()
        while (board := self._owner.board).rankings[ranking_id].competition_sums is None:
            missed = self._missed[ranking_id] = deque[tuple[Sequence, Points]]()
            counts, redated = what_counts(board, ranking_id, self._owner.expired_by), self._redated
            is_added = True
            try:
                sums = await read(self._owner.head.sequence, counts)
                time_slice = TimeSlice()
                while missed:
                    sequence, points = missed.popleft()
                    is_added = is_added and not points.structural
                    sums.count(sequence, points)
                    if time_slice.over:
                        await time_slice.give_way()
                # Read the sums again if the board was replaced, since its changes were not noted, or if different
                # lines count by now. If points expire or `first` decides, also read again after a reversal, an expiry
                # or a change of a date.
                if (
                    board is self._owner.board
                    and counts == what_counts(board, ranking_id, self._owner.expired_by)
                    and ((counts.now is None and not counts.first) or (is_added and redated == self._redated))
                ):
                    give_sums(board, ranking_id, sums)
                    self._followed.add(ranking_id)
                    return
            finally:
                del self._missed[ranking_id]
            tries.again()
