"""What competitors will lose when points expire: their points to defend."""

from typing import Final

from api.interface.declarations import Operation, Public, Recall
from api.interface.fields import TIME_END, Field
from api.interface.shapes import answer_of, answered
from api.interface.windows import WINDOW_FIELDS
from projections.answers.expiring import Expiring, ExpiringQuestion

OPERATIONS: Final[tuple[Operation, ...]] = (
    Recall(
        "rankings/{ranking_id}/expiring.json",
        "Show what competitors will lose when points expire",
        operation_id="showExpiring",
        about="standings",
        public=Public(
            "What competitors will lose when points expire",
            "showPublicExpiring",
        ),
        question=ExpiringQuestion,
        answer=answer_of("expiring", Expiring),
        render=answered,
        fields=(
            Field("until", TIME_END, "up to this day or time", required=True),
            *WINDOW_FIELDS,
        ),
        judged=True,
        example={"until": "2999-01-01"},
    ),
)
