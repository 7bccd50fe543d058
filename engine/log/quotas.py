"""Quotas: bounds on the log of a tournament, or on the events of a token. The only SQL on the tables `quota` and
`quota_use`.

Use is counted from the log. `quota_use` keeps the counts and the event that they reach, so that only later events must
be read. For a tournament, all events count; for a token, those that it has written in a tournament since its first
change there under a quota. Removing a token's quota removes its counts.

Functions take a connection and do not translate driver errors.
"""

from typing import Any, Final

from asyncpg import Connection
from msgspec import Struct

from engine.domain.terms import ActorId, Sequence, TournamentId

ALL_TOKENS: Final = ActorId(0)
"""In place of a token: everything in the tournament counts."""
ALL_TOURNAMENTS: Final = TournamentId(0)
"""In place of a tournament, for the quota of a token: it covers all of them together."""
BOUND_MAX: Final = 10**15
COUNTED_AT_ONCE: Final = 100_000
"""Events that one statement counts."""
SAVED_EVERY: Final = 1_000
"""A count is saved that found as many."""
BEGINNING: Final = Sequence(0)
END: Final = Sequence(2**63 - 1)

_QUOTAS: Final = (
    "SELECT tournament_id, token_id, events, competitors, bytes FROM quota ORDER BY tournament_id, token_id"
)
_QUOTA: Final = "SELECT events, competitors, bytes FROM quota WHERE tournament_id = $1 AND token_id = $2"
_SET: Final = """
    INSERT INTO quota (tournament_id, token_id, events, competitors, bytes)
    VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (tournament_id, token_id) DO UPDATE
    SET events = excluded.events, competitors = excluded.competitors, bytes = excluded.bytes
"""
_REMOVE: Final = "DELETE FROM quota WHERE tournament_id = $1 AND token_id = $2"
_FORGET: Final = "DELETE FROM quota_use WHERE token_id = $1"
_BEGIN: Final = """
    INSERT INTO quota_use (tournament_id, token_id, sequence, events, competitors, bytes)
    VALUES ($1, $2, $3, 0, 0, 0)
    ON CONFLICT (tournament_id, token_id) DO NOTHING
"""
_COUNTED: Final = """
    SELECT sequence, events, competitors, bytes
    FROM quota_use
    WHERE tournament_id = $1 AND token_id = $2
"""
_SAVED: Final = """
    SELECT tournament_id, sequence, events, competitors, bytes
    FROM quota_use
    WHERE token_id = $1
    ORDER BY tournament_id
"""
_COUNT: Final = """
    SELECT
        count(*) AS seen,
        max(sequence) AS sequence,
        count(*) FILTER (WHERE counts) AS events,
        count(*) FILTER (WHERE counts AND kind = 'CompetitorRegistered') AS competitors,
        coalesce(sum(bytes) FILTER (WHERE counts), 0)::bigint AS bytes
    FROM (
        SELECT
            sequence,
            kind,
            octet_length(body) + coalesce(octet_length(personal), 0) AS bytes,
            $4::bigint IN (0, actor) AS counts
        FROM event
        WHERE tournament_id = $1 AND sequence > $2 AND sequence <= $3
        ORDER BY sequence
        LIMIT $5
    ) AS later
"""
_SAVE: Final = """
    UPDATE quota_use
    SET sequence = $3, events = $4, competitors = $5, bytes = $6
    WHERE tournament_id = $1 AND token_id = $2 AND sequence < $3
"""


class Amounts(Struct, frozen=True):
    """Events, the competitors that they register, and their stored bytes."""

    events: int = 0
    competitors: int = 0
    bytes: int = 0

    def __add__(self, other: "Amounts") -> "Amounts":
        return Amounts(self.events + other.events, self.competitors + other.competitors, self.bytes + other.bytes)

    def __sub__(self, other: "Amounts") -> "Amounts":
        return Amounts(self.events - other.events, self.competitors - other.competitors, self.bytes - other.bytes)


class Quota(Struct, frozen=True):
    """The bounds. None: there is none."""

    events: int | None = None
    competitors: int | None = None
    bytes: int | None = None

    def bounds(self) -> list[tuple[str, int]]:
        """What is bounded, and to how much."""
        pairs = ((name, getattr(self, name)) for name in self.__struct_fields__)
        return [(name, bound) for name, bound in pairs if bound is not None]


QuotaKey = tuple[TournamentId, ActorId]
"""Whose quota: of a tournament and ALL_TOKENS, or of ALL_TOURNAMENTS and a token."""


async def quotas(connection: Connection) -> dict[QuotaKey, Quota]:
    """All quotas."""
    return {(row[0], row[1]): Quota(*row[2:]) for row in map(tuple, await connection.fetch(_QUOTAS))}


async def quota_of(connection: Connection, key: QuotaKey) -> Quota | None:
    row: Any = await connection.fetchrow(_QUOTA, *key)
    return None if row is None else Quota(*row)


async def set_quota(connection: Connection, key: QuotaKey, quota: Quota) -> None:
    """Sets the quota, or removes it if nothing is bounded."""
    if quota.bounds():
        await connection.execute(_SET, *key, quota.events, quota.competitors, quota.bytes)
        return
    await connection.execute(_REMOVE, *key)
    if key[1] != ALL_TOKENS:
        await connection.execute(_FORGET, key[1])


async def begin(connection: Connection, tournament_id: TournamentId, token_id: ActorId, at: Sequence) -> None:
    """Starts counting at the events after `at`, unless counting has already begun."""
    await connection.execute(_BEGIN, tournament_id, token_id, at)


class CountedUse(Struct, frozen=True):
    """The amounts up to and including an event. `whole`: no later ones need be counted."""

    sequence: Sequence
    amounts: Amounts
    whole: bool = False


async def saved(connection: Connection, tournament_id: TournamentId, token_id: ActorId) -> CountedUse:
    """What was counted before of the token, or of ALL_TOKENS, in the tournament."""
    sequence, *amounts = await connection.fetchrow(_COUNTED, tournament_id, token_id) or (0, 0, 0, 0)
    return CountedUse(Sequence(sequence), Amounts(*amounts))


async def saved_everywhere(connection: Connection, token_id: ActorId) -> dict[TournamentId, CountedUse]:
    """As `saved`, for each tournament in which events of the token are counted."""
    rows = map(tuple, await connection.fetch(_SAVED, token_id))
    return {row[0]: CountedUse(Sequence(row[1]), Amounts(*row[2:])) for row in rows}


async def counted_on(
    connection: Connection, tournament_id: TournamentId, token_id: ActorId, before: CountedUse, to: Sequence = END
) -> CountedUse:
    """Counts up to COUNTED_AT_ONCE events after those `before`, up to the event `to`."""
    seen, last, *later = await connection.fetchrow(
        _COUNT, tournament_id, before.sequence, to, token_id, COUNTED_AT_ONCE
    )
    if not seen:
        return CountedUse(before.sequence, before.amounts, whole=True)
    amounts = before.amounts + Amounts(*later)
    if last - before.sequence >= SAVED_EVERY:
        of = amounts.events, amounts.competitors, amounts.bytes
        await connection.execute(_SAVE, tournament_id, token_id, last, *of)
    return CountedUse(Sequence(last), amounts, whole=seen < COUNTED_AT_ONCE)
