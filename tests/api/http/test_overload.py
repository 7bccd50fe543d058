"""More requests than can be served in time: they are turned away cheaply, and nobody else notices.

A tournament is held up by a real lock of a foreign transaction. The bounds of time are so small that the third request
which waits for it is one too many.
"""

import asyncio
import json
import re
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import BytesIO
from typing import Final

import asyncpg
import pytest
import uvloop
from yarl import URL

from api.http.accepting import accepting
from engine.domain.terms import OPERATOR
from tests.api.visitor import CONSOLE, form_of, visiting
from tests.bounds import Bounds
from tests.desks import GUARD_SECONDS, HOLD_HEAD, holding, until
from tests.service import Client, Season, Service, slug_of
from tests.tournaments import open_new_tournament

WAITING: Final = 3
_TOURNAMENT_ID: Final = "SELECT tournament_id FROM tallybook.tournament WHERE slug = $1"


@pytest.fixture
async def crowded(
    service: Service, season: Season, dsn: str, owner: asyncpg.Connection, bounds: Bounds
) -> AsyncIterator[Client]:
    """A client of a tournament to which no more adds are taken. At the end those that were are served."""
    bounds(BLOCK_REQUESTS_MAX=1, WAITED_SECONDS_MAX=0.0, EXPECTED_SECONDS_MAX=0.0)
    client = season.client
    tournament_id = await owner.fetchval(_TOURNAMENT_ID, client.tournament)
    async with holding(dsn, HOLD_HEAD, tournament_id):
        taken = []
        for number in range(1, WAITING + 1):
            taken.append(asyncio.create_task(client.put(f"{season.path}/add.json", points(season))))
            await until(lambda number=number: len(service.desk._under_way) == number)  # type: ignore[misc]
        yield client
        bounds(WAITED_SECONDS_MAX=60.0)
    assert [answer.status for answer in await asyncio.gather(*taken)] == [200] * WAITING


@pytest.fixture
async def other(service: Service, season: Season) -> Client:
    """A client of another tournament, with the same token."""
    tournament_id = await open_new_tournament(service.database, actor=OPERATOR)
    return service.client(await slug_of(service.database, tournament_id), season.client.token)


def points(season: Season) -> dict[str, object]:
    unity = season.unity_id
    deltas = [{"competitor_id": season.ids[0], "unities": [{"unity_id": unity, "delta": 1}]}]
    return {"participants_delta": json.dumps(deltas)}


class Wire:
    """A connection of its own, on which bytes are sent as they are."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    def send(self, request: bytes) -> None:
        self._writer.write(request)

    async def answer(self, *, has_body: bool = True) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body of the next answer."""
        async with asyncio.timeout(GUARD_SECONDS):
            head = (await self._reader.readuntil(b"\r\n\r\n")).decode()
            headers = dict(re.findall(r"(?m)^([\w-]+): (.*?)\r?$", head))
            return int(head[9:12]), headers, await self._reader.readexactly(int(headers["Content-Length"]) * has_body)


@asynccontextmanager
async def wire(service: Service) -> AsyncIterator[Wire]:
    url = URL(service.url)
    reader, writer = await asyncio.open_connection(url.host, url.port)
    try:
        yield Wire(reader, writer)
    finally:
        writer.close()


def add(client: Client, season: Season, *lines: str, method: str = "PUT", body: str = "what is no form") -> bytes:
    head = [
        f"{method} /tournament/{client.tournament}/{season.path}/add.json HTTP/1.1",
        "Host: localhost",
        f"Authorization: Bearer {client.token}",
        f"Content-Length: {len(body)}",
        "Content-Type: application/x-www-form-urlencoded",
        *lines,
    ]
    return "\r\n".join([*head, "", body]).encode()


async def test_all_clients_turned_away_get_the_same_answer_and_no_body_is_read(
    service: Service, season: Season, crowded: Client
) -> None:
    async with wire(service) as one:
        for _ in range(3):  # by the docket, then at the door
            one.send(add(crowded, season))
            status, headers, body = await one.answer()
            assert status == 503
            assert json.loads(body).keys() == {"status", "message", "errors"}
            assert 1 <= int(headers["Retry-After"]) <= 10
            assert re.fullmatch("[0-9a-f]{16}", headers["X-Request-Id"])
            assert "Connection" not in headers


async def test_nobody_but_whom_the_crowd_concerns_is_turned_away(
    service: Service, season: Season, other: Client, crowded: Client
) -> None:
    for _ in range(2):
        assert (await crowded.put(f"{season.path}/add.json", points(season))).status == 503
    assert (await crowded.get("rankings.json")).status == 200
    assert (await crowded.get(f"{season.path}/add.json")).status == 405
    assert (await other.post("competitors.json", {"name": "Ada"})).status == 200
    async with visiting(service, crowded.token) as visitor:
        page = f"{CONSOLE}/tournament/{crowded.tournament}/competitors/import"
        form, action = form_of((await visitor.fill(page, {"csv": "name\nZoe"})).body.decode())
        assert (await visitor.post(action, form)).status == 503
    stranger = service.client(crowded.tournament, "tb_" + 36 * "x")
    assert (await stranger.put(f"{season.path}/add.json", points(season))).status == 401


async def test_a_crowd_that_is_gone_turns_nobody_away(service: Service, season: Season, crowded: Client) -> None:
    assert (await crowded.put(f"{season.path}/add.json", points(season))).status == 503
    service.desk.dockets.clear()  # as far as the door can see, nobody waits any more
    again = asyncio.create_task(crowded.put(f"{season.path}/add.json", points(season)))
    await until(lambda: len(service.desk._under_way) == WAITING + 1)
    again.cancel()


async def test_those_who_are_turned_away_are_counted_and_have_no_line_each(
    service: Service, season: Season, crowded: Client, log_lines: BytesIO
) -> None:
    before = await turned_away_so_far(crowded)
    for _ in range(5):
        assert (await crowded.put(f"{season.path}/add.json", points(season))).status == 503

    def lines(event: str) -> list[dict[str, int]]:
        said = [json.loads(line) for line in log_lines.getvalue().splitlines()]
        return [line for line in said if line["event"] == event]

    await until(lambda: sum(line["requests"] for line in lines("turned_away")) == 5)
    assert 503 not in [line["status"] for line in lines("request")]
    assert await turned_away_so_far(crowded) - before == 5


async def turned_away_so_far(client: Client) -> float:
    answer = await client.send("GET", "/metrics")
    found = re.search(r"^tallybook_turned_away_total (\S+)$", answer.body.decode(), re.MULTILINE)
    assert found
    return float(found[1])


async def test_a_request_that_the_ready_answer_does_not_fit_gets_its_own(
    service: Service, season: Season, crowded: Client
) -> None:
    async with wire(service) as one:
        one.send(add(crowded, season))
        assert (await one.answer())[0] == 503
        one.send(add(crowded, season, "Connection: close"))
        status, headers, _ = await one.answer()
        assert (status, headers["Connection"]) == (503, "close")
    async with wire(service) as one:
        unread = add(crowded, season, body=100_000 * "x")
        one.send(unread[:1_000])  # its rest would be taken for the next request
        status, headers, _ = await one.answer()
        assert (status, headers["Connection"]) == (503, "close")


async def test_of_many_who_come_back_at_once_none_is_read_before_its_time_except_those_behind_a_proxy(
    service: Service, season: Season, crowded: Client, bounds: Bounds
) -> None:
    bounds(HELD_FROM=0, HELD_SECONDS_MIN=3_600.0, HELD_SECONDS_MAX=3_600.0)
    async with wire(service) as eager, wire(service) as proxy:
        eager.send(add(crowded, season))
        status, headers, _ = await eager.answer()
        assert status == 503
        assert int(headers["Retry-After"]) > 1_000
        eager.send(add(crowded, season))
        again = asyncio.create_task(eager.answer())
        for _ in range(3):
            proxy.send(add(crowded, season, "X-Forwarded-For: 192.0.2.1"))
            assert (await proxy.answer())[0] == 503
        assert not again.done()
        again.cancel()


async def test_a_connection_that_was_held_is_read_again(
    service: Service, season: Season, crowded: Client, bounds: Bounds
) -> None:
    bounds(HELD_FROM=0, HELD_SECONDS_MIN=0.01)
    async with wire(service) as one:
        for _ in range(3):
            one.send(add(crowded, season))
            assert (await one.answer())[0] == 503


async def test_accepted_connections_notice_when_their_client_has_vanished() -> None:
    made = asyncio.get_running_loop().create_future()

    class Accepted(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            made.set_result(transport)

    listener = socket.create_server(("127.0.0.1", 0))
    async with accepting(listener, Accepted):
        with socket.create_connection(listener.getsockname()):
            transport = await made
            its_socket = transport.get_extra_info("socket")
            assert its_socket.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            transport.close()


def test_as_many_connections_as_wait_are_accepted_in_one_round_of_the_event_loop() -> None:
    made: list[asyncio.BaseTransport] = []

    class Accepted(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            made.append(transport)

    async def accept(listener: socket.socket) -> int:
        async with accepting(listener, Accepted):
            for _ in range(5):
                await asyncio.sleep(0)
            number = len(made)
            for transport in made:
                transport.close()
        return number

    with socket.create_server(("127.0.0.1", 0), backlog=100) as listener:
        clients = [socket.create_connection(listener.getsockname()) for _ in range(100)]
        assert uvloop.run(accept(listener)) == 100  # libuv alone accepts one in each round
        for client in clients:
            client.close()
