"""A clock of the log that a test sets: the database's time is what the test says, and passes no other way."""

from datetime import UTC, datetime, timedelta
from typing import Final

import asyncpg
import pytest

from engine.database.distribution import has_shards
from engine.log import heads
from tests.project import ROOT

TOLD = "SELECT now FROM tallybook.told"
IN_PROCESSES: Final = {"PYTHONPATH": f"{ROOT / 'tests/startup'}:{ROOT}", "TOLD_CLOCK_OF_TESTS": "1"}
"""The environment in which processes take their time from it."""
_TOLD = """
    CREATE TABLE tallybook.told (now timestamptz NOT NULL);
    INSERT INTO tallybook.told VALUES ('2024-01-01 00:00:30+00');
    GRANT SELECT ON tallybook.told TO tallybook_service;
"""
_DEFINITION = "SELECT pg_get_functiondef('tallybook.append_block'::regproc)"


class ToldClock:
    """Use `told_clock` to make one."""

    def __init__(self, owner: asyncpg.Connection, definition: str) -> None:
        self._owner = owner
        self._definition = definition
        self.now = datetime(2024, 1, 1, 0, 0, 30, tzinfo=UTC)

    async def set(self, now: datetime) -> None:
        self.now = now
        await self._owner.execute("UPDATE tallybook.told SET now = $1", now)

    async def pass_by(self, **time: float) -> None:
        """So much time passes, in the words of a timedelta."""
        await self.set(self.now + timedelta(**time))

    async def give_back(self) -> None:
        """The database is as it was made."""
        await self._owner.execute(self._definition)
        await self._owner.execute("DROP TABLE tallybook.told")


async def told_clock(owner: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch) -> ToldClock:
    """Has the database take its time from the clock that this returns."""
    definition: str = await owner.fetchval(_DEFINITION)
    assert definition.count("clock_timestamp()") == 1
    await owner.execute(_TOLD)
    if await has_shards(owner):  # each node asks its own copy
        await owner.execute("SELECT create_reference_table('tallybook.told')")
    await owner.execute(definition.replace("clock_timestamp()", "(SELECT t.now FROM tallybook.told AS t)"))
    monkeypatch.setattr(heads, "_NOW", TOLD)
    return ToldClock(owner, definition)
