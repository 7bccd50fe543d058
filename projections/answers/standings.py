"""The standings of a ranking: a window of one unity's, or whole standings of all unities."""

from collections.abc import Sequence as Items
from datetime import datetime
from typing import Final

from msgspec import UNSET, Struct, UnsetType, structs

from engine.domain.notation import Notation
from engine.domain.terms import CompetitorId, RankingId, Sequence, UnityId
from engine.log.heads import Head
from engine.process.time_slices import all_of, in_time_slices
from projections.answers.boards import BoardAt, board_at
from projections.answers.lookup import unity_of
from projections.answers.tables import (
    FoundLines,
    TableQuestion,
    earlier_of,
    earlier_positions,
    found,
    moved,
    selection_of,
    unplaced,
)
from projections.answers.view import Question, View
from projections.board.board import Ranking, Unity
from projections.board.selection import Selection
from projections.board.standing import Standing
from projections.board.sub_table import UnityLines
from projections.live.held import HeldBoard
from projections.live.tries import Tries

_STEP_LINES: Final = 100
"""Lines that are made without a pause."""


class StandingLine(Struct, frozen=True, gc=False):
    """One competitor's line in a unity. `overall`, in a sub-table only: the position in the whole standings. `moved`,
    if requested: places gained since then, negative if lost; null for a competitor outside this table then. `total`
    null: there is none, because nothing of theirs counts. Then `placed` is false; otherwise it is absent."""

    competitor_id: CompetitorId
    position: int
    total: int | None
    overall: int | UnsetType = UNSET
    moved: int | None | UnsetType = UNSET
    placed: bool | UnsetType = UNSET


class UnityStandings(Struct, frozen=True, kw_only=True):
    """`general`: it is the main unity. `count`: the total number of lines; in a sub-table, its own."""

    unity_id: UnityId
    name: str
    version: int
    notation: Notation
    general: bool
    count: int
    lines: list[StandingLine]


class Standings(Struct, frozen=True, kw_only=True):
    """The standings after the event `sequence`. `unities`: the one of the window, or all. `competitor_ids`: those in
    the lines; of whole standings, in the order of enrolment. `competitors`: as they were then. `on`, if requested: only
    points that had taken place by then count."""

    ranking_id: RankingId
    name: str
    description: str | None
    closed_at: datetime | None
    unities: list[UnityStandings]
    competitor_ids: Items[CompetitorId]
    competitors: HeldBoard
    sequence: Sequence
    recorded_at: datetime
    on: datetime | UnsetType = UNSET


class _Read(Struct, frozen=True):
    """What was read without a pause: the lines of one unity, and what they belong to. `version`: the unity's then."""

    head: Head
    ranking: Ranking
    competitor_ids: Items[CompetitorId]
    competitors: HeldBoard
    found: FoundLines[Standing]
    unity_id: UnityId
    unity: Unity
    version: int


class StandingsQuestion(TableQuestion, Question[Standings], frozen=True, kw_only=True):
    """Now or at a past moment; without a window, all lines of all unities.

    Raises NotFound if there was no such moment or unity, and Unacceptable if the window names a competitor outside the
    ranking, or too many have the tag.
    """

    async def answered(self, view: View) -> Standings:
        at = await board_at(view, self.ranking_id, self.moment, self.on)
        upto, tries, is_whole = view.live.head.sequence, Tries(), self.is_whole
        await at.settle()
        selection = await selection_of(at, self.tag)
        while True:
            unity_ids = [*at.board.rankings[self.ranking_id].unities]
            if not is_whole:
                unity_ids = [unity_of(at.board, self.ranking_id, self.unity_id)]
            first, *others = [await self._read(at, one, selection, is_whole=is_whole) for one in unity_ids]
            if all(one.head == first.head for one in others):
                break
            tries.again()
        recorded_at = await at.recorded_at(first.head)
        earlier = await earlier_of(view, self, upto)
        return Standings(
            ranking_id=self.ranking_id,
            name=first.ranking.name,
            description=first.ranking.description,
            closed_at=first.ranking.closed_at,
            unities=[await self._shown(one, earlier) for one in (first, *others)],
            competitor_ids=first.competitor_ids,
            competitors=first.competitors,
            sequence=first.head.sequence,
            recorded_at=recorded_at,
            on=UNSET if at.on is None else at.on,
        )

    async def _read(self, at: BoardAt, unity_id: UnityId, selection: Selection | None, *, is_whole: bool) -> _Read:
        lines = UnityLines(await at.order(self.ranking_id, unity_id))
        head, ranking, competitors = at.head, at.board.rankings[self.ranking_id], at.hold()
        unity = ranking.unities[unity_id]
        version = unity.version
        listed = ranking.participants.listed() if is_whole else None
        question = structs.replace(self, limit=len(lines)) if is_whole else self
        read = await in_time_slices(found(question, lines, selection))
        listed = listed or [line.competitor_id for line in read.lines]
        return _Read(head, ranking, listed, competitors, read, unity_id, unity, version)

    async def _shown(self, read: _Read, earlier: BoardAt | None) -> UnityStandings:
        positions = await earlier_positions(earlier, self, read.unity_id, read.found.lines)
        shown = read.unity.notation.shown
        lines = (
            StandingLine(
                line.competitor_id,
                position,
                total := shown(line.total),
                overall,
                moved(line.competitor_id, position, positions),
                unplaced(total),
            )
            for line, position, overall in read.found.placed()
        )
        return UnityStandings(
            unity_id=read.unity_id,
            name=read.unity.name,
            version=read.version,
            notation=read.unity.notation,
            general=read.unity.number == 1,
            count=read.found.count,
            lines=await all_of(lines, _STEP_LINES),
        )
