"""Which lines a new or corrected result gives and takes back, by the scorings of a ranking."""

from datetime import UTC, datetime
from typing import Final

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.domain import commands, events, rescoring
from engine.domain.awards import Award, Scoring
from engine.domain.errors import Conflict, Refusal, Unacceptable
from engine.domain.events import CompetitionAdded, Delta, Event, PointsReversed, PointsScored, Recorded
from engine.domain.judging import decide
from engine.domain.marks import result_of
from engine.domain.rescoring import GivenLines, Rescoring, RescoringEvent, concerned, rescored, scored_lines
from engine.domain.steps import finished
from engine.domain.terms import OPERATOR, Counts, Sequence, Sort
from projections.board.board import Board, Revisions, fold
from tests.bounds import Bounds
from tests.calls import Calls
from tests.histories import recorded_after_opening, results_of, scored_histories, unhurried

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
        self.run = list[Recorded]()
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
            self.run.append(recorded)

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


def test_a_correction_that_gives_the_same_points_changes_none() -> None:
    played = Played()
    played.add("2:1")
    assert played.correct("2:1") == []
    assert played.correct(" 2-1 ") == []


def test_the_first_result_of_a_fixture_is_not_a_correction() -> None:
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
    with pytest.raises(Conflict, match="closed rankings; reopen them first: 'League'"):
        played.correct("1:2")


def test_a_result_with_too_many_lines_is_refused_with_their_number(bounds: Bounds) -> None:
    bounds(SCORED_LINES_MAX=3)
    with pytest.raises(Unacceptable, match="4 lines of points; at most 3"):
        Played().add("2:1")


def rescored_events(rescoring: Rescoring, run: list[Recorded]) -> list[str] | str:
    """What scorings give and take back, in any order of competitions, or why it is refused. `run`: all that the state
    is the fold of."""
    board = rescoring._state
    assert isinstance(board, Board)
    try:
        return sorted(map(repr, finished(rescoring.events(results_of(board, run, board.rankings)))))
    except Refusal as refusal:
        return str(refusal)


@settings(unhurried, max_examples=25)
@given(scored_histories(), st.data())
def test_what_is_scored_again_follows_all_that_is_recorded_meanwhile_unless_it_says_otherwise(
    history: list[Event], data: st.DataObject
) -> None:
    run = recorded_after_opening(history)
    begun, board, known = data.draw(st.integers(0, len(run))), Board(), GivenLines()
    for recorded in run[:begun]:
        fold(board, Revisions(), recorded)
    assume(board.rankings)
    ranking_id = data.draw(st.sampled_from([*board.rankings]))
    its = board.rankings[ranking_id]
    about: list[Event] = [
        events.ScoringDeclared(ranking_id=ranking_id, scorings=()),
        events.ScoringDeclared(ranking_id=ranking_id, scorings=its.scorings),
        events.RankingReopened(ranking_id=ranking_id),
        *[events.CompetitionChanged(competition_id=one, result="7:5") for one in [*board.competitions][-1:]],
    ]
    if its.closed_at is None:
        about.append(events.ParticipantsChanged(ranking_id=ranking_id, removed=tuple(its.participants)))
        about.append(events.ParticipantsChanged(ranking_id=ranking_id, added=tuple(board.competitors)[-1:]))
    decided = [data.draw(st.sampled_from(about))]
    rescoring = Rescoring(board, decided, known, None)
    only = finished(rescoring.competitions())
    for recorded in run[:begun]:
        if only is None or getattr(recorded.event, "competition_id", None) in only:
            known.take(recorded)
    rescored_events(rescoring, run[:begun])
    for end, recorded in enumerate(run[begun:], begun + 1):
        fold(board, Revisions(), recorded)
        if not rescoring.take(recorded):
            break
        if end < len(run) and isinstance(run[end].event, events.PointsScored | events.PointsReversed):
            continue  # in the middle of a request, where nothing is judged
        again = GivenLines()
        for one in run[:end]:
            again.take(one)
        expected = rescored_events(Rescoring(board, decided, again, None), run[:end])
        assert rescored_events(rescoring, run[:end]) == expected


def test_what_is_scored_again_stays_when_others_get_results_and_is_dropped_with_its_own() -> None:
    played = Played()
    played.add("2:1")
    scored = PointsScored(ranking_id=LEAGUE, competition_id=DUEL, deltas=())
    recorded = Recorded(Sequence(9), BEGIN, OPERATOR, None, scored)
    other = events.CompetitionChanged(competition_id=DUEL + 1, result="2:1")
    for event, stays in ((other, True), (replace(other, competition_id=DUEL), False)):
        assert Rescoring(played.board, [event], played.given, None).take(recorded) is stays
    reopened = [events.RankingReopened(ranking_id=LEAGUE)]
    assert Rescoring(played.board, reopened, played.given, None).take(recorded)


PEOPLE: Final = range(1, 6)
some_people: Final = st.lists(st.sampled_from(PEOPLE), min_size=1, max_size=4, unique=True).map(tuple)
scorings: Final = st.builds(
    Scoring,
    order=st.just("low"),
    entries=st.none() | st.just(3),
    awards=st.lists(
        st.builds(
            Award,
            unity_id=st.just(POINTS),
            value=st.sampled_from(["place", "performance"]),
            statuses=st.dictionaries(st.sampled_from(["dns", "Absent"]), st.sampled_from([0, 9, "entries+1"])),
            among=st.sampled_from(["participants", "enrolled"]),
        ),
        min_size=1,
        max_size=2,
    ).map(tuple),
)


@unhurried
@given(st.lists(scorings, min_size=1, max_size=2).map(tuple), some_people, st.data())
def test_a_result_that_a_new_list_does_not_concern_gives_what_it_gave(
    declared: tuple[Scoring, ...], listed: tuple[int, ...], data: st.DataObject
) -> None:
    """And `rescored` gives and takes back what it does if every result is looked at."""
    played = Played()
    played.take(
        *(events.CompetitorRegistered(competitor_id=one, name=f"{one}") for one in PEOPLE if one not in (ANNA, BEN)),
        events.RankingModified(ranking_id=LEAGUE, participants=listed, main_unity_name="points"),
        events.ScoringDeclared(ranking_id=LEAGUE, scorings=declared),
    )
    for race in range(100, 104):
        who = data.draw(some_people)
        performed = {one: data.draw(st.sampled_from(["9", "10", "11", "DNS"])) for one in who}
        result = performed if len(who) > 2 else "|".join(performed.values())
        command = commands.AddCompetition(competition_id=race, group_id=1, participants=who, result=result)
        played.take(*decide(played.board, command))
    removed = data.draw(st.lists(st.sampled_from(listed), unique=True)) if len(listed) > 1 else []
    added = data.draw(st.lists(st.sampled_from([one for one in PEOPLE if one not in removed]), unique=True))
    event: RescoringEvent = events.ParticipantsChanged(ranking_id=LEAGUE, added=tuple(added), removed=tuple(removed))
    if data.draw(st.booleans()):
        now = tuple(dict.fromkeys((*(one for one in listed if one not in removed), *added))) or listed
        event = events.RankingModified(ranking_id=LEAGUE, participants=now, main_unity_name="points")
    its = concerned(played.board, event)
    for competition in played.board.competitions.values():
        if its is not None and its.isdisjoint(competition.participants):
            before = finished(scored_lines(played.board.rankings[LEAGUE], competition))
            assert finished(scored_lines(rescoring._changed(played.board, event), competition)) == before
    decided = finished(rescored(played.board, [event], played.given, {}, None))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(rescoring, "concerned", lambda *_: None)
        assert finished(rescored(played.board, [event], played.given, {}, None)) == decided


def test_a_late_entry_concerns_no_result_without_a_part_of_it(calls: Calls) -> None:
    """Unless the number of entries or the absent count."""
    played = Played()
    played.add("2:1")
    late = commands.ChangeParticipants(ranking_id=LEAGUE, added=(3,))
    played.take(events.CompetitorRegistered(competitor_id=3, name="Cem"))
    (event,) = decide(played.board, late)
    counted = calls(rescoring, "scored_lines")
    assert finished(rescored(played.board, [event], played.given, {}, None)) == ()
    assert counted == []
    absent = Award(unity_id=POINTS, value="outcome", table=OUTCOMES, statuses={"absent": 0})
    played.take(
        events.ScoringDeclared(ranking_id=LEAGUE, scorings=(Scoring(awards=(absent, *SCORINGS[0].awards[1:])),))
    )
    (scored,) = finished(rescored(played.board, [event], played.given, {}, None))
    assert isinstance(scored, PointsScored)
    assert scored.deltas == (Delta(3, POINTS, 0),)


def test_results_that_a_new_list_concerns_are_scored_in_their_order() -> None:
    played, ids = Played(), [8 * n for n in range(40, 0, -1)]
    played.take(events.CompetitorRegistered(competitor_id=3, name="Cem"))
    for one in ids:
        played.take(events.CompetitionAdded(competition_id=one, group_id=1, participants=(3,), result="bye"))
    byes = Award(unity_id=POINTS, value="outcome", table={**OUTCOMES, "bye": 1})
    played.take(events.ScoringDeclared(ranking_id=LEAGUE, scorings=(Scoring(awards=(byes,)),)))
    (event,) = decide(played.board, commands.ChangeParticipants(ranking_id=LEAGUE, added=(3,)))
    scored = finished(rescored(played.board, [event], played.given, {}, None))
    assert [one.competition_id for one in scored if isinstance(one, PointsScored)] == ids


def test_results_that_arrive_meanwhile_are_scored_in_the_order_of_their_competitions() -> None:
    """As all are that were there before: where the last result counts, the order decides."""
    played, (fixture, other, *later) = Played(), [8 * n for n in range(8, 0, -1)]

    def added(one: int, result: str | None) -> Event:
        return events.CompetitionAdded(competition_id=one, group_id=1, participants=(ANNA, BEN), result=result)

    declared = events.ScoringDeclared(ranking_id=LEAGUE, scorings=SCORINGS)
    played.take(replace(declared, scorings=()), added(fixture, None), added(other, "1:0"))
    rescoring = Rescoring(played.board, [declared], played.given, None)
    assert len(finished(rescoring.events({}))) == 1
    meanwhile = events.CompetitionChanged(competition_id=fixture, result="2:1")
    for event in (*[added(one, "0:0") for one in later], meanwhile):
        played.take(event)
        assert rescoring.take(Recorded(Sequence(played.head), BEGIN, OPERATOR, None, event))
    scored = finished(rescoring.events({}))
    assert [one.competition_id for one in scored if isinstance(one, PointsScored)] == [fixture, other, *later]


@pytest.mark.parametrize("counts", [Counts.BEST, Counts.LAST])
@pytest.mark.parametrize("is_fixture", [True, False])
def test_the_totals_of_a_round_count_its_new_results_and_its_corrections_together(
    counts: Counts, is_fixture: bool
) -> None:
    played, best = Played(), 42
    played.take(
        events.UnityAdded(ranking_id=LEAGUE, unity_id=best, name="best", counts=counts),
        events.ScoringDeclared(
            ranking_id=LEAGUE, scorings=(Scoring(awards=(Award(unity_id=best, value="for"), BY_OUTCOME)),)
        ),
    )
    played.add("8:1")
    if is_fixture:
        played.take(events.CompetitionAdded(competition_id=DUEL + 2, group_id=1, participants=(ANNA, BEN), key="B"))
    new = commands.RecordResult(competition_id=DUEL + 1, key="B", group_id=1, participants=(ANNA, BEN), result="10:2")
    corrected = commands.RecordResult(competition_id=DUEL + 3, of=DUEL, result="5:1")
    decided = decide(played.board, commands.RecordResults(items=(new, corrected)))
    known = results_of(played.board, played.run, played.board.rankings)
    played.take(*decided, *finished(rescored(played.board, decided, played.given, known, None)))
    totals = played.board.rankings[LEAGUE].unities[best].totals
    assert [result_of(totals[one], Sort.DESC) for one in (ANNA, BEN)] == [10, 2]
