"""What keeps the log append-only and confirmed changes safe: settings, triggers, rights, keys, functions and views.

They are looked up in the catalogues of the checked database, and compared with what the migrations make.
"""

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

import msgspec
from asyncpg import (
    Connection,
    InFailedSQLTransactionError,
    InsufficientPrivilegeError,
    UndefinedColumnError,
    UndefinedTableError,
)
from msgspec import Struct

from engine.database.distribution import (
    COPIED,
    NODE_SETTINGS,
    ON_ALL_NODES,
    DatabaseForm,
    form_of,
    is_distributed,
    unlike_copies,
)
from engine.database.migrator import shipped
from engine.database.pool import SERVICE_ROLE

_SETTINGS: Final = {
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "session_replication_role": "origin",
    "server_encoding": "UTF8",
}
"""Settings that an acknowledged change depends on, and their values. synchronous_commit may be anything that waits for
the local disk."""
_STRONGER: Final = {"synchronous_commit": ("on", "local", "remote_write", "remote_apply")}
_LOG_TABLES: Final = (
    *("tournament", "append_lock", "block", "topic", "personal", "idempotency", "refusal"),
    "deleted_tournament",
)
_SETTING: Final = "SELECT current_setting($1)"
# Bits of pg_trigger.tgtype: 1 each row, 2 before, 8 delete, 16 update, 32 truncate.
_TRIGGERS: Final = """
    SELECT
        w.name, w.trigger, t.tgenabled,
        t.tgtype::int & 59 = w.type AND t.tgattr::text = '' AND t.tgqual IS NULL AND p.proname = 'refuse_change'
            AS as_made
    FROM (
        VALUES ('tournament', 'append_only', 58), ('block', 'append_only', 58), ('topic', 'append_only', 58),
            ('personal', 'append_only', 58), ('idempotency', 'append_only', 42), ('idempotency', 'only_emptied', 19),
            ('append_lock', 'lock_stays', 42), ('refusal', 'refusal_stays', 42),
            ('deleted_tournament', 'append_only', 58)
    ) AS w (name, trigger, type)
    LEFT JOIN pg_trigger AS t ON t.tgrelid = to_regclass('tallybook.' || w.name) AND t.tgname = w.trigger
    LEFT JOIN pg_proc AS p ON p.oid = t.tgfoid AND p.pronamespace = 'tallybook'::regnamespace
"""
_RIGHTS: Final = """
    SELECT t.name, r.privilege
    FROM unnest($2::text[]) AS t (name)
    CROSS JOIN unnest(ARRAY['INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES', 'TRIGGER']) AS r (privilege)
    WHERE has_table_privilege($1, 'tallybook.' || t.name, r.privilege)
        OR (r.privilege IN ('INSERT', 'UPDATE', 'REFERENCES')
            AND has_any_column_privilege($1, 'tallybook.' || t.name, r.privilege))
"""
_KEYLESS: Final = """
    SELECT t.name
    FROM unnest($1::text[]) AS t (name)
    WHERE NOT EXISTS (
        SELECT
        FROM pg_index AS i
        WHERE i.indrelid = to_regclass('tallybook.' || t.name) AND i.indisprimary AND i.indisvalid AND i.indislive
    )
"""
_NULLABLE: Final = """
    SELECT t.name, a.attname
    FROM unnest($1::text[]) AS t (name)
    JOIN pg_attribute AS a ON a.attrelid = to_regclass('tallybook.' || t.name)
    WHERE a.attnum > 0 AND NOT a.attisdropped AND NOT a.attnotnull
        AND a.attname <> ALL (ARRAY['answers', 'created'])
"""
_FUNCTIONS: Final = """
    SELECT
        p.proname, pg_get_function_identity_arguments(p.oid) AS identity,
        pg_get_function_arguments(p.oid) AS arguments, pg_get_function_result(p.oid) AS result, l.lanname,
        p.prosrc, p.prosecdef, p.provolatile, p.proisstrict, p.proconfig, p.prokind,
        p.proowner = n.nspowner AS of_owner,
        EXISTS (
            SELECT FROM aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) AS a
            WHERE a.grantee = 0 AND a.privilege_type = 'EXECUTE'
        ) AS for_anybody
    FROM pg_proc AS p
    JOIN pg_namespace AS n ON n.oid = p.pronamespace
    JOIN pg_language AS l ON l.oid = p.prolang
    WHERE n.nspname = 'tallybook'
    ORDER BY p.proname, identity
"""
_VIEWS: Final = """
    SELECT
        c.relname, pg_get_viewdef(c.oid) AS definition,
        c.reloptions IS NULL AND c.relkind = 'v' AND c.relowner = n.nspowner AS plain
    FROM pg_class AS c
    JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE n.nspname = 'tallybook' AND c.relkind IN ('v', 'm')
"""
# Sent to each node as text.
_SETTINGS_OF_NODE: Final = f"""
    SELECT json_object_agg(s.name, current_setting(s.name))
    FROM unnest(string_to_array('{",".join(_SETTINGS | NODE_SETTINGS)}', ',')) AS s (name)
"""  # noqa: S608 # names that are written down
# Shards have the names of their tables, with numbers; so have their triggers.
_UNGUARDED_OF_NODE: Final = f"""
    SELECT coalesce(json_agg(c.relname ORDER BY c.relname), '[]')
    FROM pg_class AS c
    WHERE c.relnamespace = 'tallybook'::regnamespace AND c.relkind = 'r'
        AND c.relname ~ '^({"|".join(_LOG_TABLES)})_[0-9]+$'
        AND (
            SELECT count(*)
            FROM pg_trigger AS t
            WHERE t.tgrelid = c.oid
                AND t.tgname ~ '^(append_only|lock_stays|refusal_stays|only_emptied)_[0-9]+$'
                AND t.tgenabled IN ('O', 'A')
        ) < CASE WHEN c.relname ~ '^idempotency_[0-9]+$' THEN 2 ELSE 1 END
"""  # noqa: S608 # names that are written down
_PLAN_OF: Final = "EXPLAIN (VERBOSE, COSTS OFF) SELECT * FROM {} AS {}"
# The last is Citus's only message about a query that a node could not plan.
_NOT_PLANNED: Final = (
    UndefinedTableError,
    UndefinedColumnError,
    InsufficientPrivilegeError,
    InFailedSQLTransactionError,
)


class BrokenRule(Struct, frozen=True):
    """A rule that does not hold, and how things are instead."""

    rule: str
    message: str


async def broken_rules(connection: Connection) -> list[BrokenRule]:
    """Returns which rules against loss and change of the log do not hold. They are about settings of the server,
    triggers, the rights of the service's role, primary keys, indexes, columns, and the functions and views that the
    migrations brought."""
    broken = []
    for name, wanted in _SETTINGS.items():
        value = await connection.fetchval(_SETTING, name)
        if value not in _STRONGER.get(name, (wanted,)):
            broken.append(BrokenRule(f"setting.{name}", f"is {value}, not {wanted}"))
    for table, trigger, enabled, as_made in await connection.fetch(_TRIGGERS):
        if enabled is None:
            broken.append(BrokenRule(f"trigger.{table}.{trigger}", "is missing"))
        elif enabled not in (b"O", b"A") or not as_made:
            broken.append(
                BrokenRule(f"trigger.{table}.{trigger}", "is not as migrated" if as_made is False else "is disabled")
            )
    for table, right in await connection.fetch(_RIGHTS, SERVICE_ROLE, _LOG_TABLES):
        broken.append(BrokenRule(f"right.{table}", f"the role {SERVICE_ROLE} may {right} it; SELECT is all it needs"))
    for (table,) in await connection.fetch(_KEYLESS, _LOG_TABLES):
        broken.append(BrokenRule(f"key.{table}", "has no valid primary key"))
    for table, column in await connection.fetch(_NULLABLE, _LOG_TABLES):
        broken.append(BrokenRule(f"column.{table}.{column}", "may be NULL"))
    broken += await _broken_functions(connection)
    broken += await _broken_views(connection)
    if is_distributed(connection):
        broken += await _broken_nodes(connection)
    return broken


async def _broken_nodes(connection: Connection) -> list[BrokenRule]:
    """Rules that do not hold on some node of a distributed database, in the sessions between nodes."""
    broken: list[BrokenRule] = []
    if await form_of(connection) is not DatabaseForm.DISTRIBUTED:
        broken.append(BrokenRule("form", "some tables or functions are distributed, and others that should be are not"))
    settings = _SETTINGS | NODE_SETTINGS
    for node, success, result in await connection.fetch(ON_ALL_NODES, _SETTINGS_OF_NODE):
        if not success:
            broken.append(BrokenRule(f"node.{node}", f"does not answer: {result}"))
            continue
        for name, value in msgspec.json.decode(result).items():
            if value not in _STRONGER.get(name, (settings[name],)):
                broken.append(BrokenRule(f"node.{node}.setting.{name}", f"is {value}, not {settings[name]}"))
    for node, success, result in await connection.fetch(ON_ALL_NODES, _UNGUARDED_OF_NODE):
        shards = msgspec.json.decode(result) if success else []
        broken += [BrokenRule(f"node.{node}.trigger.{shard}", "is missing or disabled") for shard in shards]
    for table in COPIED:
        rows = await unlike_copies(connection, table)
        told = ", ".join(f"node {node} has {count} rows" for node, count in rows.items())
        if rows:
            broken.append(BrokenRule(f"copy.{table}", f"the nodes have different copies ({told}): was one restored?"))
    return broken


# ── Functions and views, as the migrations make them ────────────────────────────────────────────────────


class Function(Struct, frozen=True, kw_only=True):
    """What a function is. `arguments` and `result` are in the words of PostgreSQL, `settings` as `pg_proc` has them."""

    name: str
    arguments: str
    result: str
    language: str
    source: str
    definer: bool
    volatility: str
    strict: bool
    settings: tuple[str, ...]

    @property
    def identity(self) -> tuple[str, str]:
        """Two functions with the same identity are one: the later replaces the earlier."""
        given = [a for a in self.arguments.split(", ") if not a.startswith(("OUT ", "TABLE("))]
        return self.name, ", ".join(given)


_STATEMENT: Final = re.compile(
    r"^(?:CREATE\s+(?:OR\s+REPLACE\s+)?FUNCTION\s+(?P<function>\w+)\s*\((?P<arguments>.*?)\)\s*"
    r"(?:RETURNS\s+(?P<result>.*?)\s+)?(?P<options>LANGUAGE\s.*?)\s+AS\s+\$\$(?P<source>.*?)\$\$;"
    r"|CREATE\s+(?:OR\s+REPLACE\s+)?VIEW\s+(?P<view>\w+)\s+AS\s+(?P<query>.*?);"
    r"|DROP\s+(?:VIEW|FUNCTION)\s+(?P<dropped>.*?);)",
    re.DOTALL | re.MULTILINE | re.ASCII,
)
_BEGINNING: Final = re.compile(
    r"^\s*(?:CREATE\s+(?:OR\s+REPLACE\s+)?(?:\w+\s+)?(?:FUNCTION|PROCEDURE|AGGREGATE|VIEW)\b|(?:DROP|ALTER)\s+"
    r"(?:\w+\s+)?(?:FUNCTION|PROCEDURE|ROUTINE|AGGREGATE|VIEW)\b)",
    re.MULTILINE | re.IGNORECASE | re.ASCII,
)
_COMMENT: Final = re.compile(r"--[^\n]*")
_OPTIONS: Final = re.compile(
    r"LANGUAGE (?P<language>\w+)(?: (?P<volatility>IMMUTABLE|STABLE|VOLATILE))?(?: (?P<strict>STRICT))?"
    r"(?: (?P<definer>SECURITY DEFINER))?(?P<settings>(?: SET \w+ = \w+(?:, \w+)*)*)",
    re.ASCII,
)
_VOLATILITIES: Final = {"IMMUTABLE": "i", "STABLE": "s", "VOLATILE": "v", None: "v"}
_TYPES: Final = {"int": "integer", "int[]": "integer[]", "timestamptz": "timestamp with time zone"}


class SchemaObjects(Struct, frozen=True):
    """What a series of migrations leaves: its functions, and the query of each view."""

    functions: dict[tuple[str, str], Function]
    views: dict[str, str]


def schema_objects_of(texts: Iterable[str]) -> SchemaObjects:
    """The functions and views that migrations with these texts make, one after the other.

    Raises ValueError for a statement in an unknown style: overlooking it could report a correct function, or accept a
    wrong one.
    """
    objects = SchemaObjects({}, {})
    for text in texts:
        without = _COMMENT.sub(lambda comment: " " * len(comment[0]), text)
        found = list(_STATEMENT.finditer(without))
        spans = [range(match.start(), match.end()) for match in found]
        for beginning in _BEGINNING.finditer(without):
            start = beginning.end() - 1
            if not any(start in span for span in spans):
                raise ValueError(f"cannot be read as a function or view: {without[beginning.start() :][:200]!r}")
        for match in found:
            if match["function"]:
                function = _function(match, text)
                objects.functions[function.identity] = function
            elif match["view"]:
                objects.views[match["view"]] = match["query"]
            elif match["dropped"] in objects.views:
                del objects.views[match["dropped"]]
            else:
                raise ValueError(f"cannot tell what DROP {match['dropped']} drops")
    return objects


def _function(match: re.Match[str], text: str) -> Function:
    options = _OPTIONS.fullmatch(_in_one_line(match["options"]))
    if options is None:
        raise ValueError(f"cannot be read as options of {match['function']}: {match['options']!r}")
    arguments, result = _arguments(match["arguments"]), _in_one_line(match["result"] or "")
    if result.startswith("TABLE"):
        result = f"TABLE({_arguments(result[len('TABLE') :].strip(' ()'))})"
    elif not result:
        result = "record"
    return Function(
        name=match["function"],
        arguments=arguments,
        result=_TYPES.get(result, result),
        language=options["language"],
        source=text[match.start("source") : match.end("source")],  # with its comments
        definer=options["definer"] is not None,
        volatility=_VOLATILITIES[options["volatility"]],
        strict=options["strict"] is not None,
        settings=tuple([setting.replace(" = ", "=") for setting in options["settings"].split(" SET ")[1:]]),
    )


def _arguments(text: str) -> str:
    """A list of arguments as PostgreSQL shows it."""
    named = [_in_one_line(argument).rpartition(" ") for argument in text.split(",") if argument.strip()]
    return ", ".join([f"{name} {_TYPES.get(kind, kind)}" for name, _, kind in named])


def _in_one_line(text: str) -> str:
    return " ".join(text.split())


async def _broken_functions(connection: Connection) -> list[BrokenRule]:
    broken: list[BrokenRule] = []
    expected = dict(schema_objects_of(migration.sql for migration in shipped()).functions)
    for row in await connection.fetch(_FUNCTIONS):
        rule = f"function.{row['proname']}"
        found = Function(
            name=row["proname"],
            arguments=row["arguments"],
            result=row["result"],
            language=row["lanname"],
            source=row["prosrc"],
            definer=row["prosecdef"],
            volatility=row["provolatile"].decode(),
            strict=row["proisstrict"],
            settings=tuple(row["proconfig"] or ()),
        )
        brought = expected.pop(found.identity, None)
        if brought is None or row["prokind"] != b"f":
            broken.append(BrokenRule(rule, f"({row['identity']}) was not made by the migrations"))
            continue
        unlike = [f for f in found.__struct_fields__ if getattr(found, f) != getattr(brought, f)]
        if unlike:
            broken.append(BrokenRule(rule, f"does not match the migrations: another {', '.join(unlike)}"))
        if not row["of_owner"]:
            broken.append(BrokenRule(rule, "does not belong to the owner of the schema"))
        if found.definer and row["for_anybody"]:
            broken.append(BrokenRule(rule, "works with its owner's rights, and anyone may execute it"))
    return broken + [BrokenRule(f"function.{name}", "is missing") for name, _ in expected]


_CONSTANT: Final = re.compile(
    r"'(?:[^']|'')*'|\b[0-9]+\b|\b(?:LIMIT|OFFSET|FETCH|TIES|DISTINCT|PARTITION|ROWS|RANGE|GROUPS|EXCLUDE)\b",
    re.ASCII,
)


_SUBPLAN: Final = re.compile(r"\b[0-9]+_[0-9]+\b", re.ASCII)
"""Numbers of parts of a distributed plan, which differ each time."""


def _counted(query: str) -> Counter[str]:
    """How often a query has each constant, and each word that a plan does not show."""
    return Counter(_CONSTANT.findall(query))


async def _broken_views(connection: Connection) -> list[BrokenRule]:
    """Views that do not do what their queries in the migrations do.

    PostgreSQL rewrites a view's query when it shows it. Rewriting ours would need a view, and nothing may be written
    here. So the plans of both are compared: equal queries have equal plans. But a plan does not say how many rows a
    limit lets through, nor how a window is divided. So constants and such words are counted as well, in its query and
    in ours. What remains open is the columns by which a window is divided: of the views, only `standing` has such a
    window, and `verify` compares it row by row.
    """
    broken: list[BrokenRule] = []
    expected = schema_objects_of(migration.sql for migration in shipped()).views
    rows = {row["relname"]: row for row in await connection.fetch(_VIEWS)}
    there = {name: row["plain"] for name, row in rows.items()}
    broken += [BrokenRule(f"view.{name}", "was not made by the migrations") for name in there if name not in expected]
    for name, query in expected.items():
        if name not in there:
            broken.append(BrokenRule(f"view.{name}", "is missing"))
        elif not there[name]:
            broken.append(BrokenRule(f"view.{name}", "has options, or does not belong to the owner of the schema"))
        else:
            try:
                async with connection.transaction():  # a savepoint: an error does not end the snapshot
                    plans = [
                        [_SUBPLAN.sub("", row[0]) for row in await connection.fetch(_PLAN_OF.format(what, name))]
                        for what in (f"tallybook.{name}", f"({query})")
                    ]
            except _NOT_PLANNED as error:
                broken.append(BrokenRule(f"view.{name}", f"cannot be compared with the migrations: {error}"))
                continue
            if plans[0] != plans[1] or _counted(rows[name]["definition"]) != _counted(query):
                broken.append(BrokenRule(f"view.{name}", "does not match the migrations"))
    return broken
