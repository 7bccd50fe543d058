"""The fields of queries for lines of a ranking: the moment, the tag of a sub-table, and the moment of comparison."""

from typing import Final

from api.interface.fields import FROM_1, PHRASE, TIME_END, Field, Fields, parsed_type
from engine.domain.ids import ID_PATTERN
from engine.domain.terms import UnityId
from projections.past.moments import AtVersion

_VERSION: Final = parsed_type(
    f"({ID_PATTERN}):({ID_PATTERN})",
    "<unity id>:<version>, two whole numbers from 1 up",
    lambda found: AtVersion(UnityId(int(found[1])), int(found[2])),
)
MOMENT_FIELDS: Final[Fields] = (
    Field("at_sequence", FROM_1, "after this event"),
    Field("at_time", TIME_END, "after all events of this time"),
    Field("version", _VERSION, "when a unity had this version"),
    Field("on", TIME_END, "only what had taken place by this day or time, whenever it was recorded"),
)
TABLE_FIELDS: Final[Fields] = (
    *MOMENT_FIELDS,
    Field("since", FROM_1, "adds moved to each line: places gained since after this event"),
    Field("since_time", TIME_END, "the same since after all events of this time"),
    Field("since_on", TIME_END, "the same since what had taken place by this day or time"),
    Field("tag", PHRASE, "only competitors with exactly this tag; positions are counted among them"),
)
"""The fields of a TableQuestion that are not of its window."""
