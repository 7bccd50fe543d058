"""The worker: claims tournaments whose tables lack events, folds some of these, and saves rows and checkpoints
together.

Any number of workers can run at the same time, in any number of processes. A worker finds candidates without locks, or
by hints. Then it locks the checkpoint rows of a batch of them, and skips rows that another worker has locked. It never
locks heads, which would delay appends. A batch is bounded, and each tournament has an equal share of it, so that a busy
one does not delay the others. Rows and checkpoints commit together. So no event is folded partly or twice after a
crash, or when a paused worker resumes after another replaced it. At intervals the same transaction stores boards as
snapshots, for fast answers about the past.

Tables of an older fold are not touched until they can be replaced as a whole (`rebuild.py`): one tournament at a time,
alongside the rounds.

If a tournament fails, its batch is rolled back, and each tournament of the batch is folded alone next. That identifies
the failing one, which is then folded alone until it succeeds.

Each node of a distributed database has its own worker, which queries only that node. So a lost node delays only its own
worker.
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from itertools import islice
from typing import Final

from asyncpg import Connection, DataError, IntegrityConstraintViolationError, LockNotAvailableError, PostgresError
from msgspec import Struct, field

from engine.database.pool import DATABASE_TROUBLE, Database, DistributedDatabase, is_lost
from engine.domain.errors import Conflict, DatabaseUnavailable, LogForked, LogUnreadable
from engine.domain.events import Recorded
from engine.domain.terms import CompetitorId, TournamentId
from engine.log import heads, reading, tails
from engine.log.heads import Head
from engine.process import failpoints, tracing
from engine.process.background import background, set_within
from engine.process.failpoints import Point
from engine.process.logs import Logger
from engine.process.telemetry import ERASED, FOLD_SECONDS, FOLDED_EVENTS, FORKED, REBUILT_EVENTS, STOPPED
from engine.process.time_slices import TimeSlice
from projections.board.board import FOLD_VERSION, Board, Revisions, fold
from projections.tables import defects, snapshots, tables
from projections.tables.defects import DefectPart, is_defect
from projections.tables.rebuild import rebuild
from projections.tables.sizes import MEMORY_BYTES, Shelf
from projections.tables.snapshots import Snapshot
from projections.tables.sweep import STOPPED_RETRY_SECONDS, Mine, Sweep
from projections.tables.tables import Touched
from projections.tables.wakeup import CHANNEL, hinted

BATCH_TOURNAMENTS_MAX: Final = 200
WORKER_ROUND_SECONDS_MIN: Final = 0.1
"""The time from the start of a round to the start of the next, if nothing is left over. Hints gather meanwhile."""
WORKER_POLL_SECONDS: Final = 1.0
"""The time between two looks of the sweep. `sweep.py` gives the largest delay of tables if hints are lost."""
NODES_SECONDS: Final = 10.0
"""The time between two looks for nodes that have been added to a distributed database."""
KNOWN_MAX: Final = 1_000
"""Tournaments that a worker looks at again because it could not fold them. Further ones are left to the sweep."""
OUTDATED_MAX: Final = 10_000
"""Tournaments with outdated tables that a worker remembers. When it has replaced these, it looks for more."""

_logger: Final = Logger()


class Folded(Struct):
    """The outcome of a batch. `left`: tournaments that can be continued at once. `outdated`: those whose tables come
    from an older fold, or contain an event that was set aside since. `claimed`: those that another worker has claimed,
    or that do not exist. `erased`: the competitors that were erased."""

    events: int = 0
    boards: dict[TournamentId, tuple[Head, Board]] = field(default_factory=dict)
    left: set[TournamentId] = field(default_factory=set)
    outdated: set[TournamentId] = field(default_factory=set)
    claimed: set[TournamentId] = field(default_factory=set)
    erased: dict[TournamentId, set[CompetitorId]] = field(default_factory=dict)


async def work_by_nodes(database: Database, *, boards_bytes_max: int = MEMORY_BYTES) -> None:
    """Runs workers until it is cancelled: one for each node of a distributed database."""
    if not isinstance(database, DistributedDatabase):
        await Worker(database, boards_bytes_max=boards_bytes_max).run()
        return
    at_work = set[Database]()
    async with background() as tasks:
        while True:
            try:
                nodes = await database.all_nodes()
            except (DatabaseUnavailable, PostgresError) as error:
                _logger.warning("nodes_unknown", error=repr(error))
                nodes = []
            for node in nodes:
                if node not in at_work:
                    at_work.add(node)
                    mine = partial(_those_at, database, node)
                    tasks.create_task(Worker(node, mine, boards_bytes_max=boards_bytes_max).run())
            await asyncio.sleep(NODES_SECONDS if nodes else WORKER_POLL_SECONDS)


async def _those_at(database: Database, node: Database, tournament_ids: list[TournamentId]) -> list[TournamentId]:
    nodes = await database.by_nodes(tournament_ids)
    return [tournament_id for tournament_id in tournament_ids if nodes[tournament_id] is node]


class Worker:
    """One worker; `run` works until it is cancelled, `catch_up` until there is nothing to do. `mine`: the tournaments
    that it sweeps; None: all. `boards_bytes_max`: of boards that it keeps, estimated."""

    def __init__(self, database: Database, mine: Mine | None = None, *, boards_bytes_max: int = MEMORY_BYTES) -> None:
        self._database = database
        self._mine = mine
        self._batch_max = 1 if database.is_distributed else BATCH_TOURNAMENTS_MAX
        self._boards = Shelf(boards_bytes_max)
        self._alone: set[TournamentId] = set()
        self._outdated: set[TournamentId] = set()
        self._more_outdated = False
        self._replacing = False
        self._hinted: set[TournamentId] = set()
        self._known: set[TournamentId] = set()
        self._something = asyncio.Event()
        self._look_due_at = 0.0  # on the monotonic clock, which may have begun a moment ago; 0: at once
        self._sweep = Sweep(mine=mine)

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
                await asyncio.sleep(WORKER_POLL_SECONDS)
            except PostgresError as error:  # amid a restore, tables, functions or rights are not there yet
                _logger.error("worker_failed", error=repr(error))
                await asyncio.sleep(WORKER_POLL_SECONDS)

    async def catch_up(self) -> int:
        """Folds until no tournament is behind, except the stopped ones; returns how many events it folded."""
        events = 0
        while True:
            sweep, before, left = Sweep(mine=self._mine), events, False
            while sweep.hurried:
                async with self._database.connection() as connection:
                    candidates = await sweep.look(connection, goes_around=self._database.goes_around)
                folded = [await self._fold(batch) for batch in self._batches(candidates)]
                rebuilt = [await self._rebuild(tournament_id) for tournament_id in sorted(self._outdated)]
                events += sum(batch.events for batch in folded) + sum(rebuilt)
                left = left or any(batch.left for batch in folded)
            if events == before and not left:
                return events

    async def _work(self, listener: Connection, tasks: asyncio.TaskGroup) -> None:
        """Makes rounds over the tournaments that hints name and, once in WORKER_POLL_SECONDS, over those that a look
        finds. Returns when hints are lost, or come another way."""
        goes_around = self._database.goes_around
        async with self._database.connection() as connection:
            self._sweep = await Sweep.anywhere(connection, self._mine)
        self._look_due_at = 0.0
        while not is_lost(listener) and self._database.goes_around == goes_around:
            began_at = time.monotonic()
            if began_at >= self._look_due_at:
                self._hinted.update(await self._look())
            if not self._hinted:
                if await set_within(self._something, self._look_due_at - time.monotonic()):
                    self._something.clear()
                continue
            left = await self._round(listener)
            if self._outdated and not self._replacing:
                self._replacing = True
                tasks.create_task(self._replace_outdated())
            if not left and not self._sweep.hurried:
                await asyncio.sleep(began_at + WORKER_ROUND_SECONDS_MIN - time.monotonic())
            self._hinted |= left

    async def _round(self, listener: Connection) -> set[TournamentId]:
        """Folds some events of all hinted tournaments; returns those of which something is left over."""
        hinted, self._hinted = self._hinted, set()
        left = set[TournamentId]()
        for batch in self._batches(hinted):
            if is_lost(listener):
                break  # if the database is not lost, the sweep's next round finds the rest
            left |= (await self._fold_safely(batch)).left
        return left

    def _batches(self, tournament_ids: Iterable[TournamentId]) -> list[list[TournamentId]]:
        """The tournaments that can be folded together, in batches; then each of those that are to be alone."""
        ids = sorted(tournament_ids)
        together = [tournament_id for tournament_id in ids if tournament_id not in self._alone]
        batches = [together[n : n + self._batch_max] for n in range(0, len(together), self._batch_max)]
        return batches + [[tournament_id] for tournament_id in ids if tournament_id in self._alone]

    async def _fold_safely(self, batch: list[TournamentId]) -> Folded:
        """As `_fold`, but a defect in one tournament is logged, and does not delay the others."""
        try:
            return await self._fold(batch)
        except DatabaseUnavailable as error:  # for one tournament, or for all: then the listener is lost as well
            _logger.warning("worker_failed", tournament_ids=batch, error=repr(error.__cause__))
        except Exception as error:  # the worker's outer loop: the tables do not change, and nothing is lost
            _logger.exception("worker_failed", tournament_ids=batch)
            if len(batch) == 1:
                await self._note_defect(batch[0], error)
        return self._apart(batch)

    async def _note_defect(self, tournament_id: TournamentId, error: Exception) -> None:
        if is_defect(error):
            defects.alarm(tournament_id, DefectPart.TABLES, error)
            await defects.note(self._database, tournament_id, DefectPart.TABLES, error)

    def _apart(self, batch: list[TournamentId]) -> Folded:
        """The outcome of a batch that was rolled back: each of its tournaments is folded alone from now on, starting
        immediately. One that was already alone waits for the next look."""
        self._alone.update(batch)
        if len(batch) == 1:
            self._know(batch)
        return Folded(left=set(batch) if len(batch) > 1 else set())

    def _know(self, tournament_ids: Iterable[TournamentId]) -> None:
        """Includes the tournaments in the next look, as far as KNOWN_MAX allows."""
        self._known.update(islice(tournament_ids, KNOWN_MAX - len(self._known)))

    async def _look(self) -> list[TournamentId]:
        """The tournaments that are behind, among the sweep's next chunk and the known ones."""
        known, self._known = self._known, set()
        async with self._database.connection() as connection:
            found = await self._sweep.look(connection, goes_around=self._database.goes_around)
            if known:
                found += await tables.behind(connection, known, stopped_seconds=STOPPED_RETRY_SECONDS)
        self._look_due_at = 0.0 if self._sweep.hurried else time.monotonic() + WORKER_POLL_SECONDS
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
        self._look_due_at = 0.0
        self._something.set()

    # ── One batch ───────────────────────────────────────────────────────────────────────────────────────

    async def _fold(self, batch: list[TournamentId]) -> Folded:
        """Folds some events of each tournament of a batch into its tables."""
        started_at = time.perf_counter()
        try:
            async with self._database.connection() as connection:
                beginnings = {t: heads.beginning(t) for t in batch if t not in self._boards}
                await tables.create_checkpoints(connection, beginnings)
                try:
                    with tracing.fold() as attributes:
                        async with connection.transaction():
                            folded = await self._fold_within(connection, batch)
                        attributes["tallybook.tournaments"] = len(folded.boards)
                        attributes["tallybook.events"] = folded.events
                    failpoints.reached(Point.FOLD_COMMITTED)
                except (
                    LockNotAvailableError
                ) as error:  # rows of one tournament are locked elsewhere; the others must not wait
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
        self._alone |= folded.left - folded.boards.keys()  # too heavy for a batch: they must not wait indefinitely
        folded.left |= self._forget(folded.claimed)
        for tournament_id, (head, board) in folded.boards.items():
            self._boards.put(tournament_id, head, board)
        for tournament_id, competitor_ids in folded.erased.items():
            ERASED.inc(len(competitor_ids))
            _logger.info("competitors_erased", tournament_id=tournament_id, competitor_ids=sorted(competitor_ids))
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
        """Drops the kept boards of tournaments that could not be claimed, and returns the tournaments that had one,
        which can be retried. If a restored database gives a lost tournament's id to another tournament, that one has no
        checkpoint yet, and gets one only if no board is kept."""
        return {tournament_id for tournament_id in claimed if self._boards.drop(tournament_id)}

    async def _fold_within(self, connection: Connection, batch: Collection[TournamentId]) -> Folded:
        """Within a transaction: claims, reads, folds, saves. Raises LogUnreadable and LogForked."""
        checkpoints = await tables.claim(connection, batch)
        failpoints.reached(Point.FOLD_CLAIMED)
        outdated = {t for t, c in checkpoints.items() if c.fold_version < FOLD_VERSION}
        claimed = set(batch) - checkpoints.keys()
        after = {t: c.head for t, c in checkpoints.items() if c.fold_version == FOLD_VERSION}
        read = await tails.tails(connection, after)
        failpoints.reached(Point.FOLD_READ)
        if not read.tails:
            return Folded(outdated=outdated, claimed=claimed)
        boards = await self._boards_at(connection, {t: after[t] for t in read.tails})
        touched = {t: await _touched(t, boards[t], tail.events) for t, tail in read.tails.items()}
        for tournament_id in [t for t, on in touched.items() if on.set_aside]:
            if await reading.set_aside_since(connection, tournament_id, after[tournament_id].sequence):
                outdated.add(tournament_id)  # a version that could fold it has put the result into the tables
                del read.tails[tournament_id], touched[tournament_id], boards[tournament_id]
                read.unread.discard(tournament_id)
        if not read.tails:
            return Folded(outdated=outdated, claimed=claimed)
        heads = {t: tail.head for t, tail in read.tails.items()}
        try:
            await tables.save(connection, touched)
        except (DataError, IntegrityConstraintViolationError) as error:
            tournament_id, head = next(iter(heads.items()))  # if there are several, it may be another
            reason = f"the tables cannot hold what the events up to it lead to: {error}"
            raise LogUnreadable(tournament_id, head.sequence, reason) from error
        snapshot_sequences = {t: checkpoints[t].snapshot_sequence for t in heads}
        due = {
            t: Snapshot(heads[t], boards[t])
            for t in heads
            if snapshots.is_due(heads[t], boards[t], snapshot_sequences[t])
        }
        await snapshots.save(connection, due)
        for tournament_id, on in touched.items():
            if on.erased:
                await snapshots.erase(connection, tournament_id, on.erased)
                await defects.forget(connection, tournament_id)
        snapshot_sequences |= {t: snapshot.head.sequence for t, snapshot in due.items()}
        await tables.advance(connection, heads, snapshot_sequences)
        failpoints.reached(Point.FOLD_SAVED)
        return Folded(
            events=sum(len(tail.events) for tail in read.tails.values()),
            boards={t: (head, boards[t]) for t, head in heads.items()},
            left=read.unread,
            outdated=outdated,
            claimed=claimed,
            erased={t: on.erased for t, on in touched.items() if on.erased},
        )

    async def _boards_at(self, connection: Connection, heads: Mapping[TournamentId, Head]) -> dict[TournamentId, Board]:
        """The boards that the tables hold, which are at `heads`.

        Kept boards are taken out. They are put back after they have been saved; otherwise what was folded into them is
        gone with them.
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
        """Replaces outdated tables, one tournament after another; then looks for more if there may be any."""
        while self._outdated:
            # A random one, because other workers do the same.
            await self._rebuild_safely(random.choice(list(self._outdated)))  # noqa: S311
        self._replacing = False
        if self._more_outdated:
            self._more_outdated = False
            self._look_everywhere()

    async def _rebuild(self, tournament_id: TournamentId) -> int:
        """Replaces the tables of a tournament, if they are still outdated; returns how many events were folded."""
        self._outdated.discard(tournament_id)
        self._boards.drop(tournament_id)
        async with self._database.connection() as connection:
            checkpoint = await tables.checkpoint(connection, tournament_id)
            if checkpoint is None or not (
                checkpoint.fold_version < FOLD_VERSION
                or await reading.set_aside_since(connection, tournament_id, checkpoint.head.sequence)
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
        """As `_rebuild`, but errors are logged, and the next look includes the tournament again."""
        try:
            await self._rebuild(tournament_id)
            return
        except (DatabaseUnavailable, Conflict, *DATABASE_TROUBLE) as error:
            _logger.warning("worker_failed", tournament_ids=[tournament_id], error=repr(error))
        except Exception as error:  # as in the outer loop
            _logger.exception("worker_failed", tournament_ids=[tournament_id])
            await self._note_defect(tournament_id, error)
        self._know([tournament_id])

    async def _alarm(self, fault: LogUnreadable | LogForked) -> None:
        if isinstance(fault, LogForked):
            FORKED.inc()
            _logger.error("log_forked", tournament_id=fault.tournament_id, sequence=fault.sequence)
            return
        STOPPED.inc()
        _logger.error(
            "tournament_stopped",
            tournament_id=fault.tournament_id,
            sequence=fault.sequence,
            reason=fault.reason,
            exc_info=fault.__cause__,
        )
        async with self._database.connection() as connection:
            await tables.stop(connection, fault)


async def _touched(tournament_id: TournamentId, board: Board, tail: Iterable[Recorded]) -> Touched:
    """Folds `tail` into `board`, and returns the touched rows. Raises LogUnreadable."""
    touched, revisions, time_slice = Touched(board), Revisions(), TimeSlice()
    for recorded in tail:
        try:
            tables.touch(touched, recorded.event)
            fold(board, revisions, recorded)
        except Exception as error:  # a defect stops this tournament only
            raise LogUnreadable.unfoldable(tournament_id, recorded.sequence, error) from error
        if time_slice.over:
            await time_slice.give_way()
    return touched
