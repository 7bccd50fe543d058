"""A defect that one tournament meets: it is answered, told to operators, and bounded to that tournament. An exception
while one request is answered is bounded to that request.

A defect is planted as an exception out of one function, for one of two tournaments of a process. The other one is
written, read and listened to before, meanwhile and afterwards.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib import import_module
from io import BytesIO
from typing import Any, Final

import asyncpg
import pytest
from aiohttp import ClientSession
from msgspec import Struct

from api.interface.public.reads import PUBLIC_READS
from api.stream.listeners import Listener
from api.stream.public_frames import PUBLIC_LOG
from api.webhooks import webhooks
from engine.domain.terms import OPERATOR, CompetitorId, TournamentId
from engine.log.appending import Appended, Block
from engine.process.telemetry import DEFECTS, STOPPED
from projections.board.board import Board
from projections.live.pool import LivePool
from projections.live.tournament import LiveTournament
from projections.tables.worker import Worker
from projections.verification.all_tournaments import Plan, verify_all
from projections.verification.continuous import verify_continuously
from tests.api.asking import POSSIBLE, READS, query_of, with_points
from tests.api.asking import ask as ask_operation
from tests.api.receiver import delivering, receiver_on
from tests.api.visitor import CONSOLE, routes_below, visiting
from tests.desks import GUARD_SECONDS, is_idle, until
from tests.poison import append_text
from tests.service import Answer, Season, Service, deltas, play_season, slug_of
from tests.tampering import unguarded
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
        self._is_there = True
        original = getattr(holder, name)

        def failing(*args: Any, **named: Any) -> Any:
            if self._is_there and any(concerns(one) for one in (*args, *named.values())):
                self.met += 1
                raise Planted
            return original(*args, **named)

        monkeypatch.setattr(holder, name, failing)

    def put_in(self) -> None:
        self._is_there = True

    def take_out(self) -> None:
        self._is_there = False


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
        return any(
            concerns(one) for name in ("live", "_live", "_owner", "board") if (one := getattr(value, name, None))
        )

    return concerns


class Ask(Struct, frozen=True):
    """A request about a season. `{…}` are its ids."""

    method: str
    path: str
    form: dict[str, str] = {}


ADD: Final = Ask("PUT", "rankings/{ranking}/add.json", {"participants_delta": "{delta}"})
CHANGE: Final = Ask("PUT", "competitors/{competitor}.json", {"name": "Another"})
CHANGE_OF_SECOND: Final = Ask("PUT", "competitors/{second}.json", {"name": "Another"})
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
EXPLAINED: Final = Ask("GET", "rankings/{ranking}/explain.json?competitor={competitor}")
COMPETITIONS: Final = Ask("GET", "competitions.json")
UNDO: Final = Ask("PUT", "rankings/{ranking}/reverse.json", {"sequence": "2"})
PREVIEW: Final = Ask("GET", "competitions/{competition}/void.json")
BOARD: Final = Ask("GET", "/board/{slug}")

_IF_ASKED: Final = {200, 500, 503}
"""Of what is noted only once somebody has asked: nobody has asked the live that is loaded after the first defect."""
PLANTS: Final = {
    # judging
    "deciding": ("api.desk.case:decide", ADD, {500}),
    "deciding a change": ("api.desk.case:decide", MOVE, {500}),
    "deciding what is refused": ("api.desk.evidence:decide", REFUSED, {500}),
    "looking up what a void reverses": ("projections.live.pool:LivePool.points_of", VOID, {500, 503}),
    "looking up what is undone": ("projections.live.pool:LivePool.named_event", UNDO, {500, 503}),
    "making a block": ("api.desk.docket:Docket._block", ADD, {500}),
    "confirming a refusal": ("api.desk.docket:Docket._confirm_refusal", REFUSED, {500}),
    # appending
    "sending a block": ("engine.log.appending:append", ADD, {500}),
    "settling a block": ("api.desk.docket:Docket._settle", ADD, {500, 503}),
    "answering a block": ("api.desk.docket:Docket._answer", ADD, {500, 503}),
    # folding
    "folding": ("projections.live.tournament:fold", ADD, {500, 503}),
    "folding what was appended": ("projections.live.tournament:LiveTournament.fold_appended", ADD, {500, 503}),
    "noting for orders": ("projections.live.orders:Orders.note", ADD, _IF_ASKED),
    "noting for nested sets": ("projections.live.nested_sets:NestedSets.note", CHANGE, {500, 503}),
    "noting for selections": ("projections.live.selections:Selections.note", CHANGE, _IF_ASKED),
}

ANSWERS: Final = {
    "looking ahead": ("api.desk.evidence:decide", PREVIEW),
    # making sets, orders, selections and classifications
    "making nested sets": ("projections.live.nested_sets:NestedSets._make", COMPETITORS),
    "a step of nested sets": ("projections.live.nested_sets:NestedSets._parent_then", COMPETITORS),
    "making an order": ("projections.live.orders:Orders._make", STANDINGS),
    "selecting": ("projections.live.selections:Selections.of", FILTERED),
    "classifying": ("projections.live.classifications:Classifications.lines", CLASSIFICATION),
    # rendering
    "rendering a ranking": ("api.interface.resources.rankings:resource", SHOWN),
    "holding a board": ("projections.live.tournament:LiveTournament.hold", COMPETITIONS),
    # the past
    "reading a chunk": ("projections.past.past:Past.chunks", HISTORY),
    "a past board": ("projections.past.past:Past.board_at", PAST),
    "explaining": ("projections.answers.explaining:explanation", EXPLAINED),
}
"""Where an answer fails, by what is done there."""


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
async def pair(service: Service, owner: asyncpg.Connection, token: str) -> Pair:
    planted_id, other_id = [await open_new_tournament(service.database, actor=OPERATOR) for _ in range(2)]
    client = service.client(await slug_of(service.database, planted_id), token)
    others = service.client(await slug_of(service.database, other_id), token)
    return Pair(service, owner, await play_season(client), planted_id, await play_season(others), other_id)


def alarms() -> float:
    """How many defects and stops were counted so far."""
    counted = [
        sample.value for metric in DEFECTS.collect() for sample in metric.samples if sample.name.endswith("total")
    ]
    return sum(counted) + STOPPED._value.get()


def logged(lines: BytesIO, tournament_id: TournamentId) -> list[dict[str, Any]]:
    """The alarms of this tournament."""
    told = [json.loads(line) for line in lines.getvalue().splitlines()]
    return [
        line
        for line in told
        if line["event"] in ("tournament_defect", "tournament_stopped") and line["tournament_id"] == tournament_id
    ]


@pytest.mark.one_in(8)
@pytest.mark.parametrize("name", PLANTS)
async def test_a_defect_of_one_tournament_is_answered_and_logged_and_leaves_the_other_alone(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, log_lines: BytesIO, name: str
) -> None:
    place, ask, statuses = PLANTS[name]
    await pair.the_other_is_well()
    before = alarms()
    await ask_for_the_first_time(pair)
    plant = Plant(monkeypatch, place, pair.concerns())

    async with asyncio.timeout(GUARD_SECONDS):
        answers, *_ = await asyncio.gather(
            asyncio.gather(*(pair.ask(ask, pair.planted) for _ in range(5))),
            pair.the_other_is_well(),
            pair.the_other_is_well(),
        )
        await pair.the_other_is_well()
        answered = {answer.status for answer in answers}
        assert answered <= statuses, [answer.body for answer in answers]
        assert answered != {200}
        assert plant.met
        assert alarms() > before
        assert any("Planted" in line.get("exception", "") for line in logged(log_lines, pair.planted_id))
        assert await until(pair.named)

        plant.take_out()
        await until(lambda: _answers(pair, SHOWN))
        await until(lambda: _answers(pair, ADD))
        await pair.the_other_is_well()
        await until(lambda: is_idle(pair.service.desk))


async def ask_for_the_first_time(pair: Pair) -> None:
    """Loads the planted tournament, of which nothing is made yet."""
    async with pair.service.desk.live_pool.pinned(pair.planted_id) as live:
        pair.service.desk.live_pool.drop(live)
    async with pair.service.desk.live_pool.pinned(pair.planted_id) as live:
        assert live.orders  # as when somebody has asked for them: else no event is noted for them
        assert live.selections


async def test_a_defect_in_answering_what_others_had_to_be_read_for_does_not_stop_the_docket(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    concerns, fold_appended = pair.concerns(), LivePool.fold_appended

    def not_enough(pool: LivePool, live: LiveTournament, block: Block, appended: Appended) -> bool:
        return not concerns(live) and fold_appended(pool, live, block, appended)

    monkeypatch.setattr(LivePool, "fold_appended", not_enough)
    plant = Plant(monkeypatch, "api.desk.docket:Docket._answer", concerns)
    async with asyncio.timeout(GUARD_SECONDS):
        assert (await pair.ask(ADD, pair.planted)).status == 500
        assert plant.met
        plant.take_out()
        assert (await pair.ask(ADD, pair.planted)).status == 200
        await until(lambda: is_idle(pair.service.desk))


async def test_a_defect_in_folding_what_was_appended_is_reported_once(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, log_lines: BytesIO
) -> None:
    plant = Plant(monkeypatch, "projections.live.tournament:LiveTournament.fold_appended", pair.concerns())
    assert (await pair.ask(ADD, pair.planted)).status == 500
    assert plant.met == 1
    assert len(logged(log_lines, pair.planted_id)) == 1


async def _answers(pair: Pair, ask: Ask) -> bool:
    return (await pair.ask(ask, pair.planted)).status == 200


# ── Answers ─────────────────────────────────────────────────────────────────────────────────────────────

BOARD_PAGES: Final = (
    *("", "/tv", "/embed", "/leaders", "/table.json", "/table.csv", "/timeline.json", "/race.json", "/picture.png"),
    *("/competitors/{competitor_id}", "/passage.json?ranking={ranking_id}&at=2"),
)
AFTER_PINNING: Final = (
    "api.interface.handlers:RecallContext",
    "api.interface.public.view:RecallContext",
    "projections.live.nested_sets:NestedSets.settle",
)
"""What each read and page calls once it has the tournament."""


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", ANSWERS)
async def test_an_exception_in_an_answer_is_that_of_its_request_alone(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, log_lines: BytesIO, name: str
) -> None:
    place, ask = ANSWERS[name]
    await ask_for_the_first_time(pair)
    async with going_on(pair, log_lines) as failed:
        plant = Plant(monkeypatch, place, pair.concerns())
        answers = await asyncio.gather(*(pair.ask(ask, pair.planted) for _ in range(5)))
        assert {answer.status for answer in answers} == {500}
        assert plant.met
        failed.extend(answers)
        plant.take_out()
        assert (await pair.ask(ask, pair.planted)).status == 200


async def test_the_tournament_continues_whichever_read_or_page_fails(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, log_lines: BytesIO
) -> None:
    season = await with_points(pair.planted)
    slug, service = season.client.tournament, pair.service
    assert (await season.client.put("publication.json", {"published": "true"})).status == 200
    failed: list[Answer] = []
    async with going_on(pair, log_lines) as noted, visiting(service, season.client.token) as visitor:
        async with service.desk.live_pool.pinned(pair.planted_id) as live:
            live.nested_sets.clear()
        plants = [Plant(monkeypatch, place, pair.concerns()) for place in AFTER_PINNING]
        for name in (*READS, *POSSIBLE, "PUT restore.json"):
            answer = await ask_operation(name, season, season.client)
            if name in READS or answer.status not in (404, 409, 422):  # what other operations have changed
                failed.append(answer)
        words = {
            "ranking_id": season.ranking_id,
            "competitor_id": season.ids[0],
            "competition_id": season.competition_id,
            "sequence": season.added,
            "import_name": "x",
            "tournament": slug,
        }
        public = [f"/{one.path}{query_of(f'GET {one.path}')}" for one in PUBLIC_READS]
        pages = [f"/board/{slug}{path.format_map(words)}" for path in (*BOARD_PAGES, *public)]
        for path, methods in (await routes_below(service, f"{CONSOLE}/tournament/")).items():
            if "GET" in methods:
                pages.append(path.format_map(words))
        failed += [await visitor.get(page) for page in pages]
        assert {answer.status for answer in failed} == {500}
        assert all(plant.met for plant in plants)
        noted.extend(failed)
        for plant in plants:
            plant.take_out()


@asynccontextmanager
async def going_on(pair: Pair, log_lines: BytesIO) -> AsyncIterator[list[object]]:
    """Asserts at the end that the planted tournament has met no defect, and that its streams and its live went on; and
    that the log has the exception of each of the answers that failed, which the caller adds."""
    service, failed, before = pair.service, list[object](), alarms()
    async with listening(service, pair.planted) as planted, service.desk.live_pool.pinned(pair.planted_id) as live:
        await until(lambda: planted.is_current)
        yield failed
        assert alarms() == before
        assert not logged(log_lines, pair.planted_id)
        assert not await pair.named()
        exceptions = [line for line in log_lines.getvalue().splitlines() if b'"request_failed"' in line]
        assert len(exceptions) == len(failed)
        assert all(b"Planted" in line for line in exceptions)
        assert not live.dropped
        told = planted.told
        assert (await pair.ask(CHANGE_OF_SECOND, pair.planted)).status == 200  # the first may have been erased
        await until(lambda: planted.told > told)
        assert not planted.has_ended
        await pair.the_other_is_well()


# ── What else works for many tournaments ────────────────────────────────────────────────────────────────

STREAM_PLANTS: Final = {
    "what a follower takes": "api.stream.followers:Follower.take",
    "handing out": "api.stream.followers:Follower.handing_out",
    "reading for a round": "engine.log.undecoded:stored_of",
    "making a live current": "projections.live.pool:LivePool.make_current",
}


async def test_a_defect_while_loading_a_tournament_stops_it_alone(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, log_lines: BytesIO
) -> None:
    plant = Plant(monkeypatch, "projections.live.pool:load", pair.concerns())
    async with pair.service.desk.live_pool.pinned(pair.planted_id) as live:
        pair.service.desk.live_pool.drop(live)
    answers = await asyncio.gather(*(pair.ask(SHOWN, pair.planted) for _ in range(5)))
    assert {answer.status for answer in answers} == {503}
    assert plant.met == 1  # it is not tried again at each request
    await pair.the_other_is_well()
    assert logged(log_lines, pair.planted_id)
    assert await until(pair.named)
    plant.take_out()
    await until(lambda: _answers(pair, SHOWN))


@pytest.mark.parametrize("place", ["engine.log.tails:tail", "projections.live.tournament:fold"])
async def test_a_defect_in_what_another_process_appended_is_met_by_nobody_else(
    pair: Pair, peer: Service, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    async with pair.service.desk.live_pool.pinned(pair.planted_id):
        pass
    peers = peer.client(pair.planted.client.tournament, pair.planted.client.token)
    form = {"participants_delta": deltas((pair.planted.ids[0], pair.planted.unity_id, 1))}
    assert (await peers.put(f"{pair.planted.path}/add.json", form)).status == 200
    plant = Plant(monkeypatch, place, pair.concerns())
    async with asyncio.timeout(GUARD_SECONDS):
        answers, *_ = await asyncio.gather(
            asyncio.gather(*(pair.ask(SHOWN, pair.planted) for _ in range(5))),
            pair.the_other_is_well(),
        )
        assert {answer.status for answer in answers} == {503}
        await pair.the_other_is_well()
        assert plant.met
        plant.take_out()
        await until(lambda: _answers(pair, SHOWN))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", STREAM_PLANTS)
async def test_a_defect_while_streaming_ends_the_streams_of_its_tournament_alone(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    async with listening(pair.service, pair.planted) as planted, listening(pair.service, pair.other) as other:
        await until(lambda: planted.is_current and other.is_current)
        plant = Plant(monkeypatch, STREAM_PLANTS[name], pair.concerns())
        async with asyncio.timeout(GUARD_SECONDS):
            if name != "making a live current":
                await pair.ask(ADD, pair.planted)
            await until(lambda: planted.has_ended)
            assert plant.met
            assert await until(pair.named)
            for _ in range(3):
                told = other.told
                await pair.the_other_is_well()
                await until(lambda told=told: other.told > told)
            assert not other.has_ended
            plant.take_out()
            await until(lambda: _answers(pair, ADD))
            async with listening(pair.service, pair.planted) as again:
                await until(lambda: again.is_current)


@pytest.mark.parametrize(
    ("place", "ask"),
    [
        ("api.stream.frames:caught_up", None),
        ("api.stream.listeners:Listener._send", ADD),
        ("api.stream.frames:reset", Ask("PUT", "rankings/{ranking}/visibility.json", {"hidden": "true"})),
    ],
)
async def test_an_exception_in_one_stream_ends_it_alone(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, log_lines: BytesIO, place: str, ask: Ask | None
) -> None:
    def is_of_the_public(value: object) -> bool:
        return value is PUBLIC_LOG or (isinstance(value, Listener) and value._asked.streamed is PUBLIC_LOG)

    season = pair.planted
    assert (await season.client.put("publication.json", {"published": "true"})).status == 200
    async with going_on(pair, log_lines) as failed:
        plant = Plant(monkeypatch, place, is_of_the_public)
        if ask is not None:
            plant.take_out()
        async with listening(pair.service, season, "/board/{slug}/events") as heard:
            if ask is not None:
                await until(lambda: heard.is_current)
                plant.put_in()
                assert (await pair.ask(ask, season)).status == 200
            await until(lambda: heard.has_ended)
            failed.append(heard)
        assert plant.met == 1


class Listened:
    """A stream as its client sees it. `told`: how many lines have come."""

    def __init__(self) -> None:
        self.told = 0
        self.is_current = self.has_ended = False


@asynccontextmanager
async def listening(
    service: Service, season: Season, path: str = "/tournament/{slug}/events"
) -> AsyncIterator[Listened]:
    heard = Listened()

    async def listen() -> None:
        headers = {"Authorization": f"Bearer {season.client.token}", "Accept": "application/x-ndjson"}
        url = service.url + path.format(slug=season.client.tournament)
        async with ClientSession() as session, session.get(url, headers=headers) as answer:
            assert answer.status == 200
            async for line in answer.content:
                heard.told += 1
                heard.is_current = heard.is_current or b"caught-up" in line
        heard.has_ended = True

    task = asyncio.create_task(listen())
    try:
        yield heard
    finally:
        task.cancel()
        await asyncio.wait([task])


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "place",
    [
        "api.webhooks.deliverer:message_of",
        "api.webhooks.webhooks:next_delivery",
        "engine.log.undecoded:stored",
        "api.webhooks.webhooks:move_on",
    ],
)
async def test_a_defect_while_delivering_holds_up_its_webhook_alone(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    plant = Plant(monkeypatch, place, pair.concerns())
    async with receiver_on() as planted, receiver_on() as other:
        async with pair.service.database.connection() as connection:
            for receiver, tournament_id in (planted, pair.planted_id), (other, pair.other_id):
                await webhooks.add_webhook(
                    connection, tournament_id, receiver.url, kinds=None, allows_private=True, after=None
                )
        async with delivering(pair.service.database):
            for season in pair.planted, pair.other:
                await pair.ask(ADD, season)
            await Worker(pair.service.database).catch_up()  # webhooks are told of what the tables show
            await until(lambda: other.got and plant.met)
            assert await until(pair.named)
            count = len(other.got)
            await pair.ask(ADD, pair.other)
            await Worker(pair.service.database).catch_up()
            await until(lambda: len(other.got) > count)
            assert plant.met <= 2  # it rests before it is tried again


TABLE_PLANTS: Final = (
    "projections.tables.worker:fold",
    "projections.tables.tables:touch",
    "projections.tables.tables:save",
    "projections.tables.tables:load_boards",
    "projections.tables.snapshots:is_due",
    "projections.tables.tables:advance",
)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("place", TABLE_PLANTS)
async def test_a_defect_in_the_tables_of_one_tournament_holds_up_these_alone(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, log_lines: BytesIO, place: str
) -> None:
    await Worker(pair.service.database).catch_up()
    plant = Plant(monkeypatch, place, pair.concerns())
    worker = asyncio.create_task(Worker(pair.service.database).run())
    try:
        for season in pair.planted, pair.other:
            assert (await pair.ask(ADD, season)).status == 200
        await until(lambda: _tables_are_current(pair.owner, pair.other_id))
        await until(lambda: logged(log_lines, pair.planted_id))
        assert plant.met
        assert await until(pair.named)
        assert not await _tables_are_current(pair.owner, pair.planted_id)
        await pair.ask(ADD, pair.other)
        await until(lambda: _tables_are_current(pair.owner, pair.other_id))
        plant.take_out()
        await pair.owner.execute("UPDATE stopped SET stopped_at = stopped_at - interval '1 minute'")
        await until(lambda: _tables_are_current(pair.owner, pair.planted_id))
        assert not worker.done()
    finally:
        worker.cancel()
        await asyncio.wait([worker])


async def _tables_are_current(owner: asyncpg.Connection, tournament_id: TournamentId) -> bool:
    return bool(
        await owner.fetchval(
            "SELECT c.sequence = h.sequence FROM checkpoint AS c JOIN head AS h USING (tournament_id) "
            "WHERE tournament_id = $1",
            tournament_id,
        )
    )


async def test_a_tournament_that_cannot_be_verified_does_not_hold_up_the_others(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, log_lines: BytesIO
) -> None:
    plant = Plant(
        monkeypatch,
        "projections.verification.continuous:verification",
        lambda value: getattr(value, "tournament_id", None) == pair.planted_id,
    )
    stop = asyncio.Event()
    verifying = asyncio.create_task(verify_continuously(pair.service.database, Plan(), share=1.0, stop=stop))

    def verified(season: Season) -> int:
        told = [json.loads(line) for line in log_lines.getvalue().splitlines()]
        slug = season.client.tournament
        return len([line for line in told if line["event"] == "tournament_verified" and line["tournament"] == slug])

    await until(lambda: plant.met >= 2)
    assert verified(pair.other)
    assert not verified(pair.planted)
    assert await until(pair.named)
    plant.take_out()
    await until(lambda: verified(pair.planted))
    stop.set()
    assert await verifying >= 2


async def test_a_verification_of_all_says_which_tournament_it_could_not_verify(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant = Plant(
        monkeypatch,
        "projections.verification.all_tournaments:verification",
        lambda value: getattr(value, "tournament_id", None) == pair.planted_id,
    )
    report = await verify_all(
        pair.service.database, Plan(), on_difference=lambda _: None, on_events=lambda _done, _all: None
    )
    assert plant.met
    (found,) = report.differences
    assert found.tournament == pair.planted.client.tournament
    assert "Planted" in found.message
    assert {head.slug for head in report.heads if head.events} == {pair.other.client.tournament}


# ── Logs that no service would have written ─────────────────────────────────────────────────────────────

BAD_EVENTS: Final = {
    "a circle of parents": [
        ("CompetitorChanged", '{{"competitor_id":{first},"parent_id":{second}}}'),
        ("CompetitorChanged", '{{"competitor_id":{second},"parent_id":{first}}}'),
    ],
    "a competitor below itself": [("CompetitorChanged", '{{"competitor_id":{first},"parent_id":{first}}}')],
    "a parent that is not there": [("CompetitorChanged", '{{"competitor_id":{first},"parent_id":999999999}}')],
    "an unknown competitor in a list": [
        ("ParticipantsChanged", '{{"ranking_id":{ranking},"added":[999999999],"removed":[]}}')
    ],
    "an unknown participant and winner": [
        (
            "CompetitionAdded",
            '{{"competition_id":888888888,"group_id":1,"participants":[999999999],"winner_id":777777777}}',
        )
    ],
    "a group beyond all numbers": [
        ("CompetitionAdded", '{{"competition_id":888888888,"group_id":1180591620717411303424,"participants":[]}}')
    ],
    "half of a surrogate pair": [("Nonsense", '{{"name":"\\ud800"}}')],
    "an odd colour": [("CompetitorChanged", '{{"competitor_id":{first},"color":"red}}</style>"}}')],
    "the id 0": [("CompetitorRegistered", '{{"competitor_id":0,"name":"Zero"}}')],
}


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", BAD_EVENTS)
async def test_a_log_that_no_service_would_have_written_kills_and_hangs_nothing(pair: Pair, name: str) -> None:
    season = pair.planted
    words = {"first": season.ids[0], "second": season.ids[1], "ranking": season.ranking_id}
    for kind, body in BAD_EVENTS[name]:
        await append_text(pair.owner, pair.planted_id, kind, body.format_map(words), structural=True)
    worker = asyncio.create_task(Worker(pair.service.database).run())
    try:
        async with asyncio.timeout(60):
            for _ in range(2):
                for ask in (MOVE, ADD, CHANGE, SHOWN, COMPETITORS, STANDINGS, CLASSIFICATION, HISTORY, PREVIEW, VOID):
                    answer, _ = await asyncio.gather(pair.ask(ask, season), pair.ask(SHOWN, pair.other))
                    assert answer.status in (200, 404, 409, 422, 500, 503), (ask, answer.body)
                await pair.the_other_is_well()
            await until(lambda: _tables_are_current(pair.owner, pair.other_id))
        assert not worker.done()
    finally:
        worker.cancel()
        await asyncio.wait([worker])


async def test_a_change_of_a_parent_names_the_circle_that_it_meets(pair: Pair, log_lines: BytesIO) -> None:
    first, second, third = pair.planted.ids
    for child, parent in (first, second), (second, first):
        body = f'{{"competitor_id":{child},"parent_id":{parent}}}'
        await append_text(pair.owner, pair.planted_id, "CompetitorChanged", body, structural=True)
    async with asyncio.timeout(60):
        answer = await pair.planted.client.put(f"competitors/{third}.json", {"parent": first})
    assert answer.status == 500
    assert any(f"{first} → {second} → {first}" in line["error"] for line in logged(log_lines, pair.planted_id))
    await pair.the_other_is_well()


async def test_a_time_beyond_all_years_stops_nothing_but_its_tournament(pair: Pair) -> None:
    async with unguarded(pair.owner):
        await pair.owner.execute(
            "UPDATE block SET recorded_at = '20000-01-01' WHERE tournament_id = $1", pair.planted_id
        )
    async with pair.service.desk.live_pool.pinned(pair.planted_id) as live:
        pair.service.desk.live_pool.drop(live)
    worker = asyncio.create_task(Worker(pair.service.database).run())
    try:
        async with asyncio.timeout(GUARD_SECONDS), listening(pair.service, pair.other) as other:
            for ask in (SHOWN, ADD, HISTORY, COMPETITORS):
                assert (await pair.ask(ask, pair.planted)).status in (200, 500, 503)
            await pair.the_other_is_well()
            await until(lambda: other.is_current)
            await until(lambda: _tables_are_current(pair.owner, pair.other_id))
        assert not worker.done()
    finally:
        worker.cancel()
        await asyncio.wait([worker])
