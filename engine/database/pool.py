"""Connections to PostgreSQL: how they are set up, what their errors mean, and which databases are refused."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from typing import Any, Final

import asyncpg
from asyncpg import Connection, Pool

from engine.database.address import Hosts
from engine.database.distribution import (
    Node,
    ServiceConnection,
    is_distributed,
    nodes_with_shards,
    recognize,
    refuse_half_distributed,
)
from engine.database.mending import refuse_without_rights
from engine.database.migrator import CLOSE_SECONDS_MAX, CONNECT_SECONDS_MAX, another_client, refuse_unmigrated, shipped
from engine.database.nodes import Nodes
from engine.database.sessions import (
    ON_STANDBY,
    POSTGRES_MAJOR_MIN,
    SessionUnfit,
    refuse_balanced,
    refuse_shared,
    settle,
    unreachable,
)
from engine.domain.errors import DatabaseUnavailable, IdTaken, OutcomeUnknown, StartupRefused
from engine.domain.terms import TournamentId
from engine.process.logs import Logger
from engine.process.telemetry import DURABLE_ELSEWHERE, NODES_AVOIDED, POOL_CONNECTIONS, POOL_IN_USE, POOL_WAITING

SERVICE_ROLE: Final = "tallybook_service"
ACQUIRE_SECONDS_MAX: Final = 3.0
STATEMENT_SECONDS_MAX: Final = 10.0
POOL_CONNECTIONS_MAX: Final = 12
"""Connections of one process: one appends, a few append what is held up, the others read."""
AROUND_CONNECTIONS_MAX: Final = 6
"""Connections of one process that ask for the tournaments of one node by way of another, while it is avoided."""
AVOIDED_SECONDS: Final = 10.0
"""How long a node that refused a connection is avoided."""
NODE_TASK: Final = "node"
"""The name of tasks that work with one node: they start when the node is first needed, and end with their creator."""
_WRITTEN_THROUGH: Final = ("fsync", "full_page_writes")
_ELSEWHERE: Final = "SELECT current_setting('tallybook.durable_elsewhere', true)"
_logger: Final = Logger()

# The settings of each session. Because of the role, even a login that owns the database has only the service's rights.
_SERVICE_SETTINGS: Final = {
    "role": SERVICE_ROLE,
    "search_path": "tallybook",
    "timezone": "UTC",
    "client_min_messages": "warning",
    "lock_timeout": "500ms",
    "statement_timeout": f"{int(STATEMENT_SECONDS_MAX * 1000)}ms",
    "idle_in_transaction_session_timeout": "10s",
    "jit": "off",
    # Plans are kept. A scan that was planned while a table was small would be kept as the table grows.
    "enable_seqscan": "off",
    # PostgreSQL must not fetch and sort the whole rest of a log for each chunk that is read. It would if it took the
    # tournament for a short one: it knows only the average length.
    "enable_bitmapscan": "off",
}

# With one connection to each node, a transaction sees a consistent snapshot of each node. Without local execution,
# Citus refuses the statements of `append_block`.
_DISTRIBUTED_SETTINGS: Final = {
    "citus.max_adaptive_executor_pool_size": "1",
    "citus.enable_local_execution": "on",
}

# The arrays in statements, as asyncpg describes types: PostgreSQL's own, whose OIDs are the same on every server. Of
# arrays, asyncpg knows text[] alone. For any other, each connection would ask the server before its first statement
# with one, and that takes longer than opening the connection.
_ARRAYS: Final = [
    {
        "oid": oid,
        "ns": "pg_catalog",
        "name": f"_{element}",
        "kind": b"b",
        "basetype": None,
        "elemtype": element_oid,
        "elemdelim": ",",
        "range_subtype": None,
        "attrtypoids": None,
    }
    for oid, element, element_oid in (
        (199, "json", 114),
        (1000, "bool", 16),
        (1001, "bytea", 17),
        (1007, "int4", 23),
        (1016, "int8", 20),
        (1185, "timestamptz", 1184),
    )
]

# Errors that the server or the network may cause at any time. Any other is a defect of this program.
DATABASE_TROUBLE: Final = (
    OSError,
    TimeoutError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.PostgresSystemError,
    asyncpg.ObjectNotInPrerequisiteStateError,  # the database takes no connections, or a lock was not to be had
    asyncpg.TransactionRollbackError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
)

_DRAWN: Final = ("token_pkey", "session_pkey", "webhook_pkey")
"""The keys of tables whose ids are drawn from sequences: none exists already, unless the sequence lags behind."""
_NOT_FOUND: Final = (asyncpg.UndefinedTableError, asyncpg.UndefinedFunctionError)

# Citus sends this with the first statement of a session on a node that has no room for another process of its own.
_OF_NO_COMMIT: Final = ("could not start maintenance background worker",)
_NODE_LOST: Final = "could not commit transaction for shard "

_IDENTITY: Final = """
    SELECT pg_postmaster_start_time()::text || ' ' || oid
    FROM pg_database
    WHERE datname = current_database()
"""


class Epoch:
    """Counts how often the database may have been replaced.

    An epoch ends when a connection is lost, when a new one leads to another server or database than the one before, and
    when a log turns out not to be the one read before. What a process remembers of the database and is no fold of a log
    (drawn ids, slugs, tokens) is valid for one epoch only. `within`: that of the process, which ends with this one;
    those of the nodes are within it.
    """

    def __init__(self, *, within: "Epoch | None" = None) -> None:
        self.number = 0
        self._identity: str | None = None
        self._within = within

    def end(self) -> None:
        self.number += 1
        if self._within is not None:
            self._within.end()

    async def follow(self, connection: Connection) -> None:
        """Ends the epoch if this new connection leads to another database, and later when the connection is lost."""
        before, self._identity = self._identity, await connection.fetchval(_IDENTITY)
        if before not in (None, self._identity):
            self.end()
        connection.add_termination_listener(self._lost)

    def _lost(self, _connection: object) -> None:
        self.end()


class Database:
    """The connections of one process, in a pool.

    Whoever asks for a tournament does so `by_node`, or over a `connection_for` it. A plain database is one node.

    `goes_around`: a statement may reach a tournament by way of another node than its own, so what is appended to
    several would be committed in two phases.
    """

    goes_around = False

    def __init__(self, pool: Pool, epoch: Epoch, *, is_distributed: bool = False) -> None:
        self.epoch = epoch
        self.is_distributed = is_distributed
        self._pool = pool
        self._waiting = 0

    @property
    def straight(self) -> "Database":
        """The same, without going around: what cannot be connected to raises."""
        return self

    async def by_nodes(self, tournament_ids: Collection[TournamentId]) -> "dict[TournamentId, Database]":
        """For each of the tournaments the database by way of its node: over connections that no tournament of another
        node takes. This one, if it is plain, or if the node is not known."""
        return dict.fromkeys(tournament_ids, self)

    async def by_node(self, tournament_id: TournamentId) -> "Database":
        """As `by_nodes`, for one tournament."""
        return self

    @asynccontextmanager
    async def connection_for(self, tournament_id: TournamentId) -> AsyncIterator[Connection]:
        """As `connection`, by way of the node of the tournament."""
        async with (await self.by_node(tournament_id)).connection() as connection:
            yield connection

    def kept(self) -> "KeptConnection":
        """A connection for a caller that asks often."""
        return KeptConnection(self)

    def show_use(self) -> None:
        """Sets the gauges of the connections, those to nodes included."""
        _show_use([self])

    def use(self) -> tuple[int, int, int]:
        """How many connections there are, how many are in use, and how many callers wait for one."""
        size = self._pool.get_size()
        return size, size - self._pool.get_idle_size(), self._waiting

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """A connection with the service's role. DATABASE_TROUBLE becomes DatabaseUnavailable."""
        with unavailable():
            async with self.raw_connection() as connection:
                yield connection

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[Connection]:
        """As `connection`, for a write without the desk. Raises OutcomeUnknown if the connection is lost."""
        async with self.connection() as connection:
            try:
                yield connection
            except DATABASE_TROUBLE as error:
                raise OutcomeUnknown from error

    @asynccontextmanager
    async def raw_connection(self) -> AsyncIterator[Connection]:
        """A connection whose errors come through as they are, for callers that must tell them apart.

        If a task is cancelled and its lost connection cannot be given back, that error would replace the cancellation,
        and a caller that retries after trouble would never end. So a cancelled task gets CancelledError instead.
        """
        try:
            async with self._acquired() as connection:
                yield connection
        except (*DATABASE_TROUBLE, asyncpg.PostgresError) as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise asyncio.CancelledError from error
            if is_of_lost_node(error):
                raise asyncpg.ConnectionFailureError(str(error)) from error
            raise

    @asynccontextmanager
    async def _acquired(self) -> AsyncIterator[Connection]:
        self._waiting += 1
        try:
            connection = await self._pool.acquire(timeout=ACQUIRE_SECONDS_MAX)
        finally:
            self._waiting -= 1
        is_whole = False
        try:
            yield connection
            is_whole = True
        except _NOT_FOUND:
            await refuse_balanced(connection)
            raise
        finally:
            if is_whole:
                await self._pool.release(connection)
            else:
                await _give_back(self._pool, connection)


class DistributedDatabase(Database):
    """A distributed database, as a process reaches it at its address; it knows the ways to the nodes, too.

    `open_at` opens the way to a node, over which nothing is connected yet. It is closed with this one.
    """

    goes_around = True

    def __init__(self, pool: Pool, epoch: Epoch, open_at: "Callable[[Node], Awaitable[NodeDatabase]]") -> None:
        super().__init__(pool, epoch, is_distributed=True)
        self._open_at = open_at
        self._nodes = Nodes(self.connection)
        self._at: dict[Node, NodeDatabase] = {}
        self._opening = asyncio.Lock()

    async def by_nodes(self, tournament_ids: Collection[TournamentId]) -> dict[TournamentId, Database]:
        found = await self._nodes.of(tournament_ids)
        ways = {node: await self._way_to(node) for node in set(found.values())}
        return {one: ways[found[one]] if one in found else self for one in tournament_ids}

    async def by_node(self, tournament_id: TournamentId) -> Database:
        return (await self.by_nodes([tournament_id]))[tournament_id]

    async def all_nodes(self) -> "list[NodeDatabase]":
        """The ways to all nodes that have tournaments. Raises DatabaseUnavailable."""
        async with self.connection() as connection:
            nodes = await nodes_with_shards(connection)
        return [await self._way_to(node) for node in nodes]

    def show_use(self) -> None:
        ways = self._at.values()
        _show_use([self, *ways])
        NODES_AVOIDED.set(sum(way.goes_around for way in ways))

    async def _way_to(self, node: Node) -> "NodeDatabase":
        if node not in self._at:
            async with self._opening:
                if node not in self._at:
                    self._at[node] = await self._open_at(node)
        return self._at[node]


class NodeDatabase(Database):
    """A distributed database by way of one of its nodes. Its connections serve only the tournaments of this node, so
    waiting for the node takes no connection from others.

    They lead straight to the node. While it cannot be connected to, it is avoided: others take their place, which lead
    to the address of the process.
    """

    def __init__(self, node: Node, straight: Pool, around: Pool, epoch: Epoch) -> None:
        super().__init__(straight, epoch, is_distributed=True)
        self._node = node
        self._straight = _Straight(straight, epoch, self._avoid)
        self._around = Database(around, epoch, is_distributed=True)
        self._avoided_until = 0.0

    @property
    def goes_around(self) -> bool:  # type: ignore[override] # it changes
        return time.monotonic() < self._avoided_until

    @property
    def straight(self) -> Database:
        return self._straight

    def kept(self) -> "KeptConnection":
        return _KeptAtNode(self)

    def use(self) -> tuple[int, int, int]:
        size, in_use, waiting = map(sum, zip(self._straight.use(), self._around.use(), strict=True))
        return size, in_use, waiting

    @asynccontextmanager
    async def _acquired(self) -> AsyncIterator[Connection]:
        async with AsyncExitStack() as stack:
            connection = None
            if not self.goes_around:
                try:
                    connection = await stack.enter_async_context(self._straight._acquired())
                except DATABASE_TROUBLE:
                    if not self.goes_around:
                        raise
            yield connection or await stack.enter_async_context(self._around._acquired())

    def _avoid(self, error: Exception) -> None:
        self._avoided_until = time.monotonic() + AVOIDED_SECONDS
        _logger.warning("node_avoided", host=self._node.host, port=self._node.port, error=repr(error))


class _Straight(Database):
    """A distributed database over connections that lead straight to one of its nodes. Says `avoid` if there is none to
    be had, unless all are in use."""

    def __init__(self, pool: Pool, epoch: Epoch, avoid: Callable[[Exception], None]) -> None:
        super().__init__(pool, epoch, is_distributed=True)
        self._avoid = avoid

    @asynccontextmanager
    async def _acquired(self) -> AsyncIterator[Connection]:
        async with AsyncExitStack() as stack:
            try:
                connection = await stack.enter_async_context(super()._acquired())
            except DATABASE_TROUBLE as error:
                if self._pool.get_size() - self._pool.get_idle_size() < self._pool.get_max_size():
                    self._avoid(error)
                raise
            yield connection


class KeptConnection:
    """One connection for a caller that asks often, one thing at a time: taking one from the pool and giving it back
    takes as long as a small query. As a context it acts as `Database.raw_connection`, with the same connection each
    time; a lost one is replaced. `close` gives it back.

    `warnings`: the last notice from the server that may be about a commit, until the list is cleared.
    """

    def __init__(self, database: Database) -> None:
        self.warnings: list[object] = []
        self._database = database
        self._keeping = AsyncExitStack()
        self._connection: Connection | None = None

    async def __aenter__(self) -> Connection:
        if self._connection is None or self._connection.is_closed():
            await self.close()
            connection = await self._keeping.enter_async_context(self._database.raw_connection())
            connection.add_log_listener(self._note)
            self._connection = connection.itself()
        return self._connection

    async def __aexit__(self, *_: object) -> None:
        """Keeps the connection."""

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(asyncpg.InterfaceError):  # it was lost, and the pool has taken it back already
                connection.remove_log_listener(self._note)
        with suppress(*DATABASE_TROUBLE):  # it was lost
            await self._keeping.aclose()

    def _note(self, _connection: object, warning: object) -> None:
        if casts_doubt(warning):
            self.warnings[:] = [warning]


class _KeptAtNode(KeptConnection):
    """As KeptConnection, by way of a node. A connection that goes around is given back when the node is no longer
    avoided."""

    _goes_around = False

    async def __aenter__(self) -> Connection:
        if self._goes_around and not self._database.goes_around:
            await self.close()
        connection = await super().__aenter__()
        self._goes_around = self._database.goes_around
        return connection


def _show_use(databases: Iterable[Database]) -> None:
    size, in_use, waiting = map(sum, zip(*[database.use() for database in databases], strict=True))
    POOL_CONNECTIONS.set(size)
    POOL_IN_USE.set(in_use)
    POOL_WAITING.set(waiting)


def casts_doubt(warning: object) -> bool:
    """Whether a notice from the server may be about the commit. It counts as such unless it is known to be about
    something else: PostgreSQL warns of a commit that its standby did not confirm, Citus of one that a node did not
    confirm, and translations and versions have other words for that."""
    return getattr(warning, "message", None) not in _OF_NO_COMMIT


def is_of_lost_node(error: BaseException) -> bool:
    """Whether Citus says that a node was lost while it committed, which has no code of its own: what it was to commit
    may have been committed."""
    return type(error) is asyncpg.InternalServerError and str(error).startswith(_NODE_LOST)


def is_lost(connection: Connection) -> bool:
    """Whether the connection is gone. The pool may have taken it back already."""
    try:
        return bool(connection.is_closed())
    except asyncpg.InterfaceError:
        return True


@contextmanager
def unavailable() -> Iterator[None]:
    """Turns DATABASE_TROUBLE into DatabaseUnavailable. Not for writes, because the error says nothing about their
    outcome. Raises IdTaken if a sequence has drawn an id that exists."""
    try:
        yield
    except DATABASE_TROUBLE as error:
        raise DatabaseUnavailable from error
    except asyncpg.UniqueViolationError as error:
        if error.constraint_name not in _DRAWN:
            raise
        raise IdTaken from error


@asynccontextmanager
async def open_database(dsn: str, *, name: str, connections_max: int = POOL_CONNECTIONS_MAX) -> AsyncIterator[Database]:
    """The database at `dsn`, after checks that it is sound and migrated. `pg_stat_activity` shows `name`.

    Raises StartupRefused.
    """
    pools = _Pools(dsn, name, connections_max)
    settling = _Settling(pools.epoch)
    with _starting():
        pool = await pools.opened(settling, connections_max, init_size=1)
    try:
        with _starting():
            async with pool.acquire(timeout=ACQUIRE_SECONDS_MAX) as connection:
                await refuse_shared(connection, another_client(dsn))
                await refuse_unsound(connection)
                await refuse_unmigrated(connection)
                await refuse_without_rights(connection, [migration.sql for migration in shipped()])
                await refuse_half_distributed(connection)
                distributed = is_distributed(connection)
        settling.is_serving = True
        yield DistributedDatabase(pool, pools.epoch, pools.opened_at) if distributed else Database(pool, pools.epoch)
    finally:
        await pools.close()


class _Pools:
    """Opens the pools of one service, which share an epoch, and closes them."""

    def __init__(self, dsn: str, name: str, connections_max: int) -> None:
        self.epoch = Epoch()
        self._connections_max = connections_max
        self._opened: list[Pool] = []
        self._options: dict[str, Any] = {
            "connect": Hosts(dsn).connect,
            "timeout": CONNECT_SECONDS_MAX,
            "command_timeout": STATEMENT_SECONDS_MAX + 2,
            "server_settings": {"application_name": name},
            # Checked for each connection: an address can come to lead to a standby, whose answers are out of date.
            "target_session_attrs": "primary",
            "min_size": 0,  # asyncpg would restore a floor behind our back, and report failures in its own words
            "reset": _keep,
            "connection_class": ServiceConnection,
        }

    async def opened(self, settling: "_Settling", size: int, *, init_size: int = 0, **at: Any) -> Pool:
        pool = await asyncpg.create_pool(
            **self._options, **at, init_size=init_size, max_size=size, init=settling.settle
        )
        self._opened.append(pool)
        return pool

    async def opened_at(self, node: Node) -> NodeDatabase:
        straight = _Settling(Epoch(within=self.epoch), is_serving=True)
        around = _Settling(self.epoch, is_serving=True)
        return NodeDatabase(
            node,
            await self.opened(straight, self._connections_max, host=node.host, port=node.port),
            await self.opened(around, AROUND_CONNECTIONS_MAX),
            self.epoch,
        )

    async def close(self) -> None:
        for pool in reversed(self._opened):
            await _close(pool)


@contextmanager
def _starting() -> Iterator[None]:
    """Turns SessionUnfit and the driver's errors into StartupRefused."""
    try:
        yield
    except SessionUnfit as unfit:
        raise StartupRefused(str(unfit)) from unfit
    except asyncpg.InsufficientPrivilegeError as error:
        raise StartupRefused(
            f"This login may not connect to the database ({error}); its owner must GRANT it CONNECT."
        ) from error
    except asyncpg.TargetServerAttributeNotMatched as error:
        raise StartupRefused(ON_STANDBY) from error
    except (*DATABASE_TROUBLE, asyncpg.PostgresError, ValueError, OverflowError) as error:
        raise unreachable(error) from error


class _Settling:
    """Prepares new connections for the service, which may end an epoch. While the service runs, it logs why it refused
    a connection, and does not repeat the last reason until a connection is good."""

    def __init__(self, epoch: Epoch, *, is_serving: bool = False) -> None:
        self.is_serving = is_serving
        self._epoch = epoch
        self._said = ""

    async def settle(self, connection: Connection) -> None:
        """Raises SessionUnfit."""
        try:
            await settle(connection, _SERVICE_SETTINGS)
        except SessionUnfit as unfit:
            if self.is_serving and str(unfit) != self._said:
                self._said = str(unfit)
                _logger.error("session_refused", reason=self._said)
            raise
        self._said = ""
        await recognize(connection)
        if connection.is_distributed:
            await settle(connection, _DISTRIBUTED_SETTINGS)
        connection.get_settings().register_data_types(_ARRAYS)
        await self._epoch.follow(connection)


async def durable_elsewhere(connection: Connection) -> str | None:
    """What keeps the commits of a server that does not write them through itself, as its owner has declared; None: the
    server does. There are providers whose storage is replicated below a server that runs with fsync = off."""
    for setting in _WRITTEN_THROUGH:
        if await connection.fetchval("SELECT current_setting($1)", setting) == "off":
            return await connection.fetchval(_ELSEWHERE) or None
    return None


async def refuse_unsound(connection: Connection) -> None:
    """Raises StartupRefused if the server is too old, may lose an acknowledged change, or is not encoded in UTF-8."""
    if connection.get_server_version().major < POSTGRES_MAJOR_MIN:
        raise StartupRefused(f"PostgreSQL {POSTGRES_MAJOR_MIN} or later is needed; upgrade the server.")
    place = await durable_elsewhere(connection)
    for setting in ("synchronous_commit", *(() if place else _WRITTEN_THROUGH)):
        if await connection.fetchval("SELECT current_setting($1)", setting) == "off":
            raise StartupRefused(f"The database runs with {setting} = off and may lose what it confirmed; turn it on.")
    DURABLE_ELSEWHERE.set(bool(place))
    encoding = await connection.fetchval("SELECT current_setting('server_encoding')")
    if encoding != "UTF8":
        raise StartupRefused(f"The database's encoding is {encoding}; create it with ENCODING 'UTF8'.")


async def _give_back(pool: Pool, connection: Connection) -> None:
    """Gives back a connection with which something went wrong. asyncpg waits for the statement under way to end, also
    after this task is cancelled; what it raises then is nobody's, and the event loop does not report it."""
    giving_back = asyncio.ensure_future(pool.release(connection))
    giving_back.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    await asyncio.shield(giving_back)


async def _keep(connection: Connection) -> None:
    """Replaces asyncpg's RESET ALL, a round trip at every release: no code of ours changes a session."""


async def _close(pool: Pool) -> None:
    try:
        with suppress(*DATABASE_TROUBLE):  # the database may be gone already, or not close
            async with asyncio.timeout(CLOSE_SECONDS_MAX):
                await pool.close()
    finally:
        pool.terminate()
