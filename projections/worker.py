"""The worker: claims a tournament whose tables lack events, folds some, saves rows and checkpoint together.

Any number of workers run at once, in any number of processes. Candidates are found without locks; then the one
checkpoint row is locked, and whoever finds it locked goes on to the next candidate. The head is never locked: that
would hold up those who append. A batch is bounded, so that one busy tournament does not keep the others waiting,
and its rows commit together with the checkpoint: after a crash, or when a paused worker wakes up after another took
its place, there is nothing that could be half done or done twice.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import structlog
from asyncpg import Connection, DataError, IntegrityConstraintViolationError, LockNotAvailableError

from engine import log
from engine.database import DATABASE_TROUBLE, Database, is_lost
from engine.errors import DatabaseUnavailable, LogForked, LogUnreadable
from engine.log import Head
from engine.telemetry import FOLD_SECONDS, FOLDED_EVENTS, FORKED, STOPPED
from engine.terms import TournamentId
from projections import tables
from projections.board import FOLD_VERSION, Board, Revisions, fold
from projections.tables import Touched
from projections.wakeup import CHANNEL, hinted

BATCH_BLOCKS_MAX: Final = 2_000
POLL_SECONDS: Final = 1.0
"""So late at most tables follow when every hint is lost and there is nothing else to do."""
CANDIDATES_MAX: Final = 500
BOARDS_MAX: Final = 2_000
"""Boards that a worker keeps, so as not to read them from the tables again."""
STOPPED_RETRY_SECONDS: Final = 10.0

_logger = structlog.get_logger()


class Worker:
    """One worker; `run` works until it is cancelled, `catch_up` until there is nothing to do."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._boards: OrderedDict[TournamentId, tuple[Head, Board]] = OrderedDict()
        self._hinted: set[TournamentId] = set()
        self._something = asyncio.Event()
        self._polled_at = 0.0

    async def run(self) -> None:
        while True:
            try:
                async with self._listening() as listener:
                    await self._work(listener)
            except (DatabaseUnavailable, *DATABASE_TROUBLE) as error:
                _logger.warning("worker_failed", error=repr(error))
                await asyncio.sleep(POLL_SECONDS)

    async def catch_up(self) -> int:
        """Folds until no tournament is behind, but for the stopped ones; returns how many events it folded."""
        folded = 0
        while True:
            candidates = await self._candidates()
            events = sum([await self._fold_one(tournament_id) for tournament_id in candidates])
            if not events:
                return folded
            folded += events

    async def _work(self, listener: Connection) -> None:
        """Rounds over what hints name and, once in POLL_SECONDS, over all that is behind; until hints are lost."""
        self._polled_at = 0.0
        while not is_lost(listener):
            if time.monotonic() >= self._polled_at + POLL_SECONDS:
                self._polled_at = time.monotonic()
                self._hinted.update(await self._candidates())
            candidates, self._hinted = self._hinted, set()
            for tournament_id in candidates:
                if await self._fold_safely(tournament_id):
                    self._hinted.add(tournament_id)  # perhaps not all of it was within the batch
            if not self._hinted:
                await self._wait(self._polled_at + POLL_SECONDS - time.monotonic())

    async def _fold_safely(self, tournament_id: TournamentId) -> int:
        """As `_fold_one`. A defect that one tournament meets is written down, and does not hold up the others."""
        try:
            return await self._fold_one(tournament_id)
        except DatabaseUnavailable as error:  # of one tournament, or of all: then the listener is lost as well
            _logger.warning("worker_failed", tournament_id=tournament_id, error=repr(error.__cause__))
            return 0
        except Exception:  # the worker's outer loop: the tables stay where they are, nothing is lost or skipped
            _logger.exception("worker_failed", tournament_id=tournament_id)
            return 0

    async def _wait(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(max(seconds, 0)):
                await self._something.wait()
        except TimeoutError:
            return
        self._something.clear()

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

    async def _fold_one(self, tournament_id: TournamentId) -> int:
        """Folds a batch of one tournament into its tables; returns how many events that were."""
        started_at = time.perf_counter()
        try:
            async with self._database.connection() as connection:
                if tournament_id not in self._boards:
                    await tables.create_checkpoint(connection, tournament_id, log.beginning(tournament_id))
                try:
                    async with connection.transaction():
                        folded, head, board = await self._fold_batch(connection, tournament_id)
                except LockNotAvailableError as error:  # of somebody who looks at its rows; the others must not wait
                    _logger.warning("worker_failed", tournament_id=tournament_id, error=repr(error))
                    return 0
        except LogUnreadable as cause:
            await self._stop(cause)
            return 0
        except LogForked as fork:
            FORKED.inc()
            _logger.error("log_forked", tournament_id=fork.tournament_id, sequence=fork.sequence)
            return 0
        if head is None or board is None:
            return 0
        self._keep(tournament_id, head, board)
        seconds = time.perf_counter() - started_at
        FOLDED_EVENTS.inc(folded)
        FOLD_SECONDS.observe(seconds)
        _logger.info(
            "tables_folded",
            tournament_id=tournament_id,
            events=folded,
            sequence=head.sequence,
            milliseconds=round(seconds * 1000, 1),
        )
        return folded

    async def _fold_batch(
        self, connection: Connection, tournament_id: TournamentId
    ) -> tuple[int, Head | None, Board | None]:
        """Within a transaction: claim, read, fold, save. Without head and board: there was nothing to do."""
        checkpoint = await tables.claim(connection, tournament_id)
        if checkpoint is None or checkpoint.fold_version > FOLD_VERSION:
            return 0, None, None
        anew = checkpoint.fold_version < FOLD_VERSION
        head = log.beginning(tournament_id) if anew else checkpoint.head
        tail = await log.tail(connection, tournament_id, head, blocks_max=BATCH_BLOCKS_MAX)
        if not tail.events:
            return 0, None, None
        if anew:
            await tables.clear(connection, tournament_id)
            board = Board()
        else:
            board = await self._board_at(connection, tournament_id, head)
        touched = Touched()
        for recorded in tail.events:
            try:
                fold(board, Revisions(), recorded)
                tables.touch(touched, board, recorded.event)
            except LookupError as error:
                raise LogUnreadable.dangling(tournament_id, recorded.sequence, error) from error
        try:
            await tables.save(connection, tournament_id, board, touched)
        except (DataError, IntegrityConstraintViolationError) as error:
            reason = f"the tables cannot hold what the events up to it lead to: {error}"
            raise LogUnreadable(tournament_id, tail.head.sequence, reason) from error
        await tables.advance(connection, tournament_id, tail.head)
        await tables.resume(connection, tournament_id, tail.head)
        return len(tail.events), tail.head, board

    async def _board_at(self, connection: Connection, tournament_id: TournamentId, head: Head) -> Board:
        """The board that the tables hold. The kept one is taken out: it is put back when it has been saved."""
        kept = self._boards.pop(tournament_id, None)
        if kept is not None and kept[0] == head:
            return kept[1]
        return await tables.load_board(connection, tournament_id)

    def _keep(self, tournament_id: TournamentId, head: Head, board: Board) -> None:
        self._boards[tournament_id] = head, board
        while len(self._boards) > BOARDS_MAX:
            self._boards.popitem(last=False)

    async def _stop(self, cause: LogUnreadable) -> None:
        STOPPED.inc()
        _logger.error(
            "tournament_stopped", tournament_id=cause.tournament_id, sequence=cause.sequence, reason=cause.reason
        )
        async with self._database.connection() as connection:
            await tables.stop(connection, cause)
