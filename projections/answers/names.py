"""The names of what an answer refers to by ids."""

from collections.abc import Collection, Mapping
from typing import Final

from engine.domain.terms import CompetitionId, CompetitorId, RankingId, UnityId
from projections.answers.rankings import ListedRanking, ListedUnity, listed_ranking, listed_unity
from projections.board.board import Board, Competition, Competitor


class NamesById:
    """The names on a board, which may show another moment than the answer."""

    def __init__(self, board: Board) -> None:
        self._board: Final = board

    def competitor(self, competitor_id: CompetitorId) -> Competitor:
        return self._board.competitors[competitor_id]

    def competition(self, competition_id: CompetitionId) -> Competition | None:
        """None: the event that added it was set aside."""
        return self._board.competitions.get(competition_id)

    def competitors(self, competitor_ids: Collection[CompetitorId]) -> dict[CompetitorId, Competitor]:
        """Those of the given ones that exist."""
        return dict(self._board.competitors.held(competitor_ids))

    def rankings(self) -> Mapping[RankingId, str]:
        """All, in their order."""
        return {ranking_id: ranking.name for ranking_id, ranking in self._board.rankings.items()}

    def ranking(self, ranking_id: RankingId) -> str:
        return self._board.rankings[ranking_id].name

    def unities(self, ranking_id: RankingId) -> Mapping[UnityId, str]:
        """Those of a ranking, in its order."""
        return {unity_id: unity.name for unity_id, unity in self._board.rankings[ranking_id].unities.items()}

    def unity(self, ranking_id: RankingId, unity_id: UnityId) -> ListedUnity:
        return listed_unity(unity_id, self._board.rankings[ranking_id].unities[unity_id])

    def listed(self, ranking_id: RankingId) -> ListedRanking:
        """A ranking, as lists show it."""
        return listed_ranking(self._board, ranking_id)

    def in_ranking(self, ranking_id: RankingId) -> dict[CompetitorId, str]:
        """The names of the competitors of a ranking, and of those who have a total in it."""
        ranking = self._board.rankings[ranking_id]
        totals = [one for unity in ranking.unities.values() for one in unity.totals]
        return {one: self._board.competitors[one].name for one in (*ranking.participants, *totals)}
