"""Which lines a new or corrected result gives and takes back, by the scorings of a ranking."""

from datetime import UTC, datetime
from typing import Final

import pytest

from engine.domain import commands, events
from engine.domain.awards import Award, Scoring
from engine.domain.errors import Conflict, Unacceptable
from engine.domain.events import CompetitionAdded, Delta, Event, PointsReversed, PointsScored, Recorded
from engine.domain.judging import decide
from engine.domain.rescoring import GivenLines, rescored
from engine.domain.steps import finished
from engine.domain.terms import OPERATOR, Sequence
from projections.board.board import Board, Revisions, fold
from tests.bounds import Bounds

ANNA, BEN = 1, 2
LEAGUE, POINTS, GOALS = 30, 40, 41
DUEL: Final = 20
BEGIN: Final = datetime(2026, 3, 9, tzinfo=UTC)
OUTCOMES: Final = {"win": 3, "draw": 1, "loss": 0}
BY_OUTCOME: Final = Award(unity_id=POINTS, value="outcome", table=OUTCOMES)
SCORINGS: Final = (Scoring(awards=(BY_OUTCOME, Award(unity_id=GOALS, value="for"))),)


class Played:
    """A board, and what scorings have given."""

    def __init__(self) -> None:
        self.board, self.given, self.head = Board(), GivenLines(), 0
        self.take(
            events.CompetitorRegistered(competitor_id=ANNA, name="Anna"),
            events.CompetitorRegistered(competitor_id=BEN, name="Ben"),
            events.RankingCreated(
                ranking_id=LEAGUE,
                name="League",
                participants=(ANNA, BEN),
                main_unity_id=POINTS,
                main_unity_name="points",
            ),
            events.UnityAdded(ranking_id=LEAGUE, unity_id=GOALS, name="goals"),
            events.ScoringDeclared(ranking_id=LEAGUE, scorings=SCORINGS),
        )

    def take(self, *run: Event) -> None:
        for event in run:
            self.head += 1
            recorded = Recorded(Sequence(self.head), BEGIN, OPERATOR, None, event)
            fold(self.board, Revisions(), recorded)
            self.given.take(recorded)

    def add(self, result: str) -> tuple[Event, ...]:
        command = commands.AddCompetition(
            competition_id=DUEL, group_id=1, participants=(ANNA, BEN), result=result or None
        )
        decided = decide(self.board, command)
        self.take(*decided)
        return decided

    def correct(self, result: str) -> list[Event]:
        (changed,) = decide(self.board, commands.ChangeCompetition(competition_id=DUEL, result=result))
        more = finished(rescored(self.board, [changed], self.given, {}, None))
        self.take(changed, *more)
        return [*more]

    @property
    def totals(self) -> list[list[int]]:
        unities = self.board.rankings[LEAGUE].unities
        return [[unities[one].totals.get(who) for one in (POINTS, GOALS)] for who in (ANNA, BEN)]


def test_a_new_result_gives_its_lines_with_its_competition() -> None:
    played = Played()
    added, scored = played.add("2:1")
    assert isinstance(added, CompetitionAdded)
    lines = (Delta(ANNA, POINTS, 3), Delta(ANNA, GOALS, 2), Delta(BEN, POINTS, 0), Delta(BEN, GOALS, 1))
    assert scored == PointsScored(ranking_id=LEAGUE, competition_id=DUEL, deltas=lines)


def test_a_correction_takes_back_only_the_lines_that_differ() -> None:
    played = Played()
    played.add("2:1")
    taken, given = played.correct("2:2")
    assert taken == PointsReversed(
        ranking_id=LEAGUE,
        competition_id=DUEL,
        deltas=(Delta(ANNA, POINTS, -3), Delta(BEN, POINTS, 0), Delta(BEN, GOALS, -1)),
        reverses=7,
        replaced=((ANNA, POINTS), (BEN, POINTS), (BEN, GOALS)),
    )
    assert given == PointsScored(
        ranking_id=LEAGUE,
        competition_id=DUEL,
        deltas=(Delta(ANNA, POINTS, 1), Delta(BEN, POINTS, 1), Delta(BEN, GOALS, 2)),
        instead_of=7,
        since=BEGIN,
    )
    assert played.totals == [[1, 2], [1, 2]]
    taken, given = played.correct("2:1")
    assert isinstance(taken, PointsReversed)
    assert (taken.reverses, taken.instead_of) == (10, 7)
    assert played.totals == [[3, 2], [0, 1]]


def test_a_result_that_gives_the_same_changes_no_points() -> None:
    played = Played()
    played.add("2:1")
    assert played.correct("2:1") == []
    assert played.correct(" 2-1 ") == []


def test_the_first_result_of_a_fixture_is_no_correction() -> None:
    played = Played()
    assert len(played.add("")) == 1
    (scored,) = played.correct("0:0")
    assert isinstance(scored, PointsScored)
    assert scored.instead_of is None


def test_a_closed_ranking_refuses_a_correction_only_if_it_would_change_points() -> None:
    played = Played()
    played.add("2:1")
    played.take(events.RankingClosed(ranking_id=LEAGUE))
    assert played.correct("2:1 aet") == []
    with pytest.raises(Conflict, match=f"closed rankings; reopen them first: {LEAGUE}"):
        played.correct("1:2")


def test_a_result_with_too_many_lines_is_refused_with_their_number(bounds: Bounds) -> None:
    bounds(SCORED_LINES_MAX=3)
    with pytest.raises(Unacceptable, match="4 lines of points; at most 3"):
        Played().add("2:1")
