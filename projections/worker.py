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
from collections import OrderedDict
from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Final

import structlog
from asyncpg import Connection, DataError, IntegrityConstraintViolationError, LockNotAvailableError
from msgspec import Struct, field

from engine import failpoints, log
from engine.background import background
from engine.database import DATABASE_TROUBLE, Database, is_lost
from engine.errors import Conflict, DatabaseUnavailable, LogForked, LogUnreadable
from engine.events import Recorded
from engine.failpoints import Point
from engine.log import Head
from engine.telemetry import FOLD_SECONDS, FOLDED_EVENTS, FORKED, STOPPED
from engine.terms import TournamentId
from projections import snapshots, tables
from projections.board import FOLD_VERSION, Board, Revisions, fold
from projections.rebuild import rebuild
from projections.snapshots import Snapshot
from projections.tables import Touched
from projections.wakeup import CHANNEL, hinted

BATCH_TOURNAMENTS_MAX: Final = 200
ROUND_SECONDS_MIN: Final = 0.1
"""From the beginning of a round to that of the next, when nothing is left over: hints gather meanwhile."""
POLL_SECONDS: Final = 1.0
"""So late at most tables follow when every hint is lost and there is nothing else to do."""
CANDIDATES_MAX: Final = 1_000
"""Of one look; when it found so many, the next one follows at once."""
BOARDS_MAX: Final = 2_000
"""Boards that a worker keeps, so as not to read them from the tables again."""
STOPPED_RETRY_SECONDS: Final = 10.0

_logger = structlog.get_logger()


class Folded(Struct):
    """What became of a batch. `left`: tournaments that can be gone on with at once; `outdated`: those whose tables an
    older fold made."""

    events: int = 0
    boards: dict[TournamentId, tuple[Head, Board]] = field(default_factory=dict)
    left: set[TournamentId] = field(default_factory=set)
    outdated: set[TournamentId] = field(default_factory=set)


class Worker:
    """One worker; `run` works until it is cancelled, `catch_up` until there is nothing to do."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._boards: OrderedDict[TournamentId, tuple[Head, Board]] = OrderedDict()
        self._alone: set[TournamentId] = set()
        self._outdated: set[TournamentId] = set()
        self._rebuilding: TournamentId | None = None
        self._hinted: set[TournamentId] = set()
        self._something = asyncio.Event()
        self._polled_at = 0.0
        self._idle_at: str | None = None

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

    async def catch_up(self) -> int:
        """Folds until no tournament is behind, but for the stopped ones; returns how many events it folded."""
        events = 0
        while True:
            folded = [await self._fold(batch) for batch in self._batches(await self._candidates())]
            rebuilt = [await self._rebuild(tournament_id) for tournament_id in sorted(self._outdated)]
            if not any(batch.events or batch.left for batch in folded) and not rebuilt:
                return events
            events += sum(batch.events for batch in folded) + sum(rebuilt)

    async def _work(self, listener: Connection, tasks: asyncio.TaskGroup) -> None:
        """Rounds over what hints name and, once in POLL_SECONDS, over all that is behind; until hints are lost."""
        self._polled_at, self._idle_at = 0.0, None
        while not is_lost(listener):
            began_at = time.monotonic()
            candidates = await self._look() if began_at >= self._polled_at + POLL_SECONDS else []
            self._hinted.update(candidates)
            if not self._hinted:
                await self._wait(self._polled_at + POLL_SECONDS - time.monotonic())
                continue
            events, left = await self._round(listener)
            if self._outdated and self._rebuilding is None:
                # Any of them: other workers do the same.
                self._rebuilding = random.choice(sorted(self._outdated))  # noqa: S311
                tasks.create_task(self._rebuild_safely(self._rebuilding))
            if events and len(candidates) == CANDIDATES_MAX:
                self._polled_at = 0.0  # there are more
            elif not left:
                await asyncio.sleep(began_at + ROUND_SECONDS_MIN - time.monotonic())
            self._hinted |= left

    async def _round(self, listener: Connection) -> tuple[int, set[TournamentId]]:
        """Folds some events of all that is hinted at: how many, and the tournaments of which something is left over."""
        hinted, self._hinted = self._hinted, set()
        events, left = 0, set[TournamentId]()
        for batch in self._batches(hinted):
            if is_lost(listener):
                break  # perhaps nothing is to be had; if it is, the next look finds what is left
            folded = await self._fold_safely(batch)
            events += folded.events
            left |= folded.left
        return events, left

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
        return Folded(left=set(batch) if len(batch) > 1 else set())

    async def _wait(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(max(seconds, 0)):
                await self._something.wait()
        except TimeoutError:
            return
        self._something.clear()

    async def _look(self) -> list[TournamentId]:
        """As `_candidates`, but without looking where nothing has been committed since nothing was found."""
        self._polled_at = time.monotonic()
        async with self._database.connection() as connection:
            moment = await tables.moment(connection)
        if moment is not None and moment == self._idle_at:
            return []
        candidates = await self._candidates()
        self._idle_at = None if candidates else moment
        return candidates

    async def _candidates(self) -> list[TournamentId]:
        async with self._database.connection() as connection:
            return await tables.behind(connection, stopped_seconds=STOPPED_RETRY_SECONDS, limit=CANDIDATES_MAX)

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
        if not named:
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
        self._outdated = (self._outdated - set(batch)) | folded.outdated
        self._alone |= folded.left - folded.boards.keys()  # too heavy for a batch: they must not wait for ever
        self._keep(folded.boards)
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

    async def _fold_within(self, connection: Connection, batch: Collection[TournamentId]) -> Folded:
        """Within a transaction: claim, read, fold, save."""
        checkpoints = await tables.claim(connection, batch)
        failpoints.reached(Point.FOLD_CLAIMED)
        outdated = {t for t, c in checkpoints.items() if c.fold_version < FOLD_VERSION}
        after = {t: c.head for t, c in checkpoints.items() if c.fold_version == FOLD_VERSION}
        read = await log.tails(connection, after)
        failpoints.reached(Point.FOLD_READ)
        if not read.tails:
            return Folded(outdated=outdated)
        boards = await self._boards_at(connection, {t: after[t] for t in read.tails})
        touched = {t: _touched(t, boards[t], tail.events) for t, tail in read.tails.items()}
        for tournament_id in [t for t, on in touched.items() if on.set_aside]:
            if await log.set_aside_since(connection, tournament_id, after[tournament_id].sequence):
                outdated.add(tournament_id)  # another version could fold it, and its tables hold what came of it
                del read.tails[tournament_id], touched[tournament_id], boards[tournament_id]
                read.unread.discard(tournament_id)
        if not read.tails:
            return Folded(outdated=outdated)
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
        )

    async def _boards_at(self, connection: Connection, heads: Mapping[TournamentId, Head]) -> dict[TournamentId, Board]:
        """The boards that the tables hold, which are at `heads`.

        Kept ones are taken out: they are put back when they have been saved, and what is folded into them is gone
        with them when it has not.
        """
        kept = {t: self._boards.pop(t) for t in heads if t in self._boards}
        boards = {t: board for t, (head, board) in kept.items() if head == heads[t]}
        boards |= {t: Board() for t, head in heads.items() if head.sequence == 0}
        return boards | await tables.load_boards(connection, heads.keys() - boards.keys())

    def _keep(self, boards: Mapping[TournamentId, tuple[Head, Board]]) -> None:
        self._boards.update(boards)
        while len(self._boards) > BOARDS_MAX:
            self._boards.popitem(last=False)

    # ── Tables of an older fold ─────────────────────────────────────────────────────────────────────────

    async def _rebuild(self, tournament_id: TournamentId) -> int:
        """Has the tables of a tournament replaced; how many events were folded."""
        self._outdated.discard(tournament_id)
        self._boards.pop(tournament_id, None)
        started_at = time.perf_counter()
        try:
            rebuilt = await rebuild(self._database, tournament_id)
        except (LogUnreadable, LogForked) as fault:
            await self._alarm(fault)
            return 0
        FOLDED_EVENTS.inc(rebuilt.sequence)
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
        except (DatabaseUnavailable, Conflict, *DATABASE_TROUBLE) as error:
            _logger.warning("worker_failed", tournament_ids=[tournament_id], error=repr(error))
        except Exception:  # as in the outer loop
            _logger.exception("worker_failed", tournament_ids=[tournament_id])
        finally:
            self._rebuilding = None

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


def _touched(tournament_id: TournamentId, board: Board, tail: Iterable[Recorded]) -> Touched:
    """Folds `tail` into `board`; raises LogUnreadable."""
    touched, revisions = Touched(board), Revisions()
    for recorded in tail:
        try:
            fold(board, revisions, recorded)
            tables.touch(touched, recorded.event)
        except LookupError as error:
            raise LogUnreadable.dangling(tournament_id, recorded.sequence, error) from error
    return touched
