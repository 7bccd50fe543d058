"""Workers: whatever happens to them, the tables are those of a prefix of the log, and follow it to its head."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextlib import AsyncExitStack
from itertools import count
from typing import Any, Final

import asyncpg
import pytest
from structlog.testing import capture_logs

from engine.database.pool import Database, open_database
from engine.domain.errors import DatabaseUnavailable
from engine.domain.events import PointsAdded
from engine.domain.terms import OPERATOR, TournamentId
from engine.log import heads, tails
from engine.process.background import background
from projections.live import tournament
from projections.tables import tables
from projections.tables import worker as worker_module
from projections.tables.tables import Touched
from projections.tables.wakeup import CHANNEL, HINTS_MAX, TOURNAMENTS_MAX, Waker
from projections.tables.worker import Worker, work_by_nodes
from tests.bounds import Bounds
from tests.calls import Calls
from tests.conftest import A_COMMIT_EACH, COMMITS_OF_OTHERS, TOLD_AT_THEIR_NODE, only_distributed
from tests.desks import Arena, end_session, holding, open_arena, record, until, waiting_for_locks
from tests.poison import POISONS, append_text, poison, repair
from tests.projections.pacing import AlwaysOver
from tests.projections.working import NEVER_SECONDS, working
from tests.proxy import proxy
from tests.restoring import backup
from tests.tournaments import open_new_tournament


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
        tail = await tails.tail(connection, tournament_id, heads.beginning(tournament_id), blocks_max=100_000)
        replayed = tournament.LiveTournament(tournament_id, heads.beginning(tournament_id), tournament.Board())
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
        assert await Worker(database).catch_up() == 1  # a wait for the lock would end as an error
        assert not await are_up_to_date(owner, claimed)
        assert await are_up_to_date(owner, other)
    assert await Worker(database).catch_up() == 1


@pytest.mark.parametrize("statement", ["FROM block", "INTO total", "UPDATE checkpoint"])
async def test_a_worker_that_is_killed_in_the_middle_leaves_nothing_half_done(
    database: Database, dsn: str, addresses: list[str], owner: asyncpg.Connection, statement: str
) -> None:
    """Held up by a foreign lock: before it reads, before it writes, before it says how far it is."""
    arena = await open_arena(database)
    await Worker(database).catch_up()
    before = await owner.fetchrow("SELECT * FROM checkpoint")
    await add(owner, arena, 1, 2, 4)
    lock = {
        "FROM block": "LOCK TABLE block IN ACCESS EXCLUSIVE MODE",
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
            END $$
            """
        )
        await owner.execute(
            """
            CREATE TRIGGER hold BEFORE UPDATE ON checkpoint FOR EACH ROW EXECUTE FUNCTION hold()
            """
        )
    async with AsyncExitStack() as stack:
        for address in addresses if statement == "UPDATE checkpoint" else [dsn]:  # the trigger is executed by a node
            await stack.enter_async_context(holding(address, lock))
        working = asyncio.create_task(Worker(database).catch_up())
        (pid,) = await until(lambda: waiting_for_locks(owner, statement))
        await end_session(owner, pid)
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
            await until(lambda: are_up_to_date(owner, *others))
            assert not await are_up_to_date(owner, held)
        await Worker(database).catch_up()
    await Worker(database).catch_up()
    assert await are_up_to_date(owner, held)


# ── Many tournaments in one transaction ─────────────────────────────────────────────────────────────────


async def test_others_get_their_turns_however_many_events_are_folded(
    database: Database, owner: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    arena, turns = await open_arena(database), count()
    points = PointsAdded(ranking_id=arena.ranking_id, deltas=arena.points().deltas)
    await record(owner, arena.tournament_id, *[points] * 30)
    monkeypatch.setattr(worker_module, "TimeSlice", AlwaysOver)
    monkeypatch.setattr(AlwaysOver, "meanwhile", lambda: next(turns))
    await Worker(database).catch_up()
    assert next(turns) >= 30


async def test_two_workers_over_many_tournaments_fold_each_event_once_while_more_come_in(
    dsn: str, owner: asyncpg.Connection, bounds: Bounds
) -> None:
    bounds(BATCH_TOURNAMENTS_MAX=7)
    async with open_database(dsn, name="one") as one, open_database(dsn, name="other") as other:
        workers = Worker(one), Worker(other)
        arenas = [await open_arena(one) for _ in range(40)]
        grown = asyncio.Event()

        async def grow() -> None:
            for amount in range(5):
                for arena in arenas:
                    await add(owner, arena, amount)
            grown.set()

        async def work(worker: Worker) -> int:
            events = 0
            while not grown.is_set():
                events += await worker.catch_up()
            return events

        _, *events = await asyncio.gather(grow(), *map(work, workers))
        assert sum(events) + await workers[0].catch_up() == 40 * (4 + 5)
        for arena in arenas:
            assert await totals(owner, arena) == {arena.competitors[0]: 10}
            await assert_the_tables_are_the_log(one, arena.tournament_id)


async def spoil_an_event(owner: asyncpg.Connection, arena: Arena) -> None:
    await poison(owner, arena, "unknown tag")


async def spoil_a_row(owner: asyncpg.Connection, arena: Arena) -> None:
    body = '{"competitor_id":999999,"name":"U+0000: \\u0000"}'
    await append_text(owner, arena.tournament_id, "CompetitorRegistered", body)


async def spoil_the_tags(owner: asyncpg.Connection, arena: Arena) -> None:
    body = '{"competitor_id":999999,"name":"Eve","tags":["U+0000: \\u0000"]}'
    await append_text(owner, arena.tournament_id, "CompetitorRegistered", body)


async def spoil_the_chain(owner: asyncpg.Connection, arena: Arena) -> None:
    await owner.execute("UPDATE checkpoint SET digest = sha256('') WHERE tournament_id = $1", arena.tournament_id)


@pytest.mark.parametrize("spoil", [spoil_an_event, spoil_a_row, spoil_the_tags, spoil_the_chain])
@pytest.mark.one_postgresql(A_COMMIT_EACH)
async def test_what_is_wrong_with_one_of_many_keeps_it_alone_and_the_others_together(
    database: Database, owner: asyncpg.Connection, spoil: Callable[[asyncpg.Connection, Arena], Awaitable[None]]
) -> None:
    arenas = [await open_arena(database) for _ in range(12)]
    worker = Worker(database)
    await worker.catch_up()
    bad = arenas[5]
    others = [arena for arena in arenas if arena is not bad]
    await spoil(owner, bad)
    for arena in arenas:
        await add(owner, arena, 1)
    with capture_logs() as said:
        assert await worker.catch_up() == len(others)
    assert batches(said) == [1] * len(others)
    alarms = {line["tournament_id"] for line in said if line["event"] in ("tournament_stopped", "log_forked")}
    assert alarms == {bad.tournament_id}
    for arena in arenas:
        await add(owner, arena, 2)
    with capture_logs() as said:
        assert await worker.catch_up() == len(others)
    assert batches(said) == [len(others)]
    assert not await are_up_to_date(owner, bad)
    for arena in others:
        await assert_the_tables_are_the_log(database, arena.tournament_id)


def batches(said: list[MutableMapping[str, Any]]) -> list[int]:
    """How many tournaments were folded together, batch after batch."""
    return [line["tournaments"] for line in said if line["event"] == "tables_folded"]


@pytest.mark.one_postgresql(A_COMMIT_EACH)
async def test_a_tournament_that_is_repaired_is_folded_together_with_the_others_again(
    database: Database, owner: asyncpg.Connection, bounds: Bounds
) -> None:
    bounds(STOPPED_RETRY_SECONDS=0.0)
    arenas = [await open_arena(database) for _ in range(3)]
    worker = Worker(database)
    sequence = await poison(owner, arenas[1], "unknown tag")
    await worker.catch_up()
    assert await owner.fetchval("SELECT count(*) FROM stopped") == 1
    await repair(owner, arenas[1], sequence, 100)
    await worker.catch_up()
    assert await owner.fetchval("SELECT count(*) FROM stopped") == 0
    for arena in arenas:
        await add(owner, arena, 1)
    with capture_logs() as said:
        await worker.catch_up()
    assert batches(said) == [3]


async def test_boards_that_were_folded_in_a_batch_that_was_rolled_back_are_thrown_away(
    database: Database, owner: asyncpg.Connection
) -> None:
    arenas = [await open_arena(database) for _ in range(6)]
    worker = Worker(database)
    for arena in arenas:
        await add(owner, arena, 1)
    await worker.catch_up()
    await poison(owner, arenas[-1], "unknown unity")  # the last: the others have been folded before it is found
    for arena in arenas:
        await add(owner, arena, 10)
    assert await worker.catch_up() == 5
    for arena in arenas[:-1]:
        assert await totals(owner, arena) == {arena.competitors[0]: 11}
        await assert_the_tables_are_the_log(database, arena.tournament_id)


async def test_a_defect_that_one_of_many_meets_does_not_hold_up_the_others(
    database: Database, owner: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch, bounds: Bounds
) -> None:
    bounds(WORKER_POLL_SECONDS=0.05)
    arenas = [await open_arena(database) for _ in range(6)]
    met = arenas[2].tournament_id
    save = tables.save

    async def defective(connection: asyncpg.Connection, touched: Mapping[TournamentId, Touched]) -> None:
        assert met not in touched
        await save(connection, touched)

    monkeypatch.setattr(tables, "save", defective)
    async with working(database):
        await until(lambda: are_up_to_date(owner, *(arena for arena in arenas if arena.tournament_id != met)))
        assert not await are_up_to_date(owner, arenas[2])
        assert await until(lambda: owner.fetch("SELECT DISTINCT tournament_id FROM defect")) == [(met,)]
        monkeypatch.setattr(tables, "save", save)
        await until(lambda: are_up_to_date(owner, *arenas))


@pytest.mark.one_postgresql(A_COMMIT_EACH)
async def test_a_busy_tournament_has_no_more_of_a_batch_than_the_others(
    database: Database, owner: asyncpg.Connection, bounds: Bounds
) -> None:
    bounds(TAIL_EVENTS_MAX=30)
    busy, *others = [await open_arena(database) for _ in range(3)]
    worker = Worker(database)
    await worker.catch_up()
    await add(owner, busy, *[1] * 100)
    for arena in others:
        await add(owner, arena, 1)
    folded = await worker._fold([arena.tournament_id for arena in (busy, *others)])
    assert folded.events == 10 + 1 + 1
    assert folded.left == {busy.tournament_id}
    assert await are_up_to_date(owner, *others)
    assert await worker.catch_up() == 90


@pytest.mark.one_postgresql(A_COMMIT_EACH)
async def test_what_is_too_heavy_for_a_batch_is_folded_alone_next(
    database: Database, owner: asyncpg.Connection, bounds: Bounds
) -> None:
    arenas = [await open_arena(database) for _ in range(3)]
    worker = Worker(database)
    await worker.catch_up()
    for arena in arenas:
        await add(owner, arena, 1)
    bounds(TAIL_EVENTS_MAX=2)
    folded = await worker._fold([arena.tournament_id for arena in arenas])
    assert folded.events == 2
    assert worker._batches(folded.left) == [[arenas[2].tournament_id]]
    with capture_logs() as said:
        assert await worker.catch_up() == 1
    assert batches(said) == [1]
    assert await are_up_to_date(owner, *arenas)
    assert len(worker._batches(arena.tournament_id for arena in arenas)) == 1


@pytest.mark.one_postgresql("the commits are those of nodes, which wait for them as their settings say")
async def test_commits_of_a_worker_are_not_waited_for_and_nobody_elses_on_its_connection(
    dsn: str, owner: asyncpg.Connection
) -> None:
    await owner.execute(
        """
        CREATE TABLE seen AS SELECT '' AS setting WHERE false;
        CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
        BEGIN
            INSERT INTO tallybook.seen VALUES (current_setting('synchronous_commit'));
            RETURN NEW;
        END $$;
        CREATE TRIGGER see BEFORE UPDATE ON checkpoint FOR EACH ROW EXECUTE FUNCTION see()
        """
    )
    async with open_database(dsn, name="one", connections_max=1) as database:
        await open_arena(database)
        await Worker(database).catch_up()
        assert await owner.fetchval("SELECT array_agg(setting) FROM seen") == ["off"]
        async with database.connection() as connection:
            assert await connection.fetchval("SELECT current_setting('synchronous_commit')") == "on"


_NEVER_SCANNED: Final = (
    "event", "block", "competitor", "competition", "participant", "ranking", "enrolment", "unity", "total"
)  # fmt: skip


async def test_a_worker_that_planned_on_small_tables_does_not_scan_them_when_they_are_large(
    dsn: str, owner: asyncpg.Connection
) -> None:
    scans = "SELECT relname, seq_scan FROM pg_stat_user_tables WHERE relname = ANY($1)"
    async with open_database(dsn, name="one", connections_max=1) as database:
        small = await open_arena(database)
        worker = Worker(database)
        for _ in range(12):  # more often than it takes for a plan to be kept
            await add(owner, small, 1)
            worker._boards.drop(small.tournament_id)
            await worker.catch_up()
        await flush_statistics(database)
        before = dict(await owner.fetch(scans, _NEVER_SCANNED))
        arenas = [await open_arena(database) for _ in range(30)]
        for arena in arenas:
            await add(owner, arena, 1, 2, 3)
        await worker.catch_up()
        await flush_statistics(database)
        assert dict(await owner.fetch(scans, _NEVER_SCANNED)) == before


async def flush_statistics(database: Database) -> None:
    """Has the only connection of the pool tell what it has counted."""
    async with database.connection() as connection:
        await connection.execute("SELECT pg_stat_force_next_flush()")


# ── Poison ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", POISONS)
async def test_an_event_that_cannot_be_folded_stops_its_tournament_alone_until_it_is_repaired(
    database: Database, owner: asyncpg.Connection, bounds: Bounds, name: str
) -> None:
    bounds(STOPPED_RETRY_SECONDS=0.1, WORKER_POLL_SECONDS=0.05)
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
    database: Database, owner: asyncpg.Connection, bounds: Bounds
) -> None:
    """It can be folded, but no column takes what came of it: no request could have led to it."""
    bounds(WORKER_POLL_SECONDS=0.05)
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


@pytest.mark.one_postgresql(TOLD_AT_THEIR_NODE)
async def test_a_hint_wakes_a_worker_long_before_it_would_have_looked(
    database: Database, owner: asyncpg.Connection, bounds: Bounds
) -> None:
    bounds(WORKER_POLL_SECONDS=NEVER_SECONDS)
    arenas = [await open_arena(database) for _ in range(3)]
    async with working(database):
        await until(lambda: are_up_to_date(owner, *arenas))  # by the look that it begins with
        waker = Waker(database)
        waking = asyncio.create_task(waker.run())
        for amount in range(5):
            for arena in arenas:
                await add(owner, arena, amount)
                waker.appended(arena.tournament_id)
            await until(lambda: are_up_to_date(owner, *arenas))
        waking.cancel()
        await asyncio.wait([waking])


@pytest.mark.one_postgresql(TOLD_AT_THEIR_NODE)
async def test_a_hint_of_too_many_to_name_has_workers_look_for_themselves(
    database: Database, owner: asyncpg.Connection, bounds: Bounds
) -> None:
    bounds(WORKER_POLL_SECONDS=NEVER_SECONDS)
    arena = await open_arena(database)
    async with working(database):
        await until(lambda: are_up_to_date(owner, arena))
        waker = Waker(database)
        for n in range(HINTS_MAX * TOURNAMENTS_MAX):
            waker.appended(TournamentId(10**9 + n))
        waker.appended(arena.tournament_id)
        await add(owner, arena, 1)
        waking = asyncio.create_task(waker.run())
        await until(lambda: are_up_to_date(owner, arena))
        waking.cancel()
        await asyncio.wait([waking])
        await add(owner, arena, 1)
        await owner.execute("SELECT pg_notify($1, '')", CHANNEL)
        await until(lambda: are_up_to_date(owner, arena))


async def test_a_hint_of_what_does_not_exist_does_no_harm(
    database: Database, owner: asyncpg.Connection, bounds: Bounds
) -> None:
    bounds(WORKER_POLL_SECONDS=NEVER_SECONDS)
    arena = await open_arena(database)
    async with working(database):
        await until(lambda: are_up_to_date(owner, arena))
        for payload in ("999999", "0", "nonsense", ",,", "-1", f"{10**30}", "१"):
            await owner.execute("SELECT pg_notify($1, $2)", CHANNEL, payload)
        await add(owner, arena, 1)
        await owner.execute("SELECT pg_notify($1, $2)", CHANNEL, str(arena.tournament_id))
        await until(lambda: are_up_to_date(owner, arena))
    assert await owner.fetchval("SELECT count(*) FROM checkpoint") == 1


async def test_a_hint_after_a_quiet_time_does_not_wait(
    database: Database, owner: asyncpg.Connection, bounds: Bounds
) -> None:
    bounds(WORKER_POLL_SECONDS=NEVER_SECONDS, WORKER_ROUND_SECONDS_MIN=NEVER_SECONDS)
    arena = await open_arena(database)
    await Worker(database).catch_up()
    async with working(database):
        await until(lambda: owner.fetchval(_LISTENERS))
        await add(owner, arena, 1)
        await owner.execute("SELECT pg_notify($1, $2)", CHANNEL, str(arena.tournament_id))
        await until(lambda: are_up_to_date(owner, arena))


async def test_hints_gather_between_rounds(database: Database, owner: asyncpg.Connection, bounds: Bounds) -> None:
    bounds(WORKER_POLL_SECONDS=NEVER_SECONDS)
    pause = 5.0 if database.is_distributed else 0.5
    bounds(WORKER_ROUND_SECONDS_MIN=pause)
    arena = await open_arena(database)
    await Worker(database).catch_up()
    with capture_logs() as said:
        async with working(database):
            await until(lambda: owner.fetchval(_LISTENERS))
            started_at = time.monotonic()
            for _ in range(100):
                await add(owner, arena, 1)
                await owner.execute("SELECT pg_notify($1, $2)", CHANNEL, str(arena.tournament_id))
            await until(lambda: are_up_to_date(owner, arena))
            assert len(batches(said)) <= 2 + (time.monotonic() - started_at) / pause


async def test_what_a_round_leaves_over_is_folded_without_a_pause(
    database: Database, owner: asyncpg.Connection, bounds: Bounds
) -> None:
    bounds(WORKER_POLL_SECONDS=NEVER_SECONDS, WORKER_ROUND_SECONDS_MIN=NEVER_SECONDS, TAIL_EVENTS_MAX=3)
    arena = await open_arena(database)
    await Worker(database).catch_up()
    await add(owner, arena, *[1] * 30)
    async with working(database):
        await until(lambda: are_up_to_date(owner, arena))


@pytest.mark.parametrize("look_max", [1, 2, 7])
async def test_all_that_is_behind_at_the_start_is_folded_without_a_pause_however_little_a_look_shows(
    database: Database, owner: asyncpg.Connection, bounds: Bounds, look_max: int
) -> None:
    bounds(WORKER_POLL_SECONDS=NEVER_SECONDS, WORKER_ROUND_SECONDS_MIN=NEVER_SECONDS, LOOK_TOURNAMENTS_MAX=look_max)
    arenas = [await open_arena(database) for _ in range(7)]
    async with working(database):
        await until(lambda: are_up_to_date(owner, *arenas))


@pytest.mark.one_postgresql(COMMITS_OF_OTHERS)
async def test_a_worker_with_nothing_to_do_does_not_look_through_the_heads_until_something_is_committed(
    database: Database, owner: asyncpg.Connection, calls: Calls, bounds: Bounds
) -> None:
    bounds(WORKER_POLL_SECONDS=0.01)
    asked, looked = calls(tables, "moment"), calls(tables, "behind")
    arena = await open_arena(database)
    async with working(database):
        for amount in range(3):
            await add(owner, arena, amount)  # nobody gives a hint
            await until(lambda: are_up_to_date(owner, arena))
            asked_before = len(asked)
            await until(lambda before=asked_before: len(asked) > before + 50)
    assert len(looked) < len(asked) / 3


@only_distributed
async def test_each_node_has_a_worker_that_finds_what_it_has_without_a_hint_and_with_one(
    database: Database, owner: asyncpg.Connection, bounds: Bounds
) -> None:
    bounds(WORKER_POLL_SECONDS=0.05)
    arenas = [await open_arena(database) for _ in range(8)]
    assert len(set((await database.by_nodes([arena.tournament_id for arena in arenas])).values())) > 1
    async with background() as tasks:
        working = tasks.create_task(work_by_nodes(database))
        await until(lambda: all_up_to_date(owner, arenas))
        for arena in arenas:
            await add(owner, arena, 1)  # nobody gives a hint
        await until(lambda: all_up_to_date(owner, arenas))
        bounds(WORKER_POLL_SECONDS=NEVER_SECONDS)
        await asyncio.sleep(0.1)
        waker = Waker(database)
        waking = tasks.create_task(waker.run())
        for arena in arenas:
            await add(owner, arena, 1)
            waker.appended(arena.tournament_id)
        await until(lambda: all_up_to_date(owner, arenas))
        waking.cancel()
        working.cancel()


async def all_up_to_date(owner: asyncpg.Connection, arenas: list[Arena]) -> bool:
    return all([await are_up_to_date(owner, arena) for arena in arenas])


async def test_events_without_a_hint_are_found_although_a_look_shows_only_some_tournaments(
    database: Database, owner: asyncpg.Connection, bounds: Bounds
) -> None:
    bounds(WORKER_POLL_SECONDS=0.01, LOOK_TOURNAMENTS_MAX=2)
    arenas = [await open_arena(database) for _ in range(7)]
    async with working(database):
        await until(lambda: are_up_to_date(owner, *arenas))
        for arena in arenas:
            await add(owner, arena, 1)
            await until(lambda: are_up_to_date(owner, *arenas))


async def test_a_tournament_that_a_look_passed_by_because_another_worker_had_it_is_looked_at_again(
    database: Database, dsn: str, owner: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch, bounds: Bounds
) -> None:
    """The other one may have died with it; the sweep is elsewhere by then, and would take long to come round."""
    bounds(WORKER_POLL_SECONDS=0.01)

    async def nothing(*_: object) -> list[TournamentId]:
        return []

    claimed = await open_arena(database)
    await Worker(database).catch_up()
    async with working(database) as worker:
        await until(lambda: owner.fetchval(_LISTENERS))
        await until(lambda: not worker._sweep.hurried)
        monkeypatch.setattr(tables, "registered", nothing)  # from now on it finds nothing by itself
        claim = "SELECT 1 FROM checkpoint WHERE tournament_id = $1 FOR UPDATE"
        async with holding(dsn, claim, claimed.tournament_id):
            await add(owner, claimed, 1)
            await owner.execute("SELECT pg_notify($1, $2)", CHANNEL, str(claimed.tournament_id))
            await until(lambda: claimed.tournament_id in worker._known)
            assert not await are_up_to_date(owner, claimed)
        await until(lambda: are_up_to_date(owner, claimed))


async def test_a_hint_that_could_not_be_sent_is_sent_again(
    dsn: str, database: Database, owner: asyncpg.Connection, bounds: Bounds
) -> None:
    bounds(WORKER_POLL_SECONDS=NEVER_SECONDS)
    arena = await open_arena(database)
    async with working(database), proxy(dsn) as between, open_database(between.dsn, name="waker") as elsewhere:
        await until(lambda: are_up_to_date(owner, arena))
        between.refusing = True
        between.cut_all()
        await add(owner, arena, 1)
        waker = Waker(elsewhere)
        waker.appended(arena.tournament_id)
        waking = asyncio.create_task(waker.run())
        await until(lambda: between.refused > 1)
        between.refusing = False
        await until(lambda: are_up_to_date(owner, arena))
        waking.cancel()
        await asyncio.wait([waking])


_LISTENERS: Final = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'"


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
    dsn: str, owner: asyncpg.Connection, bounds: Bounds
) -> None:
    bounds(WORKER_POLL_SECONDS=0.1)
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


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("away", "back", "error"),
    [
        ("ALTER SCHEMA tallybook RENAME TO away", "ALTER SCHEMA away RENAME TO tallybook", "UndefinedTableError"),
        ("ALTER TABLE append_lock RENAME TO away", "ALTER TABLE away RENAME TO append_lock", "UndefinedTableError"),
        (
            "ALTER TABLE checkpoint RENAME sequence TO away",
            "ALTER TABLE checkpoint RENAME away TO sequence",
            "UndefinedColumnError",
        ),
        (
            "REVOKE USAGE ON SCHEMA tallybook FROM tallybook_service",
            "GRANT USAGE ON SCHEMA tallybook TO tallybook_service",
            "UndefinedTableError",
        ),
        (
            "REVOKE SELECT ON checkpoint FROM tallybook_service",
            "GRANT SELECT ON checkpoint TO tallybook_service",
            "InsufficientPrivilegeError",
        ),
    ],
)
async def test_a_worker_continues_when_what_is_missing_for_a_while_is_there_again(
    database: Database, dsn: str, bounds: Bounds, away: str, back: str, error: str
) -> None:
    """As in the midst of a restore, where tables come one after the other and rights last."""
    bounds(WORKER_POLL_SECONDS=0.1)
    search_path = {"search_path": "tallybook, away"}
    restorer = await asyncpg.connect(dsn, server_settings=search_path)
    try:
        arena = await open_arena(database)
        with capture_logs() as said:
            async with working(database):
                await until(lambda: are_up_to_date(restorer, arena))
                await add(restorer, arena, 1)
                await restorer.execute(away)

                def failed() -> list[MutableMapping[str, Any]]:
                    return [line for line in said if line["event"] == "worker_failed" and error in str(line)]

                await until(lambda: len(failed()) > 2)
                assert {line["log_level"] for line in failed()} == {"error"}
                await restorer.execute(back)
                await add(restorer, arena, 2)
                await until(lambda: are_up_to_date(restorer, arena))
        await assert_the_tables_are_the_log(database, arena.tournament_id)
    finally:
        await restorer.close()


async def test_a_worker_that_kept_the_board_of_a_lost_tournament_folds_the_one_that_has_its_id_now(
    dsn: str, database: Database
) -> None:
    worker = Worker(database)
    async with backup(dsn) as restore:
        lost = await open_arena(database)
        await worker.catch_up()
        await restore()
        another = await open_new_tournament(database, actor=OPERATOR, tournament_id=lost.tournament_id)
        await worker.catch_up()
        await assert_the_tables_are_the_log(database, another)


async def test_a_worker_keeps_the_board_that_it_has_saved(database: Database, calls: Calls) -> None:
    arena, loads = await open_arena(database), calls(tables, "load_boards")
    worker = Worker(database)
    for amount in range(10):
        async with database.connection() as connection:
            await add(connection, arena, amount)
        await worker.catch_up()
    assert sum(len(tournament_ids) for _, tournament_ids in loads) <= 1
    await assert_the_tables_are_the_log(database, arena.tournament_id)
