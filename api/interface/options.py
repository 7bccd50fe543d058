"""The options of a unity as people give them: in forms over HTTP and in the console, and on the command line.

Pure. Over HTTP, points are whole numbers; on the command line, they are typed as people write them. So each option has
two descriptions.
"""

from typing import Final

import msgspec
from msgspec import Struct

from api.interface.fields import COUNTS, EXPIRES_ON, LASTS, NO_TOTAL, Field, Fields, FieldType, number_up_to, one_of
from engine.domain.notation import DECIMALS_MAX
from engine.domain.options import MAIN_UNITY


class UnityOption(Struct, frozen=True):
    """`about`: what it is for, in a form. `help`: the same on the command line."""

    name: str
    type: FieldType
    about: str
    help: str


UNITY_OPTIONS: Final = (
    UnityOption(
        "decimals",
        number_up_to(0, DECIMALS_MAX),
        "points are whole numbers of the smallest unit; pages show them with this many decimals",
        "Its points have this many decimals, such as 1 for half points. Over HTTP they are whole numbers of the "
        "smallest unit: 5 for 0.5.",
    ),
    UnityOption(
        "time",
        one_of("s", "ms"),
        "points are seconds (s) or milliseconds (ms); pages show them as 2:03:17",
        "Its points are times, such as 2:03:17, and over HTTP whole seconds (s) or milliseconds (ms).",
    ),
    UnityOption(
        "counts",
        COUNTS,
        "what a total is: the sum of what was added, the best result or the last; it cannot be changed, and neither "
        "can the sort of a unity that counts results",
        "What a total is: the sum of all points, the best result or the last one. It never changes.",
    ),
    UnityOption(
        "lasts",
        LASTS,
        "the age at which its points expire, an ISO 8601 duration in weeks, days, hours and minutes, such as P52W; "
        "it cannot be changed; absent: they do not expire",
        "Its points expire at this age, such as P52W, P90D or PT1H30M. It never changes.",
    ),
    UnityOption(
        "expires_on",
        EXPIRES_ON,
        "they expire at the next boundary of this unit, in UTC; a week begins on Monday; required with lasts",
        "They expire at the next boundary of this unit, in UTC; a week begins on Monday.",
    ),
    UnityOption(
        "absent",
        NO_TOTAL,
        "where a total is a sum, none: a competitor without points that count has no total, and stands behind all "
        "others; it cannot be changed, and neither can the sort of the unity; absent: the total is 0",
        "A competitor without points that count has no total (none) instead of 0, and stands behind all others. It "
        "never changes.",
    ),
)
UNITY_FIELDS: Final[Fields] = tuple([Field(option.name, option.type, option.about) for option in UNITY_OPTIONS])
MAIN_UNITY_FIELDS: Final[Fields] = tuple(
    [msgspec.structs.replace(field, name=MAIN_UNITY + field.name) for field in UNITY_FIELDS]
)
