"""The time of logs against the clock: who is told when it stands still."""

from datetime import UTC, datetime, timedelta

import pytest
from structlog.testing import capture_logs

from engine.database.pool import Database
from engine.domain.events import CompetitorRegistered
from engine.domain.terms import CompetitorId, TournamentId
from engine.log import clock
from engine.log.appending import NotAppended
from engine.log.clock import BEHIND_SECONDS_MAX, Clock
from engine.process import telemetry
from engine.process.telemetry import APPENDED_EVENTS, CLOCK_BEHIND
from tests.bounds import Bounds
from tests.desks import record

FIRST, SECOND = TournamentId(1), TournamentId(2)


def hence(seconds: float) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=seconds)


def test_the_latest_of_all_logs_is_what_the_clock_has_to_catch_up_with() -> None:
    kept = Clock()
    assert kept.behind_seconds(1_000.0) == 0
    kept.appended(FIRST, datetime.fromtimestamp(1_100, UTC))
    kept.appended(SECOND, datetime.fromtimestamp(1_050, UTC))
    assert kept.behind_seconds(1_000.0) == 100
    assert kept.behind_seconds(1_099.0) == 1
    assert kept.behind_seconds(1_101.0) == 0


@pytest.mark.parametrize(("ahead", "alarms"), [(BEHIND_SECONDS_MAX - 0.5, 0), (BEHIND_SECONDS_MAX + 60, 1)])
def test_beyond_the_bound_it_is_said_and_not_at_every_look(ahead: float, alarms: int) -> None:
    kept = Clock()
    kept.appended(FIRST, hence(ahead))
    with capture_logs() as said:
        for _ in range(50):
            kept.watch()
    assert [line["event"] for line in said] == ["clock_behind"] * alarms
    assert all(line["tournament_id"] == FIRST for line in said)
    assert 0 < CLOCK_BEHIND._value.get() <= ahead
    Clock().watch()
    assert CLOCK_BEHIND._value.get() == 0


def test_it_is_said_again_after_a_while(bounds: Bounds) -> None:
    bounds(SAID_EVERY_SECONDS=0.0)
    kept = Clock()
    kept.appended(FIRST, hence(60))
    with capture_logs() as said:
        kept.watch()
        kept.watch()
    assert len(said) == 2


async def test_what_was_appended_is_counted_and_nothing_else(database: Database, tournament_id: TournamentId) -> None:
    telemetry.settle()
    before = APPENDED_EVENTS._value.get()
    async with database.connection() as connection:
        events = [CompetitorRegistered(competitor_id=CompetitorId(n), name=f"C {n}") for n in (1, 2, 3)]
        appended = await record(connection, tournament_id, *events, key="once")
        repeated = await record(connection, tournament_id, *events, key="once")
    for outcome in (appended, repeated, NotAppended.BUSY):
        clock.note(tournament_id, outcome)
    telemetry.settle()
    assert APPENDED_EVENTS._value.get() == before + 3
