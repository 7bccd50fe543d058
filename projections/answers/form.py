"""Recent results of competitors: their points in each of their last competitions, for the short row next to a table."""

from datetime import datetime
from typing import Final

from msgspec import UNSET, Struct, UnsetType

from engine.domain.errors import Unacceptable
from engine.domain.terms import CompetitorId, Sequence, UnityId
from engine.process.time_slices import in_time_slices
from projections.answers.lookup import unity_of
from projections.answers.view import Question, View
from projections.answers.windows import PastWindow
from projections.board.board import Board
from projections.board.order import OrderedLines
from projections.board.recent_results import CompetitionSum, forms, looked_at
from projections.live.orders import made_in_time_slices
from projections.live.tries import Tries
from projections.past.moments import AtVersion, PastBoard

LAST_DEFAULT: Final = 5
LAST_MAX: Final = 50
"""Recent results that are shown of each competitor."""
FORM_SUMS_MAX: Final = 50_000
"""Sums of competitions that one answer reads."""


class CompetitorForm(Struct, frozen=True):
    """`competitions`: the last ones, the newest last."""

    competitor_id: CompetitorId
    competitions: list[CompetitionSum]


class CompetitorForms(Struct, frozen=True, kw_only=True):
    """The recent results in one unity, after the event `sequence`. `form` is in the order of the window's lines;
    `lines`: the total number of lines in the standings. `on`, if requested: only points that had taken place by
    then."""

    unity_id: UnityId
    version: int
    sequence: Sequence
    recorded_at: datetime
    lines: int
    form: list[CompetitorForm]
    on: datetime | UnsetType = UNSET


_Read = tuple[int, int, list[CompetitorForm]]
"""The version of the unity, the number of its lines, and the requested ones."""


class FormQuestion(PastWindow, Question[CompetitorForms], frozen=True, kw_only=True):
    """`last`: the number of competitions for each competitor. Raises NotFound if there was no such moment or unity, and
    Unacceptable if the window names a competitor outside the ranking, or if its competitors have more than
    FORM_SUMS_MAX sums."""

    last: int = LAST_DEFAULT

    async def answered(self, view: View) -> CompetitorForms:
        ranking_id, moment, live = self.ranking_id, self.moment, view.live
        if moment is None and self.on is None:
            unity_id = unity_of(live.board, ranking_id, self.unity_id)
            tries = Tries()
            while True:
                await live.followed_sums.follow(ranking_id, view.read_sums)
                order = await live.orders.of(ranking_id, unity_id)
                if live.board.rankings[ranking_id].competition_sums is not None:
                    break
                tries.again()
            head, read = live.head, await self._read(live.board, unity_id, order)
            return _form(unity_id, read, PastBoard(live.board, head.sequence, await view.recorded_at(head)))
        if isinstance(moment, AtVersion):
            unity_of(live.board, ranking_id, moment.unity_id)
        then = await view.at(ranking_id, moment, self.on)
        unity_id = unity_of(then.board, ranking_id, self.unity_id)
        await view.give_sums_then(ranking_id, then)
        ranking = then.board.rankings[ranking_id]
        order = await made_in_time_slices(ranking.participants, ranking.unities[unity_id])
        return _form(unity_id, await self._read(then.board, unity_id, order), then)

    async def _read(self, board: Board, unity_id: UnityId, order: OrderedLines) -> _Read:
        """It reads everything it shows before its first pause. Raises Unacceptable."""
        ranking = board.rankings[self.ranking_id]
        version, lines, sums = ranking.unities[unity_id].version, len(order), ranking.competition_sums
        assert sums is not None
        competitor_ids = [line.competitor_id for line in self.lines(order)]
        count = looked_at(sums, unity_id, competitor_ids)
        if count > FORM_SUMS_MAX:
            raise Unacceptable(
                f"The competitors of this window have {count:,} sums of competitions, and one answer looks at no more "
                f"than {FORM_SUMS_MAX:,}; ask for fewer lines."
            )
        found = await in_time_slices(forms(board, sums, unity_id, competitor_ids, self.last))
        return version, lines, [CompetitorForm(one, found[one]) for one in competitor_ids]


def _form(unity_id: UnityId, read: _Read, shown: PastBoard) -> CompetitorForms:
    version, lines, form = read
    return CompetitorForms(
        unity_id=unity_id,
        version=version,
        sequence=shown.sequence,
        recorded_at=shown.recorded_at,
        lines=lines,
        form=form,
        on=UNSET if shown.on is None else shown.on,
    )
