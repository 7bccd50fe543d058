"""Whatever has the options of a unity inherits them. So a new one has three places: `engine/domain/options.py`, its row
in `api/interface/options.py`, and its column. `tests/projections/test_columns.py` fails if the column is forgotten, and
this file if another place is. It also makes sure that every option reaches all that keep or show it.
"""

import inspect
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
import pytest
from msgspec import Struct

from api.cli import rankings as command_line
from api.interface.declarations import Write
from api.interface.options import UNITY_OPTIONS
from api.interface.public.reads import PublicUnityShape
from api.interface.resources import rankings
from api.stream import public_frames
from engine.domain import events
from engine.domain.expiry import ExpiresOn
from engine.domain.options import MAIN_UNITY, OPTIONS, MainUnityOptions, UnityOptions, as_main_unity, options_of
from engine.domain.terms import ActorId, CompetitorId, Counts, RankingId, Sequence, UnityId
from projections.answers.rankings import listed_unity
from projections.board import parts
from projections.board.board import Board, Revisions, Unity, fold
from projections.live.held import HeldBoard, HeldUnity
from projections.live.nested_sets import Bounds
from projections.tables import columns
from tallybook_client import Client, shapes

GIVEN: Final = UnityOptions(
    decimals=1, time="ms", counts=Counts.BEST, lasts="P1D", expires_on=ExpiresOn.DAY, absent="none"
)
"""Each option has another value than its default. (The judge would refuse some of them together.)"""
RANKING: Final = RankingId(1)
MAIN, OTHER = UnityId(1), UnityId(2)
NOW: Final = datetime(2024, 3, 9, tzinfo=UTC)


def test_each_option_is_given() -> None:
    assert [name for name, value in options_of(GIVEN).items() if value == getattr(UnityOptions(), name)] == []


def test_a_main_unity_has_the_same_options() -> None:
    def declared(kind: type[Struct]) -> list[tuple[str, object, object]]:
        return [(one.name.removeprefix(MAIN_UNITY), one.type, one.default) for one in msgspec.structs.fields(kind)]

    assert declared(MainUnityOptions) == declared(UnityOptions)


def test_people_can_give_every_option() -> None:
    assert [row.name for row in UNITY_OPTIONS] == [*OPTIONS]
    assert {*OPTIONS} <= {*fields("addUnity")}
    assert {*as_main_unity(GIVEN)} <= {*fields("createRanking")}
    for command in (command_line.add_unity, command_line.create_ranking):
        (taken,) = [one.annotation for one in inspect.signature(command).parameters.values() if one.name == "options"]
        assert [*inspect.signature(taken).parameters] == [*OPTIONS]


def fields(operation_id: str) -> list[str]:
    (found,) = [one for one in rankings.OPERATIONS if isinstance(one, Write) and one.operation_id == operation_id]
    return [field.name for field in found.fields]


def recorded(sequence: int, event: events.Event) -> events.Recorded:
    return events.Recorded(Sequence(sequence), NOW, ActorId(1), None, event)


@pytest.fixture
def board() -> Board:
    """One with a ranking that has two unities with all options."""
    created = events.RankingCreated(
        ranking_id=RANKING,
        name="Cup",
        participants=(CompetitorId(1),),
        main_unity_id=MAIN,
        main_unity_name="Best",
        **as_main_unity(GIVEN),
    )
    added = events.UnityAdded(ranking_id=RANKING, unity_id=OTHER, name="Laps", **options_of(GIVEN))
    made = Board()
    for sequence, event in enumerate((created, added), start=1):
        fold(made, Revisions(), recorded(sequence, event))
    return made


def given_to(unity: UnityOptions) -> bool:
    return options_of(unity) == options_of(GIVEN)


def test_a_fold_keeps_every_option(board: Board) -> None:
    assert [unity_id for unity_id, unity in board.rankings[RANKING].unities.items() if given_to(unity)] == [MAIN, OTHER]


def test_a_snapshot_keeps_every_option(board: Board) -> None:
    again = Board()
    for part in parts.parts_of(board):
        deque(parts.take_part(part, again))
    assert again == board


def test_a_row_keeps_every_option(board: Board) -> None:
    for unity_id, unity in board.rankings[RANKING].unities.items():
        values = columns.UNITY.arrays([(1, unity_id, RANKING, unity)])
        row = {column.name: value for column, (value,) in zip(columns.UNITY.columns, values, strict=True)}
        assert columns.unity_of(msgspec.to_builtins(row), unity.totals) == unity


def test_what_is_held_for_a_long_answer_has_every_option_and_what_is_made_of_them(board: Board) -> None:
    held = HeldBoard(board, Bounds(None), 0)
    held.note(events.RankingClosed(ranking_id=RANKING))
    for unity_id, unity in held.ranking(RANKING).unities.items():
        assert isinstance(unity, HeldUnity)
        was = board.rankings[RANKING].unities[unity_id]
        assert all(getattr(unity, name) == getattr(was, name) for name in HeldUnity.__struct_fields__)
    assert {*Unity.__struct_fields__} - {*HeldUnity.__struct_fields__} == {"totals", "version"}


def test_an_answer_shows_every_option_to_the_public_too(board: Board) -> None:
    shown = listed_unity(OTHER, board.rankings[RANKING].unities[OTHER])
    assert given_to(shown)
    assert given_to(msgspec.convert(shown, PublicUnityShape, from_attributes=True))


@pytest.mark.parametrize("event", [events.UnityAdded, events.RankingCreated])
def test_a_stream_shows_every_option_to_the_public(event: type[Struct]) -> None:
    options = {*options_of(GIVEN)} if event is events.UnityAdded else {*as_main_unity(GIVEN)}
    assert options <= {*public_frames._SHAPES[event.__name__].__struct_fields__}


def test_the_client_has_every_option() -> None:
    def parameters(of: Callable[..., Any]) -> set[str]:
        return {*inspect.signature(of).parameters}

    assert {*OPTIONS} <= parameters(Client.add_unity)
    assert {*as_main_unity(GIVEN)} <= parameters(Client.create_ranking)
    assert {*OPTIONS} <= {*shapes.Unity.__struct_fields__}
