"""What scorings give differently after a command: read from the log, and computed.

No state keeps what they have given, because few results are ever corrected.
"""

from collections.abc import Sequence as Items
from contextlib import suppress

from engine.domain.counting import LacksResults
from engine.domain.errors import Refusal
from engine.domain.events import Event
from engine.domain.rescoring import GivenLines, Rescoring
from engine.process.time_slices import TimeSlice, in_time_slices
from projections.live.caused import take_caused
from projections.live.given_results import read_results
from projections.live.pool import LivePool
from projections.live.tournament import LiveTournament
from projections.live.tries import Tries


async def read_rescoring(live_pool: LivePool, live: LiveTournament, decided: Items[Event]) -> Rescoring:
    """The rescoring after these events, which are not recorded yet, computed with pauses for other work. Raises the
    errors of `LivePool.points_of`, and Overtaken."""
    given, tries, time_slice = GivenLines(), Tries(), TimeSlice()
    rescoring = Rescoring(live.board, decided, given, live.expired_by)
    if "competition" in decided[0].touches:
        for event in decided:
            if "competition" in event.touches and not event.creates:
                await take_caused(live_pool, live, getattr(event, "competition_id"), given.take)  # noqa: B009 - no type says it
    else:
        async for events in live_pool.all_scored(live, await in_time_slices(rescoring.competitions())):
            for recorded in events:
                given.take(recorded)
                if time_slice.over:
                    await time_slice.give_way()
    while True:
        try:
            with suppress(Refusal):  # it is raised again where the command is judged
                await in_time_slices(rescoring.events(live.results))
            return rescoring
        except LacksResults as lack:
            await read_results(live_pool, live, lack.ranking_ids)
            tries.again()
