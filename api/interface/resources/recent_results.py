"""Recent results of competitors: their points in each of their last competitions."""

from typing import Final

from api.interface.declarations import Operation, Public, Recall
from api.interface.fields import Field, number_up_to
from api.interface.questions import MOMENT_FIELDS
from api.interface.shapes import answer_of, answered
from api.interface.windows import WINDOW_FIELDS
from projections.answers.form import LAST_DEFAULT, LAST_MAX, CompetitorForms, FormQuestion

OPERATIONS: Final[tuple[Operation, ...]] = (
    Recall(
        "rankings/{ranking_id}/form.json",
        "Show what competitors scored in their last competitions, now or at a past moment",
        operation_id="showForm",
        about="standings",
        public=Public("What competitors scored in their last competitions, now or at a past moment", "showPublicForm"),
        question=FormQuestion,
        answer=answer_of("form", CompetitorForms),
        render=answered,
        fields=(
            Field("last", number_up_to(1, LAST_MAX, LAST_DEFAULT), "the number of competitions of each"),
            *MOMENT_FIELDS,
            *WINDOW_FIELDS,
        ),
        judged=True,
    ),
)
