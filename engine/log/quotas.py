"""Quotas: bounds on what tournaments hold. The only SQL on the table `quota`.

Functions take a connection and do not translate driver errors.
"""

from typing import Any, Final

from asyncpg import Connection
from msgspec import Struct

from engine.domain.terms import TournamentId

BOUND_MAX: Final = 10**15

_QUOTAS: Final = "SELECT tournament_id, events, competitors, bytes FROM quota ORDER BY tournament_id"
_QUOTA: Final = "SELECT events, competitors, bytes FROM quota WHERE tournament_id = $1"
_SET: Final = """
    INSERT INTO quota (tournament_id, events, competitors, bytes)
    VALUES ($1, $2, $3, $4)
    ON CONFLICT (tournament_id) DO UPDATE
    SET events = excluded.events, competitors = excluded.competitors, bytes = excluded.bytes
"""
_REMOVE: Final = "DELETE FROM quota WHERE tournament_id = $1"


class Quota(Struct, frozen=True):
    """The most events, competitors and stored bytes of a log. None: they are not bounded."""

    events: int | None = None
    competitors: int | None = None
    bytes: int | None = None

    def bounds(self) -> list[tuple[str, int]]:
        """What is bounded, and to how much."""
        pairs = ((name, getattr(self, name)) for name in self.__struct_fields__)
        return [(name, bound) for name, bound in pairs if bound is not None]


async def quotas(connection: Connection) -> dict[TournamentId, Quota]:
    """All quotas."""
    return {row[0]: Quota(*row[1:]) for row in map(tuple, await connection.fetch(_QUOTAS))}


async def quota_of(connection: Connection, tournament_id: TournamentId) -> Quota | None:
    row: Any = await connection.fetchrow(_QUOTA, tournament_id)
    return None if row is None else Quota(*row)


async def set_quota(connection: Connection, tournament_id: TournamentId, quota: Quota) -> None:
    """Sets the quota, or removes it if nothing is bounded."""
    if quota.bounds():
        await connection.execute(_SET, tournament_id, quota.events, quota.competitors, quota.bytes)
    else:
        await connection.execute(_REMOVE, tournament_id)
