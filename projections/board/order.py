"""Who stands where in one unity while its totals change: by bisection, where `standings` would sort and count anew.

Pure. The rule is that of `standing.py`: a position is 1 + the number of strictly better totals among those who are
enrolled. Kept are their totals in order, the better first; so the number of better ones is a place in that list, and
a change of one total moves one entry of it.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping
from typing import Final

from engine.domain.terms import CompetitorId, Sort


class Order:
    """The enrolled competitors of a unity, in order. The totals are the caller's; here is only where they stand."""

    def __init__(self, enrolled: Iterable[CompetitorId], totals: Mapping[CompetitorId, int], sort: Sort) -> None:
        self.enrolled = frozenset(enrolled)
        self._sign = -1 if sort is Sort.DESC else 1
        # A total that is better is smaller here; of equal ones, whose it is tells them apart.
        self._places = sorted((totals.get(competitor_id, 0) * self._sign, competitor_id) for competitor_id in enrolled)

    def position(self, competitor_id: CompetitorId, total: int) -> int | None:
        """Where a competitor with this total stands; None: they are not enrolled."""
        if competitor_id not in self.enrolled:
            return None
        return bisect_left(self._places, (total * self._sign,)) + 1

    def move(self, competitor_id: CompetitorId, before: int, after: int) -> None:
        """Has a competitor stand at another total than `before`, which is what was last said of them."""
        if before != after and competitor_id in self.enrolled:
            places = self._places
            del places[bisect_left(places, (before * self._sign, competitor_id))]
            insort(places, (after * self._sign, competitor_id))

    def move_all(self, before: Mapping[CompetitorId, int], totals: Mapping[CompetitorId, int]) -> None:
        """Has those who stood at `before` stand at `totals`, which holds the totals of all."""
        if len(before) * _ANEW > len(self._places):
            self._places = sorted((totals.get(c, 0) * self._sign, c) for c in self.enrolled)
            return
        for competitor_id, total in before.items():
            self.move(competitor_id, total, totals[competitor_id])

    def between(self, one: int, other: int) -> list[CompetitorId]:
        """Who stands at one of two totals or anywhere between them, the better first."""
        first, last = sorted((one * self._sign, other * self._sign))
        places = self._places
        start = bisect_left(places, (first,))
        end = bisect_left(places, (last + 1,), lo=start)
        return [competitor_id for _, competitor_id in places[start:end]]

    def compared(self, one: int, other: int) -> int:
        """1, 0 or -1: a total is better than another, as good, or worse."""
        return ((one < other) - (one > other)) * self._sign


_ANEW: Final = 16
"""If every so-manieth moves, to sort anew takes less time than to move each."""
