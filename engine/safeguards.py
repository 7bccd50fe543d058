"""What keeps the log append-only and what is confirmed from being lost: settings, triggers, rights, keys, functions.

Looked up in the catalogues of the database that is checked, and held against what the migrations make.
"""

from typing import Final

from asyncpg import Connection
from msgspec import Struct

from engine.database import SERVICE_ROLE
from engine.migrator import shipped

_SETTINGS: Final = {
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "session_replication_role": "origin",
    "server_encoding": "UTF8",
}
"""Those that an acknowledged change depends on, and how they are; synchronous_commit may be stronger."""
_STRONGER: Final = {"synchronous_commit": ("on", "local", "remote_write", "remote_apply")}
_LOG_TABLES: Final = ("tournament", "append_lock", "event", "block", "idempotency", "refusal")
_SETTING: Final = "SELECT current_setting($1)"
# Of pg_trigger.tgtype: 1 each row, 2 before, 8 delete, 16 update, 32 truncate.
_TRIGGERS: Final = """
    SELECT
        w.name, w.trigger, t.tgenabled,
        t.tgtype::int & 59 = w.type AND t.tgqual IS NULL AND p.proname = 'refuse_change' AS as_made
    FROM (
        VALUES ('tournament', 'append_only', 58), ('event', 'append_only', 58), ('block', 'append_only', 58),
            ('idempotency', 'append_only', 58), ('append_lock', 'lock_stays', 42),
            ('refusal', 'refusal_stays', 42)
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
        AND a.attname <> ALL (ARRAY['idempotency_key', 'answers', 'structure_sequence', 'created'])
"""
_FUNCTIONS: Final = """
    SELECT p.proname, p.prosrc
    FROM pg_proc AS p
    JOIN pg_language AS l ON l.oid = p.prolang
    WHERE p.pronamespace = 'tallybook'::regnamespace AND l.lanname IN ('sql', 'plpgsql')
    ORDER BY p.proname
"""
_FUNCTION_NAMES: Final = (
    "append_block",
    "block_text",
    "genesis_digest",
    "open_tournament",
    "refuse_change",
    "refuse_keys",
)


class Broken(Struct, frozen=True):
    """A rule that does not hold, and how things are instead."""

    rule: str
    message: str


async def broken_rules(connection: Connection) -> list[Broken]:
    """What ought to keep the log from being lost or changed, and does not: settings of the server, triggers, the rights
    of the service's role, primary keys, columns, and functions that are not those which the migrations brought."""
    broken = []
    for name, wanted in _SETTINGS.items():
        value = await connection.fetchval(_SETTING, name)
        if value not in _STRONGER.get(name, (wanted,)):
            broken.append(Broken(f"setting.{name}", f"is {value}, not {wanted}"))
    for table, trigger, enabled, as_made in await connection.fetch(_TRIGGERS):
        if enabled is None:
            broken.append(Broken(f"trigger.{table}.{trigger}", "is missing"))
        elif enabled not in (b"O", b"A") or not as_made:
            broken.append(
                Broken(f"trigger.{table}.{trigger}", "is not what it was made" if as_made is False else "is disabled")
            )
    for table, right in await connection.fetch(_RIGHTS, SERVICE_ROLE, _LOG_TABLES):
        broken.append(Broken(f"right.{table}", f"the role {SERVICE_ROLE} may {right} it; SELECT is all it needs"))
    for (table,) in await connection.fetch(_KEYLESS, _LOG_TABLES):
        broken.append(Broken(f"key.{table}", "has no valid primary key"))
    for table, column in await connection.fetch(_NULLABLE, _LOG_TABLES):
        broken.append(Broken(f"column.{table}.{column}", "may be NULL"))
    sources: dict[str, list[str]] = {name: [] for name in _FUNCTION_NAMES}
    for name, source in await connection.fetch(_FUNCTIONS):
        sources.setdefault(name, []).append(source)
    brought = "".join(migration.sql for migration in shipped())
    for name, of_name in sources.items():
        if not of_name:
            broken.append(Broken(f"function.{name}", "is missing"))
        elif not all(source in brought for source in of_name):
            broken.append(Broken(f"function.{name}", "is not the one that the migrations brought"))
    return broken
