"""Rebuilds tables: folds them again from the log, compares them with those in use, and replaces these.

The log is folded in memory, up to the head of the tables. Then one transaction that holds the checkpoint compares both.
If they differ, or come from different folds, the new rows replace the old ones. Reads and appends continue meanwhile;
workers skip the tournament while its checkpoint is held. A rebuild that is killed changes nothing except snapshots,
which are the same for every writer. A name that is erased meanwhile is in none of them: a snapshot is written while the
checkpoint is held, without the names that the log has forgotten by then, and who folds the erasure later sees it.
"""

import asyncio
from collections.abc import Callable
from itertools import islice
from typing import Final

from asyncpg import Connection
from msgspec import Struct, field

from engine.database.pool import Database
from engine.domain.errors import Conflict, LogForked
from engine.domain.terms import Sequence, TournamentId
from engine.log import heads, reading, tails
from engine.log.heads import Head
from engine.process.time_slices import in_time_slices
from projections.board.board import FOLD_VERSION, Board, erase, folding
from projections.board.differences import differences
from projections.tables import snapshots, tables
from projections.tables.snapshots import Snapshot

CLAIMS_MAX: Final = 200
CLAIM_PAUSE_SECONDS: Final = 0.05
"""The time between two attempts to claim the checkpoint. A worker holds it for some milliseconds at a time."""
HELD_EVENTS_MAX: Final = 10_000
"""Events that may be left to fold while the checkpoint is held."""
REBUILD_DIFFERENCES_MAX: Final = 1_000
"""Differences that are reported; there may be more."""


class Rebuilt(Struct, frozen=True):
    """The outcome for one tournament's tables. `differences`: where they differed from the log. Without any, tables of
    this fold were not changed."""

    sequence: Sequence
    differences: list[str] = field(default_factory=list)
    replaced: bool = False


async def rebuild(
    database: Database, tournament_id: TournamentId, *, progress: Callable[[Sequence], None] = lambda _: None
) -> Rebuilt:
    """Rebuilds the tables of one tournament; calls `progress` with the sequence up to which the log has been folded.

    Raises LogUnreadable if an event cannot be folded, LogForked if the log was replaced meanwhile, Conflict if the
    checkpoint cannot be claimed or the tables are of a newer fold, and DatabaseUnavailable.
    """
    async with database.connection_for(tournament_id) as connection:
        await tables.create_checkpoints(connection, {tournament_id: heads.beginning(tournament_id)})
        began_at = await _goal(connection, tournament_id)
    folded = _Folded(tournament_id, began_at.sequence, progress)
    for _ in range(CLAIMS_MAX):
        async with database.connection_for(tournament_id) as connection:
            await folded.reach(connection, await _goal(connection, tournament_id), snapshots_too=True)
            async with connection.transaction():
                rebuilt = await _switch(connection, folded)
        if rebuilt is not None:
            return rebuilt
        await asyncio.sleep(CLAIM_PAUSE_SECONDS)
    raise Conflict("Other processes keep the tables locked; try again.")


async def _goal(connection: Connection, tournament_id: TournamentId) -> Head:
    """The head at which the tables stand. The log's head, if the log does not have that one, or if an event up to there
    has been set aside since. Raises Conflict if the tables are of a newer fold."""
    checkpoint = await tables.checkpoint(connection, tournament_id)
    assert checkpoint is not None
    if checkpoint.fold_version > FOLD_VERSION:
        raise Conflict("The tables were made by a newer version of Tallybook; rebuild them with that version.")
    head = checkpoint.head
    is_there = head == heads.beginning(tournament_id) or await heads.has(connection, tournament_id, head)
    if is_there and not await reading.set_aside_since(connection, tournament_id, head.sequence):
        return head
    return (await heads.current(connection, [tournament_id]))[tournament_id]


async def _switch(connection: Connection, folded: "_Folded") -> Rebuilt | None:
    """Compares and replaces, within a transaction. None: the checkpoint is held elsewhere, or is far ahead."""
    tournament_id = folded.tournament_id
    claimed = await tables.claim(connection, [tournament_id])
    if tournament_id not in claimed:
        return None
    goal = await _goal(connection, tournament_id)
    if goal.sequence > folded.head.sequence + HELD_EVENTS_MAX:
        return None
    await tables.take_time(connection)
    await folded.reach(connection, goal)
    erased_later = await reading.erased_since(connection, tournament_id, goal.sequence)
    erase(folded.board, erased_later)
    checkpoint = claimed[tournament_id]
    of_this_fold = checkpoint.fold_version == FOLD_VERSION
    found: list[str] = []
    if checkpoint.head != goal:
        found.append(f"the tables stand at event {checkpoint.head.sequence} of a log that has since been replaced")
    elif of_this_fold:
        stored = await tables.load_board(connection, tournament_id)
        erase(stored, erased_later)
        found += await asyncio.to_thread(_told, folded.board, stored)
    if found or not of_this_fold:
        await tables.clear(connection, [tournament_id])
        await tables.save(connection, {tournament_id: await asyncio.to_thread(tables.everything, folded.board)})
        await tables.advance(connection, {tournament_id: goal}, {tournament_id: folded.last_snapshot})
    # Processes of the older version use its snapshots for as long as they run.
    await snapshots.drop_others(connection, tournament_id, folded.snapshots, kept_version=checkpoint.fold_version)
    if erased := await reading.erased_since(connection, tournament_id, Sequence(0)):
        await snapshots.erase(connection, tournament_id, erased)  # some were written before the name was erased
    return Rebuilt(goal.sequence, found, replaced=bool(found) or not of_this_fold)


def _told(expected: Board, found: Board) -> list[str]:
    """The first REBUILD_DIFFERENCES_MAX differences. Call it in a thread: it takes long, and these boards do not
    change."""
    return [str(unlike) for unlike in islice(differences(expected, found), REBUILD_DIFFERENCES_MAX)]


class _Folded:
    """A board folded from the beginning of the log. `began_at`: the log was read after the erasures up to there, so it
    has given no name that they erased."""

    def __init__(self, tournament_id: TournamentId, began_at: Sequence, progress: Callable[[Sequence], None]) -> None:
        self.tournament_id = tournament_id
        self.board = Board()
        self.head = heads.beginning(tournament_id)
        self.snapshots: list[Sequence] = []
        self._began_at = began_at
        self._progress = progress

    async def reach(self, connection: Connection, goal: Head, *, snapshots_too: bool = False) -> None:
        """Folds until the board stands at `goal`, a head of this log. Raises LogUnreadable and LogForked."""
        while self.head.sequence < goal.sequence:
            tail = await tails.tail(connection, self.tournament_id, self.head)
            if not tail.events:
                raise LogForked(self.tournament_id, self.head.sequence)
            folded = tail.events[: goal.sequence - self.head.sequence]
            await in_time_slices(folding(self.tournament_id, self.board, folded))
            self.head = min(tail.head, goal, key=lambda head: head.sequence)
            self._progress(self.head.sequence)
            if snapshots_too and snapshots.is_due(self.head, self.board, self.last_snapshot):
                async with connection.transaction():
                    await self._save_snapshot(connection)

    async def _save_snapshot(self, connection: Connection) -> None:
        """Within a transaction. Leaves it to a later time if the checkpoint is held elsewhere."""
        if await tables.claim(connection, [self.tournament_id]):
            erase(self.board, await reading.erased_since(connection, self.tournament_id, self._began_at))
            await snapshots.save(connection, {self.tournament_id: Snapshot(self.head, self.board)})
            self.snapshots.append(self.head.sequence)

    @property
    def last_snapshot(self) -> Sequence:
        """The sequence of the last snapshot; 0: there is none."""
        return self.snapshots[-1] if self.snapshots else Sequence(0)
