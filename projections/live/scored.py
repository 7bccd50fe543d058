"""What scorings give differently after a command: read from the log, and computed.

No state keeps what they have given, because few results are ever corrected.
"""

from collections.abc import Sequence as Items

from engine.domain.counting import LacksResults
from engine.domain.events import Event, Points, Recorded
from engine.domain.rescoring import GivenLines, rescored
from engine.domain.terms import CompetitionId
from engine.log.codec import Topic
from engine.process.time_slices import TimeSlice, in_time_slices
from projections.live.caused import take_caused
from projections.live.given_results import read_results
from projections.live.kept import Update, unfollowed
from projections.live.pool import LivePool
from projections.live.tournament import LiveTournament
from projections.live.tries import Tries


async def read_rescored(live_pool: LivePool, live: LiveTournament, decided: Items[Event]) -> tuple[Event, ...]:
    """What scorings give and take back after these events, which are not recorded yet, with pauses for other work.
    Raises as `rescored`, the errors of `LivePool.points_of`, and Overtaken."""
    given, tries, time_slice = GivenLines(), Tries(), TimeSlice()
    if "competition" in decided[0].touches:
        for event in decided:
            if "competition" in event.touches and not event.creates:
                await take_caused(live_pool, live, getattr(event, "competition_id"), given.take)  # noqa: B009 - no type says it
    else:
        for topic in (Topic.SCORED, Topic.REVERSED):
            async for events in live_pool.with_topic(live, topic):
                for recorded in events:
                    given.take(recorded)
                    if time_slice.over:
                        await time_slice.give_way()
    while True:
        try:
            return await in_time_slices(rescored(live.board, decided, given, live.results, live.expired_by))
        except LacksResults as lack:
            await read_results(live_pool, live, lack.ranking_ids)
            tries.again()


def update_of_rescored(competition_id: CompetitionId | None, recorded: Recorded) -> Update[tuple[Event, ...]] | None:
    """How an event updates what `read_rescored` returned. `competition_id`: that of its event."""
    event, its = recorded.event, getattr(recorded.event, "competition_id", None)
    if competition_id is not None and its not in (None, competition_id):  # others matter only where results count
        is_concerned = isinstance(event, Points) and bool(event.results or event.totals)
    elif isinstance(event, Points):
        is_concerned = event.scores or event.structural or bool(event.results)
    else:
        is_concerned = event.structural or "competition" in event.touches
    return unfollowed if is_concerned else None
