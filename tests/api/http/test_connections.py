"""Connections that misbehave: each is ended in the time that is named, and those that behave notice nothing.

The limits of seconds are shortened to what a test can wait for; that they are what they are called is asserted last.
"""

import asyncio
import gc
import json
import re
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, suppress
from io import BytesIO
from typing import Any, Final

import pytest
import uvloop
from aiohttp.streams import StreamReader
from prometheus_client import REGISTRY
from yarl import URL

from api.http import connections
from api.http.request import HttpRequest
from engine.process import collector
from tests.api.asking import posting
from tests.bounds import Bounds
from tests.desks import until
from tests.service import Client, Service, sent_raw, serve

SOON: Final = 0.3
PATIENCE_SECONDS: Final = 60.0


@pytest.fixture(autouse=True)
def _hurried(bounds: Bounds) -> None:
    bounds(HEAD_SECONDS_MAX=SOON, UNREAD_SECONDS_MAX=SOON, LINGER_SECONDS_MAX=SOON, BODY_SECONDS_MAX=SOON)
    bounds(CONNECTION_WATCH_SECONDS=0.02)


class Raw:
    """A connection on which anything can be sent."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        with suppress(ConnectionError):
            await self.writer.drain()

    async def answer(self) -> tuple[int, Any]:
        """Status and JSON of the next one."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            head = await self.reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"(?i)\r\ncontent-length: (\d+)", head)
            assert length
            text = await self.reader.readexactly(int(length[1]))
        return int(head.split()[1]), json.loads(text)

    async def rest(self) -> bytes:
        """What comes until the service closes it."""
        received = b""
        async with asyncio.timeout(PATIENCE_SECONDS):
            with suppress(ConnectionError):
                while piece := await self.reader.read(65_536):
                    received += piece
        return received

    async def drip(self, data: bytes) -> tuple[int, Any]:
        """Sends one byte after the other, slowly, until there is an answer."""
        answering = asyncio.create_task(self.answer())
        for n in range(len(data)):
            await self.send(data[n : n + 1])
            await asyncio.wait([answering], timeout=SOON / 10)
            if answering.done():
                return await answering
        raise AssertionError("all of it was taken")


@asynccontextmanager
async def connected(service: Service) -> AsyncIterator[Raw]:
    url = URL(service.url)
    reader, writer = await asyncio.open_connection(url.host, url.port)
    try:
        yield Raw(reader, writer)
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


GET = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"


def ended(why: str) -> float:
    return REGISTRY.get_sample_value("tallybook_connections_ended_total", {"why": why}) or 0.0


# ── Slow clients ────────────────────────────────────────────────────────────────────────────────────────


async def test_a_head_that_comes_slowly_is_408_and_closed(service: Service, client: Client) -> None:
    async with connected(service) as slow:
        status, answer = await slow.drip(posting(client, "Content-Length: 8") * 10)
        assert (status, answer["status"], answer["errors"]) == (408, 408, [])
        assert await slow.rest() == b""
    assert (await client.get("rankings.json")).status == 200


async def test_a_later_head_is_not_waited_for_longer_than_the_first(service: Service) -> None:
    async with connected(service) as slow:
        for _ in range(2):
            await slow.send(GET)
            assert (await slow.answer())[0] == 200
        assert (await slow.drip(GET * 10))[0] == 408


async def test_a_silent_connection_is_not_answered(service: Service) -> None:
    before = ended("silent")
    async with connected(service) as silent:
        assert await silent.rest() == b""
    assert ended("silent") == before + 1


async def test_a_connection_that_has_asked_may_be_idle_for_longer(service: Service) -> None:
    async with connected(service) as idle, connected(service) as silent:
        await idle.send(GET)
        assert (await idle.answer())[0] == 200
        assert await silent.rest() == b""  # by now a head would have been too slow
        await idle.send(GET)
        assert (await idle.answer())[0] == 200


async def test_an_idle_connection_is_closed_but_not_during_a_request(
    service: Service, client: Client, bounds: Bounds
) -> None:
    bounds(BODY_SECONDS_MAX=PATIENCE_SECONDS)
    async with connected(service) as idle, connected(service) as busy:
        await busy.send(posting(client, "Content-Length: 8") + b"delta")
        await idle.send(GET)
        assert (await idle.answer())[0] == 200
        bounds(KEEPALIVE_SECONDS=0.0)
        assert await idle.rest() == b""
        bounds(KEEPALIVE_SECONDS=PATIENCE_SECONDS)
        await busy.send(b"s=1")
        assert (await busy.answer())[0] == 422


async def test_a_body_that_comes_slowly_is_408_and_closed(service: Service, client: Client) -> None:
    for lines, sent in ((("Content-Length: 800",), b"x"), (("Transfer-Encoding: chunked",), b"1\r\nx\r\n")):
        async with connected(service) as slow:
            await slow.send(posting(client, *lines))
            assert (await slow.drip(sent * 800))[0] == 408
            assert await slow.rest() == b""


async def test_a_slow_body_of_what_is_refused_is_not_waited_for(service: Service, client: Client) -> None:
    nobody = service.client(client.tournament, "nobody")
    async with connected(service) as slow:
        await slow.send(posting(nobody, "Transfer-Encoding: chunked") + b"1\r\nx\r\n")
        assert (await slow.answer())[0] == 401
        assert await slow.rest() == b""


async def test_what_follows_a_small_refused_body_is_answered_on_the_same_connection(
    service: Service, client: Client
) -> None:
    nobody = service.client(client.tournament, "nobody")
    async with connected(service) as split:
        await split.send(posting(nobody, "Content-Length: 8"))
        assert (await split.answer())[0] == 401
        await split.send(b"name=Ada" + posting(client, "Content-Length: 8") + b"name=Ada")
        assert (await split.answer())[0] == 200


def kept() -> bool:
    """Whether there is a body in memory that has failed; to be asked while no garbage is collected."""
    readers = [one for one in gc.get_objects() if type(one) is StreamReader]
    return any(
        one._exception and one.total_bytes and isinstance(one._protocol, connections.Connection) for one in readers
    )


async def test_a_body_that_breaks_off_is_no_defect_and_is_not_kept(
    service: Service, client: Client, log_lines: BytesIO
) -> None:
    gc.collect()
    gc.disable()
    try:
        for lines, sent in (
            (("Content-Length: 900000",), b"a" * 500_000),
            (("Transfer-Encoding: chunked",), b"1\r\na\r\nx"),
        ):
            async with connected(service) as gone:
                await gone.send(posting(client, *lines))
                assert (await client.get("rankings.json")).status == 200
                await gone.send(sent)
                assert (await client.get("rankings.json")).status == 200
        async with asyncio.timeout(PATIENCE_SECONDS):
            while log_lines.getvalue().count(b'"status":400') < 2 or kept():
                await client.get("rankings.json")
    finally:
        gc.enable()
    assert b"request_failed" not in log_lines.getvalue()
    assert b'"status":500' not in log_lines.getvalue()


async def test_more_bodies_than_there_is_room_for_are_503(service: Service, client: Client, bounds: Bounds) -> None:
    bounds(BODY_SECONDS_MAX=PATIENCE_SECONDS, AWAITED_BYTES_MAX=1_000)
    async with connected(service) as first, connected(service) as second:
        await first.send(posting(client, "Content-Length: 600"))
        assert (await client.get("rankings.json")).status == 200
        await second.send(posting(client, "Content-Length: 401"))
        assert (await second.answer())[0] == 503
        assert (await client.post("competitors.json", {"name": "Ada"})).status == 200  # which is here already
        await first.send(b"name=" + b"x" * 595)
        assert (await first.answer())[0] == 422
    async with connected(service) as third:
        await third.send(posting(client, "Content-Length: 1000"))
        assert (await client.get("rankings.json")).status == 200
        await third.send(b"name=Ada&color=c0ffee&tags=" + b"x" * 200 + b"&parent=" + b"1" * 765)
        assert (await third.answer())[0] == 422


async def test_a_client_that_waits_for_continue_gets_it_only_if_its_body_is_wanted(
    service: Service, client: Client
) -> None:
    nobody = service.client(client.tournament, "nobody")
    for asking, length, status in ((nobody, 8, 401), (client, 2**40, 413)):
        async with connected(service) as waiting:
            await waiting.send(posting(asking, f"Content-Length: {length}", "Expect: 100-continue"))
            assert (await waiting.answer())[0] == status
            assert await waiting.rest() == b""


async def register_heavy(client: Client) -> None:
    """Registers a competitor whose list takes 25 KB."""
    tags = ",".join(f"{n:03}" + "x" * 252 for n in range(100))
    assert (await client.post("competitors.json", {"name": "Ada", "tags": tags})).status == 200


@pytest.mark.long
async def test_a_client_that_does_not_read_is_hung_up_on_and_others_are_served_meanwhile(
    service: Service, client: Client
) -> None:
    await register_heavy(client)
    large = await client.get("competitors.json")
    times = 60_000_000 // len(large.body)
    request = (
        f"GET /tournament/{client.tournament}/competitors.json HTTP/1.1\r\nHost: a\r\n"
        f"Authorization: Bearer {client.token}\r\n\r\n"
    )
    before = ended("unread")
    url = URL(service.url)
    with socket.create_connection((url.host, url.port)) as deaf:
        deaf.setblocking(False)
        flood = memoryview(request.encode() * times)
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(PATIENCE_SECONDS * 4):
            sending = asyncio.create_task(loop.sock_sendall(deaf, flood))
            while ended("unread") == before:
                assert (await client.get("rankings.json")).status == 200
            with suppress(ConnectionError):
                await sending


async def test_a_slow_reader_gets_all_of_it_in_the_end(service: Service, client: Client, bounds: Bounds) -> None:
    bounds(UNREAD_SECONDS_MAX=PATIENCE_SECONDS)
    await register_heavy(client)
    request = (
        f"GET /tournament/{client.tournament}/competitors.json HTTP/1.1\r\nHost: a\r\n"
        f"Authorization: Bearer {client.token}\r\n\r\n"
    )
    async with connected(service) as late:
        await late.send(request.encode() * 400)
        assert (await client.get("rankings.json")).status == 200
        answers = [await late.answer() for _ in range(400)]
    assert {status for status, _ in answers} == {200}


# ── Floods ──────────────────────────────────────────────────────────────────────────────────────────────

FLOODS: Final = {
    "a target that is too long": (b"GET /" + b"a" * 8_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n", 414),
    "a header that is too long": (b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"a" * 8_191 + b"\r\n\r\n", 431),
    "a header whose name is too long": (b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X" * 8_191 + b": a\r\n\r\n", 431),
    "129 headers": (b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X: a\r\n" * 128 + b"\r\n", 431),
    "headers without end": (b"GET / HTTP/1.1\r\n" + b"X: a\r\n" * 500_000, 431),
    "line ends without end": (b"\r\n" * 1_000_000, 431),
}
FITTING: Final = {
    "a target": (b"GET /" + b"a" * 7_999 + b" HTTP/1.1\r\nHost: a\r\n\r\n", 404),
    "a header": (b"GET /healthz HTTP/1.1\r\nHost: a\r\nX: " + b"a" * 8_190 + b"\r\n\r\n", 200),
    "128 headers": (b"GET /healthz HTTP/1.1\r\nHost: a\r\n" + b"X: a\r\n" * 127 + b"\r\n", 200),
}


async def test_floods_of_headers_are_answered_and_closed(
    service: Service, client: Client, subtests: pytest.Subtests
) -> None:
    for name, (flood, status) in FLOODS.items():
        with subtests.test(name):
            async with connected(service) as raw:
                await raw.send(flood)
                answered, envelope = await raw.answer()
                assert (answered, envelope["status"]) == (status, status)
                assert await raw.rest() == b""
            assert (await client.get("rankings.json")).status == 200


async def test_the_limits_themselves_fit(service: Service, subtests: pytest.Subtests) -> None:
    for name, (fitting, status) in FITTING.items():
        with subtests.test(name):
            assert (await sent_raw(service, fitting) or (0,))[0] == status


async def test_a_head_that_grows_piece_by_piece_is_bounded_as_well(service: Service) -> None:
    async with connected(service) as raw:
        await raw.send(b"GET / HTTP/1.1\r\nHost: a\r\n")
        for n in range(64):
            await raw.send(b"X-%d: " % n + b"a" * 1_024 + b"\r\n")
        assert (await raw.answer())[0] == 431


async def test_10_000_pipelined_requests_are_answered_one_after_the_other(service: Service, client: Client) -> None:
    async with connected(service) as flood:
        sending = asyncio.create_task(flood.send(GET * 10_000))
        statuses = [(await flood.answer())[0] for _ in range(10_000)]
        await sending
    assert statuses == [200] * 10_000
    assert (await client.get("rankings.json")).status == 200


@pytest.mark.parametrize("status", [200, 401])
async def test_pipelined_requests_are_answered_after_one_whose_body_came_apart(
    service: Service, client: Client, status: int
) -> None:
    """The parser stops at 32 requests that wait, and had counted one too many."""
    head = posting(client, "Content-Length: 8", "Expect: 100-continue")
    async with connected(service) as raw:
        for gets in (0, 40):
            await raw.send(head if status == 200 else head.replace(b"Bearer ", b"Bearer no"))
            if status == 200:
                await raw.reader.readexactly(len(b"HTTP/1.1 100 Continue\r\n\r\n"))
            await raw.send(b"name=Eve" + GET * gets)
            statuses = [(await raw.answer())[0] for _ in range(1 + gets)]
            assert statuses == [status] + [200] * gets
        await raw.send(GET * 40)
        assert [(await raw.answer())[0] for _ in range(40)] == [200] * 40


async def test_a_closed_connection_ends_although_its_last_bytes_are_not_read(
    service: Service, monkeypatch: pytest.MonkeyPatch, bounds: Bounds
) -> None:
    """So few that it was not among those that do not read."""
    accepted: list[connections.Connection] = []
    made = connections.Connection.connection_made

    def connection_made(connection: connections.Connection, transport: asyncio.BaseTransport) -> None:
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)  # the least there is
        made(connection, transport)
        accepted.append(connection)

    monkeypatch.setattr(connections.Connection, "connection_made", connection_made)
    bounds(UNREAD_SECONDS_MAX=0.05)
    with socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        deaf.setblocking(False)
        loop, url = asyncio.get_running_loop(), URL(service.url)
        await loop.sock_connect(deaf, (url.host, url.port))
        (connection,) = await until(lambda: accepted)
        transport = connection.transport
        assert transport is not None
        while not transport.get_write_buffer_size():
            before = connection.head_waiter
            await loop.sock_sendall(deaf, GET)
            await until(lambda before=before: connection.head_waiter not in (None, before))  # type: ignore[misc]
        assert connection not in connection.outgoing._unread
        await loop.sock_sendall(deaf, GET.replace(b"Host", b"Connection: close\r\nHost"))
        await until(lambda: connection not in connection._connections.connections)


async def test_a_client_that_sends_without_end_is_hung_up_on(service: Service, client: Client) -> None:
    for lines in (("Content-Length: 10000000000",), ("Transfer-Encoding: chunked",)):
        async with connected(service) as endless:
            await endless.send(posting(client, *lines))
            chunk = b"ffff\r\n" + b"x" * 0xFFFF + b"\r\n"
            taken = 0
            with suppress(ConnectionError):
                while taken < 100 * connections.LINGER_BYTES_MAX:
                    endless.writer.write(chunk)
                    await endless.writer.drain()
                    taken += len(chunk)
            # What lies on the way is not ours to bound: the buffers of two sockets.
            assert taken < 10 * connections.LINGER_BYTES_MAX
        assert (await client.get("rankings.json")).status == 200


# ── What many cost ──────────────────────────────────────────────────────────────────────────────────────


async def test_what_was_answered_is_not_kept_until_the_next_request(service: Service) -> None:
    async with connected(service) as idle:
        await idle.send(GET.replace(b"/healthz", b"/healthz?idle"))
        assert (await idle.answer())[0] == 200
        requests = [one for one in gc.get_objects() if type(one) is HttpRequest]
        assert "/healthz?idle" not in [str(one.url) for one in requests]


async def test_the_garbage_collector_waits_for_more_objects_while_there_are_more_connections(service: Service) -> None:
    async with AsyncExitStack() as many:
        for _ in range(50):
            await many.enter_async_context(connected(service))
        more = collector.YOUNG_OBJECTS + 50 * collector.YOUNG_OBJECTS_PER_CONNECTION
        await until(lambda: gc.get_threshold()[0] == more)
    await until(lambda: gc.get_threshold()[0] == collector.YOUNG_OBJECTS)


# ── Too many ────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_connection_that_has_not_asked_gives_way_to_a_new_one(dsn: str) -> None:
    async with serve(dsn, connections=5) as small:
        before = ended("crowded_out")
        async with connected(small) as good:
            await good.send(GET)
            assert (await good.answer())[0] == 200
            idle = [await stack_connected(small) for _ in range(30)]
            for _ in range(3):
                async with connected(small) as new:
                    await new.send(GET)
                    assert (await new.answer())[0] == 200
            await good.send(GET)
            assert (await good.answer())[0] == 200
            assert ended("crowded_out") > before
            for raw in idle:
                raw.writer.close()


async def test_a_thousand_who_come_at_once_are_all_let_in_at_once(service: Service) -> None:
    """As when a process has started again, and all who listened come back."""
    url = URL(service.url)
    with ExitStack() as waiting:
        for _ in range(1_000):  # and nobody accepts any meanwhile: nothing is awaited
            waiting.enter_context(socket.create_connection((url.host or "", url.port or 0), timeout=SOON))


def test_a_request_sent_before_its_connection_was_looked_at_counts(dsn: str) -> None:
    """uvloop hands over what lies on a new connection before the task that answers it has begun."""

    async def asked() -> None:
        async with serve(dsn, connections=1) as small:
            url = URL(small.url)
            with socket.create_connection((url.host or "", url.port or 0), timeout=SOON) as early:
                early.sendall(GET)  # nothing has been awaited: it lies there when the connection is accepted
                early.setblocking(False)
                raw = Raw(*await asyncio.open_connection(sock=early))
                assert (await raw.answer())[0] == 200
                before = ended("refused")
                assert await sent_raw(small, GET) is None
                assert ended("refused") == before + 1
                await raw.send(GET)
                assert (await raw.answer())[0] == 200
                raw.writer.close()
                await raw.writer.wait_closed()

    uvloop.run(asked())


async def stack_connected(service: Service) -> Raw:
    url = URL(service.url)
    return Raw(*await asyncio.open_connection(url.host, url.port))


async def test_where_all_have_asked_there_is_no_room(dsn: str) -> None:
    async with serve(dsn, connections=3) as small:
        asked = [await stack_connected(small) for _ in range(3)]
        for raw in asked:
            await raw.send(GET)
            assert (await raw.answer())[0] == 200
        before = ended("refused")
        assert await sent_raw(small, GET) is None
        assert ended("refused") == before + 1
        for raw in asked:
            await raw.send(GET)
            assert (await raw.answer())[0] == 200
            raw.writer.close()
        async with asyncio.timeout(PATIENCE_SECONDS):
            while await sent_raw(small, GET) is None:
                pass
