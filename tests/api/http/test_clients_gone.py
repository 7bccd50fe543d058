"""Clients that go away in the middle of a request: nobody is there to be answered, and it is no defect."""

import asyncio
import logging
import socket
import struct
from collections.abc import Callable, Coroutine, Generator, Iterator
from contextlib import suppress
from functools import partial
from itertools import count
from typing import Any

import pytest
import structlog
import uvloop
from yarl import URL

from api.http.aiohttp_private import RequestHandler
from engine.domain.terms import OPERATOR
from engine.process.time_slices import TimeSlices
from tests.bounds import Bounds
from tests.desks import until
from tests.service import FORM, Client, Season, Service, deltas, make_token, play_season, serve, slug_of
from tests.shares import every
from tests.tournaments import open_new_tournament

_RESET = struct.pack("ii", 1, 0)


@pytest.mark.parametrize("how", ["reset", "end"])
async def test_a_client_that_is_cut_off_within_its_body_is_no_defect(
    service: Service, client: Client, how: str, capfd: pytest.CaptureFixture[str]
) -> None:
    url = URL(service.url)
    with structlog.testing.capture_logs() as lines:
        for _ in range(5):
            _, writer = await asyncio.open_connection(url.host, url.port)
            head = (
                f"POST /tournament/{client.tournament}/competitors.json HTTP/1.1\r\nHost: t\r\n"
                f"Authorization: Bearer {client.token}\r\nContent-Type: {FORM}\r\nContent-Length: 100\r\n\r\nname="
            )
            writer.write(head.encode())
            await writer.drain()
            await until(service_is_reading)
            if how == "reset":
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                writer.transport.abort()
            else:
                writer.close()
                with suppress(OSError):
                    await writer.wait_closed()
            await until(lambda: not service_is_reading())
        assert (await client.get("competitors.json")).status == 200
    assert [line for line in lines if line["event"] == "request_failed"] == []
    assert "Traceback" not in capfd.readouterr().err


def service_is_reading() -> bool:
    """Whether it waits for the rest of a body."""
    return any(_waits_in(task, "_read") for task in asyncio.all_tasks())


def _waits_in(task: asyncio.Task[Any], name: str) -> bool:
    coroutine: Any = task.get_coro()
    while coroutine is not None:
        if getattr(coroutine, "__name__", "") == name:
            return True
        coroutine = getattr(coroutine, "cr_await", None)
    return False


# ── At every await ──────────────────────────────────────────────────────────────────────────────────────

_SLEEPS = b"caught-up"
"""After this a stream awaits nothing until something happens."""
_Work = Coroutine[Any, Any, None]


class Leaving:
    """Steps through all that answers a client, and has it leave at one of its awaits: `at` counts them from 0. The
    service goes on only when it has noticed. `left`: whether it came to that."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.left = False
        self._at = self._seen = 0
        self._address: Any = None
        self._leave: Callable[[], None] = _stay
        self._under_way = 0
        patch.setattr(RequestHandler, "start", self._stepped(RequestHandler.start))

    def begin(self, address: object, at: int) -> None:
        """`address`: that of the client."""
        self.left, self._at, self._seen, self._address, self._leave = False, at, 0, address, _stay

    def may_leave(self, leave: Callable[[], None]) -> None:
        self._leave = leave

    @property
    def over(self) -> bool:
        """Whether nothing is done for the client any more."""
        return not self._under_way

    def _stepped(self, start: Callable[[RequestHandler], _Work]) -> Callable[[RequestHandler], _Work]:
        async def step(connection: RequestHandler) -> None:
            transport = connection.transport
            assert transport is not None
            if transport.get_extra_info("peername") != self._address:
                await start(connection)
                return
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)  # the least there is
            self._under_way += 1
            try:
                await _Steps(start(connection), partial(self._awaited, connection))
            finally:
                self._under_way -= 1

        return step

    def _awaited(self, connection: RequestHandler) -> Iterator[None]:
        if connection.head_waiter is not None:
            return  # no request is under way
        seen, self._seen = self._seen, self._seen + 1
        if seen == self._at:
            self.left = True
            while connection.transport is not None:
                self._leave()
                yield


def _stay() -> None:
    pass


class _Steps:
    """Awaits what `work` awaits, after what `before` yields at each of these times."""

    def __init__(self, work: _Work, before: Callable[[], Iterator[None]]) -> None:
        self._work = work
        self._before = before

    def __await__(self) -> Generator[Any, None, None]:
        thrown: BaseException | None = None
        while True:
            try:
                awaited = self._work.send(None) if thrown is None else self._work.throw(thrown)
            except StopIteration:
                return
            thrown = None
            try:
                yield from self._before()
                yield awaited
            except BaseException as error:  # noqa: BLE001 - it is for `work`, such as that of a timeout
                thrown = error


REFUSED = {"change that is refused": 422, "console": 401, "nothing there": 404, "no request": 400}
"""The status of those of `asked_for` that are not answered with 200."""


def asked_for(season: Season) -> dict[str, bytes]:
    """A request for each way in which answers are made and sent, by its name."""
    below, token = f"/tournament/{season.client.tournament}", season.client.token
    board = f"/board/{season.client.tournament}"

    def get(
        path: str, *headers: str, method: str = "GET", body: bytes = b"", closing: str = "Connection: close"
    ) -> bytes:
        lines = [f"{method} {path} HTTP/1.1", "Host: t", f"Authorization: Bearer {token}", closing, *headers]
        lines += [f"Content-Type: {FORM}", f"Content-Length: {len(body)}"] if body else []
        return "\r\n".join([*lines, "", ""]).encode() + body

    points = f"participants_delta={deltas((season.ids[0], season.unity_id, 1))}".encode()
    add = f"{below}/{season.path}/add.json"
    return {
        "short": get(f"{below}/{season.path}/standings.json"),
        "long": get(f"{below}/rankings.json"),
        "long, compressed": get(f"{below}/rankings.json", "Accept-Encoding: gzip"),
        "long, of HTTP/1.0": get(f"{below}/rankings.json").replace(b"HTTP/1.1", b"HTTP/1.0"),
        "several on one connection": get(f"{below}/rankings.json", closing="A: b") * 2 + get(f"{below}/rankings.json"),
        "head alone": get(f"{below}/rankings.json", method="HEAD"),
        "change": get(add, method="PUT", body=points),
        "change that is refused": get(add, method="PUT", body=b"participants_delta=[]"),
        "change whose body is waited for": get(add, "Expect: 100-continue", method="PUT", body=points),
        "past": get(f"{below}/{season.path}/standings.json?at_sequence=5"),
        "explanation": get(f"{below}/{season.path}/explain.json?competitor={season.ids[0]}&limit=2"),
        "stream": get(f"{below}/events"),
        "stream of an event source": get(f"{below}/events", "Accept: text/event-stream"),
        "stream to the public": get(f"{board}/events"),
        "page": get(board),
        "CSV": get(f"{board}/table.csv"),
        "picture": get(f"{board}/picture.png"),
        "documentation": get("/docs"),
        "console": get("/console"),
        "figures": get("/metrics"),
        "description": get("/openapi.json"),
        "nothing there": get("/nowhere"),
        "no request": b"nonsense\r\n\r\n",
    }


async def leaves_at_every_await(dsn: str, leaving: Leaving, step: int) -> dict[str, int]:
    """The number of awaits of each answer, as far as a client that leaves at every `step`-th of them can tell."""
    wrong: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: wrong.append(f"{context}"))
    times: dict[str, int] = {}
    async with serve(dsn, requests_per_second=None) as service:
        tournament_id = await open_new_tournament(service.database, actor=OPERATOR)
        client = service.client(await slug_of(service.database, tournament_id), await make_token(service.database))
        season = await play_season(client)
        assert (await client.put("publication.json", {"published": "true"})).status == 200
        for name, request in asked_for(season).items():
            for at in count(step=step):
                await add_point(season)
                if not await _leaves(URL(service.url), request, REFUSED.get(name, 200), leaving, at):
                    break
                times[name] = at + 1
            assert not wrong, name
        assert (await client.get("rankings.json")).status == 200
    assert not wrong
    return times


async def add_point(season: Season) -> None:
    """Has every answer be made again."""
    form = {"participants_delta": deltas((season.ids[0], season.unity_id, 1))}
    assert (await season.client.put(f"{season.path}/add.json", form)).status == 200


async def _leaves(url: URL, request: bytes, status: int, leaving: Leaving, at: int) -> bool:
    """Asks, reads, and leaves at that await; returns False if the answer came to its end before, or to a pause."""
    plug = socket.socket()
    plug.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    plug.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    plug.setblocking(False)
    plug.bind(("127.0.0.1", 0))
    leaving.begin(plug.getsockname(), at)
    await asyncio.get_running_loop().sock_connect(plug, (url.host, url.port))
    reader, writer = await asyncio.open_connection(sock=plug, limit=1_024)
    leaving.may_leave(writer.transport.abort)
    read = b""
    with suppress(ConnectionError):
        writer.write(request)
        while _SLEEPS not in read[-1_100:] and (piece := await reader.read(1_024)):
            read += piece
    left = leaving.left
    if not left:
        assert read.startswith(b"HTTP/1.1 %d " % status), read[:200]
    writer.transport.abort()
    await until(lambda: leaving.over)
    return left


def hurry(patch: pytest.MonkeyPatch) -> None:
    """Has every time slice be waited for, and be over after one step."""
    enter = TimeSlices.__aenter__
    begun: set[TimeSlices] = set()

    async def wait_and_enter(time_slices: TimeSlices) -> None:
        await asyncio.sleep(0)
        await enter(time_slices)
        begun.add(time_slices)

    def is_over(time_slices: TimeSlices) -> bool:
        if time_slices not in begun:
            return True
        begun.remove(time_slices)
        return False

    patch.setattr(TimeSlices, "__aenter__", wait_and_enter)
    patch.setattr(TimeSlices, "over", property(is_over))


@every(12)
@pytest.mark.parametrize("run", [uvloop.run, asyncio.run], ids=["uvloop", "asyncio"])
def test_a_client_that_leaves_at_any_await_is_no_defect(
    dsn: str,
    monkeypatch: pytest.MonkeyPatch,
    bounds: Bounds,
    caplog: pytest.LogCaptureFixture,
    run: Callable[..., Any],
    step: int,
) -> None:
    # What is sent in one go otherwise is sent in chunks, and each has to be waited for.
    bounds(LINES_AT_ONCE_MAX=-1)
    bounds(LINES_OF_CHUNK=2, LONG_BYTES=0, CHUNK_BYTES=300, WHOLE_BYTES_MAX=16_384, UNREAD_BYTES_MAX=0)
    hurry(monkeypatch)
    with structlog.testing.capture_logs() as lines:
        times = run(leaves_at_every_await(dsn, Leaving(monkeypatch), step))
    assert [line for line in lines if line["event"] == "request_failed"] == []
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []
    assert len(times) > 15
    of_many_awaits = ["long", "stream", "page", "CSV", "picture", "documentation"]
    assert min(times[name] for name in of_many_awaits) > max(0, 6 - step)
