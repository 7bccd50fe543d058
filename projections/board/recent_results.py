"""Form: what competitors got in each of their last competitions, in one unity.

THE ORDER. Competitions stand in the order of the times at which they started, `started_at`. Where no time was given,
that is when the competition was added. Those of one time stand in the order of their creation.

A competition is one of a competitor's once a delta of theirs that is not undone names it, even if it adds up to 0. A
voided one never is, nor is one whose own event was set aside, because its time is unknown.

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
    """What a competitor got in a competition."""

    competition_id: CompetitionId
    sum: int


def looked_at(sums: CompetitionSums, unity_id: UnityId, competitor_ids: Iterable[CompetitorId]) -> int:
    """How many sums the recent results of the competitors are made from, including those of voided competitions."""
    return sum([sums.number(unity_id, competitor_id) for competitor_id in competitor_ids])


def forms(
    board: Board, sums: CompetitionSums, unity_id: UnityId, competitor_ids: Iterable[CompetitorId], last: int
) -> Generator[None, None, dict[CompetitorId, list[CompetitionSum]]]:
    """The last `count` sums of each competitor, or fewer if there are fewer, the newest last. Shows the state of the
    first step, with pauses for other work."""
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
