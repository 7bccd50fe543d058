"""The places that look at some kinds of events and pass over the others. Nothing fails by itself where a new event is
forgotten there, so this table asks for a decision: a row for each event, with a mark for each place. Other places ask
what an event declares of itself (`EventBase`).

Where the table is wrong, properties over random histories fail. They see every event, because the histories ask for
every command.
"""

import ast
import inspect
from pathlib import Path
from typing import Final, get_args

from engine.domain import commands
from engine.domain.commands import Command
from engine.domain.events import Event, Points
from tests import histories

ROOT: Final = Path(__file__).parents[1]
PLACES: Final = {
    "moved": "projections/board/board.py:moved_by",
    "nested": "projections/live/nested_sets.py",
    "live": "projections/live/tournament.py",
    "history": "projections/past/history.py",
    "explain": "projections/answers/explainer.py",
    "compare": "projections/past/comparison.py",
    "verify": "projections/verification/fold_checks.py",
}
DECIDED: Final = """
                          moved nested live history explain compare verify
TournamentOpened          -     -      -    -       -       -       x
TournamentRenamed         -     -      -    -       -       -       -
PresentationChanged       -     -      -    -       -       -       -
CompetitorRegistered      -     x      -    -       -       -       -
CompetitorChanged         -     x      -    x       -       -       -
CompetitorErased          -     x      -    x       -       -       x
CompetitionAdded          -     -      -    -       -       -       -
CompetitionChanged        -     -      -    -       -       -       x
RankingCreated            -     -      -    x       -       x       -
RankingModified           x     -      -    x       -       x       -
RankingInformationChanged -     -      -    -       -       -       -
ParticipantsChanged       x     -      -    x       x       x       -
UnityAdded                -     -      -    x       -       -       -
UnityChanged              x     -      -    x       x       -       -
ClassificationDeclared    -     -      -    x       -       -       -
PointsAdded               -     -      x    x       x       x       x
PointsReversed            -     -      x    x       x       x       x
PointsExpired             -     -      x    x       x       x       x
CompetitionVoided         -     -      -    -       -       x       x
CompetitionUnvoided       -     -      -    -       -       x       x
CompetitorsStruck         -     -      -    -       -       x       x
CompetitorsUnstruck       -     -      -    -       -       x       x
RankingClosed             -     -      -    -       -       -       -
RankingReopened           -     -      -    -       -       -       x
RankingHidden             -     -      -    -       -       -       -
RankingShown              -     -      -    -       -       -       -
RankingsOrdered           -     -      -    -       -       -       -
TournamentPublished       -     -      -    -       -       -       -
TournamentUnpublished     -     -      -    -       -       -       -
PublicationFrozen         -     -      -    -       -       -       -
PublicationRevealed       -     -      -    -       -       -       -
EventSetAside             -     -      -    -       -       -       x
Ignored                   -     -      -    -       -       -       -
"""
"""Which place looks at which event (x), and which it passes over (-). `explain` also asks `history`."""
_KINDS: Final = {kind.__name__ for kind in get_args(Event)}


def named_in(path: str) -> set[str]:
    """The kinds of events that a module names, or a function of it; `Points` stands for three."""
    found: set[str] = set()
    module, _, function = path.partition(":")
    tree: ast.AST = ast.parse((ROOT / module).read_text(encoding="utf-8"))
    if function:
        tree = next(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == function)
    for node in ast.walk(tree):
        name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
        found |= {kind.__name__ for kind in get_args(Points)} if name == "Points" else {name} & _KINDS
    return found


def test_every_place_has_decided_about_every_event() -> None:
    head, *rows = [line.split() for line in DECIDED.strip().splitlines()]
    assert head == [*PLACES]
    decided = {kind: dict(zip(head, marks, strict=True)) for kind, *marks in rows}
    assert decided.keys() == _KINDS, "look at each place, and write a row"
    for place, path in PLACES.items():
        looked_at = {kind for kind, marks in decided.items() if marks[place] == "x"}
        assert named_in(path) == looked_at, place


def test_every_event_declares_what_it_touches() -> None:
    """Where a declaration is wrong, tables differ from the log in the properties of `tests/projections`."""
    assert [kind.__name__ for kind in get_args(Event) if "touches" not in vars(kind)] == []


def test_histories_ask_for_every_command() -> None:
    source = inspect.getsource(histories)
    asked = {node.attr for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Attribute)}
    asked |= {commands.ExpirePoints.__name__}  # nobody asks for it; tests/api/test_expiry.py lets time pass
    assert {command.__name__ for command in get_args(Command)} <= asked
