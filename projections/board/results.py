"""The results of a ranking: for each competitor and unity that counts results, in the order in which they make totals.

Pure. The total is the first of them that counts. A result is a whole number here: by it, they are in order, and it has
all there is to know but the competition. Only reversals need the results, and they may be many. So no table and no
snapshot has them. They are read from the log at the first reversal, and kept current from then on.
"""

from bisect import insort
from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import Final, Protocol

from msgspec import Struct

from engine.domain.events import PointsAdded, Recorded
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
_RESULT_BYTES: Final = 110
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
        self._competitions: dict[Sequence, CompetitionId] = {}
        self._count = 0

    def of(self, unity_id: UnityId, competitor_id: CompetitorId) -> Iterator[Given]:
        """A competitor's results in one unity: the best first and, of equal ones, the earliest; or the last first."""
        numbers = self._numbers.get((unity_id, competitor_id), ())
        is_last, sign = self._counts.get(unity_id) is Counts.LAST, self._signs.get(unity_id, 1)
        for number in numbers:
            if is_last:
                at, result = -number >> _RESULT_BITS, (-number & (1 << _RESULT_BITS) - 1) - RESULT_MAX
            else:
                at, result = number & (1 << _AT_BITS) - 1, (number >> _AT_BITS) * sign
            sequence = Sequence(at >> _LINE_BITS)
            yield Given(sequence, self._competitions.get(sequence), result)

    def named(self) -> Iterable[tuple[UnityId, CompetitorId]]:
        """In which unities who has results."""
        return self._numbers.keys()

    @property
    def size_bytes(self) -> int:
        """Bytes in memory, estimated."""
        return len(self._numbers) * _COMPETITOR_BYTES + self._count * _RESULT_BYTES

    def note(self, unities: CountingUnities, sequence: Sequence, event: PointsAdded) -> None:
        """Adds the results of the event `sequence` of the ranking, which has these unities."""
        if event.competition_id is not None:
            self._competitions[sequence] = event.competition_id
        for line, delta in enumerate(event.results):
            unity = unities[delta.unity_id]
            self._counts[delta.unity_id] = unity.counts
            sign = self._signs[delta.unity_id] = unity.better
            at = sequence << _LINE_BITS | line
            if unity.counts is Counts.LAST:
                number = -(at << _RESULT_BITS | delta.amount + RESULT_MAX)
            else:
                number = delta.amount * sign << _AT_BITS | at
            self._add((delta.unity_id, delta.competitor_id), number)

    def _add(self, named: tuple[UnityId, CompetitorId], number: int) -> None:
        numbers = self._numbers.setdefault(named, [])
        self._count += 1
        if isinstance(numbers, SortedIntegers):
            numbers.add(number)
            return
        insort(numbers, number)
        if len(numbers) > _LIST_MAX:
            self._numbers[named] = SortedIntegers(numbers)


def noting(
    results: Results, unities: CountingUnities, ranking_id: RankingId, events: Iterable[Recorded]
) -> Generator[None, None, None]:
    """Adds the results that these events gave in the ranking, with pauses for other work."""
    for recorded in events:
        event = recorded.event
        if isinstance(event, PointsAdded) and event.results and event.ranking_id == ranking_id:
            results.note(unities, recorded.sequence, event)
        yield
