"""Form: what competitors got in each of their last competitions, in one unity.

THE ORDER. Competitions stand in the order of the times at which they started, `started_at`. Where no time was given,
that is when the competition was added. Those of one time stand in the order of their creation.

A competition is one of a competitor's once a delta of theirs names it, even if it adds up to 0. One that is voided is
none, nor is one whose own event was set aside: nothing tells its time.

Pure.
"""

from collections.abc import Generator, Iterable
from collections.abc import Sequence as Items
from datetime import datetime
from heapq import nlargest
from typing import Final

from msgspec import Struct

from engine.domain.terms import CompetitionId, CompetitorId
from projections.board.board import Board, Unity

_STEP_SUMS: Final = 1_000


class CompetitionSum(Struct, frozen=True, gc=False):
    """What a competitor got in a competition."""

    competition_id: CompetitionId
    sum: int


def looked_at(unity: Unity, competitor_ids: Iterable[CompetitorId]) -> int:
    """How many sums the forms of these competitors are made from, those of voided competitions included."""
    pairs = unity.competition_sums.pairs
    return sum([len(pairs.get(competitor_id, ())) // 2 for competitor_id in competitor_ids])


def forms(
    board: Board, unity: Unity, competitor_ids: Iterable[CompetitorId], last: int
) -> Generator[None, None, dict[CompetitorId, list[CompetitionSum]]]:
    """The last so many sums of each of these competitors, the newest last; fewer of one who has fewer. As everything is
    in the first step, with pauses for the turns of others."""
    pairs = unity.competition_sums.pairs
    taken: dict[CompetitorId, Items[int]] = {c: pairs.get(c, ())[:] for c in competitor_ids}
    named: set[CompetitionId] = set()
    for its in taken.values():
        named.update(map(CompetitionId, its[::2]))
    competitions = board.competitions.held(named)
    yield
    places: dict[int, tuple[datetime, int]] = {}
    for competition_id, competition in competitions:
        if competition.voided_at is None:
            places[competition_id] = competition.started_at, competition.number
        yield
    found = {}
    for competitor_id, its in taken.items():
        newest: list[tuple[tuple[datetime, int], int, int]] = []  # no two competitions have the same place
        for start in range(0, len(its), 2 * _STEP_SUMS):
            some = its[start : start + 2 * _STEP_SUMS]
            placed = [(places[c], c, given) for c, given in zip(some[::2], some[1::2], strict=True) if c in places]
            newest = nlargest(last, newest + placed)
            yield
        found[competitor_id] = [CompetitionSum(CompetitionId(c), given) for _, c, given in reversed(newest)]
    return found
