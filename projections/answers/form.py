"""Recent results of competitors: their points in each of their last competitions, for the short row next to a table."""

from collections.abc import Sequence as Items
from datetime import datetime
from typing import Final

from msgspec import UNSET, Struct, UnsetType

from engine.domain.errors import Unacceptable
from engine.domain.steps import finished
from engine.domain.terms import CompetitorId, Sequence, UnityId
from engine.process.time_slices import all_of, in_chunks
from projections.answers.boards import board_at
from projections.answers.lookup import unity_of
from projections.answers.view import Question, View
from projections.answers.windows import PastWindow
from projections.board.recent_results import CompetitionSum, Forms, looked_at
from projections.board.sub_table import UnityLines
from projections.columns.packed import WALK_CHUNK_ITEMS
from projections.live.tries import Tries

LAST_DEFAULT: Final = 5
LAST_MAX: Final = 50
"""Recent results that are shown of each competitor."""
FORM_SUMS_MAX: Final = 50_000
"""Sums of competitions that one answer reads."""


class CompetitorForm(Struct, frozen=True):
    """`competitions`: the last ones, newest last."""

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


class FormQuestion(PastWindow, Question[CompetitorForms], frozen=True, kw_only=True):
    """`last`: the number of competitions for each competitor. Raises NotFound if there was no such moment or unity, and
    Unacceptable if the window names a competitor outside the ranking, or if its competitors have more than
    FORM_SUMS_MAX sums."""

    last: int = LAST_DEFAULT

    async def answered(self, view: View) -> CompetitorForms:
        at, tries = await board_at(view, self.ranking_id, self.moment, self.on), Tries()
        unity_id = unity_of(at.board, self.ranking_id, self.unity_id)
        while True:
            await at.know_sums(self.ranking_id)
            order = await at.order(self.ranking_id, unity_id)
            ranking = at.board.rankings[self.ranking_id]
            if (sums := at.sums(self.ranking_id)) is not None:
                break
            tries.again()
        head, version, count = at.head, ranking.unities[unity_id].version, len(order)
        competitor_ids = [line.competitor_id for line in finished(self.lines(UnityLines(order)))]
        looked_at_sums = looked_at(sums, unity_id, competitor_ids)
        if looked_at_sums > FORM_SUMS_MAX:
            raise Unacceptable(
                f"The competitors of this window have {looked_at_sums:,} sums of competitions, and one answer looks at "
                f"no more than {FORM_SUMS_MAX:,}; ask for fewer lines."
            )
        found = await forms_of(Forms(at.board, sums, unity_id, competitor_ids, self.last), competitor_ids)
        return CompetitorForms(
            unity_id=unity_id,
            version=version,
            sequence=head.sequence,
            recorded_at=await at.recorded_at(head),
            lines=count,
            form=[CompetitorForm(one, found[one]) for one in competitor_ids],
            on=UNSET if at.on is None else at.on,
        )


async def forms_of(forms: Forms, competitor_ids: Items[CompetitorId]) -> dict[CompetitorId, list[CompetitionSum]]:
    """The recent results of each of these competitors."""
    async for some in in_chunks(forms.competitions, WALK_CHUNK_ITEMS):
        forms.look_at(some)
    return dict(zip(competitor_ids, await all_of(map(forms.of, competitor_ids)), strict=True))
