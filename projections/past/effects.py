"""The effects of points on stored totals, as differences: for sums the deltas, for results the changes of marks.

Pure. With differences, a history can be walked in both directions.
"""

from collections.abc import Iterator

from engine.domain.events import Delta, Points
from engine.domain.marks import mark_after
from engine.domain.terms import CompetitorId, UnityId
from projections.board.board import Ranking


class Effects:
    """Use `of` for each event of points of the ranking, in order, starting from the state of `ranking`. It does not
    change the ranking. The ranking may be folded meanwhile if all totals that the events name were read before."""

    def __init__(self, ranking: Ranking) -> None:
        self._ranking = ranking
        self._kept: dict[tuple[CompetitorId, UnityId], int] = {}

    def of(self, event: Points) -> Iterator[Delta]:
        """By how much each line of the event changes a total, in the order of `changed_by`."""
        yield from event.deltas
        for total in event.totals:
            after = self._ranking.unities[total.unity_id].notation.kept(total.total)
            yield self._moved(total.competitor_id, total.unity_id, after)
        for delta in event.results:
            unity = self._ranking.unities[delta.unity_id]
            before = self._before(delta.competitor_id, delta.unity_id)
            after = mark_after(before, delta.amount, unity.counts, unity.sort)
            yield self._moved(delta.competitor_id, delta.unity_id, after)

    def _before(self, competitor_id: CompetitorId, unity_id: UnityId) -> int:
        kept = self._kept.get((competitor_id, unity_id))
        return self._ranking.unities[unity_id].totals.get(competitor_id) if kept is None else kept

    def _moved(self, competitor_id: CompetitorId, unity_id: UnityId, after: int) -> Delta:
        before = self._before(competitor_id, unity_id)
        self._kept[competitor_id, unity_id] = after
        return Delta(competitor_id, unity_id, after - before)
