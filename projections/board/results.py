"""The results of a ranking: for each competitor and unity that counts results, in the order in which they make totals.

Pure. The total is the first of them that counts. A result is a whole number here: by it, they are in order, and it has
all there is to know but the competition. Only reversals need the results, and they may be many. So no table and no
snapshot has them. They are read from the log at the first reversal, and kept current from then on. Those that do not
count are not among them then, so that a total is found as fast where a hundred thousand better ones do not count.
"""

from bisect import bisect_left, insort
from collections.abc import Generator, Iterable, Iterator, Mapping
from heapq import merge
from typing import Final, Protocol

from msgspec import Struct

from engine.domain.events import PointsAdded, PointsReversed, Recorded
from engine.domain.judging import ResultLine
from engine.domain.terms import (
    DELTAS_MAX,
    RESULT_MAX,
    CompetitionId,
    CompetitorId,
    Counts,
    RankingId,
    Sequence,
    UnityId,
)
from projections.columns.sorted_integers import SortedIntegers

_LINE_BITS: Final = DELTAS_MAX.bit_length()
_AT_BITS: Final = 63 + _LINE_BITS
_RESULT_BITS: Final = RESULT_MAX.bit_length() + 1
_LIST_MAX: Final = 1_000
"""Results of one competitor that are kept as a list; more stand in leaves."""
_RESULT_BYTES: Final = 390
_COMPETITOR_BYTES: Final = 200


class CountingUnity(Protocol):
    """A unity, with what makes the better of two results the smaller when both are multiplied by it."""

    @property
    def counts(self) -> Counts: ...
    @property
    def better(self) -> int: ...


CountingUnities = Mapping[UnityId, CountingUnity]


class Given(Struct, frozen=True, gc=False):
    """A result, as judging looks at it."""

    sequence: Sequence
    competition_id: CompetitionId | None
    result: int


class Results:
    """Those of one ranking. Changed in place."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[UnityId, CompetitorId], list[int] | SortedIntegers] = {}
        self._counts: dict[UnityId, Counts] = {}
        self._signs: dict[UnityId, int] = {}
        self._given: dict[Sequence, PointsAdded] = {}
        self._count = 0

    def of(
        self, unity_id: UnityId, competitor_id: CompetitorId, given_back: Iterable[ResultLine] = ()
    ) -> Iterator[Given]:
        """A competitor's results in one unity, with the lines `given_back`: the best first and, of equal ones, the
        earliest; or the last first."""
        numbers: Iterable[int] = self._numbers.get((unity_id, competitor_id), ())
        is_last, sign = self._counts.get(unity_id) is Counts.LAST, self._signs.get(unity_id, 1)
        back = sorted([self._number(unity_id, *line) for line in given_back])
        for number in merge(numbers, back) if back else numbers:
            if is_last:
                at, result = -number >> _RESULT_BITS, (-number & (1 << _RESULT_BITS) - 1) - RESULT_MAX
            else:
                at, result = number & (1 << _AT_BITS) - 1, (number >> _AT_BITS) * sign
            sequence = Sequence(at >> _LINE_BITS)
            yield Given(sequence, self._given[sequence].competition_id, result)

    def named(self) -> Iterable[tuple[UnityId, CompetitorId]]:
        """In which unities who has results."""
        return self._numbers.keys()

    @property
    def size_bytes(self) -> int:
        """Bytes in memory, estimated."""
        return len(self._numbers) * _COMPETITOR_BYTES + self._count * _RESULT_BYTES

    def note(self, unities: CountingUnities, sequence: Sequence, event: PointsAdded) -> None:
        """Adds the results of the event `sequence` of the ranking, which has these unities."""
        self._given[sequence] = event
        self._count += len(event.results)
        for line, delta in enumerate(event.results):
            unity = unities[delta.unity_id]
            self._counts[delta.unity_id], self._signs[delta.unity_id] = unity.counts, unity.better
            named = delta.unity_id, delta.competitor_id
            self._add(named, self._number(delta.unity_id, sequence, line, delta.amount))

    def reverse(self, event: PointsReversed) -> None:
        """Takes away those of the lines that the event is about, if they are there; else adds them again."""
        turned = {(line.unity_id, line.competitor_id) for line in event.totals}
        given = self._given.get(event.reverses)
        for line, delta in enumerate(() if given is None else given.results):
            named = delta.unity_id, delta.competitor_id
            if named in turned:
                number = self._number(delta.unity_id, event.reverses, line, delta.amount)
                if not self._remove(named, number):
                    self._add(named, number)

    def _number(self, unity_id: UnityId, sequence: Sequence, line: int, result: int) -> int:
        at = sequence << _LINE_BITS | line
        if self._counts[unity_id] is Counts.LAST:
            return -(at << _RESULT_BITS | result + RESULT_MAX)
        return result * self._signs[unity_id] << _AT_BITS | at

    def _remove(self, named: tuple[UnityId, CompetitorId], number: int) -> bool:
        """Whether it was there."""
        numbers = self._numbers[named]
        if isinstance(numbers, SortedIntegers):
            if numbers.least_from(number) != number:
                return False
            numbers.remove(number)
            return True
        place = bisect_left(numbers, number)
        if numbers[place : place + 1] != [number]:
            return False
        del numbers[place]
        return True

    def _add(self, named: tuple[UnityId, CompetitorId], number: int) -> None:
        numbers = self._numbers.setdefault(named, [])
        if isinstance(numbers, SortedIntegers):
            numbers.add(number)
            return
        insort(numbers, number)
        if len(numbers) > _LIST_MAX:
            self._numbers[named] = SortedIntegers(numbers)


def noting(
    results: Results, unities: CountingUnities, ranking_id: RankingId, events: Iterable[Recorded]
) -> Generator[None, None, None]:
    """Adds the results that these events gave in the ranking, whether they count or not, with pauses for other work."""
    for recorded in events:
        event = recorded.event
        if isinstance(event, PointsAdded) and event.results and event.ranking_id == ranking_id:
            results.note(unities, recorded.sequence, event)
        yield


def following(
    results: Results, unities: CountingUnities, ranking_id: RankingId, events: Iterable[Recorded]
) -> Generator[None, None, None]:
    """As `noting`, of those that count."""
    for recorded in events:
        event = recorded.event
        if isinstance(event, PointsReversed) and event.totals and event.ranking_id == ranking_id:
            results.reverse(event)
        yield from noting(results, unities, ranking_id, (recorded,))
