"""The common parts of questions about the lines of a ranking: the moment, the window, the tag of a sub-table, and the
moment of comparison."""

from collections.abc import Callable, Iterable
from collections.abc import Sequence as Items
from datetime import datetime
from typing import Final, Protocol, TypeVar, cast

import msgspec
from msgspec import Struct

from engine.domain.errors import Fault
from engine.domain.faults import unacceptable
from engine.domain.steps import collected
from engine.domain.terms import CompetitorId, Sequence
from engine.process.time_slices import TimeSlices, in_time_slices
from projections.answers.view import View
from projections.answers.windows import PastWindow, refuse_several
from projections.board.board import Board
from projections.board.selection import CompetitorFilter, Selection
from projections.past import moments
from projections.past.moments import AtSequence, AtTime, PastBoard

SUB_TABLE_COMPETITORS_MAX: Final = 100_000
"""Competitors with the tag of a sub-table. Each takes some 200 bytes while it is made, in a classification some 300."""


class TableQuestion(PastWindow, frozen=True, kw_only=True):
    """A window of the standings or of the classification of a ranking.

    `tag`: only among the competitors that have it; None: among all. `since`, `since_time`, `since_on`: what each line
    is compared with. Raises Unreadable if it names two of them, and as PastWindow.
    """

    tag: str | None = None
    since: Sequence | None = None
    since_time: datetime | None = None
    since_on: datetime | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.since is not None or self.since_time is not None or self.since_on is not None:
            said = "The query names more than one moment to compare with"
            refuse_several(self, said, ("since", "since_time", "since_on"))

    @property
    def is_whole(self) -> bool:
        return self.tag is None and super().is_whole

    @property
    def is_compared(self) -> bool:
        return (self.since, self.since_time, self.since_on) != (None, None, None)

    @property
    def _narrowed(self) -> str:
        return "" if self.tag is None else " that have this tag"


# ── Movement ────────────────────────────────────────────────────────────────────────────────────────────


class _TableLine(Protocol):
    """The first fields of every line of a table."""

    @property
    def competitor_id(self) -> int: ...
    @property
    def position(self) -> int: ...


PositionThen = Callable[[CompetitorId], int | None]
"""Tells the position of a competitor at the moment that is compared with. None: they were not in the table."""

_Line = TypeVar("_Line", bound=_TableLine)


async def then_of(view: View, question: TableQuestion, head: Sequence) -> PastBoard | None:
    """The board that lines are compared with; None: they are not. Raises as `Past.at`."""
    moment = question.moment
    if question.since is not None:
        moment = AtSequence(question.since)
    elif question.since_time is not None:
        moment = AtTime(question.since_time)
    elif question.since_on is None:
        return None
    return await moments.at(view.past, view.live.tournament_id, question.ranking_id, moment, head, question.since_on)


def moved(position: int, then: int | None) -> int | None:
    """Places gained since the position `then`; negative: lost; None: there was none."""
    return None if then is None else then - position


async def with_moved(lines: Iterable[_Line], position_then: PositionThen) -> list[_Line]:
    """The lines with their field `moved`."""

    def with_its(line: _Line) -> _Line:
        then = position_then(CompetitorId(line.competitor_id))
        return cast(_Line, msgspec.structs.replace(cast(Struct, line), moved=moved(line.position, then)))

    return await in_time_slices(collected(map(with_its, lines)))


# ── Sub-tables ──────────────────────────────────────────────────────────────────────────────────────────


async def tagged_now(view: View, question: TableQuestion) -> Selection | None:
    """The competitors with the tag of the question; None: it has none. They are current in `tagged_ids`."""
    if question.tag is None:
        return None
    return await view.live.selections.of(CompetitorFilter(tag=question.tag), view.time_slices)


async def tagged_then(board: Board, question: TableQuestion, time_slices: TimeSlices) -> Selection | None:
    """The same of a board of the past."""
    if question.tag is None:
        return None
    selection = Selection(CompetitorFilter(tag=question.tag), board)
    await time_slices.work(selection.steps(0, None))
    return selection


def tagged_ids(selection: Selection) -> Items[CompetitorId]:
    """The selected competitors, in a ranking or not, at the call. Raises Unacceptable if they are too many for a
    sub-table."""
    for _ in selection.steps(0, None):  # events folded after the search
        pass
    if len(selection) > SUB_TABLE_COMPETITORS_MAX:
        most = f"a sub-table can be asked for of at most {SUB_TABLE_COMPETITORS_MAX:,}"
        raise unacceptable([Fault("tag", f"is that of {len(selection):,} competitors; {most}")])
    return cast("Items[CompetitorId]", selection.run(0, len(selection)))
