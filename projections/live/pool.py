"""The tournaments of one process: loaded on demand, kept current, bounded in size.

THE READ BARRIER. An answer must show everything that any process acknowledged before the request. So a read waits until
the live stands at a head that PostgreSQL reported to a query *sent after the request came in*. One query serves all
requests that gathered before it was sent. A request that comes in while a query is under way waits for the next one:
that query may have read the heads before another process acknowledged an event that the client already knows. So reads
are linearizable across any number of processes, for one shared round trip of a fraction of a millisecond.

Each node of a distributed database gets its own query. So if a node does not answer, only reads of its tournaments wait
or fail.

One query may release thousands of reads of one tournament. They continue in order of arrival, some in each round of the
event loop. A new read that would wait too long is refused.
"""

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Iterator
from collections.abc import Sequence as Items
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime
from functools import partial
from itertools import chain, islice
from operator import attrgetter
from time import perf_counter
from typing import Final

from asyncpg import Connection, PostgresError

from engine.database.pool import ACQUIRE_SECONDS_MAX, DATABASE_TROUBLE, NODE_TASK, Database, unavailable
from engine.domain.commands import NamedEvent
from engine.domain.errors import (
    NO_TOURNAMENT,
    DatabaseUnavailable,
    HistoryReplaced,
    LogForked,
    LogUnreadable,
    NotFound,
    QueueFull,
    ShuttingDown,
    TallybookError,
    TournamentDefect,
    TournamentStopped,
)
from engine.domain.events import Ignored, Points, Recorded, root
from engine.domain.terms import FIRST_TIME, OPERATOR, CompetitionId, Sequence, TournamentId
from engine.log import heads, reading, registry
from engine.log.appending import Appended, Block, Unseen
from engine.log.heads import Head
from engine.process.background import SharedTasks, background
from engine.process.logs import Logger
from engine.process.pace import EXPECTED_SECONDS_MAX, WAITED_SECONDS_MAX, QueuePace
from engine.process.telemetry import (
    BARRIER_SECONDS,
    FORKED,
    LIVE_BYTES,
    LIVE_TOURNAMENTS,
    LIVES_LOADED,
    LIVES_LOADING,
    STOPPED,
    observer,
)
from engine.process.time_slices import WOKEN_AT_ONCE, Rounds
from projections.live.tournament import LiveTournament, load
from projections.tables import defects, tables
from projections.tables.dated import took_place_between
from projections.tables.defects import DefectPart, is_defect
from projections.tables.sizes import MEMORY_BYTES

READ_SECONDS_MAX: Final = 14.9
"""Seconds after a read came in until it fails, if it is still waiting for the database. Its answer may then wait
ROOM_SECONDS_MAX for room."""
READERS_MAX: Final = 5
"""Connections of a process that read logs on one node at the same time. The others are for appends and barriers."""
STOPPED_SECONDS: Final = 1.0
"""How long to wait before retrying a tournament that could not be folded."""

RELOADED_SECONDS: Final = 60.0
"""A live that met a defect in judging is dropped, so that the next request loads it from the log. If it was loaded more
recently than this, it stays, because loading a large one takes long."""
NOTED_SECONDS: Final = 5.0
"""A defect in one part of a tournament is noted at most once in this time, however often it occurs."""
NOTED_MAX: Final = 1_000


Expire = Callable[[LiveTournament, datetime], Awaitable[None]]
"""Expires the points of a live that are due by a time. Raises the errors of a command."""
_Waiters = tuple[list[asyncio.Future[None]], dict[asyncio.Future[None], float]]
"""The waiting tasks of one tournament: tasks that continue immediately, and reads with the times at which they came
in."""

_logger: Final = Logger()
_observe_seconds: Final = observer(BARRIER_SECONDS)
_HEAD: Final = attrgetter("head")
_ID: Final = attrgetter("tournament_id")


class LivePool:
    """The live tournaments of a process. `open_live_pool` opens it. `rounds` release all tasks that the pool or a
    docket lets continue. `bytes_max`: the estimated bytes of all lives; pinned ones and the last one used stay even
    beyond it. `expire_points`: what reads wait for where points are due; None: they do not wait. `expiring`: the lives
    in which points expire, each with a boundary before which nothing is due. `of_operator`: it also has tournaments
    that were deleted over HTTP, and logs no stops, which the errors tell the operator."""

    def __init__(
        self,
        database: Database,
        tasks: asyncio.TaskGroup,
        *,
        bytes_max: int,
        expire_points: Expire | None,
        of_operator: bool,
    ) -> None:
        self.rounds = Rounds()
        self.expiring: dict[LiveTournament, datetime] = {}
        self._expire_points = expire_points
        self._of_operator = of_operator
        self._database = database
        self._tasks = tasks
        self._bytes_max = bytes_max
        self._nodes: dict[Database, _Node] = {}
        self._tournaments: OrderedDict[TournamentId, LiveTournament] = OrderedDict()  # least recently used first
        self._sizes: dict[TournamentId, int] = {}
        self._bytes = 0
        self._loading = SharedTasks[TournamentId, None]()
        self._stopped_at: dict[TournamentId, float] = {}
        self._noted_at: dict[tuple[TournamentId, DefectPart], float] = {}
        self._loop = asyncio.get_running_loop()
        self._reads: dict[LiveTournament, _Reads] = {}  # of more than go on at once
        self._late: dict[asyncio.Future[None], float] = {}  # reads that do not go on at once
        self._closed = False
        self._only: _Node | None = None  # only for a plain database, until it is closed
        if not database.is_distributed:
            self._only = self._nodes[database] = _Node(self, database)

    # ── In and out of memory ────────────────────────────────────────────────────────────────────────────

    @asynccontextmanager
    async def pinned(self, tournament_id: TournamentId) -> AsyncIterator[LiveTournament]:
        """The live of an existing tournament, kept in memory for as long as the context lasts.

        Raises TournamentStopped, HistoryReplaced and DatabaseUnavailable.
        """
        live = await self.pin(tournament_id)
        try:
            yield live
        finally:
            self.unpin(live)

    @asynccontextmanager
    async def visited(self, tournament_id: TournamentId) -> AsyncIterator[LiveTournament | None]:
        """As `pinned`, for a tournament outside memory: if it has to go, it goes before those that requests use. None:
        it is in memory."""
        if tournament_id in self._tournaments:
            yield None
            return
        async with self.pinned(tournament_id) as live:
            self._tournaments.move_to_end(tournament_id, last=False)
            yield live

    async def pin(self, tournament_id: TournamentId) -> LiveTournament:
        """As `pinned`, but the caller must `unpin`."""
        while (live := self.pin_known(tournament_id)) is None:
            await self._load_once(tournament_id)
        return live

    def pin_known(self, tournament_id: TournamentId, slug: str | None = None) -> LiveTournament | None:
        """As `pin`, for a tournament in memory, with this slug if one is given; None: there is none."""
        live = self._tournaments.get(tournament_id)
        if live is None or (slug is not None and slug != live.slug):
            return None
        live.pins += 1
        self._tournaments.move_to_end(tournament_id)
        return live

    def in_memory(self, tournament_id: TournamentId) -> LiveTournament | None:
        """The live of a tournament in memory, to look at before a pause; None: there is none."""
        return self._tournaments.get(tournament_id)

    def unpin(self, live: LiveTournament) -> None:
        live.pins -= 1
        if live.pins == 0 and not live.dropped:
            if live.resized and (size_bytes := live.size_bytes()) != self._sizes.get(live.tournament_id):
                self._account(live.tournament_id, size_bytes)
            if self._bytes > self._bytes_max:
                self._evict()

    async def _load_once(self, tournament_id: TournamentId) -> None:
        """Loads once for all waiting tasks; cancelling one of them does not stop the loading. Raises as `pinned`, and
        NotFound if the tournament was deleted over HTTP."""
        if time.monotonic() < self._stopped_at.get(tournament_id, -STOPPED_SECONDS) + STOPPED_SECONDS:
            raise TournamentStopped
        await asyncio.shield(self._loading.begun(tournament_id, lambda: self._load(tournament_id)))

    async def _load(self, tournament_id: TournamentId) -> None:
        LIVES_LOADED.inc()
        try:
            with LIVES_LOADING.track_inprogress():
                async with self._reading(tournament_id) as connection:
                    if not self._of_operator and await registry.withdrawn_among(connection, [tournament_id]):
                        raise NotFound(NO_TOURNAMENT)
                    live = await load(connection, tournament_id, self._look_at_time_of)
                    # A process that could not read the log may have noted a stop.
                    await tables.resume(connection, tournament_id, live.head)
        except LogForked as fork:
            self._alarm_fork(fork)
            raise HistoryReplaced from fork
        except LogUnreadable as cause:
            await self._alarm_stop(cause)
            raise TournamentStopped from cause
        except Exception as error:
            if is_defect(error):
                self._stopped_at[tournament_id] = time.monotonic()
                self.alarm_defect(tournament_id, DefectPart.READING, error)
                raise TournamentStopped from error
            raise
        self._stopped_at.pop(tournament_id, None)
        self._tournaments[tournament_id] = live
        if live.expires:
            self._look_at_time_of(live)
        self._account(tournament_id, live.size_bytes())

    @asynccontextmanager
    async def _reading(self, tournament_id: TournamentId) -> AsyncIterator[Connection]:
        """A connection for reading the log of a tournament. At most READERS_MAX are out at a time for one node. Raises
        DatabaseUnavailable."""
        node = await self._node_of(tournament_id)
        with unavailable():
            async with asyncio.timeout(ACQUIRE_SECONDS_MAX):
                await node.readers.acquire()
        try:
            async with node.database.connection() as connection:
                yield connection
        finally:
            node.readers.release()

    async def _node_of(self, tournament_id: TournamentId) -> "_Node":
        database = await self._database.by_node(tournament_id)
        if database not in self._nodes:
            self._nodes[database] = _Node(self, database)
        return self._nodes[database]

    def _account(self, tournament_id: TournamentId, size_bytes: int) -> None:
        self._bytes += size_bytes - self._sizes.get(tournament_id, 0)
        self._sizes[tournament_id] = size_bytes

    def show_size(self) -> None:
        """Sets the gauges. Call it rarely: it measures a live."""
        LIVE_BYTES.set(self._bytes)
        LIVE_TOURNAMENTS.set(len(self._tournaments))

    def _evict(self) -> None:
        """Drops unpinned tournaments, least recently used first, until the others fit. The last one used stays even if
        it does not fit; otherwise each request would load it again."""
        excess_bytes = self._bytes - self._bytes_max
        leaving = []
        for live in islice(self._tournaments.values(), len(self._tournaments) - 1):
            if excess_bytes <= 0:
                break
            if live.pins == 0:
                leaving.append(live)
                excess_bytes -= self._sizes[live.tournament_id]
        for live in leaving:
            self._forget(live)

    def _forget(self, live: LiveTournament) -> None:
        if self._tournaments.get(live.tournament_id) is live:
            del self._tournaments[live.tournament_id]
            self.expiring.pop(live, None)
            self._account(live.tournament_id, 0)
            del self._sizes[live.tournament_id]

    # ── The read barrier ────────────────────────────────────────────────────────────────────────────────

    def make_current(
        self, live: LiveTournament, node: "_Node | None" = None, *, read_at: float | None = None
    ) -> Awaitable[None]:
        """Returns an awaitable that is done when `live` shows everything that any process acknowledged before the call.
        `read_at`: for a client's read, which queues with all reads of the tournament: when it came in, by the monotonic
        clock.

        Raises TournamentStopped, HistoryReplaced, DatabaseUnavailable and ShuttingDown; for a read also QueueFull, if
        it would wait too long.
        """
        if self._reads and read_at is not None and live in self._reads:
            self._reads[live].refuse_late()
        if node is None:
            node = self._only
            if node is None:
                return self._make_current_by_node(live, read_at)
        current: asyncio.Future[None] = self._loop.create_future()
        if live in node.waiting:
            at_once, reads = node.waiting[live]
            if read_at is None:
                at_once.append(current)
            else:
                reads[current] = read_at
        else:
            node.waiting[live] = ([current], {}) if read_at is None else ([], {current: read_at})
            if not node.resting.done():
                node.resting.set_result(None)
        return current

    async def _make_current_by_node(self, live: LiveTournament, read_at: float | None) -> None:
        if not self._closed:
            node = await self._node_of(live.tournament_id)
        if self._closed:
            raise ShuttingDown
        await self.make_current(live, node, read_at=read_at)

    def time_out(self, now: float) -> None:
        """Fails the reads that have waited too long by `now`, whatever they wait for. Call it often: a deadline of its
        own for every read would take longer than the read."""
        for node in self._nodes.values():
            for _, reads in chain(node.asked.values(), node.waiting.values()):
                self._late.update(reads)
        self._late = {read: read_at for read, read_at in self._late.items() if not read.done()}
        for read, read_at in self._late.items():
            if now >= read_at + READ_SECONDS_MAX:
                read.set_exception(DatabaseUnavailable())

    def close(self) -> None:
        """Stops barriers; all waiting tasks fail."""
        self._closed = True
        self._only = None
        for node in self._nodes.values():
            node.barriers.cancel()
        for reads in self._reads.values():
            reads.fail(ShuttingDown())

    def _look_at_time_of(self, live: LiveTournament) -> None:
        if not live.dropped:
            self.expiring[live] = FIRST_TIME

    def due(self, now: datetime) -> list[LiveTournament]:
        """The lives in which points may be due by `now`."""
        found = []
        for live, boundary in self.expiring.items():
            if boundary <= now:
                self.expiring[live] = live.boundaries[1]
                if self.expiring[live] <= now:
                    found.append(live)
        return found

    async def _reach_expiring(
        self, live: LiveTournament, stood_at: Head, head: Head, now: datetime, waiters: _Waiters
    ) -> None:
        """As `_reach`, for a live in which points expire: then expires the points that are due by `now`."""
        at_once, reads = waiters
        current: asyncio.Future[None] = self._loop.create_future()
        self._late.update(reads)
        await self._reach(live, stood_at, head, ([*at_once, current], {}))
        try:
            await current
            if reads and self._expire_points is not None and live.boundaries[1] <= now:
                await self._expire_points(live, now)
        except Exception as error:  # noqa: BLE001 - they wait for this task
            _fail(([], reads), error)
        else:
            self._release(live, ([], reads))

    async def _reach(self, live: LiveTournament, stood_at: Head, head: Head | None, waiters: _Waiters) -> None:
        self._late.update(waiters[1])
        expired = live.expires
        try:
            with self._watched(live):
                if head is None:
                    await self.refuse_deleted(live)
                if head is None or not _continues(stood_at, head):
                    raise LogForked(live.tournament_id, stood_at.sequence)
                await self.catch_up(live, head)
        except Exception as error:  # noqa: BLE001 - they wait for this task
            _fail(waiters, error)
        else:
            if live.expires and not expired:  # no caller asked for the time
                at_once, reads = waiters
                waiters = at_once, {}
                for read, read_at in reads.items():
                    self._tasks.create_task(self._read_again(live, read, read_at))
            self._release(live, waiters)

    async def _read_again(self, live: LiveTournament, read: "asyncio.Future[None]", read_at: float) -> None:
        try:
            await self.make_current(live, read_at=read_at)
        except Exception as error:  # noqa: BLE001 - it waits for this task
            _fail(([read], {}), error)
        else:
            _wake([read])

    def _release(self, live: LiveTournament, waiters: _Waiters) -> None:
        at_once, reads = waiters
        if at_once:
            _wake(at_once)
        if self._reads and live in self._reads:
            self._reads[live].put(reads)
        elif len(reads) <= WOKEN_AT_ONCE:
            _wake(reads)
        else:
            self._reads[live] = queued = _Reads()
            queued.put(reads)
            self._tasks.create_task(self._wake_in_rounds(live, queued))

    async def _wake_in_rounds(self, live: LiveTournament, reads: "_Reads") -> None:
        while reads.some_wait:
            reads.wake(await self.rounds.leave())
        del self._reads[live]

    async def refuse_deleted(self, live: LiveTournament) -> None:
        """Drops the live and raises NotFound if its tournament was deleted. The cached slug is dropped with the
        epoch. Raises DatabaseUnavailable."""
        async with self._reading(live.tournament_id) as connection:
            if not await registry.is_deleted(connection, live.tournament_id):
                return
        self.drop(live)
        self._database.epoch.end()
        raise NotFound(NO_TOURNAMENT)

    async def catch_up(self, live: LiveTournament, to: Head, over: Connection | None = None) -> None:
        """Folds events of other processes until `live` stands at `to`, a head of the log, or beyond. If it is beyond
        already, it may have continued in another history; this is detected, too.

        It takes a connection only once it holds the lock, because tasks that wait for one slow tournament would
        otherwise take all connections. A caller that already has one passes it as `over`; driver errors on it are
        raised unchanged. Raises TournamentStopped, HistoryReplaced and DatabaseUnavailable.
        """
        with self._watched(live):
            async with live.catching_up:
                if live.head == to:
                    return
                if over is not None:
                    await live.catch_up(over, to.sequence)
                    return
                async with self._reading(live.tournament_id) as connection:
                    await live.catch_up_by_tables(connection, to.sequence)
                    await live.catch_up(connection, to.sequence)

    async def points_of(self, live: LiveTournament, competition_id: CompetitionId) -> AsyncIterator[Recorded]:
        """As `reading.points_of`, up to the live's head at the call. Raises the errors of `catch_up`."""
        upto = live.head.sequence
        with self._watched(live):
            async with self._reading(live.tournament_id) as connection:
                async for recorded in reading.points_of(connection, live.tournament_id, competition_id, upto):
                    yield recorded

    async def named_event(self, live: LiveTournament, sequence: Sequence) -> NamedEvent:
        """The event `sequence`, as a command names it; an `Ignored` if it is beyond the live's head. Raises the errors
        of `catch_up`."""
        if sequence > live.head.sequence:
            return NamedEvent(Ignored(), OPERATOR, {})
        with self._watched(live):
            async with self._reading(live.tournament_id) as connection:
                named = await reading.event_at(connection, live.tournament_id, sequence)
                added = root(sequence, named.event) if isinstance(named.event, Points) else sequence
                request = await reading.points_of_request(connection, live.tournament_id, added)
                recorded_at = (await reading.event_at(connection, live.tournament_id, added)).recorded_at
        return NamedEvent(named.event, named.actor, request, recorded_at)

    async def end_of_request(self, live: LiveTournament, sequence: Sequence) -> Sequence:
        """The last event of the request to which the event `sequence` belongs. Raises the errors of `catch_up`."""
        with self._watched(live):
            async with self._reading(live.tournament_id) as connection:
                return await reading.end_of_request(connection, live.tournament_id, sequence)

    async def took_place_between(
        self, live: LiveTournament, after: datetime, until: datetime
    ) -> AsyncIterator[list[Recorded]]:
        """As `took_place_between` of `projections/tables/dated.py`, up to the live's head at the call. Raises the
        errors of `catch_up`."""
        with self._watched(live):
            connected = partial(self._reading, live.tournament_id)
            of = live.tournament_id, live.board
            async for events in took_place_between(connected, *of, after, until, live.head.sequence):
                yield events

    async def all_scored(
        self, live: LiveTournament, only: Items[CompetitionId] | None = None
    ) -> AsyncIterator[list[Recorded]]:
        """As `reading.all_scored`, up to the live's head at the call. Raises the errors of `catch_up`."""
        connected, upto = partial(self._reading, live.tournament_id), live.head.sequence
        with self._watched(live):
            async for events in reading.all_scored(connected, live.tournament_id, upto, only):
                yield events

    async def chunks(self, live: LiveTournament, after: Sequence) -> AsyncGenerator[list[Recorded], None]:
        """Yields the events after `after`, chunk by chunk, up to the live's head at the call. Raises the errors of
        `catch_up`."""
        connected, upto = partial(self._reading, live.tournament_id), live.head.sequence
        with self._watched(live):
            async for events in reading.chunks(connected, live.tournament_id, after, upto):
                yield events

    def fold_appended(self, live: LiveTournament, block: Block, appended: Appended) -> bool:
        """As `LiveTournament.fold_appended`; a live whose tournament the block deletes is dropped. Raises
        TournamentStopped and HistoryReplaced."""
        try:  # `_watched` would take longer than everything else, and every block passes here
            return live.fold_appended(block, appended)
        except Exception as fault:
            if live.deleted:
                self.drop(live)
                return True
            if (error := self._alarmed(live, fault)) is None:
                raise
            raise error from fault

    def fold_unseen(self, live: LiveTournament, block: Block, unseen: Unseen) -> bool:
        """As `LiveTournament.fold_unseen`. Raises TournamentStopped and HistoryReplaced."""
        with self._watched(live):
            return live.fold_unseen(block, unseen)

    # ── Alarms ──────────────────────────────────────────────────────────────────────────────────────────

    @contextmanager
    def _watched(self, live: LiveTournament) -> Iterator[None]:
        """Drops `live` if its log turns out to be unreadable or replaced, or if reading it meets a defect. Then raises
        TournamentStopped or HistoryReplaced."""
        try:
            yield
        except Exception as fault:
            if (error := self._alarmed(live, fault)) is None:
                raise
            raise error from fault

    def _alarmed(self, live: LiveTournament, fault: Exception) -> TallybookError | None:
        """Drops a live because of `fault`, raises the alarm, and returns the error for the caller to raise. None: the
        fault is not the tournament's, or the tournament was deleted."""
        if live.deleted:
            self.drop(live)
            return None
        if isinstance(fault, LogForked):
            self.drop(live)
            self._alarm_fork(fault)
            return HistoryReplaced()
        if isinstance(fault, LogUnreadable):
            self.drop(live)
            self._tasks.create_task(self._alarm_stop(fault))
            return TournamentStopped()
        if is_defect(fault):
            self.drop(live)
            self._stopped_at[live.tournament_id] = time.monotonic()
            self.alarm_defect(live.tournament_id, DefectPart.READING, fault)
            return TournamentStopped()
        return None

    def defective(self, live: LiveTournament, error: Exception) -> Exception:
        """Returns the error to fail a command with instead of an `error` that occurred while judging it. For a defect,
        raises the alarm, and drops the live, which may be wrong, unless it was only just loaded. Any other error is
        returned unchanged."""
        if not is_defect(error):
            return error
        if time.monotonic() > live.loaded_at + RELOADED_SECONDS:
            self.drop(live)
        self.alarm_defect(live.tournament_id, DefectPart.JUDGING, error)
        return TournamentDefect()

    def alarm_defect(self, tournament_id: TournamentId, part: DefectPart, error: Exception) -> None:
        defects.alarm(tournament_id, part, error)
        now, key = time.monotonic(), (tournament_id, part)
        if self._closed or now < self._noted_at.get(key, -NOTED_SECONDS) + NOTED_SECONDS:
            return
        if len(self._noted_at) >= NOTED_MAX:
            self._noted_at.clear()
        self._noted_at[key] = now
        self._tasks.create_task(defects.note(self._database, tournament_id, part, error))

    def drop(self, live: LiveTournament) -> None:
        """Takes an invalid live out of use. Tasks that still have it see `dropped`."""
        live.dropped = True
        self._forget(live)

    def _alarm_fork(self, fork: LogForked) -> None:
        self._database.epoch.end()
        FORKED.inc()
        _logger.error("log_forked", tournament_id=fork.tournament_id, sequence=fork.sequence)

    async def _alarm_stop(self, cause: LogUnreadable) -> None:
        STOPPED.inc()
        self._stopped_at[cause.tournament_id] = time.monotonic()
        if not self._of_operator:
            _logger.error(
                "tournament_stopped",
                tournament_id=cause.tournament_id,
                sequence=cause.sequence,
                reason=cause.reason,
                exc_info=cause.__cause__,
            )
        try:
            async with self._database.connection() as connection:
                await tables.stop(connection, cause)
        except (DatabaseUnavailable, PostgresError) as error:
            _logger.warning("stop_not_noted", tournament_id=cause.tournament_id, error=repr(error))


@asynccontextmanager
async def in_time(read_at: float) -> AsyncIterator[None]:
    """Raises DatabaseUnavailable if what is awaited within lasts longer than a read may that came in at `read_at`, by
    the monotonic clock."""
    with unavailable():
        async with asyncio.timeout(read_at + READ_SECONDS_MAX - time.monotonic()):
            yield


@asynccontextmanager
async def open_live_pool(
    database: Database,
    *,
    bytes_max: int = MEMORY_BYTES,
    expire_points: Expire | None = None,
    of_operator: bool = True,
) -> AsyncIterator[LivePool]:
    """The live tournaments of this process, with their barriers for as long as the context lasts."""
    async with background() as tasks:
        pool = LivePool(database, tasks, bytes_max=bytes_max, expire_points=expire_points, of_operator=of_operator)
        yield pool
        pool.close()


class _Node:
    """Reading from one node of the database (a plain database is one node): `readers` bounds concurrent reads of logs.
    `waiting`: the tasks that wait for the next barrier; `asked`: those that the last one was for. `resting`: not done
    while no barrier is under way."""

    def __init__(self, pool: LivePool, database: Database) -> None:
        self.database = database
        self.readers = asyncio.Semaphore(READERS_MAX)
        self.waiting: dict[LiveTournament, _Waiters] = {}
        self.asked: dict[LiveTournament, _Waiters] = {}
        self.resting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._pool = pool
        self._heads = heads.after_moves if database.is_distributed else heads.current
        self._expiring = pool.expiring
        self._kept = database.kept()
        self.barriers = pool._tasks.create_task(self._run(), name=NODE_TASK)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while True:
                if not self.waiting:
                    self.resting = loop.create_future()
                    await self.resting
                await self._barrier()
        finally:
            self._pool.close()
            for waiters in (*self.asked.values(), *self.waiting.values()):
                _fail(waiters, ShuttingDown())
            await self._kept.close()

    async def _barrier(self) -> None:
        waiting = self.asked = self.waiting
        self.waiting = {}
        began_at = perf_counter()
        stood_at = list(map(_HEAD, waiting))
        try:
            async with self._kept as connection:
                found = await self._heads(connection, list(map(_ID, waiting)))
                now = await heads.now(connection) if self._expiring else None
        except Exception as trouble:  # noqa: BLE001 - they wait for it, and others for the next one
            error: Exception = trouble
            if isinstance(trouble, DATABASE_TROUBLE):
                error = DatabaseUnavailable()
                error.__cause__ = trouble
            else:
                _logger.error("barrier_failed", error=repr(trouble))
            for waiters in waiting.values():
                _fail(waiters, error)
            return
        finally:
            _observe_seconds(perf_counter() - began_at)
        for (live, waiters), before in zip(waiting.items(), stood_at, strict=True):
            head = found.get(live.tournament_id)
            if now is not None and live in self._expiring and head is not None:
                self._pool._tasks.create_task(self._pool._reach_expiring(live, before, head, now, waiters))
            elif head == before or (head is not None and head == live.head):
                self._pool._release(live, waiters)
            else:
                self._pool._tasks.create_task(self._pool._reach(live, before, head, waiters))


def _continues(stood_at: Head, head: Head) -> bool:
    """Whether a log with this head can be a continuation of the one whose head was `stood_at`."""
    if head.sequence == stood_at.sequence:
        return head.digest == stood_at.digest
    return head.sequence > stood_at.sequence


class _Reads:
    """Reads of one tournament that the barrier has released and that queue to continue, in order of arrival."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[asyncio.Future[None], float]] = deque()
        self._pace = QueuePace()
        self._woken_at = time.monotonic()

    @property
    def some_wait(self) -> bool:
        return bool(self._waiting)

    def put(self, waiters: Iterable[asyncio.Future[None]]) -> None:
        now = time.monotonic()
        self._waiting.extend([(waiter, now) for waiter in waiters])

    def wake(self, count: int) -> None:
        """Lets the next `count` reads continue. Those that have waited too long are refused, and do not count."""
        now = time.monotonic()
        woken = 0
        while self._waiting and woken < count:
            waiter, since = self._waiting.popleft()
            if waiter.done():
                continue
            if now - since > WAITED_SECONDS_MAX:
                waiter.set_exception(QueueFull(now - since))
            else:
                waiter.set_result(None)
                woken += 1
        if woken:
            self._pace.took(now - self._woken_at, woken)
            self._woken_at = now

    def refuse_late(self) -> None:
        """Raises QueueFull if another read would wait too long."""
        if seconds := self.late_seconds():
            raise QueueFull(seconds, self.late_seconds)

    def late_seconds(self) -> float:
        """How long another read would wait, in seconds, if that is too long; otherwise 0."""
        expected = len(self._waiting) * self._pace.seconds_each
        return expected if expected > EXPECTED_SECONDS_MAX else 0.0

    def fail(self, error: Exception) -> None:
        for waiter, _ in self._waiting:
            if not waiter.done():
                waiter.set_exception(error)
        self._waiting.clear()


def _wake(waiters: Iterable[asyncio.Future[None]]) -> None:
    for waiter in waiters:
        if not waiter.done():
            waiter.set_result(None)


def _fail(waiters: _Waiters, error: Exception) -> None:
    for waiter in chain(*waiters):
        if not waiter.done():
            waiter.set_exception(error)
