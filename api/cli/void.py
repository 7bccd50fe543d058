"""Commands about what counts: `void`, `unvoid`, `strike`, `unstrike`, `points undo`, and `what-if`."""

from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from api.cli.arguments import THE_COMPETITION, THE_COMPETITORS, THE_RANKING, positional
from api.cli.names import OneUnityText, RankingText
from api.cli.previews import show_comparison
from api.cli.progress import progress
from api.cli.verbs import verb
from api.cli.where import HERE, Json, Slug, Where, desk_at, tournament_at
from api.interface.names import Names
from engine.domain.commands import (
    ReversePoints,
    StrikeCompetitors,
    UnstrikeCompetitors,
    UnvoidCompetition,
    VoidCompetition,
)
from projections.answers.view import ask
from projections.answers.what_if import WhatIfQuestion

Texts = Annotated[list[str] | None, Parameter(negative="")]
_EventNumber = Annotated[int, Parameter(help="Number of the event, as history shows it.", validator=Number(gte=1))]

void = verb(VoidCompetition, THE_COMPETITION)
unvoid = verb(UnvoidCompetition, THE_COMPETITION)
strike = verb(StrikeCompetitors, THE_COMPETITION, THE_COMPETITORS)
unstrike = verb(UnstrikeCompetitors, THE_COMPETITION, THE_COMPETITORS)
undo = verb(ReversePoints, THE_RANKING, positional("event", _EventNumber, "sequence"))


async def what_if(
    slug: Slug,
    ranking: RankingText,
    /,
    *,
    without_competition: Texts = None,
    without_competitor: Texts = None,
    unity: OneUnityText = None,
    json: Json = False,
    where: Where = HERE,
) -> None:
    """
    Parameters
    ----------
    without_competition
        Id or name of a competition to leave out, with its points and their reversals; may be given several times.
    without_competitor
        Id or name of a competitor to leave out, with all their points; may be given several times.
    """
    async with desk_at(where) as desk, tournament_at(desk, slug) as view:
        names = Names(view.live.board)
        ranking_id = names.ranking(ranking)
        with progress("replaying", total=view.live.head.sequence) as advance:
            question = WhatIfQuestion(
                ranking_id=ranking_id,
                unity_id=None if unity is None else names.unity(ranking_id, unity),
                competitions=frozenset(map(names.competition, without_competition or ())),
                competitors=frozenset(map(names.competitor, without_competitor or ())),
                advance=advance,
            )
            found = await ask(view, question)
    show_comparison(view, [found], json=json)
