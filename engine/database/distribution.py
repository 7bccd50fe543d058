"""A database distributed by Citus: the tournaments' tables in shards on many nodes, the service's own on every node.

A database has one of two topologies. In a plain one, every table is PostgreSQL's own. In a distributed one, all rows of
a tournament lie in one shard, which follows from `tournament_id`; every node has a copy of the registry and of whatever
belongs to no tournament. The program is the same, except for four rules, which apply wherever `is_distributed` is
called:

- A statement about tournaments is about one tournament, and names it for each table. Then Citus sends the whole
  statement to that tournament's node. Several tournaments need one statement each.
- A commit of several tournaments would be a two-phase commit, unless it goes straight to a node that has all of them.
  So appends to tournaments of one node are sent straight to it (`nodes.py`); everything else commits per tournament.
- Nodes share no snapshot. So only the data of a single tournament is read consistently.
- Row locks do not move with a shard. So a statement that counts as a write comes before them.

Any node answers any statement. Only the coordinator's session can draw ids, hold the one lock of all deliverers of
webhooks, and change the schema.

Nodes connect to each other with the role of the session. So the service's role may log in, and its settings are stored
on every node: those of a session do not reach other nodes.
"""

import asyncio
import re
from collections.abc import Awaitable, Collection, Mapping
from enum import StrEnum
from typing import Any, Final

import asyncpg
from asyncpg import Connection, InvalidCachedStatementError, OutdatedSchemaCacheError, Record
from msgspec import Struct

from engine.domain.errors import StartupRefused
from engine.domain.terms import TournamentId

NODES_MIN: Final = 2
"""Nodes that hold shards, below which there is nothing to distribute to."""
SHARDS_MAX: Final = 1_024
NODE_SETTINGS: Final = {
    "search_path": "tallybook",
    "timezone": "UTC",
    "lock_timeout": "500ms",
    "jit": "off",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "lc_messages": "C",
}
"""Settings of the service's role for its sessions between nodes (`engine/database/pool.py` has the reasons). Citus
passes a warning on only if it is in English, and a node may warn that its standby has not confirmed a commit."""
COPIED: Final = (
    "tournament",
    "token",
    "session",
    "quota",
    "stopped",
    "defect",
    "deleted_tournament",
    "migration",
)
"""Tables that every node has a copy of: they are read often, written seldom, and some belong to no tournament."""

COPIES_LOOKS_MAX: Final = 5
COPIES_PAUSE_SECONDS: Final = 0.2
"""Copies that differ are looked at again, with pauses: a commit is not seen on all nodes at the same time."""

WORKER_NODE: Final = "This is the address of a Citus worker node; give the coordinator's."

_HAS_CITUS: Final = "SELECT to_regclass('pg_catalog.pg_dist_partition') IS NOT NULL"
# Also of a schema that the session may not use, which is said later.
_HAS_SHARDS: Final = """
    SELECT EXISTS (
        SELECT
        FROM pg_dist_partition AS p
        JOIN pg_class AS c ON c.oid = p.logicalrelid
        WHERE c.relnamespace = to_regnamespace('tallybook') AND c.relname = 'append_lock'
    )
"""
# Citus hides the shards themselves. `h`: by the hash of a column; `n`: none, a copy on each node, or local.
_TABLES: Final = """
    SELECT
        c.relname AS name,
        a.attname = 'tournament_id' AS of_tournaments,
        CASE WHEN p.partmethod = 'h' THEN 'sharded' WHEN p.repmodel = 't' THEN 'copied' ELSE 'plain' END AS form,
        p.partmethod IS NULL OR p.partmethod <> 'h' OR p.colocationid = (
            SELECT colocationid FROM pg_dist_partition WHERE logicalrelid = to_regclass('tallybook.append_lock')
        ) AS together
    FROM pg_class AS c
    JOIN pg_index AS i ON i.indrelid = c.oid AND i.indisprimary
    JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]
    LEFT JOIN pg_dist_partition AS p ON p.logicalrelid = c.oid
    WHERE c.relnamespace = 'tallybook'::regnamespace AND c.relkind = 'r'
    ORDER BY c.relname <> 'append_lock', c.relname
"""
_IS_COORDINATOR: Final = "SELECT groupid = 0 FROM pg_dist_local_group"
_NODES: Final = "SELECT count(*) FROM pg_dist_node WHERE isactive AND noderole = 'primary' AND shouldhaveshards"
_COORDINATOR_IS_KNOWN: Final = "SELECT EXISTS (SELECT FROM pg_dist_node WHERE groupid = 0)"
_MAY: Final = """
    SELECT pg_has_role(n.nspowner, 'MEMBER') AND (r.rolsuper OR r.rolcreaterole)
    FROM pg_namespace AS n
    CROSS JOIN pg_roles AS r
    WHERE n.nspname = 'tallybook' AND r.rolname = current_user
"""
_NODES_OF: Final = """
    SELECT t.tournament_id, n.nodename, n.nodeport
    FROM unnest($1::bigint[]) AS t (tournament_id)
    JOIN pg_dist_placement AS p
        ON p.shardid = get_shard_id_for_distribution_column('tallybook.append_lock', t.tournament_id)
    JOIN pg_dist_node AS n ON n.groupid = p.groupid AND n.noderole = 'primary'
"""
_NODES_WITH_SHARDS: Final = """
    SELECT DISTINCT n.nodename, n.nodeport
    FROM pg_dist_shard AS s
    JOIN pg_dist_placement AS p ON p.shardid = s.shardid
    JOIN pg_dist_node AS n ON n.groupid = p.groupid AND n.noderole = 'primary'
    WHERE s.logicalrelid = to_regclass('tallybook.append_lock')
    ORDER BY n.nodename, n.nodeport
"""
# It changes nothing. Citus takes it for a write, and waits with the move of the shard.
_KEEP_IN_PLACE: Final = "UPDATE checkpoint SET sequence = 0 WHERE tournament_id = $1 AND sequence < 0"
_IS_SERVED: Final = """
    SELECT EXISTS (
        SELECT
        FROM pg_stat_activity
        WHERE datname = current_database() AND application_name ~ '^tallybook (api|serve|worker)'
    )
"""
_MAY_LOG_IN: Final = "SELECT rolcanlogin FROM pg_roles WHERE rolname = 'tallybook_service'"
_LET_LOG_IN: Final = "ALTER ROLE tallybook_service LOGIN"
_SET: Final = """
    SELECT format('ALTER ROLE tallybook_service IN DATABASE %I SET %s = %L', current_database(), $1::text, $2::text)
"""
_BECOME: Final = "SET LOCAL ROLE tallybook_service"
ON_ALL_NODES: Final = "SELECT nodeid, success, result FROM run_command_on_all_nodes($1) ORDER BY nodeid"
_REACHED: Final = "SELECT success, result FROM run_command_on_all_nodes('SELECT 1') ORDER BY success LIMIT 1"
_BEGIN: Final = """
    SET LOCAL search_path = tallybook, public;
    SET LOCAL client_min_messages = error;
    SET LOCAL lock_timeout = '5s';
    SET LOCAL statement_timeout = 0;
    SET LOCAL citus.enable_unsafe_triggers = on;
    SET LOCAL citus.multi_shard_modify_mode = 'sequential'
"""
# The coordinator keeps a hidden copy of a table's rows until it is removed, which the table's trigger would refuse.
_LET_EMPTY: Final = "SET LOCAL session_replication_role = replica"
_EMPTY: Final = "SELECT truncate_local_data_after_distributing_table($1::text::regclass)"
_MAY_SET: Final = """
    SELECT has_parameter_privilege('session_replication_role', 'SET') AND has_parameter_privilege('lc_messages', 'SET')
"""
_SHARDS: Final = "SELECT set_config('citus.shard_count', $1, true)"
_COPY: Final = "SELECT create_reference_table($1)"
_SHARD_FIRST: Final = "SELECT create_distributed_table($1, 'tournament_id', colocate_with := 'none')"
_SHARD: Final = "SELECT create_distributed_table($1, 'tournament_id', colocate_with := 'append_lock')"
# Citus sends each call of these to the node of its tournament, even within a transaction.
_FUNCTIONS: Final = """
    SELECT p.oid::regprocedure::text AS signature, coalesce(d.force_delegation, false) AS is_sent
    FROM pg_proc AS p
    LEFT JOIN pg_catalog.pg_dist_object AS d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid
    WHERE p.pronamespace = 'tallybook'::regnamespace AND p.proname IN ('append_block', 'refuse_keys')
"""
_SEND: Final = """
    SELECT create_distributed_function(
        $1::text::regprocedure, 'p_tournament_id', colocate_with := 'append_lock', force_delegation := true
    )
"""

# Citus gives its nodes the views without what had been granted on them.
_GRANT_VIEWS: Final = """
    SELECT format('GRANT SELECT ON %s TO tallybook_service', string_agg(quote_ident(relname), ', '))
    FROM pg_class
    WHERE relnamespace = 'tallybook'::regnamespace AND relkind = 'v'
        AND has_table_privilege('tallybook_service', oid, 'SELECT')
"""


class DatabaseForm(StrEnum):
    """How a database is made."""

    PLAIN = "plain"
    DISTRIBUTED = "distributed"
    MIXED = "mixed"
    """Some tables or functions are distributed, and others that should be are not."""


class Node(Struct, frozen=True):
    """Where the nodes of a distributed database reach one of them."""

    host: str
    port: int


class ServiceConnection(Connection):  # type: ignore[misc] # the driver has no types
    """A connection that knows whether its database is distributed, and whether it leads to the coordinator, as that of
    a plain one does."""

    is_distributed = False
    is_coordinator = True

    def itself(self) -> "ServiceConnection":
        """This connection. Asking a pool's proxy for its attributes would cost two calls each."""
        return self

    async def _execute(
        self,
        query: str,
        args: tuple[Any, ...],
        limit: int,
        timeout: float | None,  # noqa: ASYNC109 - as the driver's
        *,
        return_status: bool = False,
        record_class: type[Record] | None = None,
        ignore_custom_codec: bool = False,
    ) -> Any:
        """As the driver's method, but it sends a prepared statement straight to the wire, which takes half as long.

        A change of the schema has the same effect: the statement is prepared again, or the transaction fails. The
        protocol itself refuses two statements at once. The driver documents nothing of this, so its version is bounded,
        and a test compares the two.
        """
        statement = None
        if not (return_status or timeout or record_class or ignore_custom_codec or self._query_loggers):
            statement = self._stmt_cache.get((query, Record, False))
        if statement is None:
            return await super()._execute(
                query,
                args,
                limit,
                timeout,
                return_status=return_status,
                record_class=record_class,
                ignore_custom_codec=ignore_custom_codec,
            )
        protocol = self._protocol
        try:
            return await protocol.bind_execute(statement, args, "", limit, False, protocol._get_timeout(None))
        except OutdatedSchemaCacheError:
            await self.reload_schema_state()
            raise
        except InvalidCachedStatementError:
            self._drop_global_statement_cache()
            if protocol.is_in_transaction():
                raise
            return await super()._execute(query, args, limit, timeout)


def is_distributed(connection: Connection) -> bool:
    """Whether the database is distributed, as the service's connections know."""
    return bool(getattr(connection, "is_distributed", False))


def is_coordinator(connection: Connection) -> bool:
    """Whether the connection leads to the coordinator, or to a plain database, as the service's connections know."""
    return bool(getattr(connection, "is_coordinator", True))


class TournamentQuery:
    """A question about a tournament, which can be asked about several: in one statement, or one after another where
    the database is distributed.

    `one` is about tournament $1, whose id is its first column. `types`: those of $1 and of the parameters after it that
    differ between tournaments; further ones are common to all. `each` has an array for each of these types, and asks
    `one` about each tournament in it, unless the rows are found faster in another way.
    """

    def __init__(self, one: str, *types: str, each: str | None = None) -> None:
        self.one = one
        numbers = range(1, len(types) + 1)
        arrays = ", ".join(f"${n}::{type_}[]" for n, type_ in zip(numbers, types, strict=True))
        names = ", ".join(f"p{n}" for n in numbers)
        asked = _PARAMETER.sub(lambda found: f"asked.p{found[1]}" if int(found[1]) in numbers else found[0], one)
        self.each = each or (
            f"SELECT found.*\nFROM unnest({arrays}) AS asked ({names})\nCROSS JOIN LATERAL ({asked}) AS found"
        )

    def fetch(
        self, connection: Connection, asked: Mapping[TournamentId, tuple[object, ...]], *common: object
    ) -> Awaitable[list[Record]]:
        """The rows of `one` for each tournament, given the values of the parameters that differ."""
        rows: Awaitable[list[Record]]
        if len(asked) == 1:
            ((tournament_id, values),) = asked.items()
            rows = connection.fetch(self.one, tournament_id, *values, *common)
        elif not asked or is_distributed(connection):
            rows = self._one_by_one(connection, asked, *common)
        else:
            rows = connection.fetch(self.each, list(asked), *zip(*asked.values(), strict=True), *common)
        return rows

    async def _one_by_one(
        self, connection: Connection, asked: Mapping[TournamentId, tuple[object, ...]], *common: object
    ) -> list[Record]:
        rows = []
        for tournament_id, values in asked.items():
            rows += await connection.fetch(self.one, tournament_id, *values, *common)
        return rows


_PARAMETER: Final = re.compile(r"\$([0-9]+)")


async def recognize(connection: ServiceConnection) -> None:
    """Tells the connection where it leads."""
    connection.is_distributed = await has_shards(connection)
    if connection.is_distributed:
        connection.is_coordinator = bool(await connection.fetchval(_IS_COORDINATOR))


async def has_shards(connection: Connection) -> bool:
    """Whether the tables of tournaments are distributed, if there are any."""
    return await connection.fetchval(_HAS_CITUS) and bool(await connection.fetchval(_HAS_SHARDS))


async def nodes_of(connection: Connection, tournament_ids: Collection[TournamentId]) -> dict[TournamentId, Node]:
    """The nodes that have these tournaments."""
    rows = await connection.fetch(_NODES_OF, tournament_ids)
    return {TournamentId(tournament_id): Node(host, port) for tournament_id, host, port in rows}


async def nodes_with_shards(connection: Connection) -> list[Node]:
    """The nodes that have tournaments, or could have."""
    return [Node(*row) for row in await connection.fetch(_NODES_WITH_SHARDS)]


async def keep_in_place(connection: Connection, tournament_ids: Collection[TournamentId]) -> None:
    """Keeps tournaments of a distributed database on their nodes until the transaction ends; first waits for the end of
    a move. Call it before locking their rows: Citus moves a shard under row locks, and then another could lock the same
    rows on the new node."""
    if is_distributed(connection):
        for tournament_id in tournament_ids:
            await connection.execute(_KEEP_IN_PLACE, tournament_id)


async def unlike_copies(connection: Connection, table: str) -> dict[int, int]:
    """How many rows of a copied table each node has that answers, by its number; empty if all copies are the same. A
    node that was restored alone has an older one."""
    for _ in range(COPIES_LOOKS_MAX):
        rows = await connection.fetch(ON_ALL_NODES, _copy_of_node(table))
        copies = {node: result for node, success, result in rows if success}
        if len(set(copies.values())) <= 1:
            return {}
        await asyncio.sleep(COPIES_PAUSE_SECONDS)
    return {node: int(copy.split()[0]) for node, copy in copies.items()}


def _copy_of_node(table: str) -> str:
    """The query for a node's copy of a table: its number of rows, and a checksum of them."""
    rows = f"SELECT hashtextextended(t::text, 0) AS row FROM tallybook.{table} AS t"  # noqa: S608 # one of COPIED
    return f"SELECT count(*) || ' ' || coalesce(sum(row), 0) FROM ({rows}) AS copy"  # noqa: S608


async def form_of(connection: Connection) -> DatabaseForm:
    """The topology of a migrated database."""
    if not await connection.fetchval(_HAS_CITUS):
        return DatabaseForm.PLAIN
    tables = await connection.fetch(_TABLES)
    if all(table["form"] == "plain" for table in tables):
        return DatabaseForm.PLAIN
    are_placed = all(table["form"] == _wanted(table) and table["together"] for table in tables)
    are_sent = all(function["is_sent"] for function in await connection.fetch(_FUNCTIONS))
    return DatabaseForm.DISTRIBUTED if are_placed and are_sent else DatabaseForm.MIXED


def _wanted(table: asyncpg.Record) -> str:
    if table["name"] in COPIED:
        return "copied"
    assert table["of_tournaments"], f"{table['name']} belongs to no tournament: is it copied?"
    return "sharded"


async def refuse_worker_node(connection: Connection) -> None:
    """Raises StartupRefused if the address leads to a node of Citus that is not the coordinator."""
    if await connection.fetchval(_HAS_CITUS) and not await connection.fetchval(_IS_COORDINATOR):
        raise StartupRefused(WORKER_NODE)


async def refuse_half_distributed(connection: Connection) -> None:
    """Raises StartupRefused if some tables of a migrated database are distributed, and others are not."""
    if await form_of(connection) is DatabaseForm.MIXED:
        raise StartupRefused(
            "Some tables of the database are distributed, and others are not yet; run `tallybook migrate --distribute`."
        )


async def refuse_undistributable(connection: Connection) -> None:
    """Raises StartupRefused if this database cannot be distributed. `connection` is of the schema's owner."""
    if not await connection.fetchval(_HAS_CITUS):
        raise StartupRefused(
            "The database does not have the extension citus; an administrator must load it on every node "
            "(shared_preload_libraries), and run there: CREATE EXTENSION citus;"
        )
    if not await connection.fetchval(_IS_COORDINATOR):
        raise StartupRefused(WORKER_NODE)
    nodes = await connection.fetchval(_NODES)
    if nodes < NODES_MIN:
        raise StartupRefused(
            f"Citus has {nodes} nodes with shards, and needs at least {NODES_MIN}; add nodes on the coordinator: "
            "SELECT citus_add_node('<address>', <port>);"
        )
    if not await connection.fetchval(_COORDINATOR_IS_KNOWN):
        raise StartupRefused(
            "The nodes do not know their coordinator; run there: SELECT citus_set_coordinator_host('<address>');"
        )
    if not (await connection.fetchval(_MAY) and await connection.fetchval(_MAY_SET)):
        raise StartupRefused(
            "This login may not distribute the database: it must own the schema tallybook, and be allowed to change "
            "roles and to set session_replication_role and lc_messages; run `tallybook migrate --distribute` as a "
            "superuser."
        )


async def distribute(connection: Connection, *, shards: int) -> list[str]:
    """Distributes a migrated database, or again after a migration; returns the names of the tables that it moved. One
    commit moves all of them, or none. `shards`: how many parts the tables of tournaments have, if they have none yet.

    `connection` is of the schema's owner. Nobody appends meanwhile: tables are locked. Raises StartupRefused.
    """
    await refuse_undistributable(connection)
    if await form_of(connection) is not DatabaseForm.DISTRIBUTED and await connection.fetchval(_IS_SERVED):
        raise StartupRefused("Processes of the service are connected to the database; stop them first.")
    await _let_service_log_in(connection)
    async with connection.transaction():
        await connection.execute(_BEGIN)
        await connection.fetchval(_SHARDS, str(shards))
        moved = [table for table in await connection.fetch(_TABLES) if table["form"] != _wanted(table)]
        for table in moved:
            name = table["name"]
            how = _COPY if name in COPIED else _SHARD_FIRST if name == "append_lock" else _SHARD
            await connection.execute(how.replace("$1", f"'{name}'"))
        for function in await connection.fetch(_FUNCTIONS):
            if not function["is_sent"]:
                await connection.execute(_SEND, function["signature"])
        await connection.execute(_LET_EMPTY)
        for table in moved:
            await connection.fetchval(_EMPTY, table["name"])
        await connection.execute(await connection.fetchval(_GRANT_VIEWS))
    return [table["name"] for table in moved]


async def _let_service_log_in(connection: Connection) -> None:
    """Raises StartupRefused if the nodes do not let the service's role in."""
    if not await connection.fetchval(_MAY_LOG_IN):  # no two sessions can change a role at the same time
        await connection.execute(_LET_LOG_IN)
    for setting in NODE_SETTINGS.items():
        await connection.execute(await connection.fetchval(_SET, *setting))
    async with connection.transaction():
        await connection.execute(_BECOME)
        success, result = await connection.fetchrow(_REACHED)
    if not success:
        raise StartupRefused(
            f"The nodes cannot connect to each other as tallybook_service ({result}); allow it in pg_hba.conf of every "
            "node, for connections from the other nodes."
        )
