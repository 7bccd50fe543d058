"""A request whose head is known is read as aiohttp's parser reads it, however it comes in."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from socket import create_server
from typing import Final

from aiohttp.http import RawRequestMessage
from hypothesis import given
from hypothesis import strategies as st

from api.http import heads
from api.http.connections import Connection, Connections
from api.http.heads import HeadBytes, Heads
from api.http.outgoing import Outgoing
from api.http.reply import Reply
from api.http.request import HttpRequest
from engine.domain.errors import TallybookError
from engine.process.time_slices import TimeSlices
from tests.bounds import Bounds

TURNS: Final = 12
"""Of the event loop, in which a request that has come is answered."""
GET: Final = b"GET /one?a=1 HTTP/1.1\r\nHost: a\r\nAccept: b\r\n\r\n"
PUT: Final = b"PUT /one HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nX: y\r\n\r\na=1"
LONGER: Final = PUT.replace(b"3", b"12").replace(b"a=1", b"a=1234567890")
IN_CHUNKS: Final = PUT[:-3].replace(b"Content-Length: 3", b"Transfer-Encoding: chunked")
KEYED: Final = PUT.replace(b"X: y", b"X: y\r\nIdempotency-Key: k-1")
CHUNKS: Final = b"3\r\na=1\r\n0\r\n\r\n"
PIECES: Final = (
    GET,
    PUT,
    LONGER,
    PUT.replace(b"a=1", b"\r\n\r"),
    PUT.replace(b"C", b"c").replace(b"L", b"l"),
    PUT.replace(b"3\r\nX: y", b"3"),
    GET.replace(b"Accept: b", b"Content-Length: 0"),
    GET.replace(b"GET", b"HEAD"),
    GET.replace(b"Accept: b", b"Connection: close"),
    PUT.replace(b"X: y", b"Connection: close"),
    PUT.replace(b"/1.1", b"/1.0"),
    PUT.replace(b"X: y", b"Connection: upgrade\r\nUpgrade: websocket"),
    PUT.replace(b"X: y", b"Expect: 100-continue"),
    IN_CHUNKS + CHUNKS,
    b"\r\n" + GET,
    KEYED,
    KEYED.replace(b"k-1", b"k-22"),
    KEYED.replace(b"k-1", b"k-22").replace(b"X: y\r\n", b"").replace(b"Content-Length", b"content-length"),
    KEYED.replace(b"Idempotency-Key", b"idempotency-key"),
    KEYED.replace(b"X: y", b"Idempotency-Key: k-0"),
    KEYED.replace(b"X: y", b"idempotency-key:"),
    KEYED.replace(b"k-1", b""),
    KEYED.replace(b"k-1", b"\0"),
    KEYED.replace(b"k-1", b"k 1"),
    KEYED.replace(b"k-1", b"k" * 255),
    KEYED.replace(b"k-1", b"k" * 256),
    KEYED.replace(b"k-1", b"k" * 10_000),
    KEYED.replace(b"k-1", b"k-1\r\n 2"),
    GET.replace(b"Accept: b", b"Idempotency-Key: k-1"),
    GET.replace(b"Accept: b", b"Idempotency-Key: k-3"),
    GET.replace(b"Host: a", b"Idempotency-Key: k-1"),
    # Without their key and their length, these two are the same:
    PUT.replace(b"Content-Length: 3\r\nX: y", b"Idempotency-Key: k-1")[:-3],
    PUT.replace(b"Content-Length: 3\r\nX: y", b"Idempotency-Key: \r\nContent-Length: 3"),
    # What is no request, or is not whole:
    GET.replace(b"Host: a\r\n", b""),
    PUT.replace(b"3", b"03"),
    PUT.replace(b"3", b"+3"),
    PUT.replace(b"3", b""),
    PUT.replace(b"Content-Length: 3\r\n", b""),
    PUT.replace(b"X: y", b"Content-Length: 3"),
    PUT.replace(b"X: y", b"content-length: 4"),
    PUT.replace(b"X: y", b"Transfer-Encoding: chunked"),
    IN_CHUNKS,
    CHUNKS,
    GET.replace(b"\r", b""),
    GET[:9],
    GET[9:],
    GET[:-2],
    b"\r\n",
    PUT[:-1],
    PUT[:-3],
    PUT[-3:],
    GET + GET,
    PUT + GET[:9],
    PUT + PUT,
)


async def _turns() -> None:
    for _ in range(TURNS):
        await asyncio.sleep(0)


class _Server:
    """Answers each request at once, and notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[object] = []
        self.connections = Connections(self._answer, self._misread, Outgoing(TimeSlices(), bytes_max=1_000_000))

    async def _answer(self, request: HttpRequest) -> Reply:
        fields = [(name, value) for name, value in request.headers.items() if name.lower() != "content-length"]
        body = request.body if request.body is not None else await request.content.read()
        self.asked.append((request.method, request.target, request.version, fields, body))
        return Reply(b"{}")

    def _misread(self, request: HttpRequest, error: TallybookError) -> Reply:
        self.asked.append(type(error))
        reply = Reply(b"{}", code=400)
        reply.closing = reply.lingers = True
        return reply

    async def receive(self, *pieces: bytes) -> list[object]:
        """What it is asked over one connection, on which it receives these pieces one by one. None: the connection is
        closing after that piece."""
        self.asked = []
        with create_server(("127.0.0.1", 0)) as listener:
            server = await asyncio.get_running_loop().create_server(self.connections, sock=listener)
            _, writer = await asyncio.open_connection(*listener.getsockname())
            await _turns()
            (connection,) = self.connections.connections
            assert isinstance(connection, Connection)
            for piece in pieces:
                connection.data_received(piece)
                await _turns()
                if connection.transport is None or connection.transport.is_closing() or connection.ignores:
                    self.asked.append(None)
                    break
            writer.close()
            server.close()
            connection.force_close()
            await _turns()
        return self.asked


class _Forgetful(Heads):
    def _note(self, head: HeadBytes, message: RawRequestMessage) -> None:
        """Remembers none."""


@cache
def _heads() -> Heads:
    """Those of a server that has received each piece often."""

    async def receive() -> Heads:
        server = _Server()
        for piece in PIECES:
            await server.receive(piece, piece, piece)
        return server.connections.heads

    with ThreadPoolExecutor(1) as thread:  # because a test may run in an event loop
        return thread.submit(asyncio.run, receive()).result()


async def _asked(heads: Heads, pieces: list[bytes]) -> list[object]:
    server = _Server()
    server.connections.heads = heads
    return await server.receive(*pieces)


def _cut(pieces: list[bytes], at: list[int]) -> list[bytes]:
    """The same bytes in other pieces."""
    sent = b"".join(pieces)
    ends = sorted({n % (len(sent) + 1) for n in at} | {len(sent)})
    return [sent[start:end] for start, end in zip([0, *ends], ends, strict=False)]


@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=5), st.lists(st.integers(0, 400), max_size=3))
def test_a_known_head_changes_nothing(pieces: list[bytes], at: list[int]) -> None:
    pieces = _cut(pieces, at) if at else pieces
    assert asyncio.run(_asked(_heads(), pieces)) == asyncio.run(_asked(_Forgetful(), pieces))


async def test_a_known_head_changes_nothing_whatever_comes_before_it_and_after_it() -> None:
    for piece in PIECES:
        cut = [PUT, piece[:-4], piece[-4:], GET]
        for pieces in ([GET, piece, PUT], [GET, piece, CHUNKS], [piece, GET[9:], PUT], cut):
            assert await _asked(_heads(), pieces) == await _asked(_Forgetful(), pieces), pieces


def test_only_heads_after_which_the_connection_stays_open_are_remembered() -> None:
    known = _heads()._known.values()
    assert not any(message.should_close or message.upgrade or message.chunked for message in known)
    assert {(message.method, message.path) for message in known} >= {("PUT", "/one"), ("GET", "/one?a=1")}


async def test_a_head_with_another_key_is_the_same_head() -> None:
    server = _Server()
    asked = await server.receive(KEYED, *(KEYED.replace(b"k-1", b"k-%d" % n) for n in (2, 3, 4)))
    assert len(server.connections.heads._known) == 1
    assert [dict(request[3])["Idempotency-Key"] for request in asked if isinstance(request, tuple)] == [
        f"k-{n}" for n in (1, 2, 3, 4)
    ]


async def test_a_head_is_remembered_when_it_comes_again(bounds: Bounds) -> None:
    bounds(HEADS_KEPT_MAX=2, HEADS_NOTED_MAX=3)
    server = _Server()
    known = server.connections.heads._known

    async def receive(*pieces: bytes) -> set[str]:
        await server.receive(*pieces)
        return {message.path for message in known.values()}

    def to(path: bytes) -> bytes:
        return PUT.replace(b"/one", path)

    assert await receive(PUT) == set()
    assert await receive(PUT, LONGER) == {"/one"}
    assert await receive(to(b"/2"), to(b"/2"), to(b"/3")) == {"/one", "/2"}
    assert await receive(to(b"/3")) == {"/3"}, "the others gave way"
    assert await receive(*map(to, (b"/4", b"/5", b"/6", b"/7", b"/4"))) == {"/3"}, "too many came in between"
    large = to(b"/8").replace(b"X: y", b"X: " + b"y" * heads.HEAD_KEPT_BYTES_MAX)
    assert await receive(large, large, large) == {"/3"}
