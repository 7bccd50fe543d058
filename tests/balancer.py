"""A balancer between the service and PostgreSQL, which sends reads to a standby as pgpool-II does by default.

What changes a session or a transaction goes to both servers, and nothing else does. A SELECT goes to the standby,
unless it names a volatile function or a system catalog, locks rows, or follows something else in its transaction.
"""

import asyncio
import re
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlsplit, urlunsplit

import asyncpg

from assurance.faults.cluster import Cluster

_PORT: Final = 5432
_BOTH: Final = re.compile(r"\s*(SET|RESET|BEGIN|COMMIT|ROLLBACK|DISCARD|DEALLOCATE)\b", re.IGNORECASE)
_OF_PRIMARY: Final = re.compile(r"\b(FROM|JOIN) (pg_catalog\.)?pg_|\bFOR (NO KEY )?(UPDATE|SHARE)\b")
_VOLATILE: Final = "SELECT DISTINCT proname FROM pg_proc WHERE provolatile = 'v'"
_Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Balancer:
    """`dsn`: its address. While it is `balancing`, reads go to the standby."""

    def __init__(self, dsn: str, volatile: set[str]) -> None:
        self.dsn = dsn
        self.balancing = True
        self._volatile = volatile

    def is_read(self, statement: str) -> bool:
        return (
            statement.lstrip().upper().startswith("SELECT")
            and not _OF_PRIMARY.search(statement)
            and not self._volatile.intersection(re.findall(r"\w+(?=\()", statement))
        )


class _Session:
    """One client, and its sessions at both servers."""

    def __init__(self, balancer: Balancer, client: _Streams, primary: _Streams, standby: _Streams) -> None:
        self._balancer = balancer
        self._client = client
        self._primary = primary
        self._standby = standby
        self._asked = primary
        self._is_read_of: dict[bytes, bool] = {}
        self._in_transaction = False
        self._follows = False

    async def run(self) -> None:
        start = await self._client[0].readexactly(int.from_bytes(await self._client[0].readexactly(4), "big") - 4)
        begin = (len(start) + 4).to_bytes(4, "big") + start
        theirs = await _answer(self._standby, begin)
        key = next(message for message in theirs if message[:1] == b"K")  # so nothing tells it from PostgreSQL
        for message in await _answer(self._primary, begin):
            self._client[1].write(key if message[:1] == b"K" else message)
        while True:
            await self._statement()

    async def _statement(self) -> None:
        """One simple query, or everything up to a Sync, or to a Flush after a Describe."""
        messages = [await _message(self._client[0])]
        while messages[-1][:1] not in b"QSHX":
            messages.append(await _message(self._client[0]))
        if messages[-1][:1] == b"X":
            raise asyncio.IncompleteReadError(b"", None)
        asked = b"".join(messages)
        if messages[0][:1] == b"Q":
            statement = asked[5:-1].decode()
            if _BOTH.match(statement):
                await _answer(self._standby, asked)
                self._in_transaction = statement.lstrip().upper().startswith("BEGIN")
                self._follows = False
            self._asked = self._primary
        elif messages[0][:1] in b"PBD":
            self._asked = self._standby if self._is_read(messages[0]) else self._primary
        end = b"TnE" if messages[-1][:1] == b"H" else b"Z"
        for message in await _answer(self._asked, asked, end):
            self._client[1].write(message)

    def _is_read(self, message: bytes) -> bool:
        """Whether the statement that the message parses, binds or describes goes to the standby."""
        kind, rest = message[:1], message[5:]
        if kind == b"P":
            name, statement, _ = rest.split(b"\0", 2)
            is_read = self._balancer.balancing and not self._follows and self._balancer.is_read(statement.decode())
            self._is_read_of[name] = is_read
        else:
            name = rest.split(b"\0")[1] if kind == b"B" else rest[1:-1]
            is_read = self._is_read_of.get(name, False)
        self._follows = self._in_transaction and not is_read
        return is_read


async def _message(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readexactly(5)
    return head + await reader.readexactly(int.from_bytes(head[1:], "big") - 4)


async def _answer(server: _Streams, asked: bytes, end: bytes = b"Z") -> list[bytes]:
    """What the server answers, up to a message of one of the kinds `end`."""
    server[1].write(asked)
    messages = [await _message(server[0])]
    while messages[-1][:1] not in end:
        messages.append(await _message(server[0]))
    return messages


@asynccontextmanager
async def balancer(primary: Cluster, standby: Cluster) -> AsyncIterator[Balancer]:
    """A balancer in front of both, which must trust their logins."""
    async with primary.owner() as owner:
        volatile = {row["proname"] for row in await owner.fetch(_VOLATILE)}
    with tempfile.TemporaryDirectory(prefix="balancer-") as folder:
        there = Balancer(
            urlunsplit(urlsplit(primary.dsn)._replace(query=f"host={quote(folder)}&port={_PORT}")), volatile
        )

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with closing(writer), suppress(OSError, asyncio.IncompleteReadError):
                one = await asyncio.open_unix_connection(primary.socket_path)
                other = await asyncio.open_unix_connection(standby.socket_path)
                with closing(one[1]), closing(other[1]):
                    await _Session(there, (reader, writer), one, other).run()

        async with await asyncio.start_unix_server(serve, Path(folder) / f".s.PGSQL.{_PORT}"):
            yield there


async def hold(standby: Cluster) -> None:
    """The standby shows nothing newer from now on."""
    connection = await asyncpg.connect(standby.dsn)
    try:
        await connection.execute("SELECT pg_wal_replay_pause()")
    finally:
        await connection.close()
