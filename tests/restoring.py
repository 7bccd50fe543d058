"""A database that is put back to what it was, under the services that work with it.

What a backup holds is a copy of the database, made by PostgreSQL. To restore it, the database is dropped with all its
sessions, and restored from the copy, under the same name: as `pg_restore` and a restored base backup leave it.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Final
from urllib.parse import urlsplit, urlunsplit

import asyncpg

from engine.database.distribution import NODE_SETTINGS, has_shards
from engine.database.pool import SERVICE_ROLE
from tests.desks import until

IN_USE_SECONDS_MAX: Final = 120.0
Restore = Callable[[], Awaitable[None]]


@asynccontextmanager
async def backup(dsn: str) -> AsyncIterator[Restore]:
    """A backup of the database as it is now. What it yields restores it, as often as it is called."""
    async with _administering(dsn) as databases, _copied(databases, dsn) as kept:

        async def restore() -> None:
            await databases.drop(database_of(dsn))
            await databases.copy(kept, database_of(dsn))

        yield restore


@asynccontextmanager
async def node_backup(address: str) -> AsyncIterator[Restore]:
    """As `backup`, of one node of a distributed database, at its address: the other nodes stay as they are."""
    server = await asyncpg.connect(urlunsplit(urlsplit(address)._replace(path="/postgres")))
    databases = _Databases([server], are_nodes=True)
    try:
        async with _copied(databases, address) as kept:

            async def restore() -> None:
                await databases.drop(database_of(address))
                await databases.copy(kept, database_of(address))

            yield restore
    finally:
        await server.close()


class Older:
    """A copy of a database that can take its place. `dsn`: its address until then, and that of the replaced one from
    then on."""

    def __init__(self, databases: "_Databases", name: str, dsn: str) -> None:
        self.dsn = dsn
        self._databases = databases
        self._name = name

    async def take_its_place(self) -> int:
        """Returns when that was: a moment at which nobody worked with the one any more, nor with the other yet, by
        `time.monotonic_ns`."""
        return await self._databases.exchange(self._name, database_of(self.dsn))


@asynccontextmanager
async def older(dsn: str) -> AsyncIterator[Older]:
    """As `backup`; the database that is replaced stays, under the name of the copy."""
    async with _administering(dsn) as databases, _copied(databases, dsn) as copy:
        yield Older(databases, database_of(dsn), urlunsplit(urlsplit(dsn)._replace(path=f"/{copy}")))


@asynccontextmanager
async def copied(dsn: str) -> AsyncIterator[str]:
    """The address of a copy of the database as it is now."""
    async with _administering(dsn) as databases, _copied(databases, dsn) as copy:
        yield urlunsplit(urlsplit(dsn)._replace(path=f"/{copy}"))


class _Databases:
    """Those of one name on each server that has a part of a distributed database; or on the only one."""

    def __init__(self, servers: list[asyncpg.Connection], *, are_nodes: bool) -> None:
        self._servers = servers
        self._are_nodes = are_nodes

    async def copy(self, source: str, target: str) -> None:
        await self._everywhere(f"ALTER DATABASE {source} ALLOW_CONNECTIONS false")
        await self._everywhere(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{source}'")
        await self._everywhere(f"CREATE DATABASE {target} TEMPLATE {source}")
        await self._everywhere(f"ALTER DATABASE {source} ALLOW_CONNECTIONS true")
        if self._are_nodes:
            await self._everywhere("".join(role_settings(target)))

    async def exchange(self, name: str, other: str) -> int:
        """Gives each of two databases the other's name; all sessions of the first end. Returns when neither had it."""
        await self._everywhere(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        end = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}';"
        await self._everywhere(f"{end} ALTER DATABASE {name} RENAME TO {name}_replaced")
        moment = time.monotonic_ns()
        await self._everywhere(f"ALTER DATABASE {other} RENAME TO {name}")
        await self._everywhere(f"ALTER DATABASE {name}_replaced RENAME TO {other}")
        await self._everywhere(f"ALTER DATABASE {other} ALLOW_CONNECTIONS true")
        return moment

    async def drop(self, name: str) -> None:
        await self._everywhere(f"DROP DATABASE {name} WITH (FORCE)")

    async def _everywhere(self, statement: str) -> None:
        await asyncio.gather(*(until(partial(_ran, server, statement), IN_USE_SECONDS_MAX) for server in self._servers))


@asynccontextmanager
async def _administering(dsn: str) -> AsyncIterator[_Databases]:
    async with AsyncExitStack() as stack:
        servers = []
        for address in await _servers(dsn):
            servers.append(await asyncpg.connect(address))
            stack.push_async_callback(servers[-1].close)
        yield _Databases(servers, are_nodes=len(servers) > 1)


@asynccontextmanager
async def _copied(databases: _Databases, dsn: str) -> AsyncIterator[str]:
    copy = f"{database_of(dsn)}_backup"
    await databases.copy(database_of(dsn), copy)
    yield copy
    await databases.drop(copy)


def database_of(dsn: str) -> str:
    """The name of the database that an address leads to."""
    return urlsplit(dsn).path.removeprefix("/")


async def _ran(server: asyncpg.Connection, statement: str) -> bool:
    """Executes it; False: a process of Citus is in the database still, or again."""
    try:
        await server.execute(statement)
    except asyncpg.ObjectInUseError:
        return False
    return True


async def _servers(dsn: str) -> list[str]:
    """The addresses of the database `postgres` on each server that has a part of the database."""
    parts = urlsplit(dsn)._replace(path="/postgres")
    session = await asyncpg.connect(dsn)
    try:
        if not await has_shards(session):
            return [urlunsplit(parts)]
        return [
            urlunsplit(parts._replace(netloc=f"{parts.username}@{host}:{port}", query=""))
            for host, port in await session.fetch(_NODES)
        ]
    finally:
        await session.close()


_NODES = "SELECT nodename, nodeport FROM pg_dist_node WHERE noderole = 'primary' ORDER BY groupid"


def role_settings(database: str) -> Iterator[str]:
    """What a copy of a distributed database lacks: the settings of the service's role in it, which each node has."""
    yield "SET citus.enable_alter_role_propagation = off;"
    for name, value in NODE_SETTINGS.items():
        yield f"ALTER ROLE {SERVICE_ROLE} IN DATABASE {database} SET {name} = '{value}';"
