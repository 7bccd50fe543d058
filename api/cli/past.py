"""Commands about the past: who stood where, and why."""

import importlib
import sys
from datetime import datetime
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Group, Parameter
from cyclopts.validators import Number, mutually_exclusive

from api.cli import printing
from api.cli.explanation_text import ExplanationText
from api.cli.history_text import Format, history_text
from api.cli.names import CompetitorText, Names, OneUnityText, RankingText, UnityText
from api.cli.progress import progress
from api.cli.standings_text import print_standings, print_standings_json
from api.cli.times import begin, end, time_text
from api.cli.where import HERE, Json, Slug, Where, desk_at, tournament_at
from api.cli.writing import written_to
from api.interface.classifications import classified_lines
from api.interface.history import explanation_shape
from api.interface.lookup import ranking_of, refuse_unknown
from api.interface.rendering import View
from api.interface.standings import PastView
from engine.domain.errors import NotFound, Unacceptable
from engine.domain.terms import ActorId, CompetitorId, RankingId, Sequence
from engine.process.turns import in_turns
from projections.board.board import Board
from projections.board.classification import Classified
from projections.past.history import Filter
from projections.past.past import AtSequence, AtTime, Moment, Past, Range

_MOMENT: Final = Group("Moment", validator=mutually_exclusive)
_FROM_ONE: Final = Number(gte=1)
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
    at_sequence: PastSequence = None,
    at_time: PastTime = None,
    json: Json = False,
    where: Where = HERE,
) -> None:
    """
    Parameters
    ----------
    at_sequence
        As it was after the event with this sequence.
    at_time
        As it was at this time in UTC: yyyy-mm-dd HH:ii:ss.
    """
    moment = moment_of(at_sequence, at_time)
    async with desk_at(where) as desk, tournament_at(desk, slug) as live:
        past, head, ranking_id = Past(desk.database), live.head.sequence, Names(live.board).ranking(ranking)
        ranking_of(live.board, ranking_id)
        if moment is None:
            view: View = live
            recorded_at = await past.recorded_at(live.tournament_id, head)
        else:
            then = await past.at(live.tournament_id, ranking_id, moment, head)
            view, recorded_at = PastView(live.tournament_id, then), then.recorded_at
        only = None if unity is None else Names(view.board).unity_name(ranking_id, unity)
    if json:
        print_standings_json(view, ranking_id, only, recorded_at)
        return
    if moment is not None:
        printing.say(f"After event {view.head.sequence}, recorded at {time_text(recorded_at)} UTC:")
    print_standings(view.board, ranking_id, only)


def moment_of(at_sequence: int | None, at_time: datetime | None) -> Moment | None:
    """The moment that the options name; None: now."""
    if at_sequence is not None:
        return AtSequence(Sequence(at_sequence))
    return None if at_time is None else AtTime(at_time)


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
    format: Format = "table",  # noqa: A002 - the name of the option
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
        Only from this time on, in UTC: yyyy-mm-dd HH:ii:ss.
    to_time
        Only up to this time, in UTC.
    format
        A table for people, CSV for spreadsheets, or one JSON object per line for programs.
    output
        File to write to instead of standard output.
    """
    async with desk_at(where) as desk, tournament_at(desk, slug) as live:
        names = Names(live.board)
        ranking_id = names.ranking(ranking)
        ranking_of(live.board, ranking_id)
        asked = Filter(
            unity_id=None if unity is None else names.unity(ranking_id, unity),
            competitor_id=None if competitor is None else names.competitor(competitor),
            competition_id=None if competition is None else names.competition(competition),
            actor=None if actor is None else ActorId(actor),
        )
        refuse_unknown(live.board, ranking_id, asked)
        bounds = Range(
            first=None if from_sequence is None else Sequence(from_sequence),
            last=None if to_sequence is None else Sequence(to_sequence),
            since=from_time,
            until=to_time,
        )
        past, head = Past(desk.database), live.head.sequence
        span = await past.span(live.tournament_id, head, bounds)
        text = history_text(format, live.board, ranking_id, head)
        total, on_terminal = max(0, span.last - span.first + 1), output is None and sys.stdout.isatty()
        with (
            written_to(output) as write,
            progress("reading", total=total, data_there=on_terminal) as advance,
        ):
            write(text.header)
            async for reached, lines in past.lines(live.tournament_id, ranking_id, span, asked):
                if lines:
                    write(text.rows(lines))
                advance(reached - span.first + 1)


async def explain(
    slug: Slug,
    ranking: RankingText,
    competitor: CompetitorText,
    /,
    *,
    unity: UnityText = None,
    from_: Annotated[int, Parameter(name="--from", validator=Number(gte=0))] = 0,
    to: Count = None,
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
    async with desk_at(where) as desk, tournament_at(desk, slug) as live:
        names, head = Names(live.board), live.head.sequence
        ranking_id = names.ranking(ranking)
        unity_id = names.unity_or_main(ranking_id, unity)
        competitor_id = names.competitor(competitor)
        refuse_unknown(live.board, ranking_id, Filter(competitor_id=competitor_id))
        last = head if to is None else Sequence(to)
        if from_ > last:
            raise NotFound(
                f"There is nothing to explain from event {from_} to event {last}; --from must not be greater than --to."
            )
        past = Past(desk.database)
        explanation = await past.explanation(
            live.tournament_id, ranking_id, unity_id, competitor_id, start=Sequence(from_), end=last, head=head
        )
        board = live.board
        if last < head and not json:
            board = await past.board_after(live.tournament_id, last, head)
        neighbours = [] if json else await _neighbours(board, ranking_id, competitor_id)
    if json:
        printing.json(explanation_shape(explanation, unity_id, competitor_id))
    else:
        text = ExplanationText(live.board, ranking_id, unity_id, competitor_id)
        printing.line(text.text(explanation))
        if neighbours:
            printing.line(f"\n{text.classification(board.rankings[ranking_id], neighbours)}")


async def _neighbours(board: Board, ranking_id: RankingId, competitor_id: CompetitorId) -> list[Classified]:
    """The line of a competitor in the classification that was declared, with those above and below; none if none was
    declared, or they are not in the list."""
    ranking = board.rankings.get(ranking_id)
    if ranking is None or not ranking.criteria:
        return []
    return await in_turns((await classified_lines(board, ranking_id)).around(competitor_id, 1)) or []


async def chart(
    slug: Slug, ranking: RankingText, /, *, output: Path, unity: UnityText = None, where: Where = HERE
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
    async with desk_at(where) as desk, tournament_at(desk, slug) as live:
        names = Names(live.board)
        ranking_id = names.ranking(ranking)
        unity_id = names.unity_or_main(ranking_id, unity)
        drawn = ranking_of(live.board, ranking_id)
        title = f"{drawn.name}: {drawn.unities[unity_id].name}"
        called = {competitor_id: competitor.name for competitor_id, competitor in live.board.competitors.items()}
        points, head = [], live.head.sequence
        with progress("reading", total=head) as advance:
            async for reached, series in Past(desk.database).series(live.tournament_id, ranking_id, unity_id, head):
                points = series.points if reached == head else []
                advance(reached)
    if not points:
        raise NotFound(f"No points have been given in {title} yet; there is nothing to draw.")
    try:
        charts.draw(title, points, called, output)
    except OSError as error:
        raise Unacceptable(f"{output} cannot be written: {error.strerror}.") from error
    printing.say(f"{output}: {len(points[-1].lines)} competitors")
