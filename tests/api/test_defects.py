"""A defect that one tournament meets: it is answered, told to operators, and bounded to that tournament.

A defect is planted as an exception out of one function, for one of two tournaments of a process. The other one is
written, read and listened to before, meanwhile and afterwards.
"""

import asyncio
import json
from collections.abc import Callable
from importlib import import_module
from io import BytesIO
from typing import Any, Final

import asyncpg
import pytest
from msgspec import Struct, structs

from api.webhooks import webhooks
from engine.database.pool import Database
from engine.domain.terms import OPERATOR, CompetitorId, TournamentId
from engine.process.telemetry import DEFECTS, STOPPED
from projections.board.board import Board
from projections.live import pool
from projections.tables.worker import Worker
from projections.verification.all_tournaments import Plan
from projections.verification.continuous import verify_continuously
from tests.api.receiver import delivering, receiver_on
from tests.api.service import Answer, Client, Season, Service, deltas, play_season, slug_of, totals
from tests.desks import is_idle, until
from tests.poison import append_text
from tests.tournaments import open_new_tournament


class Planted(Exception):
    """What no code expects."""


class Plant:
    """Makes one function fail for one tournament. `met`: how often it did."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, place: str, concerns: Callable[[object], bool]) -> None:
        module, _, path = place.partition(":")
        *holders, name = path.split(".")
        holder: Any = import_module(module)
        for one in holders:
            holder = getattr(holder, one)
        self.met = 0
        self._monkeypatch = monkeypatch.context()
        original = getattr(holder, name)

        def failing(*args: Any, **named: Any) -> Any:
            if any(concerns(one) for one in (*args, *named.values())):
                self.met += 1
                raise Planted
            return original(*args, **named)

        self._patching = self._monkeypatch.__enter__()
        self._patching.setattr(holder, name, failing)

    def take_out(self) -> None:
        self._monkeypatch.__exit__(None, None, None)


def concerning(tournament_id: TournamentId, competitor_id: CompetitorId) -> Callable[[object], bool]:
    """Whether a value is of this tournament, which alone has that competitor."""

    def concerns(value: object) -> bool:
        if isinstance(value, Board):
            return competitor_id in value.competitors
        if isinstance(value, list | tuple | set):
            return any(concerns(one) for one in value)
        if isinstance(value, dict):
            return tournament_id in value
        if isinstance(value, int):
            return value == tournament_id
        if getattr(value, "tournament_id", None) == tournament_id:
            return True
        if callable(board := getattr(value, "_board", None)):
            return concerns(board())
        return any(concerns(one) for name in ("live", "_live", "board") if (one := getattr(value, name, None)))

    return concerns


class Ask(Struct, frozen=True):
    """A request about a season. `{…}` are its ids."""

    method: str
    path: str
    form: dict[str, str] = {}


ADD: Final = Ask("PUT", "rankings/{ranking}/add.json", {"participants_delta": "{delta}"})
CHANGE: Final = Ask("PUT", "competitors/{competitor}.json", {"name": "Another"})
MOVE: Final = Ask("PUT", "competitors/{competitor}.json", {"parent": "{second}"})
VOID: Final = Ask("PUT", "competitions/{competition}/void.json")
REFUSED: Final = Ask("PUT", "rankings/{ranking}/reopen.json")
SHOWN: Final = Ask("GET", "rankings/{ranking}.json")
COMPETITORS: Final = Ask("GET", "competitors.json")
FILTERED: Final = Ask("GET", "competitors.json?name=A")
STANDINGS: Final = Ask("GET", "rankings/{ranking}/standings.json?limit=2")
CLASSIFICATION: Final = Ask("GET", "rankings/{ranking}/classification.json")
HISTORY: Final = Ask("GET", "rankings/{ranking}/history.json")
PAST: Final = Ask("GET", "rankings/{ranking}/standings.json?at_sequence=8")
EXPLAINED: Final = Ask("GET", "rankings/{ranking}/explain.json?competitor_id={competitor}")
COMPETITIONS: Final = Ask("GET", "competitions.json")
PREVIEW: Final = Ask("GET", "competitions/{competition}/void.json")
BOARD: Final = Ask("GET", "/board/{slug}")

PLANTS: Final = {
    # judging
    "deciding": ("api.desk.docket:decide", ADD, {500}),
    "deciding a change": ("api.desk.docket:decide", MOVE, {500}),
    "deciding what is refused": ("api.desk.docket:decide", REFUSED, {500}),
    "looking up what a void reverses": ("projections.live.pool:LivePool.points_of", VOID, {500, 503}),
    "deciding a preview": ("api.desk.desk:decide", PREVIEW, {500}),
    "making a block": ("api.desk.docket:Docket._block", ADD, {500}),
    "confirming a refusal": ("api.desk.docket:Docket._confirm_refusal", REFUSED, {500}),
    # appending
    "sending a block": ("engine.log.log:append", ADD, {500}),
    "settling a block": ("api.desk.docket:Docket._settle", ADD, {500}),
    "answering a block": ("api.desk.docket:Docket._answer", ADD, {500}),
    # folding
    "folding": ("projections.live.tournament:fold", ADD, {500, 503}),
    "folding what was appended": ("projections.live.tournament:LiveTournament.fold_appended", ADD, {500, 503}),
    "noting for orders": ("projections.live.orders:Orders.note", ADD, {500, 503}),
    "noting for nested sets": ("projections.live.nested_sets:NestedSets.note", CHANGE, {500, 503}),
    "noting for selections": ("projections.live.selections:Selections.note", CHANGE, {500, 503}),
    # making sets, orders, selections and classifications
    "making nested sets": ("projections.live.nested_sets:NestedSets._make", COMPETITORS, {500}),
    "a step of nested sets": ("projections.live.nested_sets:NestedSets._parent_then", COMPETITORS, {500}),
    "making an order": ("projections.live.orders:Orders._make", STANDINGS, {500}),
    "selecting": ("projections.live.selections:Selections.of", FILTERED, {500}),
    "classifying": ("projections.live.classifications:Classifications.lines", CLASSIFICATION, {500}),
    # rendering
    "rendering a ranking": ("api.interface.rankings:resource", SHOWN, {500}),
    "holding a board": ("projections.live.tournament:LiveTournament.hold", COMPETITIONS, {500}),
    # the past
    "reading a slice": ("projections.past.past:Past._slice", HISTORY, {500}),
    "a past board": ("projections.past.past:Past._board_at", PAST, {500}),
    "explaining": ("projections.past.past:Past.explain", EXPLAINED, {500}),
}


class Pair(Struct):
    """The tournament with the defect, and the other one."""

    service: Service
    owner: asyncpg.Connection
    planted: Season
    planted_id: TournamentId
    other: Season
    other_id: TournamentId

    def concerns(self) -> Callable[[object], bool]:
        return concerning(self.planted_id, CompetitorId(self.planted.ids[0]))

    async def ask(self, ask: Ask, season: Season) -> Answer:
        words = {
            "ranking": season.ranking_id,
            "competitor": season.ids[0],
            "second": season.ids[1],
            "competition": season.competition_id,
            "delta": deltas((season.ids[0], season.unity_id, 1)),
            "slug": season.client.tournament,
        }
        path = ask.path.format_map(words)
        if ask.method == "GET":
            return await season.client.get(path)
        form = {name: text.format_map(words) if name != "result" else text for name, text in ask.form.items()}
        return await season.client.put(path, form)

    async def the_other_is_well(self) -> None:
        """It takes points, shows them, and refuses what it must."""
        season = self.other
        for ask in (ADD, SHOWN, COMPETITORS, STANDINGS, CLASSIFICATION, HISTORY, EXPLAINED, PREVIEW):
            answer = await self.ask(ask, season)
            assert answer.status == 200, (ask, answer.body)
        assert (await self.ask(REFUSED, season)).status == 409

    async def named(self) -> list[dict[str, Any]]:
        """What `/readyz` says of the planted tournament."""
        ready = await self.service.client("", None).send("GET", "/readyz")
        assert ready.status == 200
        told: list[dict[str, Any]] = ready.json["tournaments"]
        assert all(one["id"] == self.planted_id for one in told)
        return told


@pytest.fixture
async def pair(service: Service, owner: asyncpg.Connection, client: Client, clients_tournament: TournamentId) -> Pair:
    other_id = await open_new_tournament(service.database, actor=OPERATOR)
    others = service.client(await slug_of(service.database, other_id), client.token)
    return Pair(
        service, owner, await play_season(client), clients_tournament, await play_season(others), other_id
    )


def alarms() -> float:
    """How many defects and stops were counted so far."""
    counted = [sample.value for metric in DEFECTS.collect() for sample in metric.samples if sample.name.endswith("total")]
    return sum(counted) + STOPPED._value.get()


def logged(lines: BytesIO, tournament_id: TournamentId) -> list[dict[str, Any]]:
    """The alarms of this tournament."""
    told = [json.loads(line) for line in lines.getvalue().splitlines()]
    return [
        line
        for line in told
        if line["event"] in ("tournament_defect", "tournament_stopped") and line["tournament_id"] == tournament_id
    ]


@pytest.mark.parametrize("name", PLANTS)
async def test_a_defect_of_one_tournament_is_answered_and_told_and_leaves_the_other_alone(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, log_lines: BytesIO, name: str
) -> None:
    place, ask, statuses = PLANTS[name]
    await pair.the_other_is_well()
    before = alarms()
    plant = Plant(monkeypatch, place, pair.concerns())

    async with asyncio.timeout(30):
        answers, *_ = await asyncio.gather(
            asyncio.gather(*(pair.ask(ask, pair.planted) for _ in range(5))),
            pair.the_other_is_well(),
            pair.the_other_is_well(),
        )
        await pair.the_other_is_well()
        assert {answer.status for answer in answers} <= statuses, [answer.body for answer in answers]
        assert plant.met
        assert alarms() > before
        assert any("Planted" in line.get("exception", "") for line in logged(log_lines, pair.planted_id))
        assert await until(pair.named)

        plant.take_out()
        await until(lambda: _answers(pair, SHOWN))
        await until(lambda: _answers(pair, ADD))
        await pair.the_other_is_well()
        await until(lambda: is_idle(pair.service.desk))


async def _answers(pair: Pair, ask: Ask) -> bool:
    return (await pair.ask(ask, pair.planted)).status == 200
