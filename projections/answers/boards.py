"""A board at one moment, from which tables are read: now, or in the past on either clock."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime
from typing import Any

from engine.domain.terms import RankingId, UnityId
from engine.log.heads import Head
from engine.process.time_slices import in_time_slices
from projections.answers.view import View
from projections.board.board import Board
from projections.board.classification import has_tiebreaks, needs_sums
from projections.board.classified_lines import ClassifiedLines
from projections.board.competition_sums import CompetitionSums
from projections.board.order import OrderedLines
from projections.board.selection import CompetitorFilter, Selection
from projections.board.sub_table import UnityLines, WholeLines
from projections.live.held import HeldBoard
from projections.live.nested_sets import NestedSets
from projections.live.orders import made_in_time_slices
from projections.past.moments import Moment, PastBoard
from projections.past.world_clock import WorldClock


class BoardAt(ABC):
    """The present board changes during pauses: what is read from it without one belongs together."""

    view: View
    board: Board
    is_present = False
    clock: WorldClock | None = None
    """It shows only the points that had taken place by its time; None: all."""

    @property
    @abstractmethod
    def head(self) -> Head:
        """The last event that it shows."""

    @property
    def on(self) -> datetime | None:
        return None if self.clock is None else self.clock.on

    @abstractmethod
    async def recorded_at(self, head: Head) -> datetime:
        """When this event, which the board has shown, was recorded. Raises as `Past`."""

    @asynccontextmanager
    async def lines(self, ranking_id: RankingId, unity_id: UnityId | None) -> AsyncIterator[WholeLines[Any]]:
        """The lines of a unity (Standing) or, for None, of the classification (Classified). Raises as `Past` and
        Overtaken."""
        if unity_id is None:
            async with self.classified(ranking_id) as classified:
                yield classified
        else:
            yield UnityLines(await self.order(ranking_id, unity_id))

    @abstractmethod
    async def order(self, ranking_id: RankingId, unity_id: UnityId) -> OrderedLines: ...

    @abstractmethod
    def classified(self, ranking_id: RankingId) -> AbstractAsyncContextManager[ClassifiedLines]: ...

    @abstractmethod
    async def with_tag(self, tag: str) -> Selection:
        """The competitors that have this tag."""

    @abstractmethod
    async def know_sums(self, ranking_id: RankingId) -> None:
        """Looks up what competitors got in each competition. Raises as `Past`."""

    @abstractmethod
    def sums(self, ranking_id: RankingId) -> CompetitionSums | None:
        """What competitors got in each competition. None: it is not known, because nobody looked it up, or because of
        an event that was folded since."""

    @abstractmethod
    async def settle(self) -> None:
        """Prepares the places of competitors in the hierarchy, before `hold`."""

    @abstractmethod
    def hold(self) -> HeldBoard:
        """Keeps the competitors as they are, for what is made after a pause."""


async def board_at(view: View, ranking_id: RankingId, moment: Moment | None, on: datetime | None = None) -> BoardAt:
    """The board at `moment`; None: now. With `on`, the ranking has only the points that had taken place by then. Raises
    as `View.at`."""
    if moment is None and on is None:
        return _Present(view)
    return PastBoardAt(view, await view.at(ranking_id, moment, on))


class _Present(BoardAt):
    is_present = True

    def __init__(self, view: View) -> None:
        self.view = view

    @property
    def board(self) -> Board:  # type: ignore[override]
        return self.view.live.board

    @property
    def head(self) -> Head:
        return self.view.live.head

    async def recorded_at(self, head: Head) -> datetime:
        return await self.view.recorded_at(head)

    async def order(self, ranking_id: RankingId, unity_id: UnityId) -> OrderedLines:
        return await self.view.live.orders.of(ranking_id, unity_id)

    def classified(self, ranking_id: RankingId) -> AbstractAsyncContextManager[ClassifiedLines]:
        return self.view.live.classifications.lines(ranking_id, self.view.know_sums)

    async def with_tag(self, tag: str) -> Selection:
        return await self.view.live.selections.of(CompetitorFilter(tag=tag), self.view.time_slices)

    async def know_sums(self, ranking_id: RankingId) -> None:
        await self.view.know_sums(ranking_id)

    def sums(self, ranking_id: RankingId) -> CompetitionSums | None:
        return self.view.live.sums.get(ranking_id)

    async def settle(self) -> None:
        await self.view.live.nested_sets.settle()

    def hold(self) -> HeldBoard:
        return self.view.live.hold()


class PastBoardAt(BoardAt):
    """Nothing of it is kept for other requests."""

    def __init__(self, view: View, then: PastBoard) -> None:
        self.view, self.then = view, then
        self.board, self.clock = then.board, then.clock
        self.nested_sets = NestedSets(then)
        self._sums: dict[RankingId, CompetitionSums] = {}

    @property
    def head(self) -> Head:
        return Head(self.then.sequence, b"")

    async def recorded_at(self, head: Head) -> datetime:
        return self.then.recorded_at

    async def order(self, ranking_id: RankingId, unity_id: UnityId) -> OrderedLines:
        ranking = self.board.rankings[ranking_id]
        return await made_in_time_slices(ranking.participants, ranking.unities[unity_id])

    @asynccontextmanager
    async def classified(self, ranking_id: RankingId) -> AsyncIterator[ClassifiedLines]:
        ranking = self.board.rankings[ranking_id]
        if needs_sums(ranking) or (self.clock is not None and has_tiebreaks(ranking)):
            await self.know_sums(ranking_id)
        yield await in_time_slices(ClassifiedLines.in_steps(self.board, ranking, self.sums(ranking_id), self.on))

    async def with_tag(self, tag: str) -> Selection:
        selection = Selection(CompetitorFilter(tag=tag), self.board)
        await self.view.time_slices.work(selection.steps(0, None))
        return selection

    async def know_sums(self, ranking_id: RankingId) -> None:
        if ranking_id not in self._sums:
            self._sums[ranking_id] = await self.view.sums_then(ranking_id, self.then)

    def sums(self, ranking_id: RankingId) -> CompetitionSums | None:
        return self._sums.get(ranking_id)

    async def settle(self) -> None:
        await self.nested_sets.settle()

    def hold(self) -> HeldBoard:
        return HeldBoard(self.board, self.nested_sets.hold(), 0)
