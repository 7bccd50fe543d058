"""The effect of a change that is not made, and what a ranking would be without some of its past."""

from collections.abc import Iterable
from typing import Annotated

from cyclopts import Parameter

from api.cli import printing
from api.cli.standings_text import print_comparison
from api.desk.desk import Desk
from api.interface.direction import isolated
from engine.domain.commands import Previewed
from engine.domain.events import Event
from projections.answers.foreseen import ComparedRanking, ForeseenQuestion
from projections.answers.scoring import UnscoredResult
from projections.answers.view import View, ask

DryRun = Annotated[bool, Parameter(negative="", help="Show what would change, and change nothing.")]


async def print_foreseen(desk: Desk, view: View, command: Previewed, *, json: bool) -> None:
    """Raises as `Desk.preview`, and TooMuchWork."""
    decided = await desk.preview(view.live, command)
    await show_foreseen(view, decided, json=json)


async def show_foreseen(view: View, decided: tuple[Event, ...], *, json: bool) -> None:
    """Raises TooMuchWork."""
    found = await ask(view, ForeseenQuestion(decided, is_short=False))
    say_unscored(view, found.unscored)
    show_comparison(view, found.rankings or [], json=json)


def say_unscored(view: View, unscored: Iterable[UnscoredResult]) -> None:
    """Says which results give no points, and why."""
    for one in unscored:
        printing.say(f"no points in {isolated(view.names.ranking(one.ranking_id))}: {one.why}")


def show_comparison(view: View, rankings: list[ComparedRanking], *, json: bool) -> None:
    if json:
        printing.json(rankings)
    else:
        print_comparison(view, rankings)
