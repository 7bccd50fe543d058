"""Selects the lines of a table: those of a page, those of the competitors searched for, or those of a group, with
positions within the group.

Everything comes from one board: the current one or a past one.
"""

from collections.abc import Generator
from collections.abc import Sequence as Items
from typing import Final, TypeVar

from msgspec import Struct, structs

from api.interface.declarations import RecallContext
from api.web.search import named, tagged
from engine.domain.steps import Steps, collected
from engine.domain.terms import CompetitorId, RankingId, UnityId
from engine.log.heads import Head
from engine.process.time_slices import in_time_slices
from projections.answers.classification import lines_then
from projections.answers.lookup import unity_of
from projections.board.board import Board
from projections.board.classification import Classified
from projections.board.classified_lines import ClassifiedLines
from projections.board.order import OrderedLines
from projections.board.standing import Standing
from projections.board.sub_table import SubLine, SubTable, WholeLine, fill
from projections.live.orders import made_in_time_slices
from projections.past.moments import PastBoard

EQUAL_LOOKED_AT_MAX: Final = 2_000
"""Competitors with an equal position among which one is searched for, to find its page."""
_EQUAL_AT_ONCE: Final = 100

_L = TypeVar("_L", bound=WholeLine)


class LinesAsked(Struct, frozen=True, kw_only=True):
    """The requested lines: in this unity (None: of the classification), at most `limit` from `offset` on. `tag`: only
    competitors with it, with positions among them. `find`: only competitors whose name contains it. `line`: the page
    with the line of this competitor, instead of `offset`."""

    unity_id: UnityId | None = None
    offset: int = 0
    limit: int
    tag: str | None = None
    find: str | None = None
    line: CompetitorId | None = None


class FoundLines(Struct, frozen=True):
    """The requested lines, out of `count` in total, with `offset` before them."""

    lines: Items[Classified]
    offset: int
    count: int


async def lines_found_now(context: RecallContext, ranking_id: RankingId, asked: LinesAsked) -> tuple[Head, FoundLines]:
    """The lines, and the head as of which they were read."""
    live = context.live
    sought = await _sought(live.board, ranking_id, asked)
    if asked.unity_id is not None:
        order = await live.orders.of(ranking_id, unity_of(live.board, ranking_id, asked.unity_id))
        return live.head, await _ordered(order, asked, sought)
    async with live.classifications.lines(ranking_id, context.read_sums) as lines:
        return live.head, await _classified(lines, asked, sought)


async def lines_found_then(
    context: RecallContext, then: PastBoard, ranking_id: RankingId, asked: LinesAsked
) -> FoundLines:
    """The lines on a board of the past."""
    sought = await _sought(then.board, ranking_id, asked)
    if asked.unity_id is not None:
        order = await order_then(then.board, ranking_id, unity_of(then.board, ranking_id, asked.unity_id))
        return await _ordered(order, asked, sought)
    return await _classified(await lines_then(context, then, ranking_id), asked, sought)


async def order_then(board: Board, ranking_id: RankingId, unity_id: UnityId) -> OrderedLines:
    """All lines of a unity on a board of the past, in order."""
    ranking = board.rankings[ranking_id]
    return await made_in_time_slices(ranking.participants, ranking.unities[unity_id])


def filled(table: SubTable[Standing], order: OrderedLines, among: Items[CompetitorId]) -> Generator[None, None, None]:
    """Fills an empty sub-table with the lines of the competitors `among`, with pauses for other work."""
    yield from fill(table, order, among)


class _Sought(Struct, frozen=True):
    """The competitors whose lines are shown; None: all. Positions are counted among the `group`."""

    group: list[CompetitorId] | None
    named: list[CompetitorId] | None


async def _sought(board: Board, ranking_id: RankingId, asked: LinesAsked) -> _Sought:
    ranking = board.rankings[ranking_id]
    group = None if asked.tag is None else await in_time_slices(tagged(board, ranking, asked.tag))
    return _Sought(group, None if asked.find is None else await in_time_slices(named(board, ranking, asked.find)))


async def _ordered(order: OrderedLines, asked: LinesAsked, sought: _Sought) -> FoundLines:
    """The lines of a unity, in the state at the call."""
    among = sought.named if sought.group is None else sought.group
    if among is None:
        place = None if asked.line is None else order.offset(asked.line)
        offset = _page_of(asked, place)
        standings, count = order.standings(offset, offset + asked.limit), len(order)
        return FoundLines(await in_time_slices(_of_unity(standings)), offset, count)
    table: SubTable[Standing] = SubTable()
    await in_time_slices(filled(table, order, among))
    offset, lines, count = _some(table, asked, sought)
    standings = [structs.replace(line.whole, position=line.position) for line in lines]
    return FoundLines(await in_time_slices(_of_unity(standings)), offset, count)


async def _classified(lines: ClassifiedLines, asked: LinesAsked, sought: _Sought) -> FoundLines:
    """The lines of a classification, in the state at the call."""
    among = sought.named if sought.group is None else sought.group
    if among is None:
        offset = _page_of(asked, None if asked.line is None else await in_time_slices(_place(lines, asked.line)))
        count, run = len(lines), await in_time_slices(lines.run(offset, offset + asked.limit))
    else:
        table: SubTable[Classified] = SubTable()
        table.append(await in_time_slices(lines.among(among)))
        offset, some, count = _some(table, asked, sought)
        run = [structs.replace(line.whole, position=line.position) for line in some]
    return FoundLines(await in_time_slices(lines.completed(run)), offset, count)


def _page_of(asked: LinesAsked, place: int | None) -> int:
    """The offset of the page with the line at this place; None: the requested offset."""
    return asked.offset if place is None else place // asked.limit * asked.limit


def _place(lines: ClassifiedLines, competitor_id: CompetitorId) -> Generator[None, None, int | None]:
    """The number of lines before that of a competitor; None: they are not in the ranking, or share their position with
    too many."""
    line = (yield from lines.of([competitor_id]))[competitor_id]
    if line is None:
        return None
    first = line.position - 1
    for start in range(first, first + EQUAL_LOOKED_AT_MAX, _EQUAL_AT_ONCE):
        for place, one in enumerate((yield from lines.run(start, start + _EQUAL_AT_ONCE)), start):
            if one.competitor_id == competitor_id:
                return place
    return None


def _some(table: SubTable[_L], asked: LinesAsked, sought: _Sought) -> tuple[int, list[SubLine[_L]], int]:
    """The requested lines of a sub-table, between the number of lines before them and the total number."""
    if sought.named is None:
        offset = _page_of(asked, None if asked.line is None else table.offset(asked.line))
        return offset, table.standings(offset, offset + asked.limit), len(table)
    places = sorted([place for one in sought.named if (place := table.offset(one)) is not None])
    lines = [table.standings(place, place + 1)[0] for place in places[asked.offset : asked.offset + asked.limit]]
    if sought.group is None:
        lines = [structs.replace(line, position=line.whole.position) for line in lines]
    return asked.offset, lines, len(places)


def _of_unity(standings: Items[Standing]) -> Steps[list[Classified]]:
    """The lines of a unity, as those of a classification by this unity alone."""
    return collected(Classified(one.competitor_id, one.position, (one.total,), None) for one in standings)
