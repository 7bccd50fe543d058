"""Workers: whatever happens to them, the tables are those of a prefix of the log, and follow it to its head."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
import pytest

from engine import log
from engine.database import Database, open_database
from engine.errors import DatabaseUnavailable
from engine.events import PointsAdded
from engine.terms import TournamentId
from projections import live, tables
from projections import worker as worker_module
from projections.board import Board
from projections.wakeup import CHANNEL, TOURNAMENTS_MAX, Waker
from projections.worker import Worker
from tests.desks import Arena, holding, open_arena, record, until, waiting_for_locks
from tests.poison import POISONS, append_text, poison, repair
from tests.proxy import proxy

NEVER_SECONDS = 600.0
"""A poll that does not happen within a test."""


@asynccontextmanager
async def working(database: Database) -> AsyncIterator[Worker]:
    """A worker at work, for as long as the context lasts; it must not have ended by itself."""
    worker = Worker(database)
    task = asyncio.create_task(worker.run())
    try:
        yield worker
        assert not task.done()
    finally:
        task.cancel()
        await asyncio.wait([task])


async def add(connection: asyncpg.Connection, arena: Arena, *amounts: int) -> None:
    for amount in amounts:
        points = PointsAdded(ranking_id=arena.ranking_id, deltas=arena.points(amount).deltas)
        await record(connection, arena.tournament_id, points)


async def are_up_to_date(owner: asyncpg.Connection, *arenas: Arena) -> bool:
    ids = [arena.tournament_id for arena in arenas]
    behind: int = await owner.fetchval(
        """
        SELECT count(*)
        FROM head AS h
        LEFT JOIN checkpoint AS c ON c.tournament_id = h.tournament_id
        WHERE h.tournament_id = ANY($1::bigint[]) AND (c.sequence, c.digest) IS DISTINCT FROM (h.sequence, h.digest)
        """,
        ids,
    )
    return behind == 0


async def totals(owner: asyncpg.Connection, arena: Arena) -> dict[int, int]:
    rows = await owner.fetch("SELECT competitor_id, total FROM total WHERE tournament_id = $1", arena.tournament_id)
    return {row["competitor_id"]: row["total"] for row in rows}


async def assert_the_tables_are_the_log(database: Database, tournament_id: TournamentId) -> None:
    async with database.connection() as connection:
        tail = await log.tail(connection, tournament_id, log.beginning(tournament_id), blocks_max=100_000)
        replayed = live.Live(tournament_id, log.beginning(tournament_id), live.Tournament(), live.Board())
        replayed.fold(tail.events, tail.head)
        checkpoint = await tables.checkpoint(connection, tournament_id)
        assert checkpoint is not None
        assert checkpoint.head == tail.head
        assert await tables.load_board(connection, tournament_id) == replayed.board


# ── Several workers ─────────────────────────────────────────────────────────────────────────────────────


async def test_of_two_workers_exactly_one_advances_a_tournament_at_a_time(dsn: str, owner: asyncpg.Connection) -> None:
    async with open_database(dsn, name="one") as one, open_database(dsn, name="other") as other:
        workers = Worker(one), Worker(other)
        arenas = [await open_arena(one) for _ in range(5)]
        assert sum(await asyncio.gather(*(worker.catch_up() for worker in workers))) == 5 * 4
        for _ in range(20):
            for arena in arenas:
                await add(owner, arena, 1, 2)
            assert sum(await asyncio.gather(*(worker.catch_up() for worker in workers))) == 5 * 2
        for arena in arenas:
            assert await totals(owner, arena) == {arena.competitors[0]: 60}
            await assert_the_tables_are_the_log(one, arena.tournament_id)


async def test_workers_at_work_while_events_come_in_fold_each_event_once(dsn: str, owner: asyncpg.Connection) -> None:
    async with open_database(dsn, name="one") as one, open_database(dsn, name="other") as other:
        arenas = [await open_arena(one) for _ in range(3)]
        async with working(one), working(other):
            waker = Waker(one)
            waking = asyncio.create_task(waker.run())
            for amount in range(60):
                for arena in arenas:
                    await add(owner, arena, amount)
                    waker.appended(arena.tournament_id)
            await until(lambda: are_up_to_date(owner, *arenas))
            waking.cancel()
            await asyncio.wait([waking])
        for arena in arenas:
            await assert_the_tables_are_the_log(one, arena.tournament_id)


async def test_a_tournament_that_another_worker_has_claimed_is_left_to_it(
    database: Database, dsn: str, owner: asyncpg.Connection
) -> None:
    claimed, other = await open_arena(database), await open_arena(database)
    await Worker(database).catch_up()
    await add(owner, claimed, 1)
    await add(owner, other, 1)
    claim = "SELECT 1 FROM checkpoint WHERE tournament_id = $1 FOR UPDATE"
    async with holding(dsn, claim, claimed.tournament_id):
        started_at = time.monotonic()
        assert await Worker(database).catch_up() == 1
        assert time.monotonic() - started_at < 0.4  # nobody's lock was waited for
        assert not await are_up_to_date(owner, claimed)
        assert await are_up_to_date(owner, other)
    assert await Worker(database).catch_up() == 1


@pytest.mark.parametrize("statement", ["FROM event", "INTO total", "UPDATE checkpoint"])
async def test_a_worker_that_is_killed_in_the_middle_leaves_nothing_half_done(
    database: Database, dsn: str, owner: asyncpg.Connection, statement: str
) -> None:
    """Held up by a foreign lock: before it reads, before it writes, before it says how far it is."""
    arena = await open_arena(database)
    await Worker(database).catch_up()
    before = await owner.fetchrow("SELECT * FROM checkpoint")
    await add(owner, arena, 1, 2, 4)
    lock = {
        "FROM event": "LOCK TABLE event IN ACCESS EXCLUSIVE MODE",
        "INTO total": "LOCK TABLE total IN SHARE MODE",
        "UPDATE checkpoint": "SELECT pg_advisory_xact_lock(7)",
    }[statement]
    if statement == "UPDATE checkpoint":  # it cannot be locked beforehand: then the tournament would be left alone
        await owner.execute(
            """
            CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                PERFORM pg_advisory_xact_lock(7);
                RETURN NEW;
            END $$;
            CREATE TRIGGER hold BEFORE UPDATE ON checkpoint FOR EACH ROW EXECUTE FUNCTION hold()
            """
        )
    async with holding(dsn, lock):
        working = asyncio.create_task(Worker(database).catch_up())
        (pid,) = await until(lambda: waiting_for_locks(owner, statement))
        await owner.execute("SELECT pg_terminate_backend($1)", pid)
        with pytest.raises(DatabaseUnavailable):
            await working
    assert await owner.fetchrow("SELECT * FROM checkpoint") == before
    assert await totals(owner, arena) == {}
    assert await Worker(database).catch_up() == 3
    await assert_the_tables_are_the_log(database, arena.tournament_id)


async def test_a_worker_that_was_held_up_writes_nothing_over_what_another_did_meanwhile(
    dsn: str, owner: asyncpg.Connection
) -> None:
    """The one is slow between two batches, keeping its board; the other goes ahead; then the one goes on."""
    async with open_database(dsn, name="one") as one, open_database(dsn, name="other") as other:
        arena = await open_arena(one)
        slow, fast = Worker(one), Worker(other)
        for amount in range(1, 20):
            await add(owner, arena, amount)
            await (slow if amount % 3 == 0 else fast).catch_up()
        await assert_the_tables_are_the_log(one, arena.tournament_id)


async def test_rows_that_somebody_has_locked_hold_up_their_tournament_alone(
    database: Database, dsn: str, owner: asyncpg.Connection
) -> None:
    arenas = [await open_arena(database) for _ in range(12)]
    await Worker(database).catch_up()
    for arena in arenas:
        await add(owner, arena, 1)
    await Worker(database).catch_up()
    for arena in arenas:
        await add(owner, arena, 2)
    held, *others = arenas
    async with holding(dsn, "SELECT 1 FROM total WHERE tournament_id = $1 FOR UPDATE", held.tournament_id):
        async with working(database):
            await until(lambda: are_up_to_date(owner, *others), 3)
            assert not await are_up_to_date(owner, held)
        await Worker(database).catch_up()
    await Worker(database).catch_up()
    assert await are_up_to_date(owner, held)


# ── Poison ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", POISONS)
async def test_an_event_that_cannot_be_folded_stops_its_tournament_alone_until_it_is_repaired(
    database: Database, owner: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(worker_module, "STOPPED_RETRY_SECONDS", 0.1)
    monkeypatch.setattr(worker_module, "POLL_SECONDS", 0.05)
    arenas = [await open_arena(database) for _ in range(6)]
    bad = arenas[2]
    async with working(database):
        await until(lambda: are_up_to_date(owner, *arenas))
        sequence = await poison(owner, bad, name)
        await until(lambda: owner.fetchval("SELECT count(*) FROM stopped"))
        for amount in range(5):
            for arena in arenas:
                await add(owner, arena, amount)
        await until(lambda: are_up_to_date(owner, *(arena for arena in arenas if arena is not bad)))
        (stopped,) = await owner.fetch("SELECT tournament_id, sequence, reason FROM stopped")
        assert stopped["tournament_id"] == bad.tournament_id
        assert stopped["sequence"] == sequence
        assert stopped["reason"]
        assert not await are_up_to_date(owner, bad)
        await repair(owner, bad, sequence, 100)
        await until(lambda: are_up_to_date(owner, bad))
        assert await owner.fetchval("SELECT count(*) FROM stopped") == 0
        assert await totals(owner, bad) == {bad.competitors[0]: 110}
    await assert_the_tables_are_the_log(database, bad.tournament_id)


async def test_an_event_that_the_tables_cannot_hold_stops_its_tournament_alone(
    database: Database, owner: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It can be folded, but no column takes what came of it: no request could have led to it."""
    monkeypatch.setattr(worker_module, "POLL_SECONDS", 0.05)
    arenas = [await open_arena(database) for _ in range(6)]
    bad = arenas[2]
    await Worker(database).catch_up()
    body = '{"competitor_id":999999,"name":"U+0000: \\u0000"}'
    sequence = await append_text(owner, bad.tournament_id, "CompetitorRegistered", body)
    for arena in arenas:
        await add(owner, arena, 1)
    async with working(database):
        await until(lambda: are_up_to_date(owner, *(arena for arena in arenas if arena is not bad)))
        await until(lambda: owner.fetchval("SELECT count(*) FROM stopped"))
    stopped = await owner.fetchrow("SELECT tournament_id, sequence FROM stopped")
    assert tuple(stopped) == (bad.tournament_id, sequence + 1)  # the last of the batch
    assert await Worker(database).catch_up() == 0


# ── Waking up ───────────────────────────────────────────────────────────────────────────────────────────


async def test_a_hint_wakes_a_worker_long_before_it_would_have_looked(
    database: Database, owner: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_module, "POLL_SECONDS", NEVER_SECONDS)
    arenas = [await open_arena(database) for _ in range(3)]
    async with working(database):
        await until(lambda: are_up_to_date(owner, *arenas))  # by the look that it begins with
        waker = Waker(database)
        waking = asyncio.create_task(waker.run())
        for amount in range(5):
            for arena in arenas:
                await add(owner, arena, amount)
                waker.appended(arena.tournament_id)
            await until(lambda: are_up_to_date(owner, *arenas), 5)
        waking.cancel()
        await asyncio.wait([waking])


async def test_a_hint_of_too_many_to_name_has_workers_look_for_themselves(
    database: Database, owner: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_module, "POLL_SECONDS", NEVER_SECONDS)
    arena = await open_arena(database)
    async with working(database):
        await until(lambda: are_up_to_date(owner, arena))
        waker = Waker(database)
        for n in range(TOURNAMENTS_MAX + 1):
            waker.appended(TournamentId(10**9 + n))
        waker.appended(arena.tournament_id)
        await add(owner, arena, 1)
        waking = asyncio.create_task(waker.run())
        await until(lambda: are_up_to_date(owner, arena), 5)
        waking.cancel()
        await asyncio.wait([waking])
        await add(owner, arena, 1)
        await owner.execute("SELECT pg_notify($1, '')", CHANNEL)
        await until(lambda: are_up_to_date(owner, arena), 5)


async def test_a_hint_of_what_does_not_exist_does_no_harm(
    database: Database, owner: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_module, "POLL_SECONDS", NEVER_SECONDS)
    arena = await open_arena(database)
    async with working(database):
        await until(lambda: are_up_to_date(owner, arena))
        for payload in ("999999", "0", "nonsense", ",,", "-1", f"{10**30}", "१"):
            await owner.execute("SELECT pg_notify($1, $2)", CHANNEL, payload)
        await add(owner, arena, 1)
        await owner.execute("SELECT pg_notify($1, $2)", CHANNEL, str(arena.tournament_id))
        await until(lambda: are_up_to_date(owner, arena), 5)
    assert await owner.fetchval("SELECT count(*) FROM checkpoint") == 1


async def test_a_worker_that_loses_its_hints_still_catches_up(database: Database, owner: asyncpg.Connection) -> None:
    arena = await open_arena(database)
    async with working(database):
        await until(lambda: are_up_to_date(owner, arena))
        for amount in (1, 2):
            await until(lambda: end_sessions(owner, "LISTEN"))
            await add(owner, arena, amount)
            await until(lambda: are_up_to_date(owner, arena))
        # and listens again:
        await until(lambda: owner.fetchval("SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'"))


async def end_sessions(owner: asyncpg.Connection, query: str) -> int:
    """How many sessions, whose last statement began like this, were ended."""
    ended: int = await owner.fetchval(
        """
        SELECT count(pg_terminate_backend(pid))
        FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid() AND starts_with(query, $1)
        """,
        query,
    )
    return ended


async def test_a_worker_survives_a_database_that_is_away_for_a_while(
    dsn: str, owner: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_module, "POLL_SECONDS", 0.1)
    async with proxy(dsn) as between, open_database(between.dsn, name="test") as database:
        arena = await open_arena(database)
        async with working(database):
            await until(lambda: are_up_to_date(owner, arena))
            between.refusing = True
            between.cut_all()
            await add(owner, arena, 1)
            await until(lambda: between.refused > 3)
            assert not await are_up_to_date(owner, arena)
            between.refusing = False
            await until(lambda: are_up_to_date(owner, arena))


async def test_a_worker_keeps_the_board_that_it_has_saved(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    arena = await open_arena(database)
    loaded = []
    load_board = tables.load_board

    async def counted(connection: asyncpg.Connection, tournament_id: TournamentId) -> Board:
        loaded.append(tournament_id)
        return await load_board(connection, tournament_id)

    monkeypatch.setattr(tables, "load_board", counted)
    worker = Worker(database)
    for amount in range(10):
        async with database.connection() as connection:
            await add(connection, arena, amount)
        await worker.catch_up()
    assert len(loaded) <= 1
    await assert_the_tables_are_the_log(database, arena.tournament_id)
