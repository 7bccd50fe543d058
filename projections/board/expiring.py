"""Where the points are that expire in a time: the intervals in which they took place, and the competitions dated then.

Pure.
"""

from collections.abc import Collection, Iterable
from datetime import datetime

from engine.domain.lines import rule_of
from engine.domain.terms import CompetitionId, RankingId
from projections.board.board import Board, Competition


def expiring_intervals(
    board: Board, began: datetime, until: datetime, ranking_ids: Collection[RankingId]
) -> list[tuple[datetime, datetime]]:
    """The intervals in which the points took place that expire in these rankings after `began`, and by `until`: later
    than the first time, not later than the second. They do not overlap."""
    found = set()
    for ranking_id, expiry in board.expiries.values():
        if ranking_id in ranking_ids:
            over = expiry.over_up_to(rule_of(board, ranking_id).by(began))
            found.add((over, expiry.over_up_to(until)))
    apart: list[tuple[datetime, datetime]] = []
    for after, by in sorted(one for one in found if one[0] < one[1]):
        if apart and after < apart[-1][1]:
            apart[-1] = apart[-1][0], max(by, apart[-1][1])
        else:
            apart.append((after, by))
    return apart


def dated_between(
    competitions: Iterable[tuple[CompetitionId, Competition]], after: datetime, until: datetime
) -> list[CompetitionId]:
    """Those of the competitions with a declared date later than `after` and not later than `until`."""
    return [
        competition_id for competition_id, one in competitions if one.date is not None and after < one.date <= until
    ]
