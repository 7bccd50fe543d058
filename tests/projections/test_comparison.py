"""What a comparison says of a classification is what a replay of both logs says."""

import asyncio
from collections.abc import Generator

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.domain import events
from engine.domain.errors import TooMuchWork
from engine.domain.events import Criterion, Delta, Event
from engine.domain.steps import finished
from engine.domain.terms import FIRST_TIME, CompetitionId, CompetitorId, Sequence
from projections.board.board import Board, Ranking, what_counts
from projections.board.competition_sums import CompetitionSums, WhatCounts
from projections.past.comparison import (
    ClassifiedMove,
    ForeseenCounts,
    classified_move_steps,
    copied,
    foreseen,
    what_will_count,
    without,
)
from tests.bounds import Bounds
from tests.histories import counted_of, sums_of, unhurried
from tests.projections.classified import (
    COMPETITIONS,
    COMPETITORS,
    RANKING,
    UNITIES,
    board_of,
    classification,
    histories_with_ties,
    history_of,
    live_of,
    meanwhile,
    turned,
)


def positions(board: Board) -> dict[CompetitorId, int]:
    return {line.competitor_id: line.position for line in classification(board)}


def moves_between(before: Board, after: Board) -> list[ClassifiedMove]:
    """By two whole classifications."""
    then, now = positions(before), positions(after)
    return [ClassifiedMove(c, then.get(c), now.get(c)) for c in [*now, *(c for c in then if c not in now)]]


def sums_then(
    board: Board, history: list[Event], decided: list[Event], after: Ranking
) -> tuple[CompetitionSums, WhatCounts]:
    """Of the lines that will count, which the second says."""
    will_count = what_will_count(after, decided, what_counts(board, RANKING, None))
    return sums_of(live_of(history).log, will_count), will_count


RESULTS_AMONG_TIED = history_of(
    (Criterion(unity_id=22, among="tied"),),
    [()] * len(COMPETITIONS),
    [(COMPETITIONS[0], (Delta(11, 21, 0),)), (COMPETITIONS[1], (Delta(11, 22, 1),))],
    set(),
    set(),
)
"""All are tied, and the second match has no participants: its points would break the tie if it had."""


def into(
    found: list[ClassifiedMove], steps: Generator[None, None, list[ClassifiedMove]]
) -> Generator[None, None, None]:
    found += yield from steps


@unhurried
@given(history=histories_with_ties, match=st.sampled_from(COMPETITIONS))
def test_what_is_foreseen_of_a_classification_is_what_comes(history: list[Event], match: CompetitionId) -> None:
    board, decided = board_of(history), turned(history, match)
    expected = moves_between(board, board_of([*history, *decided]))
    after = foreseen(board, decided).get(RANKING)
    if after is None:  # nobody got anything there
        assert all(move.before == move.after for move in expected)
        return
    before = board.rankings[RANKING]
    counted = counted_of(board, RANKING)
    then = ForeseenCounts(board, counted, RANKING, after, decided, FIRST_TIME)
    if then.lacks_sums:
        finished(then.give(*sums_then(board, history, decided, after)))
    assert finished(classified_move_steps(before, after, counted, then)) == expected
    assert board == board_of(history)


@pytest.mark.parametrize("is_followed", [True, False])
@unhurried
@given(history=histories_with_ties, match=st.sampled_from(COMPETITIONS), more=histories_with_ties)
@example(history=RESULTS_AMONG_TIED, match=COMPETITIONS[0], more=[])
def test_what_is_folded_while_it_is_foreseen_does_not_change_it(
    is_followed: bool, history: list[Event], match: CompetitionId, more: list[Event]
) -> None:
    live, decided = live_of(history), turned(history, match)
    expected = moves_between(board_of(history), board_of([*history, *decided]))
    after = foreseen(live.board, decided).get(RANKING)
    if after is None:
        return
    before = copied(live.board.rankings[RANKING], after.participants)
    sums = asyncio.run(live.read_sums(live.head.sequence, what_counts(live.board, RANKING, None)))
    if is_followed:
        asyncio.run(live.know_sums(RANKING))
    with live.classifications.counts(RANKING) as counted:
        if not is_followed:
            counted.give(sums)
        then = ForeseenCounts(live.board, counted, RANKING, after, decided, FIRST_TIME)
        if then.lacks_sums:
            finished(then.give(*sums_then(live.board, history, decided, after)))
        steps = classified_move_steps(before, after, counted, then)
        found: list[ClassifiedMove] = []
        waiting = iter(meanwhile(history, more))
        for _ in into(found, steps):
            live.append(*[event for event in [next(waiting, None)] if event is not None])
    assert found == expected
    assert live.classifications.held == []


def test_participants_are_foreseen_where_results_among_the_tied_count() -> None:
    decided: list[Event] = [
        events.CompetitionChanged(competition_id=COMPETITIONS[1], participants=tuple(COMPETITORS[:2])),
        events.PointsAdded(ranking_id=RANKING, deltas=(Delta(11, 21, 0),)),
    ]
    board, comes = board_of(RESULTS_AMONG_TIED), board_of([*RESULTS_AMONG_TIED, *decided])
    counted, after = counted_of(board, RANKING), foreseen(board, decided)[RANKING]
    then = ForeseenCounts(board, counted, RANKING, after, decided, FIRST_TIME)
    found = finished(classified_move_steps(board.rankings[RANKING], after, counted, then))
    assert found == moves_between(board, comes)
    assert {move.after for move in found} != {1}


@unhurried
@given(
    history=histories_with_ties,
    competitions=st.sets(st.sampled_from(COMPETITIONS), max_size=3),
    competitors=st.sets(st.sampled_from(COMPETITORS), max_size=3),
)
def test_a_competitor_left_out_is_in_the_first_classification_alone(
    history: list[Event], competitions: set[CompetitionId], competitors: set[CompetitorId]
) -> None:
    board = board_of(history)
    other = board_of([left for event in history if (left := without(event, competitions, competitors)) is not None])
    before, after = board.rankings[RANKING], other.rankings[RANKING]
    found = finished(classified_move_steps(before, after, counted_of(board, RANKING), counted_of(other, RANKING)))
    assert found == moves_between(board, other)
    assert {move.competitor_id for move in found if move.after is None} == competitors


_OUT, _IN = COMPETITORS[:2]
_UNITY = next(iter(UNITIES))
_BOTH = (events.Delta(_OUT, _UNITY, 1), events.Delta(_IN, _UNITY, 2))


@pytest.mark.parametrize(
    ("event", "left"),
    [
        (events.PointsAdded(ranking_id=RANKING, deltas=_BOTH), {"deltas": _BOTH[1:]}),
        (events.PointsAdded(ranking_id=RANKING, deltas=_BOTH[:1]), None),
        (events.PointsAdded(ranking_id=RANKING, deltas=_BOTH, competition_id=COMPETITIONS[0]), None),
        (
            events.PointsReversed(
                ranking_id=RANKING, deltas=_BOTH, competition_id=COMPETITIONS[1], reverses=Sequence(1)
            ),
            {"deltas": _BOTH[1:]},
        ),
        (
            events.PointsReversed(
                ranking_id=RANKING, deltas=_BOTH, competition_id=COMPETITIONS[0], reverses=Sequence(1)
            ),
            None,
        ),
        (
            events.RankingCreated(
                ranking_id=RANKING, name="Cup", participants=(_OUT, _IN), main_unity_id=_UNITY, main_unity_name="Points"
            ),
            {"participants": (_IN,)},
        ),
        (
            events.RankingModified(ranking_id=RANKING, participants=(_OUT, _IN), main_unity_name="Points"),
            {"participants": (_IN,)},
        ),
        (events.ParticipantsChanged(ranking_id=RANKING, added=(_OUT, _IN)), {"added": (_IN,)}),
        (events.CompetitionVoided(competition_id=COMPETITIONS[0]), {}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_event_without_a_competitor_and_a_competition(event: Event, left: dict[str, object] | None) -> None:
    expected = None if left is None else msgspec.structs.replace(event, **left)
    assert without(event, COMPETITIONS[:1], [_OUT]) == expected


def test_a_comparison_that_would_look_at_too_much_is_refused(bounds: Bounds) -> None:
    """Each state may take as much as one classification."""
    criteria = (Criterion(unity_id=next(iter(UNITIES)), best=1),)
    board = board_of(history_of(criteria, [()] * len(COMPETITIONS), [], set()))
    ranking = board.rankings[RANKING]
    counted = counted_of(board, RANKING)
    bounds(CLASSIFIED_SUMS_MAX=len(COMPETITORS))
    assert len(finished(classified_move_steps(ranking, ranking, counted, counted))) == len(COMPETITORS)
    bounds(CLASSIFIED_SUMS_MAX=len(COMPETITORS) - 1)
    with pytest.raises(TooMuchWork):
        finished(classified_move_steps(ranking, ranking, counted, counted))
