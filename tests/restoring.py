"""A database that is put back to what it was, under the services that work with it.

What a backup holds is a copy of the database, made by PostgreSQL. To restore it, the database is dropped with all its
sessions, and made anew from the copy, under the same name: as `pg_restore` and a restored base backup leave it.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from urllib.parse import urlsplit, urlunsplit

import asyncpg

Restore = Callable[[], Awaitable[None]]


@asynccontextmanager
async def backup(dsn: str) -> AsyncIterator[Restore]:
    """A backup of the database as it is now. What it yields restores it, as often as it is called."""
    parts = urlsplit(dsn)
    name = parts.path.removeprefix("/")
    kept = f"{name}_backup"
    administrator = await asyncpg.connect(urlunsplit(parts._replace(path="/postgres")))

    async def copy(source: str, target: str) -> None:
        await administrator.execute(f"ALTER DATABASE {source} ALLOW_CONNECTIONS false")
        await administrator.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", source)
        await administrator.execute(f"CREATE DATABASE {target} TEMPLATE {source}")
        await administrator.execute(f"ALTER DATABASE {source} ALLOW_CONNECTIONS true")

    async def restore() -> None:
        await administrator.execute(f"DROP DATABASE {name} WITH (FORCE)")
        await copy(kept, name)

    try:
        await copy(name, kept)
        yield restore
        await administrator.execute(f"DROP DATABASE {kept} WITH (FORCE)")
    finally:
        await administrator.close()
