"""The world's clock: the points that had taken place by a time, whenever they were recorded.

Pure. A competition takes place at its declared date. Without one, its points take place when they are recorded, as do
points without a competition. A reversal takes place with the points that it reverses, and the points of a corrected
result with its first ones. So a table on a date has the
points recorded by then, minus those dated later, plus those recorded later but dated by then.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime

from msgspec import Struct

from engine.domain.events import Points, Recorded, origin
from engine.domain.lines import Rule, declared_date
from engine.domain.terms import RankingId, Sequence, UnityId
from projections.board.board import Board, Ranking, take_result
from projections.board.results import Last, is_last
from projections.columns.enrolment import Totals


class WorldClock(Struct, frozen=True):
    """The world's clock at the time `on`. `board`: has the dates of competitions. `last`: its last event recorded by
    `on`."""

    board: Board
    on: datetime
    last: Sequence

    def shows(self, sequence: Sequence, points: Points) -> bool:
        """Whether these points, recorded as the event `sequence`, had taken place."""
        date = declared_date(self.board, points.competition_id)
        if date is not None:
            return date <= self.on
        return origin(sequence, points) <= self.last

    def shown(self, events: Iterable[Recorded]) -> Iterator[Recorded]:
        """The events without the points that had not taken place."""
        return (one for one in events if not isinstance(one.event, Points) or self.shows(one.sequence, one.event))

    def undated(self, events: Iterable[Recorded]) -> list[Recorded]:
        """The events that added or reversed points without a declared date and had taken place."""
        return [
            one
            for one in self.shown(events)
            if isinstance(one.event, Points) and declared_date(self.board, one.event.competition_id) is None
        ]


def add_deltas(board: Board, ranking_id: RankingId, sign: int, recorded: Recorded) -> None:
    """Adds the deltas that an event has in the ranking, each multiplied by `sign`."""
    event = recorded.event
    if isinstance(event, Points) and event.ranking_id == ranking_id:
        unities = board.rankings[ranking_id].unities
        for delta in event.deltas:
            unities[delta.unity_id].totals.add(delta.competitor_id, sign * delta.amount)


def drop_totals(board: Board, ranking_id: RankingId, unity_ids: Iterable[UnityId]) -> None:
    """Empties the totals of these unities of the ranking."""
    ranking = board.rankings[ranking_id]
    for unity_id in unity_ids:
        ranking.unities[unity_id].totals = Totals(ranking.participants)


def add_special(
    ranking: Ranking, rule: Rule, last: Last, recorded: Recorded, now: datetime, clock: WorldClock | None = None
) -> None:
    """Adds the results and the expiring points that an event gave in the ranking, if they count by its rule, had not
    expired by `now`, and had taken place by the clock. Call it for all events of the log, in order, with the same
    `last`."""
    event = recorded.event
    if isinstance(event, Points) and (clock is None or clock.shows(recorded.sequence, event)):
        for line in rule.of(recorded, now):
            if line.is_result:
                counts = ranking.unities[line.delta.unity_id].counts
                if is_last(last, counts, origin(recorded.sequence, event), line.delta):
                    take_result(ranking, line.delta)
            elif line.expires_at is not None:
                ranking.unities[line.delta.unity_id].totals.add(line.delta.competitor_id, line.delta.amount)
