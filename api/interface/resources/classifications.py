"""The classification of a ranking: the field `criteria`, how lines are rendered, and the operations."""

from collections.abc import Sequence as Items
from typing import Final, Protocol

import msgspec
from msgspec import Struct

from api.desk.conditions import own_tag
from api.interface.declarations import Operation, Public, Recall, RecallContext, Write
from api.interface.fields import Field, FieldMisread, json_text
from api.interface.questions import TABLE_FIELDS
from api.interface.rendering import DIGEST_CHARACTERS, Answer, BoardNow, TaggedBody, encode
from api.interface.resources.points import decoded_array
from api.interface.shapes import answer_of, answered
from api.interface.windows import WINDOW_FIELDS
from engine.domain.commands import DeclareClassification
from engine.domain.events import Criterion
from engine.domain.terms import CRITERIA_MAX
from projections.answers.classification import Classification, ClassificationQuestion
from projections.answers.criteria import Criteria, criteria_of, criteria_shape
from projections.answers.lookup import ranking_of

# ── Shapes ──────────────────────────────────────────────────────────────────────────────────────────────


class DeclarationShape(Struct, kw_only=True):
    criteria: Criteria


# ── Reading ─────────────────────────────────────────────────────────────────────────────────────────────

_CRITERIA: Final = msgspec.json.Decoder(Criteria)
_FORM: Final = '[{"unity": 1}, {"unity": 2, "best": 3, "among": "tied"}]'


def _criteria(text: str) -> tuple[Criterion, ...]:
    """Raises FieldMisread, and Unreadable if the text is not JSON."""
    shapes = decoded_array(_CRITERIA, text, "criteria", _FORM)
    keys = sum([len(found) for found in msgspec.json.decode(text, type=list[dict[str, msgspec.Raw]])])
    if text.count(":") != keys:  # JSON lets an object repeat a key; each has a colon, and no value contains one
        raise FieldMisread("must not repeat a key in one object")
    return criteria_of(shapes)


# ── Rendering ───────────────────────────────────────────────────────────────────────────────────────────


class OfDeclaration(Protocol):
    @property
    def criteria(self) -> Items[Criterion]: ...


def render_declared(_view: BoardNow, answer: Answer, event: OfDeclaration) -> bytes:
    return answer.body(encode(DeclarationShape(criteria=criteria_shape(event.criteria))))


async def answer_classification(context: RecallContext, answer: Answer, question: ClassificationQuestion) -> TaggedBody:
    """The ETag begins with the ranking's own tag, which a declaration may name. Raises as the question says."""
    tag = own_tag(ranking_of(context.live.board, question.ranking_id))  # never newer than the answer
    tagged = await answered(context, answer, question)
    is_now = question.moment is None and question.on is None
    return TaggedBody(tagged.body, f"{tag}-{tagged.etag[:DIGEST_CHARACTERS]}") if is_now else tagged


# ── Operations ──────────────────────────────────────────────────────────────────────────────────────────

_ABOUT: Final = (
    f"a JSON array of at most {CRITERIA_MAX} criteria, the most important first: objects with unity, best (only this "
    "many competitions count), drop ([[4,1],[8,2]]: from four competitions on without the worst one, from eight on "
    "without the two worst) and among (tied: only what the tied got among themselves); [] removes the declaration"
)

OPERATIONS: Final[tuple[Operation, ...]] = (
    Recall(
        "rankings/{ranking_id}/classification.json",
        "Show the classification of a ranking or a window of it, now or at a past moment",
        operation_id="showClassification",
        about="standings",
        public=Public(
            "The classification of a ranking or a window of it, now or at a past moment",
            "showPublicClassification",
        ),
        question=ClassificationQuestion,
        answer=answer_of("classification", Classification),
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
        example={"criteria": [{"unity": 5}]},
    ),
)
