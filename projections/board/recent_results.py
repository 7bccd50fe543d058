"""Form: the points that competitors got in each of their last competitions, in one unity.

THE ORDER. Competitions are in the order of `started_at`, the time at which they started. If none was given, it is the
time at which the competition was added. Competitions with the same time are in the order of their creation.

A competition belongs to a competitor if a delta of theirs that is not undone names it, even if the sum is 0. A voided
competition belongs to nobody. Neither does one whose own event was set aside, because its time is unknown.

Pure.
"""

from collections.abc import Generator, Iterable
from datetime import datetime
from heapq import nlargest
from typing import Final

from msgspec import Struct

from engine.domain.terms import CompetitionId, CompetitorId, UnityId
from projections.board.board import Board
from projections.board.competition_sums import CompetitionSums

_STEP_SUMS: Final = 1_000


class CompetitionSum(Struct, frozen=True, gc=False):
    """A competitor's points in a competition."""

    competition_id: CompetitionId
    sum: int


def looked_at(sums: CompetitionSums, unity_id: UnityId, competitor_ids: Iterable[CompetitorId]) -> int:
    """The number of sums examined for the recent results of the competitors, including those of voided competitions."""
    return sum([sums.number(unity_id, competitor_id) for competitor_id in competitor_ids])


def forms(
    board: Board, sums: CompetitionSums, unity_id: UnityId, competitor_ids: Iterable[CompetitorId], last: int
) -> Generator[None, None, dict[CompetitorId, list[CompetitionSum]]]:
    """The `last` sums of each competitor, or fewer if there are fewer, newest last. Shows the state of the first
    step. Pauses for other work."""
    taken = {competitor_id: sums.of(unity_id, competitor_id) for competitor_id in competitor_ids}
    named: set[CompetitionId] = set()
    for competition_ids, _ in taken.values():
        named.update(competition_ids)
    competitions = board.competitions.held(named)
    yield
    places: dict[CompetitionId, tuple[datetime, int]] = {}
    for competition_id, competition in competitions:
        if competition.voided_at is None:
            places[competition_id] = competition.started_at, competition.number
        yield
    found = {}
    for competitor_id, (competition_ids, given) in taken.items():
        newest: list[tuple[tuple[datetime, int], CompetitionId, int]] = []  # no two competitions have the same place
        for start in range(0, len(given), _STEP_SUMS):
            some = zip(competition_ids[start : start + _STEP_SUMS], given[start : start + _STEP_SUMS], strict=True)
            newest = nlargest(last, newest + [(places[c], c, amount) for c, amount in some if c in places])
            yield
        found[competitor_id] = [CompetitionSum(c, sums.shown(unity_id, amount)) for _, c, amount in reversed(newest)]
    return found
