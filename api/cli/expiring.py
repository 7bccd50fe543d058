"""What competitors will lose because points expire, as commands show it."""

from datetime import datetime
from typing import Annotated

from cyclopts import Parameter

from api.cli import printing
from api.cli.lines import AroundText, TopLines, window_of
from api.cli.names import RankingText, UnityText
from api.cli.times import end
from api.cli.where import HERE, Json, Slug, Where, desk_at, tournament_at
from api.interface.names import Names
from api.interface.shapes import shaped
from engine.domain.terms import RankingId
from engine.domain.times import timestamp
from projections.answers.expiring import Expiring, ExpiringQuestion
from projections.answers.view import View, ask


async def expiring(
    slug: Slug,
    ranking: RankingText,
    /,
    *,
    until: Annotated[datetime, Parameter(converter=end, accepts_keys=False)],
    unity: UnityText = None,
    top: TopLines = None,
    around: AroundText = None,
    json: Json = False,
    where: Where = HERE,
) -> None:
    """
    Parameters
    ----------
    until
        Up to this day or time.
    """
    async with desk_at(where) as desk, tournament_at(desk, slug) as view:
        names = Names(view.live.board)
        ranking_id = names.ranking(ranking)
        question = ExpiringQuestion(
            ranking_id=ranking_id,
            until=until,
            unity_id=names.unity_or_main(ranking_id, unity),
            **window_of(names, top, around),
        )
        found = await ask(view, question)
    if json:
        printing.json(shaped(found))
    else:
        _print(view, ranking_id, found)


def _print(view: View, ranking_id: RankingId, found: Expiring) -> None:
    ranking, names = view.ranking(ranking_id), view.names
    unity = ranking.unity(found.unity_id)
    lines = [
        (
            names.competitor(one.competitor_id).name,
            unity.notation.text(one.total),
            unity.notation.text(one.total_then),
            "" if one.expires_at is None else timestamp(one.expires_at),
        )
        for one in found.expiring
    ]
    columns = ("competitor", "total", "total then", "first expiry")
    printing.table(
        columns, lines, title=f"{printing.title_of(ranking.name, unity.name)}, until {timestamp(found.until)}"
    )
