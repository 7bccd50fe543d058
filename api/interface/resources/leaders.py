"""The leaders of a unity and their reigns, by the log's clock and by the world's."""

from typing import Final

from api.interface.declarations import Operation, Public, Recall
from api.interface.fields import FROM_0, FROM_1, ID, TIME_END, Field, number_up_to, one_of
from api.interface.shapes import answer_of, answered
from projections.answers.leaders import REIGNS_DEFAULT, REIGNS_MAX, Leaders, LeadersQuestion

OPERATIONS: Final[tuple[Operation, ...]] = (
    Recall(
        "rankings/{ranking_id}/leaders.json",
        "Show who led a ranking from when to when, and how long each competitor did",
        operation_id="showLeaders",
        about="history",
        public=Public(
            "Who led from when to when, and how long each competitor did",
            "showPublicLeaders",
        ),
        question=LeadersQuestion,
        answer=answer_of("leaders", Leaders),
        render=answered,
        fields=(
            Field("unity", ID, "which unity; absent: the main one", argument="unity_id"),
            Field(
                "clock",
                one_of("log", "world"),
                "log: by what had been recorded, as published; world: by what had taken place",
            ),
            Field("at_sequence", FROM_1, "as known after this event"),
            Field("at_time", TIME_END, "as known after all events of this time"),
            Field("until", TIME_END, "up to this day or time; absent: up to the last points"),
            Field("offset", FROM_0, "the number of reigns to skip"),
            Field("limit", number_up_to(1, REIGNS_MAX, REIGNS_DEFAULT), "reigns"),
        ),
    ),
)
