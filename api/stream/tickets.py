"""Tickets: each opens one stream in place of a token. The only SQL on the table `ticket`.

A browser's EventSource sends no headers, and a token does not belong in an address: addresses are logged and kept. A
ticket may stand there, because it opens one stream once, and soon expires. It has no more rights than the token that
requested it: the stream ends with that token.

The text is shown once. The table keeps its SHA-256.
"""

import hashlib
import re
import secrets
from datetime import datetime
from typing import Final

from asyncpg import Connection

from engine.domain.errors import QueueFull
from engine.domain.terms import ActorId, TournamentId

TICKET_SECONDS: Final = 60
TICKETS_MAX: Final = 10_000
"""Tickets of one tournament that are neither used nor expired."""
_SECRET_BYTES: Final = 24
_SHAPE: Final = re.compile(r"tk_[0-9A-Za-z_-]{32}", re.ASCII)

# The insertion returns no column: when Citus rewrites it for a node, it loses the name of the table.
_CREATE: Final = """
    WITH expired AS (
        DELETE FROM ticket WHERE tournament_id = $1 AND expires_at <= now()
    ),
    made AS (
        INSERT INTO ticket (tournament_id, hash, token_id, expires_at)
        SELECT l.tournament_id, $2, $3, now() + make_interval(secs => $4)
        FROM append_lock AS l
        WHERE l.tournament_id = $1 AND (
            SELECT count(*)
            FROM (SELECT FROM ticket WHERE tournament_id = $1 AND expires_at > now() LIMIT $5) AS open
        ) < $5
        RETURNING true
    )
    SELECT now() + make_interval(secs => $4) FROM made
"""
_USE: Final = """
    DELETE FROM ticket
    WHERE tournament_id = $1 AND hash = $2 AND expires_at > now()
    RETURNING token_id
"""


async def create_ticket(connection: Connection, tournament_id: TournamentId, token_id: ActorId) -> tuple[str, datetime]:
    """Makes a ticket. Returns its text, which is never shown again, and when it expires, in UTC. Raises QueueFull if
    TICKETS_MAX are open."""
    text = f"tk_{secrets.token_urlsafe(_SECRET_BYTES)}"
    expires_at: datetime | None = await connection.fetchval(
        _CREATE, tournament_id, _hash(text), token_id, TICKET_SECONDS, TICKETS_MAX
    )
    if expires_at is None:
        raise QueueFull
    return text, expires_at


async def use_ticket(connection: Connection, tournament_id: TournamentId, text: str) -> ActorId | None:
    """Uses a ticket up. Returns the token that requested it; None: there is no such ticket, or it was used or has
    expired."""
    if not _SHAPE.fullmatch(text):
        return None
    token_id: ActorId | None = await connection.fetchval(_USE, tournament_id, _hash(text))
    return token_id


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
