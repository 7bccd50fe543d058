"""Desks to test with, rankings to add points to, and ways to wait for what is under way elsewhere.

Two desks on one database, each with a pool of its own, are to each other what two processes are.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count
from typing import Any, Final, TypeVar

import asyncpg
import pytest
from msgspec import Struct

from api.desk.case import Receipt
from api.desk.desk import Desk, open_desk
from engine.database.distribution import has_shards
from engine.database.pool import NODE_TASK, Database, open_database
from engine.domain.commands import AddPoints, Command
from engine.domain.events import CompetitionAdded, CompetitorRegistered, Delta, Event, RankingCreated
from engine.domain.terms import OPERATOR, ActorId, CompetitionId, CompetitorId, RankingId, TournamentId, UnityId
from engine.log import appending, heads, registry, tails
from engine.log.appending import Appended, Block, Request
from engine.log.heads import Head
from projections.tables.sizes import MEMORY_BYTES
from tests.bounds import set_bounds
from tests.proxy import TASK
from tests.tournaments import open_new_tournament

_T = TypeVar("_T")


# ── Waiting ─────────────────────────────────────────────────────────────────────────────────────────────


GUARD_SECONDS: Final = 120.0
"""Until a test that hangs is given up. No verdict about speed: `tests/test_project_clocks.py` says why."""


async def until(condition: Callable[[], Awaitable[_T] | _T], seconds: float = GUARD_SECONDS) -> _T:
    """The first true answer of `condition`, which is asked again and again for that long."""
    deadline = time.monotonic() + seconds
    while True:
        answer = condition()
        if isinstance(answer, Awaitable):
            answer = await answer
        if answer:
            return answer
        assert time.monotonic() < deadline, "it never came true"
        await asyncio.sleep(0.002)


async def waiting_for_locks(owner: asyncpg.Connection, query: str = "") -> list[int]:
    """The sessions in the database that wait for a lock with a statement that contains `query`; of a distributed one,
    those for which a node waits."""
    rows = await owner.fetch(_WAITING_ANYWHERE if await has_shards(owner) else _WAITING, query)
    return [row["pid"] for row in rows]


async def number_of(owner: asyncpg.Connection, session: asyncpg.Connection) -> int:
    """That by which `waiting_for_locks` knows this session, which is with the server of `owner` and may be busy."""
    pid: int = session.get_server_pid()
    return await owner.fetchval(_GLOBAL_PID, pid) if await has_shards(owner) else pid


async def end_session(owner: asyncpg.Connection, pid: int) -> None:
    """Ends one of the sessions that `waiting_for_locks` found. Citus has a function for its wider numbers."""
    await owner.execute(f"SELECT pg_terminate_backend({int(pid)})")


_WAITING = """
    SELECT pid
    FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock' AND strpos(query, $1) > 0
"""
# What a node waits with has the names of shards; the session that it works for has the statement as it was sent.
_WAITING_ANYWHERE = """
    WITH activity AS MATERIALIZED (SELECT * FROM citus_stat_activity WHERE datname = current_database())
    SELECT DISTINCT w.global_pid AS pid
    FROM activity AS w
    JOIN activity AS s ON s.global_pid = w.global_pid
    WHERE w.wait_event_type = 'Lock' AND strpos(s.query, $1) > 0
"""
_GLOBAL_PID = """
    SELECT citus_calculate_gpid(n.nodeid, $1)
    FROM pg_dist_node AS n
    JOIN pg_dist_local_group AS l ON l.groupid = n.groupid
"""


async def until_commits_wait(owner: asyncpg.Connection, probe: asyncpg.Connection) -> None:
    """Returns when commits wait for the standby that has been configured: sessions learn of that one after the other,
    and what makes them wait is set by a process of its own. `probe` is another session."""
    pid = probe.get_server_pid()

    async def waits() -> bool:
        writing = asyncio.create_task(probe.execute("SELECT pg_logical_emit_message(true, 'probe', '')"))
        while not writing.done():
            if await owner.fetchval("SELECT wait_event = 'SyncRep' FROM pg_stat_activity WHERE pid = $1", pid):
                await owner.execute("SELECT pg_cancel_backend($1::int)", pid)
                await writing
                return True
        await writing
        return False

    await until(waits)


@asynccontextmanager
async def holding(dsn: str, statement: str, *args: object) -> AsyncIterator[asyncpg.Connection]:
    """A foreign transaction, open for as long as the context lasts, that has executed `statement`; then rolled back."""
    connection = await asyncpg.connect(dsn, server_settings={"search_path": "tallybook"})
    try:
        async with connection.transaction():
            await connection.execute(statement, *args)
            yield connection
    finally:
        await connection.close()


@asynccontextmanager
async def holding_heads(dsn: str, tournament_ids: Iterable[TournamentId]) -> AsyncIterator[None]:
    """As `holding`, with the locks that whoever appends to these tournaments waits for."""
    async with holding(dsn, "SELECT 1") as holder:
        for tournament_id in tournament_ids:
            await holder.execute(HOLD_HEAD, tournament_id)
        yield


async def leave_unconfirmed(owner: asyncpg.Connection, table: str, which: str) -> None:
    """From now on the server warns of commits with such new rows, as it does if no standby has confirmed them."""
    await owner.execute(
        """
        CREATE FUNCTION warn() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            RAISE WARNING 'canceling wait for synchronous replication due to user request';
            RETURN NULL;
        END $$
        """
    )
    await owner.execute(
        f"CREATE CONSTRAINT TRIGGER unconfirmed AFTER INSERT ON {table} DEFERRABLE INITIALLY DEFERRED "
        f"FOR EACH ROW WHEN ({which}) EXECUTE FUNCTION warn()"
    )


DOOR = """
    SELECT pg_get_functiondef(oid)
    FROM pg_proc
    WHERE proname = 'append_block'
    ORDER BY pronargs DESC
    LIMIT 1
"""
"""The text of the function that appends, as the service calls it; beside it there are those of the versions before."""
ADVISORY_LOCKS = """
    SELECT pid
    FROM pg_locks
    WHERE locktype = 'advisory' AND objsubid <= 2
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
"""The sessions with the locks in this database that a client asked for; Citus has others of its own."""
HOLD_HEAD = "SELECT 1 FROM append_lock WHERE tournament_id = $1 FOR UPDATE"


@asynccontextmanager
async def turns_of_others() -> AsyncIterator["count[int]"]:
    """The next number is how often somebody else could have done something meanwhile."""
    number = count()

    async def tick() -> None:
        while True:
            await asyncio.sleep(0)
            next(number)

    ticking = asyncio.create_task(tick())
    try:
        yield number
    finally:
        ticking.cancel()


@asynccontextmanager
async def turns_at_calls(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> AsyncIterator[list[int]]:
    """How many turns others have had at each call of this function, where any time slice is over at once."""
    turns, function = list[int](), getattr(owner, name)

    def called(*given: Any) -> Any:
        turns.append(next(number))
        return function(*given)

    with monkeypatch.context() as patched:
        set_bounds(patched, SLICE_SECONDS_MAX=-1.0)
        patched.setattr(owner, name, called)
        async with turns_of_others() as number:
            yield turns


# ── Rankings ────────────────────────────────────────────────────────────────────────────────────────────


class Arena(Struct, frozen=True):
    """A tournament with two competitors and one ranking of both."""

    tournament_id: TournamentId
    ranking_id: RankingId
    unity_id: UnityId
    competitors: tuple[CompetitorId, CompetitorId]

    def points(self, amount: int = 1) -> AddPoints:
        return AddPoints(ranking_id=self.ranking_id, deltas=(Delta(self.competitors[0], self.unity_id, amount),))


async def open_arena(database: Database) -> Arena:
    tournament_id = await open_new_tournament(database, actor=OPERATOR)
    async with database.connection() as connection:
        first, second, ranking, unity = await registry.next_ids(connection, 4)
        arena = Arena(tournament_id, RankingId(ranking), UnityId(unity), (CompetitorId(first), CompetitorId(second)))
        await record(
            connection,
            tournament_id,
            CompetitorRegistered(competitor_id=arena.competitors[0], name="Ann"),
            CompetitorRegistered(competitor_id=arena.competitors[1], name="Bob"),
            RankingCreated(
                ranking_id=arena.ranking_id,
                name="Overall",
                participants=arena.competitors,
                main_unity_id=arena.unity_id,
                main_unity_name="Points",
            ),
        )
    return arena


async def record(
    connection: asyncpg.Connection,
    tournament_id: TournamentId,
    *events: Event,
    key: str | None = None,
    actor: ActorId = OPERATOR,
) -> Appended:
    """Has the log record `events`, as another process would; with the fingerprint that `submit` gives."""
    request = Request(events=events, actor=actor, idempotency_key=key, fingerprint=fingerprint(key))
    head = (await heads.current(connection, [tournament_id]))[tournament_id]
    block = Block(tournament_id=tournament_id, judged_at=head.sequence, judged_digest=head.digest, requests=(request,))
    (appended,) = await appending.append(connection, [block], wait=True)
    assert isinstance(appended, Appended)
    return appended


def fingerprint(key: str | None, request: str = "") -> bytes | None:
    return None if key is None else f"{key}/{request}".encode("utf-8", "surrogatepass")


# ── Desks ───────────────────────────────────────────────────────────────────────────────────────────────


OF_OTHERS: Final = (TASK, NODE_TASK)
"""Names of tasks that may have begun meanwhile and go on: of proxies, and of other desks that have met a node."""


@asynccontextmanager
async def desk_at(dsn: str, *, live_bytes_max: int = MEMORY_BYTES) -> AsyncIterator[Desk]:
    """A desk with a pool of its own, which must have let go of everything when it is left."""
    await asyncio.sleep(0)  # what others have just begun begins tasks of its own, which are theirs
    before = asyncio.all_tasks()
    async with open_database(dsn, name="desk") as database:
        async with open_desk(database, live_bytes_max=live_bytes_max) as desk:
            yield desk
            await until(lambda: is_idle(desk))
        await until(lambda: not {task for task in asyncio.all_tasks() - before if task.get_name() not in OF_OTHERS})


@asynccontextmanager
async def desks_at(dsn: str, number: int = 2) -> AsyncIterator[list[Desk]]:
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(desk_at(dsn)) for _ in range(number)]


def is_idle(desk: Desk) -> bool:
    """Whether nothing is under way, and nothing is pinned that nobody needs."""
    pool = desk.live_pool
    return (
        not desk.dockets
        and not desk._working
        and len(desk._under_way) == 0
        and not any(node.waiting for node in pool._nodes.values())
        and not pool._loading.under_way
        and all(live.pins == 0 for live in pool._tournaments.values())
    )


async def submit(
    desk: Desk,
    tournament_id: TournamentId,
    command: Command,
    *,
    key: str | None = None,
    request: str = "",
) -> Receipt:
    """What one request does: pins, submits, and finds what it led to in the live."""
    async with desk.live_pool.pinned(tournament_id) as live:
        receipt = await desk.submit(
            live, command, actor=OPERATOR, idempotency_key=key, fingerprint=fingerprint(key, request)
        )
        assert live.head.sequence >= receipt.sequence
        return receipt


async def recorded(database: Database, tournament_id: TournamentId) -> list[Event]:
    """Every event of the tournament, in order; proved to be without a gap by the way it is read."""
    async with database.connection() as connection:
        tail = await tails.tail(connection, tournament_id, heads.beginning(tournament_id), blocks_max=10_000)
        assert [r.sequence for r in tail.events] == list(range(1, len(tail.events) + 1))
        assert (await heads.current(connection, [tournament_id]))[tournament_id] == tail.head
    return [r.event for r in tail.events]


async def head_of(database: Database, tournament_id: TournamentId) -> Head:
    async with database.connection() as connection:
        return (await heads.current(connection, [tournament_id]))[tournament_id]


async def matched(desk: Desk, arena: Arena) -> CompetitionId:
    """A new competition."""
    match = CompetitionId(await desk.new_id())
    async with desk.database.connection() as connection:
        await record(connection, arena.tournament_id, CompetitionAdded(competition_id=match, group_id=1))
    return match
