"""Recent results of competitors: their points in each of their last competitions, for the short row next to a table."""

from collections.abc import Iterable
from typing import Final

from msgspec import UNSET, Struct, UnsetType

from api.http.times import instant
from api.interface.declarations import Operation, Recall, RecallContext
from api.interface.fields import Field, number_up_to
from api.interface.lookup import unity_of
from api.interface.questions import MOMENT_FIELDS, PastWindow
from api.interface.rendering import Answer, Instant, TaggedBody, encode, tagged_body
from api.interface.resources.standings import recorded_at_head
from api.interface.windows import WINDOW_FIELDS
from engine.domain.errors import Unacceptable
from engine.domain.terms import UnityId
from engine.process.time_slices import in_time_slices
from projections.board.board import Board
from projections.board.order import OrderedLines
from projections.board.recent_results import CompetitionSum, forms, looked_at
from projections.live.orders import made_in_time_slices
from projections.live.tries import Tries
from projections.past import moments
from projections.past.moments import AtVersion, PastBoard

LAST_DEFAULT: Final = 5
LAST_MAX: Final = 50
"""Recent results that are shown of each competitor."""
FORM_SUMS_MAX: Final = 50_000
"""Sums of competitions that one answer reads."""


class CompetitionSumShape(Struct):
    competition_id: int
    sum: int


class CompetitorFormShape(Struct):
    """`competitions`: the last ones, the newest last."""

    competitor_id: int
    competitions: list[CompetitionSumShape]


class FormShape(Struct, kw_only=True):
    """The recent results in one unity, after the event `sequence`. `competitors` are in the order of the window's
    lines; `lines`: the total number of lines in the standings. `on`, if requested: only points that had taken place by
    then."""

    unity_id: int
    version: int
    sequence: int
    recorded_at: Instant
    lines: int
    competitors: list[CompetitorFormShape]
    on: Instant | UnsetType = UNSET


class FormQuestion(PastWindow, frozen=True, kw_only=True):
    """`last`: the number of competitions for each competitor."""

    last: int = LAST_DEFAULT


async def answer_form(context: RecallContext, answer: Answer, question: FormQuestion) -> TaggedBody:
    """Raises NotFound if there was no such moment or unity, and Unacceptable if the window names a competitor outside
    the ranking, or if its competitors have more than FORM_SUMS_MAX sums."""
    live, ranking_id, moment = context.live, question.ranking_id, question.moment
    if moment is None and question.on is None:
        unity_id = unity_of(live.board, ranking_id, question.unity_id)
        tries = Tries()
        while True:
            await live.followed_sums.follow(ranking_id, context.read_sums)
            order = await live.orders.of(ranking_id, unity_id)
            if live.board.rankings[ranking_id].competition_sums is not None:
                break
            tries.again()
        head = live.head
        shape = await _form(live.board, question, unity_id, order)
        return _answered(answer, shape, PastBoard(live.board, head.sequence, await recorded_at_head(context, head)))
    if isinstance(moment, AtVersion):
        unity_of(live.board, ranking_id, moment.unity_id)
    then = await moments.at(context.past, live.tournament_id, ranking_id, moment, live.head.sequence, question.on)
    unity_id = unity_of(then.board, ranking_id, question.unity_id)
    await context.give_sums_then(ranking_id, then)
    ranking = then.board.rankings[ranking_id]
    order = await made_in_time_slices(ranking.participants, ranking.unities[unity_id])
    shape = await _form(then.board, question, unity_id, order)
    return _answered(answer, shape, then)


async def _form(board: Board, question: FormQuestion, unity_id: UnityId, order: OrderedLines) -> FormShape:
    """The recent results without their moment. It reads everything it shows before its first pause. Raises
    Unacceptable."""
    ranking = board.rankings[question.ranking_id]
    unity, sums = ranking.unities[unity_id], ranking.competition_sums
    assert sums is not None
    shape = FormShape(
        unity_id=unity_id, version=unity.version, sequence=0, recorded_at="", lines=len(order), competitors=[]
    )
    competitor_ids = [line.competitor_id for line in question.lines(order)]
    count = looked_at(sums, unity_id, competitor_ids)
    if count > FORM_SUMS_MAX:
        raise Unacceptable(
            f"The competitors of this window have {count:,} sums of competitions, and one answer looks at no more than "
            f"{FORM_SUMS_MAX:,}; ask for fewer lines."
        )
    found = await in_time_slices(forms(board, sums, unity_id, competitor_ids, question.last))
    shape.competitors = [CompetitorFormShape(c, _shapes(found[c])) for c in competitor_ids]
    return shape


def _shapes(sums: Iterable[CompetitionSum]) -> list[CompetitionSumShape]:
    return [CompetitionSumShape(one.competition_id, one.sum) for one in sums]


def _answered(answer: Answer, shape: FormShape, shown: PastBoard) -> TaggedBody:
    shape.sequence, shape.recorded_at = shown.sequence, instant(shown.recorded_at)
    shape.on = UNSET if shown.on is None else instant(shown.on)
    return tagged_body(answer.body(encode(shape)))


OPERATIONS: Final[tuple[Operation, ...]] = (
    Recall(
        "rankings/{ranking_id}/form.json",
        "Show what competitors got in their last competitions, now or at one moment of the past",
        operation_id="showForm",
        question=FormQuestion,
        answer=Answer("form", FormShape),
        render=answer_form,
        fields=(
            Field("last", number_up_to(1, LAST_MAX, LAST_DEFAULT), "the number of competitions of each"),
            *MOMENT_FIELDS,
            *WINDOW_FIELDS,
        ),
        judged=True,
    ),
)
