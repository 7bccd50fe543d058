"""Every window of a classification is a part of the whole, now and while others change what it is counted from."""

import asyncio
from collections.abc import Generator
from datetime import UTC, datetime
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.domain import events
from engine.domain.errors import TooMuchWork
from engine.domain.events import Criterion, Delta, Event, Recorded
from engine.domain.terms import OPERATOR, CompetitorId, Sequence, TournamentId
from engine.log.log import Head
from engine.process.turns import in_turns
from projections.board import classified_lines
from projections.board.board import Board
from projections.board.classification import Classified, Counted, in_force
from projections.board.classified_lines import ClassifiedLines, leading
from projections.board.order import OrderedLines
from projections.live import orders
from projections.live.tournament import LiveTournament
from projections.past.history import finished
from tests.histories import board_of as board_of_log
from tests.histories import logs, unhurried
from tests.projections.test_classification import (
    COMPETITORS,
    RANKING,
    UNITIES,
    board_of,
    classification,
    histories_with_ties,
    history_of,
)

NOW: Final = datetime(2024, 2, 29, tzinfo=UTC)
STRANGER: Final = CompetitorId(99)


def lines_of(board: Board) -> ClassifiedLines:
    ranking = board.rankings[RANKING]
    criteria = in_force(ranking)
    unities = [ranking.unities[criterion.unity_id] for criterion in criteria[: leading(criteria)]]
    order = None
    if unities:
        order = OrderedLines(ranking.participants, unities[0].totals, unities[0].sort, unities[1:])
    return ClassifiedLines(Counted(board, ranking), criteria, ranking.participants, order, {})


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
            named = [line.competitor_id for line in whole[start:]]
            assert finished(lines.of(named)) == {line.competitor_id: line for line in whole[start:]}
    assert finished(lines_of(board).around(STRANGER, 1)) is None
    assert finished(lines_of(board).of([STRANGER])) == {STRANGER: None}


# ── In a live ───────────────────────────────────────────────────────────────────────────────────────────


def live_of(history: list[Event]) -> LiveTournament:
    live = LiveTournament(TournamentId(1), Head(Sequence(0), b""), Board())
    fold(live, *history)
    return live


def fold(live: LiveTournament, *history: Event) -> None:
    for event in history:
        sequence = Sequence(live.head.sequence + 1)
        live.fold([Recorded(sequence, NOW, OPERATOR, None, event)], Head(sequence, b""))


async def whole_of(live: LiveTournament) -> list[Classified]:
    async with live.classifications.lines(RANKING) as lines:
        return await in_turns(lines.run(0, len(lines)))


@unhurried
@given(history=histories_with_ties, at_once=st.booleans())
def test_a_live_classifies_as_a_replay_does_after_every_event(history: list[Event], at_once: bool) -> None:
    async def follow() -> None:
        founding = len(COMPETITORS) + len(UNITIES) + 1
        live = live_of(history[:founding])
        for number, event in enumerate(history[founding:], start=founding + 1):
            fold(live, event)
            reversal_follows = number < len(history) and isinstance(history[number], events.PointsReversed)
            if not reversal_follows:  # a voiding and its reversals are one block
                assert await whole_of(live) == classification(board_of(history[:number]))

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(orders, "MADE_AT_ONCE_MAX", 2_000 if at_once else 0)
        asyncio.run(follow())


@unhurried
@given(history=histories_with_ties, more=histories_with_ties)
def test_what_is_folded_while_lines_are_computed_does_not_change_them(history: list[Event], more: list[Event]) -> None:
    live = live_of(history)
    expected = classification(board_of(history))
    later = [
        event
        for event in more
        if isinstance(
            event,
            events.PointsAdded
            | events.PointsReversed
            | events.CompetitionVoided
            | events.CompetitionUnvoided
            | events.ClassificationDeclared,
        )
    ]
    later.append(events.UnityChanged(ranking_id=RANKING, unity_id=next(iter(UNITIES)), sort="ASC"))  # type: ignore[arg-type]
    later.append(events.ParticipantsChanged(ranking_id=RANKING, removed=tuple(COMPETITORS[2:5])))

    async def follow() -> list[Classified]:
        async with live.classifications.lines(RANKING) as lines:
            steps: Generator[None, None, list[Classified]] = lines.run(0, len(lines))
            waiting = iter(later)
            while True:
                try:
                    next(steps)
                except StopIteration as end:
                    return list(end.value)
                fold(live, *[event for event in [next(waiting, None)] if event is not None])

    assert asyncio.run(follow()) == expected
    assert live.classifications.held == []


def test_lines_are_computed_again_only_when_something_of_the_ranking_has_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    main, fouls, _ = UNITIES
    history = history_of((Criterion(unity_id=main, best=1),), [()] * 10, [], set())
    live = live_of(history)
    computed = []
    compute = classified_lines.classified

    def counting(*arguments: Any, **more: Any) -> Any:
        computed.append(1)
        return compute(*arguments, **more)

    monkeypatch.setattr(classified_lines, "classified", counting)
    first = asyncio.run(whole_of(live))
    fold(live, events.CompetitorRegistered(competitor_id=STRANGER, name="Stranger"))
    assert asyncio.run(whole_of(live)) == first
    assert len(computed) == 1
    fold(live, events.PointsAdded(ranking_id=RANKING, deltas=(Delta(COMPETITORS[3], main, 5),)))
    assert asyncio.run(whole_of(live))[0].competitor_id == COMPETITORS[3]
    assert len(computed) == 2
    fold(live, events.ClassificationDeclared(ranking_id=RANKING, criteria=(Criterion(unity_id=fouls),)))
    assert asyncio.run(whole_of(live)) == [Classified(competitor_id, 1, (0,), None) for competitor_id in COMPETITORS]


def test_a_question_that_would_look_at_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    main = next(iter(UNITIES))
    live = live_of(history_of((Criterion(unity_id=main, best=1),), [()] * 10, [], set()))
    monkeypatch.setattr(classified_lines, "CLASSIFIED_SUMS_MAX", len(COMPETITORS))
    assert len(asyncio.run(whole_of(live))) == len(COMPETITORS)
    fold(live, events.PointsAdded(ranking_id=RANKING, deltas=(Delta(COMPETITORS[3], main, 5),)))
    monkeypatch.setattr(classified_lines, "CLASSIFIED_SUMS_MAX", len(COMPETITORS) - 1)
    with pytest.raises(TooMuchWork):
        asyncio.run(whole_of(live))
    assert live.classifications.held == []


@unhurried
@given(logs())
def test_any_history_classifies_its_rankings(log: list[Recorded]) -> None:
    """Whoever leaves, returns or was never there: everybody in the list has one line."""
    board = board_of_log(log)
    for ranking_id, ranking in board.rankings.items():
        lines = classification(board, ranking_id)
        assert sorted(line.competitor_id for line in lines) == sorted(ranking.participants)
        assert [line.position for line in lines] == [
            1 + next(n for n, other in enumerate(lines) if other.position == line.position) for line in lines
        ]
        parted = [n > 0 and line.position != lines[n - 1].position for n, line in enumerate(lines)]
        assert parted == [line.decided_by is not None for line in lines]
