"""The fields of a query that ask for a window: a few lines of one unity's standings."""

from typing import Final

from api.interface.fields import FROM_0, ID, Field, Fields, FieldType, ids_up_to, number_up_to
from projections.answers.windows import SPAN_MAX, WINDOW_LINES_MAX

_LINES: Final[FieldType] = number_up_to(1, WINDOW_LINES_MAX)
WINDOW_FIELDS: Final[Fields] = (
    Field("unity", ID, "only this unity; absent in a window: the main one", argument="unity_id"),
    Field("top", _LINES, "the first lines"),
    Field("around", ID, "the line of this competitor, with span lines above it and below it"),
    Field("span", number_up_to(0, SPAN_MAX), "lines on each side of around"),
    Field("competitors", ids_up_to(WINDOW_LINES_MAX), "the lines of these competitors, in this order"),
    Field("offset", FROM_0, "the number of lines to skip"),
    Field("limit", _LINES, f"the largest number of lines; absent with offset: {WINDOW_LINES_MAX:,}"),
)
