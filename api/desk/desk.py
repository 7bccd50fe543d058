"""The desk: takes commands, has them judged and recorded, and reports their outcome.

    submit ──► docket of its tournament ──► judged when the next block leaves ──► appended ──► folded ──► receipt

HTTP and the command line submit commands to it. `docket.py` shows what happens to a command, `engine/log/appender.py`
the group commit.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from datetime import datetime
from functools import partial
from time import monotonic
from typing import Final

from asyncpg import PostgresError

from api.desk.case import Case, Key, Receipt
from api.desk.conditions import Condition, Refused
from api.desk.docket import Docket, Means
from api.desk.evidence import NEEDS_EVIDENCE, evidence_of, evidence_of_previewed
from api.desk.quotas import QUOTAS_SECONDS, Quotas
from api.desk.remembered import IDS_RESERVED, Ids, Refusals
from engine.database.pool import Database
from engine.domain.commands import (
    Command,
    Previewed,
)
from engine.domain.counting import LacksResults
from engine.domain.errors import (
    DatabaseUnavailable,
    NotFound,
    OutcomeUnknown,
    QueueFull,
    ShuttingDown,
    TallybookError,
    TournamentStopped,
    Unavailable,
)
from engine.domain.events import Event
from engine.domain.expiry import ExpiresOn
from engine.domain.terms import ActorId, Sequence, TournamentId
from engine.log import heads
from engine.log.appender import Appender
from engine.process import telemetry, tracing
from engine.process.background import background
from engine.process.logs import Logger
from engine.process.pace import EXPECTED_SECONDS_MAX
from engine.process.telemetry import WAITING_REQUESTS
from projections.live.given_results import read_results
from projections.live.pool import LivePool, open_live_pool
from projections.live.tournament import LiveTournament
from projections.live.tries import Tries
from projections.tables import tables
from projections.tables.sizes import MEMORY_BYTES
from projections.tables.wakeup import Waker

WAITING_BYTES_MAX: Final = 33_554_432
"""Bytes of the bodies of all commands that one process has taken and not yet answered. In memory, commands take several
times as much."""
SUBMIT_SECONDS_MAX: Final = 15.0
"""Seconds until a command is answered, on the monotonic clock; up to COMMAND_WATCH_SECONDS more."""
COMMAND_WATCH_SECONDS: Final = 0.1
EXPIRY_SECONDS_MAX: Final = 15.0
"""Seconds until a wait for points to expire fails."""
EXPIRY_WATCH_SECONDS: Final = 0.5
EXPIRY_SWEEP_SECONDS: Final = 10.0
"""Pause between two sweeps, which expire points in tournaments without requests that no process has in memory."""
_logger: Final = Logger()


class Desk:
    """Use within `open_desk`."""

    def __init__(self, means: Means) -> None:
        self._means = means
        self.quotas = Quotas(means.database, means.live_pool)
        self.dockets: dict[TournamentId, Docket] = {}  # the dockets that take new cases
        self._working: set[Docket] = set()  # also those of tournaments that were dropped
        self._settled = asyncio.Event()  # closing, and no docket works any more
        self._under_way: dict[Case, None] = {}  # in their order
        self._loop = asyncio.get_running_loop()
        self._closing = False
        self._waiting_bytes = 0

    @property
    def database(self) -> Database:
        return self._means.database

    @property
    def live_pool(self) -> LivePool:
        return self._means.live_pool

    def submit(
        self,
        live: LiveTournament,
        command: Command,
        *,
        actor: ActorId,
        idempotency_key: str | None = None,
        fingerprint: bytes | None = None,
        condition: Condition | Refused | None = None,
        taken_at: float | None = None,
        size_bytes: int = 0,
    ) -> Awaitable[Receipt]:
        """Takes a command. Returns an awaitable that is done when its events are on disk and `live`, which the caller
        keeps pinned, shows them. Cancelling the call does not withdraw the command.

        It must be answered SUBMIT_SECONDS_MAX after `taken_at`, by the monotonic clock; None: after this call. After
        that, the only outcome is that it took too long, even if this process was suspended meanwhile and finds another
        one when it wakes. `fingerprint`: of the request that came with the key, without the `condition`. `size_bytes`:
        of its body. Raises a Refusal (judged by a current state), an Unavailable (certainly not applied) or
        OutcomeUnknown.
        """
        if self._closing:
            raise ShuttingDown
        if self._waiting_bytes + size_bytes > WAITING_BYTES_MAX:
            raise QueueFull
        if taken_at is None:
            taken_at = monotonic()
        receipt: asyncio.Future[Receipt] = self._loop.create_future()
        case = Case(
            command=command,
            actor=actor,
            receipt=receipt,
            taken_at=taken_at,
            until=taken_at + SUBMIT_SECONDS_MAX,
            key=None
            if idempotency_key is None
            else Key(idempotency_key, fingerprint, self._means.refusals.stamp(live.tournament_id)),
            condition=condition,
            span=None if tracing.spans is None else tracing.spans.current_request(),
        )
        self._under_way[case] = None
        self._waiting_bytes += size_bytes
        receipt.add_done_callback(partial(self._let_go, case, size_bytes))
        if condition is not None and condition.exact:
            case.exact = case.alone = True
        if self.quotas.known or isinstance(command, NEEDS_EVIDENCE):
            self._put_when_looked_up(live, case, condition)
        else:
            self._docket(live).put(case)
        return receipt

    async def submit_all(self, live: LiveTournament, commands: Iterable[Command], *, actor: ActorId) -> Sequence | None:
        """Takes one command after another. Returns the sequence of the last event that they lead to; None: there is
        none. Raises as `submit`; then those before are done."""
        sequence = None
        for command in commands:
            sequence = (await self.submit(live, command, actor=actor)).last_sequence
        return sequence

    def _put_when_looked_up(self, live: LiveTournament, case: Case, condition: Condition | Refused | None) -> None:
        if isinstance(case.command, NEEDS_EVIDENCE):
            case.evidence = evidence_of(live, case.command)
            case.alone |= case.evidence is not None and case.evidence.alone
            case.exact |= case.evidence is not None and case.evidence.exact
        case.condition = self.quotas.limit(live, case.command, condition) or condition
        self._docket(live).put_when_looked_up(case)

    def _let_go(self, case: Case, size_bytes: int, _: object) -> None:
        del self._under_way[case]
        self._waiting_bytes -= size_bytes

    def refuse_late(self, tournament_id: TournamentId) -> None:
        """Raises QueueFull if a command for the tournament would wait too long. Call it where any number of requests
        may arrive: `submit` does not check the pace."""
        if seconds := self._late_seconds(tournament_id):
            raise QueueFull(seconds, partial(self._late_seconds, tournament_id))

    def _late_seconds(self, tournament_id: TournamentId) -> float:
        """How long a command would wait, in seconds, if that is too long; otherwise 0."""
        docket = self.dockets.get(tournament_id)
        expected = 0.0 if docket is None else docket.expected_seconds()
        return expected if expected > EXPECTED_SECONDS_MAX else 0.0

    async def preview(self, live: LiveTournament, command: Previewed) -> tuple[Event, ...]:
        """Returns the events that `command` would lead to now; records nothing. Raises a Refusal as `submit` does."""
        tries = Tries()
        with closing(evidence_of_previewed(live, command)) as evidence:
            while True:
                if not evidence.is_current:
                    await evidence.look_up(self.live_pool)
                await self.live_pool.make_current(live)
                try:
                    if evidence.is_current:
                        return evidence.decide()
                except LacksResults as lack:
                    await read_results(self.live_pool, live, lack.ranking_ids)
                tries.again()

    async def new_id(self) -> int:
        """Returns an id that nothing else in the service has or will have. Raises DatabaseUnavailable."""
        (new_id,) = await self.new_ids(1)
        return new_id

    async def new_ids(self, count: int) -> list[int]:
        """Returns `count` such ids, ascending. Raises DatabaseUnavailable."""
        return await self._means.ids.draw(count)

    async def close(self) -> None:
        """Takes no more commands. Returns when those under way are settled, after SUBMIT_SECONDS_MAX at most."""
        self._closing = True
        try:
            async with asyncio.timeout(SUBMIT_SECONDS_MAX):
                if self._working:
                    await self._settled.wait()
        except TimeoutError:
            for case in list(self._under_way):
                case.time_out()  # all but the latest have already been answered that they took too long

    async def expire_points(self, live: LiveTournament, now: datetime) -> None:
        """Returns when the points due by `now` have expired in the log, and `live` shows that. Raises an
        Unavailable."""
        try:
            async with asyncio.timeout(EXPIRY_SECONDS_MAX):
                for _ in range(2):  # the first time, it may wait for an expiry by an earlier time
                    if live.boundaries[1] <= now:  # after the second, the clock was put back: nothing is due yet
                        await self._docket(live).expire_points(now)
        except (TimeoutError, OutcomeUnknown) as error:
            raise DatabaseUnavailable from error

    def _docket(self, live: LiveTournament) -> Docket:
        docket = self.dockets.get(live.tournament_id)
        if docket is None or docket.idle or docket.live is not live:
            docket = Docket(self._means, live, retire=self._retire)
            self.dockets[live.tournament_id] = docket
            self._working.add(docket)
        return docket

    def _retire(self, docket: Docket) -> None:
        self._working.discard(docket)
        if self.dockets.get(docket.tournament_id) is docket:
            del self.dockets[docket.tournament_id]
        if self._closing and not self._working:
            self._settled.set()

    async def watch(self) -> None:
        """Runs until cancelled: answers commands and reads that have waited too long, and updates the figures of
        pending commands and of memory. Doing either for every command would take longer than judging it."""
        while True:
            now = monotonic()
            for case in [case for case in self._under_way if case.until <= now]:
                case.time_out()
            self.live_pool.time_out(now)
            WAITING_REQUESTS.set(len(self._under_way))
            self.live_pool.show_size()
            telemetry.settle()
            await asyncio.sleep(COMMAND_WATCH_SECONDS)

    async def watch_expiry(self) -> None:
        """Runs until cancelled: expires points of the tournaments in memory, even without requests. One that takes long
        holds up no other."""
        under_way: set[LiveTournament] = set()

        async def expire(live: LiveTournament) -> None:
            try:
                await self.live_pool.make_current(live, read_at=monotonic())
            except (TallybookError, PostgresError) as error:
                _logger.warning("expiry_failed", tournament_id=live.tournament_id, error=repr(error))
            finally:
                under_way.discard(live)
                self.live_pool.unpin(live)

        async with asyncio.TaskGroup() as tasks:
            while True:
                await asyncio.sleep(EXPIRY_WATCH_SECONDS)
                if not self.live_pool.expiring:
                    continue
                try:
                    async with self.database.connection() as connection:
                        now = await heads.now(connection)
                except (TallybookError, PostgresError) as error:
                    _logger.warning("expiry_failed", error=repr(error))
                    continue
                for live in self.live_pool.due(now):
                    if live not in under_way:
                        live.pins += 1
                        under_way.add(live)
                        tasks.create_task(expire(live))

    async def sweep_expiry(self) -> None:
        """Runs until cancelled: after each boundary, expires points of the tournaments outside memory."""
        looked_at: dict[TournamentId, datetime] = {}
        while True:
            await asyncio.sleep(EXPIRY_SWEEP_SECONDS)
            try:
                async with self.database.connection() as connection:
                    now, expiring = await heads.now(connection), await tables.expiring(connection)
            except (TallybookError, PostgresError) as error:
                _logger.warning("expiry_failed", error=repr(error))
                continue
            looked_at = {one: boundary for one, boundary in looked_at.items() if one in expiring}
            boundaries = {on: on.boundary(now) for on in ExpiresOn}
            for tournament_id, on in expiring.items():
                if looked_at.get(tournament_id) == boundaries[on]:
                    continue
                try:
                    async with self.live_pool.visited(tournament_id) as live:
                        if live is None:
                            continue  # see `watch_expiry`
                        await self.live_pool.make_current(live, read_at=monotonic())
                except (TallybookError, PostgresError) as error:
                    _logger.warning("expiry_failed", tournament_id=tournament_id, error=repr(error))
                    if not isinstance(error, TournamentStopped | NotFound):
                        continue  # it is tried again; a stopped or deleted tournament only after the next boundary
                looked_at[tournament_id] = boundaries[on]

    async def watch_quotas(self) -> None:
        """Runs until cancelled: reads the quotas at intervals."""
        while True:
            await asyncio.sleep(QUOTAS_SECONDS)
            try:
                await self.quotas.read()
            except (DatabaseUnavailable, PostgresError) as error:
                _logger.warning("quotas_unread", error=repr(error))


@contextmanager
def changed_already() -> Iterator[None]:
    """For the rest of a request after its first change. Raises OutcomeUnknown instead of an Unavailable, which would
    mean that nothing was changed."""
    try:
        yield
    except Unavailable as error:
        raise OutcomeUnknown from error


@asynccontextmanager
async def open_desk(
    database: Database,
    *,
    live_bytes_max: int = MEMORY_BYTES,
    ids_reserved: int = IDS_RESERVED,
    with_quotas: bool = False,
) -> AsyncIterator[Desk]:
    """A desk with its background tasks. On leaving, accepted commands are settled. Quotas bound its commands only
    `with_quotas`: the operator's commands on the command line have no bound, and see what was deleted over HTTP."""

    async def expire_points(live: LiveTournament, now: datetime) -> None:
        await desk.expire_points(live, now)

    async with (
        open_live_pool(
            database, bytes_max=live_bytes_max, expire_points=expire_points, of_operator=not with_quotas
        ) as live_pool,
        background() as tasks,
    ):
        appender, waker = Appender(database), Waker(database)
        running = [tasks.create_task(appender.run()), tasks.create_task(waker.run())]
        means = Means(
            database=database,
            live_pool=live_pool,
            appender=appender,
            waker=waker,
            tasks=tasks,
            ids=Ids(database, reserved=ids_reserved),
            refusals=Refusals(database),
        )
        desk = Desk(means)
        running += [tasks.create_task(one) for one in (desk.watch(), desk.watch_expiry(), desk.sweep_expiry())]
        if with_quotas:
            await desk.quotas.read()
            running.append(tasks.create_task(desk.watch_quotas()))
        yield desk
        await desk.close()
        telemetry.settle()
        for task in running:
            task.cancel()
