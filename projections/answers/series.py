"""The series of a unity: positions and totals of some competitors through time."""

from collections.abc import Callable, Iterator
from collections.abc import Sequence as Items
from datetime import datetime

from msgspec import Struct

from engine.domain.notation import Notation
from engine.domain.steps import collected
from engine.domain.terms import CompetitorId, RankingId, Sequence, UnityId
from engine.process.time_slices import in_time_slices
from projections.answers.view import Question, View
from projections.past import folds
from projections.past.series import SeriesPoint


class SeriesMoment(Struct, frozen=True):
    """The moment after the event `sequence`. `at`: when the competition that caused it began; without one, when the
    event was recorded."""

    sequence: Sequence
    at: datetime


class SeriesLine(Struct, frozen=True):
    """A competitor's positions and totals, one for each moment. No position: they were not in the list. No total: they
    had no result either."""

    competitor_id: CompetitorId
    positions: list[int | None]
    totals: list[int | None]


class UnitySeries(Struct, frozen=True):
    """`lines`: those of the last moment, in its order. There is no moment if nobody has points. `by_date`: the moments
    are in order of time."""

    moments: list[SeriesMoment]
    lines: list[SeriesLine]
    by_date: bool


class SeriesQuestion(Question[UnitySeries], frozen=True, kw_only=True):
    """The series of these competitors up to now: in order of time, or if nothing has a date, or too much has, in the
    order of the log. `advance` is called with each event that is reached when the log is read."""

    ranking_id: RankingId
    unity_id: UnityId
    competitors: tuple[CompetitorId, ...]
    advance: Callable[[Sequence], object] = lambda _reached: None

    async def answered(self, view: View) -> UnitySeries:
        live = view.live
        asked = live.tournament_id, self.ranking_id, self.unity_id, live.head.sequence, self.competitors
        by_date = await folds.series_by_date(view.past, *asked)
        points = by_date or []
        if by_date is None:
            async for reached, series in folds.series(view.past, *asked):
                points = series.points if reached == live.head.sequence else []
                self.advance(reached)
        moments = [SeriesMoment(point.sequence, point.at) for point in points]
        notation = live.board.rankings[self.ranking_id].unities[self.unity_id].notation
        return UnitySeries(moments, await in_time_slices(collected(_lines(points, notation))), by_date is not None)


def _lines(points: Items[SeriesPoint], notation: Notation) -> Iterator[SeriesLine]:
    for competitor_id in points[-1].lines if points else ():
        places = [point.lines.get(competitor_id) for point in points]
        positions = [None if one is None else one.position for one in places]
        totals = [None if one is None else notation.shown(one.total) for one in places]
        yield SeriesLine(competitor_id, positions, totals)
