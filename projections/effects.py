"""What a competition has caused: its points that nothing has reversed, followed from the log into the live.

Voiding must know every one of them at the very sequence that it is judged at. No state keeps them, because hardly any
competition is ever voided: they are looked up in the log, and while that goes on, and until the voiding has been
judged, the live tells of those that come.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from engine.commands import Effects
from engine.events import Points, PointsReversed, Recorded
from engine.terms import CompetitionId, Sequence
from projections.live import Live
from projections.lives import Lives


@asynccontextmanager
async def following(lives: Lives, live: Live, competition_id: CompetitionId) -> AsyncIterator[Effects]:
    """The effects of the competition at the live's head, wherever that moves, for as long as the context lasts.

    Raises TournamentStopped, HistoryReplaced and DatabaseUnavailable.
    """
    effects: dict[Sequence, Points] = {}
    since: list[Recorded] = []  # folded by the live while its past is read
    looked_up = False

    def follow(recorded: Recorded) -> None:
        if looked_up:
            _take(effects, competition_id, recorded)
        else:
            since.append(recorded)

    live.followers.append(follow)
    try:
        async for recorded in lives.points_of(live, competition_id):
            _take(effects, competition_id, recorded)
        for recorded in since:
            _take(effects, competition_id, recorded)
        looked_up = True
        since.clear()
        yield effects
    finally:
        live.followers.remove(follow)


def _take(effects: dict[Sequence, Points], competition_id: CompetitionId, recorded: Recorded) -> None:
    event = recorded.event
    if isinstance(event, Points) and event.competition_id == competition_id:
        if isinstance(event, PointsReversed):
            del effects[event.reverses]
        effects[recorded.sequence] = event
