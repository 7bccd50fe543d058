"""The race of a unity: positions and totals of some competitors through time."""

from collections.abc import Iterator
from collections.abc import Sequence as Items
from datetime import datetime
from typing import Final

from msgspec import Struct

from engine.domain.errors import Unacceptable
from engine.domain.notation import Notation
from engine.domain.terms import CompetitorId, RankingId, Sequence, UnityId
from engine.process.time_slices import all_of
from projections.answers.lookup import unity_of
from projections.answers.names import NamesById
from projections.answers.view import Question, View
from projections.board.board import Ranking
from projections.past import folds
from projections.past.series import SeriesPoint

SERIES_EVENTS_MAX: Final = 200_000
"""Events of a log that a race is drawn from; the log is read from the beginning."""
SERIES_COMPETITORS_MAX: Final = 500
"""Competitors of a ranking up to which its race is drawn."""
RACERS_MAX: Final = 40
"""Competitors that one race shows: the first ones at its end."""


class RaceMoment(Struct, frozen=True):
    """The moment after the event `sequence`. `at`: when the competition that caused it began; without one, when the
    event was recorded."""

    sequence: Sequence
    at: datetime


class RaceLine(Struct, frozen=True):
    """A competitor's positions and totals, one for each moment. Null: they were not in the list, or not placed, because
    nothing of theirs counted."""

    competitor_id: CompetitorId
    positions: list[int | None]
    totals: list[int | None]


class Race(Struct, frozen=True, kw_only=True):
    """`lines`: those of the last moment, in its order. There is no moment if nobody has points. `by_date`: the moments
    are in order of time. `names`: those of its competitors."""

    unity_id: UnityId
    name: str
    notation: Notation
    names: NamesById
    moments: list[RaceMoment]
    lines: list[RaceLine]
    by_date: bool


class RaceQuestion(Question[Race], frozen=True, kw_only=True):
    """The race of a unity up to now: in order of time, or if nothing has a date, or too much has, in the order of the
    log. None: the first ranking, its main unity. Raises NotFound and Unacceptable."""

    ranking_id: RankingId | None = None
    unity_id: UnityId | None = None

    async def answered(self, view: View) -> Race:
        live, board = view.live, view.live.board
        ranking_id = view.ranking_in(board, self.ranking_id)
        unity_id, end = unity_of(board, ranking_id, self.unity_id), live.head.sequence
        unity = board.rankings[ranking_id].unities[unity_id]
        if not is_raced(board.rankings[ranking_id], end):
            raise Unacceptable(
                f"A race can be drawn of at most {SERIES_COMPETITORS_MAX} competitors and {SERIES_EVENTS_MAX:,} events."
            )
        order = await live.orders.of(ranking_id, unity_id)
        first = [one.competitor_id for one in order.standings(0, RACERS_MAX)]
        asked = live.tournament_id, ranking_id, unity_id, live.head.sequence, first
        by_date = await folds.series_by_date(view.past, *asked)
        points = await folds.series(view.past, *asked) if by_date is None else by_date
        return Race(
            unity_id=unity_id,
            name=unity.name,
            notation=unity.notation,
            names=view.names,
            moments=[RaceMoment(point.sequence, point.at) for point in points],
            lines=await all_of(_lines(points, unity.notation)),
            by_date=by_date is not None,
        )


def is_raced(ranking: Ranking, end: Sequence) -> bool:
    """Whether the race of a ranking can be drawn, in a log that ends with this event."""
    return len(ranking.participants) <= SERIES_COMPETITORS_MAX and end <= SERIES_EVENTS_MAX


def _lines(points: Items[SeriesPoint], notation: Notation) -> Iterator[RaceLine]:
    for competitor_id in points[-1].lines if points else ():
        places = [point.lines.get(competitor_id) for point in points]
        totals = [None if one is None else notation.shown(one.total) for one in places]
        positions = [
            None if one is None or total is None else one.position for one, total in zip(places, totals, strict=True)
        ]
        yield RaceLine(competitor_id, positions, totals)
