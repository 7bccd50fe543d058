"""The results of a ranking: one list for each competitor and unity that counts results, in order of precedence.

Pure. The total is the first result that counts. Each result is packed into one whole number, which sorts in that order
and holds everything but the competition. There may be many results, and only reversals need them, so no board, table or
snapshot holds them. They are read from the log at the first reversal, and kept current from then on. Results that do
not count are left out, so that finding a total takes no longer if a hundred thousand better results do not count.

Results expire by the current dates of their competitions. If a date changes, they are read again.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from heapq import heappop, heappush, merge
from typing import Final, Protocol

from msgspec import Struct

from engine.domain.events import Delta, Points, Recorded, Total
from engine.domain.expiry import Expiry
from engine.domain.marks import mark_of
from engine.domain.state import ResultLine
from engine.domain.terms import (
    DELTAS_MAX,
    RESULT_MAX,
    CompetitionId,
    CompetitorId,
    Counts,
    RankingId,
    Sequence,
    Sort,
    UnityId,
)
from projections.columns.sorted_integers import SortedIntegers

_LINE_BITS: Final = DELTAS_MAX.bit_length()
_SEQUENCE_BITS: Final = 63
_AT_BITS: Final = 2 * _SEQUENCE_BITS + _LINE_BITS
_RESULT_BITS: Final = RESULT_MAX.bit_length() + 1
_LIST_MAX: Final = 1_000
"""The most results of one competitor that are kept as a list. Beyond it, they are kept in leaves."""
_FEW: Final = 50
"""Fewer results of one competitor than this are sorted again: that is faster than merging."""
_RESULT_BYTES: Final = 390
_COMPETITOR_BYTES: Final = 200


class CountingUnity(Protocol):
    """A unity. `better`: the sign (1 or -1) by which results are multiplied so that the better one is the smaller."""

    @property
    def counts(self) -> Counts: ...
    @property
    def expiry(self) -> Expiry | None: ...
    @property
    def better(self) -> int: ...


CountingUnities = Mapping[UnityId, CountingUnity]


class Given(Struct, frozen=True, gc=False):
    """A result, as judging needs it."""

    sequence: Sequence
    origin: Sequence
    recorded_at: datetime
    competition_id: CompetitionId | None
    result: int


class Results:
    """The results of one ranking, which has these unities. Changed in place."""

    def __init__(self, unities: CountingUnities) -> None:
        self._unities = unities
        self._signs: dict[UnityId, int] = {}
        self._numbers: dict[tuple[UnityId, CompetitorId], list[int] | SortedIntegers] = {}
        self._given: dict[Sequence, tuple[datetime, CompetitionId | None, Points]] = {}
        self._competitions: set[CompetitionId] = set()
        self._expiring: list[tuple[datetime, Sequence, UnityId]] = []  # a heap: when, which event, which unity
        self._count = 0

    def of(
        self, unity_id: UnityId, competitor_id: CompetitorId, given_back: Iterable[ResultLine] = ()
    ) -> Iterator[Given]:
        """A competitor's results in one unity, with the lines `given_back`. The best result comes first, and the
        earliest among equal ones; if the last result counts, the last one comes first."""
        numbers: Iterable[int] = self._numbers.get((unity_id, competitor_id), ())
        back_by: Mapping[Sequence, tuple[datetime, CompetitionId | None]] = {}
        unity = self._unities[unity_id]
        is_last, sign = unity.counts is Counts.LAST, unity.better
        if given_back:
            back_by = {line.sequence: (line.recorded_at, line.competition_id) for line in given_back}
            back = [self.precedence(unity_id, line) for line in given_back]
            is_short = isinstance(numbers, list) and len(numbers) < _FEW
            numbers = sorted([*numbers, *back]) if is_short else merge(numbers, sorted(back))
        for number in numbers:
            if is_last:
                at, result = -number >> _RESULT_BITS, (-number & (1 << _RESULT_BITS) - 1) - RESULT_MAX
            else:
                at, result = number & (1 << _AT_BITS) - 1, (number >> _AT_BITS) * sign
            sequence = Sequence(at >> _LINE_BITS & (1 << _SEQUENCE_BITS) - 1)
            origin = Sequence(at >> _LINE_BITS + _SEQUENCE_BITS)
            its = back_by[sequence] if sequence in back_by else self._given[sequence][:2]
            yield Given(sequence, origin, *its, result)

    @property
    def size_bytes(self) -> int:
        """Bytes in memory, estimated."""
        return len(self._numbers) * _COMPETITOR_BYTES + self._count * _RESULT_BYTES

    def precedence(self, unity_id: UnityId, line: ResultLine) -> int:
        """The number that is least for the first of a competitor's results in the unity."""
        return self._number(unity_id, line.origin, line.sequence, line.number, line.result)

    def adds_up(self, unity_id: UnityId) -> bool:
        """Whether the total is the sum of the results."""
        return self._unities[unity_id].counts is Counts.SUM

    def note(
        self, sequence: Sequence, recorded_at: datetime, event: Points, took_place: datetime | None = None
    ) -> None:
        """Adds the results that the event `sequence` of the ranking gives, even if they do not count. `took_place`: the
        time from which they age, so that `expire` removes them; None: they stay."""
        self._given[sequence] = event.since or recorded_at, event.competition_id, event
        if event.competition_id is not None:
            self._competitions.add(event.competition_id)
        results, first = event.given_results, event.instead_of or sequence
        self._count += len(results)
        for line, delta in enumerate(results):
            number = self._number(delta.unity_id, first, sequence, line, delta.amount)
            self._add((delta.unity_id, delta.competitor_id), number)
        if took_place is not None:
            for unity_id in {delta.unity_id for delta in results}:
                if (expiry := self._unities[unity_id].expiry) is not None:
                    heappush(self._expiring, (expiry.expires_at(took_place), sequence, unity_id))

    def turn(self, sequence: Sequence, totals: Iterable[Total], *, counts: bool) -> None:
        """Adds the lines of the event `sequence` that are in these totals if they count from now on; otherwise removes
        them."""
        turned = {(line.unity_id, line.competitor_id) for line in totals}
        self._turn(sequence, counts, lambda delta: (delta.unity_id, delta.competitor_id) in turned)

    def leave_out(self, sequence: Sequence, wanted: Callable[[Delta], bool]) -> None:
        """Removes the lines of the event `sequence` that are not wanted."""
        self._turn(sequence, False, lambda delta: not wanted(delta))

    def given_by(self, sequence: Sequence) -> Iterator[tuple[tuple[UnityId, CompetitorId], ResultLine]]:
        """The results that the event `sequence` gave, counting or not, each with its unity and competitor; none if it
        is not there."""
        if sequence in self._given:
            recorded_at, competition_id, points = self._given[sequence]
            first = points.instead_of or sequence
            for number, one in enumerate(points.given_results):
                line = ResultLine(sequence, first, number, one.amount, recorded_at, competition_id)
                yield (one.unity_id, one.competitor_id), line

    def has_of(self, competition_id: CompetitionId) -> bool:
        """Whether the competition gave results, even if they do not count."""
        return competition_id in self._competitions

    def expire(self, boundary: datetime) -> None:
        """Removes the results that expire by `boundary`."""
        while self._expiring and self._expiring[0][0] <= boundary:
            _, sequence, unity_id = heappop(self._expiring)
            self._turn(sequence, False, lambda delta, its=unity_id: delta.unity_id == its)  # type: ignore[misc]

    def _turn(self, sequence: Sequence, counts: bool, wanted: Callable[[Delta], bool]) -> None:
        if sequence not in self._given:
            return
        points = self._given[sequence][2]
        first = points.instead_of or sequence
        for line, delta in enumerate(points.given_results):
            if wanted(delta):
                named = delta.unity_id, delta.competitor_id
                number = self._number(delta.unity_id, first, sequence, line, delta.amount)
                self._remove(named, number)
                if counts:
                    self._add(named, number)

    def _number(self, unity_id: UnityId, first: Sequence, sequence: Sequence, line: int, result: int) -> int:
        at = (first << _SEQUENCE_BITS | sequence) << _LINE_BITS | line
        if self._unities[unity_id].counts is Counts.LAST:
            return -(at << _RESULT_BITS | result + RESULT_MAX)
        if (sign := self._signs.get(unity_id)) is None:  # a property of the unity would be entered for each result
            sign = self._signs[unity_id] = self._unities[unity_id].better
        return result * sign << _AT_BITS | at

    def _remove(self, named: tuple[UnityId, CompetitorId], number: int) -> None:
        """Removes the number if it is there."""
        numbers = self._numbers.get(named, [])
        if isinstance(numbers, SortedIntegers):
            if numbers.least_from(number) == number:
                numbers.remove(number)
            return
        place = bisect_left(numbers, number)
        if numbers[place : place + 1] == [number]:
            del numbers[place]

    def _add(self, named: tuple[UnityId, CompetitorId], number: int) -> None:
        numbers = self._numbers.setdefault(named, [])
        if isinstance(numbers, SortedIntegers):
            numbers.add(number)
            return
        insort(numbers, number)
        if len(numbers) > _LIST_MAX:
            self._numbers[named] = SortedIntegers(numbers)


Last = dict[tuple[UnityId, CompetitorId], Sequence]
"""For each competitor in unities in which the last result counts: the event that decides the place of its last one."""


def is_last(last: Last, counts: Counts, first: Sequence, result: Delta) -> bool:
    """Whether this is the last result so far. `first`: the event that decides its place: the results of corrections
    come later in the log."""
    named = result.unity_id, result.competitor_id
    if counts is not Counts.LAST:
        return True
    if first < last.get(named, 0):
        return False
    last[named] = first
    return True


class PassingResults:
    """The counting results of one competitor in one unity, as they start and stop counting over time. Each has a number
    of its own."""

    def __init__(self, counts: Counts, sort: Sort) -> None:
        self._counts, self._sort = counts, sort
        self._heap: list[tuple[tuple[int, int], int, int]] = []  # a heap: precedence, number, mark
        self._gone: set[int] = set()
        self._added: dict[int, int] = {}  # of a sum, the counting results by number
        self._sum = 0

    def come(self, number: int, order: int, result: int) -> None:
        """`order`: its place in the order of the log."""
        if self._counts is Counts.SUM:
            self._added[number] = result
            self._sum += result
            return
        mark = mark_of(result, self._sort)
        first = (
            (-order, -number) if self._counts is Counts.LAST else (-mark if self._sort is Sort.DESC else mark, number)
        )
        heappush(self._heap, (first, number, mark))

    def go(self, number: int) -> None:
        if self._counts is Counts.SUM:
            self._sum -= self._added.pop(number)
        else:
            self._gone.add(number)

    def mark(self) -> int:
        """The mark of the total."""
        if self._counts is Counts.SUM:
            return mark_of(self._sum if self._added else None, self._sort)
        while self._heap and self._heap[0][1] in self._gone:
            self._gone.remove(heappop(self._heap)[1])
        return self._heap[0][2] if self._heap else 0


def note_given(results: Results, ranking_id: RankingId, recorded: Recorded) -> None:
    """Adds all results that an event gave in the ranking, counting or not."""
    event = recorded.event
    if isinstance(event, Points) and event.given_results and event.ranking_id == ranking_id:
        results.note(recorded.sequence, recorded.recorded_at, event)
