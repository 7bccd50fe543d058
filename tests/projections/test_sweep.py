"""The sweep: comes by every tournament, and no look costs more where there are more of them."""

import asyncpg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.database.pool import Database
from engine.domain.terms import OPERATOR, TournamentId
from projections.board.board import FOLD_VERSION
from projections.tables import sweep, tables
from projections.tables.sweep import Sweep
from tests.bounds import Bounds, set_bounds
from tests.conftest import COMMITS_OF_OTHERS
from tests.projections.written import on_the_database
from tests.tournaments import open_new_tournament

MANY = 3 * sweep.LOOK_TOURNAMENTS_MAX

# As an opening leaves them, but for the one event and its digest, which nothing here reads; the tables are up to date.
FILL = """
    WITH opened AS (
        INSERT INTO tournament (tournament_id, slug, name)
        SELECT n, 'filler-' || n, 'Filler' FROM generate_series($1::bigint, $2::bigint) AS n
        RETURNING tournament_id
    ),
    lockable AS (
        INSERT INTO append_lock (tournament_id)
        SELECT tournament_id FROM opened
    ),
    headed AS (
        INSERT INTO block
            (tournament_id, last_sequence, first_sequence, recorded_at, structure_sequence, digest, text, log_bytes,
                append_id)
        SELECT tournament_id, 1, 1, now(), 1, genesis_digest(tournament_id), 'x', 1, gen_random_uuid() FROM opened
    )
    INSERT INTO checkpoint (tournament_id, sequence, digest, recorded_at, fold_version)
    SELECT tournament_id, 1, genesis_digest(tournament_id), now(), $3 FROM opened
"""


async def fill(owner: asyncpg.Connection, first: int, last: int) -> None:
    await owner.execute(FILL, first, last, FOLD_VERSION)


@on_the_database
@given(look_max=st.integers(1, 9), count=st.integers(0, 8), start=st.integers(0, 9), late=st.integers(0, 3))
async def test_a_round_comes_by_every_tournament_wherever_it_begins(
    database: Database, owner: asyncpg.Connection, look_max: int, count: int, start: int, late: int
) -> None:
    while await owner.fetchval("SELECT count(*) FROM tournament") < count:
        await open_new_tournament(database, actor=OPERATOR)
    everybody = {row[0] for row in await owner.fetch("SELECT tournament_id FROM tournament")}
    begins = sorted({0, *everybody})
    with pytest.MonkeyPatch.context() as patched:
        set_bounds(patched, LOOK_TOURNAMENTS_MAX=look_max)
        going = Sweep(TournamentId(begins[start % len(begins)]))
        async with database.connection() as connection:
            for _ in range(late):  # it hurries again in the middle of a round
                await going.look(connection)
            going.hurry()
            found: list[TournamentId] = []
            looks = 0
            while going.hurried:
                chunk = await going.look(connection)
                assert len(chunk) <= look_max
                found += chunk
                looks += 1
    assert set(found) == everybody
    assert looks <= -(-len(everybody) // look_max) + 1


@pytest.mark.one_postgresql("each node counts what is read of its shards, and a look asks all of them")
async def test_a_look_at_three_times_as_many_tournaments_reads_no_more_rows(
    database: Database, owner: asyncpg.Connection
) -> None:
    read = []
    for first, last in ((1, MANY // 3), (MANY // 3 + 1, MANY)):
        await fill(owner, first, last)
        async with database.connection() as connection:
            before = await rows_read(connection, owner)
            assert await Sweep().look(connection) == []
            read.append(await rows_read(connection, owner) - before)
    assert 0 < read[1] <= read[0]


async def rows_read(connection: asyncpg.Connection, owner: asyncpg.Connection) -> int:
    """By all statements so far, of the tables that a look is about."""
    await connection.execute("SELECT pg_stat_force_next_flush()")
    await connection.execute("SELECT 1")
    await owner.execute("SELECT pg_stat_clear_snapshot()")
    rows: int = await owner.fetchval(
        """
        SELECT sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))
        FROM pg_stat_user_tables
        WHERE relname IN ('tournament', 'append_lock', 'block', 'checkpoint', 'stopped')
        """
    )
    return rows


@pytest.mark.one_postgresql(COMMITS_OF_OTHERS)
async def test_a_round_that_found_nothing_is_the_last_until_something_is_committed(
    database: Database, owner: asyncpg.Connection, bounds: Bounds
) -> None:
    bounds(LOOK_TOURNAMENTS_MAX=2)
    await fill(owner, 1, 5)
    going = Sweep()
    async with database.connection() as connection:
        while going.hurried:
            assert await going.look(connection) == []
        places = set()
        for _ in range(5):
            await going.look(connection)
            places.add(going._after)
        assert len(places) == 1
        await fill(owner, 6, 6)
        await owner.execute("UPDATE checkpoint SET sequence = 0 WHERE tournament_id = 6")
        found = [t for _ in range(4) for t in await going.look(connection)]
        assert TournamentId(6) in found


async def test_a_stopped_tournament_is_found_though_the_sweep_is_elsewhere(
    database: Database, owner: asyncpg.Connection, bounds: Bounds
) -> None:
    bounds(LOOK_TOURNAMENTS_MAX=2, STOPPED_RETRY_SECONDS=0.0)
    await fill(owner, 1, 9)
    await owner.execute("UPDATE checkpoint SET sequence = 0 WHERE tournament_id > 6")
    await owner.execute("INSERT INTO stopped SELECT n, 1, '' FROM generate_series(7, 9) AS n")
    async with database.connection() as connection:
        found = {t for _ in range(2) for t in await Sweep().look(connection)}
        assert found == {7, 8}
        going = Sweep()
        assert {t for _ in range(2) for t in await going.look(connection)} == {7, 8, 9}


async def test_several_sweeps_begin_in_different_places(database: Database, owner: asyncpg.Connection) -> None:
    async with database.connection() as connection:
        assert await tables.somewhere(connection) == 0
        await fill(owner, 1, 1_000)
        places = {(await Sweep.anywhere(connection))._after for _ in range(20)}
    assert len(places) > 10
