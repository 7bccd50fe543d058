"""Databases that begin with a stage of tampering: to play it takes longer than to copy it."""

import os
from collections.abc import Iterator

import asyncpg
import pytest

from engine.database.pool import Database, open_database
from engine.domain.events import Delta, PointsAdded
from projections.tables.worker import Worker
from tests.conftest import Administrator
from tests.desks import Arena, open_arena, record
from tests.tampering import Stage, stage, tamper

STAGE = f"tallybook_stage_{os.getpid()}"
"""The database that tests which are `staged` have a copy of."""
CROWD = f"tallybook_crowd_{os.getpid()}"
"""The same for those with a `crowd`."""


@pytest.fixture(scope="session")
def template_staged(administrator: Administrator) -> Iterator[Stage]:
    """The stage of the template STAGE."""
    yield administrator.make_template(STAGE, _stage)
    administrator.drop(STAGE)


@pytest.fixture(scope="session")
def template_crowd(administrator: Administrator) -> Iterator[Stage]:
    """The stage of the template CROWD."""
    yield administrator.make_template(CROWD, _crowd)
    administrator.drop(CROWD)


async def _stage(dsn: str) -> Stage:
    async with open_database(dsn, name="test") as database:
        return await stage(database)


async def _crowd(dsn: str) -> Stage:
    staged = await _stage(dsn)
    owner = await asyncpg.connect(dsn, server_settings={"search_path": "tallybook"})
    await tamper(owner, "DELETE FROM snapshot")
    await owner.close()
    async with open_database(dsn, name="test") as database:
        for _ in range(2):
            arena = await open_arena(database)
            async with database.connection() as connection:
                await record(connection, arena.tournament_id, _five_points(arena), key="first")
        await Worker(database).catch_up()
    return staged


def _five_points(arena: Arena) -> PointsAdded:
    deltas = (Delta(arena.competitors[0], arena.unity_id, 5),)
    return PointsAdded(ranking_id=arena.ranking_id, deltas=deltas)


@pytest.fixture
def templates() -> dict[str, str]:
    return {"crowd": CROWD, "staged": STAGE}


@pytest.fixture
def staged(database: Database, template_staged: Stage) -> Stage:
    return template_staged


@pytest.fixture
def crowd(database: Database, template_crowd: Stage) -> Stage:
    """The stage without its snapshot, and two tournaments beside it."""
    return template_crowd
