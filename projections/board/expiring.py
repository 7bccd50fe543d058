"""The lines that count in the unities of a ranking whose points expire: not undone, voided or struck, and not expired.

Pure. Totals are folds of events, including expiry. This file finds the same from the points and their age only.
"""

from collections.abc import Collection, Generator, Iterator
from datetime import datetime
from typing import Final

from engine.domain.counting import now_of, took_place_at
from engine.domain.events import Delta, PointsAdded, Recorded
from engine.domain.expiry import Expiry
from engine.domain.terms import CompetitionId, RankingId, UnityId
from projections.board.board import Board, Ranking

_STEP_COMPETITIONS: Final = 100


def expiries_of(ranking: Ranking) -> dict[UnityId, Expiry]:
    """The unities of the ranking whose points expire."""
    unities = ranking.unities
    return {one: expiry for one in ranking.special if (expiry := unities[one].expiry) is not None}


def expiring_lines(board: Board, ranking: Ranking, recorded: Recorded) -> Iterator[tuple[Delta, datetime, datetime]]:
    """The deltas and results of an event in unities whose points expire, if they count on the board apart from their
    age. Each comes with the time when it took place and the time when it expires."""
    event = recorded.event
    if (
        not isinstance(event, PointsAdded)
        or recorded.sequence in ranking.undone
        or event.competition_id in board.voided
    ):
        return
    expiries = expiries_of(ranking)
    struck: Collection[int] = () if event.competition_id is None else board.struck.get(event.competition_id, ())
    took_place = took_place_at(board, recorded.recorded_at, event.competition_id)
    for line in (*event.deltas, *event.results):
        expiry = expiries.get(line.unity_id)
        if expiry is not None and line.competitor_id not in struck:
            yield line, took_place, expiry.expires_at(took_place)


def expiring_points(board: Board, recorded: Recorded, ranking_ids: Collection[RankingId]) -> PointsAdded | None:
    """The points of an event that may expire in one of these rankings."""
    event = recorded.event
    if not isinstance(event, PointsAdded) or event.ranking_id not in ranking_ids:
        return None
    return event if board.rankings[event.ranking_id].special else None


def expiring_intervals(
    board: Board, began: datetime, until: datetime, ranking_ids: Collection[RankingId]
) -> list[tuple[datetime, datetime]]:
    """The intervals in which the points took place that expire in these rankings after `began`, and by `until`: later
    than the first time, not later than the second. They do not overlap."""
    found = set()
    for ranking_id, expiry in board.expiries.values():
        if ranking_id in ranking_ids:
            over = expiry.over_up_to(now_of(board.rankings[ranking_id], began))
            found.add((over, expiry.over_up_to(until)))
    apart: list[tuple[datetime, datetime]] = []
    for after, by in sorted(one for one in found if one[0] < one[1]):
        if apart and after < apart[-1][1]:
            apart[-1] = apart[-1][0], max(by, apart[-1][1])
        else:
            apart.append((after, by))
    return apart


def dated_between(board: Board, after: datetime, until: datetime) -> Generator[None, None, list[CompetitionId]]:
    """The competitions with a declared date later than `after` and not later than `until`. Pauses for other work."""
    found: list[CompetitionId] = []
    for first in range(1, len(board.competitions) + 1, _STEP_COMPETITIONS):
        run = board.competitions.run(first, first + _STEP_COMPETITIONS - 1)
        found += [competition_id for competition_id, one in run if one.date is not None and after < one.date <= until]
        yield
    return found
