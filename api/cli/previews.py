"""The effect of a change that is not made, and what a ranking would be without some of its past."""

from typing import Annotated

from cyclopts import Parameter

from api.cli import printing
from api.cli.standings_text import print_comparison
from api.desk.desk import Desk
from engine.domain.commands import Previewed
from projections.answers.foreseen import ComparedRanking, compared, foreseen_comparisons
from projections.answers.view import View

DryRun = Annotated[bool, Parameter(negative="", help="Show what would change, and change nothing.")]


async def print_foreseen(desk: Desk, view: View, command: Previewed, *, json: bool) -> None:
    """Raises as `Desk.preview`, and TooMuchWork."""
    decided = await desk.preview(view.live, command)
    comparisons = await foreseen_comparisons(view.live, decided, view.read_sums)
    show_comparison(view, compared(view.live.board, comparisons), json=json)


def show_comparison(view: View, rankings: list[ComparedRanking], *, json: bool) -> None:
    if json:
        printing.json(rankings)
    else:
        print_comparison(view.live.board, rankings)
