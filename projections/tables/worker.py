"""The worker: claims tournaments whose tables lack events, folds some, saves rows and checkpoints together.

Any number of workers run at once, in any number of processes. Candidates are found without locks, or named by hints;
then the checkpoint rows of a batch of them are locked, and those that are locked already are left to whoever did it.
Heads are never locked: that would hold up those who append. A batch is bounded, and each tournament has the same share
in it, so that a busy one does not keep the others waiting. Its rows commit together with the checkpoints: after a
crash, or when a paused worker wakes up after another took its place, there is nothing that could be half done or done
twice. In the same transaction boards are kept as snapshots once in a while, so that the past is found quickly.

Tables that an older fold made are not touched until they can be replaced as a whole (`rebuild.py`): one tournament at a
time, beside the rounds.

Where something is wrong with a tournament, its batch is rolled back, and each tournament of the batch is folded alone
next. Then it shows which one it was; that one stays alone until all is well with it.
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from itertools import islice
from typing import Final

import structlog
from asyncpg import Connection, DataError, IntegrityConstraintViolationError, LockNotAvailableError, PostgresError
from msgspec import Struct, field

from engine.database.pool import DATABASE_TROUBLE, Database, is_lost
from engine.domain.errors import Conflict, DatabaseUnavailable, LogForked, LogUnreadable
from engine.domain.events import Recorded
from engine.domain.terms import TournamentId
from engine.log import log
from engine.log.log import Head
from engine.process import failpoints
from engine.process.background import background
from engine.process.failpoints import Point
from engine.process.telemetry import FOLD_SECONDS, FOLDED_EVENTS, FORKED, REBUILT_EVENTS, STOPPED
from engine.process.turns import Turn
from projections.board.board import FOLD_VERSION, Board, Revisions, fold
from projections.tables import snapshots, tables
from projections.tables.rebuild import rebuild
from projections.tables.sizes import Shelf
from projections.tables.snapshots import Snapshot
from projections.tables.sweep import STOPPED_RETRY_SECONDS, Sweep
from projections.tables.tables import Touched
from projections.tables.wakeup import CHANNEL, hinted

BATCH_TOURNAMENTS_MAX: Final = 200
ROUND_SECONDS_MIN: Final = 0.1
"""From the beginning of a round to that of the next, when nothing is left over: hints gather meanwhile."""
POLL_SECONDS: Final = 1.0
"""Between two looks of the sweep, which says how late at most tables follow where hints are lost."""
BOARDS_BYTES_MAX: Final = 512 * 1024 * 1024
"""Of the boards that a worker keeps, so as not to read them from the tables again; estimated."""
KNOWN_MAX: Final = 1_000
"""Tournaments that a worker looks at again because it could not fold them; further ones are left to the sweep."""
OUTDATED_MAX: Final = 10_000
"""Tournaments with tables of an older fold that a worker knows of; when these are replaced, it looks for more."""

_logger = structlog.get_logger()


class Folded(Struct):
    """What became of a batch. `left`: tournaments that can be gone on with at once; `outdated`: those whose tables an
    older fold made; `claimed`: those that somebody else has claimed, or that do not exist."""

    events: int = 0
    boards: dict[TournamentId, tuple[Head, Board]] = field(default_factory=dict)
    left: set[TournamentId] = field(default_factory=set)
    outdated: set[TournamentId] = field(default_factory=set)
    claimed: set[TournamentId] = field(default_factory=set)


class Worker:
    """One worker; `run` works until it is cancelled, `catch_up` until there is nothing to do."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._boards = Shelf(BOARDS_BYTES_MAX)
        self._alone: set[TournamentId] = set()
        self._outdated: set[TournamentId] = set()
        self._more_outdated = False
        self._replacing = False
        self._hinted: set[TournamentId] = set()
        self._known: set[TournamentId] = set()
        self._something = asyncio.Event()
        self._polled_at = 0.0
        self._sweep = Sweep()

    async def run(self) -> None:
        async with background() as tasks:
            await self._keep_up(tasks)

    async def _keep_up(self, tasks: asyncio.TaskGroup) -> None:
        while True:
            try:
                async with self._listening() as listener:
                    await self._work(listener, tasks)
            except (DatabaseUnavailable, *DATABASE_TROUBLE) as error:
                _logger.warning("worker_failed", error=repr(error))
                await asyncio.sleep(POLL_SECONDS)
            except PostgresError as error:  # amid a restore, tables, functions or rights are not there yet
                _logger.error("worker_failed", error=repr(error))
                await asyncio.sleep(POLL_SECONDS)

    async def catch_up(self) -> int:
        """Folds until no tournament is behind, but for the stopped ones; returns how many events it folded."""
        events = 0
        while True:
            sweep, before, left = Sweep(), events, False
            while sweep.hurried:
                async with self._database.connection() as connection:
                    candidates = await sweep.look(connection)
                folded = [await self._fold(batch) for batch in self._batches(candidates)]
                rebuilt = [await self._rebuild(tournament_id) for tournament_id in sorted(self._outdated)]
                events += sum(batch.events for batch in folded) + sum(rebuilt)
                left = left or any(batch.left for batch in folded)
            if events == before and not left:
                return events

    async def _work(self, listener: Connection, tasks: asyncio.TaskGroup) -> None:
        """Rounds over what hints name and, once in POLL_SECONDS, over what a look finds; until hints are lost."""
        async with self._database.connection() as connection:
            self._sweep = await Sweep.anywhere(connection)
        self._polled_at = 0.0
        while not is_lost(listener):
            began_at = time.monotonic()
            if began_at >= self._polled_at + POLL_SECONDS:
                self._hinted.update(await self._look())
            if not self._hinted:
                await self._wait(self._polled_at + POLL_SECONDS - time.monotonic())
                continue
            left = await self._round(listener)
            if self._outdated and not self._replacing:
                self._replacing = True
                tasks.create_task(self._replace_outdated())
            if not left and not self._sweep.hurried:
                await asyncio.sleep(began_at + ROUND_SECONDS_MIN - time.monotonic())
            self._hinted |= left

    async def _round(self, listener: Connection) -> set[TournamentId]:
        """Folds some events of all that is hinted at; returns the tournaments of which something is left over."""
        hinted, self._hinted = self._hinted, set()
        left = set[TournamentId]()
        for batch in self._batches(hinted):
            if is_lost(listener):
                break  # perhaps nothing is to be had; if it is, the next round of the sweep finds what is left
            left |= (await self._fold_safely(batch)).left
        return left

    def _batches(self, tournament_ids: Iterable[TournamentId]) -> list[list[TournamentId]]:
        """Those that can be folded together, and then those that are to be alone."""
        ids = sorted(tournament_ids)
        together = [tournament_id for tournament_id in ids if tournament_id not in self._alone]
        batches = [together[n : n + BATCH_TOURNAMENTS_MAX] for n in range(0, len(together), BATCH_TOURNAMENTS_MAX)]
        return batches + [[tournament_id] for tournament_id in ids if tournament_id in self._alone]

    async def _fold_safely(self, batch: list[TournamentId]) -> Folded:
        """As `_fold`. A defect that one tournament meets is written down, and does not hold up the others."""
        try:
            return await self._fold(batch)
        except DatabaseUnavailable as error:  # of one tournament, or of all: then the listener is lost as well
            _logger.warning("worker_failed", tournament_ids=batch, error=repr(error.__cause__))
        except Exception:  # the worker's outer loop: the tables stay where they are, nothing is lost or skipped
            _logger.exception("worker_failed", tournament_ids=batch)
        return self._apart(batch)

    def _apart(self, batch: list[TournamentId]) -> Folded:
        """What became of a batch that was rolled back: each of it is alone from now on, beginning at once."""
        self._alone.update(batch)
        if len(batch) == 1:
            self._know(batch)
        return Folded(left=set(batch) if len(batch) > 1 else set())

    def _know(self, tournament_ids: Iterable[TournamentId]) -> None:
        """Has the next look include them."""
        self._known.update(islice(tournament_ids, KNOWN_MAX - len(self._known)))

    async def _wait(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(max(seconds, 0)):
                await self._something.wait()
        except TimeoutError:
            return
        self._something.clear()

    async def _look(self) -> list[TournamentId]:
        """Tournaments that are behind, of the sweep's next portion and of those that are known."""
        known, self._known = self._known, set()
        async with self._database.connection() as connection:
            found = await self._sweep.look(connection)
            if known:
                found += await tables.behind(connection, known, stopped_seconds=STOPPED_RETRY_SECONDS)
        self._polled_at = 0.0 if self._sweep.hurried else time.monotonic()
        return found

    @asynccontextmanager
    async def _listening(self) -> AsyncIterator[Connection]:
        async with self._database.raw_connection() as connection:
            await connection.add_listener(CHANNEL, self._hint)
            try:
                yield connection
            finally:
                if not is_lost(connection):
                    await connection.remove_listener(CHANNEL, self._hint)

    def _hint(self, _connection: object, _pid: int, _channel: str, payload: str) -> None:
        named = hinted(payload)
        self._hinted.update(named)
        if named:
            self._something.set()
        else:
            self._look_everywhere()

    def _look_everywhere(self) -> None:
        self._sweep.hurry()
        self._polled_at = 0.0
        self._something.set()

    # ── One batch ───────────────────────────────────────────────────────────────────────────────────────

    async def _fold(self, batch: list[TournamentId]) -> Folded:
        """Folds some events of each of a batch into its tables."""
        started_at = time.perf_counter()
        try:
            async with self._database.connection() as connection:
                beginnings = {t: log.beginning(t) for t in batch if t not in self._boards}
                await tables.create_checkpoints(connection, beginnings)
                try:
                    async with connection.transaction():
                        folded = await self._fold_within(connection, batch)
                    failpoints.reached(Point.FOLD_COMMITTED)
                except LockNotAvailableError as error:  # of somebody who looks at its rows; the others must not wait
                    if len(batch) == 1:
                        _logger.warning("worker_failed", tournament_ids=batch, error=repr(error))
                    return self._apart(batch)
        except (LogUnreadable, LogForked) as fault:
            if len(batch) == 1:
                await self._alarm(fault)
            return self._apart(batch)
        self._alone.difference_update(batch)
        self._outdated.difference_update(batch)
        self._note_outdated(folded.outdated)
        self._know(folded.claimed)
        self._alone |= folded.left - folded.boards.keys()  # too heavy for a batch: they must not wait for ever
        folded.left |= self._forget(folded.claimed)
        for tournament_id, (head, board) in folded.boards.items():
            self._boards.put(tournament_id, head, board)
        if folded.events:
            seconds = time.perf_counter() - started_at
            FOLDED_EVENTS.inc(folded.events)
            FOLD_SECONDS.observe(seconds)
            _logger.info(
                "tables_folded",
                tournaments=len(folded.boards),
                events=folded.events,
                milliseconds=round(seconds * 1000, 1),
            )
        return folded

    def _forget(self, claimed: Iterable[TournamentId]) -> set[TournamentId]:
        """Drops the kept boards of tournaments that could not be claimed, and returns which had one: they can be tried
        again. Where a restored database gives a lost tournament's id to another one, that one has no checkpoint yet,
        and gets one only where no board is kept."""
        return {tournament_id for tournament_id in claimed if self._boards.take(tournament_id) is not None}

    async def _fold_within(self, connection: Connection, batch: Collection[TournamentId]) -> Folded:
        """Within a transaction: claim, read, fold, save."""
        checkpoints = await tables.claim(connection, batch)
        failpoints.reached(Point.FOLD_CLAIMED)
        outdated = {t for t, c in checkpoints.items() if c.fold_version < FOLD_VERSION}
        claimed = set(batch) - checkpoints.keys()
        after = {t: c.head for t, c in checkpoints.items() if c.fold_version == FOLD_VERSION}
        read = await log.tails(connection, after)
        failpoints.reached(Point.FOLD_READ)
        if not read.tails:
            return Folded(outdated=outdated, claimed=claimed)
        boards = await self._boards_at(connection, {t: after[t] for t in read.tails})
        touched = {t: await _touched(t, boards[t], tail.events) for t, tail in read.tails.items()}
        for tournament_id in [t for t, on in touched.items() if on.set_aside]:
            if await log.set_aside_since(connection, tournament_id, after[tournament_id].sequence):
                outdated.add(tournament_id)  # another version could fold it, and its tables hold what came of it
                del read.tails[tournament_id], touched[tournament_id], boards[tournament_id]
                read.unread.discard(tournament_id)
        if not read.tails:
            return Folded(outdated=outdated, claimed=claimed)
        heads = {t: tail.head for t, tail in read.tails.items()}
        try:
            await tables.save(connection, touched)
        except (DataError, IntegrityConstraintViolationError) as error:
            tournament_id, head = next(iter(heads.items()))  # of several, it need not be this one
            reason = f"the tables cannot hold what the events up to it lead to: {error}"
            raise LogUnreadable(tournament_id, head.sequence, reason) from error
        snapshot_sequences = {t: checkpoints[t].snapshot_sequence for t in heads}
        due = {
            t: Snapshot(heads[t], boards[t])
            for t in heads
            if snapshots.is_due(heads[t], boards[t], snapshot_sequences[t])
        }
        await snapshots.save(connection, due)
        snapshot_sequences |= {t: snapshot.head.sequence for t, snapshot in due.items()}
        await tables.advance(connection, heads, snapshot_sequences)
        failpoints.reached(Point.FOLD_SAVED)
        return Folded(
            events=sum(len(tail.events) for tail in read.tails.values()),
            boards={t: (head, boards[t]) for t, head in heads.items()},
            left=read.unread,
            outdated=outdated,
            claimed=claimed,
        )

    async def _boards_at(self, connection: Connection, heads: Mapping[TournamentId, Head]) -> dict[TournamentId, Board]:
        """The boards that the tables hold, which are at `heads`.

        Kept ones are taken out: they are put back when they have been saved, and what is folded into them is gone
        with them when it has not.
        """
        kept = {t: self._boards.take(t) for t in heads}
        boards = {t: taken[1] for t, taken in kept.items() if taken is not None and taken[0] == heads[t]}
        boards |= {t: Board() for t, head in heads.items() if head.sequence == 0}
        return boards | await tables.load_boards(connection, heads.keys() - boards.keys())

    # ── Tables of an older fold ─────────────────────────────────────────────────────────────────────────

    def _note_outdated(self, tournament_ids: Collection[TournamentId]) -> None:
        room = OUTDATED_MAX - len(self._outdated)
        self._more_outdated = self._more_outdated or len(tournament_ids) > room
        self._outdated.update(islice(tournament_ids, room))

    async def _replace_outdated(self) -> None:
        """Has tables of an older fold replaced, one after the other; looks for more where there may be."""
        while self._outdated:
            # Any of them: other workers do the same.
            await self._rebuild_safely(random.choice(list(self._outdated)))  # noqa: S311
        self._replacing = False
        if self._more_outdated:
            self._more_outdated = False
            self._look_everywhere()

    async def _rebuild(self, tournament_id: TournamentId) -> int:
        """Has the tables of a tournament replaced; how many events were folded."""
        self._outdated.discard(tournament_id)
        self._boards.take(tournament_id)
        async with self._database.connection() as connection:
            checkpoint = await tables.checkpoint(connection, tournament_id)
            if checkpoint is None or not (
                checkpoint.fold_version < FOLD_VERSION
                or await log.set_aside_since(connection, tournament_id, checkpoint.head.sequence)
            ):
                return 0  # another worker was there first
        started_at = time.perf_counter()
        try:
            rebuilt = await rebuild(self._database, tournament_id)
        except (LogUnreadable, LogForked) as fault:
            await self._alarm(fault)
            return 0
        REBUILT_EVENTS.inc(rebuilt.sequence)
        _logger.info(
            "tables_rebuilt",
            tournament_id=tournament_id,
            events=rebuilt.sequence,
            milliseconds=round((time.perf_counter() - started_at) * 1000, 1),
        )
        return rebuilt.sequence

    async def _rebuild_safely(self, tournament_id: TournamentId) -> None:
        """As `_rebuild`. What it meets with is written down; the next look finds the tournament again."""
        try:
            await self._rebuild(tournament_id)
            return
        except (DatabaseUnavailable, Conflict, *DATABASE_TROUBLE) as error:
            _logger.warning("worker_failed", tournament_ids=[tournament_id], error=repr(error))
        except Exception:  # as in the outer loop
            _logger.exception("worker_failed", tournament_ids=[tournament_id])
        self._know([tournament_id])

    async def _alarm(self, fault: LogUnreadable | LogForked) -> None:
        if isinstance(fault, LogForked):
            FORKED.inc()
            _logger.error("log_forked", tournament_id=fault.tournament_id, sequence=fault.sequence)
            return
        STOPPED.inc()
        _logger.error(
            "tournament_stopped", tournament_id=fault.tournament_id, sequence=fault.sequence, reason=fault.reason
        )
        async with self._database.connection() as connection:
            await tables.stop(connection, fault)


async def _touched(tournament_id: TournamentId, board: Board, tail: Iterable[Recorded]) -> Touched:
    """Folds `tail` into `board`; raises LogUnreadable."""
    touched, revisions, turn = Touched(board), Revisions(), Turn()
    for recorded in tail:
        try:
            fold(board, revisions, recorded)
            tables.touch(touched, recorded.event)
        except LookupError as error:
            raise LogUnreadable.dangling(tournament_id, recorded.sequence, error) from error
        if turn.over:
            await turn.give_way()
    return touched
