"""Tournaments to test with."""

from itertools import count
from typing import Final

from engine.database.pool import Database
from engine.domain.terms import ActorId, TournamentId
from engine.log import log

COUNT_FROM_ONE: Final = "SELECT setval('tallybook.resource_id', 1, false)"
"""A new database begins to count at a random number, and a test that failed should fail in the same way again."""
_numbers = count(1)


async def open_new_tournament(database: Database, *, actor: ActorId) -> TournamentId:
    """Opens a tournament whose slug nobody else has."""
    number = next(_numbers)
    async with database.connection() as connection:
        (tournament_id,) = await log.next_ids(connection, 1)
        assert await log.open_tournament(
            connection,
            TournamentId(tournament_id),
            name=f"Tournament {number}",
            slug=f"tournament-{number}",
            actor=actor,
        )
    return TournamentId(tournament_id)
