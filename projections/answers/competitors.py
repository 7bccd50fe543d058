"""The competitors of a tournament."""

from msgspec import Struct

from engine.domain.terms import CompetitorId
from projections.answers.view import Question, View
from projections.board.board import Competitor


class CompetitorList(Struct, frozen=True):
    """Some competitors by their ids, in the order of their registration, out of `total`."""

    total: int
    competitors: dict[CompetitorId, Competitor]


class CompetitorListQuestion(Question[CompetitorList], frozen=True, kw_only=True):
    """Those after the first `offset`, at most `limit`; None: all."""

    offset: int = 0
    limit: int | None = None

    async def answered(self, view: View) -> CompetitorList:
        those = view.live.board.competitors
        last = len(those) if self.limit is None else self.offset + self.limit
        return CompetitorList(len(those), dict(those.run(self.offset + 1, last)))
