"""The places that look at some kinds of events and pass over the others. Nothing fails by itself where a new event is
forgotten there, so this table asks for a decision: a row for each event, with a mark for each place. Other places ask
what an event declares of itself (`EventBase`).

Where the table is wrong, properties over random histories fail. They see every event, because the histories ask for
every command.
"""

import ast
import inspect
from typing import Final, get_args

from engine.domain import commands
from engine.domain.commands import Command
from engine.domain.events import Event, Points
from tests import histories
from tests.project import PRODUCT, parsed

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
CompetitorRegistered      -     x      -    -       -       -       x
CompetitorChanged         -     x      -    x       -       -       -
CompetitorErased          -     x      -    x       -       -       x
CompetitionAdded          -     -      -    -       -       x       x
CompetitionChanged        -     -      -    -       x       x       x
RankingCreated            -     -      -    x       -       x       -
RankingModified           x     -      -    x       -       x       -
RankingInformationChanged -     -      -    -       -       -       -
ParticipantsChanged       x     -      -    x       x       x       -
UnityAdded                -     -      -    x       -       -       -
UnityChanged              x     -      -    x       x       -       -
ClassificationDeclared    -     -      -    x       -       -       -
ScoringDeclared           -     -      -    -       -       x       x
PointsAdded               -     -      x    x       x       x       x
PointsScored              -     -      x    x       x       x       x
PointsReversed            -     -      x    x       x       x       x
PointsExpired             -     -      x    x       x       x       x
CompetitionVoided         -     -      -    -       -       x       x
CompetitionUnvoided       -     -      -    -       -       x       x
CompetitorsStruck         -     -      -    -       -       x       x
CompetitorsUnstruck       -     -      -    -       -       x       x
RankingClosed             -     -      -    -       -       -       -
RankingReopened           -     -      -    -       -       x       x
RankingHidden             -     -      -    -       -       -       -
RankingShown              -     -      -    -       -       -       -
RankingsOrdered           -     -      -    -       -       -       -
TournamentPublished       -     -      -    -       -       -       -
TournamentUnpublished     -     -      -    -       -       -       -
TournamentArchived        -     -      -    -       -       -       -
TournamentDeleted         -     -      -    -       -       -       -
TournamentRestored        -     -      -    -       -       -       -
PublicationFrozen         -     -      -    -       -       -       -
PublicationRevealed       -     -      -    -       -       -       -
EventSetAside             -     -      -    -       -       -       x
Ignored                   -     -      -    -       -       -       -
"""
"""Which place looks at which event (x), and which it passes over (-). `explain` also asks `history`."""
_KINDS: Final = {kind.__name__ for kind in get_args(Event)}
NAMING: Final = {
    "judges": [
        *("engine/domain/commands.py", "engine/domain/judging.py", "engine/domain/rejudging.py"),
        *("engine/domain/reversals.py", "engine/domain/expirations.py", "engine/domain/counting.py"),
        *("engine/domain/lines.py", "engine/domain/rescoring.py", "projections/verification/fold_checks.py"),
        *("projections/verification/log_checks.py", "projections/verification/erasures.py"),
        "projections/verification/setting_aside.py",
    ],
    "encodes": [
        *("engine/log/codec.py", "engine/log/reading.py"),
        *("api/stream/frames.py", "api/stream/public_frames.py"),
    ],
    "folds": [
        *("projections/board/board.py", "projections/board/publication.py", "projections/live/nested_sets.py"),
        *("projections/past/comparison.py", "projections/past/timeline.py", "projections/tables/tables.py"),
    ],
    "narrates": ["projections/past/history.py", "projections/answers/explainer.py"],
}
"""The modules that name types of events, by what they do with them. Any other asks what an event declares of itself, or
asks one of these."""


def named_in(path: str, *, of_points: bool = True) -> set[str]:
    """The kinds of events that a module names, or a function of it; with `of_points`, `Points` stands for three."""
    found: set[str] = set()
    module, _, function = path.partition(":")
    tree: ast.AST = parsed(module)
    if function:
        tree = next(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == function)
    for node in ast.walk(tree):
        name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
        if of_points and name == "Points":
            found |= {kind.__name__ for kind in get_args(Points)}
        found |= {name} & _KINDS
    return found


def test_every_place_has_decided_about_every_event() -> None:
    head, *rows = [line.split() for line in DECIDED.strip().splitlines()]
    assert head == [*PLACES]
    decided = {kind: dict(zip(head, marks, strict=True)) for kind, *marks in rows}
    assert decided.keys() == _KINDS, "look at each place, and write a row"
    for place, path in PLACES.items():
        looked_at = {kind for kind, marks in decided.items() if marks[place] == "x"}
        assert named_in(path) == looked_at, place


def test_only_what_judges_folds_encodes_or_narrates_events_names_their_types() -> None:
    naming = {path for path in PRODUCT if named_in(path, of_points=False) - {"Ignored"}}
    assert naming - {"engine/domain/events.py"} == {path for paths in NAMING.values() for path in paths}


def test_every_event_declares_what_it_touches() -> None:
    """Where a declaration is wrong, tables differ from the log in the properties of `tests/projections`."""
    assert [kind.__name__ for kind in get_args(Event) if "touches" not in vars(kind)] == []


def test_histories_ask_for_every_command() -> None:
    source = inspect.getsource(histories)
    asked = {node.attr for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Attribute)}
    asked |= {commands.ExpirePoints.__name__}  # nobody asks for it; tests/api/test_expiry.py lets time pass
    asked |= {commands.DeleteTournament.__name__}  # no live folds it; tests/api/cli/test_deletion.py deletes
    assert {command.__name__ for command in get_args(Command)} <= asked
