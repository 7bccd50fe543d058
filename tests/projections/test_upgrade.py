"""An upgrade to another version of the fold: in which order its processes are restarted, and what that costs."""

import asyncpg
import pytest

from engine.database.pool import Database
from engine.domain.events import PointsAdded
from engine.log import heads
from projections.board.board import FOLD_VERSION
from projections.tables.snapshots import INTERVAL_EVENTS_MIN
from projections.tables.worker import Worker
from tests.bounds import Bounds
from tests.desks import Arena, open_arena, until
from tests.projections.written import append, assert_live_shows_the_log, loaded, made_by_fold
from tests.second_fold import load_of_fold, worker_of_fold

EVENTS = 25_000
NEW = FOLD_VERSION + 1
_VERSION = "SELECT fold_version FROM checkpoint WHERE tournament_id = $1"


async def with_a_long_log(database: Database) -> Arena:
    arena = await open_arena(database)
    points = PointsAdded(ranking_id=arena.ranking_id, deltas=arena.points(1).deltas)
    for _ in range(EVENTS // 1_000):
        await append(database, arena.tournament_id, [points] * 1_000)
    return arena


@pytest.mark.long
async def test_with_the_workers_first_no_process_of_either_version_replays_a_whole_log(
    dsn: str, database: Database, owner: asyncpg.Connection
) -> None:
    arena = await with_a_long_log(database)
    await Worker(database).catch_up()
    at_first = await load_of_fold(FOLD_VERSION, dsn, arena.tournament_id)
    assert at_first["from"] == at_first["to"]
    async with worker_of_fold(NEW, dsn):
        await until(lambda: _is_of(owner, arena, NEW), 60)
        await append(database, arena.tournament_id, [PointsAdded(ranking_id=arena.ranking_id, deltas=())])
        old = await load_of_fold(FOLD_VERSION, dsn, arena.tournament_id)
        new = await load_of_fold(NEW, dsn, arena.tournament_id)
    for told in (old, new):
        assert told["to"] == at_first["to"] + 1
        assert told["from"] >= told["to"] - 2 * INTERVAL_EVENTS_MIN
    assert new["from"] >= at_first["to"]
    assert old["shows"] == new["shows"]


async def test_with_the_api_processes_first_they_replay_whole_logs(
    dsn: str, database: Database, owner: asyncpg.Connection
) -> None:
    """Which is why that is not the order."""
    arena = await with_a_long_log(database)
    await Worker(database).catch_up()
    new = await load_of_fold(NEW, dsn, arena.tournament_id)
    assert new["from"] == 0


async def _is_of(owner: asyncpg.Connection, arena: Arena, version: int) -> bool:
    return bool(await owner.fetchval(_VERSION, arena.tournament_id) == version)


@pytest.mark.parametrize("spoilt", ["nothing", "the board", "the digest"])
async def test_a_snapshot_that_cannot_be_used_is_none(
    database: Database, owner: asyncpg.Connection, bounds: Bounds, spoilt: str
) -> None:
    bounds(INTERVAL_EVENTS_MIN=2, INTERVAL_EVENTS_PER_ROW=0)
    arena = await open_arena(database)
    points = PointsAdded(ranking_id=arena.ranking_id, deltas=arena.points(1).deltas)
    await append(database, arena.tournament_id, [points] * 3)
    await Worker(database).catch_up()
    await made_by_fold(NEW, owner, arena.tournament_id)
    await append(database, arena.tournament_id, [points])
    if spoilt == "the board":
        await owner.execute("UPDATE snapshot SET board = ''")
    if spoilt == "the digest":
        await owner.execute("UPDATE snapshot SET digest = sha256('')")
    await assert_live_shows_the_log(database, arena.tournament_id)
    assert (await loaded(database, arena.tournament_id)).head.sequence == 8
    async with database.connection() as connection:
        assert (await heads.current(connection, [arena.tournament_id]))[arena.tournament_id].sequence == 8
