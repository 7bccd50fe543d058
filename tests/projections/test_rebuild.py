"""Tables made again: every difference is reported and repaired, without holding anybody up or showing a part."""

import asyncio

import asyncpg
import pytest
from hypothesis import given, settings

from engine.database import pool
from engine.database.pool import Database, open_database
from engine.domain.errors import Conflict, DatabaseUnavailable, LogUnreadable
from engine.domain.events import CompetitorErased, Event, PointsAdded, PointsReversed
from engine.domain.terms import Sequence, TournamentId
from engine.log import tails
from engine.log.heads import Head
from projections.board.board import FOLD_VERSION
from projections.tables import rebuild as rebuild_module
from projections.tables import snapshots, tables
from projections.tables.rebuild import rebuild
from projections.tables.worker import Worker
from projections.verification.erasures import erase_in_log
from tests.bounds import Bounds
from tests.desks import Arena, desk_at, end_session, holding, open_arena, record, submit, until, waiting_for_locks
from tests.poison import cut_tail, poison
from tests.projections.working import NEVER_SECONDS, working
from tests.projections.written import (
    assert_live_shows_the_log,
    assert_tables_show_the_log,
    block_sizes,
    in_tables,
    made_by_fold,
    on_the_database,
    rich_histories,
    written,
)

_ROW_VERSIONS = "SELECT array_agg(xmin::text ORDER BY competitor_id) FROM competitor WHERE tournament_id = $1"

SPOILT = {
    "a total": ("UPDATE total SET total = total + 1 WHERE tournament_id = $1", "totals"),
    "a version": ("UPDATE unity SET version = version + 1 WHERE tournament_id = $1", "version"),
    "a name": ("UPDATE competitor SET name = 'spoilt' WHERE tournament_id = $1", "name"),
    "a list": ("UPDATE enrolment SET number = 10 - number WHERE tournament_id = $1", "participants"),
    "a missing row": ("DELETE FROM total WHERE tournament_id = $1", "totals"),
}


@pytest.fixture
async def arena(database: Database) -> Arena:
    """A tournament with points, its tables up to date."""
    arena = await open_arena(database)
    await point(database, arena)
    await Worker(database).catch_up()
    return arena


async def point(database: Database, arena: Arena, amount: int = 1) -> None:
    async with database.connection() as connection:
        event = PointsAdded(ranking_id=arena.ranking_id, deltas=arena.points(amount).deltas)
        await record(connection, arena.tournament_id, event)


@settings(on_the_database, max_examples=10)
@given(history=rich_histories, sizes=block_sizes)
async def test_tables_of_an_older_fold_or_spoilt_ones_become_what_the_log_says(
    database: Database, owner: asyncpg.Connection, history: list[Event], sizes: list[int]
) -> None:
    tournament_id = await written(database, history, sizes)
    for version in (FOLD_VERSION, FOLD_VERSION - 1):
        await Worker(database).catch_up()
        await made_by_fold(version, owner, tournament_id)
        rebuilt = await rebuild(database, tournament_id)
        assert rebuilt.replaced
        assert bool(rebuilt.differences) == (version == FOLD_VERSION)
        await assert_tables_show_the_log(database, tournament_id)
        await assert_live_shows_the_log(database, tournament_id)
        assert not (await rebuild(database, tournament_id)).replaced


@pytest.mark.parametrize("what", SPOILT)
async def test_differences_are_printed(database: Database, owner: asyncpg.Connection, arena: Arena, what: str) -> None:
    statement, field = SPOILT[what]
    await owner.execute(statement, arena.tournament_id)
    rebuilt = await rebuild(database, arena.tournament_id)
    assert rebuilt.replaced
    assert any(field in difference for difference in rebuilt.differences), rebuilt.differences
    await assert_tables_show_the_log(database, arena.tournament_id)


async def test_tables_that_are_right_are_not_written(
    database: Database, owner: asyncpg.Connection, arena: Arena
) -> None:
    await point(database, arena)
    undone = arena.points(-1).deltas
    async with database.connection() as connection:
        for sequence in (Sequence(5), Sequence(4)):  # the tables have them in another order than the fold
            event = PointsReversed(ranking_id=arena.ranking_id, deltas=undone, reverses=sequence, undone=True)
            await record(connection, arena.tournament_id, event)
    await Worker(database).catch_up()
    before = await owner.fetchval(_ROW_VERSIONS, arena.tournament_id)
    assert not (await rebuild(database, arena.tournament_id)).replaced
    assert await owner.fetchval(_ROW_VERSIONS, arena.tournament_id) == before


async def test_tables_that_lag_are_compared_where_they_stand(database: Database, arena: Arena) -> None:
    await point(database, arena)
    rebuilt = await rebuild(database, arena.tournament_id)
    assert (rebuilt.sequence, rebuilt.replaced) == (5, False)


async def test_a_tournament_without_tables_is_left_to_the_workers(database: Database) -> None:
    arena = await open_arena(database)
    assert (await rebuild(database, arena.tournament_id)).sequence == 0
    await Worker(database).catch_up()
    await assert_tables_show_the_log(database, arena.tournament_id)


async def test_tables_of_a_newer_fold_are_not_ours_to_touch(
    database: Database, owner: asyncpg.Connection, arena: Arena
) -> None:
    await made_by_fold(FOLD_VERSION + 1, owner, arena.tournament_id)
    before = await in_tables(database, arena.tournament_id)
    with pytest.raises(Conflict, match="newer version"):
        await rebuild(database, arena.tournament_id)
    assert await in_tables(database, arena.tournament_id) == before


async def test_tables_of_another_log_are_made_those_of_this_one(
    database: Database, owner: asyncpg.Connection, arena: Arena
) -> None:
    """As after a database was restored to an earlier moment, but for the tables."""
    await cut_tail(owner, arena.tournament_id, 4)
    await point(database, arena, 9)
    rebuilt = await rebuild(database, arena.tournament_id)
    assert rebuilt.differences == ["the tables stand at event 5 of a log that has since been replaced"]
    await assert_tables_show_the_log(database, arena.tournament_id)


async def test_a_log_that_cannot_be_folded_leaves_the_tables_as_they_are(
    database: Database, owner: asyncpg.Connection, arena: Arena
) -> None:
    before = await in_tables(database, arena.tournament_id)
    sequence = await poison(owner, arena, "unknown tag")
    await owner.execute("UPDATE checkpoint SET sequence = h.sequence, digest = h.digest FROM head AS h")
    with pytest.raises(LogUnreadable) as unreadable:
        await rebuild(database, arena.tournament_id)
    assert unreadable.value.sequence == sequence
    assert (await in_tables(database, arena.tournament_id))[1] == before[1]


async def test_one_that_is_killed_halfway_leaves_everything_as_it_was(
    dsn: str, database: Database, owner: asyncpg.Connection, arena: Arena, monkeypatch: pytest.MonkeyPatch
) -> None:
    await owner.execute("UPDATE unity SET version = 99")
    monkeypatch.setitem(pool._SERVICE_SETTINGS, "lock_timeout", "60s")  # however busy the machine is
    before = await in_tables(database, arena.tournament_id)
    async with holding(dsn, "SELECT 1 FROM total WHERE tournament_id = $1 FOR UPDATE", arena.tournament_id):
        rebuilding = asyncio.create_task(rebuild(database, arena.tournament_id))
        (pid,) = await until(lambda: waiting_for_locks(owner, "DELETE FROM total"))
        await end_session(owner, pid)
        with pytest.raises(DatabaseUnavailable):
            await rebuilding
    assert await in_tables(database, arena.tournament_id) == before
    assert (await rebuild(database, arena.tournament_id)).replaced
    await assert_tables_show_the_log(database, arena.tournament_id)


async def test_one_that_is_killed_leaves_no_name_that_was_erased_meanwhile(
    database: Database, arena: Arena, monkeypatch: pytest.MonkeyPatch, bounds: Bounds
) -> None:
    """The name is erased, and a worker has folded that, when the first snapshot with it has been written."""
    tail, save, erased = tails.tail, snapshots.save, arena.competitors[0]
    saved: list[tuple[Sequence, str]] = []
    bounds(INTERVAL_EVENTS_MIN=4, INTERVAL_EVENTS_PER_ROW=0, TAIL_EVENTS_MAX=1)
    for _ in range(8):
        await point(database, arena)
    await Worker(database).catch_up()

    async def erasing(connection: asyncpg.Connection, tournament_id: TournamentId, after: Head) -> tails.Tail:
        if after.sequence == 4:
            with monkeypatch.context() as of_others:
                of_others.setattr(snapshots, "save", save)
                await erase_in_log(database, tournament_id, erased)
                await Worker(database).catch_up()
        return await tail(connection, tournament_id, after)

    async def saving(connection: asyncpg.Connection, boards: dict[TournamentId, snapshots.Snapshot]) -> None:
        ((tournament_id, snapshot),) = boards.items()
        saved.append((snapshot.head.sequence, snapshot.board.competitors[erased].name))
        async with database.connection() as other, other.transaction():
            assert await tables.claim(other, [tournament_id]) == {}  # or a worker could erase in all but this one
        await save(connection, boards)

    async def killed(*_: object) -> None:
        raise DatabaseUnavailable

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(tails, "tail", erasing)
        meanwhile.setattr(snapshots, "save", saving)
        meanwhile.setattr(rebuild_module, "_switch", killed)
        with pytest.raises(DatabaseUnavailable):
            await rebuild(database, arena.tournament_id)
    assert saved == [(4, "Ann"), (8, f"#{erased}"), (12, f"#{erased}")]  # each once, so the work is linear
    async with database.connection() as connection:
        for sequence in await snapshots.sequences(connection, arena.tournament_id):
            snapshot = await snapshots.nearest(connection, arena.tournament_id, sequence)
            assert snapshot is not None
            assert snapshot.board.competitors[erased].name == f"#{erased}"


async def test_an_erasure_that_the_tables_do_not_show_yet_is_no_difference(database: Database, arena: Arena) -> None:
    async with database.connection() as connection:
        await record(connection, arena.tournament_id, CompetitorErased(competitor_id=arena.competitors[0]))
    assert not (await rebuild(database, arena.tournament_id)).replaced
    await Worker(database).catch_up()
    await assert_tables_show_the_log(database, arena.tournament_id)


async def test_readers_see_the_old_rows_until_the_new_ones_are_all_there(
    dsn: str, database: Database, owner: asyncpg.Connection, arena: Arena, monkeypatch: pytest.MonkeyPatch
) -> None:
    await owner.execute("UPDATE unity SET version = 99")
    monkeypatch.setitem(pool._SERVICE_SETTINGS, "lock_timeout", "60s")  # however busy the machine is
    before = await in_tables(database, arena.tournament_id)
    async with open_database(dsn, name="patient") as patient:
        async with holding(dsn, "SELECT 1 FROM total WHERE tournament_id = $1 FOR UPDATE", arena.tournament_id):
            rebuilding = asyncio.create_task(rebuild(patient, arena.tournament_id))
            await until(lambda: waiting_for_locks(owner, "DELETE FROM total"))
            assert await in_tables(database, arena.tournament_id) == before  # some are deleted already
            await point(database, arena)  # and who appends is not held up
        assert (await rebuilding).replaced


async def test_a_checkpoint_that_is_held_is_waited_for_but_not_for_ever(
    dsn: str, database: Database, arena: Arena, bounds: Bounds
) -> None:
    bounds(CLAIMS_MAX=3)
    held = "SELECT 1 FROM checkpoint WHERE tournament_id = $1 FOR UPDATE"
    async with holding(dsn, held, arena.tournament_id):
        with pytest.raises(Conflict, match="keep the tables locked"):
            await rebuild(database, arena.tournament_id)
    await rebuild(database, arena.tournament_id)


async def test_it_runs_while_others_write_and_a_worker_works(
    dsn: str, database: Database, owner: asyncpg.Connection
) -> None:
    arena = await open_arena(database)
    async with working(database), desk_at(dsn) as desk:

        async def points() -> None:
            for _ in range(300):
                await submit(desk, arena.tournament_id, arena.points())

        pointing = asyncio.create_task(points())
        replaced = 0
        while not (pointing.done() and replaced):
            await owner.execute("UPDATE unity SET version = version + 1000")
            replaced += (await rebuild(database, arena.tournament_id)).replaced
        await pointing
    await rebuild(database, arena.tournament_id)
    await Worker(database).catch_up()
    await assert_tables_show_the_log(database, arena.tournament_id)


async def test_snapshots_are_written_again_and_others_dropped(
    database: Database, owner: asyncpg.Connection, arena: Arena, bounds: Bounds
) -> None:
    bounds(INTERVAL_EVENTS_MIN=2, INTERVAL_EVENTS_PER_ROW=0, TAIL_EVENTS_MAX=1)
    stray = "INSERT INTO snapshot VALUES ($1, $2, 3, '', ''), ($1, $2 - 1, 4, '', '')"
    await owner.execute(stray, arena.tournament_id, FOLD_VERSION)
    await rebuild(database, arena.tournament_id)
    async with database.connection() as connection:
        written = await snapshots.sequences(connection, arena.tournament_id)
        assert written
        last = await snapshots.nearest(connection, arena.tournament_id, written[-1])
    assert last is not None
    assert await owner.fetchval("SELECT count(*) FROM snapshot") == len(written)


async def test_two_large_boards_may_be_compared_for_longer_than_a_transaction_may_be_idle_otherwise(
    database: Database,
) -> None:
    idle = "SELECT current_setting('idle_in_transaction_session_timeout')"
    async with database.connection() as connection:
        async with connection.transaction():
            await tables.take_time(connection)
            assert await connection.fetchval(idle) == "10min"
        assert await connection.fetchval(idle) == "10s"


async def test_the_snapshots_of_the_version_before_stay_until_the_version_after(
    database: Database, owner: asyncpg.Connection, arena: Arena
) -> None:
    """Its processes go on from them as long as they run."""
    versions = "SELECT array_agg(fold_version ORDER BY fold_version) FROM snapshot"
    await owner.execute(
        "INSERT INTO snapshot VALUES ($1, $2 - 1, 3, '', ''), ($1, $2 - 2, 3, '', '')",
        arena.tournament_id,
        FOLD_VERSION,
    )
    await made_by_fold(FOLD_VERSION - 1, owner, arena.tournament_id)
    assert (await rebuild(database, arena.tournament_id)).replaced
    assert await owner.fetchval(versions) == [FOLD_VERSION - 1]
    assert not (await rebuild(database, arena.tournament_id)).replaced
    assert await owner.fetchval(versions) is None


# ── A new version of the fold ───────────────────────────────────────────────────────────────────────────


async def test_a_worker_replaces_the_tables_of_an_older_fold_as_a_whole(
    dsn: str, database: Database, owner: asyncpg.Connection, arena: Arena
) -> None:
    """Whoever looks sees the old rows or the new ones; other tournaments are folded meanwhile."""
    other = await open_arena(database)
    right = await in_tables(database, arena.tournament_id)
    await owner.execute("UPDATE unity SET version = 999 WHERE tournament_id = $1", arena.tournament_id)
    await owner.execute(_MADE_BY, arena.tournament_id, FOLD_VERSION - 1)
    of_older_fold = await in_tables(database, arena.tournament_id)
    async with holding(dsn, "SELECT 1 FROM total WHERE tournament_id = $1 FOR UPDATE", arena.tournament_id):
        working = asyncio.create_task(Worker(database).run())
        await until(lambda: waiting_for_locks(owner, "DELETE FROM total"))  # it is in the middle of replacing them
        assert await in_tables(database, arena.tournament_id) == of_older_fold
        await until(lambda: _is_at(database, other, 4))
        await point(database, other)
        await until(lambda: _is_at(database, other, 5))
        assert await in_tables(database, arena.tournament_id) == of_older_fold
    try:
        await until(lambda: _shows(database, arena, right))
    finally:
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)


async def test_a_worker_replaces_more_outdated_tables_than_it_remembers(
    database: Database, owner: asyncpg.Connection, arena: Arena, bounds: Bounds
) -> None:
    bounds(OUTDATED_MAX=1, WORKER_POLL_SECONDS=NEVER_SECONDS)  # it looks again because there are more
    others = [await open_arena(database) for _ in range(2)]
    await Worker(database).catch_up()
    for each in (arena, *others):
        await made_by_fold(FOLD_VERSION - 1, owner, each.tournament_id)
    async with working(database):
        await until(lambda: _none_is_outdated(owner))


async def test_a_worker_looks_everywhere_only_if_there_were_more_outdated_tables_than_it_remembers(
    database: Database, arena: Arena, bounds: Bounds
) -> None:
    bounds(OUTDATED_MAX=1)
    other, worker = await open_arena(database), Worker(database)
    await worker.catch_up()
    first, second = arena.tournament_id, other.tournament_id
    for rounds, looks in (([[first, second]], True), ([[first], [second]], True), ([[first]], False)):
        for outdated in rounds:
            worker._note_outdated(outdated)
        await worker._replace_outdated()
        assert worker._something.is_set() is looks
        worker._something.clear()


async def test_tables_that_another_worker_has_replaced_stay(database: Database, arena: Arena) -> None:
    worker = Worker(database)
    await worker.catch_up()
    assert await worker._rebuild(arena.tournament_id) == 0


async def _none_is_outdated(owner: asyncpg.Connection) -> bool:
    return not await owner.fetchval("SELECT count(*) FROM checkpoint WHERE fold_version < $1", FOLD_VERSION)


_MADE_BY = "UPDATE checkpoint SET fold_version = $2 WHERE tournament_id = $1"


async def _is_at(database: Database, arena: Arena, sequence: int) -> bool:
    return (await in_tables(database, arena.tournament_id))[0] == sequence


async def _shows(database: Database, arena: Arena, right: object) -> bool:
    return await in_tables(database, arena.tournament_id) == right
