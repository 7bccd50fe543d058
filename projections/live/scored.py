"""What scorings have given: read from the log for a result that is corrected, or for all results of a ranking.

No state keeps it, because few results are ever corrected.
"""

from engine.domain.counting import LacksResults
from engine.domain.events import (
    CompetitionChanged,
    Event,
    Points,
    PointsAdded,
    PointsReversed,
    PointsScored,
    Recorded,
)
from engine.domain.rescoring import ChangingScores, GivenLines, changed_ranking, scored_again
from engine.domain.terms import CompetitionId, RankingId
from engine.log.codec import Topic
from engine.process.time_slices import TimeSlice, in_time_slices
from projections.live.caused import take_caused
from projections.live.given_results import read_results
from projections.live.kept import Update, unfollowed
from projections.live.pool import LivePool
from projections.live.tournament import LiveTournament
from projections.live.tries import Tries


async def read_given(live_pool: LivePool, live: LiveTournament, competition_id: CompetitionId) -> GivenLines:
    """What scorings have given for a competition up to the live's head. Raises the errors of `LivePool.points_of`."""
    given = GivenLines()
    await take_caused(live_pool, live, competition_id, given.take)
    return given


def update_of_given(competition_id: CompetitionId, recorded: Recorded) -> Update[GivenLines] | None:
    """How an event updates what `read_given` returned."""
    event = recorded.event
    is_about_it = isinstance(event, PointsScored | PointsReversed) and event.competition_id == competition_id
    return (lambda given: given.take(recorded)) if is_about_it else None


async def read_scored_again(
    live_pool: LivePool,
    live: LiveTournament,
    changed: ChangingScores,
) -> tuple[Event, ...]:
    """What all results of the ranking give differently after the event. Computed with pauses for other work. Raises
    Unacceptable, the errors of `LivePool.with_topic`, and Overtaken."""
    given, ranking_id, time_slice = GivenLines(), changed.ranking_id, TimeSlice()
    for topic in (Topic.SCORED, Topic.REVERSED):
        async for events in live_pool.with_topic(live, topic):
            for recorded in events:
                if isinstance(recorded.event, Points) and recorded.event.ranking_id == ranking_id:
                    given.take(recorded)
                if time_slice.over:
                    await time_slice.give_way()
    ranking, tries = changed_ranking(live.board, changed), Tries()
    while True:
        try:
            steps = scored_again(live.board, ranking_id, ranking, given, live.results, live.expired_by)
            return await in_time_slices(steps)
        except LacksResults as lack:
            await read_results(live_pool, live, lack.ranking_ids)
            tries.again()


def update_of_scored_again(ranking_id: RankingId, recorded: Recorded) -> Update[tuple[Event, ...]] | None:
    """How an event updates what `read_scored_again` returned: those that change results, or the ranking, may change
    it."""
    event = recorded.event
    if isinstance(event, Points):
        is_its = event.ranking_id == ranking_id and (type(event) is not PointsAdded or bool(event.results))
        return unfollowed if is_its else None
    is_concerned = event.structural or event.made_competition is not None or isinstance(event, CompetitionChanged)
    return unfollowed if is_concerned else None
