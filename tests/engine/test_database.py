"""The database: unsound ones are refused with what to do about it, and trouble is told apart from mistakes."""

import asyncio
import gc
import os
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest
from structlog.testing import capture_logs

from engine.database.embedded import embedded_postgres
from engine.database.migrator import migrate
from engine.database.pool import Database, open_database
from engine.database.sessions import ALONE, SHARED, SessionUnfit, settle
from engine.domain.errors import DatabaseUnavailable, StartupRefused
from engine.domain.terms import OPERATOR
from tests.bounds import Bounds
from tests.desks import holding, until
from tests.pgbouncer import DROPPED, administered, pgbouncer, reporting
from tests.proxy import proxy
from tests.tournaments import open_new_tournament

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
        assert message.endswith("Check its address, and that it is running.")


async def test_a_login_that_the_database_refuses_is_distinguished_from_a_wrong_address(cluster: str) -> None:
    dsn = urlunsplit(urlsplit(cluster)._replace(netloc="stranger@"))
    message = await refused(dsn)
    assert message.startswith('The database refuses the login: role "stranger" does not exist')
    assert message.endswith("Check the user and the password in its address.")
    with pytest.raises(StartupRefused) as refusal:
        await migrate(dsn)
    assert str(refusal.value) == message
    assert issubclass(asyncpg.InvalidPasswordError, asyncpg.InvalidAuthorizationSpecificationError)


async def test_of_a_database_that_is_paused_it_is_said_that_it_does_not_answer(tmp_path: Path, bounds: Bounds) -> None:
    bounds(CONNECT_SECONDS_MAX=0.3)
    async with embedded_postgres(tmp_path) as cluster:
        await migrate(cluster.dsn)
        os.kill(cluster.pid, signal.SIGSTOP)
        try:
            sentence = (
                "Cannot connect to the database: it does not answer in time. Check its address, and that it is running."
            )
            assert await refused(cluster.dsn) == sentence
            with pytest.raises(StartupRefused) as refusal:
                await migrate(cluster.dsn)
            assert refusal.value.message == sentence
        finally:
            os.kill(cluster.pid, signal.SIGCONT)


async def test_a_login_that_may_not_work_as_the_service_is_refused(dsn: str, owner: asyncpg.Connection) -> None:
    guest = f"guest_{next(_numbers)}"
    await owner.execute(f"CREATE ROLE {guest} LOGIN")
    try:
        message = await refused(urlunsplit(urlsplit(dsn)._replace(netloc=f"{guest}@")))
        assert message.startswith("This login may not act as tallybook_service")
        head, _, statement = message.rpartition(": ")
        assert (head.rpartition("; ")[2], statement) == (
            "an administrator must run",
            f"GRANT tallybook_service TO {guest};",
        )
        await owner.execute(statement)
        async with open_database(urlunsplit(urlsplit(dsn)._replace(netloc=f"{guest}@")), name="test"):
            pass
    finally:
        await owner.execute(f"DROP ROLE {guest}")


async def test_a_refused_database_keeps_no_connection(dsn: str, owner: asyncpg.Connection) -> None:
    await owner.execute("INSERT INTO migration (number, name, sha256) VALUES (9999, 'future', 'x')")
    await refused(dsn)
    others = """
        SELECT count(*)
        FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()
            AND backend_type = 'client backend' AND NOT starts_with(application_name, 'citus_')
    """
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


SETTINGS = {
    "client_min_messages": "warning",
    "enable_bitmapscan": "off",
    "enable_seqscan": "off",
    "idle_in_transaction_session_timeout": "10s",
    "jit": "off",
    "lock_timeout": "500ms",
    "role": "tallybook_service",
    "search_path": "tallybook",
    "statement_timeout": "10s",
    "TimeZone": "UTC",
}


async def assert_works_as_the_service(database: Database) -> None:
    """Two sessions at once, each with all that guarantees rest on, in one transaction and in the next."""
    async with database.connection() as one, database.connection() as other:
        for connection in (one, other, one, other):
            rows = await connection.fetch(
                "SELECT name, current_setting(name) FROM unnest($1::text[]) AS name", [*SETTINGS]
            )
            assert dict(rows) == SETTINGS
            assert await connection.fetchval("SELECT current_user::text") == "tallybook_service"
    await open_new_tournament(database, actor=OPERATOR)


async def test_where_start_up_parameters_are_dropped_sessions_are_the_services_all_the_same(
    dsn: str, owner: asyncpg.Connection
) -> None:
    """As poolers drop them, and with a login that would find everything without being the service."""
    await owner.execute(f"ALTER DATABASE {name_in(dsn)} SET search_path = tallybook")
    async with proxy(dsn) as between:
        between.dropping = True
        async with open_database(between.dsn, name="test") as database:
            await assert_works_as_the_service(database)
            between.cut_all()
            await until(lambda: works_again(database))
            await assert_works_as_the_service(database)


async def works_again(database: Database) -> bool:
    try:
        return await ask(database, "SELECT 1") == 1
    except DatabaseUnavailable:
        return False


async def test_a_session_that_does_not_keep_a_setting_is_unfit(dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        await settle(connection, SETTINGS)
        with pytest.raises(SessionUnfit, match=r"transaction_read_only is 'off' and not 'on'\)"):
            await settle(connection, SETTINGS | {"transaction_read_only": "on"})  # it lasts for one transaction
    finally:
        await connection.close()


async def test_a_new_session_that_is_unfit_while_the_service_runs_is_reported_as_database_trouble(
    dsn: str, owner: asyncpg.Connection
) -> None:
    guest = f"guest_{next(_numbers)}"
    await owner.execute(f"CREATE ROLE {guest} LOGIN IN ROLE tallybook_service")
    try:
        async with open_database(urlunsplit(urlsplit(dsn)._replace(netloc=f"{guest}@")), name="test") as database:
            assert await ask(database, "SELECT 1") == 1
            await owner.execute(f"REVOKE tallybook_service FROM {guest}")
            await owner.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = $1", guest)
            with capture_logs() as said:
                for _ in range(3):
                    with pytest.raises(DatabaseUnavailable):
                        await ask(database, "SELECT 1")
            reasons = [line["reason"] for line in said if line["event"] == "session_refused"]
            assert len(reasons) == 1, "said once, not each time"
            assert reasons[0].startswith("This login may not act as tallybook_service")
            await owner.execute(f"GRANT tallybook_service TO {guest}")
            assert await ask(database, "SELECT 1") == 1
    finally:
        await owner.execute(f"DROP ROLE {guest}")


# ── Poolers ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("ignored", ["", DROPPED])
async def test_through_a_pooler_in_session_mode_sessions_are_the_services(
    dsn: str, owner: asyncpg.Connection, ignored: str
) -> None:
    """Whether it refuses start-up parameters, as PgBouncer does by itself, or has been told to ignore them."""
    login = f"pooled_{next(_numbers)}"
    await owner.execute(f"CREATE ROLE {login} LOGIN SUPERUSER; ALTER ROLE {login} SET search_path = tallybook")
    try:
        settings = {"ignore_startup_parameters": ignored} if ignored else {}
        async with pgbouncer(dsn, "session", logins=(login,), **settings) as pooled:
            address = urlunsplit(urlsplit(pooled)._replace(netloc=f"{login}@"))
            for _ in range(2):  # the second finds sessions that the first has left to the pooler
                async with open_database(address, name="test") as database:
                    await assert_works_as_the_service(database)
        await until(lambda: no_more(owner, f"SELECT count(*) FROM pg_stat_activity WHERE usename = '{login}'"))
    finally:
        await owner.execute(f"DROP ROLE {login}")


@pytest.mark.one_in(3)
@pytest.mark.parametrize("settings", [{}, {"server_round_robin": "1"}, {"default_pool_size": "1"}], ids=str)
@pytest.mark.parametrize("busy", [False, True])
async def test_a_pooler_in_transaction_mode_is_refused_with_why(
    dsn: str, settings: dict[str, str], *, busy: bool
) -> None:
    ignored = {"ignore_startup_parameters": DROPPED}
    async with pgbouncer(dsn, "transaction", **(ignored | settings)) as pooled, asyncio.TaskGroup() as tasks:
        others = [tasks.create_task(ask_on(pooled)) for _ in range(4 * busy)]
        for _ in range(5):
            assert await refused(pooled) == SHARED
        for other in others:
            other.cancel()


async def ask_on(dsn: str) -> None:
    """Transactions, one after the other, of somebody else."""
    connection = await asyncpg.connect(dsn, statement_cache_size=0)
    try:
        while True:
            await connection.execute("SELECT pg_sleep(0.001)")
    finally:
        connection.terminate()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("seconds", ["0", "1"])
async def test_a_pooler_in_session_mode_that_has_but_one_connection_is_refused_with_what_to_change(
    dsn: str, bounds: Bounds, seconds: str
) -> None:
    """Whether it lets its clients wait for ever, or for some seconds."""
    bounds(CONNECT_SECONDS_MAX=2)
    async with pgbouncer(dsn, "session", default_pool_size="1", query_wait_timeout=seconds) as pooled:
        assert await refused(pooled) == ALONE
        with pytest.raises(StartupRefused) as refusal:
            await migrate(pooled)
        assert refusal.value.message == ALONE


@pytest.mark.parametrize("mode", ["transaction", "statement"])
async def test_a_pooler_that_reports_that_it_shares_sessions_is_refused_for_certain(dsn: str, mode: str) -> None:
    async with reporting(dsn, mode) as pooled:
        assert await refused(pooled) == SHARED
        with pytest.raises(StartupRefused) as refusal:
            await migrate(pooled)
        assert refusal.value.message == SHARED
    async with reporting(dsn, "session") as pooled, open_database(pooled, name="test") as database:
        await assert_works_as_the_service(database)


async def test_a_pooler_in_statement_mode_is_refused(dsn: str) -> None:
    async with pgbouncer(dsn, "statement", ignore_startup_parameters=DROPPED) as pooled:
        assert await refused(pooled) == SHARED


@pytest.mark.long
async def test_a_standby_is_refused_through_a_pooler_and_found_when_it_is_promoted(tmp_path: Path) -> None:
    async with embedded_postgres(tmp_path) as cluster:
        await migrate(cluster.dsn)
    (tmp_path / "postgres" / "standby.signal").touch()
    async with embedded_postgres(tmp_path) as cluster, pgbouncer(cluster.dsn, "session") as pooled:
        assert await refused(pooled) == "The database is a standby; give the address of the primary."
        async with administering(cluster.dsn) as connection:
            await connection.execute("SELECT pg_promote()")
        # As OPERATIONS says: the pooler goes on reporting what it has been told before.
        assert await refused(pooled) == "The database is a standby; give the address of the primary."
        await administered(pooled, "RECONNECT")
        async with open_database(pooled, name="test") as database:
            await assert_works_as_the_service(database)


@pytest.mark.long
async def test_a_standby_that_a_pooler_reports_as_the_primary_that_it_was_is_refused(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        async with embedded_postgres(tmp_path) as cluster:
            await migrate(cluster.dsn)
            pooled = await stack.enter_async_context(pgbouncer(cluster.dsn, "session"))
            async with open_database(pooled, name="test") as database:
                await assert_works_as_the_service(database)
        (tmp_path / "postgres" / "standby.signal").touch()
        async with embedded_postgres(tmp_path):
            async with administering(pooled) as connection:
                assert connection.get_settings().in_hot_standby == "off"
                assert await connection.fetchval("SELECT pg_is_in_recovery()")
            assert await refused(pooled) == "The database is a standby; give the address of the primary."


# ── Several services in one cluster ─────────────────────────────────────────────────────────────────────


@pytest.mark.one_postgresql(
    "its nodes talk as `tallybook_service`, who so may connect: nobody else shares that cluster"
)
async def test_what_operations_says_keeps_one_services_login_out_of_the_others_database(
    cluster: str, dsn: str, owner: asyncpg.Connection
) -> None:
    """`tallybook_service` belongs to the cluster, and so whoever may be it may append wherever they may connect."""
    ours, theirs = name_in(dsn), f"theirs_{next(_numbers)}"
    our_login, their_login = f"our_{next(_numbers)}", f"their_{next(_numbers)}"
    their_dsn = urlunsplit(urlsplit(cluster)._replace(path=f"/{theirs}"))
    async with administering(cluster) as administrator:
        await administrator.execute(f"CREATE DATABASE {theirs}")
        await administrator.execute(f"CREATE ROLE {our_login} LOGIN; CREATE ROLE {their_login} LOGIN")
        try:
            await migrate(their_dsn)
            await administrator.execute(f"GRANT tallybook_service TO {our_login}, {their_login}")
            crossing = urlunsplit(urlsplit(their_dsn)._replace(netloc=f"{our_login}@"))
            async with open_database(crossing, name="test") as database:
                await open_new_tournament(database, actor=OPERATOR)
            for name, login in ((ours, our_login), (theirs, their_login)):
                await administrator.execute(f"REVOKE CONNECT ON DATABASE {name} FROM PUBLIC")
                await administrator.execute(f"GRANT CONNECT ON DATABASE {name} TO {login}")
            assert "permission denied for database" in await refused(crossing)
            await administrator.execute(f"GRANT CONNECT ON DATABASE {theirs} TO tallybook_service")
            async with open_database(crossing, name="test"):
                pass  # why the documentation says never to do that
            await administrator.execute(f"REVOKE CONNECT ON DATABASE {theirs} FROM tallybook_service")
            for address, login in ((dsn, our_login), (their_dsn, their_login)):
                async with open_database(urlunsplit(urlsplit(address)._replace(netloc=f"{login}@")), name="test") as ok:
                    await open_new_tournament(ok, actor=OPERATOR)
        finally:
            await owner.execute(f"REVOKE CONNECT ON DATABASE {ours} FROM {our_login}")
            await administrator.execute(f"DROP DATABASE {theirs} WITH (FORCE)")
            await administrator.execute(f"DROP ROLE {our_login}, {their_login}")


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


async def test_the_wait_for_a_connection_is_limited(dsn: str, bounds: Bounds) -> None:
    bounds(ACQUIRE_SECONDS_MAX=0.2)
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


async def test_who_gives_up_a_silent_connection_twice_leaves_nothing_that_the_event_loop_reports(
    dsn: str, bounds: Bounds
) -> None:
    bounds(ACQUIRE_SECONDS_MAX=0.2)
    reported: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: reported.append(context))
    async with proxy(dsn) as between, open_database(between.dsn, name="test", connections_max=1) as database:
        async with between.holding_answers("SELECT 7 AS held") as held:
            asking = asyncio.create_task(ask(database, "SELECT 7 AS held"))
            await held.wait()
            between.fall_silent(answers_only=False)
            for _ in range(2):
                asking.cancel()
                await asyncio.sleep(0)
            with pytest.raises(asyncio.CancelledError):
                await asking
            assert await until_asked(database) == 1
        gc.collect()
    assert reported == []


async def until_asked(database: Database) -> object:
    """What a statement answers once there is a connection again."""
    while True:
        with suppress(DatabaseUnavailable):
            return await ask(database, "SELECT 1")


async def test_a_node_that_was_lost_in_a_commit_is_trouble_and_other_inner_errors_are_defects(
    database: Database,
) -> None:
    def failing(message: str) -> str:
        return f"DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = 'XX000', MESSAGE = '{message}'; END $$"

    with pytest.raises(DatabaseUnavailable):
        async with database.connection() as connection:
            await connection.execute(failing("could not commit transaction for shard 7 on at least one active node"))
    with pytest.raises(asyncpg.InternalServerError, match="another"):
        async with database.connection() as connection:
            await connection.execute(failing("another"))


# ── The driver's way to the wire, cut short ─────────────────────────────────────────────────────────────


async def test_a_prepared_statement_says_the_same_as_by_the_drivers_own_way(database: Database) -> None:
    async with database.connection() as connection:
        for _ in range(3):  # the first time it is prepared
            assert [
                tuple(row) for row in await connection.fetch("SELECT n, $1::text FROM generate_series(1, 2) AS n", "a")
            ] == [
                (1, "a"),
                (2, "a"),
            ]
            assert (await connection.fetchrow("SELECT 1 AS one, $1::int AS n", 2))["n"] == 2
            assert await connection.fetchrow("SELECT 1 WHERE $1::bool", False) is None
            assert await connection.fetchval("SELECT $1::int + 1", 2) == 3
            assert await connection.execute("SELECT $1::int", 2) == "SELECT 1"
            with pytest.raises(asyncpg.DivisionByZeroError):
                await connection.fetchval("SELECT 1 / $1::int", 0)


async def test_a_statement_whose_result_has_changed_is_prepared_again(
    database: Database, owner: asyncpg.Connection
) -> None:
    await owner.execute("CREATE TABLE shape (a int); INSERT INTO shape VALUES (1); GRANT SELECT ON shape TO PUBLIC")
    async with database.connection() as connection, database.connection() as other:
        for each in (connection, other):
            for _ in range(2):
                assert tuple(await each.fetchrow("SELECT * FROM shape")) == (1,)
        await owner.execute("ALTER TABLE shape ADD b text DEFAULT 'x'")
        assert tuple(await connection.fetchrow("SELECT * FROM shape")) == (1, "x")
        await owner.execute("ALTER TABLE shape DROP a")
        assert tuple(await connection.fetchrow("SELECT * FROM shape")) == ("x",)
        for _ in range(2):
            assert tuple(await other.fetchrow("SELECT * FROM shape")) == ("x",)
        await owner.execute("ALTER TABLE shape ADD c int DEFAULT 3")
        with pytest.raises(asyncpg.InvalidCachedStatementError):  # it has ended the transaction
            async with other.transaction():
                await other.fetchrow("SELECT * FROM shape")
        assert tuple(await other.fetchrow("SELECT * FROM shape")) == ("x", 3)


async def test_two_statements_at_once_on_one_connection_are_refused(database: Database) -> None:
    statement = "SELECT 1 FROM pg_sleep(0.05)"
    async with database.connection() as connection:
        await connection.fetchval(statement)
        first = asyncio.create_task(connection.fetchval(statement))
        await asyncio.sleep(0)
        with pytest.raises(asyncpg.InterfaceError):
            await connection.fetchval(statement)
        assert await first == 1


async def test_a_statement_that_takes_too_long_is_cancelled(dsn: str, bounds: Bounds) -> None:
    bounds(STATEMENT_SECONDS_MAX=-1.9)  # the driver waits 2 s more than the server
    async with open_database(dsn, name="test") as database, database.raw_connection() as connection:
        await connection.fetchval("SELECT 1 FROM pg_sleep($1)", 0.0)
        with pytest.raises(TimeoutError):
            await connection.fetchval("SELECT 1 FROM pg_sleep($1)", 5.0)
