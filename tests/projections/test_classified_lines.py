"""Every window of a classification is a part of the whole, now and while others change what it is counted from."""

import asyncio
from collections.abc import Generator
from contextlib import ExitStack
from typing import Any, Final
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.domain import events
from engine.domain.errors import TooMuchWork
from engine.domain.events import Criterion, Delta, Event, Recorded
from engine.domain.steps import finished
from engine.domain.terms import CompetitorId, UnityId
from engine.process.time_slices import in_time_slices
from projections.board import classified_lines
from projections.board import order as orders_of_lines
from projections.board.board import Board
from projections.board.classification import Classified, Counted, in_force, leading
from projections.board.classified_lines import ClassifiedLines
from projections.board.order import OrderedLines
from projections.live.classifications import HeldCounts
from tests.bounds import Bounds, set_bounds
from tests.calls import Calls
from tests.histories import SummedBoard, counted_of, fold_events, logs, unhurried, with_sums
from tests.histories import board_of as board_of_log
from tests.projections.classified import (
    COMPETITIONS,
    COMPETITORS,
    RANKING,
    UNITIES,
    RecordedLive,
    board_of,
    classification,
    histories_with_ties,
    history_of,
    live_of,
    meanwhile,
    ranking_of,
)

STRANGER: Final = CompetitorId(99)


def lines_of(board: SummedBoard, counted: Counted | None = None) -> ClassifiedLines:
    ranking = board.rankings[RANKING]
    criteria = in_force(ranking)
    unities = [ranking.unities[criterion.unity_id] for criterion in criteria[: leading(criteria)]]
    order = None
    if unities:
        order = OrderedLines(ranking.participants, unities[0].totals, unities[0].sort, unities[1:])
    return ClassifiedLines(counted or counted_of(board, RANKING), criteria, ranking.participants, order, {})


@unhurried
@given(history=histories_with_ties, start=st.integers(0, 8), count=st.integers(1, 8), span=st.integers(0, 4))
def test_a_window_is_a_part_of_the_classification(history: list[Event], start: int, count: int, span: int) -> None:
    board = board_of(history)
    whole = classification(board)
    for kept in (True, False):
        lines = lines_of(board)
        for _ in range(1 + kept):  # the second time from what is known
            assert len(lines) == len(whole)
            assert finished(lines.run(start, start + count)) == whole[start : start + count]
            for offset, line in enumerate(whole):
                around = finished(lines.around(line.competitor_id, span))
                assert around == whole[max(offset - span, 0) : offset + span + 1]
                first = offset // count * count
                assert finished(lines.page(line.competitor_id, count)) == (first, whole[first : first + count])
            named = [line.competitor_id for line in whole[start:]]
            assert finished(lines.of(named)) == {line.competitor_id: line for line in whole[start:]}
    assert finished(lines_of(board).around(STRANGER, 1)) is None
    assert finished(lines_of(board).of([STRANGER])) == {STRANGER: None}


def in_small_steps(at_once: int) -> ExitStack:
    """More than `at_once` competitors are sought by going through all lines."""
    patched = ExitStack()
    patched.enter_context(mock.patch.multiple(classified_lines, SOUGHT_AT_ONCE_MAX=at_once, _STEP_COMPETITORS=2))
    patched.enter_context(mock.patch.object(orders_of_lines, "_RUN_LINES", 3))
    return patched


@pytest.mark.parametrize("at_once", [0, 12])
@unhurried
@given(history=histories_with_ties, sought=st.lists(st.sampled_from([*COMPETITORS, STRANGER]), unique=True))
def test_those_sought_stand_in_the_order_of_the_whole(
    at_once: int, history: list[Event], sought: list[CompetitorId]
) -> None:
    board = board_of(history)
    with in_small_steps(at_once):
        found = finished(lines_of(board).among(sought))
    assert found == [line for line in classification(board) if line.competitor_id in sought]


def test_where_totals_alone_decide_no_more_lines_are_looked_at_than_are_asked_for() -> None:
    """However many are level: here all of them, and one who is better."""
    main, fouls, _ = UNITIES
    crowd, lines_asked = tuple(map(CompetitorId, range(1, 3_001))), 20
    board = ranking_of(crowd, main)
    fold_events(board, events.UnityAdded(ranking_id=RANKING, unity_id=fouls, name="fouls"))
    fold_events(board, events.PointsAdded(ranking_id=RANKING, deltas=(Delta(crowd[7], fouls, 1),)))
    criteria = Criterion(unity_id=main), Criterion(unity_id=fouls)
    fold_events(board, events.ClassificationDeclared(ranking_id=RANKING, criteria=criteria))
    looked_at = []

    class Watched(Counted):
        def total(self, unity_id: UnityId, competitor_id: CompetitorId) -> int:
            looked_at.append((unity_id, competitor_id))
            return super().total(unity_id, competitor_id)

    ranking = board.rankings[RANKING]
    whole = classification(board)
    lines = lines_of(board, Watched(board, ranking, board.sums[RANKING]))
    windows = lines.run(1_500, 1_520), lines.around(whole[1_509].competitor_id, 10), lines.run(0, lines_asked)
    for window, expected in zip(windows, (whole[1_500:1_520], whole[1_499:1_520], whole[:20]), strict=True):
        looked_at.clear()
        assert finished(window) == expected
        assert len(looked_at) <= len(criteria) * (lines_asked + 3)
    named = [crowd[7], crowd[2_000]]
    looked_at.clear()
    assert list(finished(lines.of(named)).values()) == [line for line in whole if line.competitor_id in named]
    assert finished(lines.among(named)) == [line for line in whole if line.competitor_id in named]
    assert len(looked_at) <= 2 * len(named) * len(criteria) * 3


# ── In a live ───────────────────────────────────────────────────────────────────────────────────────────


async def whole_of(live: RecordedLive) -> list[Classified]:
    async with live.classifications.lines(RANKING, live.know_sums) as lines:
        return await in_time_slices(lines.run(0, len(lines)))


@unhurried
@given(history=histories_with_ties, at_once=st.booleans())
def test_a_live_classifies_as_a_replay_does_after_every_event(history: list[Event], at_once: bool) -> None:
    async def follow() -> None:
        founding = len(COMPETITORS) + len(UNITIES) + 1
        live = live_of(history[:founding])
        for number, event in enumerate(history[founding:], start=founding + 1):
            live.append(event)
            reversal_follows = number < len(history) and isinstance(history[number], events.PointsReversed)
            if not reversal_follows:  # a voiding and its reversals are one block
                assert await whole_of(live) == classification(board_of(history[:number]))

    with pytest.MonkeyPatch.context() as patched:
        set_bounds(patched, MADE_AT_ONCE_MAX=2_000 if at_once else 0)
        asyncio.run(follow())


@pytest.mark.parametrize("at_once", [None, 0, 12])
@unhurried
@given(history=histories_with_ties, more=histories_with_ties)
def test_what_is_folded_while_lines_are_computed_does_not_change_them(
    at_once: int | None, history: list[Event], more: list[Event]
) -> None:
    """Whether all lines are asked for or those of competitors, who are looked up one by one or not."""
    live = live_of(history)
    expected = classification(board_of(history))

    async def follow() -> list[Classified]:
        async with live.classifications.lines(RANKING, live.know_sums) as lines:
            steps: Generator[None, None, list[Classified]]
            steps = lines.run(0, len(lines)) if at_once is None else lines.among(COMPETITORS)
            waiting = iter(meanwhile(history, more))
            while True:
                try:
                    next(steps)
                except StopIteration as end:
                    return list(end.value)
                live.append(*[event for event in [next(waiting, None)] if event is not None])

    with in_small_steps(at_once or 0):
        assert asyncio.run(follow()) == expected
    assert live.classifications.held == []


@pytest.mark.parametrize("question", ["run", "around", "page"])
def test_a_window_shows_one_state_though_others_read_the_standings_of_its_first_criterion_meanwhile(
    question: str,
) -> None:
    """They share the order, which moves the lines that have changed when it is asked for."""
    main, fouls, _ = UNITIES
    in_pairs = [(None, (Delta(one, main, 10 - n // 2),)) for n, one in enumerate(COMPETITORS)]
    criteria = Criterion(unity_id=main), Criterion(unity_id=fouls, best=1)
    history = history_of(criteria, [()] * len(COMPETITIONS), in_pairs, set())
    live, expected = live_of(history), classification(board_of(history))

    async def follow() -> Any:
        async with live.classifications.lines(RANKING, live.know_sums) as lines:
            her = expected[4].competitor_id
            steps: Generator[None, None, Any] = {
                "run": lambda: lines.run(0, len(lines)),
                "around": lambda: lines.around(her, 2),
                "page": lambda: lines.page(her, 3),
            }[question]()
            next(steps)
            live.append(events.PointsAdded(ranking_id=RANKING, deltas=(Delta(COMPETITORS[-1], main, 50),)))
            await live.orders.of(RANKING, main)
            return await in_time_slices(steps)

    shown = {"run": expected, "around": expected[2:7], "page": (3, expected[3:6])}
    assert asyncio.run(follow()) == shown[question]


@pytest.mark.parametrize("event", [events.CompetitionVoided, events.CompetitionUnvoided])
def test_held_counts_say_what_was_voided_at_their_moment(event: Any) -> None:
    board = Board()
    fold_events(board, *history_of((), [()] * len(COMPETITIONS), [], {COMPETITIONS[0]}))
    held = HeldCounts(board, RANKING, None)
    change = event(competition_id=COMPETITIONS[event is events.CompetitionVoided])
    held.note(change)
    fold_events(board, change)
    assert [held.is_voided(competition_id) for competition_id in COMPETITIONS[:2]] == [True, False]


def test_held_counts_say_who_took_part_at_their_moment() -> None:
    board = Board()
    fold_events(board, *history_of((), [tuple(COMPETITORS[:2])] * len(COMPETITIONS), [], set()))
    held = HeldCounts(board, RANKING, None)
    for participants in (COMPETITORS[1:3], COMPETITORS[2:4]):
        change = events.CompetitionChanged(competition_id=COMPETITIONS[0], participants=tuple(participants))
        held.note(change)
        fold_events(board, change)
    assert [held.participants(one) for one in COMPETITIONS[:2]] == [tuple(COMPETITORS[:2])] * 2


def test_lines_are_computed_again_when_others_took_part() -> None:
    main, *_ = UNITIES
    ada, ben, cara, dora, *_ = COMPETITORS
    gained = [(COMPETITIONS[0], (Delta(ada, main, 1), Delta(ben, main, 2))), (None, (Delta(ada, main, 1),))]
    criteria = Criterion(unity_id=main), Criterion(unity_id=main, among="tied")
    live = live_of(history_of(criteria, [(ada, ben)] * len(COMPETITIONS), gained, set()))
    assert [line.position for line in asyncio.run(whole_of(live))[:2]] == [1, 2]
    live.append(events.CompetitionChanged(competition_id=COMPETITIONS[0], participants=(cara, dora)))
    assert [line.position for line in asyncio.run(whole_of(live))[:2]] == [1, 1]


def test_lines_are_computed_again_only_when_something_of_the_ranking_has_changed(calls: Calls) -> None:
    main, fouls, _ = UNITIES
    history = history_of((Criterion(unity_id=main, best=1),), [()] * 10, [], set())
    live = live_of(history)
    computed = calls(classified_lines, "classified")
    first = asyncio.run(whole_of(live))
    live.append(events.CompetitorRegistered(competitor_id=STRANGER, name="Stranger"))
    assert asyncio.run(whole_of(live)) == first
    assert len(computed) == 1
    live.append(events.PointsAdded(ranking_id=RANKING, deltas=(Delta(COMPETITORS[3], main, 5),)))
    assert asyncio.run(whole_of(live))[0].competitor_id == COMPETITORS[3]
    assert len(computed) == 2
    live.append(events.ClassificationDeclared(ranking_id=RANKING, criteria=(Criterion(unity_id=fouls),)))
    assert asyncio.run(whole_of(live)) == [Classified(competitor_id, 1, (0,), None) for competitor_id in COMPETITORS]


def test_a_question_that_would_look_at_too_much_is_refused(bounds: Bounds) -> None:
    main = next(iter(UNITIES))
    live = live_of(history_of((Criterion(unity_id=main, best=1),), [()] * 10, [], set()))
    bounds(CLASSIFIED_SUMS_MAX=len(COMPETITORS))
    assert len(asyncio.run(whole_of(live))) == len(COMPETITORS)
    live.append(events.PointsAdded(ranking_id=RANKING, deltas=(Delta(COMPETITORS[3], main, 5),)))
    bounds(CLASSIFIED_SUMS_MAX=len(COMPETITORS) - 1)
    with pytest.raises(TooMuchWork):
        asyncio.run(whole_of(live))
    assert live.classifications.held == []


@unhurried
@given(logs())
def test_any_history_classifies_its_rankings(log: list[Recorded]) -> None:
    """Whoever leaves, returns or was never there: everybody in the list has one line."""
    board = with_sums(board_of_log(log), [recorded.event for recorded in log])
    for ranking_id, ranking in board.rankings.items():
        lines = classification(board, ranking_id)
        assert sorted(line.competitor_id for line in lines) == sorted(ranking.participants)
        assert [line.position for line in lines] == [
            1 + next(n for n, other in enumerate(lines) if other.position == line.position) for line in lines
        ]
        parted = [n > 0 and line.position != lines[n - 1].position for n, line in enumerate(lines)]
        assert parted == [line.decided_by is not None for line in lines]
