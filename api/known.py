"""What a question about a ranking names must be there: else it is a 404 that says what is missing."""

from engine.errors import NotFound
from engine.terms import RankingId, UnityId
from projections.board import Ranking
from projections.history import Filter
from projections.live import Live


def ranking_of(live: Live, ranking_id: RankingId) -> Ranking:
    """Raises NotFound."""
    ranking = live.board.rankings.get(ranking_id)
    if ranking is None:
        raise NotFound(f"This tournament has no ranking {ranking_id}.")
    return ranking


def unity_of(live: Live, ranking_id: RankingId, unity_id: UnityId | None) -> UnityId:
    """The unity, or the ranking's main one. Raises NotFound."""
    unities = ranking_of(live, ranking_id).unities
    if unity_id is None:
        return next(iter(unities))
    if unity_id not in unities:
        raise NotFound(f"Ranking {ranking_id} has no unity {unity_id}.")
    return unity_id


def unity_named(live: Live, ranking_id: RankingId, name: str) -> UnityId:
    """Raises NotFound."""
    for unity_id, unity in ranking_of(live, ranking_id).unities.items():
        if unity.name == name:
            return unity_id
    raise NotFound(f"Ranking {ranking_id} has no unity {name!r}.")


def refuse_unknown(live: Live, ranking_id: RankingId, asked: Filter) -> None:
    """Raises NotFound for the first thing that is named and is not there. Actors are not the tournament's."""
    if asked.unity_id is not None:
        unity_of(live, ranking_id, asked.unity_id)
    if asked.competitor_id is not None and asked.competitor_id not in live.board.competitors:
        raise NotFound(f"This tournament has no competitor {asked.competitor_id}.")
    if asked.competition_id is not None and asked.competition_id not in live.board.competitions:
        raise NotFound(f"This tournament has no competition {asked.competition_id}.")
