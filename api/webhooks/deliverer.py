"""Sends events to webhooks: to each in the order of its log, one request at a time, at least once.

Every worker process has a deliverer. Only the one whose session holds the advisory lock delivers. The others ask for
the lock at intervals. When a process is killed, its session ends, and the lock with it, so another one takes over. If a
process is paused, or its machine is gone, its session is silent for too long, and the server ends it. A deliverer
records everything over the session that has the lock, so one that has lost the lock cannot move a cursor. A message
that was under way then may arrive once more. On a distributed database, each node has its own locks, so only a process
at the coordinator's address delivers.

The deliverer looks at intervals for webhooks with new events, and serves many concurrently. Each gets a bounded time
slice, so that none keeps the others waiting. A message that its receiver does not accept is sent again after growing
pauses. After the last one the webhook is *parked*: nothing is skipped, and nothing more is sent until an operator
resumes it.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping
from collections.abc import Sequence as Items
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import cache, partial
from typing import TYPE_CHECKING, Final

from asyncpg import Connection, PostgresError

from api.webhooks import webhooks
from api.webhooks.message import MESSAGE_LINES_MAX, Message, lines_of, message_of
from api.webhooks.totals import TotalsWindow, Windows
from api.webhooks.webhooks import NextDelivery, WebhookFigures, WebhookId, WebhookState
from engine.database.distribution import is_coordinator, is_distributed
from engine.database.pool import DATABASE_TROUBLE, Database
from engine.domain.errors import DatabaseUnavailable, HistoryReplaced, LogForked, TournamentStopped
from engine.domain.terms import TournamentId
from engine.log import undecoded
from engine.log.heads import Head
from engine.log.undecoded import Stored
from engine.process import failpoints, tracing
from engine.process.background import background, set_within
from engine.process.failpoints import Point
from engine.process.logs import Logger
from engine.process.telemetry import WEBHOOK_REQUESTS, WEBHOOKS, WEBHOOKS_BEHIND, by_kind
from projections.answers.totals import PastTotals
from projections.tables import defects
from projections.tables.defects import DefectPart, is_defect

if TYPE_CHECKING:  # where there are webhooks, `_opened` and `_send` import it: aiohttp takes 9 MiB
    from aiohttp import ClientSession
    from aiohttp.abc import AbstractResolver

    from api.webhooks.sending import Answered

PAUSES_SECONDS: Final = (5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400)
"""Pauses after each failure in a row, before the same event is sent again: 5 s, 5 min, 30 min, 2, 5, 10, 14, 20 and 24
h."""
RETRY_AFTER_SECONDS_MAX: Final = 86_400
"""A pause is longer if the receiver asks for that with `Retry-After`, up to this."""
DELIVERED_AT_ONCE_MAX: Final = 100
"""Webhooks that are served concurrently."""
SERVED_SECONDS_MAX: Final = 4.0
SERVED_EVENTS_MAX: Final = 100
SERVED_BYTES_MAX: Final = 32_768
"""The time slice of one webhook: no further request starts after these seconds (so that no name is sent that was erased
5 s ago); it reads up to this many events, and bytes of bodies."""
WINDOWS_KEPT_MAX: Final = 20
"""Webhooks that are behind, and whose totals are kept between two of their time slices."""
DUE_SECONDS: Final = 0.25
"""Time between two searches for webhooks with new events, and between two attempts to get the lock."""
DUE_IN_ALL_SHARDS_SECONDS: Final = 1.0
"""The same on a distributed database, where each look asks all shards. Without webhooks, they are asked once
in FIGURES_SECONDS."""
FIGURES_SECONDS: Final = 5.0
DEFECT_SECONDS: Final = 10.0
"""Pause after a defect, before its webhook has another time slice."""
INTERRUPTED_SECONDS: Final = 1.0
"""Pause after trouble with the database."""
SILENT_SESSION_SECONDS_MAX: Final = 5
"""The server ends the session that has the lock if it sends no query for this time. It sends one at each look."""
_LOCK_KEY: Final = 0x7A11_B00D  # like that of migrations, but different
_TRY_LOCK: Final = "SELECT pg_try_advisory_lock($1)"
_LIMIT_SILENCE: Final = "SELECT set_config('idle_session_timeout', $1, false)"
_STAY: Final = "SELECT 1"
_UNLOCK: Final = "SELECT set_config('idle_session_timeout', '0', false), pg_advisory_unlock($1)"

_REQUESTS: Final = by_kind(WEBHOOK_REQUESTS, ("taken", "failed"))
_WEBHOOKS: Final = by_kind(WEBHOOKS, WebhookState)

_logger: Final = Logger()


class Deliverer:
    """One deliverer; `run` works until it is cancelled."""

    def __init__(
        self,
        database: Database,
        *,
        pauses_seconds: Items[float] = PAUSES_SECONDS,
        resolver: "AbstractResolver | None" = None,
    ) -> None:
        """`resolver`: looks names up; None: the system does."""
        self._database = database
        self._pauses_seconds = pauses_seconds
        self._resolver = resolver

    async def run(self) -> None:
        while True:
            try:
                async with self._database.raw_connection() as session:
                    if is_coordinator(session) and await session.fetchval(_TRY_LOCK, _LOCK_KEY):
                        await self._deliver(session)
            except* (DatabaseUnavailable, *DATABASE_TROUBLE, PostgresError) as errors:
                _logger.warning("webhooks_interrupted", errors=[repr(error) for error in errors.exceptions])
                await asyncio.sleep(INTERRUPTED_SECONDS)
            await asyncio.sleep(DUE_SECONDS)

    async def _deliver(self, session: Connection) -> None:
        """Delivers until the session is lost; it has the lock."""
        try:
            await session.execute(_LIMIT_SILENCE, f"{SILENT_SESSION_SECONDS_MAX}s")
            async with AsyncExitStack() as clients, background() as tasks:
                client = cache(partial(self._opened, clients))
                await _Delivering(session, PastTotals(self._database), self._pauses_seconds, client).run(tasks)
        finally:
            _show_figures({})
            with suppress(*DATABASE_TROUBLE, PostgresError):  # the session is lost, and the lock with it
                await session.execute(_UNLOCK, _LOCK_KEY)

    def _opened(self, clients: AsyncExitStack, allows_private: bool) -> "ClientSession":
        """A new client, which is closed with `clients`."""
        from api.webhooks.sending import open_client  # noqa: PLC0415

        client = open_client(self._resolver, allows_private=allows_private, connections_max=DELIVERED_AT_ONCE_MAX)
        clients.push_async_callback(client.close)
        return client


class _Delivering:
    """The work of the deliverer that has the lock. `_session` has the lock, and runs one query at a time. `_client` has
    two, so that no connection to a private address is ever available to a webhook that may not lead there."""

    def __init__(
        self,
        session: Connection,
        past: PastTotals,
        pauses_seconds: Items[float],
        client: "Callable[[bool], ClientSession]",
    ) -> None:
        self._session = session
        self._asking_lock = asyncio.Lock()
        self._totals = Windows(self._asking, past)
        self._windows: OrderedDict[WebhookId, TotalsWindow] = (
            OrderedDict()
        )  # of those that are behind, the last used last
        self._pauses_seconds = pauses_seconds
        self._client = client
        self._busy: set[WebhookId] = set()
        self._something = asyncio.Event()
        self._pause_seconds = DUE_IN_ALL_SHARDS_SECONDS if is_distributed(session) else DUE_SECONDS

    async def run(self, tasks: asyncio.TaskGroup) -> None:
        figures_at = 0.0
        due: list[tuple[TournamentId, WebhookId]] = []
        while True:
            async with self._asking() as session:
                if time.monotonic() >= figures_at:
                    figures = await webhooks.webhook_figures(session)
                    _show_figures(figures)
                    figures_at = time.monotonic() + FIGURES_SECONDS
                if figures or not is_distributed(session):
                    free = DELIVERED_AT_ONCE_MAX - len(self._busy)
                    due = await webhooks.due_webhooks(session, self._busy, free)
                else:  # all shards have just said that there is none
                    await session.execute(_STAY)
            for tournament_id, webhook_id in due:
                self._busy.add(webhook_id)
                tasks.create_task(self._serve(tournament_id, webhook_id))
            await set_within(self._something, self._pause_seconds)
            self._something.clear()

    async def _serve(self, tournament_id: TournamentId, webhook_id: WebhookId) -> None:
        """One time slice of a webhook."""
        rest_seconds = 0.0
        try:
            async with self._asking() as session:
                delivery = await webhooks.next_delivery(session, tournament_id, webhook_id)
            if delivery is not None:
                await self._tell(delivery)
        except TournamentStopped:  # the worker raises the alarm
            rest_seconds = DEFECT_SECONDS
        except Exception as error:
            if not is_defect(error):
                raise  # of the session, which all share
            defects.alarm(tournament_id, DefectPart.DELIVERING, error)
            async with self._asking() as session:
                await defects.note_over(session, tournament_id, DefectPart.DELIVERING, error)
            rest_seconds = DEFECT_SECONDS
        finally:
            if rest_seconds:
                asyncio.get_running_loop().call_later(rest_seconds, self._free, webhook_id)
            else:
                self._free(webhook_id)

    @asynccontextmanager
    async def _asking(self) -> AsyncIterator[Connection]:
        """The session, for one caller at a time."""
        async with self._asking_lock:
            yield self._session

    def _free(self, webhook_id: WebhookId) -> None:
        self._busy.remove(webhook_id)
        self._something.set()

    async def _tell(self, delivery: NextDelivery) -> None:
        """Sends the webhook the next events, until one fails or its time slice is over."""
        over_at = time.monotonic() + SERVED_SECONDS_MAX
        cursor = end = delivery.cursor
        failures = delivery.failures
        try:
            async with self._asking() as session:
                events = await undecoded.stored(
                    session,
                    delivery.tournament_id,
                    undecoded.EventSpan(cursor, delivery.upto),
                    events_max=SERVED_EVENTS_MAX,
                    bytes_max=SERVED_BYTES_MAX,
                )
            window = await self._window(delivery, events)
        except (LogForked, HistoryReplaced):
            problem = "the log is not the one that was delivered before"
            await self._stop(delivery, cursor, failures, problem, WebhookState.PARKED)
            return
        for stored in events:
            wanted = delivery.wants(stored.kind)
            if wanted and time.monotonic() >= over_at:
                break
            lines = [] if window is None else window.lines_after(stored)
            if wanted:
                message = message_of(delivery.webhook_id, delivery.tournament_id, delivery.slug, stored, lines)
                answered = await self._send(delivery, message)
                if answered.problem is not None:
                    await self._note(delivery, cursor, failures, answered, answered.problem)
                    return
                failpoints.reached(Point.WEBHOOK_TAKEN)
                to = Head(stored.sequence, stored.digest)
                if not await self._move_on(delivery, cursor, to, delivered=True):
                    return
                cursor, failures = to, 0
            end = Head(stored.sequence, stored.digest)
        if end != cursor and not await self._move_on(delivery, cursor, end, delivered=False):
            return
        if window is not None and window.at == end.sequence < window.end:
            self._windows[delivery.webhook_id] = window
            if len(self._windows) > WINDOWS_KEPT_MAX:
                self._windows.popitem(last=False)

    async def _window(self, delivery: NextDelivery, events: Items[Stored]) -> TotalsWindow | None:
        """The totals that messages of these events show. None: they show none."""
        window = self._windows.pop(delivery.webhook_id, None)
        last = events[-1].sequence if events else delivery.cursor.sequence
        if window is not None and window.at == delivery.cursor.sequence and window.end >= last:
            return window
        if not any(delivery.wants(stored.kind) and 0 < len(lines_of(stored)) <= MESSAGE_LINES_MAX for stored in events):
            return None
        return await self._totals.window(delivery.tournament_id, delivery.cursor, events, delivery.upto)

    async def _send(self, delivery: NextDelivery, message: Message) -> "Answered":
        from api.webhooks.sending import post  # noqa: PLC0415

        headers = message.headers(delivery.secrets, int(time.time()))
        with tracing.delivery(headers) as attributes:
            attributes["tallybook.tournament_id"] = delivery.tournament_id
            attributes["tallybook.webhook_id"] = delivery.webhook_id
            answered = await post(self._client(delivery.allows_private), delivery.url, message.body, headers)
            if answered.problem is not None:
                attributes["error.type"] = answered.problem
        _REQUESTS["taken" if answered.problem is None else "failed"].inc()
        return answered

    async def _move_on(self, delivery: NextDelivery, cursor: Head, to: Head, *, delivered: bool) -> bool:
        async with self._asking() as session:
            return await webhooks.move_on(session, delivery, cursor.sequence, to, delivered=delivered)

    async def _note(
        self, delivery: NextDelivery, cursor: Head, failures: int, answered: "Answered", problem: str
    ) -> None:
        """Records a failure, after `failures` earlier ones with the same event, and its consequence."""
        _logger.warning(
            "webhook_failed",
            tournament_id=delivery.tournament_id,
            webhook_id=delivery.webhook_id,
            sequence=cursor.sequence,
            failures=failures + 1,
            problem=problem,
        )
        if answered.is_gone:
            await self._stop(delivery, cursor, failures, problem, WebhookState.OFF)
        elif failures >= len(self._pauses_seconds):
            await self._stop(delivery, cursor, failures, problem, WebhookState.PARKED)
        else:
            async with self._asking() as session:
                await webhooks.note_failure(
                    session,
                    delivery,
                    cursor.sequence,
                    problem,
                    failures=failures,
                    state=WebhookState.ACTIVE,
                    pause_seconds=max(
                        self._pauses_seconds[failures], min(answered.retry_after_seconds, RETRY_AFTER_SECONDS_MAX)
                    ),
                )

    async def _stop(
        self, delivery: NextDelivery, cursor: Head, failures: int, problem: str, state: WebhookState
    ) -> None:
        """Sends nothing more to the webhook until an operator resumes it."""
        async with self._asking() as session:
            noted = await webhooks.note_failure(
                session, delivery, cursor.sequence, problem, failures=failures, state=state, pause_seconds=0
            )
        if noted:
            _logger.error(
                "webhook_stopped",
                tournament_id=delivery.tournament_id,
                webhook_id=delivery.webhook_id,
                state=state,
                problem=problem,
            )


def _show_figures(figures: Mapping[WebhookState, WebhookFigures]) -> None:
    """States that are absent have no webhooks."""
    for state in WebhookState:
        _WEBHOOKS[state].set(figures[state].count if state in figures else 0)
    active = figures.get(WebhookState.ACTIVE)
    WEBHOOKS_BEHIND.set(0 if active is None else active.behind)
