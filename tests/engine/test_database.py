"""The database: unsound ones are refused with what to do about it, and trouble is told apart from mistakes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest

from engine import database as database_module
from engine.database import Database, open_database
from engine.embedded import embedded_postgres
from engine.errors import DatabaseUnavailable, StartupRefused
from engine.migrator import migrate
from tests.desks import holding, until
from tests.proxy import proxy

_numbers = count(1)


@asynccontextmanager
async def administering(cluster: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(cluster)
    try:
        yield connection
    finally:
        await connection.close()


async def refused(dsn: str) -> str:
    with pytest.raises(StartupRefused) as refusal:
        async with open_database(dsn, name="test"):
            pass
    return refusal.value.message


def name_in(dsn: str) -> str:
    return urlsplit(dsn).path[1:]


# ── Refusals at the start ───────────────────────────────────────────────────────────────────────────────


async def test_a_database_with_synchronous_commit_off_is_refused(dsn: str, owner: asyncpg.Connection) -> None:
    await owner.execute(f"ALTER DATABASE {name_in(dsn)} SET synchronous_commit = off")
    assert await refused(dsn) == (
        "The database runs with synchronous_commit = off and may lose what it confirmed; turn it on."
    )
    await owner.execute(f"ALTER DATABASE {name_in(dsn)} SET synchronous_commit = local")
    async with open_database(dsn, name="test"):
        pass


async def test_a_cluster_is_refused_before_it_is_migrated_while_it_is_not_durable_and_as_a_standby(
    tmp_path: Path,
) -> None:
    async with embedded_postgres(tmp_path) as cluster:
        message = await refused(cluster.dsn)
        assert message.startswith("The database is not ready for the service")
        assert "run `tallybook migrate`" in message
        await migrate(cluster.dsn)
        async with open_database(cluster.dsn, name="test"):
            pass
    for setting in ("fsync", "full_page_writes", "synchronous_commit"):
        async with embedded_postgres(tmp_path, settings={setting: "off"}) as cluster:
            assert f"with {setting} = off" in await refused(cluster.dsn)
    (tmp_path / "postgres" / "standby.signal").touch()
    async with embedded_postgres(tmp_path) as cluster:
        assert await refused(cluster.dsn) == "The database is a standby; give the address of the primary."


async def test_a_database_of_another_encoding_is_refused(cluster: str) -> None:
    name = f"ascii_{next(_numbers)}"
    async with administering(cluster) as connection:
        await connection.execute(f"CREATE DATABASE {name} ENCODING 'SQL_ASCII' TEMPLATE template0")
        try:
            dsn = urlunsplit(urlsplit(cluster)._replace(path=f"/{name}"))
            assert await refused(dsn) == "The database's encoding is SQL_ASCII; create it with ENCODING 'UTF8'."
        finally:
            await connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


async def test_a_database_that_is_not_there_is_refused(cluster: str) -> None:
    nowhere = urlunsplit(urlsplit(cluster)._replace(path="/nowhere"))
    for address in (nowhere, "postgresql://tallybook@/x?host=/nonexistent", "nonsense", "postgresql://h:port/x"):
        message = await refused(address)
        assert message.startswith("Cannot connect to the database")
        assert message.endswith("Is its address right, is it up?")


async def test_a_login_that_may_not_work_as_the_service_is_refused(dsn: str, owner: asyncpg.Connection) -> None:
    guest = f"guest_{next(_numbers)}"
    await owner.execute(f"CREATE ROLE {guest} LOGIN")
    try:
        message = await refused(urlunsplit(urlsplit(dsn)._replace(netloc=f"{guest}@")))
        assert message.startswith("This login may not work as tallybook_service")
        await owner.execute(f"GRANT tallybook_service TO {guest}")
        async with open_database(urlunsplit(urlsplit(dsn)._replace(netloc=f"{guest}@")), name="test"):
            pass
    finally:
        await owner.execute(f"DROP ROLE {guest}")


async def test_a_refused_database_keeps_no_connection(dsn: str, owner: asyncpg.Connection) -> None:
    await owner.execute("INSERT INTO migration (number, name, sha256) VALUES (9999, 'future', 'x')")
    await refused(dsn)
    others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    await until(lambda: no_more(owner, others))


async def no_more(owner: asyncpg.Connection, query: str) -> bool:
    return await owner.fetchval(query) == 0


# ── Sessions ────────────────────────────────────────────────────────────────────────────────────────────


async def test_every_session_works_as_the_service_in_utc_and_waits_for_nothing_for_ever(database: Database) -> None:
    async with database.connection() as connection:
        shown = dict(
            await connection.fetch(
                "SELECT name, setting FROM pg_settings WHERE name = ANY($1::text[])",
                ["TimeZone", "lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout", "search_path"],
            )
        )
        names = await connection.fetchrow("SELECT current_user, current_setting('application_name')")
    assert tuple(names) == ("tallybook_service", "test")
    assert shown == {
        "TimeZone": "UTC",
        "lock_timeout": "500",
        "statement_timeout": "10000",
        "idle_in_transaction_session_timeout": "10000",
        "search_path": "tallybook",
    }


async def test_a_session_that_was_left_within_a_transaction_is_cleaned_before_the_next_one_has_it(dsn: str) -> None:
    async with open_database(dsn, name="test", connections_max=1) as database:
        async with database.connection() as connection:
            await connection.execute("BEGIN")
        async with database.connection() as connection:
            assert not connection.is_in_transaction()


# ── Trouble ─────────────────────────────────────────────────────────────────────────────────────────────


async def ask(database: Database, statement: str) -> object:
    async with database.connection() as connection:
        return await connection.fetchval(statement)


@pytest.mark.parametrize("end", ["pg_terminate_backend", "pg_cancel_backend"])
async def test_a_session_or_statement_that_is_ended_from_outside_is_trouble_of_the_databases(
    database: Database, owner: asyncpg.Connection, end: str
) -> None:
    asking = asyncio.create_task(ask(database, "SELECT pg_sleep(30)"))
    await until(
        lambda: owner.fetchval(
            f"SELECT {end}(pid) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'"
        )
    )
    with pytest.raises(DatabaseUnavailable):
        await asking
    assert await ask(database, "SELECT 1") == 1


async def test_a_lock_that_is_not_to_be_had_is_trouble_of_the_databases(database: Database, dsn: str) -> None:
    async with holding(dsn, "LOCK TABLE block IN ACCESS EXCLUSIVE MODE"):
        with pytest.raises(DatabaseUnavailable):
            await ask(database, "SELECT sequence FROM head")


@pytest.mark.parametrize("statement", ["SELECT 1 / 0", "SELECT nonsense", "UPDATE append_lock SET refusals = 0"])
async def test_a_mistake_of_ours_comes_as_it_is(database: Database, statement: str) -> None:
    with pytest.raises(asyncpg.PostgresError):
        await ask(database, statement)


async def test_whoever_finds_all_connections_taken_waits_so_long_and_no_longer(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_module, "ACQUIRE_SECONDS_MAX", 0.2)
    async with open_database(dsn, name="test", connections_max=2) as database:
        async with database.connection(), database.raw_connection():
            with pytest.raises(DatabaseUnavailable):
                async with database.connection():
                    pass
        async with database.connection() as connection:
            assert await connection.fetchval("SELECT 1") == 1


async def test_a_database_that_was_away_is_found_again(dsn: str) -> None:
    async with proxy(dsn) as between, open_database(between.dsn, name="test", connections_max=3) as database:
        assert await asyncio.gather(*(ask(database, "SELECT 1") for _ in range(10))) == [1] * 10
        between.refusing = True
        between.cut_all()
        outcomes = await asyncio.gather(*(ask(database, "SELECT 1") for _ in range(10)), return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [DatabaseUnavailable] * 10
        between.refusing = False
        assert await asyncio.gather(*(ask(database, "SELECT 1") for _ in range(10))) == [1] * 10
