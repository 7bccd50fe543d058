"""The common parts of questions about the lines of a ranking: the moment, the window, the tag of a sub-table, and the
moment of comparison."""

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Sequence as Items
from datetime import datetime
from typing import Any, Final, TypeVar, cast

import msgspec
from msgspec import Struct

from api.http.forms import ID_PATTERN, unacceptable
from api.http.zones import Day, zone_of
from api.interface.declarations import RecallContext
from api.interface.fields import FROM_1, PHRASE, TIME_END, Field, Fields, parsed_type
from api.interface.windows import Window
from engine.domain.errors import Fault, Unreadable
from engine.domain.steps import collected
from engine.domain.terms import CompetitorId, RankingId, Sequence, UnityId
from engine.process.time_slices import TimeSlices, in_time_slices
from projections.board.board import Board
from projections.board.selection import CompetitorFilter, Selection
from projections.past import moments
from projections.past.moments import AtSequence, AtTime, AtVersion, Moment, PastBoard

SUB_TABLE_COMPETITORS_MAX: Final = 100_000
"""Competitors with the tag of a sub-table. Each takes some 200 bytes while it is made, in a classification some 300."""

# ── The moment that is shown ────────────────────────────────────────────────────────────────────────────


_Question = TypeVar("_Question", bound=Struct)


def with_days(board: Board, question: _Question) -> _Question:
    """The question, with the days of the tournament in place of those that are named without a zone."""
    days = {name: value for name, value in msgspec.structs.asdict(question).items() if isinstance(value, Day)}
    return msgspec.structs.replace(question, **days_in(board, days)) if days else question


def days_in(board: Board, said: Mapping[str, Any]) -> dict[str, Any]:
    """What is `said`, with the days of the tournament."""
    zone = zone_of(board.publication.presentation.zone)
    return {name: value.located(zone) if isinstance(value, Day) else value for name, value in said.items()}


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
            _refuse_several(self, "The query names more than one moment", ("at_sequence", "at_time", "version"))

    @property
    def moment(self) -> Moment | None:
        """None: now."""
        if self.at_sequence is not None:
            return AtSequence(self.at_sequence)
        return self.version if self.at_time is None else AtTime(self.at_time)


def _refuse_several(question: PastWindow, said: str, names: tuple[str, str, str]) -> None:
    """Raises Unreadable if the question has more than one of these fields."""
    named = [name for name in names if getattr(question, name) is not None]
    if len(named) > 1:
        faults = [Fault(name, "is one moment too many") for name in named]
        raise Unreadable(f"{said}; send {names[0]}, {names[1]} or {names[2]}.", faults)


_VERSION: Final = parsed_type(
    f"({ID_PATTERN}):({ID_PATTERN})",
    "<unity id>:<version>, two whole numbers from 1 up",
    lambda found: AtVersion(UnityId(int(found[1])), int(found[2])),
)
MOMENT_FIELDS: Final[Fields] = (
    Field("at_sequence", FROM_1, "after this event"),
    Field("at_time", TIME_END, "after all events of this time"),
    Field("version", _VERSION, "when a unity had this version"),
    Field("on", TIME_END, "only points that had taken place by this day or time, whenever they were recorded"),
)


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
            _refuse_several(self, said, ("since", "since_time", "since_on"))

    @property
    def is_whole(self) -> bool:
        return self.tag is None and super().is_whole

    @property
    def is_compared(self) -> bool:
        return (self.since, self.since_time, self.since_on) != (None, None, None)

    @property
    def _narrowed(self) -> str:
        return "" if self.tag is None else " that have this tag"


TABLE_FIELDS: Final[Fields] = (
    *MOMENT_FIELDS,
    Field("since", FROM_1, "adds moved to each line: places gained since after this event"),
    Field("since_time", TIME_END, "the same since after all events of this time"),
    Field("since_on", TIME_END, "the same since what had taken place by this day or time"),
    Field("tag", PHRASE, "only competitors with exactly this tag; positions are counted among them"),
)
"""The fields of a TableQuestion that are not of its window."""


# ── Movement ────────────────────────────────────────────────────────────────────────────────────────────


class TableLineShape(Struct, frozen=True, gc=False):
    """The first fields of every line of a table."""

    competitor_id: int
    position: int


PositionThen = Callable[[CompetitorId], int | None]
"""Tells the position of a competitor at the moment that is compared with. None: they were not in the table."""

_S = TypeVar("_S", bound=TableLineShape)


async def then_of(context: RecallContext, question: TableQuestion, head: Sequence) -> PastBoard | None:
    """The board that lines are compared with; None: they are not. Raises as `Past.at`."""
    moment = question.moment
    if question.since is not None:
        moment = AtSequence(question.since)
    elif question.since_time is not None:
        moment = AtTime(question.since_time)
    elif question.since_on is None:
        return None
    return await moments.at(
        context.past, context.live.tournament_id, question.ranking_id, moment, head, question.since_on
    )


def moved(position: int, then: int | None) -> int | None:
    """Places gained since the position `then`; negative: lost; None: there was none."""
    return None if then is None else then - position


async def with_moved(lines: Iterable[_S], position_then: PositionThen) -> list[_S]:
    """The lines with their field `moved`."""

    def with_its(line: _S) -> _S:
        then = position_then(CompetitorId(line.competitor_id))
        return msgspec.structs.replace(line, moved=moved(line.position, then))

    return await in_time_slices(collected(map(with_its, lines)))


# ── Sub-tables ──────────────────────────────────────────────────────────────────────────────────────────


async def tagged_now(context: RecallContext, question: TableQuestion) -> Selection | None:
    """The competitors with the tag of the question; None: it has none. They are current in `tagged_ids`."""
    if question.tag is None:
        return None
    return await context.live.selections.of(CompetitorFilter(tag=question.tag), context.time_slices)


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
