"""Commands about the past: who stood where, and why."""

import sys
from pathlib import Path
from typing import Annotated, Any, Final

from cyclopts import Group, Parameter
from cyclopts.validators import Number, mutually_exclusive
from msgspec import UNSET

from api.cli import printing
from api.cli.arguments import THE_RANKING, fields_read, function_of, option
from api.cli.asking import asking
from api.cli.explanation_text import ExplanationText, only_with
from api.cli.history_text import Format, history_text
from api.cli.lines import (
    AT,
    ONE_UNITY,
    SINCE,
    TAG,
    UNITY_OR_MAIN,
    WINDOW,
    On,
    window_of,
    windowed,
)
from api.cli.names import CompetitorText, RankingText, UnityText
from api.cli.progress import progress
from api.cli.standings_text import print_standings, print_table, say_moment
from api.cli.times import Since, Until
from api.cli.where import HERE, Json, Slug, Where, desk_at, tournament_at
from api.cli.writing import written_to
from api.interface.direction import isolated
from api.interface.names import Names
from api.interface.resources.standings import standings_shape
from api.interface.shapes import shaped
from api.interface.sports import kind_of
from api.web.words import Words
from engine.domain.errors import NotFound, Unacceptable
from engine.domain.terms import CompetitorId, Sequence
from projections.answers.board_table import BoardTableQuestion
from projections.answers.explanation import ExplainQuestion
from projections.answers.form import LAST_DEFAULT, LAST_MAX, CompetitorForms, FormQuestion
from projections.answers.history import HistoryQuestion
from projections.answers.standings import Standings, StandingsQuestion
from projections.answers.view import View, ask

TABLE_LINES_MAX: Final = 1_000
"""Lines up to which standings are one table of all unities."""
_FROM_ONE: Final = Number(gte=1)
_OTHERS: Final = Group("Others", validator=mutually_exclusive)
TopOthers = Annotated[
    int | None,
    Parameter(group=_OTHERS, validator=_FROM_ONE, help="Of the others, name only those among the first N at the end."),
]
AroundOther = Annotated[
    str | None,
    Parameter(
        group=_OTHERS,
        help="Of the others, name only this one, by id or name, and the five above and the five below it at the end.",
    ),
]
_FORM: Final = Group("Form", validator=mutually_exclusive)
Count = Annotated[int | None, Parameter(validator=_FROM_ONE)]


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


_HISTORY: Final = (
    THE_RANKING,
    ONE_UNITY,
    option("competitor", "competitor_id", about="Only the competitor with this id or name."),
    option("competition", "competition_id", about="Only deltas that the competition with this id or name caused."),
    option(
        "actor",
        kind=Annotated[int | None, Parameter(validator=Number(gte=0))],
        about="Only changes made with the token of this id; 0 means on the command line.",
    ),
    option("from_sequence", "first", Count, about="Only from the event with this sequence on."),
    option("to_sequence", "last", Count, about="Only up to the event with this sequence."),
    option(
        "from_time",
        "since",
        Since,
        about="Only from this time on: yyyy-mm-dd HH:ii:ss, in UTC unless an offset follows.",
    ),
    option("to_time", "until", Until, about="Only up to this time, written in the same way."),
)


async def _history(
    slug: str,
    *,
    format: Format,  # noqa: A002 - the name of the option
    json: bool,
    output: Path | None,
    where: Where,
    **given: Any,
) -> None:
    async with desk_at(where) as desk, tournament_at(desk, slug) as view:
        question = HistoryQuestion(**fields_read(view, HistoryQuestion, _HISTORY, given, {}))
        ranking, last = view.ranking(question.ranking_id), view.live.head.sequence
        found, on_terminal = await question.whole(view), output is None and sys.stdout.isatty()
        text = history_text("ndjson" if json else format, view.names, ranking, last)
        with (
            written_to(output) as write,
            progress("reading", total=found.events, data_there=on_terminal) as advance,
        ):
            write(text.header)
            async for read, lines in found.chunks:
                if lines:
                    write(text.rows(lines))
                advance(read)


history = function_of(
    (
        *_HISTORY,
        option(
            "format",
            kind=Annotated[Format, Parameter(group=_FORM)],
            default="table",
            about="A table for people, CSV for spreadsheets (excel: with semicolons and decimal commas, for Excel in "
            "most of Europe), or one JSON object per line for programs.",
        ),
        option(
            "json",
            kind=Annotated[bool, Parameter(negative="", group=_FORM)],
            default=False,
            about="Print one JSON object per line: ndjson.",
        ),
        option("output", kind=Path | None, about="File to write to instead of standard output."),
    ),
    _history,
)


async def explain(
    slug: Slug,
    ranking: RankingText,
    competitor: CompetitorText,
    /,
    *,
    unity: UnityText = None,
    from_: Annotated[int, Parameter(name="--from", validator=Number(gte=0))] = 0,
    to: Count = None,
    on: On = None,
    top: TopOthers = None,
    around: AroundOther = None,
    json: Json = False,
    where: Where = HERE,
) -> None:
    """
    Parameters
    ----------
    from_
        Begin after the event with this sequence; 0 means before the first.
    to
        End after the event with this sequence. Without it, after the last.
    """
    async with desk_at(where) as desk, tournament_at(desk, slug) as view:
        names, head = Names(view.live.board), view.live.head.sequence
        ranking_id = names.ranking(ranking)
        unity_id = names.unity_or_main(ranking_id, unity)
        competitor_id = names.competitor(competitor)
        view.competitor(competitor_id)
        last = head if to is None else Sequence(to)
        if from_ > last:
            raise NotFound(
                f"There is nothing to explain from event {from_} to event {last}; --from must not be greater than --to."
            )
        if on is not None and from_:
            raise Unacceptable("With --on, steps are in order of time; leave out --from.")
        asked: dict[str, Any] = {"ranking_id": ranking_id, "unity_id": unity_id, "on": on}
        question = ExplainQuestion(**asked, competitor_id=competitor_id, start=Sequence(from_), end=last, limit=None)
        explanation, of_others = await ask(view, question), ""
        if (top, around) != (None, None):
            middle = None if around is None else names.competitor(around)
            at_end = StandingsQuestion(**asked, at_sequence=None if last == head else last, **window_of(top, middle))
            others = {line.competitor_id for line in (await ask(view, at_end)).unities[0].lines}
            explanation = only_with(explanation, competitor_id, others)
            of_others = _words_of_others(view, len(others), middle)
    if json:
        printing.json(shaped(explanation))
    else:
        words = Words("en", view.publication.presentation.zone)
        text = ExplanationText(words, view.names, view.ranking(ranking_id), unity_id, competitor_id)
        printing.line(text.text(explanation, of_others=of_others))


def _words_of_others(view: View, count: int, middle: CompetitorId | None) -> str:
    return f"the first {count}" if middle is None else f"the {count} around {isolated(view.competitor(middle).name)}"
