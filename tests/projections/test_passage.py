"""Whoever has a passage knows the table after each of its events: from the totals at its beginning and the points."""

from datetime import UTC, datetime
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.domain import events
from engine.domain.events import Points, Recorded
from engine.domain.terms import OPERATOR, CompetitionId, CompetitorId, RankingId, Sequence, Sort, UnityId
from projections.board.board import Board
from projections.board.classification import in_force
from projections.past.passage import PASSAGE_EVENTS_MAX, Passage, passage_begin
from tests.bounds import set_bounds
from tests.histories import OPENED, board_of, logs, passage_of, unhurried


def shown_of(board: Board, ranking_id: RankingId) -> Any:
    """What a table shows: who is in it under which name, the unities and criteria, and all totals."""
    ranking = board.rankings.get(ranking_id)
    if ranking is None:
        return None
    names = [(i, board.competitors[i].name, board.competitors[i].color) for i in ranking.participants]
    unities = {i: (unity.name, unity.sort) for i, unity in ranking.unities.items()}
    totals = {(i, one): unity.totals.get(one, 0) for i, unity in ranking.unities.items() for one, *_ in names}
    return names, unities, in_force(ranking), totals


def folded(shown: Any, found: Passage, upto: Sequence) -> Any:
    """The same after the event `upto`, by adding up."""
    if shown is None:
        return None
    *rest, totals = shown
    totals = dict(totals)
    for recorded in found.points:
        if recorded.sequence <= upto:
            assert isinstance(recorded.event, Points)
            for delta in recorded.event.deltas:
                if (delta.unity_id, delta.competitor_id) in totals:
                    totals[delta.unity_id, delta.competitor_id] += delta.amount
    return *rest, totals


@unhurried
@given(logs(), st.integers(1, 9), st.data())
def test_a_passage_leads_where_the_log_leads_at_each_of_its_events(
    log: list[Recorded], most: int, data: st.DataObject
) -> None:
    at = Sequence(data.draw(st.integers(1, len(log))))
    after = Sequence(data.draw(st.integers(0, at - 1)))
    for ranking_id in board_of(log).rankings:
        with pytest.MonkeyPatch.context() as small:
            set_bounds(small, PASSAGE_DELTAS_MAX=most)
            found = passage_of(board_of(log[:after]), after, log[after:], ranking_id, at)
        deltas = [len(recorded.event.deltas) for recorded in found.points if isinstance(recorded.event, Points)]
        assert sum(deltas) <= most or len(deltas) == 1
        assert after <= found.first <= at <= found.last
        begin = shown_of(found.board, ranking_id)
        assert begin == shown_of(board_of(log[: found.first]), ranking_id)
        for upto in range(found.first, found.last + 1):
            assert folded(begin, found, Sequence(upto)) == shown_of(board_of(log[:upto]), ranking_id)


_ADA: Final = CompetitorId(1)
_RANKING: Final = RankingId(2)
_POINTS: Final = UnityId(3)


@pytest.mark.parametrize(
    "change",
    [
        events.CompetitorChanged(competitor_id=_ADA, name="Ada L."),
        events.ClassificationDeclared(ranking_id=_RANKING, criteria=(events.Criterion(unity_id=_POINTS),)),
        events.RankingModified(ranking_id=_RANKING, participants=(_ADA,), main_unity_name="Goals"),
        events.ParticipantsChanged(ranking_id=_RANKING, removed=(_ADA,)),
        events.UnityAdded(ranking_id=_RANKING, unity_id=UnityId(4), name="Wins"),
        events.UnityChanged(ranking_id=_RANKING, unity_id=_POINTS, sort=Sort.ASC),
    ],
    ids=lambda change: type(change).__name__,
)
def test_what_changes_the_table_ends_a_passage(change: events.Event) -> None:
    points = events.PointsAdded(ranking_id=_RANKING, deltas=(events.Delta(_ADA, _POINTS, 3),))
    created = events.RankingCreated(
        ranking_id=_RANKING, name="Cup", participants=(_ADA,), main_unity_id=_POINTS, main_unity_name="Points"
    )
    happened = [OPENED, events.CompetitorRegistered(competitor_id=_ADA, name="Ada"), created, points, change, points]
    now = datetime(2026, 5, 2, tzinfo=UTC)
    log = [Recorded(Sequence(n), now, OPERATOR, None, event) for n, event in enumerate(happened, start=1)]
    found = [passage_of(Board(), Sequence(0), log, _RANKING, at) for at in (4, 6)]
    assert [(one.first, one.last, len(one.points)) for one in found] == [(3, 4, 1), (5, 6, 1)]


@unhurried
@given(logs())
def test_points_happened_when_their_competition_began(log: list[Recorded]) -> None:
    def began(competition_id: CompetitionId | None, recorded: Recorded, upto: int) -> datetime:
        competition = board_of(log[:upto]).competitions.get(competition_id) if competition_id else None
        return recorded.recorded_at if competition is None else competition.started_at

    for ranking_id in board_of(log).rankings:
        found = passage_of(Board(), Sequence(0), log, ranking_id, len(log))
        for recorded in found.points:
            assert isinstance(recorded.event, Points)
            competition_id = recorded.event.competition_id
            # A change of its time after that is told by the next passage.
            added = [one.sequence for one in log if getattr(one.event, "competition_id", None) == competition_id][:1]
            known = (found.first, *added, recorded.sequence)
            assert found.clock(recorded) in [began(competition_id, recorded, upto) for upto in known]


def test_passages_begin_where_all_who_ask_begin_them() -> None:
    edge = PASSAGE_EVENTS_MAX
    assert [passage_begin(Sequence(at)) for at in (1, edge, edge + 1, 2 * edge)] == [0, 0, edge, edge]
