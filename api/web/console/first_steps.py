"""The first steps of a tournament in the console, one page each, until it is under way."""

from typing import Final

from msgspec import Struct

from api.access.auth import Scope
from api.web.console.frame import Viewer
from engine.domain.scoring import scores_duels
from projections.answers.view import View

STEP_NAMES: Final = -1
"""Before all steps: the first one takes names, too."""
STEP_KIND: Final = 0
STEP_MATCHES: Final = 1
"""The numbers of steps."""
FIRST_STEP: Final = "/rankings/like"
"""The page of the first one."""


class Step(Struct, frozen=True):
    """A step. `below`: its page; `about` says what it is for."""

    text: str
    about: str
    below: str
    is_done: bool


def first_steps(view: View, viewer: Viewer) -> list[Step]:
    """The steps that the viewer can make, in their order."""
    board = view.live.board
    steps = [
        Step("Say who plays, and what", "The sport says what a result gives.", FIRST_STEP, bool(board.rankings)),
        Step("Plan the {matches}", "Who plays whom, and when.", _planned_on(view), bool(board.competitions)),
    ]
    if viewer.may(Scope.ADMIN):
        is_public = view.publication.published
        steps.append(Step("Publish it", "Everybody with the address sees it.", "/publication/publish", is_public))
    return steps


def page_after(view: View, viewer: Viewer, step: int, otherwise: str) -> str:
    """The page of the step after this one, while none of the later ones is done."""
    later = first_steps(view, viewer)[step + 1 :]
    return later[0].below if later and not any(one.is_done for one in later) else otherwise


def _planned_on(view: View) -> str:
    """The page on which competitions are planned: all of a league at once, else one at a time."""
    for ranking_id, ranking in view.live.board.rankings.items():
        if any(map(scores_duels, ranking.scorings)):
            return f"/rankings/{ranking_id}/fixtures"
    return "/competitions/new"
