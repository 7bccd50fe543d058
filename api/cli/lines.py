"""Which lines of a table a command shows, of which moment, and with what it compares them: the options."""

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, Final, TypeVar

from cyclopts import Group, Parameter
from cyclopts.validators import Number, mutually_exclusive

from api.cli.arguments import option
from api.cli.names import OneUnityText, UnityText
from api.cli.times import end
from engine.domain.terms import ENROLLED_MAX, CompetitorId

_Q = TypeVar("_Q")

AROUND_SPAN: Final = 5
"""Lines on each side of a competitor."""

_WINDOW: Final = Group("Window", validator=mutually_exclusive)
_COMPARISON: Final = Group("Comparison", validator=mutually_exclusive)
_MOMENT: Final = Group("Moment", validator=mutually_exclusive)
_FROM_ONE: Final = Number(gte=1)
Count = Annotated[int | None, Parameter(validator=_FROM_ONE)]
AroundText = Annotated[
    str | None,
    Parameter(
        group=_WINDOW,
        help=f"Only the competitor with this id or name, with {AROUND_SPAN} lines above and {AROUND_SPAN} below.",
    ),
]
On = Annotated[
    datetime | None,
    Parameter(
        converter=end,
        accepts_keys=False,
        help="Count only what had taken place by this day or time, whenever it was recorded.",
    ),
]
PastSequence = Annotated[int | None, Parameter(group=_MOMENT, validator=_FROM_ONE)]
PastTime = Annotated[datetime | None, Parameter(group=_MOMENT, converter=end, accepts_keys=False)]
_SinceTime = Annotated[datetime | None, Parameter(group=_COMPARISON, converter=end, accepts_keys=False)]

UNITY_OR_MAIN: Final = option("unity", "unity_id", UnityText)
ONE_UNITY: Final = option("unity", "unity_id", OneUnityText)
TAG: Final = option("tag", about="Only the competitors that have exactly this tag. Positions are counted among them.")
WINDOW: Final = (
    option(
        "top",
        kind=Annotated[int | None, Parameter(group=_WINDOW, validator=_FROM_ONE)],
        about="Only this many lines, from the first.",
    ),
    option("around", kind=AroundText),
)
AT: Final = (
    option("at_sequence", kind=PastSequence, about="As it was after the event with this sequence."),
    option(
        "at_time",
        kind=PastTime,
        about="As it was at this time: yyyy-mm-dd HH:ii:ss, in UTC unless an offset follows.",
    ),
    option("on", kind=On),
)
SINCE: Final = (
    option(
        "since",
        kind=Annotated[int | None, Parameter(group=_COMPARISON, validator=_FROM_ONE)],
        about="Show how many places each line has moved since the event with this sequence.",
    ),
    option(
        "since_time",
        kind=_SinceTime,
        about="The same since this time: yyyy-mm-dd HH:ii:ss, in UTC unless an offset follows.",
    ),
    option("since_on", kind=_SinceTime, about="The same since what had taken place by this day or time."),
)


def windowed(question: Callable[..., _Q]) -> Callable[..., _Q]:
    """Makes the question with the window that the options name."""

    def make(*, top: int | None = None, around: CompetitorId | None = None, **fields: Any) -> _Q:
        return question(**fields, **window_of(top, around))

    return make


def window_of(top: int | None, around: CompetitorId | None) -> dict[str, Any]:
    """What a question about these lines is made of; without a window, about all lines."""
    if around is not None:
        return {"around": around, "span": AROUND_SPAN}
    return {"limit": ENROLLED_MAX} if top is None else {"top": top}
