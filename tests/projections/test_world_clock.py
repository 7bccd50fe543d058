"""A table on a date has what had taken place by then, whenever it was recorded."""

from collections.abc import Container
from collections.abc import Sequence as Items
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.database.pool import Database
from engine.domain import events
from engine.domain.errors import TooMuchWork
from engine.domain.events import CompetitionAdded, Event, Points, PointsAdded, PointsReversed, PointsScored, Recorded
from engine.domain.terms import CompetitionId, RankingId, Sequence, TournamentId
from engine.log import reading
from projections.board.competition_sums import CompetitionSums
from projections.past import folds, moments
from projections.past.moments import AtSequence
from projections.past.past import Past
from projections.tables.dated import took_place_between
from projections.tables.worker import Worker
from tests.bounds import Bounds, set_bounds
from tests.desks import Arena, open_arena, record
from tests.histories import board_of, dated_histories, struck_in, undone_in, voided_in
from tests.projections.boards import laid_out
from tests.projections.written import (
    a_few_times,
    block_sizes,
    drop_some,
    in_small_steps,
    rich_histories,
    whole_log,
    written,
)
from tests.statements import sent

assert in_small_steps  # a fixture


def replaced_in(log: list[Recorded]) -> set[tuple[int, int, int]]:
    """The lines that corrections of results have replaced, by event, competitor and unity."""
    reversals = [one.event for one in log if isinstance(one.event, PointsReversed)]
    return {(event.reverses, *line) for event in reversals for line in event.replaced}


class NaiveClock:
    """What had taken place by `on`, from the sentences of the rule: by what `log` declared, each event looked at."""

    def __init__(self, log: list[Recorded], on: datetime) -> None:
        self.on = on
        self.log = log
        self.dates: dict[CompetitionId, datetime | None] = {}
        for one in log:
            match one.event:
                case events.CompetitionAdded(competition_id=competition_id, started_at=date):
                    self.dates[competition_id] = date
                case events.CompetitionChanged(competition_id=competition_id, started_at=(datetime() | None) as date):
                    self.dates[competition_id] = date

    def takes_place_at(self, recorded: Recorded) -> datetime:
        event = recorded.event
        assert isinstance(event, Points)
        if event.competition_id is not None and (date := self.dates[event.competition_id]) is not None:
            return date
        if isinstance(event, PointsReversed):
            return self.takes_place_at(self.log[(event.instead_of or event.reverses) - 1])
        return event.since or recorded.recorded_at

    def points(self, ranking_id: RankingId) -> list[Points]:
        return [one.event for one in self.recorded(ranking_id) if isinstance(one.event, Points)]

    def recorded(self, ranking_id: RankingId, without: Container[Sequence] = ()) -> list[Recorded]:
        return [
            one
            for one in self.log
            if isinstance(one.event, Points)
            and one.event.ranking_id == ranking_id
            and events.root(one.sequence, one.event) not in without
            and self.takes_place_at(one) <= self.on
        ]


@a_few_times
@given(history=rich_histories | dated_histories(), sizes=block_sizes, dropped=st.integers(0, 3), data=st.data())
async def test_a_table_on_a_date_has_what_had_taken_place_by_then(
    database: Database, in_small_steps: None, history: list[Event], sizes: list[int], dropped: int, data: st.DataObject
) -> None:
    """Of whatever moment of the log, whatever dates were declared and changed, and whatever was voided."""
    with pytest.MonkeyPatch.context() as patched:
        set_bounds(patched, COMPETITIONS_AT_ONCE_MAX=2, EVENTS_OF_COMPETITION_AT_ONCE_MAX=1, LOOKED_UP_AT_ONCE_MAX=2)
        tournament_id = await written(database, history, sizes)
        await Worker(database).catch_up()
        await drop_some(database, tournament_id, dropped)
        past, whole = Past(database), await whole_log(database, tournament_id)
        times = {one.recorded_at for one in whole} | {datetime(2024, 2, 29, 12, 30, 1, tzinfo=UTC)}
        ends = {datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)}
        ons = sorted(ends | {time + early for time in times for early in (timedelta(microseconds=-1), timedelta())})
        for sequence in {len(whole), data.draw(st.integers(1, len(whole)))}:
            board, on = board_of(whole[:sequence]), data.draw(st.sampled_from(ons))
            clock = NaiveClock(whole[:sequence], on)
            for ranking_id, ranking in board.rankings.items():
                moment = AtSequence(Sequence(sequence))
                then = await moments.at(past, tournament_id, ranking_id, moment, Sequence(len(whole)), on)
                points, sums = clock.points(ranking_id), CompetitionSums()
                for unity_id, unity in then.board.rankings[ranking_id].unities.items():
                    of_it = [one for event in points for one in event.deltas if one.unity_id == unity_id]
                    for competitor_id in board.competitors:
                        amounts = [one.amount for one in of_it if one.competitor_id == competitor_id]
                        assert unity.totals.get(competitor_id, 0) == sum(amounts)
                    unity.totals = ranking.unities[unity_id].totals
                assert laid_out(then.board) == laid_out(board)  # all else is of the moment of the log
                struck, voided = struck_in(whole[:sequence]), voided_in(whole[:sequence])
                replaced = replaced_in(whole[:sequence])
                for recorded in clock.recorded(ranking_id, without=undone_in(whole[:sequence])):
                    event = recorded.event
                    if isinstance(event, PointsAdded) and event.competition_id not in voided:
                        gone = struck.get(event.competition_id, ())
                        deltas = [one for one in event.given if one.competitor_id not in gone]
                        deltas = [
                            one
                            for one in deltas
                            if (recorded.sequence, one.competitor_id, one.unity_id) not in replaced
                        ]
                        sums.count(Sequence(1), on, msgspec.structs.replace(event, deltas=tuple(deltas)))
                at = then.board, then.sequence, then.clock
                read = await folds.sums_then(past, tournament_id, ranking_id, *at)
                for unity_id in ranking.unities:
                    for competitor_id in board.competitors:
                        assert read.of(unity_id, competitor_id) == sums.of(unity_id, competitor_id)


async def test_the_lines_looked_at_are_limited(database: Database, bounds: Bounds) -> None:
    arena = await open_arena(database)
    match, day = CompetitionId(1), datetime(2024, 3, 9, tzinfo=UTC)
    deltas = arena.points().deltas
    async with database.connection() as connection:
        added = events.CompetitionAdded(competition_id=match, group_id=1, started_at=day)
        given = PointsAdded(ranking_id=arena.ranking_id, competition_id=match, deltas=(*deltas, *deltas))
        last = (await record(connection, arena.tournament_id, added, given)).last_sequence
    assert last is not None
    for most, shown in ((2, 2), (1, None)):
        bounds(DATED_LINES_MAX=most)
        asked = moments.at(Past(database), arena.tournament_id, arena.ranking_id, None, last, day)
        if shown is None:
            with pytest.raises(TooMuchWork):
                await asked
        else:
            unity = (await asked).board.rankings[arena.ranking_id].unities[arena.unity_id]
            assert unity.totals[arena.competitors[0]] == shown


async def test_points_dated_at_the_first_moment_of_time_have_taken_place_at_any(database: Database) -> None:
    arena = await open_arena(database)
    match, day = CompetitionId(1), datetime.min.replace(tzinfo=UTC)
    async with database.connection() as connection:
        added = events.CompetitionAdded(competition_id=match, group_id=1, started_at=day)
        given = PointsAdded(ranking_id=arena.ranking_id, competition_id=match, deltas=arena.points().deltas)
        last = (await record(connection, arena.tournament_id, added, given)).last_sequence
    assert last is not None
    then = await moments.at(Past(database), arena.tournament_id, arena.ranking_id, None, last, day)
    assert then.board.rankings[arena.ranking_id].unities[arena.unity_id].totals[arena.competitors[0]] == 1


LATER: Final = 30
"""Results that are recorded after the day."""


async def scored_and_corrected(database: Database, arena: Arena) -> tuple[datetime, Sequence]:
    """The day on which the first result is recorded, and the head: after later results, of which the first and a later
    one are corrected."""
    async with database.connection() as connection:

        async def scored(match: int, corrects: Sequence | None = None) -> Sequence:
            named = {"ranking_id": arena.ranking_id, "competition_id": CompetitionId(match)}
            deltas, found = arena.points(1 if corrects is None else 2).deltas, list[Event]()
            if corrects is None:
                found.append(CompetitionAdded(competition_id=CompetitionId(match), group_id=1))
            else:
                back, line = arena.points(-1).deltas, (arena.competitors[0], arena.unity_id)
                found.append(PointsReversed(**named, deltas=back, reverses=corrects, replaced=(line,)))
            since = None if corrects is None else day
            scoring = PointsScored(**named, deltas=deltas, instead_of=corrects, since=since)
            appended = await record(connection, arena.tournament_id, *found, scoring)
            assert appended.last_sequence is not None
            return appended.last_sequence

        first = await scored(1)
        day = (await reading.event_at(connection, arena.tournament_id, first)).recorded_at
        for match in range(2, LATER + 2):
            later = await scored(match)
        await scored(1, first)
        return day, await scored(LATER + 1, later)


@pytest.fixture
def looked_up(monkeypatch: pytest.MonkeyPatch) -> list[Sequence]:
    """The events that are looked up in the log."""
    found, event_of = list[Sequence](), reading.event_of

    def noted(tournament_id: TournamentId, row: Items[Any]) -> Recorded:
        found.append(row[0])
        return event_of(tournament_id, row)

    monkeypatch.setattr(reading, "event_of", noted)
    return found


async def test_beyond_a_day_only_events_that_change_points_of_before_are_looked_up(
    database: Database, looked_up: list[Sequence]
) -> None:
    """By a table on that day, and by what expires that took place by then."""
    arena = await open_arena(database)
    day, head = await scored_and_corrected(database, arena)
    looked_up.clear()
    then = await moments.at(Past(database), arena.tournament_id, arena.ranking_id, None, head, day)
    assert then.board.rankings[arena.ranking_id].unities[arena.unity_id].totals[arena.competitors[0]] == 2
    correction = {Sequence(head - 3), Sequence(head - 2)}
    assert set(looked_up) - correction == {head}  # its own time
    assert set(looked_up) >= correction
    looked_up.clear()
    board, begin = board_of(await whole_log(database, arena.tournament_id)), day - timedelta(microseconds=1)
    of = database.connection, arena.tournament_id, board
    found = [one.sequence async for events in took_place_between(*of, begin, day, head) for one in events]
    assert set(found) >= correction
    assert set(looked_up) == correction


async def test_a_block_is_taken_apart_once_for_a_thousand_of_its_events_and_not_for_a_few_competitions(
    database: Database,
) -> None:
    arena, day = await open_arena(database), datetime(2024, 3, 9, tzinfo=UTC)
    matches = [CompetitionId(n) for n in range(1, 701)]
    added = [CompetitionAdded(competition_id=one, group_id=1, started_at=day) for one in matches]
    deltas = arena.points().deltas
    given = [PointsAdded(ranking_id=arena.ranking_id, competition_id=one, deltas=deltas) for one in matches]
    async with database.connection() as connection:
        await record(connection, arena.tournament_id, *added)
        head = (await record(connection, arena.tournament_id, *given)).last_sequence
    assert head is not None
    of = database.connection, arena.tournament_id, matches, head
    with sent(database) as statements:
        found = [one async for events in reading.all_points_of_competitions(*of) for one in events]
    assert len(found) == len(matches)
    assert len([one for one in statements if "string_to_table" in one]) == 1
