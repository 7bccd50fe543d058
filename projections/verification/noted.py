"""The last result of continuous verification for each tournament, for operators. The only SQL on the table `verified`.

It proves nothing: anybody who can write to the database can write this, too. Proofs and findings stay with the
verifier.
"""

from collections.abc import Collection
from datetime import datetime
from typing import Final

from asyncpg import Connection
from msgspec import Struct

from engine.domain.terms import Sequence, TournamentId

_NOTE: Final = """
    INSERT INTO verified (tournament_id, sequence, differences, verified_at)
    VALUES ($1, $2, $3, now())
    ON CONFLICT (tournament_id) DO UPDATE
    SET sequence = excluded.sequence, differences = excluded.differences, verified_at = excluded.verified_at
"""
_NOTED: Final = """
    SELECT tournament_id, sequence, differences, verified_at
    FROM verified
    WHERE tournament_id = ANY($1::bigint[])
"""


class LastVerified(Struct, frozen=True):
    """Up to which event a tournament was verified last, how many differences were found, and when, in UTC."""

    sequence: Sequence
    differences: int
    verified_at: datetime


async def note_verified(
    connection: Connection, tournament_id: TournamentId, sequence: Sequence, differences: int
) -> None:
    """Notes that the tournament has just been verified up to this event."""
    await connection.execute(_NOTE, tournament_id, sequence, differences)


async def last_verified(
    connection: Connection, tournament_ids: Collection[TournamentId]
) -> dict[TournamentId, LastVerified]:
    """The last note of each tournament; those without one are left out."""
    rows = await connection.fetch(_NOTED, list(tournament_ids))
    return {row["tournament_id"]: LastVerified(row["sequence"], row["differences"], row["verified_at"]) for row in rows}
