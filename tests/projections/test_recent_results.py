"""Forms, against what the events of a log say."""

from collections import defaultdict
from datetime import datetime

from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from engine.domain import events
from engine.domain.events import PointsAdded, Recorded
from engine.domain.terms import CompetitionId, CompetitorId, RankingId, UnityId
from projections.board.board import Revisions, count_in, fold, what_counts
from projections.board.recent_results import CompetitionSum, Forms, looked_at
from tests.histories import board_of, counted_in, logs, struck_in, sums_of, unhurried


def recounted(
    log: list[Recorded], ranking_id: RankingId, unity_id: UnityId
) -> dict[CompetitorId, list[CompetitionSum]]:
    """All sums of each competitor, oldest first, by what was added, changed and voided."""
    dates: dict[CompetitionId, datetime | None] = {}
    first: dict[CompetitionId, datetime] = {}
    voided: set[CompetitionId] = set()
    sums: dict[CompetitorId, dict[CompetitionId, int]] = defaultdict(lambda: defaultdict(int))
    for recorded in log:
        event = recorded.event
        match event:
            case events.CompetitionAdded():
                dates[event.competition_id] = event.started_at
            case events.CompetitionChanged() if event.started_at is not UNSET:
                dates[event.competition_id] = event.started_at
            case events.CompetitionVoided():
                voided.add(event.competition_id)
            case events.CompetitionUnvoided():
                voided.remove(event.competition_id)
    struck = struck_in(log)
    for recorded in counted_in(log):
        event = recorded.event
        assert isinstance(event, PointsAdded)
        if event.competition_id is not None and event.ranking_id == ranking_id:
            for delta in event.deltas:
                if delta.competitor_id not in struck.get(event.competition_id, ()):
                    first.setdefault(event.competition_id, event.since or recorded.recorded_at)
                    if delta.unity_id == unity_id:
                        sums[delta.competitor_id][event.competition_id] += delta.amount
    numbers = list(dates)
    return {
        competitor_id: [
            CompetitionSum(c, its[c])
            for c in sorted(its, key=lambda c: (dates[c] or first[c], numbers.index(c)))
            if c not in voided
        ]
        for competitor_id, its in sums.items()
    }  # fmt: skip


@unhurried
@given(logs(), st.data())
def test_a_form_is_the_end_of_a_recount_whatever_is_folded_once_it_has_begun(
    log: list[Recorded], data: st.DataObject
) -> None:
    moment = data.draw(st.integers(len(log) // 2, len(log)))
    last = data.draw(st.integers(1, 4))
    for ranking_id in board_of(log[:moment]).rankings:
        for unity_id in board_of(log[:moment]).rankings[ranking_id].unities:
            board = board_of(log[:moment])
            sums = sums_of(log[:moment], what_counts(board, ranking_id, None))
            everybody = list(board.competitors)
            whole = recounted(log[:moment], ranking_id, unity_id)
            assert looked_at(sums, unity_id, everybody) >= sum(map(len, whole.values()))
            forms = Forms(board, sums, unity_id, everybody, last)
            for recorded in log[moment:]:
                fold(board, Revisions(), recorded)
                if isinstance(recorded.event, events.Points) and recorded.event.ranking_id == ranking_id:
                    count_in(sums, recorded.sequence, recorded.recorded_at, recorded.event, expires=False)
            forms.look_at(forms.competitions)
            assert {c: forms.of(c) for c in everybody} == {c: whole.get(c, [])[-last:] for c in everybody}
