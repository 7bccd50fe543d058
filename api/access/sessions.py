"""Sessions of the console. The only SQL on the table `session`.

A browser keeps no token. Signing in with a token opens a session, whose text is a cookie that no script can read. A
session has the rights of its token. It ends with the token, when somebody ends it, and SESSION_HOURS after the start.
Nothing about sessions is kept in memory: they are looked up for each request, so an end takes effect at once.

The text is sent once. The table keeps its SHA-256.
"""

import hashlib
import re
import secrets
from collections.abc import Iterable
from datetime import datetime
from typing import Final, NewType

from asyncpg import Connection
from msgspec import Struct

from api.access.auth import Token, good_among, good_token
from engine.domain.terms import ID_MAX, ActorId

SessionId = NewType("SessionId", int)

SESSION_HOURS: Final = 12
SESSIONS_MAX: Final = 100
"""Sessions of one token that are open at once. A further one ends the oldest."""
SESSIONS_LISTED_MAX: Final = 200
_SECRET_BYTES: Final = 32
_SHAPE: Final = re.compile(r"se_[0-9A-Za-z_-]{43}", re.ASCII)

# In the order of time, because each node of a distributed database numbers its own sessions.
_CREATE: Final = """
    WITH ended AS (
        DELETE FROM session
        WHERE token_id = $2
            AND (
                expires_at <= now()
                OR session_id IN (
                    SELECT session_id
                    FROM session
                    WHERE token_id = $2
                    ORDER BY created_at DESC, session_id DESC
                    OFFSET $4 - 1
                )
            )
    )
    INSERT INTO session (hash, token_id, expires_at)
    VALUES ($1, $2, now() + make_interval(hours => $3))
    RETURNING session_id, token_id, created_at, expires_at
"""
_OPEN: Final = """
    SELECT session_id, token_id, created_at, expires_at
    FROM session
    WHERE hash = $1 AND expires_at > now()
"""
_OPEN_AMONG: Final = """
    SELECT session_id
    FROM session
    WHERE session_id = ANY($1::bigint[]) AND expires_at > now()
"""
_LIST: Final = """
    SELECT session_id, token_id, created_at, expires_at
    FROM session
    WHERE token_id = ANY($1::bigint[]) AND expires_at > now()
    ORDER BY created_at DESC, session_id DESC
    LIMIT $2
"""
_END: Final = """
    DELETE FROM session
    WHERE session_id = $1 AND token_id = ANY($2::bigint[])
    RETURNING session_id
"""


class Session(Struct, frozen=True):
    """A session, except its text. Times are UTC."""

    session_id: SessionId
    token_id: ActorId
    created_at: datetime
    expires_at: datetime


class Opener(Struct, frozen=True):
    """The opener of a stream: a token, and the session signed in with it, if there is one."""

    token_id: ActorId
    session_id: SessionId | None = None


async def create_session(connection: Connection, token_id: ActorId) -> tuple[Session, str]:
    """Opens a session for the holder of a valid token. Returns it with its text, which is never shown again."""
    text = f"se_{secrets.token_urlsafe(_SECRET_BYTES)}"
    row = await connection.fetchrow(_CREATE, _digest(text), token_id, SESSION_HOURS, SESSIONS_MAX)
    return Session(*row), text


async def open_session(connection: Connection, text: str) -> tuple[Session, Token] | None:
    """The open session of this text, with its token; None: there is none, or it or its token has ended."""
    if not _SHAPE.fullmatch(text):
        return None
    row = await connection.fetchrow(_OPEN, _digest(text))
    token = None if row is None else await good_token(connection, row["token_id"])
    return None if token is None else (Session(*row), token)


async def open_sessions(connection: Connection, token_ids: Iterable[ActorId]) -> list[Session]:
    """The open sessions of the tokens, newest first: SESSIONS_LISTED_MAX at most. Sessions of tokens that have
    ended are left out."""
    good = await good_among(connection, token_ids)
    return [Session(*row) for row in await connection.fetch(_LIST, list(good), SESSIONS_LISTED_MAX)]


async def good_openers(connection: Connection, openers: Iterable[Opener]) -> set[Opener]:
    """Those whose token and session are both still open."""
    asked = set(openers)
    tokens = await good_among(connection, {one.token_id for one in asked})
    session_ids = [one.session_id for one in asked if one.session_id is not None]
    rows = await connection.fetch(_OPEN_AMONG, session_ids) if session_ids else []
    sessions = {None, *[row["session_id"] for row in rows]}
    return {one for one in asked if one.token_id in tokens and one.session_id in sessions}


async def end_session(connection: Connection, session_id: SessionId, token_ids: Iterable[ActorId]) -> bool:
    """Ends a session of one of the tokens. False: there is none."""
    return 0 < session_id <= ID_MAX and await connection.fetchval(_END, session_id, list(token_ids)) is not None


def _digest(text: str) -> bytes:
    """The SHA-256 of a session's text."""
    return hashlib.sha256(text.encode()).digest()
