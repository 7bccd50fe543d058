"""The race of a unity: positions and totals of some competitors through time."""

from typing import Final

from msgspec import Struct

from engine.domain.errors import Unacceptable
from engine.domain.notation import Notation
from engine.domain.terms import RankingId, Sequence, UnityId
from projections.answers.lookup import unity_of
from projections.answers.names import NamesById
from projections.answers.series import SeriesQuestion, UnitySeries
from projections.answers.view import Question, View
from projections.board.board import Ranking

SERIES_EVENTS_MAX: Final = 200_000
"""Events of a log that a race is drawn from; the log is read from the beginning."""
SERIES_COMPETITORS_MAX: Final = 500
"""Competitors of a ranking up to which its race is drawn."""
RACERS_MAX: Final = 40
"""Competitors that one race shows: the first ones at its end."""


class Race(Struct, frozen=True, kw_only=True):
    """`names`: those of its competitors."""

    unity_id: UnityId
    name: str
    notation: Notation
    names: NamesById
    series: UnitySeries


class RaceQuestion(Question[Race], frozen=True, kw_only=True):
    """The race of a unity up to now. None: the first ranking, its main unity. Raises NotFound and Unacceptable."""

    ranking_id: RankingId | None = None
    unity_id: UnityId | None = None

    async def answered(self, view: View) -> Race:
        live, board = view.live, view.live.board
        ranking_id = view.ranking_in(board, self.ranking_id)
        unity_id, end = unity_of(board, ranking_id, self.unity_id), live.head.sequence
        unity = board.rankings[ranking_id].unities[unity_id]
        if not is_raced(board.rankings[ranking_id], end):
            raise Unacceptable(
                f"A race is drawn of at most {SERIES_COMPETITORS_MAX} competitors and {SERIES_EVENTS_MAX:,} events."
            )
        order = await live.orders.of(ranking_id, unity_id)
        first = tuple([one.competitor_id for one in order.standings(0, RACERS_MAX)])
        series = SeriesQuestion(ranking_id=ranking_id, unity_id=unity_id, competitors=first)
        return Race(
            unity_id=unity_id,
            name=unity.name,
            notation=unity.notation,
            names=view.names,
            series=await series.answered(view),
        )


def is_raced(ranking: Ranking, end: Sequence) -> bool:
    """Whether the race of a ranking can be drawn, in a log that ends with this event."""
    return len(ranking.participants) <= SERIES_COMPETITORS_MAX and end <= SERIES_EVENTS_MAX
