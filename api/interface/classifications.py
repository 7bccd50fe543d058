"""The classification of a ranking: the field `criteria`, how lines are rendered, and the operations."""

from collections.abc import Generator
from collections.abc import Sequence as Items
from datetime import datetime
from typing import Annotated, Final, Literal, Protocol

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from api.desk.conditions import own_tag
from api.http.forms import unacceptable
from api.http.outgoing import Long
from api.interface.declarations import Operation, Recall, RecallContext, Write
from api.interface.fields import FROM_1, TIME_END, Field, FieldMisread, json_text
from api.interface.points import decoded_array
from api.interface.rendering import (
    DIGEST_CHARACTERS,
    Answer,
    TaggedBody,
    View,
    encode,
    tagged_body,
    timestamp,
    timestamp_or_none,
)
from api.interface.standings import MOMENT_FIELDS, PastWindow, recorded_at_head
from api.interface.windows import WINDOW_FIELDS
from engine.domain.commands import DeclareClassification
from engine.domain.errors import Fault, Unreadable
from engine.domain.events import Criterion
from engine.domain.terms import BEST_MAX, CRITERIA_MAX, ID_MAX, CompetitorId, RankingId, Sequence, UnityId
from engine.process.turns import Turn, in_turns
from projections.board.board import Board
from projections.board.classification import Classified, Counted, in_force
from projections.board.classified_lines import ClassifiedLines, leading
from projections.live.orders import made_in_turns
from projections.past.past import AtSequence, AtTime, Moment

# ── Shapes ──────────────────────────────────────────────────────────────────────────────────────────────


class CriterionShape(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One criterion, as it is sent and shown."""

    unity: Annotated[int, Meta(ge=1, le=ID_MAX)]
    best: Annotated[int, Meta(ge=1, le=BEST_MAX)] | None = None
    among: Literal["tied"] | None = None


Criteria = list[CriterionShape]
"""What criteria holds."""


class ClassifiedShape(Struct, frozen=True, gc=False):
    """One competitor's line. `values` are as the criteria, null where they were not needed. `decided_by`: the number of
    the criterion, from 0, that parts it from the line above in the whole table. `moved`, if it was asked for: places
    gained since then, negative if lost; null for who was not in the ranking then."""

    competitor_id: int
    position: int
    values: list[int | None]
    decided_by: int | None
    moved: int | None | UnsetType = UNSET


class DeclaredShape(Struct, kw_only=True):
    criteria: Criteria


class ClassificationShape(Struct, kw_only=True):
    """`criteria` are those in force: the declared ones, or the main unity alone. `lines`: how many there are in all."""

    criteria: Criteria
    sequence: int
    recorded_at: str
    lines: int
    standings: list[ClassifiedShape]


# ── Reading ─────────────────────────────────────────────────────────────────────────────────────────────

_CRITERIA: Final = msgspec.json.Decoder(Criteria)
_FORM: Final = '[{"unity": 1}, {"unity": 2, "best": 3, "among": "tied"}]'


def _criteria(text: str) -> tuple[Criterion, ...]:
    """Raises FieldMisread, and Unreadable if the text is not JSON."""
    shapes = decoded_array(_CRITERIA, text, "criteria", _FORM)
    keys = sum([len(found) for found in msgspec.json.decode(text, type=list[dict[str, msgspec.Raw]])])
    if text.count(":") != keys:  # JSON lets an object repeat a key; each brings a colon, and no value has one
        raise FieldMisread("must not hold a key twice in one object")
    return tuple([Criterion(unity_id=UnityId(one.unity), best=one.best, among=one.among) for one in shapes])


# ── Rendering ───────────────────────────────────────────────────────────────────────────────────────────


class ClassificationQuestion(PastWindow, frozen=True, kw_only=True):
    """Raises Unreadable for two moments to compare with, and as PastWindow."""

    since: Sequence | None = None
    since_time: datetime | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.since is not None and self.since_time is not None:
            faults = [Fault(name, "is one moment too many") for name in ("since", "since_time")]
            raise Unreadable("The query names two moments to compare with; send since or since_time.", faults)

    @property
    def compared_with(self) -> Moment | None:
        if self.since is not None:
            return AtSequence(self.since)
        return None if self.since_time is None else AtTime(self.since_time)


class OfDeclaration(Protocol):
    @property
    def criteria(self) -> Items[Criterion]: ...


def render_declared(_view: View, answer: Answer, event: OfDeclaration) -> bytes:
    return answer.body(encode(DeclaredShape(criteria=_shapes(event.criteria))))


def _shapes(criteria: Items[Criterion]) -> Criteria:
    return [CriterionShape(one.unity_id, one.best, one.among) for one in criteria]


async def answer_classification(
    context: RecallContext, answer: Answer, question: ClassificationQuestion
) -> TaggedBody | Long:
    """A window of the classification, as it is now or was at a moment; without a window the first lines.

    Raises NotFound if there was no such moment, Unacceptable if the window names who was not enrolled, and TooMuchWork.
    """
    live, ranking_id, moment = context.live, question.ranking_id, question.moment
    if moment is not None:
        then = await context.past.at(live.tournament_id, ranking_id, moment, live.head.sequence)
        lines = await classified_lines(then.board, ranking_id)
        found = await in_turns(_window(question, lines))
        shape = classification_shape(then.board, ranking_id, then.sequence, then.recorded_at, len(lines), found)
        await _compare(context, question, live.head.sequence, shape)
        return tagged_body(answer.body(encode(shape)))
    async with live.classifications.lines(ranking_id) as lines:
        head, ranking = live.head, live.board.rankings[ranking_id]
        shape = classification_shape(live.board, ranking_id, head.sequence, None, len(lines), [])
        shape.standings = _lines(await in_turns(_window(question, lines)))
    shape.recorded_at = timestamp(await recorded_at_head(context, head))
    await _compare(context, question, head.sequence, shape)
    tagged = tagged_body(answer.body(encode(shape)))
    return TaggedBody(tagged.body, f"{own_tag(ranking)}-{tagged.etag[:DIGEST_CHARACTERS]}")


async def _compare(
    context: RecallContext, question: ClassificationQuestion, head: Sequence, shape: ClassificationShape
) -> None:
    """Adds to each line how it has moved, if that was asked for. Raises NotFound if there was no such ranking then."""
    moment = question.compared_with
    if moment is None:
        return
    context.log_is_read = True
    then = await context.past.at(context.live.tournament_id, question.ranking_id, moment, head)
    lines = await classified_lines(then.board, question.ranking_id)
    known = await in_turns(lines.of([CompetitorId(line.competitor_id) for line in shape.standings]))
    shape.standings = [
        msgspec.structs.replace(line, moved=None if before is None else before.position - line.position)
        for line in shape.standings
        for before in [known[CompetitorId(line.competitor_id)]]
    ]


async def classified_lines(board: Board, ranking_id: RankingId) -> ClassifiedLines:
    """The lines of a board that nobody folds meanwhile."""
    ranking = board.rankings[ranking_id]
    criteria = in_force(ranking)
    unities = [ranking.unities[criterion.unity_id] for criterion in criteria[: leading(criteria)]]
    order = await made_in_turns(ranking.participants, *unities, turn=Turn()) if unities else None
    return ClassifiedLines(Counted(board, ranking), criteria, ranking.participants, order, {})


def classification_shape(
    board: Board,
    ranking_id: RankingId,
    sequence: Sequence,
    recorded_at: datetime | None,
    count: int,
    lines: Items[Classified],
) -> ClassificationShape:
    """These lines of `count`, after the event `sequence`; `recorded_at` None: not known yet."""
    return ClassificationShape(
        criteria=_shapes(in_force(board.rankings[ranking_id])),
        sequence=sequence,
        recorded_at=timestamp_or_none(recorded_at) or "",
        lines=count,
        standings=_lines(lines),
    )


def _lines(lines: Items[Classified]) -> list[ClassifiedShape]:
    return [ClassifiedShape(line.competitor_id, line.position, list(line.values), line.decided_by) for line in lines]


def _window(question: ClassificationQuestion, lines: ClassifiedLines) -> Generator[None, None, list[Classified]]:
    """The lines that are asked for. Raises Unacceptable and TooMuchWork."""
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
    f"a JSON array of at most {CRITERIA_MAX} criteria, the first decides first: objects with unity, best (only so many "
    "competitions count) and among (tied: only what the tied got among themselves); [] takes the declaration back"
)

_SINCE: Final = (
    Field("since", FROM_1, "adds moved to each line: places gained since after this event, by the criteria then"),
    Field("since_time", TIME_END, "the same since after all events of this time in UTC"),
)

OPERATIONS: Final[tuple[Operation, ...]] = (
    Recall(
        "rankings/{ranking_id}/classification.json",
        "Show the classification of a ranking or a window of it, now or at one moment of the past",
        question=ClassificationQuestion,
        answer=Answer("classification", ClassificationShape),
        render=answer_classification,
        fields=(*MOMENT_FIELDS, *_SINCE, *[field for field in WINDOW_FIELDS if field.name != "unity"]),
        judged=True,
    ),
    Write(
        "PUT",
        "rankings/{ranking_id}/classification.json",
        "Declare by which criteria a ranking is classified",
        command=DeclareClassification,
        answer=Answer("classification", DeclaredShape),
        render=render_declared,
        fields=(
            Field("criteria", json_text(_criteria, {"$ref": "#/components/schemas/Criteria"}), _ABOUT, required=True),
        ),
    ),
)
