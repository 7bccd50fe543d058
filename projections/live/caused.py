"""The points that a competition has caused: read from the log, then kept current.

A voiding must know all of them at the sequence that it is judged at. No state keeps them, because few competitions are
ever voided, so they are looked up in the log. From then on, the live passes on each event that it folds, for as long as
the voiding may still be judged, even if its client has disconnected.
"""

from abc import ABC, abstractmethod

from engine.domain.counting import Caused
from engine.domain.events import Points, Recorded
from engine.domain.terms import CompetitionId
from engine.process.time_slices import TimeSlice
from projections.live.pool import LivePool
from projections.live.tournament import LiveTournament


class PointsFollower(ABC):
    """Takes the points that a competition has caused up to the live's head, and later ones until `close`."""

    def __init__(self, live: LiveTournament, competition_id: CompetitionId) -> None:
        self.competition_id = competition_id
        self._live = live
        self._since: list[Recorded] | None = []  # folded by the live while the past is read; None: it has been read
        live.followers.append(self._follow)

    @property
    def is_read(self) -> bool:
        """Whether `look_up` has ended."""
        return self._since is None

    async def look_up(self, live_pool: LivePool) -> None:
        """Reads the past. Raises TournamentStopped, HistoryReplaced and DatabaseUnavailable."""
        time_slice = TimeSlice()
        async for recorded in live_pool.points_of(self._live, self.competition_id):
            self._look_at(recorded)
            if time_slice.over:
                await time_slice.give_way()
        self._look_at_since()

    def close(self) -> None:
        """Stops following. Idempotent."""
        if self._follow in self._live.followers:
            self._live.followers.remove(self._follow)

    def _follow(self, recorded: Recorded) -> None:
        if self._since is None:
            self._look_at(recorded)
        else:
            self._since.append(recorded)

    def _look_at_since(self) -> None:
        since, self._since = self._since or [], None
        for recorded in since:
            self._look_at(recorded)

    def _look_at(self, recorded: Recorded) -> None:
        event = recorded.event
        if isinstance(event, Points) and event.competition_id == self.competition_id:
            self._take(recorded, event)

    @abstractmethod
    def _take(self, recorded: Recorded, points: Points) -> None: ...


class CausedPointsFollower(PointsFollower):
    """Keeps these points, for a voiding or a striking."""

    def __init__(self, live: LiveTournament, competition_id: CompetitionId) -> None:
        super().__init__(live, competition_id)
        self._caused = Caused()

    @property
    def caused(self) -> Caused:
        """The points up to the live's head. Call `look_up` first."""
        assert self.is_read
        return self._caused

    def _take(self, recorded: Recorded, points: Points) -> None:
        self._caused.take(recorded)
