"""What reads the past of a tournament: boards after any event, and the events of a span.

A board starts at the nearest snapshot that is not later, or at the beginning, and folds from there. The log is read in
chunks, and a connection is held only while one is read, so others wait no longer than one chunk takes. Appended events
never change, so all chunks show one history. Snapshots are safe to drop: a missing one costs time, and an unreadable
one is ignored with a line in the process's log.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Final

from engine.database.pool import Database
from engine.domain.errors import HistoryReplaced, LogForked, LogUnreadable, NotFound, QueueFull, TournamentStopped
from engine.domain.events import Recorded
from engine.domain.terms import Sequence, TournamentId
from engine.log import heads, reading
from engine.process.logs import Logger
from engine.process.pace import QueuePace
from engine.process.time_slices import TimeSlices
from projections.board.board import Board, erase, folding
from projections.tables import snapshots

PAST_REQUESTS_MAX: Final = 3
"""Requests about the past that one process works on at once. More would slow down all of them, and delay answers about
the present."""
PAST_WAIT_SECONDS_MAX: Final = 5.0
"""A request that is expected to wait longer than this, or has waited that long, is refused."""

_logger: Final = Logger()


class Past:
    """Reads the past of all tournaments, for one process.

    Whoever reads must be `admitted`, which raises TournamentStopped, HistoryReplaced, DatabaseUnavailable and, under
    too many requests, QueueFull.
    """

    def __init__(self, database: Database, time_slices: TimeSlices | None = None) -> None:
        self.database = database
        self.time_slices = time_slices or TimeSlices()
        self._slots = asyncio.Semaphore(PAST_REQUESTS_MAX)
        self._waiting = 0
        self._pace = QueuePace()

    @asynccontextmanager
    async def admitted(self) -> AsyncIterator[None]:
        """Enters when one of PAST_REQUESTS_MAX slots is free. Raises QueueFull if that takes longer than
        PAST_WAIT_SECONDS_MAX, or is expected to at the pace of the last requests. Translates errors inside as `faults`
        does."""
        expected = self._waiting * self._pace.seconds_each
        if expected > PAST_WAIT_SECONDS_MAX:
            raise QueueFull(expected)
        self._waiting += 1
        try:
            async with asyncio.timeout(PAST_WAIT_SECONDS_MAX):
                await self._slots.acquire()
        except TimeoutError:
            raise QueueFull(max(expected, PAST_WAIT_SECONDS_MAX)) from None
        finally:
            self._waiting -= 1
        began_at = time.monotonic()
        try:
            with faults():
                yield
        finally:
            self._slots.release()
            self._pace.took(time.monotonic() - began_at, PAST_REQUESTS_MAX)

    async def board_at(self, tournament_id: TournamentId, upto: Sequence) -> Board:
        """The board after the event `upto`; 0: the empty one."""
        board, after = await self.nearest(tournament_id, upto)
        async for events in self.chunks_read_ahead(tournament_id, after, upto):
            await self.time_slices.work(folding(tournament_id, board, events))
        return board

    async def nearest(self, tournament_id: TournamentId, upto: Sequence) -> tuple[Board, Sequence]:
        """The board and sequence of the last readable snapshot that is not after `upto`, or of the beginning."""
        while upto > 0:
            async with self.database.connection_for(tournament_id) as connection:
                try:
                    snapshot = await snapshots.nearest(connection, tournament_id, upto, self.time_slices)
                    if snapshot is None:
                        break
                    if await heads.has(connection, tournament_id, snapshot.head):
                        sequence = snapshot.head.sequence
                        erase(snapshot.board, await reading.erased_since(connection, tournament_id, sequence))
                        return snapshot.board, sequence
                    sequence, reason = snapshot.head.sequence, "the log has no such block"
                except snapshots.SnapshotUndecodable as error:
                    sequence, reason = error.sequence, str(error)
            _logger.warning("snapshot_ignored", tournament_id=tournament_id, sequence=sequence, reason=reason)
            upto = Sequence(sequence - 1)
        return Board(), Sequence(0)

    def chunks(self, tournament_id: TournamentId, after: Sequence, upto: Sequence) -> AsyncIterator[list[Recorded]]:
        """The events after `after` up to `upto`, chunk by chunk."""
        return reading.chunks(partial(self.database.connection_for, tournament_id), tournament_id, after, upto)

    async def chunks_read_ahead(
        self, tournament_id: TournamentId, after: Sequence, upto: Sequence
    ) -> AsyncIterator[list[Recorded]]:
        """As `chunks`, for callers that need all chunks: the database reads the next chunk while one is folded."""
        if after >= upto:
            return
        following = asyncio.create_task(self._chunk(tournament_id, after, upto))
        try:
            while True:
                events = await following
                after = events[-1].sequence
                if after >= upto:
                    break
                following = asyncio.create_task(self._chunk(tournament_id, after, upto))
                yield events
            yield events
        finally:
            following.cancel()
            await asyncio.wait([following])
            if not following.cancelled():
                following.exception()  # Retrieved, because a cancelled caller does not want it.

    async def _chunk(self, tournament_id: TournamentId, after: Sequence, upto: Sequence) -> list[Recorded]:
        async with self.database.connection_for(tournament_id) as connection:
            return await reading.chunk_of(connection, tournament_id, after, upto)


def refuse_beyond(head: Sequence, sequence: Sequence) -> None:
    if sequence > head:
        raise NotFound(f"The log of this tournament ends at sequence {head}; ask for one up to {head}.")


@contextmanager
def faults() -> Iterator[None]:
    """Translates faults of a log into errors for clients. It raises no alarm: the live and the worker do."""
    try:
        yield
    except LogForked as fork:
        raise HistoryReplaced from fork
    except LogUnreadable as cause:
        raise TournamentStopped from cause
