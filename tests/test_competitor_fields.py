"""A field of a competitor has six places: events, commands, judging, the board, its column, and the operations. What
lacks it fails here, but for the column (`tests/projections/test_columns.py`).
"""

from datetime import UTC, datetime
from typing import Any, Final

import msgspec
import pytest

from api.interface.declarations import Write
from api.interface.resources import competitors
from engine.domain import commands, events
from engine.domain.judging import decide
from engine.domain.terms import ActorId, CompetitorId, Sequence
from projections.board.board import Board, Revisions, fold, forgotten
from projections.board.hierarchy import NestedSetBounds

PARENT, CHILD = CompetitorId(1), CompetitorId(2)
GIVEN: Final[dict[str, Any]] = {"name": "Ann", "tags": ("u18",), "color": "ff0000", "parent_id": PARENT, "key": "LIC-4"}
"""A value for each field that people give, not its default. A new one needs a value here."""
FIELDS: Final = {*events.CompetitorRegistered.__struct_fields__} - {"competitor_id", "commitment"}


def values_of(found: object) -> dict[str, object]:
    return {name: getattr(found, name) for name in GIVEN}


def folded(board: Board, *asked: commands.Command) -> Board:
    for command in asked:
        for event in decide(board, command):
            now = datetime(2024, 3, 9, tzinfo=UTC)
            fold(board, Revisions(), events.Recorded(Sequence(1), now, ActorId(1), None, event))
    return board


@pytest.fixture
def board() -> Board:
    """One with the parent, and a child without any value."""
    return folded(Board(), *[commands.RegisterCompetitor(competitor_id=one, name="Nobody") for one in (PARENT, CHILD)])


def test_a_change_can_change_every_field() -> None:
    assert GIVEN.keys() == FIELDS
    for changed in (events.CompetitorChanged, commands.ChangeCompetitor, commands.RegisterCompetitor):
        assert {*changed.__struct_fields__} - {"competitor_id", "commitment"} == FIELDS, changed


def test_judging_passes_every_field_on(board: Board) -> None:
    for asked in (
        commands.RegisterCompetitor(competitor_id=CompetitorId(3), **GIVEN),
        commands.ChangeCompetitor(competitor_id=CHILD, **GIVEN),
    ):
        (event,) = decide(board, asked)
        assert values_of(event) == GIVEN


def test_the_board_has_every_field(board: Board) -> None:
    new = CompetitorId(3)
    folded(
        board,
        commands.RegisterCompetitor(competitor_id=new, **GIVEN),
        commands.ChangeCompetitor(competitor_id=CHILD, **GIVEN | {"key": "LIC-5"}),
    )
    assert values_of(board.competitors[new]) == GIVEN
    assert values_of(board.competitors[CHILD]) == GIVEN | {"key": "LIC-5"}


def test_an_erased_competitor_has_no_personal_field(board: Board) -> None:
    folded(board, commands.ChangeCompetitor(competitor_id=CHILD, **GIVEN))
    without = values_of(forgotten(CHILD, board.competitors[CHILD]))
    assert [name for name in events.PERSONAL if without[name] == GIVEN[name]] == []


@pytest.mark.parametrize("operation_id", ["registerCompetitor", "changeCompetitor"])
def test_a_form_takes_every_field(operation_id: str) -> None:
    (found,) = [one for one in competitors.OPERATIONS if isinstance(one, Write) and one.operation_id == operation_id]
    assert {field.argument or field.name for field in found.fields} == FIELDS


def test_an_answer_shows_every_field(board: Board) -> None:
    """The parent shows in the bounds."""
    folded(board, commands.ChangeCompetitor(competitor_id=CHILD, **GIVEN))
    shown = msgspec.json.decode(competitors._piece(CHILD, board.competitors[CHILD], NestedSetBounds(1, 2, 3)))
    assert {name: shown.get(name) for name in FIELDS - {"parent_id"}} == {
        **{name: value for name, value in GIVEN.items() if name != "parent_id"},
        "tags": [{"name": tag} for tag in GIVEN["tags"]],
    }
