"""Group commit: blocks of many tournaments go to disk in one transaction.

    sources that have something ──► one block each ──► one commit ──► each source gets its outcome
                     ▲                                                     │
                     └──── meanwhile the next requests gather ◄────────────┘

While one commit is on its way, the next batch gathers. So batches grow with the load, and a single request does not
wait: there are no timers. If many blocks wait, only some of them are sent (`batch_size`). A tournament has at most one
block under way. If another process holds the lock of a tournament, or its block cannot be sent together with others,
the block is sent alone on a lane of its own and delays no other.

Each node of a distributed database has its own queue, lanes and connections, and its commits are sent directly to it.
While a node refuses connections, the blocks of its tournaments are sent alone, through the node at the address of the
process. So a lost node does not delay the others.

An outcome is never guessed. If the connection was lost, the block is sent again under the same append_id until the
database reports the outcome. Until then no other block of that tournament is sent.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from collections.abc import Sequence as Items
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from functools import partial
from itertools import islice
from operator import attrgetter
from typing import Final, Protocol

import asyncpg
from asyncpg import Connection

from engine.database.pool import DATABASE_TROUBLE, NODE_TASK, Database, KeptConnection, is_lost, is_of_lost_node
from engine.domain.errors import DatabaseUnavailable, OutcomeUnknown, Rejected, Unavailable
from engine.domain.terms import TournamentId
from engine.log import appending, clock
from engine.log.appending import Appended, Block, NotAppended, OvertakenBy, Passed, UnconfirmedCommit
from engine.process import failpoints, tracing
from engine.process.failpoints import Point
from engine.process.logs import Logger
from engine.process.telemetry import APPEND_BLOCKS, APPEND_REQUESTS, APPEND_SECONDS, APPENDS_RESENT, observer

BATCH_BLOCKS_MAX: Final = 256
"""Tournaments of one commit."""
BATCH_MIN: Final = 8
"""A batch below this size is not divided."""
FLOOD: Final = 128
"""If this many blocks wait, all are sent, and after a commit of this many the next one starts immediately: rounds of
the event loop are then long, and requests that come meanwhile might find no room."""
LANES_MAX: Final = 4
"""Blocks that are sent alone to one node at the same time."""
APPEND_ATTEMPTS_MAX: Final = 10
"""Attempts with a block that is certainly not applied yet. Each waits up to the session's lock_timeout."""
UNSEEN_BYTES_MAX: Final = 256 * 1024
"""Bytes of other processes' blocks in the answer to one commit, in equal shares for its blocks. Decoding and folding
them takes some milliseconds. If there are more, the log is read."""
_PAUSE_SECONDS: Final = 0.1

_logger: Final = Logger()
_observe_seconds: Final = observer(APPEND_SECONDS)
_observe_blocks: Final = observer(APPEND_BLOCKS)
_observe_requests: Final = observer(APPEND_REQUESTS)
Outcome = Appended | OvertakenBy | Passed | NotAppended | Unavailable | OutcomeUnknown


class Source(Protocol):
    """The requests that wait for one tournament, as the appender sees them.

    A source calls `Appender.ready` when it has something and nothing is under way. The appender then asks for one
    block, and reports its outcome before it asks again.
    """

    @property
    def tournament_id(self) -> TournamentId: ...

    def next_block(self) -> Block | None:
        """Judges the waiting requests. None: there is nothing to append after all."""

    async def judged_under_lock(self, connection: Connection) -> Block | None:
        """Judges its last block again, which is exact and was overtaken. It reads the log over this connection, whose
        transaction holds the lock. None: the block can no longer be appended."""

    def settled(self, block: Block, outcome: Outcome) -> None:
        """Receives the outcome, which is certain unless it is OutcomeUnknown. Unavailable means: certainly not
        applied."""


def batch_size(waiting: int, sent_last: int) -> int:
    """The number of waiting sources to send next: half of the sum of those waiting and those sent last, whose clients
    will soon send again.

    If all were sent, most clients would fall into step and stay there. There would be little to read, judge and answer
    during a commit, and nothing to commit during the answers.
    """
    return waiting if waiting >= FLOOD else max(BATCH_MIN, (waiting + sent_last + 1) // 2)


class _Queue:
    """`ready`: sources that have something to append, in order of arrival."""

    def __init__(self) -> None:
        self.ready: dict[Source, None] = {}
        self._waiters: list[asyncio.Future[None]] = []
        self._loop = asyncio.get_running_loop()
        self._sent_last = 0  # sources

    def add(self, source: Source) -> None:
        self.ready[source] = None
        if self._waiters:
            for waiter in self._waiters:
                if not waiter.done():
                    waiter.set_result(None)
            self._waiters.clear()

    def next_one(self) -> Awaitable[None]:
        """Returns an awaitable that is done when a source comes."""
        waiter = self._loop.create_future()
        self._waiters.append(waiter)
        return waiter

    def some(self) -> list[Source]:
        """A batch of the sources, in ascending order of tournaments."""
        sources = self.everything(min(BATCH_BLOCKS_MAX, batch_size(len(self.ready), self._sent_last)))
        self._sent_last = len(sources)
        if len(sources) > 1:
            sources.sort(key=_BY_TOURNAMENT)
        return sources

    def everything(self, most: int | None = None) -> list[Source]:
        """The sources in order of arrival, no more than `most`."""
        sources = list(islice(self.ready, most))
        for source in sources:
            del self.ready[source]
        return sources


_BY_TOURNAMENT: Final = attrgetter("tournament_id")


class Appender:
    """Sends blocks. `run` works until it is cancelled. Let the sources run dry before cancelling it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._queue = _Queue()  # of a distributed database, those whose node is to be found

    def ready(self, source: Source) -> None:
        """`source` has something to append and nothing under way."""
        self._queue.add(source)

    async def run(self) -> None:
        """Appends what sources have, until it is cancelled."""
        async with asyncio.TaskGroup() as tasks:
            if self._database.is_distributed:
                await self._sort_by_node(tasks)
            else:
                await _Sending(self._database, self._queue, tasks).run()

    async def _sort_by_node(self, tasks: asyncio.TaskGroup) -> None:
        queues: dict[Database, _Queue] = {}
        while True:
            while not self._queue.ready:
                await self._queue.next_one()
            sources = self._queue.everything()
            nodes = await self._database.by_nodes([source.tournament_id for source in sources])
            for source in sources:
                node = nodes[source.tournament_id]
                if node not in queues:
                    queues[node] = _Queue()
                    tasks.create_task(_Sending(node, queues[node], tasks).run(), name=NODE_TASK)
                queues[node].add(source)


class _Sending:
    """Sends the blocks in the queue of one node (a plain database is one node). `run` works until it is cancelled."""

    def __init__(self, database: Database, queue: _Queue, tasks: asyncio.TaskGroup) -> None:
        self._database = database
        self._queue = queue
        self._tasks = tasks
        self._lanes = asyncio.Semaphore(LANES_MAX)

    async def run(self) -> None:
        queue, database = self._queue, self._database
        kept = database.straight.kept()
        try:
            while True:
                while not queue.ready:
                    await queue.next_one()
                batch, requests = [], 0
                for source in queue.some():
                    block = source.next_block()
                    if block is not None:
                        batch.append((source, block))
                        requests += len(block.requests)
                if not batch:
                    continue
                if database.goes_around:
                    alone = [(source, block, False) for source, block in batch]
                else:
                    alone = await self._append_together(batch, requests, kept)
                for source, block, maybe_applied in alone:
                    self._tasks.create_task(self._append_alone(source, block, maybe_applied))
                if queue.ready and requests < FLOOD:
                    await asyncio.sleep(0)  # answers leave first; requests that came meanwhile go into the next batch
        finally:
            await kept.close()

    async def _append_together(
        self, batch: list[tuple[Source, Block]], requests: int, kept: KeptConnection
    ) -> list[tuple[Source, Block, bool]]:
        """Appends in one commit, without waiting for a lock. Returns the blocks that must be sent alone, and whether
        each may have been applied. `requests`: their total number."""
        blocks = [block for _, block in batch]
        began_at = time.perf_counter()
        try:
            share = UNSEEN_BYTES_MAX // len(blocks)
            send = partial(appending.append, blocks=blocks, wait=False, unseen_bytes=share, warnings=kept.warnings)
            if tracing.spans is None:
                outcomes = await self._send(kept, blocks, send)
            else:
                with _span(blocks):
                    outcomes = await self._send(kept, blocks, send)
        except _SendingFailed as failure:
            _logger.warning("append_failed", blocks=len(blocks), error=repr(failure.error))
            return [(source, block, failure.maybe_applied) for source, block in batch]
        alone = []
        for (source, block), outcome in zip(batch, outcomes, strict=True):
            if outcome is NotAppended.BUSY or (outcome is NotAppended.OVERTAKEN and block.exact):
                alone.append((source, block, False))
            else:
                clock.note(block.tournament_id, outcome)
                source.settled(block, outcome)
        _observe_seconds(time.perf_counter() - began_at)
        _observe_blocks(len(blocks))
        _observe_requests(requests)
        return alone

    async def _append_alone(self, source: Source, block: Block, maybe_applied: bool) -> None:
        async with self._lanes:
            block, outcome = await self._settle(source, block, maybe_applied)
        clock.note(block.tournament_id, outcome)
        source.settled(block, outcome)

    async def _settle(self, source: Source, block: Block, maybe_applied: bool) -> tuple[Block, Outcome]:
        """Sends `block` until its outcome is certain; if it may have been applied, for as long as that takes.

        It cannot be applied twice, not even by a forgotten backend that gets the lock late: the second sending under
        one append_id is answered with what the first did, and a block that was overtaken stays overtaken. An overtaken
        exact block is replaced by another under the lock. Returns the block that was settled, and its outcome.
        """

        async def judge_again(connection: Connection) -> Block | None:
            nonlocal block
            again = await source.judged_under_lock(connection)
            block = again or block
            return again

        async def send(connection: Connection) -> Items[Outcome]:
            if block.exact:
                return [await appending.append_exact(connection, block, judge_again, again=maybe_applied)]
            return await appending.append(
                connection, [block], wait=True, again=maybe_applied, unseen_bytes=UNSEEN_BYTES_MAX
            )

        attempts = 0
        while True:
            attempts += 1
            try:
                with _span([block]):
                    (outcome,) = await self._send(self._database.raw_connection(), [block], send)
            except _SendingFailed as failure:
                maybe_applied = maybe_applied or failure.maybe_applied
                facts = {"tournament_id": block.tournament_id, "attempts": attempts, "error": repr(failure.error)}
                is_last = attempts >= APPEND_ATTEMPTS_MAX
                goes_on = isinstance(failure.error, DATABASE_TROUBLE)
                if failure.blames_block or not goes_on:
                    # If the block is to blame, every sending that reached the database was refused like this one. If
                    # something else is (a revoked right, an existing row), this says nothing
                    # about a sending that was lost.
                    _logger.error("append_rejected", **facts)
                    rejected = failure.blames_block or not maybe_applied
                    refused: Unavailable | OutcomeUnknown = Rejected() if rejected else OutcomeUnknown()
                    refused.__cause__ = failure.error
                    return block, refused
                _logger.warning("append_resent", **facts)
                APPENDS_RESENT.inc()
                if is_last and not maybe_applied:
                    return block, DatabaseUnavailable()
                await asyncio.sleep(_PAUSE_SECONDS)
            else:
                return block, outcome

    async def _send(
        self,
        over: AbstractAsyncContextManager[Connection],
        blocks: list[Block],
        send: Callable[[Connection], Awaitable[Items[Outcome]]],
    ) -> Items[Outcome]:
        connected = sent = False
        try:
            async with over as connection:
                connected = sent = True
                failpoints.reached(Point.APPEND)
                try:
                    outcomes = await send(connection)
                    failpoints.reached(Point.APPEND_COMMITTED)
                    return outcomes
                except asyncpg.PostgresError as error:
                    # A server that reports an error has rolled back, unless it hung up with it.
                    sent = isinstance(error, _HANGING_UP) or is_lost(connection)
                    sent = sent or is_of_lost_node(error)
                    sent = sent or (self._database.is_distributed and isinstance(error, _OF_A_NODE))
                    raise
                except ValueError:
                    sent = False  # it could not be put on the wire
                    raise
        except UnconfirmedCommit as error:
            _logger.error("commit_unconfirmed", warning=str(error))
            return [OutcomeUnknown() for _ in blocks]
        except Exception as error:  # a defect in one block must not end the appender for all
            blames_block = connected and isinstance(error, _OF_A_BLOCK)
            raise _SendingFailed(error, maybe_applied=sent, blames_block=blames_block) from error


def _span(blocks: Items[Block]) -> AbstractContextManager[object]:
    """The span of sending these blocks together."""
    if tracing.spans is None:
        return _UNTRACED
    requests = sum([len(block.requests) for block in blocks])
    facts = {"tallybook.blocks": len(blocks), "tallybook.requests": requests}
    return tracing.spans.group_commit([span for block in blocks for span in block.spans], facts)


_UNTRACED: Final = nullcontext()


_HANGING_UP: Final = (
    asyncpg.PostgresConnectionError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
)
# A node may have committed, and the coordinator lost it before it said so, or was told to break off.
_OF_A_NODE: Final = (asyncpg.PostgresConnectionError, asyncpg.OperatorInterventionError)


# Errors that the block itself causes, and would cause again.
_OF_A_BLOCK: Final = (ValueError, asyncpg.DataError, asyncpg.CheckViolationError, asyncpg.NotNullViolationError)


class _SendingFailed(Exception):
    """`maybe_applied`: the connection was lost, and what was sent over it may have been committed. `blames_block`: what
    was sent can never be recorded, however often it is sent."""

    def __init__(self, error: Exception, *, maybe_applied: bool, blames_block: bool) -> None:
        super().__init__(error)
        self.error = error
        self.maybe_applied = maybe_applied
        self.blames_block = blames_block
