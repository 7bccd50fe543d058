"""Commands that show the standings of a ranking, and what led to them."""

from typing import Annotated, Any, Final

from cyclopts import Parameter
from cyclopts.validators import Number
from msgspec import UNSET

from api.cli import printing
from api.cli.arguments import THE_RANKING, option
from api.cli.asking import asking
from api.cli.lines import AT, ONE_UNITY, SINCE, TAG, UNITY_OR_MAIN, WINDOW, windowed
from api.cli.standings_text import print_standings, print_table, say_moment
from api.interface.resources.standings import standings_shape
from api.interface.sports import kind_of
from projections.answers.board_table import BoardTableQuestion
from projections.answers.form import LAST_DEFAULT, LAST_MAX, CompetitorForms, FormQuestion
from projections.answers.standings import Standings, StandingsQuestion
from projections.answers.view import View, ask

TABLE_LINES_MAX: Final = 1_000
"""Lines up to which standings are one table of all unities."""


def _question_of_standings(**fields: Any) -> StandingsQuestion:
    """With a unity, a tag or a window, about lines of one unity."""
    is_whole = fields.keys().isdisjoint(("unity_id", "tag", "top", "around"))
    return StandingsQuestion(**fields) if is_whole else windowed(StandingsQuestion)(**fields)


async def _print_standings(view: View, question: StandingsQuestion, found: Standings) -> None:
    """Of a sport, the table with all columns, unless something else was asked for."""
    say_moment(question, found)
    ranking = (await view.board_after(found.sequence)).rankings[question.ranking_id]
    is_short = len(ranking.participants) <= TABLE_LINES_MAX
    if kind_of(ranking) is None or not is_short or not question.is_whole or question.is_compared:
        print_standings(found, question)
        return
    asked = BoardTableQuestion(
        ranking_id=question.ranking_id,
        at=found.sequence,
        on=None if found.on is UNSET else found.on,
        limit=TABLE_LINES_MAX,
        form=False,
    )
    print_table(await ask(view, asked))


standings = asking(
    StandingsQuestion,
    THE_RANKING,
    ONE_UNITY,
    TAG,
    *WINDOW,
    *AT,
    *SINCE,
    make=_question_of_standings,
    prints=_print_standings,
    shape=lambda question, found: standings_shape(found, whole=question.is_whole),
)


async def _print_form(view: View, question: FormQuestion, found: CompetitorForms) -> None:
    known = await view.names_after(found.sequence)
    ranking, unity = known.ranking(question.ranking_id), known.unity(question.ranking_id, found.unity_id)
    lines = [
        (
            known.competitor(one.competitor_id).name,
            [unity.notation.text(competition.sum) for competition in one.competitions],
        )
        for one in found.form
    ]
    say_moment(question, found)
    columns = ("competitor", "last competitions, newest last")
    printing.table(columns, lines, title=printing.title_of(ranking, unity.name))


form = asking(
    FormQuestion,
    THE_RANKING,
    option(
        "last",
        kind=Annotated[int, Parameter(validator=Number(gte=1, lte=LAST_MAX))],
        default=LAST_DEFAULT,
        about="The number of competitions of each competitor.",
    ),
    UNITY_OR_MAIN,
    *WINDOW,
    *AT,
    make=windowed(FormQuestion),
    prints=_print_form,
)
