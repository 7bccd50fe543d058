"""The registry of tournaments, and the ids that a database assigns only once.

Functions take a connection and do not translate driver errors: callers use `pool.unavailable`.
"""

import secrets
from collections.abc import Iterable
from typing import Final
from uuid import uuid4

import msgspec
from asyncpg import Connection
from msgspec import Struct

from engine.database.distribution import is_coordinator
from engine.domain.errors import DatabaseUnavailable, LogUnreadable
from engine.domain.judging import opening
from engine.domain.terms import ActorId, Sequence, TournamentId
from engine.log import codec, heads
from engine.log.reading import name_at

# No other tournament ever gets the slug of a deleted one. A taken slug must not reach the function: a node whose copy
# of the registry lacks it would enter it there.
_OPEN: Final = """
    SELECT CASE
        WHEN EXISTS (SELECT FROM deleted_tournament WHERE slug = $2) THEN false
        WHEN EXISTS (SELECT FROM tournament WHERE slug = $2) THEN false
        ELSE open_tournament($1, $2, $3, $4, $5)
    END
"""
_IS_DELETED: Final = """
    SELECT EXISTS (SELECT FROM deleted_tournament WHERE tournament_id = $1)
        AND NOT EXISTS (SELECT FROM tournament WHERE tournament_id = $1)
"""
_RENAMED: Final = """
    SELECT DISTINCT tournament_id
    FROM topic
    WHERE tournament_id = ANY($1::bigint[]) AND topic = -2
"""
# Topics as in `migrations/0001_log.sql`: the last of the two is the tournament's.
_WITHDRAWN: Final = """
    SELECT tournament_id
    FROM topic
    WHERE tournament_id = ANY($1::bigint[]) AND topic IN (-6, -5)
    GROUP BY tournament_id
    HAVING max(sequence) FILTER (WHERE topic = -5) > coalesce(max(sequence) FILTER (WHERE topic = -6), 0)
"""
_SLUG_OF: Final = "SELECT slug FROM tournament WHERE tournament_id = $1"
_OPENED: Final = "SELECT slug, name FROM tournament WHERE tournament_id = $1"
_BY_SLUG: Final = "SELECT tournament_id FROM tournament WHERE slug = $1"
_TOURNAMENTS: Final = """
    SELECT t.tournament_id, t.slug, t.name, h.sequence
    FROM tournament AS t
    JOIN head AS h ON h.tournament_id = t.tournament_id
    ORDER BY t.slug
"""
_TOURNAMENTS_AFTER: Final = """
    SELECT tournament_id, slug, name
    FROM tournament
    WHERE slug > $1 AND ($2::bigint[] IS NULL OR tournament_id = ANY($2))
    ORDER BY slug
    LIMIT $3
"""
_NEXT_IDS: Final = "SELECT nextval($1::text::regclass) AS id FROM generate_series(1, $2)"
# The ids are in one text, because a node answers another in texts.
_NEXT_IDS_OF_COORDINATOR: Final = """
    SELECT success, result
    FROM run_command_on_coordinator(format(
        'SELECT string_agg(nextval(''tallybook.%I'')::text, '' '') FROM generate_series(1, %s)', $1::text, $2::bigint
    ))
"""


class RegistryEntry(Struct, frozen=True):
    """A tournament with its current name, and the last sequence of its log. `withdrawn`: it was deleted over HTTP, and
    its log is still there."""

    tournament_id: TournamentId
    slug: str
    name: str
    sequence: Sequence
    withdrawn: bool = False


async def open_tournament(
    connection: Connection, tournament_id: TournamentId, *, name: str, slug: str, actor: ActorId
) -> bool:
    """Enters a tournament in the registry and records its opening. Returns False if the slug is taken. Raises
    Unacceptable."""
    line = codec.line_of(opening(name, slug), actor)
    opened: bool = await connection.fetchval(_OPEN, tournament_id, slug, name, uuid4(), line)
    return opened


async def tournament_named(connection: Connection, slug: str) -> TournamentId | None:
    """The tournament with this slug; None: there is none."""
    tournament_id: TournamentId | None = await connection.fetchval(_BY_SLUG, slug)
    return tournament_id


async def slug_of(connection: Connection, tournament_id: TournamentId) -> str | None:
    """The slug of this tournament; None: there is no such tournament."""
    slug: str | None = await connection.fetchval(_SLUG_OF, tournament_id)
    return slug


async def opened(connection: Connection, tournament_id: TournamentId) -> RegistryEntry | None:
    """This tournament as it was opened; None: there is no such tournament."""
    row = await connection.fetchrow(_OPENED, tournament_id)
    return None if row is None else RegistryEntry(tournament_id, row["slug"], row["name"], Sequence(1))


async def is_deleted(connection: Connection, tournament_id: TournamentId) -> bool:
    """Whether this tournament was deleted, and has not been imported again."""
    found: bool = await connection.fetchval(_IS_DELETED, tournament_id)
    return found


async def withdrawn_among(connection: Connection, tournament_ids: Iterable[TournamentId]) -> set[TournamentId]:
    """Those of the tournaments that were deleted over HTTP, and not restored."""
    return {row["tournament_id"] for row in await connection.fetch(_WITHDRAWN, list(tournament_ids))}


async def tournaments(connection: Connection) -> list[RegistryEntry]:
    """All tournaments whose log is there, in the order of their slugs."""
    entries = [RegistryEntry(*row) for row in await connection.fetch(_TOURNAMENTS)]
    withdrawn = await withdrawn_among(connection, [entry.tournament_id for entry in entries])
    entries = [msgspec.structs.replace(entry, withdrawn=entry.tournament_id in withdrawn) for entry in entries]
    return await _named(connection, entries)


async def tournaments_after(
    connection: Connection, after: str, among: Iterable[TournamentId] | None, limit: int
) -> list[RegistryEntry]:
    """The next tournaments after a slug that clients see, `among` these or, None, all, in the order of their slugs: at
    most `limit`."""
    bound, entries = None if among is None else list(among), list[RegistryEntry]()
    while len(entries) < limit:
        rows = await connection.fetch(_TOURNAMENTS_AFTER, after, bound, limit)
        ids = [row["tournament_id"] for row in rows]
        found, withdrawn = await heads.current(connection, ids), await withdrawn_among(connection, ids)
        shown = [row for row in rows if row["tournament_id"] in found.keys() - withdrawn]
        entries += [RegistryEntry(one, slug, name, found[one].sequence) for one, slug, name in shown]
        if len(rows) < limit:
            break
        after = rows[-1]["slug"]
    return await _named(connection, entries[:limit])


async def _named(connection: Connection, entries: list[RegistryEntry]) -> list[RegistryEntry]:
    """The entries, with the current names of renamed tournaments."""
    rows = await connection.fetch(_RENAMED, [entry.tournament_id for entry in entries])
    renamed = {row["tournament_id"] for row in rows}
    return [entry if entry.tournament_id not in renamed else await _renamed(connection, entry) for entry in entries]


async def _renamed(connection: Connection, entry: RegistryEntry) -> RegistryEntry:
    """The entry with the current name. If the tournament has stopped at the renaming, it keeps the first one."""
    try:
        name = await name_at(connection, entry.tournament_id, entry.sequence)
    except LogUnreadable:
        return entry
    return msgspec.structs.replace(entry, name=name)


TOURNAMENT_ID_MAX: Final = 2**52 - 1


def new_tournament_id() -> TournamentId:
    """A random id from 1 to TOURNAMENT_ID_MAX, so that tournaments can move between databases: the digests of a log
    begin with its tournament's id, which therefore never changes."""
    return TournamentId(1 + secrets.randbelow(TOURNAMENT_ID_MAX))


async def next_ids(connection: Connection, count: int) -> list[int]:
    """`count` ids, ascending, for items of tournaments. Each id is drawn only once in this database. Raises
    DatabaseUnavailable if the node that assigns them does not answer."""
    return await _next_of("resource_id", connection, count)


async def next_webhook_id(connection: Connection) -> int:
    """An id that no other webhook ever has. Raises the errors of `next_ids`."""
    (webhook_id,) = await _next_of("webhook_id", connection, 1)
    return webhook_id


async def _next_of(sequence: str, connection: Connection, count: int) -> list[int]:
    if not is_coordinator(connection):
        is_given, ids = await connection.fetchrow(_NEXT_IDS_OF_COORDINATOR, sequence, count)
        if not is_given:
            raise DatabaseUnavailable from ConnectionError(ids)
        return [int(number) for number in ids.split()]
    return [row["id"] for row in await connection.fetch(_NEXT_IDS, sequence, count)]
