"""Commands about the past: who stood where, and why."""

import importlib
import sys
from datetime import datetime
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Group, Parameter
from cyclopts.validators import Number, mutually_exclusive

from api.cli import printing
from api.cli.explanation_text import ExplanationText, only_with
from api.cli.history_text import Format, history_text
from api.cli.lines import (
    CHART_LINES_MAX,
    AroundText,
    ChartedLines,
    On,
    SinceOn,
    SinceSequence,
    SinceTime,
    TagText,
    TopLines,
    sequence_of,
    window_of,
)
from api.cli.names import CompetitorText, OneUnityText, RankingText, UnityText
from api.cli.progress import progress
from api.cli.standings_text import print_standings, say_moment
from api.cli.times import begin, end
from api.cli.where import HERE, Json, Slug, Where, desk_at, tournament_at
from api.cli.writing import written_to
from api.interface.names import Names
from api.interface.resources.standings import standings_shape
from api.interface.shapes import shaped
from engine.domain.errors import NotFound, Unacceptable
from engine.domain.terms import ActorId, Sequence
from projections.answers.explanation import ExplainQuestion
from projections.answers.form import LAST_DEFAULT, LAST_MAX, CompetitorForms, FormQuestion
from projections.answers.history import HistoryQuestion
from projections.answers.names import NamesById
from projections.answers.rankings import ListedRanking
from projections.answers.series import SeriesQuestion
from projections.answers.standings import StandingsQuestion
from projections.answers.view import ask

_MOMENT: Final = Group("Moment", validator=mutually_exclusive)
_FROM_ONE: Final = Number(gte=1)
_OTHERS: Final = Group("Others", validator=mutually_exclusive)
TopOthers = Annotated[
    int | None,
    Parameter(group=_OTHERS, validator=_FROM_ONE, help="Name only those others who are among the first N at the end."),
]
AroundOther = Annotated[
    str | None,
    Parameter(
        group=_OTHERS,
        help="Name only this one of the others, by id or name, and the five above and the five below at the end.",
    ),
]
_FORM: Final = Group("Form", validator=mutually_exclusive)
PastSequence = Annotated[int | None, Parameter(group=_MOMENT, validator=_FROM_ONE)]
PastTime = Annotated[datetime | None, Parameter(group=_MOMENT, converter=end, accepts_keys=False)]
Since = Annotated[datetime | None, Parameter(converter=begin, accepts_keys=False)]
Until = Annotated[datetime | None, Parameter(converter=end, accepts_keys=False)]
Count = Annotated[int | None, Parameter(validator=_FROM_ONE)]


async def standings(
    slug: Slug,
    ranking: RankingText,
    /,
    *,
    unity: OneUnityText = None,
    tag: TagText = None,
    top: TopLines = None,
    around: AroundText = None,
    at_sequence: PastSequence = None,
    at_time: PastTime = None,
    on: On = None,
    since: SinceSequence = None,
    since_time: SinceTime = None,
    since_on: SinceOn = None,
    json: Json = False,
    where: Where = HERE,
) -> None:
    """
    Parameters
    ----------
    at_sequence
        As it was after the event with this sequence.
    at_time
        As it was at this time: yyyy-mm-dd HH:ii:ss, in UTC unless an offset follows.
    """
    async with desk_at(where) as desk, tournament_at(desk, slug) as view:
        names = Names(view.live.board)
        ranking_id = names.ranking(ranking)
        view.ranking(ranking_id)
        is_window = (unity, tag, top, around) != (None, None, None, None)
        question = StandingsQuestion(
            ranking_id=ranking_id,
            unity_id=None if unity is None else names.unity(ranking_id, unity),
            tag=tag,
            at_sequence=sequence_of(at_sequence),
            at_time=at_time,
            on=on,
            since=sequence_of(since),
            since_time=since_time,
            since_on=since_on,
            **(window_of(names, top, around) if is_window else {}),
        )
        shown = await ask(view, question)
    if json:
        printing.json(await standings_shape(shown, whole=question.is_whole))
        return
    say_moment(question, shown)
    print_standings(shown, question)


async def form(
    slug: Slug,
    ranking: RankingText,
    /,
    *,
    last: Annotated[int, Parameter(validator=Number(gte=1, lte=LAST_MAX))] = LAST_DEFAULT,
    unity: UnityText = None,
    top: TopLines = None,
    around: AroundText = None,
    at_sequence: PastSequence = None,
    at_time: PastTime = None,
    on: On = None,
    json: Json = False,
    where: Where = HERE,
) -> None:
    """
    Parameters
    ----------
    last
        The number of competitions of each competitor.
    at_sequence
        As it was after the event with this sequence.
    at_time
        As it was at this time: yyyy-mm-dd HH:ii:ss, in UTC unless an offset follows.
    """
    async with desk_at(where) as desk, tournament_at(desk, slug) as view:
        names = Names(view.live.board)
        ranking_id = names.ranking(ranking)
        question = FormQuestion(
            ranking_id=ranking_id,
            unity_id=names.unity_or_main(ranking_id, unity),
            last=last,
            at_sequence=sequence_of(at_sequence),
            at_time=at_time,
            on=on,
            **window_of(names, top, around),
        )
        found = await ask(view, question)
        if json:
            printing.json(shaped(found))
            return
        known = await view.names_after(found.sequence)
    say_moment(question, found)
    _print_form(known, known.listed(ranking_id), found)


def _print_form(known: NamesById, ranking: ListedRanking, found: CompetitorForms) -> None:
    unity = ranking.unity(found.unity_id)
    lines = [
        (
            known.competitor(one.competitor_id).name,
            [unity.notation.text(competition.sum) for competition in one.competitions],
        )
        for one in found.form
    ]
    columns = ("competitor", "last competitions, the newest last")
    printing.table(columns, lines, title=printing.title_of(ranking.name, unity.name))


async def history(
    slug: Slug,
    ranking: RankingText,
    /,
    *,
    unity: OneUnityText = None,
    competitor: str | None = None,
    competition: str | None = None,
    actor: Annotated[int | None, Parameter(validator=Number(gte=0))] = None,
    from_sequence: Count = None,
    to_sequence: Count = None,
    from_time: Since = None,
    to_time: Until = None,
    format: Annotated[Format, Parameter(group=_FORM)] = "table",  # noqa: A002 - the name of the option
    json: Annotated[bool, Parameter(negative="", group=_FORM, help="Print one JSON object per line: ndjson.")] = False,
    output: Path | None = None,
    where: Where = HERE,
) -> None:
    """
    Parameters
    ----------
    competitor
        Only the competitor with this id or name.
    competition
        Only deltas that the competition with this id or name caused.
    actor
        Only changes made with the token of this id; 0 means on the command line.
    from_sequence
        Only from the event with this sequence on.
    to_sequence
        Only up to the event with this sequence.
    from_time
        Only from this time on: yyyy-mm-dd HH:ii:ss, in UTC unless an offset follows.
    to_time
        Only up to this time, written in the same way.
    format
        A table for people, CSV for spreadsheets, or one JSON object per line for programs.
    output
        File to write to instead of standard output.
    """
    async with desk_at(where) as desk, tournament_at(desk, slug) as view:
        names = Names(view.live.board)
        ranking_id = names.ranking(ranking)
        view.ranking(ranking_id)
        question = HistoryQuestion(
            ranking_id=ranking_id,
            unity_id=None if unity is None else names.unity(ranking_id, unity),
            competitor_id=None if competitor is None else names.competitor(competitor),
            competition_id=None if competition is None else names.competition(competition),
            actor=None if actor is None else ActorId(actor),
            first=sequence_of(from_sequence),
            last=sequence_of(to_sequence),
            since=from_time,
            until=to_time,
        )
        found, on_terminal = await question.whole(view), output is None and sys.stdout.isatty()
        text = history_text("ndjson" if json else format, view.names, view.ranking(ranking_id), view.live.head.sequence)
        with (
            written_to(output) as write,
            progress("reading", total=found.events, data_there=on_terminal) as advance,
        ):
            write(text.header)
            async for read, lines in found.chunks:
                if lines:
                    write(text.rows(lines))
                advance(read)


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
        explanation = await ask(
            view,
            ExplainQuestion(
                ranking_id=ranking_id,
                competitor_id=competitor_id,
                unity_id=unity_id,
                start=Sequence(from_),
                end=last,
                on=on,
                limit=None,
            ),
        )
        of_others = ""
        if (top, around) != (None, None):
            at_end = StandingsQuestion(
                ranking_id=ranking_id,
                unity_id=unity_id,
                at_sequence=None if last == head else last,
                on=on,
                **window_of(names, top, around),
            )
            shown = await ask(view, at_end)
            others = {line.competitor_id for line in shown.unities[0].lines}
            explanation = only_with(explanation, competitor_id, others)
            of_others = f"the first {len(others)}" if around is None else f"the {len(others)} around {around.strip()}"
    if json:
        printing.json(shaped(explanation))
    else:
        text = ExplanationText(view.names, view.ranking(ranking_id), unity_id, competitor_id)
        printing.line(text.text(explanation, of_others=of_others))


async def chart(
    slug: Slug,
    ranking: RankingText,
    /,
    *,
    output: Path,
    unity: UnityText = None,
    top: ChartedLines = None,
    around: AroundText = None,
    json: Json = False,
    where: Where = HERE,
) -> None:
    """
    Parameters
    ----------
    output
        File to write to; its name ends in .svg.
    """
    if output.suffix.lower() != ".svg":
        raise Unacceptable(f"Charts are written as SVG; name a file that ends in .svg, not {output.name!r}.")
    try:
        charts = importlib.import_module("api.cli.charts")
    except ModuleNotFoundError as error:
        raise Unacceptable("Charts need matplotlib: pip install 'tallybook[chart]'.") from error
    async with desk_at(where) as desk, tournament_at(desk, slug) as view:
        names = Names(view.live.board)
        ranking_id = names.ranking(ranking)
        unity_id = names.unity_or_main(ranking_id, unity)
        drawn = view.ranking(ranking_id)
        title, notation = f"{drawn.name}: {drawn.unity(unity_id).name}", drawn.unity(unity_id).notation
        window = window_of(names, top or CHART_LINES_MAX, around)
        question = StandingsQuestion(ranking_id=ranking_id, unity_id=unity_id, **window)
        shown = await ask(view, question)
        only = tuple([line.competitor_id for line in shown.unities[0].lines])
        if len(only) < drawn.competitors:
            which = f"the first {len(only)}" if around is None else f"{len(only)}"
            title += f" ({which} of {drawn.competitors:,})"
        head = view.live.head.sequence
        with progress("reading", total=head) as advance:
            asked = SeriesQuestion(ranking_id=ranking_id, unity_id=unity_id, competitors=only, advance=advance)
            series = await ask(view, asked)
            advance(head)
    if not series.moments:
        raise NotFound(f"No points have been given in {title} yet; there is nothing to draw.")
    try:
        charts.draw(title, series, view.names, notation, view.zone, output)
    except OSError as error:
        raise Unacceptable(f"{output} cannot be written: {error.strerror}.") from error
    facts = {"file": str(output), "competitors": len(series.lines)}
    printing.done(f"{output}: {len(series.lines)} competitors", facts, as_json=json)
