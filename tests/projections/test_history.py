"""Lines of history are what a recount by the position rule gives, event by event."""

from hypothesis import given
from hypothesis import strategies as st

from engine.domain.events import (
    ClassificationDeclared,
    CompetitionVoided,
    CompetitorsStruck,
    CompetitorsUnstruck,
    Points,
    PointsAdded,
    PointsReversed,
    PointsScored,
    Recorded,
    Revaluation,
)
from engine.domain.steps import finished
from engine.domain.terms import CompetitorId, Reversal, Sort, UnityId
from projections.board.board import Board, Ranking
from projections.board.order import OrderedLines
from projections.columns.enrolment import Enrolment, Totals
from projections.past.history import AnyLine, DeclarationLine, DeltaLine, Filter, Historian
from tests.histories import board_of, logs, unhurried
from tests.positions import standings
from tests.projections.boards import boards


def positions(ranking: Ranking, unity_id: UnityId) -> dict[CompetitorId, int]:
    """Counted by brute force."""
    unity = ranking.unities[unity_id]
    return {s.competitor_id: s.position for s in standings(ranking.participants, unity.totals, unity.sort)}


def reversal_in(log: list[Recorded], recorded: Recorded) -> Reversal | None:
    event = recorded.event
    if not isinstance(event, PointsReversed):
        return None
    if event.undone is not None:
        return Reversal.UNDO if event.undone else Reversal.REDO
    if event.replaced:
        return Reversal.CORRECTION
    *_, cause = [one.event for one in log[: recorded.sequence] if isinstance(one.event, Revaluation)]
    match cause:
        case CompetitionVoided():
            return Reversal.VOID
        case CompetitorsStruck():
            return Reversal.STRIKE
        case CompetitorsUnstruck():
            return Reversal.UNSTRIKE
    return Reversal.UNVOID


def recounted(log: list[Recorded], ranking_id: int) -> list[AnyLine]:
    lines: list[AnyLine] = []
    for recorded, before, after in boards(log):
        event = recorded.event
        if isinstance(event, ClassificationDeclared) and event.ranking_id == ranking_id:
            lines.append(DeclarationLine(recorded.sequence, recorded.recorded_at, recorded.actor, event.criteria))
        if not isinstance(event, Points) or event.ranking_id != ranking_id:
            continue
        for n, delta in enumerate(event.deltas):
            then, now = before.rankings[event.ranking_id], after.rankings[event.ranking_id]
            until_here = [
                d.amount
                for d in event.deltas[: n + 1]
                if (d.competitor_id, d.unity_id) == (delta.competitor_id, delta.unity_id)
            ]
            lines.append(
                DeltaLine(
                    sequence=recorded.sequence,
                    recorded_at=recorded.recorded_at,
                    actor=recorded.actor,
                    competitor_id=delta.competitor_id,
                    unity_id=delta.unity_id,
                    competition_id=event.competition_id,
                    delta=delta.amount,
                    total=then.unities[delta.unity_id].totals.get(delta.competitor_id, 0) + sum(until_here),
                    position_before=positions(then, delta.unity_id).get(delta.competitor_id),
                    position_after=positions(now, delta.unity_id).get(delta.competitor_id),
                    reverses=event.reverses if isinstance(event, PointsReversed) else None,
                    reversal=reversal_in(log, recorded),
                    reason=event.reason if isinstance(event, PointsAdded) else None,
                    scored=isinstance(event, PointsScored),
                )
            )
    return lines


@unhurried
@given(logs(), st.data())
def test_lines_are_those_of_a_recount_wherever_they_begin(log: list[Recorded], data: st.DataObject) -> None:
    for ranking_id in board_of(log).rankings:
        expected = recounted(log, ranking_id)
        after = data.draw(st.integers(0, len(log)))
        historian = Historian(board_of(log[:after]), ranking_id)
        told = [line for recorded in log[after:] for line in finished(historian.lines(recorded))]
        assert told == [line for line in expected if line.sequence > after]
        assert historian.board == board_of(log)


@unhurried
@given(logs())
def test_running_totals_end_at_the_totals_of_the_board(log: list[Recorded]) -> None:
    board = board_of(log)
    for ranking_id, ranking in board.rankings.items():
        historian = Historian(Board(), ranking_id)
        last = {
            (line.unity_id, line.competitor_id): line.total
            for recorded in log
            for line in finished(historian.lines(recorded))
            if isinstance(line, DeltaLine)
        }
        totals = {(u, c): total for u, unity in ranking.unities.items() for c, total in unity.totals.items()}
        assert {of: total for of, total in last.items() if total} == totals


@unhurried
@given(logs(), st.data())
def test_a_filter_takes_the_lines_that_have_all_it_names(log: list[Recorded], data: st.DataObject) -> None:
    for ranking_id in board_of(log).rankings:
        historian = Historian(Board(), ranking_id)
        lines = [line for recorded in log for line in finished(historian.lines(recorded))]
        if not lines:
            continue
        one = data.draw(st.sampled_from(lines))
        fields = data.draw(st.sets(st.sampled_from(["unity_id", "competitor_id", "competition_id", "actor"])))
        asked = {name: getattr(one, name) for name in fields if getattr(one, name, None) is not None}
        taken = [line for line in lines if Filter(**asked).takes(line)]
        assert taken == [line for line in lines if all(getattr(line, name, None) == it for name, it in asked.items())]
        assert one in taken


@given(
    st.lists(st.integers(-3, 3), min_size=1, max_size=8),
    st.sampled_from(Sort),
    st.lists(st.tuples(st.integers(0, 9), st.integers(-4, 4)), max_size=12),
    st.integers(0, 9),
)
def test_an_order_stays_that_of_the_rule_while_totals_change(
    start: list[int], sort: Sort, changes: list[tuple[int, int]], most: int
) -> None:
    enrolled = [CompetitorId(n) for n in range(1, len(start) + 1)]
    enrolment = Enrolment(enrolled)
    totals = Totals(enrolment, dict(zip(enrolled, start, strict=True)))
    order = OrderedLines(enrolment, totals, sort)
    for who, amount in changes:  # some are not enrolled
        competitor_id = CompetitorId(who + 1)
        total, before = totals.get(competitor_id, 0), order.line(competitor_id)
        totals.add(competitor_id, amount)
        order.replace(before, order.line(competitor_id))
        lines = standings(enrolled, totals, sort)
        assert [order.standing(line.competitor_id) for line in lines] == lines
        now = totals[competitor_id]
        low, high = sorted((total, now))
        between = [line for line in lines if low <= line.total <= high]
        assert order.count_between(total, now) == len(between)
        assert set(order.between(total, now, len(lines))) == {line.competitor_id for line in between}
        nearest = sorted(abs(line.total - now) for line in between)[:most]
        assert [abs(totals[one] - now) for one in order.between(total, now, most)] == nearest
        if competitor_id not in enrolled:
            assert order.standing(competitor_id) is None
