"""Live tournaments are read by a barrier that misses nothing acknowledged, loaded once, kept within bounds, and dropped
when untrue."""

import asyncio
import gc
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from math import inf
from types import SimpleNamespace

import asyncpg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from prometheus_client import REGISTRY

from api.interface.resources.rankings import RankingQuestion
from engine.database.pool import Database, open_database
from engine.domain.errors import (
    DatabaseUnavailable,
    HistoryReplaced,
    QueueFull,
    ShuttingDown,
    TournamentDefect,
    TournamentStopped,
)
from engine.domain.events import CompetitorErased, PointsAdded, Recorded, UnityAdded
from engine.domain.expiry import ExpiresOn
from engine.domain.terms import CompetitorId, Sequence, TournamentId, UnityId
from engine.log.heads import Head
from engine.process import telemetry
from engine.process.telemetry import FORKED, LIVES_LOADED, LIVES_LOADING, LOADED_ROWS
from engine.process.time_slices import WOKEN_AT_ONCE
from projections.live import pool as pool_module
from projections.live.kept import Kept
from projections.live.pool import LivePool, open_live_pool
from projections.live.tournament import LiveTournament
from projections.tables.worker import Worker
from tests.api.rendered import ADD, answered
from tests.bounds import Bounds
from tests.desks import (
    GUARD_SECONDS,
    Arena,
    desks_at,
    end_session,
    holding,
    open_arena,
    record,
    submit,
    until,
    waiting_for_locks,
)
from tests.poison import POISONS, cut_tail, poison, repair
from tests.proxy import HEADS, Proxy, proxy
from tests.tampering import unguarded
from tests.two_nodes import ONE_IS_ENOUGH, side, two_nodes

ROUNDS_MAX = 3
"""In that many rounds of the event loop a task ends that waits for what has just failed."""


def barriers() -> float:
    """How many queries for heads were made so far."""
    telemetry.settle()
    count = REGISTRY.get_sample_value("tallybook_barrier_seconds_count")
    assert count is not None
    return count


@asynccontextmanager
async def behind_proxy(dsn: str) -> AsyncIterator[tuple[Proxy, Database, LivePool]]:
    async with (
        proxy(dsn) as between,
        open_database(between.dsn, name="test") as database,
        open_live_pool(database) as pool,
    ):
        yield between, database, pool


async def add(connection: asyncpg.Connection, arena: Arena, amount: int) -> None:
    """Another process adds points."""
    points = PointsAdded(ranking_id=arena.ranking_id, deltas=arena.points(amount).deltas)
    await record(connection, arena.tournament_id, points)


def waiting_in(
    pool: LivePool,
) -> dict[LiveTournament, tuple[list[asyncio.Future[None]], dict[asyncio.Future[None], float]]]:
    """Who waits for the next query, whichever node it is of."""
    return {live: waiters for node in pool._nodes.values() for live, waiters in node.waiting.items()}


def total(live: LiveTournament, arena: Arena) -> int:
    return live.board.rankings[arena.ranking_id].unities[arena.unity_id].totals.get(arena.competitors[0], 0)


async def read(pool: LivePool, arena: Arena) -> int:
    async with asyncio.timeout(GUARD_SECONDS), pool.pinned(arena.tournament_id) as live:
        await pool.make_current(live)
        return total(live, arena)


async def failure(pool: LivePool, arena: Arena) -> BaseException | None:
    """Why a read fails, whose query has failed. It fails then, or never."""
    async with pool.pinned(arena.tournament_id) as live:
        before = barriers()
        reading = asyncio.ensure_future(pool.make_current(live))
        try:
            await until(lambda: reading.done() or barriers() > before)
            for _ in range(ROUNDS_MAX):
                await asyncio.sleep(0)
            assert reading.done(), "a read waits for a query that has ended"
            return reading.exception()
        finally:
            reading.cancel()


# ── The read barrier ────────────────────────────────────────────────────────────────────────────────────


async def test_a_read_that_began_after_another_desks_receipt_shows_it(dsn: str) -> None:
    """A thousand times, on five tournaments at once, which desk writes and which one reads being left to chance."""
    chance = random.Random(1)
    async with desks_at(dsn, 3) as desks:

        async def check(arena: Arena) -> None:
            expected = 0
            for _ in range(200):
                writing, reading = chance.choices(desks, k=2)
                await submit(writing, arena.tournament_id, arena.points(amount := chance.randrange(10)))
                expected += amount
                assert await read(reading.live_pool, arena) == expected

        await asyncio.gather(*[check(await open_arena(desks[0].database)) for _ in range(5)])


async def test_readers_who_come_together_share_one_query_of_each_node(database: Database) -> None:
    async with open_live_pool(database) as pool, AsyncExitStack() as pins:
        arenas = [await open_arena(database) for _ in range(10)]
        pinned = [await pins.enter_async_context(pool.pinned(arena.tournament_id)) for arena in arenas]
        nodes = set((await database.by_nodes([arena.tournament_id for arena in arenas])).values())
        before = barriers()
        await asyncio.gather(*(pool.make_current(live) for live in pinned * 20))
        assert barriers() - before == len(nodes)


async def test_readers_who_come_while_a_query_is_under_way_share_the_next(
    database: Database, dsn: str, owner: asyncpg.Connection
) -> None:
    arena = await open_arena(database)
    async with open_live_pool(database) as pool, pool.pinned(arena.tournament_id) as live:
        before = barriers()
        async with holding(dsn, "LOCK TABLE head IN ACCESS EXCLUSIVE MODE"):
            first = asyncio.ensure_future(pool.make_current(live))
            await until(lambda: waiting_for_locks(owner, "FROM block"))
            later = [asyncio.ensure_future(pool.make_current(live)) for _ in range(50)]
            await until(lambda: len(waiting_in(pool).get(live, ([], []))[0]) == 50)
        await asyncio.gather(first, *later)
        assert barriers() - before == 2


async def test_hundreds_of_reads_of_one_tournament_continue_in_their_order_and_hold_up_nobody_else(
    database: Database,
) -> None:
    async with open_live_pool(database) as pool, AsyncExitStack() as pins:
        arenas = [await open_arena(database) for _ in range(2)]
        hot, calm = [await pins.enter_async_context(pool.pinned(arena.tournament_id)) for arena in arenas]
        went_on: list[str] = []

        async def read(name: str, live: LiveTournament, *, read_at: float | None) -> None:
            await pool.make_current(live, read_at=read_at)
            went_on.append(name)

        names = [str(n) for n in range(300)]
        await asyncio.gather(
            *(read(name, hot, read_at=inf) for name in names),
            read("calm", calm, read_at=inf),
            read("what appends to it", hot, read_at=None),
        )
        assert [name for name in went_on if name in names] == names
        assert went_on.index("calm") <= WOKEN_AT_ONCE + 1
        assert went_on.index("what appends to it") <= WOKEN_AT_ONCE + 1


async def test_a_read_that_has_waited_too_long_for_its_turn_is_refused_and_the_next_one_is_not(
    database: Database, bounds: Bounds
) -> None:
    bounds(WAITED_SECONDS_MAX=-1.0)
    arena = await open_arena(database)
    async with open_live_pool(database) as pool, pool.pinned(arena.tournament_id) as live:
        reads = [pool.make_current(live, read_at=inf) for _ in range(WOKEN_AT_ONCE + 1)]
        outcomes = await asyncio.gather(*reads, pool.make_current(live), return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [QueueFull] * (WOKEN_AT_ONCE + 1) + [type(None)]
        await pool.make_current(live, read_at=inf)


async def test_a_read_has_one_deadline_for_all_that_it_waits_for(dsn: str, owner: asyncpg.Connection) -> None:
    """The clock is told. One read waits for a query, the next for that and its own, the last also for the events that
    its own has found. What is no read has no such deadline."""
    seconds = pool_module.READ_SECONDS_MAX
    async with (
        behind_proxy(dsn) as (between, database, pool),
        AsyncExitStack() as query,
        AsyncExitStack() as next_query,
        AsyncExitStack() as events,
    ):
        arena = await open_arena(database)
        live = await pool.pin(arena.tournament_id)
        asked = await query.enter_async_context(between.holding_answers(HEADS))
        reads = [asyncio.ensure_future(pool.make_current(live, read_at=100.0))]
        await asked.wait()
        reads += [asyncio.ensure_future(pool.make_current(live, read_at=at)) for at in (101.0, 102.0)]
        other = asyncio.ensure_future(pool.make_current(live))
        await add(owner, arena, 5)
        pool.time_out(100.0 + seconds)
        await until(reads[0].done)
        assert [read.done() for read in reads] == [True, False, False]

        asked = await next_query.enter_async_context(between.holding_answers(HEADS))
        await query.aclose()
        await asked.wait()
        pool.time_out(101.0 + seconds)
        await until(reads[1].done)
        assert [read.done() for read in reads] == [True, True, False]

        asked = await events.enter_async_context(between.holding_answers("AS has_asides"))
        await next_query.aclose()
        await asked.wait()
        pool.time_out(102.0 + seconds)
        outcomes = await asyncio.gather(*reads, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [DatabaseUnavailable] * 3
        assert not other.done()
        await events.aclose()
        await other
        assert total(live, arena) == 5


async def test_a_read_that_waits_for_events_keeps_its_deadline_while_others_ask_for_heads(
    dsn: str, owner: asyncpg.Connection
) -> None:
    async with behind_proxy(dsn) as (between, database, pool):
        behind, other = [await open_arena(database) for _ in range(2)]
        async with pool.pinned(behind.tournament_id) as live, pool.pinned(other.tournament_id) as others:
            await add(owner, behind, 5)
            async with between.holding_answers("AS has_asides") as asked:
                slow = asyncio.ensure_future(pool.make_current(live, read_at=100.0))
                await asked.wait()
                await pool.make_current(others)
                pool.time_out(100.0 + pool_module.READ_SECONDS_MAX)
                await until(slow.done)
                with pytest.raises(DatabaseUnavailable):
                    await slow
            await pool.make_current(live, read_at=inf)
            assert total(live, behind) == 5


async def test_a_read_that_comes_while_a_query_is_answered_is_not_answered_by_it(
    dsn: str, owner: asyncpg.Connection
) -> None:
    """The database has said which heads there are, and nobody has heard it yet; then somebody appends, then reads."""
    async with behind_proxy(dsn) as (between, database, pool):
        arena = await open_arena(database)
        async with pool.pinned(arena.tournament_id) as live:
            async with between.holding_answers(HEADS) as held:
                first = asyncio.ensure_future(pool.make_current(live))
                await until(held.is_set)
                await add(owner, arena, 5)
                later = asyncio.create_task(read(pool, arena))
                await until(lambda: live.pins == 2)
            await first
            assert await later == 5


async def test_many_who_read_a_live_that_is_being_brought_up_to_date_take_no_connections_from_others(
    dsn: str, owner: asyncpg.Connection
) -> None:
    async with open_database(dsn, name="test", connections_max=3) as database, open_live_pool(database) as pool:
        behind, other = await open_arena(database), await open_arena(database)
        async with pool.pinned(behind.tournament_id) as live, pool.pinned(other.tournament_id) as others:
            await add(owner, behind, 5)
            async with holding(dsn, "LOCK TABLE topic IN ACCESS EXCLUSIVE MODE"):
                reading = []
                for _ in range(5):  # each in a round of its own
                    reading.append(asyncio.ensure_future(pool.make_current(live)))
                    await pool.make_current(others)  # or no connection is to be had
                await until(lambda: waiting_for_locks(owner, "AS has_asides"))
            await asyncio.gather(*reading)
            assert total(live, behind) == 5


async def test_nobody_is_left_waiting_when_the_lives_are_left(
    database: Database, dsn: str, owner: asyncpg.Connection
) -> None:
    arena = await open_arena(database)
    async with AsyncExitStack() as held:
        async with open_live_pool(database) as pool:
            live = await pool.pin(arena.tournament_id)
            await held.enter_async_context(holding(dsn, "LOCK TABLE block IN ACCESS EXCLUSIVE MODE"))
            reading = [asyncio.ensure_future(pool.make_current(live))]
            await until(lambda: waiting_for_locks(owner, "FROM block"))
            reading.append(asyncio.ensure_future(pool.make_current(live)))
            await until(lambda: live in waiting_in(pool))
        for task in reading:
            with pytest.raises(ShuttingDown):
                await task
        with pytest.raises(ShuttingDown):
            await pool.make_current(live)


async def test_a_read_fails_while_the_database_is_away_and_succeeds_when_it_is_back(dsn: str) -> None:
    async with behind_proxy(dsn) as (between, database, pool):
        arena = await open_arena(database)
        assert await read(pool, arena) == 0
        between.refusing = True
        between.cut_all()
        for _ in range(3):
            assert isinstance(await failure(pool, arena), DatabaseUnavailable)
        between.refusing = False
        assert await read(pool, arena) == 0


async def test_an_error_that_nobody_expects_fails_who_waits_for_this_query_and_nobody_after(
    database: Database, owner: asyncpg.Connection
) -> None:
    arenas = [await open_arena(database) for _ in range(2)]
    async with open_live_pool(database) as pool:
        assert [await read(pool, arena) for arena in arenas] == [0, 0]
        await owner.execute("REVOKE SELECT ON block FROM tallybook_service")
        try:
            for arena in arenas:
                assert isinstance(await failure(pool, arena), asyncpg.InsufficientPrivilegeError)
        finally:
            await owner.execute("GRANT SELECT ON block TO tallybook_service")
        assert [await read(pool, arena) for arena in arenas] == [0, 0]


@pytest.mark.one_postgresql(ONE_IS_ENOUGH)
async def test_a_read_waits_for_no_other_node_than_its_own(dsn: str) -> None:
    async with two_nodes(dsn) as nodes, open_live_pool(nodes.database) as pool:
        arenas = [await open_arena(nodes.database) for _ in range(2)]
        while side(arenas[0].tournament_id) == side(arenas[1].tournament_id):
            arenas[1] = await open_arena(nodes.database)
        held, free = sorted(arenas, key=lambda arena: side(arena.tournament_id))
        assert [await read(pool, arena) for arena in arenas] == [0, 0]
        async with nodes.proxies[0].holding_answers(HEADS) as answered:
            waiting = asyncio.create_task(read(pool, held))
            await answered.wait()
            for _ in range(3):
                assert await read(pool, free) == 0
            assert not waiting.done()
        assert await waiting == 0


@pytest.mark.one_postgresql(ONE_IS_ENOUGH)
async def test_loadings_that_wait_for_one_node_leave_readers_to_another(
    dsn: str, owner: asyncpg.Connection, bounds: Bounds
) -> None:
    bounds(READERS_MAX=2)
    async with two_nodes(dsn) as nodes, open_live_pool(nodes.database) as pool:
        arenas = [await open_arena(nodes.database) for _ in range(8)]
        here = [arena for arena in arenas if side(arena.tournament_id) == 0]
        there = [arena for arena in arenas if side(arena.tournament_id) == 1]
        assert len(here) > 2
        assert there
        async with nodes.proxies[0].holding_answers("FROM checkpoint", number=2) as held:
            waiting = [asyncio.create_task(read(pool, arena)) for arena in here]
            await held.wait()
            for arena in there:
                assert await read(pool, arena) == 0
            assert not any(task.done() for task in waiting)
        assert await asyncio.gather(*waiting) == [0] * len(here)


async def test_a_live_that_is_far_behind_is_brought_up_to_date_in_parts_between_which_it_shows_whole_blocks(
    database: Database, owner: asyncpg.Connection, bounds: Bounds
) -> None:
    arena = await open_arena(database)
    async with open_live_pool(database) as pool, pool.pinned(arena.tournament_id) as live:
        began_at, shown = live.head.sequence, set[tuple[int, int]]()

        async def look() -> None:
            while True:
                shown.add((live.head.sequence - began_at, total(live, arena)))
                await asyncio.sleep(0)

        points = PointsAdded(ranking_id=arena.ranking_id, deltas=arena.points(1).deltas)
        for _ in range(5):
            await record(owner, arena.tournament_id, points, points)
        bounds(BYTES_AT_ONCE_MAX=1)
        looking = asyncio.create_task(look())
        await pool.make_current(live)
        looking.cancel()
        assert shown >= {(2 * blocks, 2 * blocks) for blocks in range(5)}
        assert all(sequence == points and sequence % 2 == 0 for sequence, points in shown)
        assert total(live, arena) == 10


# ── In and out of memory ────────────────────────────────────────────────────────────────────────────────


async def test_requests_meanwhile_share_the_loading(database: Database) -> None:
    async with open_live_pool(database) as pool:
        arenas = [await open_arena(database) for _ in range(5)]
        before = LIVES_LOADED._value.get()
        pinned = await asyncio.gather(*(pool.pin(arena.tournament_id) for arena in arenas for _ in range(20)))
        assert LIVES_LOADED._value.get() - before == 5
        assert len(set(pinned)) == 5
        assert all(live.pins == 20 for live in pinned)


async def test_figures_show_how_far_a_loading_has_come(database: Database, dsn: str, owner: asyncpg.Connection) -> None:
    arena = await open_arena(database)
    await Worker(database).catch_up()
    loading_before, rows_before = LIVES_LOADING._value.get(), LOADED_ROWS._value.get()
    async with open_live_pool(database) as pool:
        async with holding(dsn, "LOCK TABLE total IN ACCESS EXCLUSIVE MODE"):
            loading = asyncio.create_task(pool.pin(arena.tournament_id))
            await until(lambda: waiting_for_locks(owner, "FROM total"))
            members = len(arena.competitors)
            assert LIVES_LOADING._value.get() - loading_before == 1
            assert LOADED_ROWS._value.get() - rows_before == members + members + 1  # and the unity
        await loading
        assert LIVES_LOADING._value.get() == loading_before


async def test_many_loadings_at_once_leave_connections_to_those_who_need_none_of_them(
    dsn: str, owner: asyncpg.Connection, bounds: Bounds
) -> None:
    bounds(READERS_MAX=2)
    async with open_database(dsn, name="test", connections_max=3) as database, open_live_pool(database) as pool:
        arenas, other = [await open_arena(database) for _ in range(8)], await open_arena(database)
        async with pool.pinned(other.tournament_id) as live:
            async with holding(dsn, "LOCK TABLE checkpoint IN ACCESS EXCLUSIVE MODE"):
                loading = [asyncio.create_task(pool.pin(arena.tournament_id)) for arena in arenas]
                await until(lambda: waiting_for_locks(owner, "FROM checkpoint"))
                for _ in range(10):
                    await pool.make_current(live)  # or no connection is to be had
                assert not any(task.done() for task in loading)
            assert all(live.pins == 1 for live in await asyncio.gather(*loading))


async def test_waiting_too_long_for_a_loading_ends_in_an_error(
    dsn: str, owner: asyncpg.Connection, bounds: Bounds
) -> None:
    bounds(READERS_MAX=1)
    async with open_database(dsn, name="test") as database, open_live_pool(database) as pool:
        first, second = [await open_arena(database) for _ in range(2)]
        async with holding(dsn, "LOCK TABLE checkpoint IN ACCESS EXCLUSIVE MODE"):
            loading = asyncio.create_task(pool.pin(first.tournament_id))
            await until(lambda: waiting_for_locks(owner, "FROM checkpoint"))
            bounds(ACQUIRE_SECONDS_MAX=0.1)
            with pytest.raises(DatabaseUnavailable):
                await pool.pin(second.tournament_id)
        assert (await loading).pins == 1
        assert (await pool.pin(second.tournament_id)).pins == 1


async def test_a_reader_that_goes_away_does_not_end_the_loading(
    database: Database, dsn: str, owner: asyncpg.Connection
) -> None:
    arena = await open_arena(database)
    async with open_live_pool(database) as pool:
        async with holding(dsn, "LOCK TABLE checkpoint IN ACCESS EXCLUSIVE MODE"):
            first, second = (asyncio.create_task(pool.pin(arena.tournament_id)) for _ in range(2))
            await until(lambda: waiting_for_locks(owner, "FROM checkpoint"))
            first.cancel()
        assert (await second).pins == 1
        assert first.cancelled()


async def test_a_loading_that_nobody_waits_for_fails_in_silence(dsn: str, owner: asyncpg.Connection) -> None:
    complaints: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    before = asyncio.all_tasks()
    async with open_database(dsn, name="test") as database:
        arena = await open_arena(database)
        async with open_live_pool(database) as pool, holding(dsn, "LOCK TABLE checkpoint IN ACCESS EXCLUSIVE MODE"):
            asking = asyncio.create_task(pool.pin(arena.tournament_id))
            (pid,) = await until(lambda: waiting_for_locks(owner, "FROM checkpoint"))
            asking.cancel()
            await asyncio.wait([asking])
            await end_session(owner, pid)
            await until(lambda: not pool._loading.under_way)
    await until(lambda: asyncio.all_tasks() <= before)
    del asking
    gc.collect()
    assert complaints == []


async def test_the_least_recently_used_are_forgotten_and_the_pinned_are_not(database: Database) -> None:
    arenas = [await open_arena(database) for _ in range(6)]
    async with open_live_pool(database) as measuring, measuring.pinned(arenas[0].tournament_id) as live:
        size_bytes = live.size_bytes()
    ids = [arena.tournament_id for arena in arenas]
    async with open_live_pool(database, bytes_max=3 * size_bytes) as pool:
        async with pool.pinned(ids[0]):
            for tournament_id in ids[1:]:
                await look_at(pool, tournament_id)
            assert list(pool._tournaments) == [ids[0], *ids[-2:]]
            await look_at(pool, ids[-2])
            await look_at(pool, ids[1])
            assert list(pool._tournaments) == [ids[0], ids[-2], ids[1]]
            async with pool.pinned(ids[1]), pool.pinned(ids[2]), pool.pinned(ids[3]):
                assert list(pool._tournaments) == [ids[0], ids[-2], ids[1], ids[2], ids[3]]
            assert len(pool._tournaments) == 3
        assert pool._bytes == 3 * size_bytes


async def test_a_tournament_that_does_not_fit_alone_is_not_loaded_by_each_request(database: Database) -> None:
    first, other = [(await open_arena(database)).tournament_id for _ in range(2)]
    async with open_live_pool(database, bytes_max=1) as pool:
        async with pool.pinned(first) as live:
            pass
        async with pool.pinned(first) as again:
            assert again is live
        await look_at(pool, other)
        assert list(pool._tournaments) == [other]


async def look_at(pool: LivePool, tournament_id: TournamentId) -> None:
    async with pool.pinned(tournament_id) as live:
        assert live.head.sequence > 0


@settings(deadline=None, max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=st.lists(st.tuples(st.integers(0, 4), st.integers(1, 4)), max_size=12),
    lives_max=st.integers(0, 3),
)
async def test_whatever_is_pinned_at_once_the_sizes_are_those_of_what_is_kept(
    database: Database, steps: list[tuple[int, int]], lives_max: int
) -> None:
    """Also where what has just been loaded is too much, and leaves before those who asked have it."""
    if not hasattr(database, "arenas"):
        database.arenas = [await open_arena(database) for _ in range(5)]
    arenas: list[Arena] = database.arenas
    async with open_live_pool(database, bytes_max=lives_max * 6_000) as pool:

        async def look(arena: Arena) -> None:
            async with pool.pinned(arena.tournament_id) as live:
                assert pool._tournaments[arena.tournament_id] is live
                await pool.make_current(live)

        await asyncio.gather(*(look(arenas[n]) for n, times in steps for _ in range(times)))
        assert pool._sizes.keys() == pool._tournaments.keys()
        assert pool._bytes == sum(live.size_bytes() for live in pool._tournaments.values())
        assert pool._bytes <= pool._bytes_max or len(pool._tournaments) == 1


# ── Another history ─────────────────────────────────────────────────────────────────────────────────────


async def change_digest(owner: asyncpg.Connection, arena: Arena) -> None:
    """The last block is another one of the same length."""
    async with unguarded(owner):
        await owner.execute(
            """
            UPDATE block SET digest = sha256(block.digest)
            FROM head
            WHERE head.tournament_id = $1 AND block.tournament_id = $1 AND last_sequence = head.sequence
            """,
            arena.tournament_id,
        )
        await owner.execute("ALTER TABLE block ENABLE TRIGGER append_only")


async def become_shorter(owner: asyncpg.Connection, arena: Arena) -> None:
    await cut_tail(owner, arena.tournament_id, Sequence(5))


async def become_shorter_and_longer(owner: asyncpg.Connection, arena: Arena) -> None:
    await cut_tail(owner, arena.tournament_id, Sequence(5))
    for amount in (100, 200, 300, 400):
        await add(owner, arena, amount)


@pytest.mark.parametrize(
    ("replace", "expected"), [(change_digest, 7), (become_shorter, 1), (become_shorter_and_longer, 1001)]
)
async def test_a_log_that_was_replaced_is_noticed_once_and_then_read_again(
    database: Database,
    owner: asyncpg.Connection,
    replace: Callable[[asyncpg.Connection, Arena], Awaitable[None]],
    expected: int,
) -> None:
    async with open_live_pool(database) as pool:
        arena, other = await open_arena(database), await open_arena(database)
        for amount in (1, 2, 4):
            await add(owner, arena, amount)
        assert await read(pool, arena) == 7
        assert await read(pool, other) == 0
        async with pool.pinned(other.tournament_id) as others, pool.pinned(arena.tournament_id) as before:
            forks, epoch = FORKED._value.get(), database.epoch.number
            await replace(owner, arena)
            with pytest.raises(HistoryReplaced):
                await read(pool, arena)
            assert before.dropped
            assert (FORKED._value.get() - forks, database.epoch.number - epoch) == (1, 1)
            assert await read(pool, arena) == expected
            assert await read(pool, other) == 0
            assert not others.dropped
        assert FORKED._value.get() - forks == 1


# ── Poison ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", POISONS)
@pytest.mark.parametrize("loaded_before", [True, False])
async def test_an_event_that_cannot_be_folded_stops_its_tournament_alone_until_it_is_repaired(
    database: Database,
    owner: asyncpg.Connection,
    bounds: Bounds,
    name: str,
    loaded_before: bool,
) -> None:
    bounds(STOPPED_SECONDS=0.05)
    async with open_live_pool(database) as pool:
        arena, other = await open_arena(database), await open_arena(database)
        if loaded_before:
            await read(pool, arena)
        sequence = await poison(owner, arena, name)
        for _ in range(3):
            with pytest.raises(TournamentStopped):
                await read(pool, arena)
            assert await read(pool, other) == 0
        await until(lambda: stopped(owner, arena, sequence))
        await repair(owner, arena, sequence, 3)
        await until(lambda: can_be_read(pool, arena))
        assert await read(pool, arena) == 3
        await until(lambda: nothing_is_stopped(owner))


async def test_a_stopped_tournament_is_not_tried_again_at_once(
    database: Database, owner: asyncpg.Connection, bounds: Bounds
) -> None:
    bounds(STOPPED_SECONDS=10**9)  # however busy the machine is
    async with open_live_pool(database) as pool:
        arena = await open_arena(database)
        await poison(owner, arena, "unknown tag")
        before = LIVES_LOADED._value.get()
        for _ in range(20):
            with pytest.raises(TournamentStopped):
                await pool.pin(arena.tournament_id)
        assert LIVES_LOADED._value.get() - before == 1


@pytest.mark.parametrize("tables_there", [True, False])
async def test_a_tournament_that_has_not_stopped_is_read_without_writing(
    database: Database, dsn: str, owner: asyncpg.Connection, tables_there: bool
) -> None:
    """In a database that takes no writing statement, not even one that would find nothing to write."""
    arena = await open_arena(database)
    await add(owner, arena, 5)
    if tables_there:
        await Worker(database).catch_up()
    name = await owner.fetchval("SELECT current_database()")
    await owner.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    async with open_database(dsn, name="reader") as readers, open_live_pool(readers) as pool:
        async with readers.connection() as connection:
            with pytest.raises(asyncpg.ReadOnlySQLTransactionError):
                await connection.execute("DELETE FROM stopped")
        assert await read(pool, arena) == 5


async def test_a_block_without_its_events_is_no_continuation_of_the_log(
    database: Database, owner: asyncpg.Connection
) -> None:
    """Somebody wrote into the tables of the log, past the function that chains."""
    async with open_live_pool(database) as pool:
        arena, other = await open_arena(database), await open_arena(database)
        await read(pool, arena)
        await owner.execute(
            """
            INSERT INTO block
                (tournament_id, last_sequence, first_sequence, recorded_at, structure_sequence, digest, text, log_bytes,
                    append_id)
            SELECT tournament_id, sequence + 2, sequence + 1, now(), 1, sha256(digest), 'x', 1, gen_random_uuid()
            FROM head
            WHERE tournament_id = $1
            """,
            arena.tournament_id,
        )
        for _ in range(2):
            with pytest.raises(HistoryReplaced):
                await read(pool, arena)
            assert await read(pool, other) == 0


async def stopped(owner: asyncpg.Connection, arena: Arena, sequence: Sequence) -> bool:
    rows = await owner.fetch("SELECT tournament_id, sequence, reason FROM stopped")
    return [tuple(row[:2]) for row in rows] == [(arena.tournament_id, sequence)] and bool(rows[0]["reason"])


async def nothing_is_stopped(owner: asyncpg.Connection) -> bool:
    return await owner.fetchval("SELECT count(*) FROM stopped") == 0


async def can_be_read(pool: LivePool, arena: Arena) -> bool:
    try:
        await read(pool, arena)
    except TournamentStopped:
        return False
    return True


# ── Far behind ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def soon_far_behind(bounds: Bounds) -> int:
    """A live that lacks more than that many events is far behind."""
    bounds(BEHIND_EVENTS_MAX=10)
    return 10


def events_folded(live: LiveTournament) -> list[Sequence]:
    """The sequences that the live folds from now on; whoever asks follows it no further."""
    folded: list[Sequence] = []
    fold = live.fold

    def noting(events: Iterable[Recorded], head: Head) -> None:
        run = list(events)
        folded.extend(recorded.sequence for recorded in run)
        fold(run, head)

    live.fold = noting  # type: ignore[method-assign]
    return folded


async def test_a_live_that_is_far_behind_continues_from_the_tables(
    database: Database, owner: asyncpg.Connection, soon_far_behind: int
) -> None:
    async with open_live_pool(database) as pool:
        arena = await open_arena(database)
        async with pool.pinned(arena.tournament_id) as live:
            for limit in (soon_far_behind, soon_far_behind + 1):
                before, head, folded = total(live, arena), live.head.sequence, events_folded(live)
                for _ in range(limit):
                    await add(owner, arena, 1)
                await Worker(database).catch_up()
                assert await read(pool, arena) == before + limit
                assert live.head.sequence == head + limit
                assert len(folded) == (limit if limit == soon_far_behind else 0)
            await add(owner, arena, 1)
            assert await read(pool, arena) == before + limit + 1
            body = answered(live, ADD, RankingQuestion(arena.ranking_id))
            assert f'"total":{before + limit + 1}}}'.encode() in body


async def test_what_was_ordered_before_a_live_continued_from_the_tables_is_ordered_again(
    database: Database, owner: asyncpg.Connection, soon_far_behind: int
) -> None:
    async with open_live_pool(database) as pool:
        arena = await open_arena(database)
        first, second = arena.competitors
        async with pool.pinned(arena.tournament_id) as live:

            async def lines() -> list[CompetitorId]:
                order = await live.orders.of(arena.ranking_id, arena.unity_id)
                return [standing.competitor_id for standing in order.standings(0, 2)]

            assert await lines() == [first, second]
            for _ in range(soon_far_behind + 1):
                await add(owner, arena, -1)
            await Worker(database).catch_up()
            await read(pool, arena)
            assert await lines() == [second, first]


async def test_an_answer_that_was_begun_before_a_live_continued_from_the_tables_learns_of_an_erasure_after_it(
    database: Database, owner: asyncpg.Connection, soon_far_behind: int
) -> None:
    async with open_live_pool(database) as pool:
        arena = await open_arena(database)
        first = arena.competitors[0]
        async with pool.pinned(arena.tournament_id) as live:
            held = live.hold()
            assert held.competitor(first).name == "Ann"
            for _ in range(soon_far_behind + 1):
                await add(owner, arena, 1)
            await Worker(database).catch_up()
            await read(pool, arena)
            await record(owner, arena.tournament_id, CompetitorErased(competitor_id=first))
            await read(pool, arena)
            assert held.competitor(first).name == "#1"


async def test_where_somebody_follows_a_live_every_event_is_folded(
    database: Database, owner: asyncpg.Connection, soon_far_behind: int
) -> None:
    async with open_live_pool(database) as pool:
        arena = await open_arena(database)
        async with pool.pinned(arena.tournament_id) as live:
            followed: list[Sequence] = []
            live.followers.append(lambda recorded: followed.append(recorded.sequence))
            for _ in range(soon_far_behind + 1):
                await add(owner, arena, 1)
            await Worker(database).catch_up()
            await read(pool, arena)
            assert followed == list(range(5, 5 + soon_far_behind + 1))


@pytest.mark.parametrize("is_read", [True, False])
async def test_what_a_live_keeps_is_read_again_when_it_has_continued_from_the_tables(
    database: Database, owner: asyncpg.Connection, soon_far_behind: int, is_read: bool
) -> None:
    """Whether that happens after it was read, or while it is read: nothing that is kept holds up the tables."""
    async with open_live_pool(database) as pool:
        arena = await open_arena(database)
        async with pool.pinned(arena.tournament_id) as live:

            async def read_all() -> list[Sequence]:
                return [recorded.sequence async for run in pool.chunks(live, Sequence(0)) for recorded in run]

            async def read_slowly() -> list[Sequence]:
                found = await read_all()
                await go_on()
                return found

            async def go_on() -> None:
                board = live.board
                for _ in range(soon_far_behind + 1):
                    await add(owner, arena, 1)
                await Worker(database).catch_up()
                await read(pool, arena)
                assert live.board is not board

            kept = live.keep(Kept[list[Sequence]](lambda recorded: lambda found: found.append(recorded.sequence)))
            await kept.look_up(read_all if is_read else read_slowly)
            if is_read:
                assert kept.value is not None
                await go_on()
            assert kept.value is None
            await kept.look_up(read_all)
            await add(owner, arena, 1)
            await read(pool, arena)
            assert kept.value == list(range(1, live.head.sequence + 1))
            live.let_go(kept)
            assert live.followers == []


async def test_a_live_that_is_far_behind_another_history_is_dropped(
    database: Database, owner: asyncpg.Connection, soon_far_behind: int
) -> None:
    async with open_live_pool(database) as pool:
        arena = await open_arena(database)
        async with pool.pinned(arena.tournament_id) as live:
            await change_digest(owner, arena)
            for _ in range(soon_far_behind + 1):
                await add(owner, arena, 1)
            with pytest.raises(HistoryReplaced):
                await read(pool, arena)
            assert live.dropped


async def test_reads_are_expected_to_wait_by_the_time_that_each_group_of_them_took(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, loop = 100.0, asyncio.get_running_loop()
    monkeypatch.setattr(pool_module, "time", SimpleNamespace(monotonic=lambda: now))
    reads = pool_module._Reads()
    reads.put(loop.create_future() for _ in range(10))
    for _ in range(3):
        now += 0.5
        reads.wake(2)
    reads.put(loop.create_future() for _ in range(4))
    assert reads.late_seconds() == 0  # eight of a quarter of a second
    reads.put([loop.create_future()])
    assert reads.late_seconds() == 2.25


async def test_a_defect_drops_the_board_unless_it_was_only_just_loaded(dsn: str, bounds: Bounds) -> None:
    async with desks_at(dsn, 1) as (desk,):
        arena = await open_arena(desk.database)
        async with desk.live_pool.pinned(arena.tournament_id) as live:
            for seconds, dropped in ((inf, False), (0.0, True)):
                bounds(RELOADED_SECONDS=seconds)
                assert isinstance(desk.live_pool.defective(live, ZeroDivisionError()), TournamentDefect)
                assert live.dropped is dropped


async def test_a_dropped_live_is_not_watched_even_if_a_task_that_holds_it_asks(
    dsn: str,
) -> None:
    async with desks_at(dsn, 1) as (desk,):
        arena = await open_arena(desk.database)
        expiring = UnityAdded(
            ranking_id=arena.ranking_id, unity_id=UnityId(9), name="Form", lasts="P1W", expires_on=ExpiresOn.DAY
        )
        async with desk.database.connection() as connection:
            await record(connection, arena.tournament_id, expiring)
        async with desk.live_pool.pinned(arena.tournament_id) as live:
            await desk.live_pool.make_current(live)
            assert list(desk.live_pool.expiring) == [live]
            desk.live_pool.drop(live)
            live.forget_checked()  # the clock was put back
            assert list(desk.live_pool.expiring) == []
