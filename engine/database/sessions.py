"""Sessions of PostgreSQL: sets their settings, checks that these took effect, and detects shared sessions.

The service's guarantees depend on settings of its sessions: the role, the timeouts, the search path. The start-up
message does not carry them, because poolers would refuse it or silently drop them. A statement sets them in each new
session. Another statement, in a separate transaction, checks that they took effect.

Balancers send each statement to the server that they choose: reads to a standby, which may be out of date. So the
settings are set by a statement that only a primary executes, after another one, which balancers repeat at all of their
servers, has emptied the search path: a session at a standby finds no table.

The service cannot work with a pooler that lends a session for one transaction at a time (PgBouncer's transaction mode):
settings and prepared statements would be those of other clients, and a change could be made with all rights of the
login and without any timeout. The process ids of the server reveal such a pooler: either one process answers two
clients, or different processes answer one client.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, NoReturn

import asyncpg
from asyncpg import Connection

from engine.domain.errors import StartupRefused

POSTGRES_MAJOR_MIN: Final = 15
"""The SQL of this program needs this version or later."""
ROUNDS: Final = 5
"""The number of other clients, one after another, that a session is compared with."""
DRAWS: Final = 20
"""How often a balancer that may draw a server for each statement is asked which one it has drawn."""
SHARED: Final = (
    "The database address leads to a pooler that shares sessions between transactions: settings, prepared statements "
    "and locks would leak between clients. Set pool_mode = session, or give PostgreSQL's own address."
)
ON_STANDBY: Final = "The database is a standby; give the address of the primary."
BALANCED: Final = (
    "The database address leads to a load balancer that sends reads to a standby, whose answers may be out of date. "
    "Turn that off (pgpool-II: load_balance_mode = off), or give the primary's own address."
)
ALONE: Final = (
    "The pooler at the database address has no second connection for this login; allow it more (default_pool_size)."
)

_FIND_NOTHING: Final = "SET search_path = ''"
_SET: Final = """
    SELECT wanted.name, pg_catalog.set_config(wanted.name, wanted.value, false) AS value,
        pg_catalog.pg_backend_pid() AS process
    FROM unnest($1::text[], $2::text[]) AS wanted (name, value)
    WHERE NOT pg_catalog.pg_is_in_recovery()
"""
# Sent where a balancer sends reads. `pg_is_in_recovery` would take it to the primary, because it is volatile.
_FOUND: Final = """
    SELECT wanted.name, pg_catalog.current_setting(wanted.name) AS value, pg_catalog.pg_backend_pid() AS process,
        pg_catalog.current_setting('in_hot_standby') = 'on' AS is_standby
    FROM unnest($1::text[]) AS wanted (name)
"""
_IS_SENT_TO_STANDBY: Final = "SELECT pg_catalog.current_setting('in_hot_standby', true) = 'on'"
_IS_STANDBY: Final = "SELECT pg_catalog.pg_is_in_recovery()"
_POOL_MODE: Final = "pgbouncer.pool_mode"
_LOGIN: Final = "SELECT pg_catalog.quote_ident(session_user)"
_PROCESS: Final = """
    SELECT pg_catalog.pg_backend_pid() AS number, pg_catalog.pg_postmaster_start_time() AS server_started_at
"""


class SessionUnfit(ConnectionError):
    """A session was opened, but guarantees would not hold in it. The text is a sentence that says what to do."""


async def settle(connection: Connection, settings: Mapping[str, str]) -> None:
    """Sets `settings`, values by name, for the whole session and checks that they took effect. Raises SessionUnfit."""
    names, values = list(settings), list(settings.values())
    _refuse_reported(connection)
    try:
        with _telling_strangers():
            if "search_path" in settings:
                await connection.execute(_FIND_NOTHING)
            was = await connection.fetch(_SET, names, values)
            if not was:  # what a pooler says about this at the start may be long out of date
                raise SessionUnfit(ON_STANDBY)
            now = await connection.fetch(_FOUND, names)
    except asyncpg.InvalidParameterValueError as error:
        raise SessionUnfit(
            f"The database is not ready for the service ({error}); run `tallybook migrate` with the same address."
        ) from error
    except asyncpg.InsufficientPrivilegeError as error:
        login = await connection.fetchval(_LOGIN)
        raise SessionUnfit(
            f"This login may not act as {settings['role']} ({error}); an administrator must run: "
            f"GRANT {settings['role']} TO {login};"
        ) from error
    if now[0]["is_standby"]:
        raise SessionUnfit(BALANCED)
    if len({row["process"] for row in (*was, *now)}) > 1:
        raise SessionUnfit(SHARED)
    lost = [
        f"{before['name']} is {after['value']!r} and not {before['value']!r}"
        for before, after in zip(was, now, strict=True)
        if before["value"] != after["value"]
    ]
    if lost:
        raise SessionUnfit(
            f"A database session does not keep its settings ({', '.join(lost)}); "
            "if its address is a pooler's, set pool_mode = session, or give PostgreSQL's own address."
        )


def refuse_standby(connection: Connection, sentence: str = BALANCED) -> NoReturn:
    """Closes a connection over which a standby has answered, and raises SessionUnfit."""
    connection.terminate()
    raise SessionUnfit(sentence)


async def refuse_balanced(connection: Connection) -> None:
    """As `refuse_standby`, if one answers now. Some balancers draw a server for each statement that is prepared, so
    this prepares DRAWS."""
    for _ in range(DRAWS):
        if await (await connection.prepare(_IS_SENT_TO_STANDBY)).fetchval():
            refuse_standby(connection, ON_STANDBY if await connection.fetchval(_IS_STANDBY) else BALANCED)


async def refuse_shared(connection: Connection, another: Callable[[], Awaitable[Connection]]) -> None:
    """Raises StartupRefused if a pooler shares sessions between transactions, or refuses this login a second one, and
    if a balancer sends reads to a standby.

    `another` connects one more client. If PostgreSQL itself answers, this looks for no pooler: one gives itself away by
    the process numbers that it makes up for its clients to cancel statements by. A client that is alone with the pooler
    is sure to find out. Among many clients, or if several poolers share an address, each round has a chance to.
    """
    with _refusing_strangers():
        _refuse_reported(connection)
        await refuse_balanced(connection)
        process = await connection.fetchrow(_PROCESS)
        if process["number"] == connection.get_server_pid():
            return
        for _ in range(ROUNDS):
            other = await another()
            try:
                async with other.transaction():
                    if await other.fetchrow(_PROCESS) == process or await connection.fetchrow(_PROCESS) != process:
                        raise SessionUnfit(SHARED)
            except (TimeoutError, asyncpg.PostgresConnectionError) as error:
                if isinstance(error, TimeoutError) or "query_wait_timeout" in str(error):
                    raise StartupRefused(ALONE) from error
                raise
            finally:
                other.terminate()


def _refuse_reported(connection: Connection) -> None:
    """Raises SessionUnfit if the pooler itself says that it shares sessions, as PgBouncer does from 1.26 on."""
    if getattr(connection.get_settings(), _POOL_MODE, "session") != "session":
        raise SessionUnfit(SHARED)


def reason(error: BaseException) -> str:
    """A sentence about what went wrong with a connection, even if the error has no text, or hints after it."""
    if isinstance(error, TimeoutError):
        return "it does not answer in time"
    return str(error).partition("\n")[0].rstrip(".") or type(error).__name__


def unreachable(error: BaseException) -> StartupRefused:
    """The refusal to start without a connection. It tells a refused login from a wrong address."""
    if isinstance(error, asyncpg.InvalidAuthorizationSpecificationError):
        sentence = f"The database refuses the login: {reason(error)}. Check the user and the password in its address."
    else:
        sentence = f"Cannot connect to the database: {reason(error)}. Check its address, and that it is running."
    return StartupRefused(sentence)


@contextmanager
def _telling_strangers() -> Iterator[None]:
    """Turns errors that come from sharing a session, such as another client's prepared statement, into SessionUnfit."""
    try:
        yield
    except (asyncpg.DuplicatePreparedStatementError, asyncpg.InvalidSQLStatementNameError) as error:
        raise SessionUnfit(SHARED) from error
    except asyncpg.PostgresConnectionError as error:
        if "statement pooling" not in str(error):
            raise
        raise SessionUnfit(SHARED) from error


@contextmanager
def _refusing_strangers() -> Iterator[None]:
    try:
        with _telling_strangers():
            yield
    except SessionUnfit as unfit:
        raise StartupRefused(str(unfit)) from unfit
