"""Finds the requests that an import made.

The fingerprint of a request of an import has the import's name after its 32 bytes. So an index finds the requests of an
import, at no cost to other appends. Requests that undo an import have the name followed by `_UNDONE`.
"""

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Final

from asyncpg import Connection
from msgspec import Struct

from engine.domain.terms import Sequence, TournamentId

FINGERPRINT_BYTES: Final = 32
REQUESTS_AT_ONCE_MAX: Final = 1_000
"""Requests that one query reads."""
_UNDONE: Final = " undone"
_RUNS: Final = """
    SELECT
        convert_from(substring(i.fingerprint FROM 33), 'UTF8') AS name,
        min(i.sequence) AS first,
        min(b.recorded_at) AS recorded_at,
        count(*) FILTER (WHERE b.line LIKE '["CompetitionAdded",%') AS competitions,
        count(*) FILTER (WHERE b.line LIKE '["PointsAdded",%') AS points
    FROM idempotency AS i
    CROSS JOIN LATERAL (
        SELECT recorded_at, split_part(text, chr(10), (i.sequence - first_sequence + 1)::int) AS line
        FROM block
        WHERE tournament_id = $1 AND last_sequence >= i.sequence
        ORDER BY last_sequence
        LIMIT 1
    ) AS b
    WHERE i.tournament_id = $1 AND octet_length(i.fingerprint) > 32
    GROUP BY 1
    ORDER BY 2
"""
_KEYS: Final = """
    SELECT idempotency_key, sequence
    FROM idempotency
    WHERE tournament_id = $1 AND octet_length(fingerprint) > 32 AND substring(fingerprint FROM 33) = $2
        AND sequence > $3
    ORDER BY sequence
    LIMIT $4
"""
_AMONG: Final = """
    SELECT n.name
    FROM unnest($2::text[]) AS n (name)
    WHERE EXISTS (
        SELECT FROM idempotency
        WHERE tournament_id = $1 AND octet_length(fingerprint) > 32
            AND substring(fingerprint FROM 33) = convert_to(n.name || ' undone', 'UTF8')
    )
"""


class Run(Struct, frozen=True):
    """An import: its name, the time and the sequence of its first event, and the numbers of competitions and of events
    with points that it added. `undone`: it was undone, or undoing it has begun."""

    name: str
    recorded_at: datetime
    event: Sequence
    competitions: int
    points: int
    undone: bool


def fingerprint_of(request: bytes, name: str) -> bytes:
    """The fingerprint of a request of the import."""
    assert len(request) == FINGERPRINT_BYTES
    return request + name.encode()


def undoing_fingerprint_of(request: bytes, name: str) -> bytes:
    """The fingerprint of a request that undoes the import."""
    return fingerprint_of(request, name + _UNDONE)


def name_in(fingerprint: bytes) -> str:
    """The name of the import that made the request with this fingerprint; empty: none did."""
    return fingerprint[FINGERPRINT_BYTES:].decode()


async def runs(connection: Connection, tournament_id: TournamentId) -> list[Run]:
    """Every import of the tournament, the first one first."""
    rows = {row["name"]: row for row in await connection.fetch(_RUNS, tournament_id)}
    return [
        Run(name, row["recorded_at"], row["first"], row["competitions"], row["points"], name + _UNDONE in rows)
        for name, row in rows.items()
        if not name.endswith(_UNDONE)
    ]


async def keys_of(connection: Connection, tournament_id: TournamentId, name: str) -> list[str]:
    """The idempotency keys of the requests that the import made, in the order of their events."""
    keys: list[str] = []
    after = 0
    while rows := await connection.fetch(_KEYS, tournament_id, name.encode(), after, REQUESTS_AT_ONCE_MAX):
        keys += [row["idempotency_key"] for row in rows]
        after = rows[-1]["sequence"]
    return keys


async def undone_among(connection: Connection, tournament_id: TournamentId, names: Iterable[str]) -> Collection[str]:
    """Those of the imports that were undone, or whose undoing has begun."""
    rows = await connection.fetch(_AMONG, tournament_id, sorted(names))
    return {row["name"] for row in rows}
