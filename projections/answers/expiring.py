"""What competitors will lose when points expire: their points to defend."""

from datetime import datetime
from functools import partial
from typing import TypeVar

from msgspec import Struct

from engine.domain.events import Points, Recorded, root
from engine.domain.lines import rule_of
from engine.domain.steps import finished
from engine.domain.terms import CompetitorId, RankingId, Sequence, UnityId
from projections.answers.lookup import unity_of
from projections.answers.view import Question, View
from projections.answers.windows import Window
from projections.board.sub_table import UnityLines
from projections.live.kept import Kept, ReadLog, Update, unfollowed
from projections.live.tournament import LiveTournament
from projections.past import folds
from projections.past.losses import Losses

_T = TypeVar("_T")


class ExpiringLine(Struct, frozen=True):
    """`total_then`: the total at the end; null: no result is left. `expires_at`: when the first points expire; null:
    none expire by the end."""

    competitor_id: CompetitorId
    total: int | None
    total_then: int | None
    expires_at: datetime | None


class Expiring(Struct, frozen=True, kw_only=True):
    """The totals of a unity after the event `sequence`, and the totals left at the time `until` if nothing else
    happens. `expiring` is in the order of the window's lines; `lines`: the total number of lines in the standings."""

    unity_id: UnityId
    version: int
    sequence: Sequence
    recorded_at: datetime
    until: datetime
    lines: int
    expiring: list[ExpiringLine]


class ExpiringQuestion(Window, Question[Expiring], frozen=True, kw_only=True):
    """Raises NotFound if there is no such unity, Unacceptable if the window names a competitor outside the ranking, and
    TooMuchWork."""

    ranking_id: RankingId
    until: datetime

    async def answered(self, view: View) -> Expiring:
        return await read_of_lines(view.live, self.ranking_id, lambda: self._found(view))

    async def _found(self, view: View) -> Expiring:
        live, ranking_id = view.live, self.ranking_id
        unity_id = unity_of(live.board, ranking_id, self.unity_id)
        order = await live.orders.of(ranking_id, unity_id)
        board, head, now = live.board, live.head, live.expired_by
        ranking = board.rankings[ranking_id]
        unity, version, count = ranking.unities[unity_id], ranking.unities[unity_id].version, len(order)
        totals = {
            line.competitor_id: unity.totals.get(line.competitor_id) for line in finished(self.lines(UnityLines(order)))
        }
        left, first = totals, dict[CompetitorId, datetime]()
        if unity.expiry is not None:
            assert now is not None
            rule = rule_of(board, ranking_id)
            now = rule.by(now)
            until = max(now, rule.by(self.until))
            losses = Losses(board, ranking_id, unity_id, now=now, until=until, totals=totals)
            await folds.follow_losses(view.past, live.tournament_id, board, losses, head.sequence)
            left, first = losses.totals, losses.first
        shown = unity.notation.shown
        return Expiring(
            unity_id=unity_id,
            version=version,
            sequence=head.sequence,
            recorded_at=await view.recorded_at(head),
            until=self.until,
            lines=count,
            expiring=[
                ExpiringLine(one, shown(total), shown(left[one]), first.get(one)) for one, total in totals.items()
            ],
        )


async def read_of_lines(live: LiveTournament, ranking_id: RankingId, read: ReadLog[_T]) -> _T:
    """What `read` returns; read again if an event that is folded meanwhile changes which lines of the ranking count, or
    when they took place. Raises Overtaken, and the errors of `read`."""
    kept = live.keep(Kept[_T](partial(_update_by, ranking_id)))
    try:
        return await kept.current(read)
    finally:
        live.let_go(kept)


def _update_by(ranking_id: RankingId, recorded: Recorded) -> Update[object] | None:
    event = recorded.event
    if isinstance(event, Points):
        is_reversal = event.ranking_id == ranking_id and root(recorded.sequence, event) != recorded.sequence
        return unfollowed if is_reversal else None
    return unfollowed if event.structural and "competition" in event.touches else None
