"""Tournaments to test with."""

from itertools import count

from engine.database.pool import Database
from engine.domain.terms import ActorId, TournamentId
from engine.log import registry

_numbers = count(1_000_001)
"""Ids of tournaments to test with. They are not random, so that a test that failed fails in the same way again, and so
large that no other id that a test meets is one of them."""


async def open_new_tournament(
    database: Database, *, actor: ActorId, tournament_id: TournamentId | None = None
) -> TournamentId:
    """Opens a tournament whose slug nobody else has, and whose id nobody else has unless it is given."""
    number = next(_numbers)
    tournament_id = TournamentId(number) if tournament_id is None else tournament_id
    async with database.connection() as connection:
        name, slug = f"Tournament {number}", f"tournament-{number}"
        assert await registry.open_tournament(connection, tournament_id, name=name, slug=slug, actor=actor)
    return tournament_id
