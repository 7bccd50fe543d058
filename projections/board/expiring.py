"""The lines that count in the unities of a ranking whose points expire: not undone, voided or struck, and not expired.

Pure. Totals are folds of events, including expiry. This file finds the same from the points and their age only.
"""

from collections.abc import Collection, Generator, Iterator
from datetime import datetime
from typing import Final

from engine.domain.counting import took_place_at
from engine.domain.events import Delta, PointsAdded, Recorded
from engine.domain.expiry import Expiry
from engine.domain.terms import CompetitionId, UnityId
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


def dated_between(board: Board, after: datetime, until: datetime) -> Generator[None, None, list[CompetitionId]]:
    """The competitions with a declared date later than `after` and not later than `until`. Pauses for other work."""
    found: list[CompetitionId] = []
    for first in range(1, len(board.competitions) + 1, _STEP_COMPETITIONS):
        run = board.competitions.run(first, first + _STEP_COMPETITIONS - 1)
        found += [competition_id for competition_id, one in run if one.date is not None and after < one.date <= until]
        yield
    return found
