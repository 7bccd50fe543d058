"""Which lines of a table a command shows, and with what it compares them: the options."""

from datetime import datetime
from typing import Annotated, Any, Final

from cyclopts import Group, Parameter
from cyclopts.validators import Number, mutually_exclusive

from api.cli.times import end
from api.interface.names import Names
from engine.domain.terms import ENROLLED_MAX, Sequence

AROUND_SPAN: Final = 5
"""Lines on each side of a competitor."""
CHART_LINES_MAX: Final = 100
"""Lines of a chart. Nobody can follow more, and the file grows with each."""

_WINDOW: Final = Group("Window", validator=mutually_exclusive)
_COMPARISON: Final = Group("Comparison", validator=mutually_exclusive)
TopLines = Annotated[
    int | None, Parameter(group=_WINDOW, validator=Number(gte=1), help="Only this many lines, from the first.")
]
ChartedLines = Annotated[
    int | None,
    Parameter(
        group=_WINDOW,
        validator=Number(gte=1, lte=CHART_LINES_MAX),
        help=f"Only this many lines, from the first. Without it, the first {CHART_LINES_MAX}.",
    ),
]
AroundText = Annotated[
    str | None,
    Parameter(
        group=_WINDOW,
        help=f"Only the competitor with this id or name, with {AROUND_SPAN} lines above and {AROUND_SPAN} below.",
    ),
]
TagText = Annotated[
    str | None,
    Parameter(help="Only the competitors that have exactly this tag. Positions are counted among them."),
]
SinceSequence = Annotated[
    int | None,
    Parameter(
        group=_COMPARISON,
        validator=Number(gte=1),
        help="Show how many places each line has moved since the event with this sequence.",
    ),
]
SinceTime = Annotated[
    datetime | None,
    Parameter(
        group=_COMPARISON,
        converter=end,
        accepts_keys=False,
        help="The same since this time: yyyy-mm-dd HH:ii:ss, in UTC unless an offset follows.",
    ),
]
SinceOn = Annotated[
    datetime | None,
    Parameter(
        group=_COMPARISON,
        converter=end,
        accepts_keys=False,
        help="The same since what had taken place by this day or time.",
    ),
]
On = Annotated[
    datetime | None,
    Parameter(
        converter=end,
        accepts_keys=False,
        help="Only with the points that had taken place by this day or time, whenever they were recorded.",
    ),
]


def window_of(names: Names, top: int | None, around: str | None) -> dict[str, Any]:
    """What a question about the lines that the options name is made of; without them, all lines. Raises as `Names`."""
    if around is not None:
        return {"around": names.competitor(around), "span": AROUND_SPAN}
    return {"limit": ENROLLED_MAX} if top is None else {"top": top}


def sequence_of(number: int | None) -> Sequence | None:
    return None if number is None else Sequence(number)
