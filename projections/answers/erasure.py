"""What erasing a competitor would leave in place."""

from msgspec import Struct

from engine.domain.commands import EraseCompetitor
from engine.domain.judging import decide
from engine.domain.terms import CompetitorId, RankingId
from projections.answers.view import Question, View
from projections.past import searches
from projections.past.mentions import Mention


class ErasureEffect(Struct, frozen=True, kw_only=True):
    """`rankings`: those in which the competitor is or was, and which keep its points and places. `mentions`: texts that
    stay, although they contain a current or earlier name; `mentions_left_out`: the number of further ones."""

    rankings: list[RankingId]
    mentions: list[Mention]
    mentions_left_out: int


class ErasureQuestion(Question[ErasureEffect], frozen=True):
    """Raises NotFound, and Conflict if the competitor is already erased."""

    competitor_id: CompetitorId

    async def answered(self, view: View) -> ErasureEffect:
        live = view.live
        decide(live.board, EraseCompetitor(competitor_id=self.competitor_id))
        rankings = [
            ranking_id
            for ranking_id, ranking in live.board.rankings.items()
            if ranking.participants.row(self.competitor_id) is not None
        ]
        found = await searches.mentions(view.past, live.tournament_id, self.competitor_id, live.head.sequence)
        return ErasureEffect(rankings=rankings, mentions=found.listed, mentions_left_out=found.left_out)
