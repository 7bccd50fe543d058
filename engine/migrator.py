"""Brings a database's schema to what this code expects, and tells whether it is there.

Several processes may start at once: one applies, the others wait their turn. The lock is polled and not waited
for, because a session that waits inside `pg_advisory_lock()` holds a snapshot, and `CREATE INDEX CONCURRENTLY`
in the session that has the lock would wait for that snapshot for ever.
"""

import asyncio
import hashlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from importlib.resources import files
from typing import Final

import asyncpg
from msgspec import Struct

from engine.errors import StartupRefused

CONNECT_SECONDS_MAX: Final = 5.0
LOCK_SECONDS_MAX: Final = 60.0
_LOCK_POLL_SECONDS: Final = 0.1
_LOCK_KEY: Final = 0x7A11_B00C  # any number that no other program takes locks by
_TROUBLE: Final = (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)

_TRY_LOCK: Final = "SELECT pg_try_advisory_lock($1)"
_CREATE_REGISTER: Final = """
    CREATE SCHEMA IF NOT EXISTS tallybook;
    CREATE TABLE IF NOT EXISTS tallybook.migration (
        number     int PRIMARY KEY,
        name       text NOT NULL,
        sha256     text NOT NULL,
        applied_at timestamptz NOT NULL DEFAULT now()
    )
"""
_REGISTER_EXISTS: Final = "SELECT to_regclass('tallybook.migration') IS NOT NULL"
_APPLIED: Final = "SELECT number, sha256 FROM tallybook.migration ORDER BY number"
_SETTINGS: Final = """
    SET LOCAL search_path = tallybook;
    SET LOCAL lock_timeout = '5s';
    SET LOCAL statement_timeout = '10min'
"""
_ENTER: Final = "INSERT INTO tallybook.migration (number, name, sha256) VALUES ($1, $2, $3)"
_LET_SERVICE_READ: Final = "GRANT SELECT ON tallybook.migration TO tallybook_service"


class Migration(Struct, frozen=True):
    """One file: `0001_log.sql` has number 1 and name `log`."""

    number: int
    name: str
    sql: str
    sha256: str


def shipped() -> list[Migration]:
    """The migrations that this code brings along, in order."""
    found = [
        Migration(
            number=int(file.name[:4]),
            name=file.name[5:-4],
            sql=file.read_text(encoding="utf-8"),
            sha256=hashlib.sha256(file.read_bytes()).hexdigest(),
        )
        for file in files("migrations").iterdir()
        if file.name.endswith(".sql")
    ]
    return sorted(found, key=lambda migration: migration.number)


async def migrate(dsn: str) -> list[Migration]:
    """Applies what is missing, each file in a transaction of its own, and returns what it applied.

    Needs a login that may create schemas and roles. Raises StartupRefused for an edited file, for a database
    newer than this code, and where the lock is not to be had within LOCK_SECONDS_MAX.
    """
    try:
        connection = await asyncpg.connect(dsn, timeout=CONNECT_SECONDS_MAX)
    except (*_TROUBLE, ValueError, OverflowError) as error:
        raise StartupRefused(f"Cannot connect to the database: {error}. Is its address right, is it up?") from error
    try:
        await _lock(connection)
        return await _apply_missing(connection)
    except asyncpg.InsufficientPrivilegeError as error:
        raise StartupRefused(
            f"This login may not migrate the database ({error}); run `tallybook migrate` as its owner."
        ) from error
    except _TROUBLE as error:
        raise StartupRefused(
            f"Bringing the schema up to date failed ({error}), and what was begun was taken back; "
            "put that right and try again."
        ) from error
    finally:
        with suppress(*_TROUBLE):
            await connection.close()  # which gives the lock back


async def refuse_unmigrated(connection: asyncpg.Connection) -> None:
    """Raises StartupRefused unless exactly the shipped migrations have been applied."""
    try:
        applied = await _applied(connection)
    except asyncpg.InsufficientPrivilegeError:
        applied = {}  # the first is under way, or was broken off: the service may not look at anything yet
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
        raise StartupRefused("Another process has been migrating this database for a minute; look at it.") from error


async def _apply_missing(connection: asyncpg.Connection) -> list[Migration]:
    await connection.execute(_CREATE_REGISTER)
    missing = _missing(await _applied(connection))
    for migration in missing:
        async with connection.transaction():
            await connection.execute(_SETTINGS)
            await connection.execute(migration.sql)
            await connection.execute(_ENTER, migration.number, migration.name, migration.sha256)
            await connection.execute(_LET_SERVICE_READ)
    return missing


async def _applied(connection: asyncpg.Connection) -> dict[int, str]:
    if not await connection.fetchval(_REGISTER_EXISTS):
        return {}
    return {row["number"]: row["sha256"] for row in await connection.fetch(_APPLIED)}


def _missing(applied: Mapping[int, str], known: Iterable[Migration] | None = None) -> list[Migration]:
    migrations = {migration.number: migration for migration in (shipped() if known is None else known)}
    for number, sha256 in applied.items():
        if number not in migrations:
            raise StartupRefused(
                f"The database has migration {number:04}, which this version does not know; run a newer version."
            )
        if migrations[number].sha256 != sha256:
            raise StartupRefused(
                f"Migration {number:04} {migrations[number].name} was edited after it had been applied; "
                "install the version that migrated this database, or a newer one."
            )
    return [migration for number, migration in migrations.items() if number not in applied]
