"""The points of a ranking in the order in which they took place, for clients that fold them.

Pure. A step is a moment of the world's clock at which something took place (`world_clock.py`). What was voided, undone,
or taken back altogether, is in none.
"""

from collections.abc import Generator, Iterable
from datetime import datetime

from msgspec import Struct

from engine.domain.events import Points, PointsReversed, Recorded, root
from engine.domain.terms import CompetitionId, CompetitorId, RankingId, Sequence, UnityId
from projections.board.board import Board
from projections.past.world_clock import declared_date


class TimelineStep(Struct, frozen=True):
    """What took place at `at`: deltas by competitor and unity, and the competitions that gave them. `recorded_at`: when
    the last of it was recorded."""

    at: datetime
    recorded_at: datetime
    deltas: dict[tuple[CompetitorId, UnityId], int]
    competitions: list[CompetitionId]


class Timeline:
    """Use `follow` for all events of the log up to the one that `board` shows; `steps` are the result. `deltas`: how
    many were followed."""

    def __init__(self, board: Board, ranking_id: RankingId) -> None:
        self.deltas = 0
        self._board = board
        self._ranking_id = ranking_id
        self._steps: dict[datetime, TimelineStep] = {}
        self._recorded: dict[Sequence, datetime] = {}  # undated points

    def follow(self, events: Iterable[Recorded]) -> Generator[None, None, None]:
        """Takes the next events, with pauses for other work."""
        for recorded in events:
            event = recorded.event
            if isinstance(event, Points) and event.ranking_id == self._ranking_id:
                self.deltas += len(event.deltas)
                undone = self._board.rankings[self._ranking_id].undone
                if event.competition_id not in self._board.voided and root(recorded.sequence, event) not in undone:
                    self._take(recorded, event)
            yield

    @property
    def steps(self) -> list[TimelineStep]:
        """In order of time."""
        return [one for _, one in sorted(self._steps.items()) if one.competitions or any(one.deltas.values())]

    def _take(self, recorded: Recorded, event: Points) -> None:
        at = declared_date(self._board, event)
        if at is None:
            if not isinstance(event, PointsReversed):
                self._recorded[recorded.sequence] = recorded.recorded_at
            at = self._recorded.get(event.reverses if isinstance(event, PointsReversed) else recorded.sequence)
        if at is None:  # what it reverses was set aside
            return
        before = self._steps.get(at)
        deltas = {} if before is None else before.deltas
        for delta in event.deltas:
            named = delta.competitor_id, delta.unity_id
            deltas[named] = deltas.get(named, 0) + delta.amount
        competitions = [] if before is None else before.competitions
        if event.competition_id is not None and event.competition_id not in competitions:
            competitions.append(event.competition_id)
        self._steps[at] = TimelineStep(at, recorded.recorded_at, deltas, competitions)
