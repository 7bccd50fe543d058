"""The scorings of a ranking: what the results of competitions give in it."""

from collections.abc import Iterable
from collections.abc import Sequence as Items
from typing import Final, Protocol

import msgspec
from msgspec import Struct

from api.access.auth import Scope
from api.interface.declarations import Operation, Preview, Recall, RecallContext, Write
from api.interface.fields import Field, json_text
from api.interface.rendering import Answer, BoardNow, TaggedBody, encode
from api.interface.resources.points import decoded_array
from api.interface.resources.previews import COMPARED
from api.interface.shapes import answer_of, answered
from engine.domain.awards import Scoring
from engine.domain.commands import DeclareScoring
from engine.domain.terms import SCORINGS_MAX
from projections.answers.scoring import DeclaredScoring, ScoringQuestion


class DeclaredScoringsShape(Struct, kw_only=True):
    scorings: list[Scoring]


_SCORINGS: Final[msgspec.json.Decoder[Iterable[Scoring]]] = msgspec.json.Decoder(list[Scoring])
_FORM: Final = '[{"awards": [{"unity": 1, "from": "outcome", "table": {"win": 3, "draw": 1, "loss": 0}}]}]'


def _scorings(text: str) -> tuple[Scoring, ...]:
    """Raises FieldMisread, and Unreadable if the text is not JSON."""
    return tuple(decoded_array(_SCORINGS, text, "scorings", _FORM))


class OfScorings(Protocol):
    @property
    def scorings(self) -> Items[Scoring]: ...


def _render_declared(_view: BoardNow, answer: Answer, event: OfScorings) -> bytes:
    return answer.body(encode(DeclaredScoringsShape(scorings=[*event.scorings])))


async def _answer_scoring(context: RecallContext, answer: Answer, question: ScoringQuestion) -> TaggedBody:
    return await answered(context, answer, question)


_DECLARED: Final = Field(
    "scorings",
    json_text(_scorings, {"type": "array", "items": {"$ref": "#/components/schemas/Scoring"}}),
    f"a JSON array of at most {SCORINGS_MAX} scorings; the first that is for a competition scores it; [] removes them",
    required=True,
)
_EXAMPLE: Final = {
    "scorings": [
        {"name": "half", "awards": [{"unity": 5, "from": "outcome", "table": {"win": 3, "draw": 1, "loss": 0}}]}
    ]
}

OPERATIONS: Final[tuple[Operation, ...]] = (
    Recall(
        "rankings/{ranking_id}/scoring.json",
        "Show what results give in a ranking, and which of them give nothing",
        operation_id="showScoring",
        question=ScoringQuestion,
        answer=answer_of("scoring", DeclaredScoring),
        render=_answer_scoring,
    ),
    Write(
        "PUT",
        "rankings/{ranking_id}/scoring.json",
        "Declare what results give in a ranking; earlier results are scored again",
        operation_id="declareScoring",
        command=DeclareScoring,
        answer=Answer("scoring", DeclaredScoringsShape),
        render=_render_declared,
        fields=(_DECLARED,),
        example=_EXAMPLE,
    ),
    Preview(
        "rankings/{ranking_id}/scoring/preview.json",
        "Show what declaring scorings would lead to",
        operation_id="previewDeclareScoring",
        command=DeclareScoring,
        answer=COMPARED,
        fields=(_DECLARED,),
        scope=Scope.WRITE,
        example=_EXAMPLE,
    ),
)
