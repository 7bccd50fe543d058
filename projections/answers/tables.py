"""The common parts of questions about the lines of a table: the moment, the window, the tag of a sub-table, and the
moment of comparison."""

from collections.abc import Iterable, Mapping
from collections.abc import Sequence as Items
from datetime import datetime
from typing import Any, Final, Generic, Literal, TypeVar, cast

from msgspec import UNSET, Struct, UnsetType

from engine.domain.errors import Fault
from engine.domain.faults import unacceptable
from engine.domain.names import name_key
from engine.domain.steps import Steps
from engine.domain.terms import CompetitorId, RankingId, Sequence, UnityId
from engine.process.time_slices import in_time_slices
from projections.answers.boards import BoardAt, PastBoardAt
from projections.answers.view import View
from projections.answers.windows import PastWindow, refuse_several
from projections.board.selection import Selection
from projections.board.sub_table import SOUGHT_AT_ONCE_MAX, SubTable, WholeLine, WholeLines
from projections.past import moments
from projections.past.moments import AtSequence, AtTime

_L = TypeVar("_L", bound=WholeLine)

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


# ── Lines ───────────────────────────────────────────────────────────────────────────────────────────────


class FoundLines(Struct, Generic[_L], frozen=True):
    """The requested lines, out of `count`. `positions`: theirs in the sub-table; None: it is the whole table."""

    lines: list[_L]
    count: int
    positions: list[int] | None = None

    def placed(self) -> Iterable[tuple[_L, int, int | UnsetType]]:
        """Each line with its position, and, in a sub-table, that in the whole table."""
        if self.positions is None:
            return [(line, line.position, UNSET) for line in self.lines]
        return [(line, position, line.position) for line, position in zip(self.lines, self.positions, strict=True)]


def found(question: TableQuestion, lines: WholeLines[_L], selection: Selection | None) -> Steps[FoundLines[_L]]:
    """The lines that a question asks for, among the selected competitors, in the state of the first step. Raises
    Unacceptable, and as `lines`."""
    if selection is None:
        return FoundLines((yield from question.lines(lines)), len(lines))
    table = SubTable((yield from lines.among(tagged_ids(selection))))
    some = yield from question.lines(table)
    return FoundLines([line.whole for line in some], len(table), [line.position for line in some])


async def selection_of(board: BoardAt, tag: str | None) -> Selection | None:
    """The competitors that have this tag; None: everybody."""
    return None if tag is None else await board.with_tag(name_key(tag))


def tagged_ids(selection: Selection) -> Items[CompetitorId]:
    """The selected competitors, in a ranking or not, at the call. Raises Unacceptable if they are too many for a
    sub-table."""
    for _ in selection.steps(0, None):  # events folded after the search
        pass
    if len(selection) > SUB_TABLE_COMPETITORS_MAX:
        most = f"a sub-table can be asked for of at most {SUB_TABLE_COMPETITORS_MAX:,}"
        raise unacceptable([Fault("tag", f"is that of {len(selection):,} competitors; {most}")])
    return cast("Items[CompetitorId]", selection.run(0, len(selection)))


# ── Movement ────────────────────────────────────────────────────────────────────────────────────────────

Positions = Mapping[CompetitorId, int | None]
"""Where competitors stood at the moment that is compared with; None: nowhere."""


async def earlier_of(view: View, question: TableQuestion, head: Sequence) -> PastBoardAt | None:
    """The board that lines are compared with; None: they are not. Raises as `moments.at`."""
    moment = question.moment
    if question.since is not None:
        moment = AtSequence(question.since)
    elif question.since_time is not None:
        moment = AtTime(question.since_time)
    elif question.since_on is None:
        return None
    asked = view.live.tournament_id, question.ranking_id, moment, head, question.since_on
    return PastBoardAt(view, await moments.at(view.past, *asked))


async def earlier_positions(
    earlier: BoardAt | None, question: TableQuestion, unity_id: UnityId | None, lines: Iterable[WholeLine]
) -> Positions | None:
    """Where the competitors of these lines stood on the board that they are compared with; None: they are not. Raises
    as `positions_at`."""
    if earlier is None:
        return None
    competitor_ids = [line.competitor_id for line in lines]
    return await positions_at(earlier, question.ranking_id, unity_id, question.tag, competitor_ids)


async def positions_at(
    board: BoardAt,
    ranking_id: RankingId,
    unity_id: UnityId | None,
    tag: str | None,
    competitor_ids: Items[CompetitorId],
) -> Positions:
    """The positions of these competitors on a board of the past, in this unity or, for None, in the classification;
    with a tag, among those who had it then. Raises Unacceptable, and as `board`."""
    if unity_id is not None and unity_id not in board.board.rankings[ranking_id].unities:
        return {}
    selection = await selection_of(board, tag)
    positions: dict[CompetitorId, int | None] = {}
    async with board.lines(ranking_id, unity_id) as lines:
        table: Any = lines
        if selection is not None:
            table = SubTable(await in_time_slices(lines.among(tagged_ids(selection))))
        for start in range(0, len(competitor_ids), SOUGHT_AT_ONCE_MAX):
            known = await in_time_slices(table.of(competitor_ids[start : start + SOUGHT_AT_ONCE_MAX]))
            positions |= {one: None if line is None else line.position for one, line in known.items()}
    return positions


def moved(competitor_id: CompetitorId, position: int, earlier: Positions | None) -> int | None | UnsetType:
    """Places gained; negative: lost; None: the competitor was in no table then; UNSET: nothing is compared."""
    if earlier is None:
        return UNSET
    then = earlier.get(competitor_id)
    return None if then is None else then - position


def unplaced(total: int | None) -> Literal[False] | UnsetType:
    """`placed` of a line with this total; UNSET: it is placed."""
    return False if total is None else UNSET
