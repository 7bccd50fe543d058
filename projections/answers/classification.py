"""The classification of a ranking."""

from collections.abc import Generator
from collections.abc import Sequence as Items
from datetime import datetime

from msgspec import UNSET, Struct, UnsetType

from engine.domain.events import Criterion
from engine.domain.faults import unacceptable
from engine.domain.notation import Notation
from engine.domain.terms import CompetitorId, RankingId, Sequence
from engine.process.time_slices import in_time_slices
from projections.answers.criteria import Criteria, criteria_shape
from projections.answers.explainer import ClassifiedNeighbours
from projections.answers.tables import (
    PositionThen,
    TableQuestion,
    tagged_ids,
    tagged_now,
    tagged_then,
    then_of,
    with_moved,
)
from projections.answers.view import Question, View
from projections.board.board import Board, Ranking
from projections.board.classification import Classified, in_force, lacks_sums, value_notations
from projections.board.classified_lines import ClassifiedLines
from projections.board.selection import Selection
from projections.board.sub_table import SubTable
from projections.past.moments import PastBoard


class ClassificationLine(Struct, frozen=True, gc=False):
    """One competitor's line. `values`: one for each criterion, null if it was not needed. `decided_by`: the number,
    from 0, of the criterion that separates it from the line above in the whole table. `overall`, in a sub-table only:
    the position in the whole table. `moved`, if requested: places gained since then, negative if lost; null for a
    competitor outside this table then."""

    competitor_id: CompetitorId
    position: int
    values: list[int | None]
    decided_by: int | None
    overall: int | UnsetType = UNSET
    moved: int | None | UnsetType = UNSET


class Classification(Struct, frozen=True, kw_only=True):
    """`criteria` are those in force: the declared ones, or the main unity alone. `lines`: the total number of lines; in
    a sub-table, its own. `on`, if requested: only points that had taken place by then count."""

    criteria: Criteria
    sequence: Sequence
    recorded_at: datetime
    lines: int
    standings: list[ClassificationLine]
    on: datetime | UnsetType = UNSET


_Found = tuple[int, list[ClassificationLine]]
"""The number of lines of the table, and the requested ones."""


class ClassificationQuestion(TableQuestion, Question[Classification], frozen=True, kw_only=True):
    """A window of the classification, now or at a past moment; without a window, its first lines.

    Raises NotFound if there was no such moment, Unacceptable if the window names a competitor outside the ranking or
    too many have the tag, and TooMuchWork.
    """

    async def answered(self, view: View) -> Classification:
        live, ranking_id, moment = view.live, self.ranking_id, self.moment
        if moment is not None or self.on is not None:
            then = await view.at(ranking_id, moment, self.on)
            selection = await tagged_then(then.board, self, view.time_slices)
            lines = await lines_then(view, then, ranking_id)
            criteria, found = _criteria(then.board, ranking_id), await self._read(then.board, lines, selection)
            return await self._answer(view, live.head.sequence, criteria, found, then)
        selection = await tagged_now(view, self)
        async with live.classifications.lines(ranking_id, view.read_sums) as lines:
            head, criteria = live.head, _criteria(live.board, ranking_id)
            found = await self._read(live.board, lines, selection)
        shown = PastBoard(live.board, head.sequence, await view.recorded_at(head))
        return await self._answer(view, head.sequence, criteria, found, shown)

    async def _answer(
        self, view: View, head: Sequence, criteria: Criteria, found: _Found, shown: PastBoard
    ) -> Classification:
        count, standings = found
        return Classification(
            criteria=criteria,
            sequence=shown.sequence,
            recorded_at=shown.recorded_at,
            lines=count,
            standings=await self._compared(view, head, standings),
            on=UNSET if shown.on is None else shown.on,
        )

    async def _read(self, board: Board, lines: ClassifiedLines, selection: Selection | None) -> _Found:
        """The requested lines, in the state at the call. Raises Unacceptable and TooMuchWork."""
        ranking = board.rankings[self.ranking_id]
        if selection is None:
            count = len(lines)
            return count, classification_lines(ranking, in_force(ranking), await in_time_slices(self._window(lines)))
        notations = value_notations(ranking, in_force(ranking))
        table = await _sub_table(lines, selection)
        return len(table), [
            ClassificationLine(
                line.competitor_id, sub.position, shown_values(notations, line.values), line.decided_by, line.position
            )
            for sub in self.lines(table)
            for line in [sub.whole]
        ]

    def _window(self, lines: ClassifiedLines) -> Generator[None, None, list[Classified]]:
        """The requested lines. Raises Unacceptable and TooMuchWork."""
        found: list[Classified] | None
        if self.competitors is not None:
            known = yield from lines.of(self.competitors)
            found = [line for competitor_id in self.competitors if (line := known[competitor_id]) is not None]
            if missing := [competitor_id for competitor_id in self.competitors if known[competitor_id] is None]:
                raise unacceptable([self.missing("competitors", competitor_id) for competitor_id in missing])
        elif self.around is not None and self.span is not None:
            found = yield from lines.around(self.around, self.span)
            if found is None:
                raise unacceptable([self.missing("around", self.around)])
        else:
            found = yield from lines.run(*self.run)
        return found

    async def _compared(
        self, view: View, head: Sequence, standings: list[ClassificationLine]
    ) -> list[ClassificationLine]:
        """The lines with their movement, if requested. Raises as `then_of`, Unacceptable and TooMuchWork."""
        then = await then_of(view, self, head)
        if then is None:
            return standings
        selection = await tagged_then(then.board, self, view.time_slices)
        lines = await lines_then(view, then, self.ranking_id)
        if selection is None:
            known = await in_time_slices(lines.of([line.competitor_id for line in standings]))
            positions = {line.competitor_id: line.position for line in known.values() if line is not None}
            position_then: PositionThen = positions.get
        else:
            position_then = (await _sub_table(lines, selection)).position
        return await with_moved(standings, position_then)


def _criteria(board: Board, ranking_id: RankingId) -> Criteria:
    return criteria_shape(in_force(board.rankings[ranking_id]))


async def _sub_table(lines: ClassifiedLines, selection: Selection) -> SubTable[Classified]:
    """The sub-table of the selected competitors, in the state at the call. Raises Unacceptable and TooMuchWork."""
    table: SubTable[Classified] = SubTable()
    table.append(await in_time_slices(lines.among(tagged_ids(selection))))
    return table


async def lines_then(view: View, then: PastBoard, ranking_id: RankingId) -> ClassifiedLines:
    """The lines of a board of the past. Raises what reading the log raises."""
    if lacks_sums(then.board.rankings[ranking_id]):
        await view.give_sums_then(ranking_id, then)
    return await in_time_slices(ClassifiedLines.in_steps(then.board, then.board.rankings[ranking_id]))


def classification_lines(
    ranking: Ranking, criteria: Items[Criterion], lines: Items[Classified]
) -> list[ClassificationLine]:
    notations = value_notations(ranking, criteria)
    return [
        ClassificationLine(line.competitor_id, line.position, shown_values(notations, line.values), line.decided_by)
        for line in lines
    ]


def shown_values(notations: Items[Notation], values: Items[int | None]) -> list[int | None]:
    """The values to show for the stored values of a line."""
    return [None if value is None else notation.shown(value) for notation, value in zip(notations, values, strict=True)]


class Neighbours(Struct, frozen=True, kw_only=True):
    """A competitor's line by the declared criteria, and those above and below it; none if the competitor was not in the
    ranking. Null: that would take more sums of competitions than an answer may read."""

    criteria: Criteria
    standings: list[ClassificationLine] | None


def neighbours_of(ranking: Ranking, neighbours: ClassifiedNeighbours) -> Neighbours:
    criteria, lines = neighbours.criteria, neighbours.lines
    return Neighbours(
        criteria=criteria_shape(criteria),
        standings=None if lines is None else classification_lines(ranking, criteria, lines),
    )
