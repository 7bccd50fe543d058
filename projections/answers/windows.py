"""Windows: the few lines of one unity's standings that a question asks for, out of however many there are, now or at a
moment."""

from datetime import datetime
from typing import Final, TypeVar

from msgspec import Struct

from engine.domain.errors import Fault, Unreadable
from engine.domain.faults import unacceptable
from engine.domain.steps import Steps
from engine.domain.terms import CompetitorId, RankingId, Sequence, UnityId
from projections.board.sub_table import TableLines
from projections.past.moments import AtSequence, AtTime, AtVersion, Moment

_L = TypeVar("_L")

WINDOW_LINES_MAX: Final = 1_000
"""Lines of a window."""
SPAN_MAX: Final = (WINDOW_LINES_MAX - 1) // 2
"""Lines of a window on each side of a competitor."""

_KINDS: Final = (("top",), ("around", "span"), ("competitors",), ("offset", "limit"))
"""The parameters of each kind of window."""


class Window(Struct, frozen=True, kw_only=True):
    """What a question asks for; with none of it, the whole standings of all unities. Raises Unreadable if it names more
    than one kind of window, or `around` and `span` not together."""

    unity_id: UnityId | None = None
    top: int | None = None
    around: CompetitorId | None = None
    span: int | None = None
    competitors: tuple[CompetitorId, ...] | None = None
    offset: int | None = None
    limit: int | None = None

    def __post_init__(self) -> None:
        kinds = [named for kind in _KINDS if (named := [name for name in kind if getattr(self, name) is not None])]
        if len(kinds) > 1:
            faults = [Fault(name, "cannot be combined with another window") for named in kinds for name in named]
            raise Unreadable(
                "The query names more than one window; send top, around and span, competitors, or offset and limit.",
                faults,
            )
        if (self.around is None) != (self.span is None):
            name, missing = ("span", "around") if self.around is None else ("around", "span")
            raise Unreadable(
                "The query cannot be read; correct the parameters named.",
                [Fault(name, f"needs the parameter {missing} as well")],
            )

    @property
    def is_whole(self) -> bool:
        """Whether it asks for the whole standings of all unities."""
        return self.unity_id is None and not any(getattr(self, name) is not None for kind in _KINDS for name in kind)

    @property
    def run(self) -> tuple[int, int]:
        """The offsets from which and before which lines are asked for, where nobody is named."""
        start = self.offset or 0
        return start, start + (self.top or self.limit or WINDOW_LINES_MAX)

    def lines(self, table: TableLines[_L]) -> Steps[list[_L]]:
        """The lines asked for. Raises Unacceptable for competitors that are not in the table, and as the table."""
        if self.competitors is not None:
            found = yield from table.of(self.competitors)
            if missing := [self.missing("competitors", one) for one, line in found.items() if line is None]:
                raise unacceptable(missing)
            return [line for one in self.competitors if (line := found[one]) is not None]
        if self.around is not None and self.span is not None:
            around = yield from table.around(self.around, self.span)
            if around is None:
                raise unacceptable([self.missing("around", self.around)])
            return around
        return (yield from table.run(*self.run))

    def missing(self, name: str, competitor_id: CompetitorId) -> Fault:
        """The fault of the parameter `name`: this competitor is not in the table."""
        return Fault(name, f"competitor {competitor_id} is not among the competitors of the ranking{self._narrowed}")

    @property
    def _narrowed(self) -> str:
        """Which of the competitors of the ranking it is about, in words."""
        return ""


class PastWindow(Window, frozen=True, kw_only=True):
    """A window of a ranking, now or at a moment, with all points or those that had taken place by `on`. Raises
    Unreadable if it names more than one moment, and as Window."""

    ranking_id: RankingId
    at_sequence: Sequence | None = None
    at_time: datetime | None = None
    version: AtVersion | None = None
    on: datetime | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.at_sequence is not None or self.at_time is not None or self.version is not None:
            refuse_several(self, "The query names more than one moment", ("at_sequence", "at_time", "version"))

    @property
    def moment(self) -> Moment | None:
        """None: now."""
        if self.at_sequence is not None:
            return AtSequence(self.at_sequence)
        return self.version if self.at_time is None else AtTime(self.at_time)


def refuse_several(question: Struct, said: str, names: tuple[str, ...]) -> None:
    """Raises Unreadable if the question has more than one of these fields."""
    named = [name for name in names if getattr(question, name) is not None]
    if len(named) > 1:
        faults = [Fault(name, "cannot be combined with another moment") for name in named]
        raise Unreadable(f"{said}; send {', '.join(names[:-1])} or {names[-1]}.", faults)
