"""The reasons for totals: the lines of a ranking's history, and the explanation of a competitor's place."""

from datetime import datetime
from typing import Final

from msgspec import UNSET, Struct, UnsetType, field

from api.http.forms import ID_PATTERN
from api.http.times import instant, instant_or_none
from api.interface.declarations import Operation, Recall, RecallContext
from api.interface.fields import FROM_0, FROM_1, ID, TIME_BEGIN, TIME_END, Field, count, parsed_type
from api.interface.lookup import refuse_unknown, unity_of
from api.interface.rendering import Answer, Instant, TaggedBody, encode, tagged_body
from api.interface.resources.classifications import Criteria, NeighboursShape, criteria_shape, neighbours_shape
from engine.domain.errors import Fault, Unreadable
from engine.domain.terms import ActorId, CompetitionId, CompetitorId, RankingId, Sequence, UnityId
from projections.board.board import Ranking
from projections.past import explaining, moments, pages
from projections.past.explaining import DatedPlace, Explanation
from projections.past.explanation import Overtaking, Step
from projections.past.history import AnyLine, DeclarationLine, Filter
from projections.past.moments import Range
from projections.past.pages import Cursor

LINES_DEFAULT: Final = 100
LINES_MAX: Final = 1_000
"""Lines of one page of history."""
STEPS_DEFAULT: Final = 50
STEPS_MAX: Final = 200
"""Steps of one page of an explanation."""


# ── Shapes ──────────────────────────────────────────────────────────────────────────────────────────────


class HistoryLineShape(Struct, kw_only=True):
    """A line of history: one delta. If it has `criteria`, it is one declaration of the classification, and all fields
    of a delta are null; no criteria: the previous declaration was taken back."""

    sequence: int
    recorded_at: Instant
    actor: int
    competitor_id: int | None
    unity_id: int | None
    competition_id: int | None
    delta: int | None
    result: int | None = None
    total: int | None
    position_before: int | None
    position_after: int | None
    reverses: int | None
    reversal: str | None
    reason: str | None
    criteria: Criteria | UnsetType = UNSET


class ExplanationPlaceShape(Struct, kw_only=True):
    """The place of a competitor after an event; before the first one, `sequence` is 0."""

    sequence: int
    recorded_at: Instant | None
    position: int | None
    total: int | None


class OvertakingShape(Struct, kw_only=True):
    """`who` passed `whom`, or drew level with them if `level`. The totals are those after the event."""

    who: int
    whom: int
    level: bool
    who_total: int | None
    whom_total: int | None


class ExplanationStepShape(Struct, kw_only=True):
    """An event that changed something for a competitor. `delta` null: it gave the competitor nothing, but others moved.
    `overtakings_left_out`: the number of further ones, if a step shows only those with the nearest totals."""

    sequence: int
    recorded_at: Instant
    actor: int
    cause: str
    competition_id: int | None
    reverses: int | None
    reversal: str | None
    reason: str | None
    delta: int | None
    result: int | None = None
    total: int | None
    position_before: int | None
    position_after: int | None
    overtakings: list[OvertakingShape]
    overtakings_left_out: int
    took_place: Instant | UnsetType = UNSET


class ExplanationShape(Struct, kw_only=True):
    """`on`, if requested: the steps are the last ones by then, in order of time. `classification`: the competitor's
    place in it after the event `to`; null: none was declared, or `on` was requested. `next`: the value of `from` for
    the rest; null: there is none."""

    competitor_id: int
    unity_id: int
    start: ExplanationPlaceShape = field(name="from")
    end: ExplanationPlaceShape = field(name="to")
    steps: list[ExplanationStepShape]
    classification: NeighboursShape | None
    next: int | None
    on: Instant | UnsetType = UNSET


# ── History ─────────────────────────────────────────────────────────────────────────────────────────────


class HistoryQuestion(Struct, frozen=True, kw_only=True):
    """The requested lines: those with these ids, from `first` and `since` on, up to `last` and `until`."""

    ranking_id: RankingId
    unity_id: UnityId | None = None
    competitor_id: CompetitorId | None = None
    competition_id: CompetitionId | None = None
    actor: ActorId | None = None
    first: Sequence | None = None
    last: Sequence | None = None
    since: datetime | None = None
    until: datetime | None = None
    after: Cursor | None = None
    limit: int = LINES_DEFAULT


async def answer_history(context: RecallContext, answer: Answer, question: HistoryQuestion) -> TaggedBody:
    """A page of lines. `next`: the value of `after` for the following page. Raises NotFound."""
    live, past = context.live, context.past
    asked = Filter(
        unity_id=question.unity_id,
        competitor_id=question.competitor_id,
        competition_id=question.competition_id,
        actor=question.actor,
    )
    refuse_unknown(live.board, question.ranking_id, asked)
    bounds = Range(first=question.first, last=question.last, since=question.since, until=question.until)
    span = await moments.span(past, live.tournament_id, live.head.sequence, bounds)
    page = await pages.page(
        past, live.tournament_id, question.ranking_id, span, asked=asked, after=question.after, limit=question.limit
    )
    lines = encode([line_shape(line) for line in page.lines])
    following = encode(None if page.next is None else cursor_text(page.next))
    return tagged_body(b'%b%b,"next":%b}' % (answer.before, lines, following))


def line_shape(line: AnyLine) -> HistoryLineShape:
    recorded_at = instant(line.recorded_at)
    if isinstance(line, DeclarationLine):
        return HistoryLineShape(
            sequence=line.sequence,
            recorded_at=recorded_at,
            actor=line.actor,
            competitor_id=None,
            unity_id=None,
            competition_id=None,
            delta=None,
            total=None,
            position_before=None,
            position_after=None,
            reverses=None,
            reversal=None,
            reason=None,
            criteria=criteria_shape(line.criteria),
        )
    return HistoryLineShape(
        sequence=line.sequence,
        recorded_at=recorded_at,
        actor=line.actor,
        competitor_id=line.competitor_id,
        unity_id=line.unity_id,
        competition_id=line.competition_id,
        delta=line.delta,
        result=line.result,
        total=line.total,
        position_before=line.position_before,
        position_after=line.position_after,
        reverses=line.reverses,
        reversal=line.reversal,
        reason=line.reason,
    )


def cursor_text(cursor: Cursor) -> str:
    """The cursor as `after` takes it."""
    return f"{cursor.sequence}.{cursor.lines}"


_CURSOR: Final = parsed_type(
    rf"({ID_PATTERN})\.(0|[1-9][0-9]{{0,8}})",
    "what an answer gave as next",
    lambda found: Cursor(Sequence(int(found[1])), int(found[2])),
)


# ── Explanations ────────────────────────────────────────────────────────────────────────────────────────


class ExplainQuestion(Struct, frozen=True, kw_only=True):
    """From after the event `start` (0: from the beginning) to after the event `end` (None: the last one). Raises
    Unreadable if `start` is greater."""

    ranking_id: RankingId
    competitor_id: CompetitorId
    unity_id: UnityId | None = None
    start: Sequence = Sequence(0)
    end: Sequence | None = None
    on: datetime | None = None
    limit: int = STEPS_DEFAULT

    def __post_init__(self) -> None:
        if self.on is not None and self.start:
            fault = Fault("from", "cannot be sent with on, whose steps are in order of time")
            raise Unreadable("The query names two beginnings; send from or on.", [fault])
        if self.end is not None and self.start > self.end:
            fault = Fault("from", "must not be greater than to")
            raise Unreadable("The query cannot be read; correct the parameters named.", [fault])


async def answer_explanation(context: RecallContext, answer: Answer, question: ExplainQuestion) -> TaggedBody:
    """The steps, or the requested page of them. Raises NotFound."""
    live = context.live
    unity_id = unity_of(live.board, question.ranking_id, question.unity_id)
    refuse_unknown(live.board, question.ranking_id, Filter(competitor_id=question.competitor_id))
    head, end = live.head.sequence, question.end or live.head.sequence
    ranking = live.board.rankings[question.ranking_id]
    asked = live.tournament_id, question.ranking_id, unity_id, question.competitor_id
    if question.on is None:
        notation = ranking.unities[unity_id].notation
        explanation = await explaining.explanation(
            context.past, *asked, notation=notation, start=question.start, end=end, head=head, limit=question.limit
        )
    else:
        explanation = await explaining.explanation_by_date(
            context.past, *asked, on=question.on, upto=end, head=head, limit=question.limit
        )
    return tagged_body(answer.body(encode(explanation_shape(explanation, ranking, unity_id, question.competitor_id))))


def explanation_shape(
    explanation: Explanation, ranking: Ranking, unity_id: UnityId, competitor_id: CompetitorId
) -> ExplanationShape:
    return ExplanationShape(
        competitor_id=competitor_id,
        unity_id=unity_id,
        start=_place(explanation.start),
        end=_place(explanation.end),
        steps=[_step(step) for step in explanation.steps],
        classification=None if explanation.neighbours is None else neighbours_shape(ranking, explanation.neighbours),
        next=explanation.next,
        on=UNSET if explanation.on is None else instant(explanation.on),
    )


def _place(stand: DatedPlace) -> ExplanationPlaceShape:
    return ExplanationPlaceShape(
        sequence=stand.sequence,
        recorded_at=instant_or_none(stand.recorded_at),
        position=stand.place.position,
        total=stand.place.total,
    )


def _step(step: Step) -> ExplanationStepShape:
    return ExplanationStepShape(
        sequence=step.recorded.sequence,
        recorded_at=instant(step.recorded.recorded_at),
        actor=step.recorded.actor,
        cause=step.cause.value,
        competition_id=step.competition_id,
        reverses=step.reverses,
        reversal=step.reversal,
        reason=step.reason,
        delta=step.delta,
        result=step.result,
        total=step.after.total,
        position_before=step.before.position,
        position_after=step.after.position,
        overtakings=[_overtaking(overtaking) for overtaking in step.overtakings],
        overtakings_left_out=step.overtakings_left_out,
        took_place=UNSET if step.took_place is None else instant(step.took_place),
    )


def _overtaking(overtaking: Overtaking) -> OvertakingShape:
    return OvertakingShape(
        who=overtaking.who,
        whom=overtaking.whom,
        level=overtaking.level,
        who_total=overtaking.who_total,
        whom_total=overtaking.whom_total,
    )


# ── Operations ──────────────────────────────────────────────────────────────────────────────────────────

OPERATIONS: Final[tuple[Operation, ...]] = (
    Recall(
        "rankings/{ranking_id}/history.json",
        "List the deltas of a ranking, with totals and positions, and the declarations of its classification",
        operation_id="listHistory",
        question=HistoryQuestion,
        answer=Answer("history", list[HistoryLineShape], more={"next": str | None}),
        render=answer_history,
        fields=(
            Field("unity", ID, "only in this one", argument="unity_id"),
            Field("competitor", ID, "only of this one", argument="competitor_id"),
            Field("competition", ID, "only for this one", argument="competition_id"),
            Field("actor", FROM_0, "only by this token; 0: by the operator"),
            Field("from_sequence", FROM_1, "only from this event on", argument="first"),
            Field("to_sequence", FROM_1, "only up to this event", argument="last"),
            Field("from_time", TIME_BEGIN, "only from this time on", argument="since"),
            Field("to_time", TIME_END, "only up to this time", argument="until"),
            Field("after", _CURSOR, "continue after this: the next of the previous page"),
            Field("limit", count(LINES_DEFAULT, LINES_MAX), "lines"),
        ),
    ),
    Recall(
        "rankings/{ranking_id}/explain.json",
        "Explain why a competitor has this position and total",
        operation_id="explain",
        question=ExplainQuestion,
        answer=Answer("explanation", ExplanationShape),
        render=answer_explanation,
        fields=(
            Field("competitor", ID, "who", required=True, argument="competitor_id"),
            Field("unity", ID, "in what; absent: in the main unity", argument="unity_id"),
            Field("from", FROM_0, "from after this event; 0: from the beginning", argument="start"),
            Field("to", FROM_1, "to after this event; absent: until now", argument="end"),
            Field("on", TIME_END, "by what had taken place by this day or time, in order of time: the last steps"),
            Field("limit", count(STEPS_DEFAULT, STEPS_MAX), "steps"),
        ),
    ),
)
