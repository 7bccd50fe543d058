"""A proxy between the service and PostgreSQL that loses connections at chosen moments.

It listens on a unix socket of its own and speaks just enough of PostgreSQL's protocol to know what it forwards: the
messages of one statement, from its first Bind to the Sync that ends its transaction, leave together. So a fault can
be put exactly before them, between them and the commit, or between the commit and its answer.
"""

import asyncio
import tempfile
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from enum import Enum, auto
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, quote, urlsplit, urlunsplit

import pytest

from engine.database import nodes
from engine.database.distribution import Node
from engine.domain.terms import TournamentId

APPEND: Final = "append_block"
HEADS: Final = "ORDER BY last_sequence DESC"
"""In the statement of the read barrier."""
TASK: Final = "proxy"
"""The name of all tasks of proxies."""
_SOCKET: Final = ".s.PGSQL.5432"
_FIELDS: Final = b"SFATAL\0VFATAL\0C57P01\0Mterminating connection due to administrator command\0\0"
_SHUTTING_DOWN: Final = b"E" + (len(_FIELDS) + 4).to_bytes(4, "big") + _FIELDS
"""What PostgreSQL sends before it ends a session that was told to."""
_PROTOCOL: Final = (3 << 16).to_bytes(4, "big")
_NAMES: Final = (b"user", b"database", b"client_encoding")


class Fault(Enum):
    """What becomes of a statement; but for the first, the client's connection is gone before there is an answer."""

    NONE = auto()
    BEFORE = auto()
    """The database never sees it."""
    UNFINISHED = auto()
    """The database sees it, but not the Sync that would have committed it."""
    AFTER = auto()
    """The database has committed it."""
    DISMISSED = auto()
    """The database has committed it; instead of its answer the client gets the error of a server that shuts down."""
    LATE = auto()
    """The database sees it when `release` is called, long after it was given up."""
    LATE_COMMIT = auto()
    """The database executes it, holding all locks, and commits when `release` is called."""


Meanwhile = Callable[[], Awaitable[object]]
"""What happens at the moment of a fault: before a statement passes, or before a connection is cut."""


async def _nothing() -> None:
    pass


class Proxy:
    """Use within `proxy`. `dsn` is for the client, who connects in `socket_directory`. `forwarded` counts the appends
    that were left to pass.

    While it is `refusing` it takes no new connections, and counts those it `refused`. While it is `dropping`, it
    leaves out of what new ones begin with all but names and encoding, as poolers do.
    """

    def __init__(self, dsn: str, socket_directory: str) -> None:
        parts = urlsplit(dsn)
        server = parse_qs(parts.query)
        self.socket_directory = socket_directory
        self.dsn = urlunsplit(parts._replace(query=f"host={quote(socket_directory)}&port=5432"))
        self.server_path = str(Path(server["host"][0], f".s.PGSQL.{server['port'][0]}"))
        self.forwarded = 0
        self.refusing = False
        self.refused = 0
        self.dropping = False
        self._faults: deque[tuple[Fault, Meanwhile]] = deque()
        self._losing_commits = 0
        self._struck = asyncio.Event()
        self._released = asyncio.Event()
        self._links: set[_Link] = set()
        self._holds: list[_Hold] = []

    def strike(self, *faults: Fault, meanwhile: Meanwhile = _nothing) -> None:
        """The next appends meet with these faults, one each, when those from before are used up."""
        self._faults.extend((fault, meanwhile) for fault in faults)
        self._struck.clear()

    def lose_commits(self, number: int) -> None:
        """Of that many transactions that end with a COMMIT of their own, the answer to it is lost."""
        self._losing_commits = number

    def loses_commit(self) -> bool:
        loses = self._losing_commits > 0
        self._losing_commits -= loses
        return loses

    async def struck(self) -> None:
        """Returns when the last of the faults has happened."""
        async with asyncio.timeout(60):
            await self._struck.wait()

    def release(self) -> None:
        """Lets what is late go on its way."""
        self._released.set()

    def fall_silent(self, *, answers_only: bool) -> None:
        """From now on nothing gets through on the connections there are, and nobody is told; new ones are good."""
        for link in self._links:
            link.answering = False
            link.asking = answers_only

    @asynccontextmanager
    async def holding_answers(self, text: str, *, number: int = 1) -> AsyncIterator[asyncio.Event]:
        """Within the context, what the database answers to the next `number` statements that contain `text` is kept
        back: they have been executed, and the client does not know yet. The event is set when an answer is there."""
        held, let_go = asyncio.Event(), asyncio.Event()
        holds = [_Hold(text.encode(), held, let_go) for _ in range(number)]
        self._holds += holds
        try:
            yield held
        finally:
            self._holds = [hold for hold in self._holds if hold not in holds]
            let_go.set()

    def hold_for(self, query: bytes) -> "_Hold | None":
        """The hold that this statement meets with, which then is used up."""
        found = next((hold for hold in self._holds if hold.text in query), None)
        if found is not None:
            self._holds.remove(found)
        return found

    def cut_all(self) -> None:
        """Cuts every connection there is."""
        for link in list(self._links):
            link.cut()

    @property
    def faults_left(self) -> int:
        return len(self._faults)

    def next_fault(self) -> tuple[Fault, Meanwhile]:
        return self._faults.popleft() if self._faults else (Fault.NONE, _nothing)

    def has_struck(self) -> None:
        if not self._faults:
            self._struck.set()

    async def until_released(self) -> None:
        await self._released.wait()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.refusing:
            self.refused += 1
            writer.transport.abort()
            return
        async with _aborted(writer):
            server_reader, server_writer = await asyncio.open_unix_connection(self.server_path)
            async with _aborted(server_writer):
                link = _Link(self, reader, writer, server_reader, server_writer)
                self._links.add(link)
                try:
                    await link.run()
                finally:
                    self._links.discard(link)


class _Hold:
    """Keeps back the answer to one statement."""

    def __init__(self, text: bytes, held: asyncio.Event, let_go: asyncio.Event) -> None:
        self.text = text
        self.held = held
        self.let_go = let_go


class _Link:
    """One connection of the client's and its counterpart to the database."""

    def __init__(
        self,
        proxy: Proxy,
        client_reader: asyncio.StreamReader,
        client_writer: asyncio.StreamWriter,
        server_reader: asyncio.StreamReader,
        server_writer: asyncio.StreamWriter,
    ) -> None:
        self.asking = self.answering = True
        self._proxy = proxy
        self._client_reader, self._client_writer = client_reader, client_writer
        self._server_reader, self._server_writer = server_reader, server_writer
        self._queries: dict[bytes, bytes] = {}  # by the names of the prepared statements
        self._deaf = False  # the client is not to hear any more
        self._hold: _Hold | None = None  # for the answer to the statement under way
        self._executed = asyncio.Event()  # the database has executed a statement
        self._ready = asyncio.Event()  # the database has ended a transaction

    async def run(self) -> None:
        answers = asyncio.create_task(self._forward_answers(), name=TASK)
        try:
            with suppress(OSError, asyncio.IncompleteReadError):
                await self._forward_questions()
        finally:
            answers.cancel()
            await asyncio.gather(answers, return_exceptions=True)

    def cut(self) -> None:
        self._deaf = True
        self._client_writer.transport.abort()

    async def _forward_answers(self) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            while True:
                kind, message = await _typed(self._server_reader)
                if kind == b"C":
                    self._executed.set()
                if kind in {b"D", b"C"} and self._hold is not None:
                    self._hold.held.set()
                    await self._hold.let_go.wait()
                    self._hold = None
                if kind == b"Z":
                    self._ready.set()
                if self.answering and not self._deaf:
                    self._client_writer.write(message)
        self.cut()

    async def _forward_questions(self) -> None:
        size = await self._client_reader.readexactly(4)  # the first message, start-up or cancellation, has no type
        start = await self._client_reader.readexactly(int.from_bytes(size, "big") - 4)
        self._to_server(_with_names_alone(start) if self._proxy.dropping else size + start)
        statement: list[bytes] = []
        query = b""
        while True:
            kind, message = await _typed(self._client_reader)
            if kind == b"P":
                name, query_text = message[5:].split(b"\0")[:2]
                self._queries[name] = query_text
            if kind == b"B":
                query = self._queries.get(message[5:].split(b"\0")[1], b"")
            if kind == b"Q" and message[5:].startswith(b"COMMIT") and self._proxy.loses_commit():
                await self._strike(Fault.AFTER, _nothing, [message])
                return
            if kind == b"B" or statement:
                statement.append(message)
            else:
                self._to_server(message)
            if kind == b"S" and statement:
                if APPEND.encode() in query:
                    fault, meanwhile = self._proxy.next_fault()
                    if fault is not Fault.NONE:
                        await self._strike(fault, meanwhile, statement)
                        return
                    await meanwhile()
                    self._proxy.has_struck()
                    self._proxy.forwarded += 1
                self._hold = self._proxy.hold_for(query)
                self._to_server(*statement)
                statement = []

    async def _strike(self, fault: Fault, meanwhile: Meanwhile, statement: list[bytes]) -> None:
        *body, sync = statement
        self._deaf = True
        self._executed.clear()
        self._ready.clear()
        match fault:
            case Fault.NONE | Fault.BEFORE:
                pass
            case Fault.UNFINISHED:
                self._to_server(*body)
            case Fault.AFTER:
                self._to_server(*body, sync)
                await self._ready.wait()
            case Fault.DISMISSED:
                self._to_server(*body, sync)
                await self._ready.wait()
                self._client_writer.write(_SHUTTING_DOWN)
                await self._client_writer.drain()
                await meanwhile()
                self._client_writer.close()
                self._proxy.has_struck()
                return
            case Fault.LATE:
                self._client_writer.transport.abort()
                self._proxy.has_struck()
                await self._proxy.until_released()
                self._to_server(*body, sync)
                await self._ready.wait()
                self._proxy.forwarded += 1
            case Fault.LATE_COMMIT:
                self._to_server(*body, b"H\0\0\0\4")  # Flush, for the database to tell when it has executed it
                await self._executed.wait()
                self._client_writer.transport.abort()
                self._proxy.has_struck()
                await self._proxy.until_released()
                self._to_server(sync)
                await self._ready.wait()
        await meanwhile()
        self._client_writer.transport.abort()
        self._proxy.has_struck()

    def _to_server(self, *messages: bytes) -> None:
        if self.asking:
            self._server_writer.writelines(messages)


def _with_names_alone(start: bytes) -> bytes:
    """A start-up message with the parameters that no pooler drops; one that asks for a cancellation, as it is."""
    version, parameters = start[:4], start[4:]
    if version == _PROTOCOL:
        names_and_values = parameters.split(b"\0")
        pairs = zip(names_and_values[::2], names_and_values[1::2], strict=False)
        kept = [part for name, value in pairs if name in _NAMES for part in (name, value)]
        parameters = b"\0".join([*kept, b"", b""])
    return (len(version + parameters) + 4).to_bytes(4, "big") + version + parameters


@asynccontextmanager
async def _aborted(writer: asyncio.StreamWriter) -> AsyncIterator[None]:
    """At the end of the context the connection is cut."""
    try:
        yield
    finally:
        writer.transport.abort()
        with suppress(OSError):
            await writer.wait_closed()


async def _typed(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """The type of the next message, and all its bytes."""
    start = await reader.readexactly(5)
    return start[:1], start + await reader.readexactly(int.from_bytes(start[1:], "big") - 4)


async def nowhere(_connection: object, _tournament_ids: object) -> dict[TournamentId, Node]:
    """In the place of `nodes_of`: all goes by way of the address."""
    return {}


@asynccontextmanager
async def proxy(dsn: str) -> AsyncIterator[Proxy]:
    """A proxy to the database at `dsn`, which must be reached by a unix socket. Meanwhile this process knows no
    node of a distributed database: it would connect to it past the proxy."""
    with tempfile.TemporaryDirectory(prefix="proxy-") as directory, pytest.MonkeyPatch.context() as patched:
        patched.setattr(nodes, "nodes_of", nowhere)
        between = Proxy(dsn, directory)
        serving: set[asyncio.Task[None]] = set()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            task.set_name(TASK)
            serving.add(task)
            with suppress(asyncio.CancelledError):  # by us, at the end; asyncio would complain of it
                await between.serve(reader, writer)

        server = await asyncio.start_unix_server(serve, str(Path(directory, _SOCKET)))
        try:
            yield between
        finally:
            between.refusing = True
            for _ in range(2):  # asyncio leaves open what it accepts in the moment of closing
                await asyncio.sleep(0)
            server.close()
            between.release()
            for task in serving:
                task.cancel()
            await asyncio.gather(*serving, return_exceptions=True)
            await server.wait_closed()
