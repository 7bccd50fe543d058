"""The command that rebuilds tables."""

import asyncpg

from engine.database.pool import Database
from projections.tables.worker import Worker
from tests.api.cli.conftest import Tallybook
from tests.service import Season


async def test_rebuild_tells_what_was_different_and_then_that_nothing_is(
    dsn: str, season: Season, owner: asyncpg.Connection, database: Database
) -> None:
    tallybook, slug = Tallybook(dsn), season.client.tournament
    await Worker(database).catch_up()
    assert "left as they are" in await tallybook.done("rebuild", slug)
    await owner.execute("UPDATE competitor SET name = 'Eve' WHERE name = 'Ada'")
    told = await tallybook.done("rebuild")
    assert f"{slug}: tables up to event" in told
    assert "Eve" in told
    (row,) = await tallybook.json("rebuild", slug)
    assert (row["slug"], row["replaced"], row["differences"]) == (slug, False, [])
    assert "no tournament 'nowhere'" in (await tallybook.refused("rebuild", "nowhere"))[0]
