"""Sums of competitions: for each competitor of a ranking and each competition, the sum of the deltas that name both.

Pure. The sums are those of the lines that count (`engine/domain/lines.py`), without those that have no competition. A
competition that was voided since they were read keeps a sum of 0. After an event that changes otherwise which lines
count, they are read from the log again.

Only some classifications and recent results need these sums, and keeping them takes as long as the rest of the fold. So
no board, table or snapshot has them. They are counted from the log at the first request, and kept current from then on.

For each unity and competitor there is one run of pairs: competition, sum, competition, sum …, ascending by competition.
Ids ascend over time, so the pair that changes is nearly always the last one, or a new one at the end; any other is
found by bisection. Measured, a pair takes 20 bytes if a competitor has 40 of them, and 160 if each has only one.

There may be hundreds of thousands of runs. They are bytes, because the garbage collector visits every array, even one
of numbers, and a collection delays all requests.
"""

import struct
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Set
from collections.abc import Sequence as Items
from datetime import datetime
from operator import itemgetter
from typing import Final, TypeAlias, cast

from msgspec import Struct

from engine.domain.events import Delta, MadeUnity, Points, Recorded, origin
from engine.domain.lines import Rule
from engine.domain.marks import mark_after, result_of
from engine.domain.terms import CompetitionId, CompetitorId, Counts, Sequence, Sort, UnityId

SumsByCompetition = tuple[Items[CompetitionId], Items[int]]
"""Competitions, ascending by id, and a competitor's points in each."""

_Pairs: TypeAlias = bytearray | list[int]
"""Bytes, or a list of numbers if a sum is beyond 64 bits."""
_PAIR: Final = struct.Struct("=qq")
_BIGGEST: Final = 2**63
_PAIR_BYTES: Final = 17
_COMPETITOR_BYTES: Final = 140
_REACHED_BYTES: Final = 130
_GIVEN_BYTES: Final = 200
DEDUCTIONS_KEPT_MAX: Final = 50
"""Deductions up to which they are known. With more, points are taken as a rule, and none is."""


class WhatCounts(Struct, frozen=True):
    """The lines that sums of a ranking are made of: those that count by the `rule` and have not expired by `now` (None:
    nothing expires). `first`: the unities for which the sums also track when totals were reached."""

    rule: Rule
    now: datetime | None = None
    first: frozenset[UnityId] = frozenset()


class FirstPoints(Struct, frozen=True, gc=False):
    """The first event that gave points of a competition in a ranking, and when it was recorded."""

    sequence: Sequence
    recorded_at: datetime


class Deduction(Struct, frozen=True, kw_only=True, gc=False):
    """Points that were taken from a competitor for a `reason`, and not for a competition. `amount`: negative."""

    competitor_id: CompetitorId
    unity_id: UnityId
    amount: int
    reason: str


class CompetitionSums:
    """In each unity, a competitor has a sum, even if it is 0, for each competition that a delta of theirs named.
    `first`: the unities for which it tracks when totals were reached."""

    def __init__(self, first: Iterable[UnityId] = ()) -> None:
        self._pairs: dict[UnityId, dict[CompetitorId, _Pairs]] = {}
        self._pairs_count = 0
        self._of_results: dict[UnityId, tuple[Counts, Sort]] = {}
        self._reached: dict[UnityId, dict[CompetitorId, Sequence]] = {unity_id: {} for unity_id in first}
        # Of the unities in `_reached` that count results: the events that gave them, what they gave, and the mark then.
        self._results: dict[tuple[UnityId, CompetitorId], list[tuple[Sequence, int, int]]] = {}
        self._given: dict[CompetitionId, FirstPoints] = {}
        self._is_in_order = True
        self._deductions: list[Deduction] = []

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CompetitionSums):
            return NotImplemented
        ours, theirs = (self._pairs, self._reached, self._given), (other._pairs, other._reached, other._given)
        return ours == theirs and self.deductions == other.deductions

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._pairs)

    # ── Questions ───────────────────────────────────────────────────────────────────────────────────────

    @property
    def given(self) -> dict[CompetitionId, FirstPoints]:
        """The competitions that gave points that count, or did until they expired or the competition was voided, in the
        order of their first points."""
        if not self._is_in_order:
            self._given = dict(sorted(self._given.items(), key=lambda item: item[1].sequence))
            self._is_in_order = True
        return self._given

    @property
    def deductions(self) -> Items[Deduction]:
        """Those that count, in the order of the log; none if they are too many."""
        return self._deductions if len(self._deductions) <= DEDUCTIONS_KEPT_MAX else ()

    def of(self, unity_id: UnityId, competitor_id: CompetitorId) -> SumsByCompetition:
        """A competitor's sums in one unity at the call; empty if there are none."""
        pairs = self._of(unity_id, competitor_id)
        numbers = array("q", pairs) if isinstance(pairs, bytearray) else pairs
        return cast(Items[CompetitionId], numbers[::2]), numbers[1::2]

    def sum(self, unity_id: UnityId, competitor_id: CompetitorId, competition_id: CompetitionId) -> int | None:
        """A competitor's sum in one competition; None: there is none."""
        pairs = self._of(unity_id, competitor_id)
        if not pairs:
            return None
        if isinstance(pairs, bytearray):  # nearly always the last one, or none
            last, total = _PAIR.unpack_from(pairs, len(pairs) - _PAIR.size)
            if last <= competition_id:
                return total if last == competition_id else None
        place = _place(pairs, competition_id)
        if place == _number(pairs) or _pair(pairs, place)[0] != competition_id:
            return None
        return _pair(pairs, place)[1]

    def number(self, unity_id: UnityId, competitor_id: CompetitorId) -> int:
        """How many sums `of` returns."""
        return _number(self._of(unity_id, competitor_id))

    def reached(self, unity_id: UnityId, competitor_id: CompetitorId) -> int:
        """The last event that counts among those that changed a competitor's total in one of the `first` unities; 0:
        none did."""
        return self._reached[unity_id].get(competitor_id, 0)

    def took_place(self, competition_id: CompetitionId, date: datetime | None) -> datetime:
        """When a competition took place that gave points: at its date or, without one, when its first points were
        recorded."""
        return date or self.given[competition_id].recorded_at

    @property
    def first(self) -> Set[UnityId]:
        """The unities for which it is tracked when totals were reached."""
        return self._reached.keys()

    @property
    def size_bytes(self) -> int:
        """Bytes in memory, estimated."""
        kept = sum(map(len, self._reached.values())) + sum(map(len, self._results.values()))
        return (
            sum(map(len, self._pairs.values())) * _COMPETITOR_BYTES
            + self._pairs_count * _PAIR_BYTES
            + kept * _REACHED_BYTES
            + len(self._given) * _GIVEN_BYTES
        )

    def _of(self, unity_id: UnityId, competitor_id: CompetitorId) -> _Pairs:
        of_unity = self._pairs.get(unity_id)
        return [] if of_unity is None else of_unity.get(competitor_id, [])

    # ── Changes ─────────────────────────────────────────────────────────────────────────────────────────

    def count(self, sequence: Sequence, recorded_at: datetime, points: Points) -> None:
        """Adds the points of the event `sequence`, which the ranking has just folded. In a unity that was `declared` to
        count the best or last result, the mark of that in a competition is kept instead."""
        competition_id = points.competition_id
        if points.gives and competition_id is not None and competition_id not in self._given:
            self._given[competition_id] = FirstPoints(sequence, recorded_at)
        lines = [*[(False, delta) for delta in points.deltas], *[(True, result) for result in points.results]]
        self._count(sequence, points, lines)

    def take(self, recorded: Recorded, counts: WhatCounts) -> None:
        """Takes the next event of the log: adds its lines that count, and notes the ranking's unities."""
        event = recorded.event
        if isinstance(event, Points):
            self._take_points(recorded, counts)
        elif (made := event.made_unity) is not None and made.ranking_id == counts.rule.ranking_id:
            self.declare(made)

    def _take_points(self, recorded: Recorded, counts: WhatCounts) -> None:
        event = recorded.event
        assert isinstance(event, Points)
        competition_id = event.competition_id
        over_by = None if counts.now is None else counts.rule.by(counts.now)
        place = origin(recorded.sequence, event)
        if competition_id is not None and (
            (known := self._given.get(competition_id)) is None or place < known.sequence  # corrections come later
        ):
            gave = counts.rule.voiding(competition_id, voided=False).of(recorded)
            if next(gave, None) is not None:
                self._given[competition_id] = FirstPoints(place, event.since or recorded.recorded_at)
                self._is_in_order = self._is_in_order and place == recorded.sequence
        lines = [
            (line.is_result, line.delta)
            for line in counts.rule.of(recorded)
            if over_by is None or line.expires_at is None or line.expires_at > over_by
        ]
        self._count(place, event, lines)

    def _count(self, sequence: Sequence, points: Points, lines: Items[tuple[bool, Delta]]) -> None:
        competition_id = points.competition_id
        if self._reached:
            self._note_reached(sequence, lines)
        if competition_id is None:
            self._note_deductions(points, lines)
            return
        for is_result, line in lines:
            amount = line.amount
            if is_result:
                counts, sort = self._of_results.get(line.unity_id, (None, Sort.DESC))
                if counts is None:
                    continue
                if counts is not Counts.SUM:
                    before = self.sum(line.unity_id, line.competitor_id, competition_id)
                    after = mark_after(before or 0, amount, counts, sort)
                    if after == before:
                        continue
                    amount = after - (before or 0)
            self._add(line.unity_id, line.competitor_id, competition_id, amount)

    def _note_deductions(self, points: Points, lines: Iterable[tuple[bool, Delta]]) -> None:
        if (reason := points.reason) is None:
            return
        self._deductions += [
            Deduction(competitor_id=one.competitor_id, unity_id=one.unity_id, amount=one.amount, reason=reason)
            for is_result, one in lines
            if one.amount < 0 and not is_result and len(self._deductions) <= DEDUCTIONS_KEPT_MAX
        ]

    def _note_reached(self, sequence: Sequence, lines: Iterable[tuple[bool, Delta]]) -> None:
        changes: dict[tuple[UnityId, CompetitorId], int] = {}
        of_results: set[tuple[UnityId, CompetitorId]] = set()
        for is_result, line in lines:
            if line.unity_id not in self._reached:
                continue
            named, change = (line.unity_id, line.competitor_id), line.amount
            if not is_result:
                changes[named] = changes.get(named, 0) + change
                continue
            its = self._results.setdefault(named, [])
            place = bisect_right(its, sequence, key=itemgetter(0))  # not always the end: corrections come later
            its.insert(place, (sequence, change, 0))
            of_results.add(named)
        self._note_marks(of_results, sequence)
        for (unity_id, competitor_id), change in changes.items():
            if change:
                of_unity = self._reached[unity_id]
                of_unity[competitor_id] = max(sequence, of_unity.get(competitor_id, sequence))

    def _note_marks(self, changed: Iterable[tuple[UnityId, CompetitorId]], since: Sequence) -> None:
        """Notes the marks of these competitors from this event on, and which event was the last to change each."""
        for unity_id, competitor_id in changed:
            its = self._results[unity_id, competitor_id]
            first = bisect_left(its, since, key=itemgetter(0))
            before = mark = its[first - 1][2] if first else 0
            for place in range(first, len(its)):
                sequence, amount, _ = its[place]
                mark = mark_after(mark, amount, *self._of_results[unity_id])
                its[place] = sequence, amount, mark
                if place + 1 == len(its) or its[place + 1][0] != sequence:
                    if mark != before:
                        self._reached[unity_id][competitor_id] = sequence
                    before = mark

    def declare(self, made: MadeUnity) -> None:
        """The ranking has this unity."""
        if made.options.counts_results:
            self._of_results[made.unity_id] = made.options.counts, made.sort

    def shown(self, unity_id: UnityId, amount: int) -> int:
        """The shown form of a stored sum."""
        counts, sort = self._of_results.get(unity_id, (Counts.SUM, Sort.DESC))
        return amount if counts is Counts.SUM else result_of(amount, sort) or 0

    def _add(self, unity_id: UnityId, competitor_id: CompetitorId, competition_id: CompetitionId, amount: int) -> None:
        of_unity = self._pairs.setdefault(unity_id, {})
        pairs = of_unity.get(competitor_id)
        if pairs is None:
            of_unity[competitor_id] = bytearray(_PAIR.pack(competition_id, amount))
            self._pairs_count += 1
            return
        if isinstance(pairs, bytearray):
            at = len(pairs) - _PAIR.size
            last, total = _PAIR.unpack_from(pairs, at)
            if last < competition_id:
                pairs += _PAIR.pack(competition_id, amount)
                self._pairs_count += 1
                return
            if last == competition_id and _BIGGEST > total + amount > -_BIGGEST:
                _PAIR.pack_into(pairs, at, last, total + amount)
                return
        self._add_within(of_unity, competitor_id, competition_id, amount)

    def _add_within(
        self,
        of_unity: dict[CompetitorId, _Pairs],
        competitor_id: CompetitorId,
        competition_id: CompetitionId,
        amount: int,
    ) -> None:
        """Adds to an existing pair, or to a new one at any place."""
        pairs = of_unity[competitor_id]
        place = _place(pairs, competition_id)
        if place == _number(pairs) or _pair(pairs, place)[0] != competition_id:
            _insert(pairs, place, competition_id)
            self._pairs_count += 1
        total = _pair(pairs, place)[1] + amount
        try:
            _give(pairs, place, competition_id, total)
        except struct.error:
            wide = of_unity[competitor_id] = array("q", pairs).tolist()
            _give(wide, place, competition_id, total)


# ── Pairs ───────────────────────────────────────────────────────────────────────────────────────────────


def _number(pairs: _Pairs) -> int:
    return len(pairs) // (_PAIR.size if isinstance(pairs, bytearray) else 2)


def _pair(pairs: _Pairs, place: int) -> tuple[int, int]:
    if isinstance(pairs, bytearray):
        competition_id, total = _PAIR.unpack_from(pairs, place * _PAIR.size)
        return competition_id, total
    return pairs[2 * place], pairs[2 * place + 1]


def _place(pairs: _Pairs, competition_id: CompetitionId) -> int:
    """The number of pairs before the pair of a competition."""
    last = _number(pairs) - 1
    if _pair(pairs, last)[0] == competition_id:
        return last
    return bisect_left(range(last + 1), int(competition_id), key=lambda place: _pair(pairs, place)[0])


def _insert(pairs: _Pairs, place: int, competition_id: CompetitionId) -> None:
    """Inserts a pair there, with a sum of 0."""
    if isinstance(pairs, bytearray):
        at = place * _PAIR.size
        pairs[at:at] = _PAIR.pack(competition_id, 0)
    else:
        pairs[2 * place : 2 * place] = [competition_id, 0]


def _give(pairs: _Pairs, place: int, competition_id: CompetitionId, total: int) -> None:
    """Raises `struct.error` if the sum does not fit."""
    if isinstance(pairs, bytearray):
        _PAIR.pack_into(pairs, place * _PAIR.size, competition_id, total)
    else:
        pairs[2 * place + 1] = total
