"""An option of a unity has many places. One that lacks it fails here."""

import inspect
from collections.abc import Callable, Iterable
from typing import Any, Final

import pytest

from api.cli import rankings as command_line
from api.interface.declarations import Write
from api.interface.public.reads import PublicUnityShape
from api.interface.resources import rankings
from api.interface.resources.rankings import ListedUnityShape
from api.stream import public_frames
from engine.domain import commands, events
from projections.board import parts
from projections.board.board import Unity
from projections.live.held import HeldUnity
from projections.tables import columns
from tallybook_client import Client, shapes

OPTIONS: Final = {*events.UnityAdded.__struct_fields__} - {"ranking_id", "unity_id", "name"}
_PREFIX: Final = "main_unity_"


def fields(operation_id: str) -> list[str]:
    (found,) = [one for one in rankings.OPERATIONS if isinstance(one, Write) and one.operation_id == operation_id]
    return [field.name for field in found.fields]


def parameters(of: Callable[..., Any]) -> list[str]:
    return [*inspect.signature(of).parameters]


def shape(kind: type) -> list[str]:
    shown: type = public_frames._SHAPES[kind.__name__]
    return [*inspect.signature(shown).parameters]


@pytest.mark.parametrize(
    "named",
    [
        pytest.param(commands.AddUnity.__struct_fields__, id="command"),
        pytest.param([column.name for column in columns.UNITY.columns], id="columns"),
        pytest.param(fields("addUnity"), id="form"),
        pytest.param(ListedUnityShape.__struct_fields__, id="shape"),
        pytest.param(PublicUnityShape.__struct_fields__, id="public shape"),
        pytest.param(shape(events.UnityAdded), id="public frame"),
        pytest.param(parameters(command_line.add_unity), id="command line"),
        pytest.param(parameters(command_line.create_ranking), id="command line, main unity"),
        pytest.param(parameters(Client.add_unity), id="client"),
        pytest.param(shapes.Unity.__struct_fields__, id="client's shape"),
    ],
)
def test_every_place_has_every_option_of_a_unity(named: Iterable[str]) -> None:
    assert {*named} >= OPTIONS


@pytest.mark.parametrize(
    "named",
    [
        pytest.param(events.RankingCreated.__struct_fields__, id="event"),
        pytest.param(commands.CreateRanking.__struct_fields__, id="command"),
        pytest.param(fields("createRanking"), id="form"),
        pytest.param(shape(events.RankingCreated), id="public frame"),
        pytest.param(parameters(Client.create_ranking), id="client"),
    ],
)
def test_every_place_of_a_main_unity_has_every_option(named: Iterable[str]) -> None:
    has = {name.removeprefix(_PREFIX) for name in named if name.startswith(_PREFIX)}
    assert has - {"id", "name"} == OPTIONS


def test_what_keeps_a_unity_keeps_all_of_it() -> None:
    """But for the totals, which are kept apart, and the version of one that a long answer shows."""
    own = [*Unity.__struct_fields__]
    assert [*parts._Unity.__struct_fields__] == ["unity_id", *[name for name in own if name != "totals"]]
    assert [*HeldUnity.__struct_fields__] == [name for name in own if name not in ("totals", "version")]
