"""The lines of a classification, computed only as far as requests need them.

Totals decide the order of most competitors: an order by the leading criteria, those without `best` and `among`, is kept
current (`order.py`). If all criteria are leading, lines are read from it. Otherwise the other criteria are computed
only for tied groups that a request touches. So a few lines cost about the same in a ranking of any size, unless other
criteria have to split a large group, or the first one has `best`.

Pure. The first step takes everything needed from the order. Later steps only read `counted`, which must not change
until the end.
"""

from collections.abc import Collection, Generator, Iterable, Iterator
from collections.abc import Sequence as Items
from datetime import datetime
from typing import Final

from msgspec import Struct

from engine.domain.events import Criterion
from engine.domain.steps import Steps, collected
from engine.domain.terms import CompetitorId
from projections.board.board import Board, Ranking
from projections.board.classification import (
    Classified,
    ClassifiedGroup,
    Counted,
    by_totals_alone,
    classified,
    compares_totals,
    in_force,
    leading,
)
from projections.board.competition_sums import CompetitionSums
from projections.board.order import PLACE_BITS, HeldLines, OrderedLines
from projections.board.standing import position_after
from projections.board.sub_table import SOUGHT_AT_ONCE_MAX
from projections.board.tiebreaks import Broken, shown_value
from projections.columns.enrolment import Enrolment, HeldList

CLASSIFIED_SUMS_MAX: Final = 10_000_000
"""Sums of competitions that one question may examine."""
_STEP_COMPETITORS: Final = 2_000
_STEP_LINES: Final = 100
"""Lines whose values are looked up in one step: up to 20 each."""


class _Level(Struct, frozen=True):
    """A group that is tied in the leading criteria: its members in the order of enrolment; the number of lines above
    it; and the criteria that separate it from the lines above and below."""

    competitor_ids: Items[CompetitorId] | HeldList | HeldLines
    above: int
    decided_by: int | None
    parted_below_by: int | None


class _Taken(Struct, frozen=True):
    """Lines of an order by all criteria, from offset `start` to before `stop`. `position`: the position of the first of
    them if it shares it with the line above; else None. `competitor_ids` begins with the line above them and ends with
    the line below, if there are such lines."""

    competitor_ids: Items[CompetitorId]
    start: int
    stop: int
    position: int | None

    @property
    def first(self) -> int:
        """The offset of the first of `competitor_ids`."""
        return max(self.start - 1, 0)


class ClassifiedLines:
    """`order`: the order by the `leading` criteria; None: there are none. `known`: the computed groups, by the number
    of lines above them, kept as long as nothing changes."""

    def __init__(
        self,
        counted: Counted,
        criteria: Items[Criterion],
        enrolment: Enrolment,
        order: OrderedLines | None,
        known: dict[int, ClassifiedGroup],
    ) -> None:
        self._counted = counted
        self._criteria = criteria
        self._leading = leading(criteria)
        self._totals_alone = by_totals_alone(criteria)
        self._enrolment = enrolment
        self._length = len(enrolment)
        self._order = order
        self._known = known

    @classmethod
    def in_steps(
        cls, board: Board, ranking: Ranking, sums: CompetitionSums | None, on: datetime | None = None
    ) -> Generator[None, None, "ClassifiedLines"]:
        """The lines of a ranking that does not change while they are used. `on`: with what had taken place by then;
        None: with everything. Pauses for other work."""
        criteria = in_force(ranking)
        order = None
        if unities := [ranking.unities[criterion.unity_id] for criterion in criteria[: leading(criteria)]]:
            first, *finer = unities
            order = yield from OrderedLines.in_steps(ranking.participants, first.totals, first.sort, finer)
        return cls(Counted(board, ranking, sums, on=on), criteria, ranking.participants, order, {})

    def __len__(self) -> int:
        return self._length

    def completed(self, lines: Iterable[Classified]) -> Generator[None, None, list[Classified]]:
        """The lines with all values that are totals or tie-breaks, needed or not, for tables that people compare."""
        found = []
        for line in lines:
            found.append((yield from self._completed(line)))
            yield
        return found

    def run(self, start: int, stop: int) -> Generator[None, None, list[Classified]]:
        """The lines from offset `start` to before `stop`, fewer if there are no more."""
        if self._order is not None and self._totals_alone:
            return (yield from self._read_off([_taken(self._order, start, stop)]))
        levels = yield from collected(self._levels(start, stop))
        return (yield from self._run(levels, start, stop))

    def around(self, competitor_id: CompetitorId, span: int) -> Generator[None, None, list[Classified] | None]:
        """The line of a competitor, with the given numbers of lines above and below it; None: not enrolled."""
        if self._order is not None and self._totals_alone:
            offset = self._order.offset(competitor_id)
            return None if offset is None else (yield from self.run(max(offset - span, 0), offset + span + 1))
        hers = self._level_of(competitor_id)
        if hers is None:
            return None
        levels = self._levels_around(hers, span)
        middle = yield from self._place(hers, competitor_id)
        return (yield from self._run(levels, max(middle - span, 0), middle + span + 1))

    def broken(self, competitor_id: CompetitorId) -> Steps[dict[int, Broken]]:
        """The values of a competitor's tie-breaks with what they are made of, by the number of the criterion."""
        found: dict[int, Broken] = {}
        hers = self._level_of(competitor_id)
        for number, criterion in enumerate(self._criteria):
            if criterion.tiebreak is None or hers is None:
                continue
            tiebreaks = yield from self._counted.tiebreaks(criterion)
            if criterion.tiebreak != "DE":
                broken = tiebreaks.of(criterion, competitor_id)
            else:
                broken = tiebreaks.among((yield from self._tied(hers, competitor_id, number))).get(competitor_id)
            found |= {} if broken is None else {number: broken}
        return found

    def _tied(self, level: _Level, competitor_id: CompetitorId, number: int) -> Steps[list[CompetitorId]]:
        """Those who were tied with a competitor when they were compared by a criterion; empty: she was not."""
        if len(level.competitor_ids) == 1:
            return []
        lines = [*(yield from self._group(level))]
        before = next(line.values for line in lines if line.competitor_id == competitor_id)[:number]
        return [one.competitor_id for one in lines if one.values[:number] == before and one.values[number] is not None]

    def page(
        self, competitor_id: CompetitorId, limit: int
    ) -> Generator[None, None, tuple[int, list[Classified]] | None]:
        """Of the pages of `limit` lines, the one with a competitor's line, and its offset; None: not enrolled."""
        if self._order is not None and self._totals_alone:
            offset = self._order.offset(competitor_id)
            start = 0 if offset is None else offset // limit * limit
            return None if offset is None else (start, (yield from self.run(start, start + limit)))
        hers = self._level_of(competitor_id)
        if hers is None:
            return None
        levels = self._levels_around(hers, limit)
        start = (yield from self._place(hers, competitor_id)) // limit * limit
        return start, (yield from self._run(levels, start, start + limit))

    def _place(self, level: _Level, competitor_id: CompetitorId) -> Generator[None, None, int]:
        if len(level.competitor_ids) == 1:
            return level.above
        group = yield from self._group(level)
        return level.above + (yield from group.place(competitor_id))

    def of(
        self, competitor_ids: Iterable[CompetitorId]
    ) -> Generator[None, None, dict[CompetitorId, Classified | None]]:
        """A line for each competitor, in the given order; None: not enrolled."""
        found: dict[CompetitorId, Classified | None] = dict.fromkeys(competitor_ids)
        for line in (yield from self._few(found)):
            found[line.competitor_id] = line
        return found

    def among(self, competitor_ids: Items[CompetitorId]) -> Generator[None, None, list[Classified]]:
        """The lines of the competitors that are enrolled, in the order of the table. Up to SOUGHT_AT_ONCE_MAX are
        looked up individually, without a pause; for more, all lines are scanned."""
        if self._order is None or len(competitor_ids) <= SOUGHT_AT_ONCE_MAX:
            return (yield from self._few(frozenset(competitor_ids)))
        sought = set[CompetitorId]()
        levels = self._levels_among(self._order, sought)
        next(levels, None)  # fixes the state of all lines
        for start in range(0, len(competitor_ids), _STEP_COMPETITORS):
            yield
            sought.update(competitor_ids[start : start + _STEP_COMPETITORS])
        return (yield from self._sought(levels, sought))

    def _few(self, competitor_ids: Collection[CompetitorId]) -> Generator[None, None, list[Classified]]:
        """The lines of the competitors that are enrolled, in the order of the table, each looked up individually."""
        if self._order is None or not self._totals_alone:
            return (yield from self._sought(self._levels_of(competitor_ids), competitor_ids))
        offsets = sorted([offset for c in competitor_ids if (offset := self._order.offset(c)) is not None])
        return (yield from self._read_off([_taken(self._order, offset, offset + 1) for offset in offsets]))

    def _sought(
        self, levels: Iterable[_Level | None], sought: Collection[CompetitorId]
    ) -> Generator[None, None, list[Classified]]:
        """The lines of the sought competitors in these groups, in order. None in place of a group is a pause."""
        found: list[Classified] = []
        for level in levels:
            yield
            if level is not None and len(level.competitor_ids) == 1:
                found += [line for line in [self._single(level)] if line.competitor_id in sought]
            elif level is not None:
                group = yield from self._group(level)
                found += yield from group.lines_among(sought)
        return found

    def _run(self, levels: Iterable[_Level], start: int, stop: int) -> Generator[None, None, list[Classified]]:
        found: list[Classified] = []
        for level in levels:
            first, end = max(start - level.above, 0), min(max(stop - level.above, 0), len(level.competitor_ids))
            if first < end and len(level.competitor_ids) == 1:
                found.append(self._single(level))
            elif first < end:
                group = yield from self._group(level)
                for place in range(first, end, _STEP_LINES):
                    found += group.lines(place, min(place + _STEP_LINES, end))
                    yield
        return found

    # ── Totals alone ────────────────────────────────────────────────────────────────────────────────────

    def _read_off(self, all_taken: Iterable[_Taken]) -> Generator[None, None, list[Classified]]:
        """The lines that were taken, one after another."""
        found: list[Classified] = []
        for taken in all_taken:
            values = []
            for competitor_id in taken.competitor_ids:
                values.append([self._counted.total(criterion.unity_id, competitor_id) for criterion in self._criteria])
                if len(values) % _STEP_LINES == 0:
                    yield
            for line in self._placed(taken, values):
                found.append(line)
                if len(found) % _STEP_LINES == 0:
                    yield
            yield
        return found

    def _placed(self, taken: _Taken, values: Items[Items[int]]) -> Iterator[Classified]:
        """The requested lines, from the values of all competitors taken."""
        position, count = taken.position, len(self._criteria)
        above = _compared(*values[:2]) if taken.first < taken.start < taken.stop else 0
        for offset in range(taken.start, taken.stop):
            number = offset - taken.first
            below = _compared(*values[number : number + 2]) if number + 1 < len(values) else 0
            parts, needed = above <= count, max(above, below)
            if parts or position is None:
                position = position_after(offset)
            competitor_id = taken.competitor_ids[number]
            told = self._needed(competitor_id, values[number][:needed])
            yield Classified(competitor_id, position, told, above - 1 if parts and offset else None)
            above = below

    # ── Groups ──────────────────────────────────────────────────────────────────────────────────────────

    def _level_of(self, competitor_id: CompetitorId) -> _Level | None:
        if self._order is None:
            return next(self._levels(0, 1)) if competitor_id in self._enrolment else None
        line = self._order.line(competitor_id)
        return None if line is None else self._level(line)

    def _levels_of(self, competitor_ids: Collection[CompetitorId]) -> list[_Level]:
        """Their groups, each once, in order."""
        if self._order is None:
            return list(self._levels(0, 1)) if any(c in self._enrolment for c in competitor_ids) else []
        lines = [line for c in competitor_ids if (line := self._order.line(c)) is not None]
        one_of_each = {line >> PLACE_BITS: line for line in lines}
        return [self._level(one_of_each[as_good]) for as_good in sorted(one_of_each)]

    def _levels_among(self, order: OrderedLines, sought: Collection[CompetitorId]) -> Iterator[_Level | None]:
        """The groups of the sought competitors, in order, in the state of the first step. None is a pause."""
        group: list[CompetitorId] = []
        above, is_sought = 0, False
        last_above: CompetitorId | None = None
        for run in order.in_runs():
            yield None
            for line in run:
                if group and line.position > above + 1:
                    if is_sought:
                        yield self._between(last_above, group, above, line.competitor_id)
                    above, last_above, is_sought = line.position - 1, group[-1], False
                    group = []
                group.append(line.competitor_id)
                is_sought = is_sought or line.competitor_id in sought
        if is_sought:
            yield self._between(last_above, group, above, None)

    def _between(
        self, last_above: CompetitorId | None, group: Items[CompetitorId], above: int, first_below: CompetitorId | None
    ) -> _Level:
        return _Level(
            group,
            above,
            None if last_above is None else self._parting(last_above, group[0]),
            None if first_below is None else self._parting(group[-1], first_below),
        )

    def _levels_around(self, hers: _Level, span: int) -> list[_Level]:
        """This group, and the groups of the given number of lines above it and below it."""
        if self._order is None:
            return [hers]
        end = hers.above + len(hers.competitor_ids)
        return [*self._levels(max(hers.above - span, 0), hers.above), hers, *self._levels(end, end + span)]

    def _levels(self, start: int, stop: int) -> Generator[_Level, None, None]:
        """The groups of the lines between two offsets, in the state of the first step."""
        if self._order is None:
            yield _Level(self._enrolment.held(), 0, None, None)
            return
        stop = min(stop, len(self))
        if start >= stop:
            return
        first = max(start - 1, 0)
        lines = self._order.run(first, stop + 1)  # with the one above and the one below
        ends = lines[start - first][0], lines[stop - first - 1][0]  # whose groups may go on beyond the offsets
        at_the_ends = {line >> PLACE_BITS: self._level(line) for line in ends}
        while start < stop:
            at = end = start - first
            as_good = lines[at][0] >> PLACE_BITS
            level = at_the_ends.get(as_good)
            if level is None:
                while lines[end][0] >> PLACE_BITS == as_good:
                    end += 1
                group = [competitor_id for _, competitor_id in lines[at:end]]
                level = self._between(lines[at - 1][1], group, start, lines[end][1])
            yield level
            start = level.above + len(level.competitor_ids)

    def _level(self, line: int) -> _Level:
        """All who are as good as this line."""
        assert self._order is not None
        above, end = self._order.level(line)
        few = end - above <= _STEP_COMPETITORS
        return _Level(
            self._order.competitors(above, end) if few else self._order.held(above, end),
            above,
            None if above == 0 else self._parting(*self._order.competitors(above - 1, above + 1)),
            None if end == len(self) else self._parting(*self._order.competitors(end - 1, end + 1)),
        )

    def _parting(self, one: CompetitorId, other: CompetitorId) -> int:
        """The first of the leading criteria in which these two differ."""
        return next(
            number
            for number, criterion in enumerate(self._criteria)
            if self._counted.total(criterion.unity_id, one) != self._counted.total(criterion.unity_id, other)
        )

    def _group(self, level: _Level) -> Generator[None, None, ClassifiedGroup]:
        """The lines of a group of more than one: the known ones, or else computed."""
        group = self._known.get(level.above)
        if group is None:
            group = self._known[level.above] = yield from classified(
                self._counted,
                self._criteria,
                level.competitor_ids,
                after=self._leading,
                above=level.above,
                decided_by=level.decided_by,
                sums_max=CLASSIFIED_SUMS_MAX,
            )
        return group

    def _completed(self, line: Classified) -> Steps[Classified]:
        values = list(line.values)
        for number, criterion in enumerate(self._criteria):
            if compares_totals(criterion):
                values[number] = self._counted.total(criterion.unity_id, line.competitor_id)
            elif criterion.divisor is not None:
                quotient = self._counted.quotient(criterion, line.competitor_id)
                values[number] = self._counted.stored(criterion, quotient)
            elif criterion.tiebreak not in (None, "DE"):
                tiebreaks = yield from self._counted.tiebreaks(criterion)
                values[number] = shown_value(criterion, tiebreaks.of(criterion, line.competitor_id))
        return Classified(line.competitor_id, line.position, tuple(values), line.decided_by)

    def _single(self, level: _Level) -> Classified:
        """The line of an untied competitor, with the values that separate it from its neighbours."""
        (competitor_id,) = level.competitor_ids
        needed = 1 + max(-1 if by is None else by for by in (level.decided_by, level.parted_below_by))
        values = [self._counted.total(criterion.unity_id, competitor_id) for criterion in self._criteria[:needed]]
        return Classified(competitor_id, level.above + 1, self._needed(competitor_id, values), level.decided_by)

    def _needed(self, competitor_id: CompetitorId, values: Items[int]) -> tuple[int | None, ...]:
        """These values, and None for those of the other criteria. Of a line that is alone, a missing total is told."""
        first, rest = self._criteria[0], len(self._criteria) - len(values)
        if values or first.first or first.tiebreak is not None:
            return *values, *[None] * rest
        if first.divisor is not None:
            is_missing = self._counted.quotient(first, competitor_id).shown is None
        else:
            total = self._counted.total(first.unity_id, competitor_id)
            is_missing = self._counted.notation(first.unity_id).shown(total) is None
        return 0 if is_missing else None, *[None] * (rest - 1)


def _taken(order: OrderedLines, start: int, stop: int) -> _Taken:
    first = max(start - 1, 0)
    run = order.run(first, stop + 1)
    is_level = len(run) > 1 and start > 0 and run[0][0] >> PLACE_BITS == run[1][0] >> PLACE_BITS
    position = order.position(run[1][0]) if is_level else None
    return _Taken([competitor_id for _, competitor_id in run], start, min(stop, first + len(run)), position)


def _compared(one: Items[int], other: Items[int]) -> int:
    """The number of criteria needed to separate lines with these values. If no criterion does, it is one more than
    there are."""
    differing = (number for number, (its, others) in enumerate(zip(one, other, strict=True), start=1) if its != others)
    return next(differing, len(one) + 1)
