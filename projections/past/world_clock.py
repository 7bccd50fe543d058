"""The world's clock: what had taken place by a time, whenever it was recorded.

Pure. A competition takes place at its declared date. Without one, its points take place when they are recorded, as do
points without a competition. A reversal takes place with what it reverses. So the points of a table on a date are those
of the table recorded by then, without what was dated later, and with what was recorded later and dated by then.
"""

from collections.abc import Generator, Iterable, Iterator
from collections.abc import Sequence as Items
from datetime import datetime
from typing import Final

from msgspec import Struct

from engine.domain.events import Delta, Points, PointsAdded, Recorded, root
from engine.domain.judging import now_of
from engine.domain.terms import CompetitionId, RankingId, Sequence
from projections.board.board import Board, take_result
from projections.board.expiring import expiries_of, expiring_deltas
from projections.columns.enrolment import Totals

_STEP_COMPETITIONS: Final = 100
_STEP_TOTALS: Final = 500


def declared_date(board: Board, points: Points) -> datetime | None:
    """The date of the competition of points; None: none was declared, or there is no competition."""
    competition = None if points.competition_id is None else board.competitions.get(points.competition_id)
    return competition.started_at if competition is not None and competition.is_dated else None


class WorldClock(Struct, frozen=True):
    """The time `on`. `board` has the dates of competitions; `last`: the last of its events recorded by then."""

    board: Board
    on: datetime
    last: Sequence

    def shows(self, sequence: Sequence, points: Points) -> bool:
        """Whether these points, recorded as this event, had taken place."""
        date = declared_date(self.board, points)
        if date is not None:
            return date <= self.on
        return root(sequence, points) <= self.last

    def shown(self, events: Iterable[Recorded]) -> Iterator[Recorded]:
        """The events without the points that had not taken place."""
        return (one for one in events if not isinstance(one.event, Points) or self.shows(one.sequence, one.event))

    def undated(self, events: Iterable[Recorded]) -> list[Recorded]:
        """Those of the events that gave or reversed points without a date, and had taken place."""
        shown = self.shown(events)
        return [one for one in shown if isinstance(one.event, Points) and declared_date(self.board, one.event) is None]

    def dated(self) -> Generator[None, None, tuple[list[CompetitionId], list[CompetitionId]]]:
        """The competitions with a date: those by `on`, and those after it. With pauses for other work."""
        by_then: list[CompetitionId] = []
        later: list[CompetitionId] = []
        competitions = self.board.competitions
        for first in range(1, len(competitions) + 1, _STEP_COMPETITIONS):
            for competition_id, competition in competitions.run(first, first + _STEP_COMPETITIONS - 1):
                if competition.is_dated:
                    (by_then if competition.started_at <= self.on else later).append(competition_id)
            yield
        return by_then, later


def give_totals(board: Board, earlier: Board, ranking_id: RankingId) -> Generator[None, None, None]:
    """Replaces the totals of a ranking by those on an earlier board, with pauses for other work."""
    ranking, then = board.rankings[ranking_id], earlier.rankings.get(ranking_id)
    for unity_id, unity in ranking.unities.items():
        unity.totals = Totals(ranking.participants)
        before = None if then is None else then.unities.get(unity_id)
        for number, (competitor_id, total) in enumerate(() if before is None else before.totals.items(), start=1):
            unity.totals.add(competitor_id, total)
            if number % _STEP_TOTALS == 0:
                yield


def add_deltas(board: Board, ranking_id: RankingId, events: Iterable[Recorded], sign: int) -> Iterator[None]:
    """Adds the deltas of those of the events that gave points in the ranking, `sign` times each. Pauses for other
    work."""
    unities = board.rankings[ranking_id].unities
    for recorded in events:
        event = recorded.event
        if isinstance(event, Points) and event.ranking_id == ranking_id:
            for delta in event.deltas:
                unities[delta.unity_id].totals.add(delta.competitor_id, sign * delta.amount)
        yield


def drop_special(board: Board, ranking_id: RankingId) -> None:
    """Empties the totals of the ranking's unities that count results, or whose points expire."""
    ranking = board.rankings[ranking_id]
    for unity_id in ranking.special:
        ranking.unities[unity_id].totals = Totals(ranking.participants)


def add_special_shown(clock: WorldClock, ranking_id: RankingId, events: Iterable[Recorded]) -> Iterator[None]:
    """Adds the results that these events gave in the ranking, and the points that expire, of those that count on the
    clock's board, had taken place, and had not expired. Give it all events of the log, in order. Pauses for other
    work."""
    board = clock.board
    ranking = board.rankings[ranking_id]
    is_expiring = bool(expiries_of(ranking))
    for recorded in events:
        event = recorded.event
        if (
            isinstance(event, PointsAdded)
            and event.results
            and event.ranking_id == ranking_id
            and recorded.sequence not in ranking.undone
            and clock.shows(recorded.sequence, event)
        ):
            for delta in counting_results_of(board, event):
                take_result(ranking, delta)
        if not is_expiring or not isinstance(event, PointsAdded) or event.ranking_id != ranking_id:
            yield
            continue
        for delta, took_place, until in expiring_deltas(board, ranking, recorded):
            if took_place <= clock.on and until > now_of(ranking, clock.on):
                ranking.unities[delta.unity_id].totals.add(delta.competitor_id, delta.amount)
        yield


def counting_results_of(board: Board, event: PointsAdded) -> Items[Delta]:
    """The results of an event that count on the board unless they are undone."""
    if event.competition_id is None:
        return event.results
    if event.competition_id in board.voided:
        return ()
    struck = board.struck.get(event.competition_id, ())
    return [delta for delta in event.results if delta.competitor_id not in struck]
