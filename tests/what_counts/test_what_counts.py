"""Whatever is asked for, in whatever order: every door shows what counts."""

import asyncpg
import pytest

from engine.database.pool import Database
from tests.bounds import set_bounds
from tests.desks import desk_at
from tests.projections.verified import verified
from tests.service import make_token, serve
from tests.told_clock import told_clock
from tests.what_counts.doors import Doors
from tests.what_counts.playing import Tournament

AT_ONCE = 10
"""Seeds for which one database is made."""
SEEDS, SEEDS_OF_LONG = 10, 1_000
STEPS = 36


@pytest.mark.parametrize(
    "first",
    [
        *range(0, SEEDS, AT_ONCE),
        *(pytest.param(first, marks=pytest.mark.long) for first in range(SEEDS, SEEDS_OF_LONG, AT_ONCE)),
    ],
)
async def test_every_door_shows_what_counts(
    dsn: str, owner: asyncpg.Connection, database: Database, monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    """Nothing happens unasked, so that a seed is the same tournament each time."""
    set_bounds(monkeypatch, EXPIRY_WATCH_SECONDS=1e6, EXPIRY_SWEEP_SECONDS=1e6)
    clock = await told_clock(owner, monkeypatch)
    submitted = refused = 0
    async with desk_at(dsn) as other, serve(dsn) as service:
        token = await make_token(database)
        for seed in range(first, first + AT_ONCE):
            tournament = Tournament([service.desk, other], database, clock, seed)
            await tournament.begin()
            doors = await Doors.of(service, owner, tournament, token)
            await play(tournament, doors)
            submitted, refused = submitted + tournament.submitted, refused + tournament.refused
    assert refused < submitted / 3
    await clock.give_back()
    assert (await verified(database)).differences == []


async def play(tournament: Tournament, doors: Doors) -> None:
    random = tournament.random
    for _ in range(STEPS):
        await tournament.step()
        if random.random() < 0.08:
            await doors.compare_live()
        if random.random() < 0.05:
            await doors.compare_public()
        if random.random() < 0.03:
            await doors.compare_expiring()
    await doors.compare_live()
    await doors.compare_public()
    await doors.compare_changes()
    await doors.compare_pages()
    await doors.compare_expiring()
    await doors.compare_tables()
    await doors.compare_streams()
    moments = await doors.some_moments(2)
    for moment in moments:
        await doors.compare_past(moment)
        await doors.compare_public_past(moment)
    await doors.move()
    await doors.compare_live()
    await doors.compare_past(moments[0])
    await doors.compare_classified()
