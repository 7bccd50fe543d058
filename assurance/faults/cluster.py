"""A PostgreSQL that faults happen to: killed with all its children, paused, started again, followed by standbys.

It is the product's own embedded one, started again by the product's own code, so what that has to clear away after a
crash is part of what is tried. Whoever joined an embedded database is cut off when its owner stops; so here the
harness is the owner, and the processes are given an address.
"""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, unquote, urlsplit

import asyncpg

from assurance.faults.wire import Target, unix
from engine.database import embedded
from engine.database.embedded import Embedded, embedded_postgres
from tests.desks import until
from tests.running import below, lives

SETTINGS: Final = {"max_connections": "100"}
SECONDS_MAX: Final = 30.0


class Cluster:
    """One PostgreSQL. Use within `cluster`."""

    def __init__(self, data_dir: Path, settings: Mapping[str, str]) -> None:
        self.data_dir = data_dir
        self.settings = dict(SETTINGS) | dict(settings)
        self._running: AsyncExitStack | None = None
        self._embedded: Embedded | None = None

    async def start(self) -> None:
        stack = AsyncExitStack()
        self._embedded = await stack.enter_async_context(embedded_postgres(self.data_dir, settings=self.settings))
        self._running = stack

    async def stop(self) -> None:
        """A fast shutdown, with a checkpoint; whatever of it is left is cleared away."""
        stack, self._running = self._running, None
        if stack is not None:
            await stack.aclose()

    async def kill(self) -> None:
        """kill -9 of the postmaster and all its children, at once; returns when none of them lives."""
        victims = self.pids()
        for pid in victims:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        await until(lambda: not [pid for pid in victims if lives(pid)], SECONDS_MAX)
        await self.stop()

    async def quit(self) -> None:
        """What `pg_ctl -m immediate` does: SIGQUIT, no checkpoint, the children told to drop everything."""
        pid = self.pid
        os.kill(pid, signal.SIGQUIT)
        await until(lambda: not lives(pid), SECONDS_MAX)
        await self.stop()

    def signal(self, number: signal.Signals) -> None:
        """To the postmaster and all its children."""
        for pid in self.pids():
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    @property
    def pid(self) -> int:
        assert self._embedded is not None
        return self._embedded.pid

    def pids(self) -> list[int]:
        """The postmaster first, then its children."""
        return [self.pid, *sorted(below(self.pid))]

    @property
    def dsn(self) -> str:
        """Of its owner, by unix socket, past every wire."""
        assert self._embedded is not None
        return self._embedded.dsn

    @property
    def socket_path(self) -> str:
        (directory,) = parse_qs(urlsplit(self.dsn).query)["host"]
        return f"{unquote(directory)}/.s.PGSQL.5432"

    @property
    def target(self) -> Target:
        return unix(self.socket_path)

    @asynccontextmanager
    async def owner(self, **settings: str) -> AsyncIterator[asyncpg.Connection]:
        """A connection with the owner's rights."""
        connection = await asyncpg.connect(
            self.dsn, timeout=SECONDS_MAX, server_settings={"search_path": "tallybook"} | settings
        )
        try:
            yield connection
        finally:
            with suppress(*LOST):
                await connection.close(timeout=5)

    async def execute(self, statement: str, *arguments: object) -> None:
        async with self.owner() as owner:
            await owner.execute(statement, *arguments)

    async def fetch(self, statement: str, *arguments: object) -> list[Any]:
        async with self.owner() as owner:
            return list(await owner.fetch(statement, *arguments))

    async def tool(self, *arguments: str) -> None:
        """Runs one of PostgreSQL's own programs, as the user that it runs as."""
        place = embedded._place(self.data_dir)
        tools = embedded._find_tools(place)
        done = await asyncio.to_thread(embedded._run, embedded._command(place, tools, list(arguments)))
        assert done.returncode == 0, done.stderr

    async def base_backup(self, data_dir: Path, **settings: str) -> "Cluster":
        """Another cluster that is a copy of this one as it stands, not started; with standby.signal, a standby."""
        data_dir.mkdir(parents=True, exist_ok=True)
        directory = str(Path(self.socket_path).parent)
        await self.tool(
            "pg_basebackup", "-h", directory, "-U", embedded.DATABASE_NAME, "-D", str(data_dir / "postgres"),
            "-X", "stream", "--checkpoint=fast",
        )  # fmt: skip
        return Cluster(data_dir, self.settings | settings)

    async def standby(self, data_dir: Path, host: str | None = None) -> "Cluster":
        """A standby that reads the log from this one, by way of `host` if it is given; running."""
        host = host or str(Path(self.socket_path).parent)
        there = await self.base_backup(
            data_dir,
            primary_conninfo=f"host={host} user=tallybook application_name=standby sslmode=disable",
            hot_standby="on",
        )
        signal_file = data_dir / "postgres" / "standby.signal"
        signal_file.touch()
        owner = (data_dir / "postgres" / "PG_VERSION").stat()
        os.chown(signal_file, owner.st_uid, owner.st_gid)
        await there.start()
        return there


LOST: Final = (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)


@asynccontextmanager
async def cluster(data_dir: Path, **settings: str) -> AsyncIterator[Cluster]:
    """A running PostgreSQL, killed and started again as one likes, gone with the context."""
    there = Cluster(data_dir, settings)
    await there.start()
    try:
        yield there
    finally:
        await there.stop()
