"""Tokens and their rights. The only SQL on the table `token`.

A token's text is shown once, when the token is made. The table and the memory keep only its SHA-256. The text carries a
checksum, so a typing error or a guess is refused before it costs a query.

Times are UTC. Functions take a connection of the service. The driver's errors pass through unchanged.
"""

import asyncio
import re
import secrets
import string
import time
import zlib
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from enum import IntEnum
from functools import lru_cache, partial
from hashlib import sha256
from typing import Any, Final

from asyncpg import Connection
from msgspec import Struct

from engine.database.pool import Database, unavailable
from engine.domain.errors import Fault, Unacceptable, Unauthenticated
from engine.domain.terms import ID_MAX, ActorId, TournamentId, name_fault
from engine.process.background import SharedTasks

KEPT_SECONDS_MAX: Final = 4.0  # from the start of the look-up; revocation may take a second more
RENEWED_SECONDS: Final = 3.0  # a token that is used this long after its look-up is looked up again, in the background
TOKENS_KEPT_MAX: Final = 10_000
HASHES_KEPT_MAX: Final = 1_000
"""Headers whose hash a process remembers: making one takes a fiftieth of an add."""
LOOKUPS_AT_ONCE_MAX: Final = 2  # per process, so that guesses cannot take all connections
EXPIRES_IN_DAYS_MAX: Final = 36_500

BASE62: Final = string.digits + string.ascii_uppercase + string.ascii_lowercase
SECRET_CHARACTERS: Final = 30  # 178 bits cannot be guessed, so a fast hash protects them as well as a slow one
CHECKSUM_CHARACTERS: Final = 6
_SHAPE: Final = re.compile(r"tb_[0-9A-Za-z]{36}")
_HEADER: Final = re.compile(r"(?i:bearer) (tb_[0-9A-Za-z]{36})", re.ASCII)
_BEARER: Final = "Bearer "
_HEADER_CHARACTERS: Final = len(_BEARER) + len("tb_") + SECRET_CHARACTERS + CHECKSUM_CHARACTERS
_NOT_ACCEPTED: Final = "Send a valid token in the header `Authorization: Bearer <token>`; the operator creates tokens."
_UTC_NOW: Final = partial(datetime.now, UTC)

_CREATE: Final = """
    INSERT INTO token (name, hash, scope, tournament_ids, expires_at, only_group, only_round)
    VALUES ($1, $2, $3, $4, coalesce($6, now() + make_interval(days => $5)), $7, $8)
    ON CONFLICT (hash) DO NOTHING
    RETURNING token_id, name, scope, tournament_ids, created_at, expires_at, revoked_at, only_group, only_round
"""
_LIST: Final = """
    SELECT token_id, name, scope, tournament_ids, created_at, expires_at, revoked_at, only_group, only_round
    FROM token
    ORDER BY created_at, token_id
"""
_BY_HASH: Final = """
    SELECT token_id, name, scope, tournament_ids, created_at, expires_at, revoked_at, only_group, only_round
    FROM token
    WHERE hash = $1
"""
_GOOD: Final = """
    SELECT token_id, name, scope, tournament_ids, created_at, expires_at, revoked_at, only_group, only_round
    FROM token
    WHERE token_id = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())
"""
_GOOD_AMONG: Final = """
    SELECT token_id
    FROM token
    WHERE token_id = ANY($1::bigint[]) AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())
"""
_NAMES: Final = "SELECT token_id, name FROM token WHERE token_id = ANY($1::bigint[])"
_REVOKE: Final = """
    UPDATE token
    SET revoked_at = now()
    WHERE token_id = $1 AND revoked_at IS NULL
    RETURNING token_id, name, scope, tournament_ids, created_at, expires_at, revoked_at, only_group, only_round
"""


class Scope(IntEnum):
    """The rights of a token. Each scope includes the smaller ones. SCORE opens one page of the console and nothing
    else: it is below what anything else needs."""

    SCORE = 0
    READ = 1
    WRITE = 2
    ADMIN = 3

    @property
    def text(self) -> str:
        """The scope as people and the table write it: `score`, `read`, `write`, `admin`."""
        return self.name.lower()


GRANTED: Final = (Scope.READ, Scope.WRITE, Scope.ADMIN)
"""The scopes that somebody who makes a token can choose. A scorer gets SCORE with a part."""


class ScorerPart(Struct, frozen=True):
    """The matches whose results a scorer may enter: those of a group, or of a round by its key, or of both."""

    group_id: int | None = None
    round: str | None = None


class Token(Struct, frozen=True):
    """A token, except its text. `tournament_ids` None: all tournaments, future ones too. `only_group`, `only_round`:
    the part of a scorer."""

    token_id: ActorId
    name: str
    scope: Scope
    tournament_ids: frozenset[TournamentId] | None
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    only_group: int | None = None
    only_round: str | None = None

    @property
    def part(self) -> ScorerPart | None:
        """The matches whose results it may enter, and nothing else; None: it is no scorer's."""
        return ScorerPart(self.only_group, self.only_round) if self.scope is Scope.SCORE else None

    def allows(self, tournament_id: TournamentId) -> bool:
        """Whether the token is for this tournament. Its scope and its end are checked elsewhere."""
        return self.tournament_ids is None or tournament_id in self.tournament_ids


async def create(
    connection: Connection,
    *,
    name: str,
    scope: Scope,
    tournament_ids: Iterable[TournamentId] | None,
    expires_in_days: int | None,
    expires_at: datetime | None = None,
    part: ScorerPart | None = None,
    secret: str | None = None,
) -> tuple[Token, str]:
    """Makes a token. Returns it with its text, which is never shown again. With a `secret` that a token was made with,
    returns that one.

    `tournament_ids` empty: for none; None: for all. `expires_in_days` None: never, else 1 … EXPIRES_IN_DAYS_MAX;
    `expires_at`: instead of that. `part`: of a scorer, who has one. Raises Unacceptable, naming every fault.
    """
    name = name.strip()
    _refuse_faults(name, expires_in_days)
    text = text_of(secret or "".join(secrets.choice(BASE62) for _ in range(SECRET_CHARACTERS)))
    bound_to = None if tournament_ids is None else sorted(set(tournament_ids))
    its = (None, None) if part is None else (part.group_id, part.round)
    row = await connection.fetchrow(_CREATE, name, _hash(text), scope.text, bound_to, expires_in_days, expires_at, *its)
    return _token(row or await connection.fetchrow(_BY_HASH, _hash(text))), text


async def listed(connection: Connection) -> list[Token]:
    """Every token ever made, oldest first."""
    return [_token(row) for row in await connection.fetch(_LIST)]


async def revoke(connection: Connection, token_id: ActorId) -> Token | None:
    """Ends a token, within 5 seconds everywhere. None: there is no such token, or it was revoked already."""
    row = await connection.fetchrow(_REVOKE, token_id) if 0 < token_id <= ID_MAX else None
    return None if row is None else _token(row)


async def good_token(connection: Connection, token_id: ActorId) -> Token | None:
    """The token, if it has not ended."""
    row = await connection.fetchrow(_GOOD, token_id)
    return None if row is None else _token(row)


async def names_of(connection: Connection, token_ids: Iterable[ActorId]) -> dict[ActorId, str]:
    """The names of those of the tokens that there are, even if they have ended."""
    return {row["token_id"]: row["name"] for row in await connection.fetch(_NAMES, list(token_ids))}


async def good_among(connection: Connection, token_ids: Iterable[ActorId]) -> set[ActorId]:
    """Those of the tokens that have not ended."""
    return {row["token_id"] for row in await connection.fetch(_GOOD_AMONG, list(token_ids))}


def well_formed(text: str) -> bool:
    """Whether `text` has the shape and the checksum of a token; every single wrong character is noticed."""
    return _SHAPE.fullmatch(text) is not None and text.endswith(_checksum(text[:-CHECKSUM_CHARACTERS]))


def text_of(secret: str) -> str:
    """The text of the token with this secret of SECRET_CHARACTERS base62 characters."""
    return f"tb_{secret}{_checksum(f'tb_{secret}')}"


def _checksum(text: str) -> str:
    crc = zlib.crc32(text.encode())
    return "".join(BASE62[crc // 62**power % 62] for power in reversed(range(CHECKSUM_CHARACTERS)))


def _hash(text: str) -> bytes:
    return sha256(text.encode(errors="surrogateescape")).digest()  # a header may hold any bytes


@lru_cache(maxsize=HASHES_KEPT_MAX)
def _hash_in(authorization: str) -> bytes:
    """The hash of the text in a header, whether there is such a token or not."""
    return _hash(authorization[len(_BEARER) :])


def unacceptable_token(*faults: Fault) -> Unacceptable:
    return Unacceptable("The token cannot be created like this; correct the fields named.", faults)


def _refuse_faults(name: str, expires_in_days: int | None) -> None:
    fault = name_fault(name)
    faults = [Fault("name", fault)] if fault else []
    if expires_in_days is not None and not 1 <= expires_in_days <= EXPIRES_IN_DAYS_MAX:
        faults.append(Fault("expires_in_days", f"must be from 1 to {EXPIRES_IN_DAYS_MAX}"))
    if faults:
        raise unacceptable_token(*faults)


def _token(row: Any) -> Token:
    token_id, name, scope, bound_to, *times = row
    return Token(token_id, name, Scope[scope.upper()], None if bound_to is None else frozenset(bound_to), *times)


class Guard:
    """Knows the tokens of requests; one per process.

    A good token is trusted for KEPT_SECONDS_MAX from the start of its look-up, within one epoch of the database. Beyond
    TOKENS_KEPT_MAX the oldest are forgotten. A bad token is never kept, so guesses cannot fill the memory. `clock`
    counts seconds; `now` returns the time in UTC.
    """

    def __init__(
        self, database: Database, *, clock: Callable[[], float] = time.monotonic, now: Callable[[], datetime] = _UTC_NOW
    ) -> None:
        self._database = database
        self._clock = clock
        self._now = now
        self._kept: dict[bytes, tuple[Token, float, int]] = {}  # with the start of its look-up, and the epoch
        self._looking_up = SharedTasks[bytes, Token | None]()
        self._lookups = asyncio.Semaphore(LOOKUPS_AT_ONCE_MAX)

    async def token_of(self, authorization: str | None) -> Token:
        """Returns the good token in an Authorization header. Raises DatabaseUnavailable, and Unauthenticated with the
        same message whatever is wrong with the token."""
        match = _HEADER.fullmatch(authorization or "")
        if match is None or not well_formed(match[1]):
            raise Unauthenticated(_NOT_ACCEPTED)
        digest = _hash(match[1])
        token = self._kept_token(digest) or await self._looked_up(digest)
        if token is None or not self._is_good(token):
            raise Unauthenticated(_NOT_ACCEPTED)
        return token

    def kept(self, authorization: str | None) -> Token | None:
        """The result of `token_of`, if it is known without a query. None: unknown."""
        if authorization is None or len(authorization) != _HEADER_CHARACTERS or not authorization.startswith(_BEARER):
            return None
        return self._kept_token(_hash_in(authorization))

    def knew(self, authorization: str | None) -> bool:
        """Whether the token was good at its last look-up and is still kept. It may have ended since."""
        match = _HEADER.fullmatch(authorization or "")
        return match is not None and _hash(match[1]) in self._kept

    def _kept_token(self, digest: bytes) -> Token | None:
        kept = self._kept.get(digest)
        if kept is None:
            return None
        token, began, epoch = kept
        age = self._clock() - began
        if age >= KEPT_SECONDS_MAX or epoch != self._database.epoch.number:
            return None
        if token.expires_at is not None and not self._is_good(token):
            return None
        if age >= RENEWED_SECONDS:
            self._being_looked_up(digest)
        return token

    def _is_good(self, token: Token) -> bool:
        return token.revoked_at is None and (token.expires_at is None or self._now() < token.expires_at)

    async def _looked_up(self, digest: bytes) -> Token | None:
        """The result of a look-up. A caller that is cancelled does not end it."""
        return await asyncio.shield(self._being_looked_up(digest))

    def _being_looked_up(self, digest: bytes) -> asyncio.Task[Token | None]:
        """The pending look-up, or a new one: all requests that come meanwhile share it."""
        return self._looking_up.begun(digest, lambda: self._look_up(digest, self._clock()))

    async def _look_up(self, digest: bytes, began: float) -> Token | None:
        with unavailable():  # The time limit is for requests that join late: their answer is no older than a kept one.
            async with asyncio.timeout(KEPT_SECONDS_MAX), self._lookups, self._database.connection() as connection:
                epoch = self._database.epoch.number
                row = await connection.fetchrow(_BY_HASH, digest)
        token = None if row is None else _token(row)
        self._kept.pop(digest, None)  # so that the dict stays in the order of answers
        if token is not None and self._is_good(token):
            self._kept[digest] = (token, began, epoch)
            if len(self._kept) > TOKENS_KEPT_MAX:
                del self._kept[next(iter(self._kept))]
        return token
