"""Classification: the competitors of a ranking in the order of a chain of criteria.

THE RULE. Competitors are ordered by the first criterion; those who are equal in it by the second; and so on. Those who
are equal in all share a position, which is 1 + the number of lines above them (1, 2, 2, 4), and stand in the order of
enrolment. A criterion compares totals of a unity, by the unity's sort.

BEST. Of a criterion with `best: N`, a competitor's value is what they got without a competition, and of their sums in
competitions the N best ones; all, if they have fewer. A competition is one of theirs once a delta of theirs names it,
even if it adds up to 0. One that is voided is none.

AMONG THE TIED. Of a criterion with `among: tied`, a value is what the competitor got in the competitions that count:
those with two or more of the tied group among their participants. Consecutive such criteria are a block. The group that
is tied on reaching a block stays the group for every criterion in it. If it has parted then, each smaller group that is
still tied begins the block anew, among itself. If it has not, it goes on behind the block.

So each run over a block ends the group, makes it smaller, or goes on behind; there is an end to it. The values of a
line are those of the last run over each criterion, None where the line stood alone before it.

Pure.
"""

from collections.abc import Callable, Collection, Generator, Iterable
from collections.abc import Sequence as Items
from heapq import merge, nlargest, nsmallest
from itertools import islice
from typing import Final

from msgspec import Struct

from engine.domain.errors import TooMuchWork
from engine.domain.events import Criterion
from engine.domain.terms import CompetitionId, CompetitorId, Sort, UnityId
from projections.board.board import Board, Ranking


class Classified(Struct, frozen=True, gc=False):
    """One competitor's line. `values` has one for each criterion; None: it was not needed. `decided_by`: the number,
    from 0, of the criterion that parts the line from the one above it; None: nothing does, or it is the first."""

    competitor_id: CompetitorId
    position: int
    values: tuple[int | None, ...]
    decided_by: int | None


class Counted:
    """What the values of a ranking's criteria are counted from: the ranking as it is on its board."""

    def __init__(self, board: Board, ranking: Ranking) -> None:
        self._unities = ranking.unities
        self._competitions = board.competitions
        self._voided: Collection[CompetitionId] = board.voided

    def sort(self, unity_id: UnityId) -> Sort:
        return self._unities[unity_id].sort

    def total(self, unity_id: UnityId, competitor_id: CompetitorId) -> int:
        return self._unities[unity_id].totals.get(competitor_id)

    def sums(self, unity_id: UnityId, competitor_id: CompetitorId) -> list[tuple[CompetitionId, int]]:
        """What a competitor got in each competition, voided ones too."""
        return self._unities[unity_id].competition_sums.of(competitor_id)

    def is_voided(self, competition_id: CompetitionId) -> bool:
        return competition_id in self._voided

    def participants(self, competition_id: CompetitionId) -> Items[CompetitorId]:
        competition = self._competitions.get(competition_id)  # none: its event was set aside
        return () if competition is None else competition.participants


def in_force(ranking: Ranking) -> tuple[Criterion, ...]:
    """The criteria that a ranking is classified by: those that were declared, or the main unity alone."""
    return ranking.criteria or (Criterion(unity_id=next(iter(ranking.unities))),)


def classified(
    counted: Counted,
    criteria: Items[Criterion],
    group: Iterable[CompetitorId],
    *,
    after: int = 0,
    above: int = 0,
    decided_by: int | None = None,
    sums_max: int | None = None,
) -> Generator[None, None, list[Classified]]:
    """The lines of a group, which stands in the order of enrolment, with pauses for the turns of others.

    `after`: the group is equal in so many criteria already, all of them without `best` and `among`. `above`: so many
    lines stand above it. `decided_by`: of its first line. Raises TooMuchWork if it would look at more than `sums_max`
    sums.
    """
    return (yield from _Classifying(counted, criteria, sums_max).lines(list(group), after, above, decided_by))


class _Group(Struct):
    """Competitors who are still tied before the criterion `reached`."""

    competitor_ids: list[CompetitorId]
    reached: int
    decided_by: int | None


_Value = Callable[[CompetitorId], int]
_Counts = Callable[[CompetitionId], bool]
_STEP_COMPETITORS: Final = 2_000


class _Classifying:
    def __init__(self, counted: Counted, criteria: Items[Criterion], sums_max: int | None) -> None:
        self._counted = counted
        self._criteria = criteria
        self._sums_max = self._sums_left = sums_max
        self._values: dict[CompetitorId, list[int | None]] = {}

    def lines(
        self, competitor_ids: list[CompetitorId], after: int, above: int, decided_by: int | None
    ) -> Generator[None, None, list[Classified]]:
        for number, competitor_id in enumerate(competitor_ids, start=1):
            known = [self._counted.total(criterion.unity_id, competitor_id) for criterion in self._criteria[:after]]
            self._values[competitor_id] = [*known, *[None] * (len(self._criteria) - after)]
            if number % _STEP_COMPETITORS == 0:
                yield
        found: list[Classified] = []
        waiting = [_Group(competitor_ids, after, decided_by)]  # the last is the next; no recursion, so any depth
        while waiting:
            group = waiting.pop()
            if len(group.competitor_ids) > 1 and group.reached < len(self._criteria):
                waiting += reversed((yield from self._parted(group)))
                continue
            position = above + len(found) + 1
            by = group.decided_by
            for number, competitor_id in enumerate(group.competitor_ids, start=1):
                found.append(Classified(competitor_id, position, tuple(self._values.pop(competitor_id)), by))
                by = None
                if number % _STEP_COMPETITORS == 0:
                    yield
        return found

    def _parted(self, group: _Group) -> Generator[None, None, list[_Group]]:
        """What becomes of a group at a criterion, or at the block that begins there, in order."""
        if self._criteria[group.reached].among is None:
            value = self._value_of(self._criteria[group.reached])
            parts = yield from self._parts(group, group.reached, value)
            return [_Group(part.competitor_ids, group.reached + 1, part.decided_by) for part in parts]
        begin, end = group.reached, _end_of_block(self._criteria, group.reached)
        for competitor_id in group.competitor_ids:
            self._values[competitor_id][begin:end] = [None] * (end - begin)
        yield
        counts = self._counting(group.competitor_ids)
        parts = [group]
        for number in range(begin, end):
            value, finer = self._value_among(self._criteria[number], counts), []
            for part in parts:
                finer += yield from self._parts(part, number, value)
            parts = finer
        reached = end if len(parts) == 1 else begin
        return [_Group(part.competitor_ids, reached, part.decided_by) for part in parts]

    def _parts(self, group: _Group, number: int, value: _Value) -> Generator[None, None, list[_Group]]:
        """The groups that a criterion parts this one into, the better first."""
        if len(group.competitor_ids) == 1:
            return [group]
        for competitor_id in group.competitor_ids:
            self._values[competitor_id][number] = value(competitor_id)
            yield
        best_first = self._counted.sort(self._criteria[number].unity_id) is Sort.DESC

        def its_value(competitor_id: CompetitorId) -> int:
            return self._values[competitor_id][number] or 0

        runs = []
        for start in range(0, len(group.competitor_ids), _STEP_COMPETITORS):
            run = group.competitor_ids[start : start + _STEP_COMPETITORS]
            runs.append(sorted(run, key=its_value, reverse=best_first))
            yield
        parts: list[_Group] = []
        previous = None
        for place, competitor_id in enumerate(merge(*runs, key=its_value, reverse=best_first)):  # stable, reversed too
            if its_value(competitor_id) != previous:
                previous = its_value(competitor_id)
                parts.append(_Group([], number, number if parts else group.decided_by))
            parts[-1].competitor_ids.append(competitor_id)
            if place % _STEP_COMPETITORS == 0:
                yield
        return parts

    # ── Values ──────────────────────────────────────────────────────────────────────────────────────────

    def _value_of(self, criterion: Criterion) -> _Value:
        unity_id, best = criterion.unity_id, criterion.best
        counted = self._counted
        if best is None:
            return lambda competitor_id: counted.total(unity_id, competitor_id)

        def value(competitor_id: CompetitorId) -> int:
            sums = self._looked_at(unity_id, competitor_id)
            free = counted.total(unity_id, competitor_id) - sum([given for _, given in sums])
            return free + self._best(criterion, [given for c, given in sums if not counted.is_voided(c)])

        return value

    def _value_among(self, criterion: Criterion, counts: _Counts) -> _Value:
        def value(competitor_id: CompetitorId) -> int:
            sums = self._looked_at(criterion.unity_id, competitor_id)
            return self._best(criterion, [given for competition_id, given in sums if counts(competition_id)])

        return value

    def _looked_at(self, unity_id: UnityId, competitor_id: CompetitorId) -> list[tuple[CompetitionId, int]]:
        """A competitor's sums. Raises TooMuchWork."""
        sums = self._counted.sums(unity_id, competitor_id)
        if self._sums_left is not None:
            self._sums_left -= len(sums) + 1
            if self._sums_left < 0:
                raise TooMuchWork("sums of competitions", self._sums_max or 0)
        return sums

    def _best(self, criterion: Criterion, sums: list[int]) -> int:
        if criterion.best is None or len(sums) <= criterion.best:
            return sum(sums)
        highest = self._counted.sort(criterion.unity_id) is Sort.DESC
        return sum((nlargest if highest else nsmallest)(criterion.best, sums))

    def _counting(self, group: Iterable[CompetitorId]) -> _Counts:
        """Tells of a competition whether it counts among this group."""
        tied = frozenset(group)
        known: dict[CompetitionId, bool] = {}

        def counts(competition_id: CompetitionId) -> bool:
            if (told := known.get(competition_id)) is None:
                among = (c for c in self._counted.participants(competition_id) if c in tied)
                is_met = len(list(islice(among, 2))) == 2
                told = known[competition_id] = is_met and not self._counted.is_voided(competition_id)
            return told

        return counts


def _end_of_block(criteria: Items[Criterion], begin: int) -> int:
    """The number of the first criterion behind the block that begins there."""
    return next((n for n in range(begin, len(criteria)) if criteria[n].among is None), len(criteria))
