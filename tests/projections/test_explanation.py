"""Explanations add up, and name each overtaking that a recount finds."""

from collections import Counter
from datetime import UTC, datetime
from itertools import pairwise
from typing import Final
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UnsetType

from engine.database.pool import Database
from engine.domain import scoring
from engine.domain.awards import Award, Scoring
from engine.domain.events import (
    CompetitionAdded,
    CompetitorRegistered,
    Delta,
    ParticipantsChanged,
    Points,
    PointsAdded,
    PointsScored,
    RankingCreated,
    Recorded,
    ScoringDeclared,
    UnityChanged,
)
from engine.domain.steps import finished
from engine.domain.terms import OPERATOR, CompetitionId, CompetitorId, RankingId, Sequence, Sort, UnityId
from projections.answers.explainer import OVERTAKINGS_MAX, Cause, Explainer, Overtaking, Place
from projections.answers.explaining import explanation_by_date
from projections.answers.explanation import settled
from projections.board.board import Board, Ranking, Unity
from projections.past.past import Past
from tests.desks import record, turns_at_calls
from tests.histories import board_of, logs, unhurried, with_sums
from tests.positions import standings
from tests.projections.boards import boards
from tests.projections.classified import classification
from tests.tournaments import open_new_tournament


def place_of(board: Board, ranking_id: int, unity_id: int, competitor_id: int) -> Place:
    """Counted by brute force."""
    ranking = board.rankings.get(ranking_id)  # type: ignore[call-overload]
    if ranking is None or unity_id not in ranking.unities:
        return Place(None, 0)
    unity = ranking.unities[unity_id]
    found = [s for s in standings(ranking.participants, unity.totals, unity.sort) if s.competitor_id == competitor_id]
    return Place(found[0].position if found else None, unity.totals.get(CompetitorId(competitor_id), 0))


def compared(unity: Unity, one: int, other: int) -> int:
    """Whether the first of two competitors is better than the second, level, or worse."""
    pair = standings([CompetitorId(one), CompetitorId(other)], unity.totals, unity.sort)
    better = {line.competitor_id: -line.position for line in pair}
    return (better[CompetitorId(one)] > better[CompetitorId(other)]) - (
        better[CompetitorId(one)] < better[CompetitorId(other)]
    )


def overtakings(before: Ranking, after: Ranking, unity_id: int, her: int) -> set[tuple[int, int, bool]]:
    """Who passed whom, or (True) drew level, of all that she stands in a ranking with."""
    if her not in after.participants or unity_id not in before.unities:
        return set()
    found = set()
    then, now = before.unities[unity_id], after.unities[unity_id]  # type: ignore[index]
    for other in set(after.participants) - {her}:
        was, is_ = compared(then, her, other), compared(now, her, other)
        if was != is_:
            found.add((her, other, is_ == 0) if is_ > was else (other, her, is_ == 0))
    return found


def told(overtaking: Overtaking) -> tuple[int, int, bool]:
    return overtaking.who, overtaking.whom, overtaking.level


def test_the_cause_of_a_step_is_points_the_list_or_the_sort() -> None:
    ada, ben, ranking_id, unity_id = CompetitorId(1), CompetitorId(2), RankingId(3), UnityId(4)
    created = RankingCreated(
        ranking_id=ranking_id, name="Cup", participants=(ben, ada), main_unity_id=unity_id, main_unity_name="Points"
    )
    registered = [CompetitorRegistered(competitor_id=one, name="A") for one in (ada, ben)]
    happened = [
        PointsAdded(ranking_id=ranking_id, deltas=(Delta(ada, unity_id, 3),)),
        UnityChanged(ranking_id=ranking_id, unity_id=unity_id, sort=Sort.ASC),
        ParticipantsChanged(ranking_id=ranking_id, removed=(ben,)),
    ]
    now = datetime(2026, 5, 2, tzinfo=UTC)
    log = [
        Recorded(Sequence(n), now, OPERATOR, None, event)
        for n, event in enumerate([*registered, created, *happened], 1)
    ]
    explainer = Explainer(board_of(log[:3]), ranking_id, unity_id, ada)
    steps = [finished(explainer.step(one)) for one in log[3:]]
    causes = [step and step.cause for step in steps]
    assert causes == [Cause.POINTS, Cause.SORT, Cause.LIST]


@unhurried
@given(logs(), st.data())
def test_steps_are_what_a_recount_finds_wherever_they_begin(log: list[Recorded], data: st.DataObject) -> None:
    end = board_of(log)
    pairs = [(r, u) for r, ranking in end.rankings.items() for u in ranking.unities]
    if not pairs:
        return
    ranking_id, unity_id = data.draw(st.sampled_from(pairs))
    her = data.draw(st.sampled_from(list(end.competitors)))
    start = data.draw(st.integers(0, len(log)))
    most = data.draw(st.integers(0, 3) | st.just(OVERTAKINGS_MAX))
    explainer = Explainer(board_of(log[:start]), ranking_id, unity_id, her)
    place = place_of(board_of(log[:start]), ranking_id, unity_id, her)
    assert explainer.place == place
    steps = []
    for recorded, before, after in boards(log):
        if recorded.sequence <= start:
            continue
        with patch("projections.answers.explainer.OVERTAKINGS_MAX", most):
            step = finished(explainer.step(recorded))
        was, is_ = (place_of(board, ranking_id, unity_id, her) for board in (before, after))
        assert explainer.place == is_
        event = recorded.event
        points = isinstance(event, Points) and event.ranking_id == ranking_id
        hers = [d.amount for d in event.deltas if (d.competitor_id, d.unity_id) == (her, unity_id)] if points else []
        passed = (
            overtakings(before.rankings[ranking_id], after.rankings[ranking_id], unity_id, her) if points else set()
        )
        if step is None:
            assert (was, hers, passed) == (is_, [], set())
            continue
        assert (step.sequence, step.recorded_at, step.actor) == (
            recorded.sequence,
            recorded.recorded_at,
            recorded.actor,
        )
        assert Place(step.position_before, step.total_before) == was
        assert Place(step.position_after, step.total) == is_
        assert step.delta == (sum(hers) if hers else None)
        assert was.total + (step.delta or 0) == is_.total
        those_told = {told(overtaking) for overtaking in step.overtakings}
        assert len(those_told) == len(step.overtakings) == len(passed) - step.overtakings_left_out
        assert those_told <= passed
        totals = after.rankings[ranking_id].unities[unity_id].totals if points else {}
        if step.overtakings_left_out:
            moved = {d.competitor_id for d in event.deltas if d.unity_id == unity_id}  # type: ignore[union-attr]
            assert {pair for pair in passed if moved & {pair[0], pair[1]} - {her}} <= those_told
            still = [abs(o.who_total - o.whom_total) for o in step.overtakings if not moved & {o.who, o.whom} - {her}]
            everybody = {other for pair in passed for other in pair[:2]} - {her} - moved
            assert sorted(still) == sorted(abs(totals.get(o, 0) - is_.total) for o in everybody)[:most]
        assert (step.cause in (Cause.LIST, Cause.SORT)) == (not points)
        assert (step.cause is Cause.SORT) == isinstance(event, UnityChanged)
        assert step.reason == (event.reason if points and isinstance(event, PointsAdded) else None)
        assert hers or passed or was != is_
        assert all(
            (o.who_total, o.whom_total) == (totals.get(o.who, 0), totals.get(o.whom, 0)) for o in step.overtakings
        )
        steps.append(step)
    own = [step for step in reversed(steps) if step.is_own]
    kept = [step for step in settled(own).kept if step.delta is not None]
    assert sum(step.delta for step in kept) == sum(step.delta or 0 for step in own)
    assert all(one.total == before.total + one.delta for one, before in pairwise(kept))
    assert not kept or kept[0].total == explainer.place.total


@unhurried
@given(logs(), st.data())
def test_neighbours_are_those_of_the_classification_if_one_is_declared(
    log: list[Recorded], data: st.DataObject
) -> None:
    board = with_sums(board_of(log), [recorded.event for recorded in log])
    for ranking_id, ranking in board.rankings.items():
        her = data.draw(st.sampled_from(list(board.competitors)))
        explainer = Explainer(board, ranking_id, next(iter(ranking.unities)), her)
        neighbours = finished(explainer.neighbours(board.sums[ranking_id]))
        if not ranking.criteria:
            assert neighbours is None
            continue
        lines = classification(board, ranking_id)
        hers = [n for n, line in enumerate(lines) if line.competitor_id == her]
        near = [lines[max(n - 1, 0) : n + 2] for n in hers]
        assert neighbours is not None
        assert (neighbours.criteria, neighbours.lines) == (ranking.criteria, near[0] if near else [])


RUNNERS: Final = 1_100


async def test_races_of_thousands_are_explained_in_chunks_of_their_participants(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By date, where all that she had is scored again to say what it was for."""
    tournament_id = await open_new_tournament(database, actor=OPERATOR)
    league, points = RankingId(30), UnityId(40)
    runners = tuple([CompetitorId(100 + n) for n in range(RUNNERS)])
    by_place = Award(unity_id=points, value="place", among="enrolled")
    registered = [CompetitorRegistered(competitor_id=one, name=f"{one}") for one in runners]
    async with database.connection() as connection:
        created = RankingCreated(
            ranking_id=league, name="League", participants=runners, main_unity_id=points, main_unity_name="points"
        )
        declared = ScoringDeclared(ranking_id=league, scorings=(Scoring(awards=(by_place,), order="low"),))
        await record(connection, tournament_id, *registered, created, declared)
        for race in (CompetitionId(1), CompetitionId(2)):
            times = {one: f"{n + 10}.5" for n, one in enumerate(runners)}
            added = CompetitionAdded(competition_id=race, group_id=1, participants=runners, result=times)
            lines = tuple([Delta(one, points, n) for n, one in enumerate(runners, start=1)])
            scored = PointsScored(ranking_id=league, competition_id=race, deltas=lines)
            head = (await record(connection, tournament_id, added, scored)).last_sequence
    assert head is not None
    asked = tournament_id, league, points, runners[7]
    on = datetime.max.replace(tzinfo=UTC)
    async with turns_at_calls(monkeypatch, scoring, "_quantity") as turns:
        told = await explanation_by_date(Past(database), *asked, on=on, upto=head, head=head)
    assert [step.scored.place for step in told.steps if not isinstance(step.scored, UnsetType)] == [8, 8]
    assert len(turns) >= 2 * RUNNERS
    assert max(Counter(turns).values()) <= scoring.PARTICIPANTS_AT_ONCE
