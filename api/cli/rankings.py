"""Commands about rankings and their unities."""

from typing import Literal

from api.cli import printing
from api.cli.times import time_text
from api.cli.where import HERE, Json, Slug, Where, desk_at, tournament_at
from engine.domain.commands import AddUnity, CloseRanking, ReopenRanking
from engine.domain.terms import OPERATOR, RankingId, Sort, UnityId
from projections.board.board import Ranking


async def add_unity(
    slug: Slug,
    ranking_id: int,
    name: str,
    /,
    *,
    sort: Literal["ASC", "DESC"] = "DESC",
    json: Json = False,
    where: Where = HERE,
) -> None:
    """
    Parameters
    ----------
    sort
        Which totals are better: higher ones (DESC) or lower ones (ASC).
    """
    async with desk_at(where) as desk, tournament_at(desk, slug) as live:
        unity_id = UnityId(await desk.new_id())
        await desk.submit(
            live,
            AddUnity(ranking_id=RankingId(ranking_id), unity_id=unity_id, name=name, sort=Sort(sort)),
            actor=OPERATOR,
        )
    if json:
        printing.json({"id": unity_id, "name": name.strip(), "sort": sort})
    else:
        printing.line(str(unity_id))


async def close_ranking(slug: Slug, ranking_id: int, /, *, where: Where = HERE) -> None:
    async with desk_at(where) as desk, tournament_at(desk, slug) as live:
        await desk.submit(live, CloseRanking(ranking_id=RankingId(ranking_id)), actor=OPERATOR)
    printing.say(f"ranking {ranking_id} is closed")


async def reopen_ranking(slug: Slug, ranking_id: int, /, *, where: Where = HERE) -> None:
    async with desk_at(where) as desk, tournament_at(desk, slug) as live:
        await desk.submit(live, ReopenRanking(ranking_id=RankingId(ranking_id)), actor=OPERATOR)
    printing.say(f"ranking {ranking_id} is open")


async def list_rankings(slug: Slug, /, *, json: Json = False, where: Where = HERE) -> None:
    async with desk_at(where) as desk, tournament_at(desk, slug) as live:
        rows = [_row(ranking_id, ranking) for ranking_id, ranking in live.board.rankings.items()]
    printing.rows(rows, ("id", "name", "unities", "competitors", "closed_at"), as_json=json)


def _row(ranking_id: RankingId, ranking: Ranking) -> dict[str, object]:
    return {
        "id": ranking_id,
        "name": ranking.name,
        "unities": {str(unity_id): unity.name for unity_id, unity in ranking.unities.items()},
        "competitors": len(ranking.participants),
        "closed_at": time_text(ranking.closed_at),
    }
