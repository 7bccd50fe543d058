"""What competitors will lose when points expire: their points to defend."""

from datetime import datetime
from typing import Final

from msgspec import Struct

from api.http.times import instant, instant_or_none
from api.interface.declarations import Operation, Recall, RecallContext
from api.interface.fields import TIME_END, Field
from api.interface.lookup import unity_of
from api.interface.rendering import Answer, Instant, TaggedBody, encode, tagged_body
from api.interface.resources.standings import recorded_at_head
from api.interface.windows import WINDOW_FIELDS, Window
from engine.domain.counting import now_of
from engine.domain.events import PointsReversed, Recorded
from engine.domain.terms import CompetitorId, RankingId
from projections.live.tournament import LiveTournament
from projections.live.tries import Tries
from projections.past import folds
from projections.past.losses import Losses

# ── Shapes ──────────────────────────────────────────────────────────────────────────────────────────────


class ExpiringLineShape(Struct):
    """`total_then`: the total at the end; null: no result is left. `expires_at`: when the first points expire; null:
    none expire by the end."""

    competitor_id: int
    total: int | None
    total_then: int | None
    expires_at: Instant | None


class ExpiringShape(Struct, kw_only=True):
    """The totals of a unity after the event `sequence`, and the totals left at the time `until` if nothing else
    happens. `competitors` are in the order of the window's lines; `lines`: the total number of lines in the
    standings."""

    unity_id: int
    version: int
    sequence: int
    recorded_at: Instant
    until: Instant
    lines: int
    competitors: list[ExpiringLineShape]


# ── Answering ───────────────────────────────────────────────────────────────────────────────────────────


class ExpiringQuestion(Window, frozen=True, kw_only=True):
    ranking_id: RankingId
    until: datetime


async def answer_expiring(context: RecallContext, answer: Answer, question: ExpiringQuestion) -> TaggedBody:
    """Raises NotFound if there is no such unity, Unacceptable if the window names a competitor outside the ranking, and
    TooMuchWork."""
    tries = Tries()
    while True:
        with CountingLines(context.live, question.ranking_id) as lines:
            shape = await _shape(context, question)
        if not lines.have_changed:
            return tagged_body(answer.body(encode(shape)))
        tries.again()


class CountingLines:
    """Detects whether the live folds an event within this context that changes which lines of a ranking count, or when
    they took place."""

    def __init__(self, live: LiveTournament, ranking_id: RankingId) -> None:
        self.have_changed = False
        self._live, self._ranking_id = live, ranking_id

    def __enter__(self) -> "CountingLines":
        self._live.followers.append(self._follow)
        return self

    def __exit__(self, *_: object) -> None:
        self._live.followers.remove(self._follow)

    def _follow(self, recorded: Recorded) -> None:
        event = recorded.event
        if isinstance(event, PointsReversed):
            self.have_changed |= event.ranking_id == self._ranking_id
        else:
            self.have_changed |= event.structural and "competition" in event.touches


async def _shape(context: RecallContext, question: ExpiringQuestion) -> ExpiringShape:
    live, ranking_id = context.live, question.ranking_id
    unity_id = unity_of(live.board, ranking_id, question.unity_id)
    order = await live.orders.of(ranking_id, unity_id)
    board, head, now = live.board, live.head, live.expired_by
    ranking = board.rankings[ranking_id]
    unity, version, count = ranking.unities[unity_id], ranking.unities[unity_id].version, len(order)
    totals = {line.competitor_id: unity.totals.get(line.competitor_id) for line in question.lines(order)}
    left, first = totals, dict[CompetitorId, datetime]()
    if unity.expiry is not None:
        assert now is not None
        now = now_of(ranking, now)
        until = max(now, now_of(ranking, question.until))
        losses = Losses(board, ranking_id, unity_id, now=now, until=until, totals=totals)
        await folds.follow_losses(context.past, live.tournament_id, board, losses, head.sequence)
        left, first = losses.totals, losses.first
    shown = unity.notation.shown
    return ExpiringShape(
        unity_id=unity_id,
        version=version,
        sequence=head.sequence,
        recorded_at=instant(await recorded_at_head(context, head)),
        until=instant(question.until),
        lines=count,
        competitors=[
            ExpiringLineShape(one, shown(total), shown(left[one]), instant_or_none(first.get(one)))
            for one, total in totals.items()
        ],
    )


OPERATIONS: Final[tuple[Operation, ...]] = (
    Recall(
        "rankings/{ranking_id}/expiring.json",
        "Show what competitors will lose when points expire",
        operation_id="showExpiring",
        question=ExpiringQuestion,
        answer=Answer("expiring", ExpiringShape),
        render=answer_expiring,
        fields=(
            Field("until", TIME_END, "up to this day or time", required=True),
            *WINDOW_FIELDS,
        ),
        judged=True,
    ),
)
