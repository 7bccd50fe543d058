"""The points that a competition has caused.

A voiding must know all of them at the sequence that it is judged at. No state keeps them, because few competitions are
ever voided. So they are read from the log, and kept current for as long as the voiding may still be judged, even if its
client has disconnected.
"""

from collections.abc import Callable

from engine.domain.counting import Caused
from engine.domain.events import Points, Recorded
from engine.domain.terms import CompetitionId
from engine.process.time_slices import TimeSlice
from projections.live.kept import Update
from projections.live.pool import LivePool
from projections.live.tournament import LiveTournament


async def read_caused(live_pool: LivePool, live: LiveTournament, competition_id: CompetitionId) -> Caused:
    """Those up to the live's head. Raises the errors of `LivePool.points_of`."""
    caused = Caused()
    await take_caused(live_pool, live, competition_id, caused.take)
    return caused


async def take_caused(
    live_pool: LivePool, live: LiveTournament, competition_id: CompetitionId, take: Callable[[Recorded], object]
) -> None:
    """Calls `take` with each of the events up to the live's head that gave them. Raises as `read_caused`."""
    time_slice = TimeSlice()
    async for recorded in live_pool.points_of(live, competition_id):
        take(recorded)
        if time_slice.over:
            await time_slice.give_way()


def update_of_caused(competition_id: CompetitionId, recorded: Recorded) -> Update[Caused] | None:
    """How an event updates what `read_caused` returned."""
    event = recorded.event
    is_caused = isinstance(event, Points) and event.competition_id == competition_id
    return (lambda caused: caused.take(recorded)) if is_caused else None
