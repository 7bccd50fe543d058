"""The lines of a classification, computed as far as they are asked for.

Totals alone put most competitors in their order: an order by the leading criteria, those without `best` and `among`, is
kept current (`order.py`). What the other criteria decide is computed for the groups that are level in it, where a
question touches them. So a few lines cost about the same in a ranking of any size, unless many are level, or the first
criterion has `best`.

Pure. What is asked for is taken from the order in the first step. What is computed after that is `counted`, which must
stay as it is until the end.
"""

from collections.abc import Generator, Iterable
from collections.abc import Sequence as Items
from itertools import islice, takewhile
from typing import Final

from msgspec import Struct

from engine.domain.events import Criterion
from engine.domain.terms import CompetitorId
from projections.board.classification import Classified, Counted, classified
from projections.board.enrolment import Enrolment
from projections.board.order import OrderedLines

CLASSIFIED_SUMS_MAX: Final = 10_000_000
"""Sums of competitions that one question may look at."""


class _Level(Struct, frozen=True):
    """Those who are level in the leading criteria: who they are, in the order of enrolment; how many lines are above;
    and what parts the first of them from the line above and below."""

    competitor_ids: Items[CompetitorId]
    above: int
    decided_by: int | None
    parted_below_by: int | None


def leading(criteria: Items[Criterion]) -> int:
    """How many criteria at the beginning are totals alone."""
    return len(list(takewhile(lambda criterion: criterion.best is None and criterion.among is None, criteria)))


class ClassifiedLines:
    """`order` is by the `leading` criteria; None: there are none. `known` keeps the lines of groups that were computed,
    by how many lines are above them, for as long as nothing changes."""

    def __init__(
        self,
        counted: Counted,
        criteria: Items[Criterion],
        enrolment: Enrolment,
        order: OrderedLines | None,
        known: dict[int, list[Classified]],
    ) -> None:
        self._counted = counted
        self._criteria = criteria
        self._leading = leading(criteria)
        self._enrolment = enrolment
        self._length = len(enrolment)
        self._order = order
        self._known = known

    def __len__(self) -> int:
        return self._length

    def run(self, start: int, stop: int) -> Generator[None, None, list[Classified]]:
        """The lines from offset `start` to before `stop`, fewer if there are no more."""
        return (yield from self._run(list(self._levels(start, stop)), start, stop))

    def around(self, competitor_id: CompetitorId, span: int) -> Generator[None, None, list[Classified] | None]:
        """The line of a competitor with so many above and below it; None: they are not enrolled."""
        hers = self._level_of(competitor_id)
        if hers is None:
            return None
        stop = hers.above + len(hers.competitor_ids) + span
        levels = list(self._levels(max(hers.above - span, 0), stop))
        lines = yield from self._lines(hers)
        middle = hers.above + next(n for n, line in enumerate(lines) if line.competitor_id == competitor_id)
        return (yield from self._run(levels, max(middle - span, 0), middle + span + 1))

    def of(
        self, competitor_ids: Iterable[CompetitorId]
    ) -> Generator[None, None, dict[CompetitorId, Classified | None]]:
        """The lines of these competitors; None: not enrolled."""
        levels = {competitor_id: self._level_of(competitor_id) for competitor_id in competitor_ids}
        found: dict[CompetitorId, Classified | None] = dict.fromkeys(levels)
        for level in {level.above: level for level in levels.values() if level is not None}.values():
            for line in (yield from self._lines(level)):
                if line.competitor_id in found:
                    found[line.competitor_id] = line
        return found

    def _run(self, levels: Iterable[_Level], start: int, stop: int) -> Generator[None, None, list[Classified]]:
        found: list[Classified] = []
        for level in levels:
            first, end = max(start - level.above, 0), max(stop - level.above, 0)
            if first < len(level.competitor_ids):
                found += islice((yield from self._lines(level)), first, end)
        return found

    def _level_of(self, competitor_id: CompetitorId) -> _Level | None:
        if self._order is None:
            return next(self._levels(0, 1)) if competitor_id in self._enrolment else None
        line = self._order.line(competitor_id)
        return None if line is None else next(self._levels(*self._order.level(line)))

    def _levels(self, start: int, stop: int) -> Generator[_Level, None, None]:
        """The groups that lines between these offsets belong to. Not step by step: others would change the order."""
        if self._order is None:
            yield _Level(self._enrolment.listed(), 0, None, None)
            return
        while start < min(stop, len(self)):
            ((line, first),) = self._order.run(start, start + 1)
            above, end = self._order.level(line)
            if end - above == len(self):
                competitor_ids = self._enrolment.listed()
            else:
                competitor_ids = [competitor_id for _, competitor_id in self._order.run(above, end)]
            yield _Level(
                competitor_ids,
                above,
                None if above == 0 else self._parting(self._order.run(above - 1, above)[0][1], first),
                None if end == len(self) else self._parting(first, self._order.run(end, end + 1)[0][1]),
            )
            start = end

    def _parting(self, one: CompetitorId, other: CompetitorId) -> int:
        """The first of the leading criteria in which these two differ."""
        return next(
            number
            for number, criterion in enumerate(self._criteria)
            if self._counted.total(criterion.unity_id, one) != self._counted.total(criterion.unity_id, other)
        )

    def _lines(self, level: _Level) -> Generator[None, None, list[Classified]]:
        if level.above in self._known:
            return self._known[level.above]
        if len(level.competitor_ids) == 1:
            lines = [self._single(level)]
        else:
            lines = yield from classified(
                self._counted,
                self._criteria,
                level.competitor_ids,
                after=self._leading,
                above=level.above,
                decided_by=level.decided_by,
                sums_max=CLASSIFIED_SUMS_MAX,
            )
            self._known[level.above] = lines
        return lines

    def _single(self, level: _Level) -> Classified:
        """The line of one who is level with nobody: the values that part it from its neighbours were needed."""
        (competitor_id,) = level.competitor_ids
        needed = 1 + max(-1 if by is None else by for by in (level.decided_by, level.parted_below_by))
        values = [self._counted.total(criterion.unity_id, competitor_id) for criterion in self._criteria[:needed]]
        missing = [None] * (len(self._criteria) - needed)
        return Classified(competitor_id, level.above + 1, (*values, *missing), level.decided_by)
