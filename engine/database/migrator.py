"""Migrates a database's schema to the version that this code expects, and checks whether it has it.

Several processes may start at the same time: one applies migrations, the others wait their turn. They poll the lock,
because a session that waits inside `pg_advisory_lock()` holds a snapshot, and `CREATE INDEX CONCURRENTLY` in the
session that has the lock would wait for that snapshot indefinitely.

A migration's file may say which older code still runs with it: `-- Oldest code that runs on it: NNNN`, where NNNN is
the last migration that the older code ships. The register keeps that number for code that does not have the file.
"""

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import cache, partial
from pathlib import Path
from typing import Final

import asyncpg
from msgspec import Struct

import migrations
from engine.database.address import Hosts
from engine.database.distribution import SHARDS_MAX, DatabaseForm, distribute, form_of, refuse_worker_node
from engine.database.mending import mend
from engine.database.sessions import ON_STANDBY, reason, refuse_shared, unreachable
from engine.domain.errors import StartupRefused

CONNECT_SECONDS_MAX: Final = 5.0
LOCK_SECONDS_MAX: Final = 60.0
CLOSE_SECONDS_MAX: Final = 2.0
"""How long the server may take to close a connection. Then the connection is dropped: its work is done."""
_LOCK_POLL_SECONDS: Final = 0.1
_LOCK_KEY: Final = 0x7A11_B00C  # any number that no other program uses for its locks
_TROUBLE: Final = (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)

_TRY_LOCK: Final = "SELECT pg_try_advisory_lock($1)"
# `oldest`: the last migration of the oldest code that runs on with it; NULL: only code that brings it along.
_CREATE_REGISTER: Final = """
    CREATE SCHEMA IF NOT EXISTS tallybook;
    CREATE TABLE IF NOT EXISTS tallybook.migration (
        number     int PRIMARY KEY,
        name       text NOT NULL,
        sha256     text NOT NULL,
        applied_at timestamptz NOT NULL DEFAULT now(),
        oldest     int
    )
"""
_REGISTER_EXISTS: Final = "SELECT to_regclass('tallybook.migration') IS NOT NULL"
_APPLIED: Final = "SELECT number, sha256, oldest FROM tallybook.migration ORDER BY number"
_HERE: Final = "SET LOCAL search_path = tallybook"
_PATIENCE: Final = "SET lock_timeout = '5s'; SET statement_timeout = '10min'"
"""In place of any timeouts preset for the login: those of short requests do not suit work on a whole schema."""
_ENTER: Final = "INSERT INTO tallybook.migration (number, name, sha256, oldest) VALUES ($1, $2, $3, $4)"
_LET_SERVICE_READ: Final = "GRANT SELECT ON tallybook.migration TO tallybook_service"

# The role belongs to the cluster: the migration of another database may have made it already, or may be making it now.
_ROLE_EXISTS: Final = "SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = 'tallybook_service')"
_CREATE_ROLE: Final = "CREATE ROLE tallybook_service NOLOGIN"
# From version 16 on, the login that creates a role may administer it, but not yet become it.
_MAY_BE_SERVICE: Final = """
    SELECT pg_has_role(
        current_user,
        'tallybook_service',
        CASE WHEN current_setting('server_version_num')::int < 160000 THEN 'MEMBER' ELSE 'SET' END
    )
"""
_BECOME_SERVICE: Final = "GRANT tallybook_service TO CURRENT_USER"
_LOGIN: Final = "SELECT quote_ident(current_user)"

_OLDEST_LINE: Final = re.compile(r"^-- Oldest code that runs on it: ([0-9]{4})$", re.MULTILINE)


class Migration(Struct, frozen=True):
    """One file: `0001_log.sql` has number 1 and name `log`. `oldest`: the last migration of the oldest code that runs
    on with it; None: only code that brings it along does."""

    number: int
    name: str
    sql: str
    sha256: str
    oldest: int | None = None

    @classmethod
    def of_file(cls, name: str, content: bytes) -> "Migration":
        """The migration in a file of this name and content."""
        sql = content.decode()
        oldest = _OLDEST_LINE.search(sql)
        return cls(
            number=int(name[:4]),
            name=name[5:-4],
            sql=sql,
            sha256=hashlib.sha256(content).hexdigest(),
            oldest=None if oldest is None else int(oldest[1]),
        )


class Applied(Struct, frozen=True):
    """The entry of a migration in the register of a database."""

    sha256: str
    oldest: int | None = None


@cache
def shipped() -> tuple[Migration, ...]:
    """The migrations that this code ships, in order."""
    found = [
        Migration.of_file(file.name, file.read_bytes())
        for file in Path(migrations.__file__).parent.iterdir()
        if file.name.endswith(".sql")
    ]
    return tuple(sorted(found, key=lambda migration: migration.number))


async def migrate(dsn: str) -> list[Migration]:
    """Applies what is missing, each file in a transaction of its own, and returns what it applied. On a distributed
    database, what a migration has added is distributed, too.

    The login must be allowed to create schemas, and roles too unless `tallybook_service` exists. Raises StartupRefused
    if the database cannot be reached or a right is missing, for a worker node of Citus, for an edited file, for a
    database too new for this code, for a pooler that shares sessions, if the lock is not free within LOCK_SECONDS_MAX,
    and if a migration fails.
    """
    connection = await _connected(dsn)
    try:
        await refuse_shared(connection, another_client(dsn))
        await connection.execute(_PATIENCE)
        await refuse_worker_node(connection)
        await _lock(connection)
        applied = await _apply_missing(connection)
        if applied and await form_of(connection) is DatabaseForm.MIXED:
            await distribute(connection, shards=SHARDS_MAX)  # there are some already
        return applied
    except asyncpg.InsufficientPrivilegeError as error:
        raise StartupRefused(
            f"This login may not migrate the database ({error}); run `tallybook migrate` as its owner."
        ) from error
    except _TROUBLE as error:
        raise StartupRefused(
            f"Migrating the schema failed ({reason(error)}), and the failed migration was rolled back; "
            "correct the cause and try again."
        ) from error
    finally:
        with suppress(*_TROUBLE):
            await connection.close(timeout=CLOSE_SECONDS_MAX)  # this releases the lock


async def migrate_and_distribute(dsn: str, *, shards: int) -> tuple[list[Migration], list[str]]:
    """Applies what is missing, like `migrate`, and distributes the database. Returns what it applied and the names of
    the tables that it distributed. Can be repeated. Raises StartupRefused."""
    applied = await migrate(dsn)
    async with as_owner(dsn) as connection:
        await _lock(connection)
        return applied, await distribute(connection, shards=shards)


async def repair(dsn: str) -> list[str]:
    """Mends what `mending` describes in a migrated database, and returns what it was. Raises StartupRefused."""
    async with as_owner(dsn) as connection:
        await _lock(connection)
        await _ensure_role(connection)
        return await mend(connection, [*(migration.sql for migration in shipped()), f"{_LET_SERVICE_READ};"])


async def status(dsn: str) -> tuple[list[Migration], DatabaseForm]:
    """The migrations that the database lacks, and its topology. Raises StartupRefused."""
    connection = await _connected(dsn)
    try:
        await refuse_shared(connection, another_client(dsn))
        missing = _missing(await _applied(connection))
        has_tables = await connection.fetchval(_REGISTER_EXISTS)
        return missing, await form_of(connection) if has_tables else DatabaseForm.PLAIN
    except _TROUBLE as error:
        raise StartupRefused(f"The database failed ({reason(error)}).") from error
    finally:
        with suppress(*_TROUBLE):
            await connection.close(timeout=CLOSE_SECONDS_MAX)


async def _connected(dsn: str) -> asyncpg.Connection:
    """A connection to the primary. Raises StartupRefused if it cannot be reached."""
    try:
        return await Hosts(dsn).connect(timeout=CONNECT_SECONDS_MAX, target_session_attrs="primary")
    except asyncpg.TargetServerAttributeNotMatched as error:
        raise StartupRefused(ON_STANDBY) from error
    except (*_TROUBLE, ValueError, OverflowError) as error:
        raise unreachable(error) from error


def another_client(dsn: str) -> Callable[[], Awaitable[asyncpg.Connection]]:
    """A function that makes one more connection to the database. Connecting, and each statement on the connection, may
    take CONNECT_SECONDS_MAX."""
    return partial(
        Hosts(dsn).connect,
        timeout=CONNECT_SECONDS_MAX,
        command_timeout=CONNECT_SECONDS_MAX,
        target_session_attrs="primary",
    )


@asynccontextmanager
async def as_owner(dsn: str) -> AsyncIterator[asyncpg.Connection]:
    """Yields a connection with all rights of the login, for what the service's role may not do.

    Raises StartupRefused if the database cannot be reached or is not migrated, and for a worker node of Citus; within
    it for a right that the login lacks and for a lost connection.
    """
    connection = await _connected(dsn)
    try:
        await refuse_shared(connection, another_client(dsn))
        await connection.execute(_PATIENCE)
        await refuse_worker_node(connection)
        await refuse_unmigrated(connection)
        yield connection
    except asyncpg.InsufficientPrivilegeError as error:
        raise StartupRefused(
            f"This login may not do that ({error}); run the command as the owner of the schema."
        ) from error
    except _TROUBLE as error:
        raise StartupRefused(
            f"The database failed ({reason(error)}); check whether it was applied before you run the command again."
        ) from error
    finally:
        with suppress(*_TROUBLE):
            await connection.close(timeout=CLOSE_SECONDS_MAX)


async def refuse_unmigrated(connection: asyncpg.Connection) -> None:
    """Raises StartupRefused unless all shipped migrations have been applied, unedited, and no newer one that this code
    cannot run on with."""
    try:
        applied = await _applied(connection)
    except asyncpg.InsufficientPrivilegeError:
        applied = {}  # the first migration is under way or was broken off: the service may not read anything yet
    missing = _missing(applied)
    if missing:
        names = ", ".join(f"{migration.number:04} {migration.name}" for migration in missing)
        raise StartupRefused(f"The database lacks migrations ({names}); run `tallybook migrate`.")


async def _lock(connection: asyncpg.Connection) -> None:
    try:
        async with asyncio.timeout(LOCK_SECONDS_MAX):
            while not await connection.fetchval(_TRY_LOCK, _LOCK_KEY):  # noqa: ASYNC110 - no event tells of it
                await asyncio.sleep(_LOCK_POLL_SECONDS)
    except TimeoutError as error:
        raise StartupRefused(
            "Another process has been migrating this database for a minute; wait until it finishes."
        ) from error


async def _apply_missing(connection: asyncpg.Connection) -> list[Migration]:
    missing = _missing(await _applied(connection))
    if missing:
        await _ensure_role(connection)
        await connection.execute(_CREATE_REGISTER)
    for migration in missing:
        async with connection.transaction():
            await connection.execute(_HERE)
            await connection.execute(migration.sql)
            await connection.execute(_ENTER, migration.number, migration.name, migration.sha256, migration.oldest)
            await connection.execute(_LET_SERVICE_READ)
    return missing


async def _ensure_role(connection: asyncpg.Connection) -> None:
    """Makes the role that the service works as, and lets this login become it if it may grant that."""
    if not await connection.fetchval(_ROLE_EXISTS):
        try:
            with suppress(asyncpg.DuplicateObjectError, asyncpg.UniqueViolationError):  # another has just made it
                await connection.execute(_CREATE_ROLE)
        except asyncpg.InsufficientPrivilegeError as error:
            login = await connection.fetchval(_LOGIN)
            raise StartupRefused(
                "The service's role does not exist, and this login may not create it; before `tallybook migrate` an "
                f"administrator must run: CREATE ROLE tallybook_service NOLOGIN; GRANT tallybook_service TO {login};"
            ) from error
    if not await connection.fetchval(_MAY_BE_SERVICE):
        # An owner that may not become the service can migrate all the same; `serve` may use another login.
        with suppress(asyncpg.InsufficientPrivilegeError):
            await connection.execute(_BECOME_SERVICE)


async def _applied(connection: asyncpg.Connection) -> dict[int, Applied]:
    if not await connection.fetchval(_REGISTER_EXISTS):
        return {}
    return {row["number"]: Applied(row["sha256"], row["oldest"]) for row in await connection.fetch(_APPLIED)}


def _missing(applied: Mapping[int, Applied]) -> list[Migration]:
    """The shipped migrations that were not applied. Raises StartupRefused for an applied one that was edited, or that
    is newer and that this code cannot run on with."""
    known = {migration.number: migration for migration in shipped()}
    newest = max(known)
    for number, entry in applied.items():
        if number not in known:
            if entry.oldest is not None and entry.oldest <= newest < number:
                continue
            raise StartupRefused(
                f"The database has migration {number:04}, which this version does not know; run a newer version."
            )
        if known[number].sha256 != entry.sha256:
            raise StartupRefused(
                f"Migration {number:04} {known[number].name} was edited after it was applied; "
                "install the version that migrated this database, or a newer one."
            )
    return [migration for number, migration in known.items() if number not in applied]
