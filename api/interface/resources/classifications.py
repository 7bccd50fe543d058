"""The classification of a ranking: the field `criteria`, how lines are rendered, and the operations."""

from collections.abc import Generator
from collections.abc import Sequence as Items
from typing import Annotated, Final, Literal, Protocol

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from api.desk.conditions import own_tag
from api.http.forms import unacceptable
from api.http.outgoing import Long
from api.http.times import instant
from api.interface.declarations import Operation, Recall, RecallContext, Write
from api.interface.fields import Field, FieldMisread, json_text
from api.interface.questions import (
    TABLE_FIELDS,
    PositionThen,
    TableLineShape,
    TableQuestion,
    tagged_ids,
    tagged_now,
    tagged_then,
    then_of,
    with_moved,
)
from api.interface.rendering import DIGEST_CHARACTERS, Answer, Instant, TaggedBody, View, encode, tagged_body
from api.interface.resources.points import decoded_array
from api.interface.resources.standings import recorded_at_head
from api.interface.windows import WINDOW_FIELDS
from engine.domain.commands import DeclareClassification
from engine.domain.events import Criterion
from engine.domain.notation import Notation
from engine.domain.terms import BEST_MAX, CRITERIA_MAX, ID_MAX, CompetitorId, RankingId, Sequence, UnityId
from engine.process.time_slices import in_time_slices
from projections.board.board import Board, Ranking
from projections.board.classification import Classified, in_force, lacks_sums, value_notations
from projections.board.classified_lines import ClassifiedLines
from projections.board.selection import Selection
from projections.board.sub_table import SubTable
from projections.past import moments
from projections.past.explanation import Neighbours
from projections.past.moments import PastBoard

# ── Shapes ──────────────────────────────────────────────────────────────────────────────────────────────


class CriterionShape(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One criterion, as it is sent and shown."""

    unity: Annotated[int, Meta(ge=1, le=ID_MAX)]
    best: Annotated[int, Meta(ge=1, le=BEST_MAX)] | None = None
    among: Annotated[Literal["tied"], Meta(extra_json_schema={"type": "string"})] | None = None
    first: Annotated[
        bool, Meta(description="whoever reached their total first is ahead; the value is the sequence of that event")
    ] = False


Criteria = list[CriterionShape]
"""The value of the field `criteria`."""


class ClassificationLineShape(TableLineShape, frozen=True, gc=False):
    """One competitor's line. `values`: one for each criterion, null if it was not needed. `decided_by`: the number,
    from 0, of the criterion that separates it from the line above in the whole table. `overall`, in a sub-table only:
    the position in the whole table. `moved`, if requested: places gained since then, negative if lost; null for a
    competitor outside this table then."""

    values: list[int | None]
    decided_by: int | None
    overall: int | UnsetType = UNSET
    moved: int | None | UnsetType = UNSET


class DeclarationShape(Struct, kw_only=True):
    criteria: Criteria


class ClassificationShape(Struct, kw_only=True):
    """`criteria` are those in force: the declared ones, or the main unity alone. `lines`: the total number of lines; in
    a sub-table, its own. `on`, if requested: only points that had taken place by then count."""

    criteria: Criteria
    sequence: int
    recorded_at: Instant
    lines: int
    standings: list[ClassificationLineShape]
    on: Instant | UnsetType = UNSET


class NeighboursShape(Struct, kw_only=True):
    """A competitor's line by the declared criteria, and those above and below it; none if the competitor was not in the
    ranking. Null: that would take more sums of competitions than an answer may read."""

    criteria: Criteria
    standings: list[ClassificationLineShape] | None


# ── Reading ─────────────────────────────────────────────────────────────────────────────────────────────

_CRITERIA: Final = msgspec.json.Decoder(Criteria)
_FORM: Final = '[{"unity": 1}, {"unity": 2, "best": 3, "among": "tied"}]'


def _criteria(text: str) -> tuple[Criterion, ...]:
    """Raises FieldMisread, and Unreadable if the text is not JSON."""
    shapes = decoded_array(_CRITERIA, text, "criteria", _FORM)
    keys = sum([len(found) for found in msgspec.json.decode(text, type=list[dict[str, msgspec.Raw]])])
    if text.count(":") != keys:  # JSON lets an object repeat a key; each has a colon, and no value contains one
        raise FieldMisread("must not hold a key twice in one object")
    return tuple([Criterion(UnityId(one.unity), one.best, one.among, one.first) for one in shapes])


# ── Rendering ───────────────────────────────────────────────────────────────────────────────────────────


class OfDeclaration(Protocol):
    @property
    def criteria(self) -> Items[Criterion]: ...


def render_declared(_view: View, answer: Answer, event: OfDeclaration) -> bytes:
    return answer.body(encode(DeclarationShape(criteria=criteria_shape(event.criteria))))


def criterion_text(ranking: Ranking, criterion: Criterion) -> str:
    """A criterion in words: "points", "goals among the tied, best 18", "score, reached first"."""
    name, best = ranking.unities[criterion.unity_id].name, criterion.best
    if criterion.first:
        return f"{name}, reached first"
    return f"{name}{' among the tied' if criterion.among else ''}{'' if best is None else f', best {best}'}"


def criteria_shape(criteria: Items[Criterion]) -> Criteria:
    return [CriterionShape(one.unity_id, one.best, one.among, one.first) for one in criteria]


async def answer_classification(context: RecallContext, answer: Answer, question: TableQuestion) -> TaggedBody | Long:
    """A window of the classification, now or at a past moment; without a window, its first lines.

    Raises NotFound if there was no such moment, Unacceptable if the window names a competitor outside the ranking or
    too many have the tag, and TooMuchWork.
    """
    live, ranking_id, moment = context.live, question.ranking_id, question.moment
    if moment is not None or question.on is not None:
        then = await moments.at(context.past, live.tournament_id, ranking_id, moment, live.head.sequence, question.on)
        selection = await tagged_then(then.board, question, context.time_slices)
        lines = await lines_then(context, then, ranking_id)
        shape = _shape(then.board, ranking_id, then.sequence, len(lines))
        shape.recorded_at, shape.on = instant(then.recorded_at), UNSET if then.on is None else instant(then.on)
        await _fill(shape, then.board.rankings[ranking_id], question, lines, selection)
        await _compare(context, question, live.head.sequence, shape)
        return tagged_body(answer.body(encode(shape)))
    selection = await tagged_now(context, question)
    async with live.classifications.lines(ranking_id, context.read_sums) as lines:
        head, tag = live.head, own_tag(live.board.rankings[ranking_id])
        shape = _shape(live.board, ranking_id, head.sequence, len(lines))
        await _fill(shape, live.board.rankings[ranking_id], question, lines, selection)
    shape.recorded_at = instant(await recorded_at_head(context, head))
    await _compare(context, question, head.sequence, shape)
    tagged = tagged_body(answer.body(encode(shape)))
    return TaggedBody(tagged.body, f"{tag}-{tagged.etag[:DIGEST_CHARACTERS]}")


async def _fill(
    shape: ClassificationShape,
    ranking: Ranking,
    question: TableQuestion,
    lines: ClassifiedLines,
    selection: Selection | None,
) -> None:
    """Adds the requested lines, in the state at the call. Raises Unacceptable and TooMuchWork."""
    if selection is None:
        shape.standings = _lines(ranking, in_force(ranking), await in_time_slices(_window(question, lines)))
        return
    notations = value_notations(ranking, in_force(ranking))
    table = await _sub_table(lines, selection)
    shape.lines = len(table)
    shape.standings = [
        ClassificationLineShape(
            line.competitor_id, sub.position, shown_values(notations, line.values), line.decided_by, line.position
        )
        for sub in question.lines(table)
        for line in [sub.whole]
    ]


async def _sub_table(lines: ClassifiedLines, selection: Selection) -> SubTable[Classified]:
    """The sub-table of the selected competitors, in the state at the call. Raises Unacceptable and TooMuchWork."""
    table: SubTable[Classified] = SubTable()
    table.append(await in_time_slices(lines.among(tagged_ids(selection))))
    return table


async def _compare(context: RecallContext, question: TableQuestion, head: Sequence, shape: ClassificationShape) -> None:
    """Adds its movement to each line, if requested. Raises as `then_of`, Unacceptable and TooMuchWork."""
    then = await then_of(context, question, head)
    if then is None:
        return
    selection = await tagged_then(then.board, question, context.time_slices)
    lines = await lines_then(context, then, question.ranking_id)
    if selection is None:
        known = await in_time_slices(lines.of([CompetitorId(line.competitor_id) for line in shape.standings]))
        positions = {line.competitor_id: line.position for line in known.values() if line is not None}
        position_then: PositionThen = positions.get
    else:
        position_then = (await _sub_table(lines, selection)).position
    shape.standings = await with_moved(shape.standings, position_then)


async def lines_then(context: RecallContext, then: PastBoard, ranking_id: RankingId) -> ClassifiedLines:
    """The lines of a board of the past. Raises what reading the log raises."""
    if lacks_sums(then.board.rankings[ranking_id]):
        await context.give_sums_then(ranking_id, then)
    return await in_time_slices(ClassifiedLines.in_steps(then.board, then.board.rankings[ranking_id]))


def _shape(board: Board, ranking_id: RankingId, sequence: Sequence, count: int) -> ClassificationShape:
    """The classification after the event `sequence`, with the number of its lines, but without the lines and the
    time."""
    return ClassificationShape(
        criteria=criteria_shape(in_force(board.rankings[ranking_id])),
        sequence=sequence,
        recorded_at="",
        lines=count,
        standings=[],
    )


def neighbours_shape(ranking: Ranking, neighbours: Neighbours) -> NeighboursShape:
    criteria, lines = neighbours.criteria, neighbours.lines
    return NeighboursShape(
        criteria=criteria_shape(criteria), standings=None if lines is None else _lines(ranking, criteria, lines)
    )


def _lines(ranking: Ranking, criteria: Items[Criterion], lines: Items[Classified]) -> list[ClassificationLineShape]:
    notations = value_notations(ranking, criteria)
    return [
        ClassificationLineShape(
            line.competitor_id, line.position, shown_values(notations, line.values), line.decided_by
        )
        for line in lines
    ]


def shown_values(notations: Items[Notation], values: Items[int | None]) -> list[int | None]:
    """The values to show for the stored values of a line."""
    return [None if value is None else notation.shown(value) for notation, value in zip(notations, values, strict=True)]


def _window(question: TableQuestion, lines: ClassifiedLines) -> Generator[None, None, list[Classified]]:
    """The requested lines. Raises Unacceptable and TooMuchWork."""
    found: list[Classified] | None
    if question.competitors is not None:
        known = yield from lines.of(question.competitors)
        found = [line for competitor_id in question.competitors if (line := known[competitor_id]) is not None]
        if missing := [competitor_id for competitor_id in question.competitors if known[competitor_id] is None]:
            raise unacceptable([question.missing("competitors", competitor_id) for competitor_id in missing])
    elif question.around is not None and question.span is not None:
        found = yield from lines.around(question.around, question.span)
        if found is None:
            raise unacceptable([question.missing("around", question.around)])
    else:
        found = yield from lines.run(*question.run)
    return found


# ── Operations ──────────────────────────────────────────────────────────────────────────────────────────

_ABOUT: Final = (
    f"a JSON array of at most {CRITERIA_MAX} criteria, the first decides first: objects with unity, best (only this "
    "many competitions count) and among (tied: only what the tied got among themselves); [] takes the declaration back"
)

OPERATIONS: Final[tuple[Operation, ...]] = (
    Recall(
        "rankings/{ranking_id}/classification.json",
        "Show the classification of a ranking or a window of it, now or at one moment of the past",
        operation_id="showClassification",
        question=TableQuestion,
        answer=Answer("classification", ClassificationShape),
        render=answer_classification,
        fields=(*TABLE_FIELDS, *[field for field in WINDOW_FIELDS if field.name != "unity"]),
        judged=True,
    ),
    Write(
        "PUT",
        "rankings/{ranking_id}/classification.json",
        "Declare by which criteria a ranking is classified",
        operation_id="declareClassification",
        command=DeclareClassification,
        answer=Answer("classification", DeclarationShape),
        render=render_declared,
        fields=(
            Field("criteria", json_text(_criteria, {"$ref": "#/components/schemas/Criteria"}), _ABOUT, required=True),
        ),
    ),
)
