"""The series of a unity: the standings at as many moments as a race can show.

Pure. The series gets a point after each event that gave points in the unity. Beyond SERIES_POINTS_MAX, every second
point is dropped, and from then on only every second one is taken; this repeats each time the limit is reached. So the
length of the series is bounded for any log.
"""

from collections.abc import Sequence as Items
from datetime import datetime
from typing import Final

from msgspec import Struct

from engine.domain.events import Points, Recorded, changed_by
from engine.domain.terms import CompetitorId, RankingId, Sequence, UnityId
from projections.board.board import Board, Ranking, Unity
from projections.board.order import OrderedLines
from projections.board.standing import Standing

SERIES_POINTS_MAX: Final = 800


class SeriesPoint(Struct, frozen=True):
    """The standing after the event `sequence`. `at`: when the competition that caused it began; without a competition,
    when the event was recorded."""

    sequence: Sequence
    at: datetime
    lines: dict[CompetitorId, Standing]


class Series:
    """Use `follow` for each event of the log; `points` is the series so far. Its last point has the current list and
    totals, even if only the list has changed since the last points. `only`: the competitors whose lines are wanted."""

    def __init__(self, ranking_id: RankingId, unity_id: UnityId, only: Items[CompetitorId]) -> None:
        self._ranking_id = ranking_id
        self._unity_id = unity_id
        self._only = only
        self._kept: list[SeriesPoint] = []
        self._stride = 1
        self._since = 0  # points since the last one kept
        self._last: tuple[Board, Recorded] | None = None

    def follow(self, board: Board, recorded: Recorded) -> None:
        """Takes an event that `board` has folded already."""
        event = recorded.event
        if not isinstance(event, Points) or event.ranking_id != self._ranking_id:
            return
        if all(line.unity_id != self._unity_id for line in changed_by(event)):
            return
        self._since += 1
        self._last = board, recorded
        if self._since >= self._stride:
            self._kept.append(self._point(board, recorded))
            self._since = 0
        if len(self._kept) > SERIES_POINTS_MAX:
            self._kept = self._kept[::-2][::-1]
            self._stride *= 2

    @property
    def points(self) -> list[SeriesPoint]:
        if self._last is None:
            return []
        earlier = self._kept if self._since else self._kept[:-1]
        return [*earlier, self._point(*self._last)]

    def _point(self, board: Board, recorded: Recorded) -> SeriesPoint:
        event = recorded.event
        assert isinstance(event, Points)
        ranking = board.rankings[self._ranking_id]
        unity = ranking.unities[self._unity_id]
        competition = None if event.competition_id is None else board.competitions.get(event.competition_id)
        return SeriesPoint(
            sequence=recorded.sequence,
            at=recorded.recorded_at if competition is None else competition.started_at,
            lines={line.competitor_id: line for line in self._lines(ranking, unity)},
        )

    def _lines(self, ranking: Ranking, unity: Unity) -> list[Standing]:
        order = OrderedLines(ranking.participants, unity.totals, unity.sort)
        found = [line for one in self._only if (line := order.standing(one)) is not None]
        return sorted(found, key=lambda line: line.position)
