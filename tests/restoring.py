"""A database that is put back to what it was, under the services that work with it.

What a backup holds is a copy of the database, made by PostgreSQL. To restore it, the database is dropped with all its
sessions, and made anew from the copy, under the same name: as `pg_restore` and a restored base backup leave it.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Final
from urllib.parse import urlsplit, urlunsplit

import asyncpg

from engine.database.distribution import NODE_SETTINGS, has_shards
from engine.database.pool import SERVICE_ROLE
from tests.desks import until

IN_USE_SECONDS_MAX: Final = 30.0
Restore = Callable[[], Awaitable[None]]


@asynccontextmanager
async def backup(dsn: str) -> AsyncIterator[Restore]:
    """A backup of the database as it is now. What it yields restores it, as often as it is called."""
    name = urlsplit(dsn).path.removeprefix("/")
    kept = f"{name}_backup"
    servers = [await asyncpg.connect(address) for address in await _servers(dsn)]

    async def everywhere(statement: str) -> None:
        await asyncio.gather(*(until(partial(_ran, server, statement), IN_USE_SECONDS_MAX) for server in servers))

    async def copy(source: str, target: str) -> None:
        await everywhere(f"ALTER DATABASE {source} ALLOW_CONNECTIONS false")
        await everywhere(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{source}'")
        await everywhere(f"CREATE DATABASE {target} TEMPLATE {source}")
        await everywhere(f"ALTER DATABASE {source} ALLOW_CONNECTIONS true")
        if len(servers) > 1:
            await everywhere("".join(role_settings(target)))

    async def restore() -> None:
        await everywhere(f"DROP DATABASE {name} WITH (FORCE)")
        await copy(kept, name)

    try:
        await copy(name, kept)
        yield restore
        await everywhere(f"DROP DATABASE {kept} WITH (FORCE)")
    finally:
        for server in servers:
            await server.close()


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
