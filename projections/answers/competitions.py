"""The competitions of a tournament."""

from msgspec import Struct

from engine.domain.terms import CompetitionId, CompetitorId
from projections.answers.lookup import competitor_of
from projections.answers.view import Question, View
from projections.board.board import Competition
from projections.board.selection import CompetitionFilter


class CompetitionList(Struct, frozen=True):
    """Some competitions by their ids, out of `total`."""

    total: int
    competitions: dict[CompetitionId, Competition]


class CompetitionListQuestion(Question[CompetitionList], frozen=True, kw_only=True):
    """All competitions, or those that meet every condition that is not None: in the order of their creation, or the
    newest first. Of these, those after the first `offset`, at most `limit`; None: all. Raises NotFound if the
    competitor does not exist."""

    group_id: int | None = None
    round: int | None = None
    competitor_id: CompetitorId | None = None
    has_result: bool | None = None
    voided: bool | None = None
    newest_first: bool = False
    offset: int = 0
    limit: int | None = None

    async def answered(self, view: View) -> CompetitionList:
        those, voided = view.live.board.competitions, view.live.board.voided
        chosen = CompetitionFilter(
            group_id=self.group_id,
            round=self.round,
            competitor_id=self.competitor_id,
            has_result=self.has_result,
            voided=self.voided if self.voided or voided else None,
        )
        if self.competitor_id is not None:
            competitor_of(view.live.board, self.competitor_id)
        selection = None
        if chosen != CompetitionFilter():
            selection = await view.live.selections.of(chosen, view.time_slices)
        total = len(those) if selection is None else len(selection)
        first, last = self.offset, total if self.limit is None else self.offset + self.limit
        if self.newest_first:
            first, last = max(total - last, 0), max(total - first, 0)
        ids = those.ids(first + 1, last) if selection is None else [*map(CompetitionId, selection.run(first, last))]
        return CompetitionList(total, dict(those.held(ids[::-1] if self.newest_first else ids)))
