"""Commands about the scorings of a ranking: what the results of competitions give in it."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, cast

import msgspec
from cyclopts import Parameter
from msgspec.structs import replace

from api.cli import printing
from api.cli.arguments import THE_RANKING, Reading, option, several
from api.cli.asking import asking
from api.cli.files import read_whole
from api.cli.verbs import verb
from api.interface.kinds import KindName, kinds, with_ids
from api.interface.scoring_text import AWARD_COLUMNS, award_rows
from engine.domain.awards import Scoring
from engine.domain.commands import DeclareScoring
from engine.domain.errors import Unacceptable, Unreadable
from engine.domain.terms import RankingId
from projections.answers.scoring import DeclaredScoring, ScoringQuestion
from projections.answers.view import View

ScoringTexts = Annotated[
    str,
    Parameter(
        help="Each a kind of ranking, such as football, whose unities in the ranking have the same names; or a JSON "
        "file (- for standard input) with an array of scorings, as in kinds.json. Without any, results give nothing.",
        allow_leading_hyphen=True,
    ),
]


async def _print(view: View, question: ScoringQuestion, found: DeclaredScoring) -> None:
    ranking = view.ranking(question.ranking_id)
    printing.table(AWARD_COLUMNS, award_rows(ranking, found.scorings), title=ranking.name)
    for one in found.unscored:
        printing.say(f"competition {one.competition_id} gives nothing: {one.why}")


show_scoring = asking(ScoringQuestion, THE_RANKING, prints=_print)


def _read(reading: Reading, texts: Iterable[str]) -> tuple[Scoring, ...]:
    ranking_id = reading.fields["ranking_id"]
    return tuple([scoring for text in texts for scoring in _scorings(reading, ranking_id, text)])


def _scorings(reading: Reading, ranking_id: RankingId, text: str) -> tuple[Scoring, ...]:
    """Raises Unacceptable, Unreadable and NotFound."""
    if (kind := kinds().get(cast("KindName", text))) is not None:
        unities = reading.view.ranking(ranking_id).unities
        found = kind.scorings_with({unity.name: unity.id for unity in unities})
        if not found:
            names = ", ".join([unity.name for unity in kind.unities])
            raise Unacceptable(f"The ranking has none of the unities of {text}: {names}.")
        return found
    try:
        said = msgspec.json.decode(read_whole(Path(text)), type=list[dict[str, Any]])
        named = with_ids(said, lambda unity: reading.names.unity(ranking_id, str(unity)))
        return msgspec.convert(named, tuple[Scoring, ...])
    except msgspec.MsgspecError as error:
        raise Unreadable(f"The file must be a JSON array of scorings: {error}.") from error


def _declared(ranking_id: RankingId, scorings: Iterable[Scoring], groups: tuple[int, ...] = ()) -> DeclareScoring:
    return DeclareScoring(
        ranking_id=ranking_id, scorings=tuple([replace(one, groups=groups) if groups else one for one in scorings])
    )


declare_scoring = verb(
    DeclareScoring,
    THE_RANKING,
    several("scorings", ScoringTexts, read=_read),
    option("group", "groups", tuple[int, ...], about="Only competitions of this group count.", default=()),
    make=_declared,
    says=lambda done: f"ranking {done.command.ranking_id} has {printing.count(len(done.command.scorings), 'scoring')}",
)
