"""The reasons for totals: the lines of a ranking's history, and the explanation of a competitor's place."""

from typing import Final

from api.interface.declarations import Operation, Public, Recall, RecallContext
from api.interface.fields import FROM_0, FROM_1, ID, TIME_BEGIN, TIME_END, Field, count, parsed_type
from api.interface.rendering import Answer, TaggedBody, encode, tagged_body
from api.interface.shapes import answer_of, answered, shape_of, shaped
from engine.domain.ids import ID_PATTERN
from engine.domain.terms import Sequence
from projections.answers.explanation import STEPS_DEFAULT, STEPS_MAX, ExplainQuestion, Explanation
from projections.answers.history import LINES_DEFAULT, LINES_MAX, HistoryLine, HistoryQuestion
from projections.answers.view import ask
from projections.past.pages import Cursor


async def answer_history(context: RecallContext, answer: Answer, question: HistoryQuestion) -> TaggedBody:
    """The lines, and `next` after them. Raises as the question says."""
    found = await ask(context, question)
    lines, following = encode([*map(shaped, found.lines)]), encode(found.next)
    return tagged_body(b'%b%b,"next":%b}' % (answer.before, lines, following))


_CURSOR: Final = parsed_type(
    rf"({ID_PATTERN})\.(0|[1-9][0-9]{{0,8}})",
    "the next of an earlier answer",
    lambda found: Cursor(Sequence(int(found[1])), int(found[2])),
)

OPERATIONS: Final[tuple[Operation, ...]] = (
    Recall(
        "rankings/{ranking_id}/history.json",
        "List the deltas of a ranking, with totals and positions, and the declarations of its classification",
        operation_id="listHistory",
        about="history",
        public=Public(
            "The deltas of a ranking, with time, competition and reason, and the declarations of its classification",
            "listPublicHistory",
        ),
        question=HistoryQuestion,
        answer=Answer("history", list[shape_of(HistoryLine)], more={"next": str | None}),  # type: ignore[misc]
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
        about="history",
        public=Public(
            "Why a competitor has this position and total",
            "explainPublic",
        ),
        question=ExplainQuestion,
        answer=answer_of("explanation", Explanation),
        render=answered,
        fields=(
            Field("competitor", ID, "who", required=True, argument="competitor_id"),
            Field("unity", ID, "which unity; absent: the main one", argument="unity_id"),
            Field("from", FROM_0, "starting after this event; 0: at the beginning", argument="start"),
            Field("to", FROM_1, "ending after this event; absent: now", argument="end"),
            Field("on", TIME_END, "by what had taken place by this day or time, in order of time: the last steps"),
            Field("limit", count(STEPS_DEFAULT, STEPS_MAX), "steps"),
        ),
        judged=True,
        example={"competitor": 1},
    ),
)
