"""Opens what a command is about: the database, a desk over it, a tournament.

The user names a database by its address, or the directory of an embedded one, which the command starts or joins. Only a
command that `creates` makes a database where there is none. Any other command is refused, so that a mistyped directory
is noticed.
"""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Annotated, Final

from asyncpg import Connection
from cyclopts import Parameter

from api.cli import printing
from api.desk.desk import Desk, open_desk
from engine.database.address import in_drivers_terms
from engine.database.embedded import EmbeddedEnded, embedded_postgres
from engine.database.migrator import migrate
from engine.database.pool import Database, open_database, unavailable
from engine.domain.errors import NotFound, StartupRefused
from engine.domain.terms import TournamentId, name_fault
from engine.log import registry
from engine.process.logs import Logger
from projections.answers.view import View, view_of


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Where:
    """Which database: one at an address, or else an embedded one in a directory."""

    database_url: str | None = None
    """Address of a PostgreSQL database: postgresql://USER@HOST/NAME. Without it, an embedded one is used."""
    data_dir: Path = Path("tallybook-data")
    """Directory of the embedded database. If a running service owns it, the command joins its database. Only `serve`,
    `demo`, `migrate` and `tournament create` make a new one."""


HERE: Final = Where()
Slug = Annotated[str, Parameter(help="Slug of the tournament.")]
Json = Annotated[bool, Parameter(negative="", help="Print JSON, for programs.")]


@asynccontextmanager
async def located(where: Where, *, joinable: bool = False, creates: bool = False) -> AsyncIterator[str]:
    """Yields the address of the database. Migrates an embedded one, even if another process owns it: that process may
    not have migrated it yet."""
    async with address(where, joinable=joinable, creates=creates) as dsn:
        if where.database_url is None:
            await migrate(dsn)
        yield dsn


@asynccontextmanager
async def address(where: Where, *, joinable: bool = False, creates: bool = False) -> AsyncIterator[str]:
    """Yields the address of the database. Starts or joins an embedded one. With `joinable`, others may join it, and if
    it ends, this process logs that and exits with 1.

    Raises StartupRefused if there is none in the directory, unless the command `creates` one.
    """
    if where.database_url is None:
        async with (
            _ending_with_it(),
            embedded_postgres(where.data_dir, joinable=joinable, creates=creates, watched=joinable) as embedded,
        ):
            if joinable and not embedded.owned:  # it stays, and may have been meant to have a database of its own
                printing.announce(
                    "database_joined",
                    f"Joining the database that another process runs in {where.data_dir}. "
                    "It stops with that process; choose another directory with --data-dir.",
                    directory=str(where.data_dir),
                )
            yield embedded.dsn
    elif not where.database_url:
        raise StartupRefused(
            "The address of the database is empty; give one, or leave the option out to use an embedded database."
        )
    else:
        yield in_drivers_terms(where.database_url)


@asynccontextmanager
async def _ending_with_it() -> AsyncIterator[None]:
    try:
        yield
    except EmbeddedEnded as ended:
        Logger().error("embedded_ended", reason=ended.message)
        sys.exit(1)


@asynccontextmanager
async def database_at(where: Where, *, creates: bool = False) -> AsyncIterator[Database]:
    async with (
        located(where, creates=creates) as dsn,
        open_database(dsn, name="tallybook command", connections_max=6) as database,
    ):
        with unavailable():
            yield database


@asynccontextmanager
async def writing_at(where: Where, slug: str) -> AsyncIterator[tuple[Connection, TournamentId]]:
    """Yields a connection for a write to a tournament without the desk. Raises NotFound, and as
    `Database.writing`."""
    async with database_at(where) as database:
        tournament_id = await known(database, slug)
        async with database.writing() as connection:
            yield connection, tournament_id


@asynccontextmanager
async def desk_at(where: Where, *, creates: bool = False) -> AsyncIterator[Desk]:
    async with database_at(where, creates=creates) as database, open_desk(database, ids_reserved=1) as desk:
        yield desk


@asynccontextmanager
async def tournament_at(desk: Desk, slug: str) -> AsyncIterator[View]:
    """Yields the tournament as it is now. Raises NotFound."""
    async with desk.live_pool.pinned(await known(desk.database, slug)) as live:
        await desk.live_pool.make_current(live, read_at=monotonic())
        yield view_of(desk.database, live)


async def find(database: Database, slug: str) -> TournamentId | None:
    if name_fault(slug):  # the slug may hold characters that no column can
        return None
    async with database.connection() as connection:
        return await registry.tournament_named(connection, slug)


async def known(database: Database, slug: str) -> TournamentId:
    """The id of the tournament. Raises NotFound."""
    tournament_id = await find(database, slug)
    if tournament_id is None:
        raise NotFound(f"There is no tournament {slug!r}; `tallybook tournament list` shows them.")
    return tournament_id
