"""Migrations: each is applied once, however many processes start at once; what does not fit is refused."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hashlib import sha256
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest

from engine.database import migrator
from engine.database.embedded import embedded_postgres
from engine.database.migrator import Migration, migrate, shipped
from engine.database.pool import open_database
from engine.database.sessions import SHARED
from engine.domain.errors import StartupRefused
from engine.domain.terms import OPERATOR
from tests.bounds import Bounds
from tests.desks import ADVISORY_LOCKS, until, waiting_for_locks
from tests.pgbouncer import pgbouncer
from tests.tournaments import open_new_tournament

_numbers = count(1)

MIGRATE = """
import asyncio, sys
from engine.database.migrator import migrate

print(len(asyncio.run(migrate(sys.argv[1]))))
"""


def with_database(dsn: str, name: str) -> str:
    return urlunsplit(urlsplit(dsn)._replace(path=f"/{name}"))


@asynccontextmanager
async def session(dsn: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(dsn, server_settings={"search_path": "tallybook"})
    try:
        yield connection
    finally:
        await connection.close()


@pytest.fixture
async def empty(cluster: str) -> AsyncIterator[str]:
    """The address of a database that nobody has migrated."""
    name = f"empty_{next(_numbers)}"
    async with session(cluster) as connection:
        await connection.execute(f"CREATE DATABASE {name}")
        yield with_database(cluster, name)
        await connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


async def register(dsn: str) -> list[tuple[int, str]]:
    async with session(dsn) as connection:
        return [tuple(row) for row in await connection.fetch("SELECT number, name FROM migration ORDER BY number")]


BASELINE = 5
"""The last file of the baseline, one for each subject. Nothing older was released."""
SHIPPED = [(migration.number, migration.name) for migration in shipped()]


def test_shipped_migrations_are_numbered_from_one_without_a_gap() -> None:
    assert [number for number, _ in SHIPPED] == list(range(1, len(SHIPPED) + 1))


def test_every_migration_opens_with_why_it_is_there() -> None:
    assert [migration.name for migration in shipped() if not migration.sql.startswith("-- ")] == []


def test_every_migration_after_the_baseline_says_which_older_code_runs_on_with_it() -> None:
    """`-- Oldest code that runs on it: NNNN`; its own number if no older code does."""
    silent = [migration.name for migration in shipped() if migration.number > BASELINE and migration.oldest is None]
    assert silent == []
    assert [m.name for m in shipped() if m.oldest is not None and not 0 < m.oldest <= m.number] == []


@pytest.mark.parametrize(
    ("line", "oldest"),
    [
        ("-- Oldest code that runs on it: 0003", 3),
        ("-- oldest code that runs on it: 0003", None),
        ("-- Oldest code that runs on it: 3", None),
        ("-- Oldest code that runs on it: 0003.", None),
        ("SELECT '-- Oldest code that runs on it: 0003'", None),
    ],
)
def test_a_migration_says_by_one_line_which_older_code_runs_on_with_it(line: str, oldest: int | None) -> None:
    assert Migration.of_file("0005_more.sql", f"-- Why.\n--\n{line}\nSELECT 1;\n".encode()).oldest == oldest


# ── At once ─────────────────────────────────────────────────────────────────────────────────────────────


async def test_of_five_that_start_at_once_each_succeeds_and_each_migration_is_applied_once(empty: str) -> None:
    applied = await asyncio.gather(*(migrate(empty) for _ in range(5)))
    assert sorted(map(len, applied)) == [0, 0, 0, 0, len(SHIPPED)]
    assert await register(empty) == SHIPPED
    async with open_database(empty, name="test") as database:
        await open_new_tournament(database, actor=OPERATOR)


async def test_of_five_processes_that_start_at_once_each_succeeds(empty: str) -> None:
    processes = [
        await asyncio.create_subprocess_exec(sys.executable, "-c", MIGRATE, empty, stdout=subprocess.PIPE)
        for _ in range(5)
    ]
    said = [(await process.communicate())[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * 5
    assert sorted(map(int, said)) == [0, 0, 0, 0, len(SHIPPED)]
    assert await register(empty) == SHIPPED


async def test_five_databases_of_a_new_cluster_are_migrated_at_once(tmp_path: Path) -> None:
    """They share the service's role, which does not exist before."""
    async with embedded_postgres(tmp_path) as cluster:
        async with session(cluster.dsn) as connection:
            for n in range(5):
                await connection.execute(f"CREATE DATABASE d{n}")
        dsns = [with_database(cluster.dsn, f"d{n}") for n in range(5)]
        applied = await asyncio.gather(*(migrate(dsn) for dsn in dsns))
        assert [len(one) for one in applied] == [len(SHIPPED)] * 5
        for dsn in dsns:
            async with open_database(dsn, name="test"):
                pass


async def test_an_owner_who_is_no_superuser_can_migrate_and_serve(tmp_path: Path) -> None:
    """As with a PostgreSQL that somebody else administers; the owner creates the service's role."""
    async with embedded_postgres(tmp_path) as cluster:
        async with session(cluster.dsn) as connection:
            await connection.execute("CREATE ROLE landlord LOGIN CREATEROLE")
            await connection.execute("CREATE DATABASE estate OWNER landlord")
        dsn = urlunsplit(urlsplit(with_database(cluster.dsn, "estate"))._replace(netloc="landlord@"))
        assert len(await migrate(dsn)) == len(SHIPPED)
        async with open_database(dsn, name="test") as database:
            await open_new_tournament(database, actor=OPERATOR)


@asynccontextmanager
async def estate(tmp_path: Path, *statements: str) -> AsyncIterator[tuple[asyncpg.Connection, str]]:
    """A new cluster with a database that belongs to a plain login, after an administrator has run the statements: the
    administrator's connection, and the owner's address of the database."""
    async with embedded_postgres(tmp_path) as cluster, session(cluster.dsn) as administrator:
        await administrator.execute("CREATE ROLE landlord LOGIN")
        await administrator.execute("CREATE DATABASE estate OWNER landlord")
        for statement in statements:
            await administrator.execute(statement)
        yield administrator, urlunsplit(urlsplit(with_database(cluster.dsn, "estate"))._replace(netloc="landlord@"))


async def test_the_plain_owner_of_a_database_can_migrate_and_serve_where_the_role_exists(tmp_path: Path) -> None:
    statements = ("CREATE ROLE tallybook_service NOLOGIN", "GRANT tallybook_service TO landlord")
    async with estate(tmp_path, *statements) as (_, dsn):
        assert len(await migrate(dsn)) == len(SHIPPED)
        assert await migrate(dsn) == []
        async with open_database(dsn, name="test") as database:
            await open_new_tournament(database, actor=OPERATOR)


async def test_an_owner_who_may_not_be_the_service_can_migrate_and_another_login_serves(tmp_path: Path) -> None:
    statements = ("CREATE ROLE tallybook_service NOLOGIN", "CREATE ROLE servant LOGIN IN ROLE tallybook_service")
    async with estate(tmp_path, *statements) as (_, dsn):
        assert len(await migrate(dsn)) == len(SHIPPED)
        assert (await refused_to_serve(dsn)).endswith("must run: GRANT tallybook_service TO landlord;")
        async with open_database(dsn.replace("landlord@", "servant@"), name="test") as database:
            await open_new_tournament(database, actor=OPERATOR)


async def test_a_plain_owner_learns_what_an_administrator_must_run_where_the_role_does_not_exist(
    tmp_path: Path,
) -> None:
    async with estate(tmp_path) as (administrator, dsn):
        with pytest.raises(StartupRefused) as refusal:
            await migrate(dsn)
        reason, _, statements = refusal.value.message.partition(": ")
        assert reason == (
            "The service's role does not exist, and this login may not create it; "
            "before `tallybook migrate` an administrator must run"
        )
        assert statements == "CREATE ROLE tallybook_service NOLOGIN; GRANT tallybook_service TO landlord;"
        async with session(dsn) as owner:
            assert await owner.fetchval("SELECT to_regnamespace('tallybook')") is None
        await administrator.execute(statements)
        assert len(await migrate(dsn)) == len(SHIPPED)
        async with open_database(dsn, name="test") as database:
            await open_new_tournament(database, actor=OPERATOR)


# ── What does not fit ───────────────────────────────────────────────────────────────────────────────────


async def test_migrating_again_changes_nothing(dsn: str) -> None:
    assert await migrate(dsn) == []
    assert await register(dsn) == SHIPPED


async def refused(dsn: str) -> tuple[str, str]:
    """What migrating and what serving is refused with."""
    with pytest.raises(StartupRefused) as migrating:
        await migrate(dsn)
    return migrating.value.message, await refused_to_serve(dsn)


async def refused_to_serve(dsn: str) -> str:
    with pytest.raises(StartupRefused) as serving:
        async with open_database(dsn, name="test"):
            pass
    return serving.value.message


async def test_a_file_that_was_edited_after_it_was_applied_is_refused(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, *others = shipped()
    edited = Migration(number=first.number, name=first.name, sql=first.sql, sha256=sha256(b"edited").hexdigest())
    monkeypatch.setattr(migrator, "shipped", lambda: [edited, *others])
    for message in await refused(dsn):
        assert message.startswith("Migration 0001 log was edited after it was applied; install the version")
    assert await register(dsn) == SHIPPED


async def test_a_database_newer_than_the_code_is_refused(dsn: str, owner: asyncpg.Connection) -> None:
    await owner.execute("INSERT INTO migration (number, name, sha256) VALUES (9999, 'future', 'x')")
    for message in await refused(dsn):
        assert message == "The database has migration 9999, which this version does not know; run a newer version."


KNOWN = len(SHIPPED)


@pytest.mark.parametrize(
    ("newer", "unknown"),
    [
        ([(KNOWN + 1, KNOWN)], None),
        ([(KNOWN + 1, 1)], None),
        ([(KNOWN + 1, KNOWN), (KNOWN + 2, 1), (KNOWN + 3, KNOWN)], None),
        ([(KNOWN + 1, KNOWN + 1)], KNOWN + 1),
        ([(KNOWN + 1, None)], KNOWN + 1),
        ([(KNOWN + 1, KNOWN), (KNOWN + 2, KNOWN + 1)], KNOWN + 2),
        ([(KNOWN + 1, None), (KNOWN + 2, KNOWN)], KNOWN + 1),
        ([(0, 0)], 0),
    ],
)
async def test_code_runs_on_where_newer_migrations_say_so_of_it_and_is_refused_where_one_does_not(
    dsn: str, owner: asyncpg.Connection, newer: list[tuple[int, int | None]], unknown: int | None
) -> None:
    """Between `migrate` and the upgrade of a process its supervisor may start it again. `newer`: number and oldest."""
    for number, oldest in newer:
        await owner.execute(
            "INSERT INTO migration (number, name, sha256, oldest) VALUES ($1, 'newer', 'x', $2)", number, oldest
        )
    if unknown is None:
        assert await migrate(dsn) == []
        async with open_database(dsn, name="test") as database:
            await open_new_tournament(database, actor=OPERATOR)
    else:
        for message in await refused(dsn):
            assert message == (
                f"The database has migration {unknown:04}, which this version does not know; run a newer version."
            )


async def test_what_a_new_migration_says_of_older_code_is_kept_for_it(
    dsn: str, owner: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = shipped()
    lines = f"-- More.\n--\n-- Oldest code that runs on it: {KNOWN:04}\nCREATE TABLE more ();\n"
    newer = Migration.of_file(f"{KNOWN + 1:04}_more.sql", lines.encode())
    with monkeypatch.context() as newer_version:
        newer_version.setattr(migrator, "shipped", lambda: [*known, newer])
        assert await migrate(dsn) == [newer]
        async with open_database(dsn, name="test"):
            pass
    async with open_database(dsn, name="test"):
        pass  # the old version, started again
    with monkeypatch.context() as still_older_version:
        still_older_version.setattr(migrator, "shipped", lambda: known[:-1])
        assert f"The database has migration {KNOWN:04}" in await refused_to_serve(dsn)


async def test_a_pooler_that_shares_sessions_is_refused_and_keeps_no_lock(dsn: str) -> None:
    """The turn is a lock of the session's: it would stay with the pooler, and nobody could migrate any more."""
    async with pgbouncer(dsn, "transaction") as pooled:
        with pytest.raises(StartupRefused) as refusal:
            await migrate(pooled)
        assert refusal.value.message == SHARED
        async with session(dsn) as other:
            assert await other.fetch(ADVISORY_LOCKS) == []
    async with pgbouncer(dsn, "session") as pooled:
        assert await migrate(pooled) == []


async def test_a_database_that_lacks_migrations_is_not_served(
    empty: str, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = ", ".join(f"{number:04} {name}" for number, name in SHIPPED)
    assert await refused_to_serve(empty) == f"The database lacks migrations ({named}); run `tallybook migrate`."
    one_more = Migration(number=len(SHIPPED) + 1, name="more", sql="CREATE TABLE more ()", sha256="x")
    known = shipped()
    monkeypatch.setattr(migrator, "shipped", lambda: [*known, one_more])
    assert "run `tallybook migrate`" in await refused_to_serve(dsn)
    assert await migrate(dsn) == [one_more]
    async with open_database(dsn, name="test"):
        pass


async def test_a_migration_that_fails_is_undone_whole_and_can_be_tried_again(
    dsn: str, owner: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = shipped()

    def ship(sql: str) -> Migration:
        more = Migration(number=len(before) + 1, name="more", sql=sql, sha256=sha256(sql.encode()).hexdigest())
        monkeypatch.setattr(migrator, "shipped", lambda: [*before, more])
        return more

    ship("CREATE TABLE more (); SELECT 1 / 0")
    with pytest.raises(StartupRefused, match="division by zero"):
        await migrate(dsn)
    assert await owner.fetchval("SELECT to_regclass('more')") is None
    assert await register(dsn) == SHIPPED
    better = ship("CREATE TABLE more ()")
    assert await migrate(dsn) == [better]
    assert await owner.fetchval("SELECT to_regclass('more')") == "more"


async def test_a_login_without_the_right_to_migrate_is_refused(cluster: str, empty: str) -> None:
    guest = f"guest_{next(_numbers)}"
    async with session(cluster) as connection:
        await connection.execute(f"CREATE ROLE {guest} LOGIN")
        try:
            with pytest.raises(StartupRefused, match=r"may not migrate the database .* as its owner"):
                await migrate(urlunsplit(urlsplit(empty)._replace(netloc=f"{guest}@")))
        finally:
            await connection.execute(f"DROP ROLE {guest}")


async def test_a_database_that_is_not_there_is_reported(cluster: str) -> None:
    for address in (with_database(cluster, "nowhere"), "postgresql://tallybook@/x?host=/nonexistent", "nonsense"):
        with pytest.raises(StartupRefused, match="Cannot connect to the database"):
            await migrate(address)


# ── Waiting for the turn ────────────────────────────────────────────────────────────────────────────────


async def test_the_next_process_gets_the_turn_when_the_other_is_gone(empty: str) -> None:
    async with session(empty) as holder, session(empty) as owner:
        await migrator._lock(holder)
        waiting = asyncio.create_task(migrate(empty))
        await until(lambda: owner.fetchval(POLLING))
        assert await owner.fetchval("SELECT to_regnamespace('tallybook')") is None
        holder.terminate()  # it crashes: nobody is left to give the lock back
        assert len(await waiting) == len(SHIPPED)


async def test_waiting_too_long_for_the_turn_ends_in_a_sentence(empty: str, bounds: Bounds) -> None:
    bounds(LOCK_SECONDS_MAX=0.3)
    async with session(empty) as holder:
        await migrator._lock(holder)
        with pytest.raises(StartupRefused, match="Another process has been migrating"):
            await migrate(empty)


POLLING = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND query = 'SELECT pg_try_advisory_lock($1)' AND state = 'idle'
        AND pid <> pg_backend_pid()
"""


async def test_those_who_wait_for_the_turn_do_not_hold_up_an_index_that_is_built_concurrently(empty: str) -> None:
    async with session(empty) as holder, session(empty) as owner:
        await holder.execute("CREATE TABLE public.big AS SELECT generate_series(1, 1000) AS n")
        await migrator._lock(holder)
        waiting = [asyncio.create_task(migrate(empty)) for _ in range(3)]
        await until(lambda: owner.fetchval(POLLING))
        await holder.execute("SET lock_timeout = '5s'")
        await holder.execute("CREATE INDEX CONCURRENTLY ON public.big (n)")
        await holder.close()
        assert sum(map(len, await asyncio.gather(*waiting))) == len(SHIPPED)


async def test_those_who_would_wait_inside_the_database_would_hold_it_up(empty: str) -> None:
    """Why the lock is polled: a session that waits in pg_advisory_lock() holds a snapshot, for as long as it waits."""
    async with session(empty) as holder, session(empty) as waiter, session(empty) as owner:
        await holder.execute("CREATE TABLE public.big AS SELECT generate_series(1, 1000) AS n")
        await migrator._lock(holder)
        waiting = asyncio.create_task(waiter.execute("SELECT pg_advisory_lock($1)", migrator._LOCK_KEY))
        await until(lambda: waiting_for_locks(owner, "pg_advisory_lock"))
        await holder.execute("SET lock_timeout = '300ms'")
        with pytest.raises((asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError)):
            await holder.execute("CREATE INDEX CONCURRENTLY ON public.big (n)")
        await holder.close()
        await waiting
