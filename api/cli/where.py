"""Where a command finds what it is about: the database, a desk over it, a tournament.

A command names a database by its address, or a directory with an embedded one, which is started or joined. Only a
command that `creates` makes one where there is none: whoever mistypes the directory of what they want to read, or to
change, is told so.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from asyncpg import Connection
from cyclopts import Parameter

from api.desk.desk import Desk, open_desk
from engine.database.embedded import embedded_postgres
from engine.database.migrator import migrate
from engine.database.pool import DATABASE_TROUBLE, Database, open_database, unavailable
from engine.domain.errors import NotFound, OutcomeUnknown, StartupRefused
from engine.domain.terms import TournamentId, name_fault
from engine.log import log
from projections.live.live import Live


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Where:
    """Which database: one at an address, or else an embedded one in a directory."""

    database_url: str | None = None
    """Address of a PostgreSQL database, postgresql://USER@HOST/NAME; without it an embedded one is used."""
    data_dir: Path = Path("tallybook-data")
    """Directory of the embedded database. If a server owns it, its database is joined. Only `serve`, `demo`, `migrate`
    and `tournament create` make one where there is none."""


HERE: Final = Where()
Json = Annotated[bool, Parameter(negative="", help="Print JSON instead of a table.")]


@asynccontextmanager
async def located(where: Where, *, joinable: bool = False, creates: bool = False) -> AsyncIterator[str]:
    """The address of the database. An embedded one is brought up to date, also by those who join: its owner may be
    just about to."""
    async with address(where, joinable=joinable, creates=creates) as dsn:
        if where.database_url is None:
            await migrate(dsn)
        yield dsn


@asynccontextmanager
async def address(where: Where, *, joinable: bool = False, creates: bool = False) -> AsyncIterator[str]:
    """The address of the database; an embedded one is started or joined, and lent to others if it is `joinable`.

    Raises StartupRefused where there is none in the directory, unless the command `creates` one.
    """
    if where.database_url is None:
        async with embedded_postgres(where.data_dir, joinable=joinable, creates=creates) as embedded:
            yield embedded.dsn
    elif not where.database_url:
        raise StartupRefused("The address of the database is empty; give one, or none at all for an embedded database.")
    else:
        yield where.database_url


@asynccontextmanager
async def database_at(where: Where, *, creates: bool = False) -> AsyncIterator[Database]:
    async with (
        located(where, creates=creates) as dsn,
        open_database(dsn, name="tallybook command", connections_max=6) as database,
    ):
        with unavailable():
            yield database


@asynccontextmanager
async def writing_to(database: Database) -> AsyncIterator[Connection]:
    """A connection for a write that goes past the desk: if it is lost, nobody knows what became of it."""
    async with database.connection() as connection:
        try:
            yield connection
        except DATABASE_TROUBLE as error:
            raise OutcomeUnknown from error


@asynccontextmanager
async def desk_at(where: Where, *, creates: bool = False) -> AsyncIterator[Desk]:
    async with database_at(where, creates=creates) as database, open_desk(database, ids_reserved=1) as desk:
        yield desk


@asynccontextmanager
async def tournament_at(desk: Desk, slug: str) -> AsyncIterator[Live]:
    """The tournament, as it is now."""
    async with desk.lives.pinned(await known(desk.database, slug)) as live:
        await desk.lives.current(live)
        yield live


async def find(database: Database, slug: str) -> TournamentId | None:
    if name_fault(slug):  # it may hold what no column can
        return None
    async with database.connection() as connection:
        return await log.tournament_named(connection, slug)


async def known(database: Database, slug: str) -> TournamentId:
    tournament_id = await find(database, slug)
    if tournament_id is None:
        raise NotFound(f"There is no tournament {slug!r}; `tallybook tournament list` shows them.")
    return tournament_id
