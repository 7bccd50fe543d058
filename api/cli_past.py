"""Commands about the past: who stood where, and why."""

from api import printing
from api.where import HERE, Json, Where, desk_at, tournament_at
from engine import log
from engine.errors import NotFound
from engine.terms import RankingId


async def standings(
    slug: str, ranking_id: int, /, *, unity: str | None = None, json: Json = False, where: Where = HERE
) -> None:
    """Show who stands where in a ranking.

    Parameters
    ----------
    unity
        Only the unity of this name.
    """
    async with desk_at(where) as desk, tournament_at(desk, slug) as live:
        ranking = live.board.rankings.get(RankingId(ranking_id))
        if ranking is None:
            raise NotFound(f"This tournament has no ranking {ranking_id}.")
        if unity is not None and unity not in {u.name for u in ranking.unities.values()}:
            raise NotFound(f"Ranking {ranking_id} has no unity {unity!r}.")
        async with desk.database.connection() as connection:
            last = await log.event_at(connection, live.tournament_id, live.head.sequence)
    if json:
        printing.standings_json(live, RankingId(ranking_id), unity, last)
    else:
        printing.standings(live, RankingId(ranking_id), unity)
