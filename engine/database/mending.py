"""Mends a migrated database that was copied without all that belongs to it.

A dump that is restored without privileges lacks the rights of the service's role, and lets everybody execute functions.
Logical replication copies no positions of sequences, which then draw ids that exist.
"""

import re
from functools import cache
from typing import Final

from asyncpg import Connection

from engine.database.distribution import DatabaseForm, form_of
from engine.domain.errors import StartupRefused

_SERVICE: Final = "tallybook_service"
_RIGHTS_OF_FILE: Final = re.compile(r"^(?:GRANT|REVOKE) [^;]*;", re.MULTILINE)
_RIGHTS_ON: Final = re.compile(r"GRANT ([A-Z, ]+?)\s+ON (SEQUENCE |FUNCTION |)([a-z_,\s]+?)\s+TO ", re.ASCII)
_HERE: Final = "SET LOCAL search_path = tallybook"
# Who executes functions is decided by the absence of rights as well.
_RIGHTS: Final = """
    SELECT format('%s on %s', r.privilege_type, o.name) AS named, r.grantee = 0 AS is_everybodys
    FROM (
        SELECT 'schema ' || nspname, nspacl FROM pg_namespace WHERE nspname = 'tallybook'
        UNION ALL
        SELECT relname::text, relacl FROM pg_class WHERE relnamespace = 'tallybook'::regnamespace
        UNION ALL
        SELECT 'function ' || proname, coalesce(proacl, acldefault('f', proowner))
        FROM pg_proc
        WHERE pronamespace = 'tallybook'::regnamespace
    ) AS o (name, rights)
    CROSS JOIN LATERAL aclexplode(o.rights) AS r
    WHERE r.grantee IN (0, 'tallybook_service'::regrole)
"""
_LACKING: Final = """
    SELECT name
    FROM unnest($1::text[], $2::text[], $3::text[]) AS granted (kind, name, privilege)
    WHERE NOT CASE kind
        WHEN 'SEQUENCE ' THEN has_sequence_privilege($4, to_regclass('tallybook.' || name), privilege)
        WHEN 'FUNCTION ' THEN has_function_privilege($4, to_regproc('tallybook.' || name), privilege)
        ELSE has_table_privilege($4, to_regclass('tallybook.' || name), privilege)
    END
    GROUP BY name
    ORDER BY name
"""
_SEQUENCES: Final = """
    SELECT sequencename AS name, coalesce(last_value, 0) AS last_id
    FROM pg_sequences
    WHERE schemaname = 'tallybook'
    ORDER BY sequencename
"""
_LAST_IDS: Final = {
    "resource_id": "SELECT max(id) FROM block CROSS JOIN unnest(created) AS id",
    "webhook_id": "SELECT max(webhook_id) FROM webhook",
    "token_token_id_seq": "SELECT max(token_id) FROM token",
    "session_session_id_seq": "SELECT max(session_id) FROM session",
}
"""The last id that each sequence has drawn, as far as the tables show."""
_MOVE: Final = "SELECT setval(format('tallybook.%I', $1::text)::regclass, $2)"


async def mend(connection: Connection, migrations: list[str]) -> list[str]:
    """Restores rights as the `migrations`, all of the schema's, give them, and moves sequences behind the ids that
    exist. Returns what it has mended. `connection` is of the schema's owner, and migrates."""
    form = await form_of(connection)
    if form is DatabaseForm.MIXED:
        return []
    async with connection.transaction():
        await connection.execute(_HERE)
        rights = await _restore_rights(connection, migrations)
        # Of a distributed database, each node has numbers of its own.
        return rights if form is DatabaseForm.DISTRIBUTED else [*rights, *await _move_sequences(connection)]


async def refuse_without_rights(connection: Connection, migrations: list[str]) -> None:
    """Raises StartupRefused if the service's role lacks a right that the `migrations` give it."""
    kinds, names, privileges = map(list, zip(*(right for sql in migrations for right in _granted(sql)), strict=True))
    if lacking := await connection.fetch(_LACKING, kinds, names, privileges, _SERVICE):
        raise StartupRefused(
            f"The role {_SERVICE} lacks rights on {', '.join(row['name'] for row in lacking)}; run "
            "`tallybook migrate` as the owner of the database, which restores them."
        )


@cache
def _granted(sql: str) -> list[tuple[str, str, str]]:
    """The rights that the text of a migration gives: kind of object, name, privilege."""
    return [
        (right[2], name, privilege)
        for statement in _RIGHTS_OF_FILE.findall(sql)
        if (right := _RIGHTS_ON.match(statement))
        for name in re.findall(r"\w+", right[3])
        for privilege in re.findall(r"\w+", right[1])
    ]


async def _restore_rights(connection: Connection, migrations: list[str]) -> list[str]:
    before = await _rights(connection)
    for statement in (statement for sql in migrations for statement in _RIGHTS_OF_FILE.findall(sql)):
        await connection.execute(statement)
    after = await _rights(connection)
    return [
        *(
            f"restored {named} for {'everybody' if of_all else 'the service'}"
            for named, of_all in sorted(after - before)
        ),
        *(f"took {named} from {'everybody' if of_all else 'the service'}" for named, of_all in sorted(before - after)),
    ]


async def _rights(connection: Connection) -> set[tuple[str, bool]]:
    return {(row["named"], row["is_everybodys"]) for row in await connection.fetch(_RIGHTS)}


async def _move_sequences(connection: Connection) -> list[str]:
    moved = []
    for sequence in await connection.fetch(_SEQUENCES):
        name = sequence["name"]
        last_id = await connection.fetchval(_LAST_IDS[name])
        if last_id is not None and last_id > sequence["last_id"]:
            await connection.fetchval(_MOVE, name, last_id)
            moved.append(f"moved {name} from {sequence['last_id']} to {last_id}")
    return moved
