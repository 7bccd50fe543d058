"""Classification: the competitors of a ranking in the order of a chain of criteria.

THE RULE. Competitors are ordered by the first criterion, competitors equal in it by the second, and so on. Competitors
equal in all criteria share a position, which is 1 + the number of lines above them (1, 2, 2, 4), and are in the order
of enrolment. A criterion compares totals of a unity, by the unity's sort.

BEST. With `best: N`, a competitor's value is their points without a competition plus their N best sums in competitions,
or all of them if there are fewer. A competition belongs to a competitor if a delta of theirs names it, even if the sum
is 0. A voided competition belongs to nobody.

AMONG THE TIED. With `among: tied`, a competition counts only if two or more members of the tied group are among its
participants. Consecutive criteria of this kind form a block. The group that is tied on reaching a block stays the same
for every criterion in it. If the block splits the group, each smaller group that is still tied starts the block again,
among its own members. If not, the group continues after the block.

FIRST. With `first: true`, a competitor's value is the sequence of the last event that changed their total; 0: none has.
The lower value is better. In a unity that counts results, it is the event of the result: among the results that count,
the first of the best ones, or the first of the equal ones at the end.

So each run over a block splits the group completely, makes it smaller, or moves past the block, and the procedure
terminates. The values of a line are those of the last run over each criterion; None: the line was no longer tied.

Pure.
"""

from array import array
from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from collections.abc import Sequence as Items
from heapq import merge
from itertools import islice, takewhile
from typing import Final, TypeAlias

from msgspec import Struct

from engine.domain.errors import TooMuchWork
from engine.domain.events import Criterion
from engine.domain.notation import WHOLE, Notation
from engine.domain.steps import collected
from engine.domain.terms import CompetitionId, CompetitorId, Sort, UnityId
from projections.board.board import Board, Ranking
from projections.board.competition_sums import SumsByCompetition


class Classified(Struct, frozen=True, gc=False):
    """One competitor's line. `values` has one for each criterion; None: it was not needed. `decided_by`: the number,
    from 0, of the criterion that separates the line from the one above it; None: none does, or it is the first line."""

    competitor_id: CompetitorId
    position: int
    values: tuple[int | None, ...]
    decided_by: int | None


class Counted:
    """The source of the values of a ranking's criteria: the ranking on its board. `lacks_sums`: whether the ranking
    needs its sums of competitions first."""

    def __init__(self, board: Board, ranking: Ranking) -> None:
        self._unities = ranking.unities
        self._sums = ranking.competition_sums
        self._competitions = board.competitions
        self._voided: Collection[CompetitionId] = board.voided

    def sort(self, unity_id: UnityId) -> Sort:
        return self._unities[unity_id].sort

    def total(self, unity_id: UnityId, competitor_id: CompetitorId) -> int:
        return self._unities[unity_id].totals.get(competitor_id)

    def sums(self, unity_id: UnityId, competitor_id: CompetitorId) -> SumsByCompetition:
        """A competitor's sums in each competition at the call, including voided ones."""
        assert self._sums is not None
        return self._sums.of(unity_id, competitor_id)

    def reached(self, unity_id: UnityId, competitor_id: CompetitorId) -> int:
        """The event since which a competitor has had their total, at the call."""
        assert self._sums is not None
        return self._sums.reached(unity_id, competitor_id)

    def is_voided(self, competition_id: CompetitionId) -> bool:
        return competition_id in self._voided

    def participants(self, competition_id: CompetitionId) -> Items[CompetitorId]:
        competition = self._competitions.get(competition_id)  # None: its event was set aside
        return () if competition is None else competition.participants


def in_force(ranking: Ranking) -> tuple[Criterion, ...]:
    """The criteria that a ranking is classified by: the declared ones, or only the main unity."""
    return ranking.criteria or (Criterion(unity_id=next(iter(ranking.unities))),)


def leading(criteria: Items[Criterion]) -> int:
    """The number of leading criteria that are plain totals."""
    return len(list(takewhile(compares_totals, criteria)))


def compares_totals(criterion: Criterion) -> bool:
    """Whether its values are totals."""
    return criterion.best is None and criterion.among is None and not criterion.first


def by_totals_alone(criteria: Items[Criterion]) -> bool:
    """Whether the values of all criteria are totals."""
    return leading(criteria) == len(criteria)


def value_notations(ranking: Ranking, criteria: Items[Criterion]) -> list[Notation]:
    """The notations of the values of these criteria."""
    return [WHOLE if one.first else ranking.unities[one.unity_id].notation for one in criteria]


def lacks_sums(ranking: Ranking) -> bool:
    """Whether its criteria need sums of competitions that it does not have."""
    return ranking.competition_sums is None and not by_totals_alone(ranking.criteria)


def classified(
    counted: Counted,
    criteria: Items[Criterion],
    group: Iterable[CompetitorId],
    *,
    after: int = 0,
    above: int = 0,
    decided_by: int | None = None,
    sums_max: int | None = None,
) -> Generator[None, None, "ClassifiedGroup"]:
    """The lines of a group, given in the order of enrolment, in time slices. The group must not change meanwhile.

    `after`: the number of criteria in which the group is equal, all without `best` and `among`. `above`: the number of
    lines above it. `decided_by`: that of its first line. Raises TooMuchWork if it would examine more than `sums_max`
    sums.
    """
    members, rest = array("q"), iter(group)
    while run := list(islice(rest, _STEP_SORTED)):
        members.extend(run)
        yield
    return (yield from _Classifying(counted, criteria, members, sums_max).group(after, above, decided_by))


class ClassifiedGroup:
    """The lines of a group, in order. They are stored as columns, and made on demand. So a hundred thousand lines cost
    the garbage collector nothing, and are freed immediately."""

    def __init__(self, competitor_ids: "array[int]", criteria_count: int) -> None:
        # Members have numbers, from 0, in the order of enrolment.
        self.competitor_ids = competitor_ids
        self.values: list[_Column] = []  # of each criterion, by member
        self.valued = array("b", bytes(len(competitor_ids)))  # by member: how many criteria were needed
        self.order = array("q")  # members, in order
        self.positions = array("q")  # by place in that order
        self.decided_by = array("b")  # by place; -1: nothing
        self._criteria_count = criteria_count

    def __len__(self) -> int:
        return len(self.competitor_ids)

    def __iter__(self) -> Iterator[Classified]:
        return map(self._line, range(len(self)))

    @property
    def size_bytes(self) -> int:
        """Bytes in memory, estimated."""
        return len(self) * (26 + 8 * self._criteria_count)

    def lines(self, start: int, stop: int) -> list[Classified]:
        """The lines from place `start` of the group to before `stop`, fewer if there are no more."""
        return [self._line(place) for place in range(start, min(stop, len(self)))]

    def lines_among(self, sought: Collection[CompetitorId]) -> Generator[None, None, list[Classified]]:
        """The lines of those sought, in time slices."""
        found: list[Classified] = []
        for place, member in enumerate(self.order):
            if self.competitor_ids[member] in sought:
                found.append(self._line(place))
            if place % _STEP_SORTED == 0:
                yield
        return found

    def place(self, competitor_id: CompetitorId) -> Generator[None, None, int]:
        """A member's place in the order of the group, from 0, in time slices."""
        member = yield from _index(self.competitor_ids, competitor_id)
        return (yield from _index(self.order, member))

    def _line(self, place: int) -> Classified:
        member, by = self.order[place], self.decided_by[place]
        values: list[int | None] = [column[member] for column in self.values[: self.valued[member]]]
        values += [None] * (self._criteria_count - len(values))
        competitor_id = CompetitorId(self.competitor_ids[member])
        return Classified(competitor_id, self.positions[place], tuple(values), None if by < 0 else by)


def _index(numbers: "array[int]", number: int) -> Generator[None, None, int]:
    """Where a number stands that is there."""
    start = 0
    while number not in (some := numbers[start : start + _STEP_SOUGHT]):
        start += len(some)
        yield
    return start + some.index(number)


class _Tied(Struct, gc=False):
    """A group that is still tied before the criterion `reached`: the places `start` to before `end` of the order so
    far."""

    start: int
    end: int
    reached: int
    decided_by: int | None


_Column: TypeAlias = "array[int] | list[int]"
"""An array, or a list if a value is beyond 64 bits."""
_Value = Callable[[CompetitorId], Generator[None, None, int]]
_Counting = Callable[[SumsByCompetition], Generator[None, None, list[int]]]
"""Selects the sums that count."""
_STEP_COMPETITORS: Final = 200
_STEP_SORTED: Final = 1_000
"""Competitors that are sorted in one step. The runs are then merged, so there must not be too many of them."""
_STEP_SOUGHT: Final = 20_000
_STEP_SUMS: Final = 1_000


class _Classifying:
    def __init__(
        self, counted: Counted, criteria: Items[Criterion], members: "array[int]", sums_max: int | None
    ) -> None:
        self._counted = counted
        self._criteria = criteria
        self._sums_max = self._sums_left = sums_max
        self._group = ClassifiedGroup(members, len(criteria))

    def group(self, after: int, above: int, decided_by: int | None) -> Generator[None, None, ClassifiedGroup]:
        group = self._group
        yield from self._begin(after)
        waiting = [_Tied(0, len(group), after, decided_by)]  # a stack instead of recursion, for any depth
        while waiting:
            tied = waiting.pop()
            if tied.end - tied.start > 1 and tied.reached < len(self._criteria):
                waiting += reversed((yield from self._parted(tied)))
                continue
            by = -1 if tied.decided_by is None else tied.decided_by
            for place in range(tied.start, tied.end):
                group.positions.append(above + tied.start + 1)
                group.decided_by.append(by)
                by = -1
                if place % _STEP_COMPETITORS == 0:
                    yield
        return group

    def _begin(self, after: int) -> Generator[None, None, None]:
        """Enters all members in the order of enrolment, with their values of the criteria in which they are equal."""
        group = self._group
        for start in range(0, len(group), _STEP_SORTED):
            group.order.extend(range(start, min(start + _STEP_SORTED, len(group))))
            yield
        for _ in self._criteria:
            group.values.append(array("q", bytes(8 * len(group))))
            yield
        for number, criterion in enumerate(self._criteria[:after]):
            for member, competitor_id in enumerate(group.competitor_ids):
                self._give(number, member, self._counted.total(criterion.unity_id, CompetitorId(competitor_id)))
                if member % _STEP_COMPETITORS == 0:
                    yield

    def _give(self, number: int, member: int, value: int) -> None:
        """Sets a member's value of a criterion. The values of earlier criteria are already set."""
        self._group.valued[member] = number + 1
        try:
            self._group.values[number][member] = value
        except OverflowError:
            column = self._group.values[number] = list(self._group.values[number])
            column[member] = value

    def _parted(self, tied: _Tied) -> Generator[None, None, list[_Tied]]:
        """The groups that a group splits into at a criterion, or at the block that starts there, in order."""
        begin = tied.reached
        if self._criteria[begin].among is None:
            parts = yield from self._parts(tied, begin, self._value_of(self._criteria[begin]))
            reached = begin + 1
        else:
            end = _end_of_block(self._criteria, begin)
            parts = yield from self._parts_of_block(tied, end)
            reached = end if len(parts) == 1 else begin
        for place, part in enumerate(parts, start=1):
            part.reached = reached
            if place % _STEP_COMPETITORS == 0:
                yield
        return parts

    def _parts_of_block(self, tied: _Tied, end: int) -> Generator[None, None, list[_Tied]]:
        """The groups into which a block of criteria, from the one reached to before `end`, splits this one."""
        begin, group = tied.reached, self._group
        competitor_ids = set[CompetitorId]()
        for place, member in enumerate(group.order[tied.start : tied.end], start=1):
            group.valued[member] = begin
            competitor_ids.add(CompetitorId(group.competitor_ids[member]))
            if place % _STEP_COMPETITORS == 0:
                yield
        counting = self._counting_among(competitor_ids)
        parts = [tied]
        for number in range(begin, end):
            value, finer = self._value_among(self._criteria[number], counting), list[_Tied]()
            for place, part in enumerate(parts, start=1):
                finer += yield from self._parts(part, number, value)
                if place % _STEP_COMPETITORS == 0:
                    yield
            parts = finer
        return parts

    def _parts(self, tied: _Tied, number: int, value: _Value) -> Generator[None, None, list[_Tied]]:
        """The groups into which a criterion splits this one, better ones first."""
        if tied.end - tied.start == 1:
            return [tied]
        group, members = self._group, self._group.order[tied.start : tied.end]
        for member in members:
            self._give(number, member, (yield from value(CompetitorId(group.competitor_ids[member]))))
        its_value = group.values[number].__getitem__
        criterion = self._criteria[number]
        best_first = not criterion.first and self._counted.sort(criterion.unity_id) is Sort.DESC
        runs = yield from collected(
            sorted(members[start : start + _STEP_SORTED], key=its_value, reverse=best_first)
            for start in range(0, len(members), _STEP_SORTED)
        )
        parts: list[_Tied] = []
        previous = None
        in_order = merge(*runs, key=its_value, reverse=best_first)  # stable, reversed too
        for place, member in enumerate(in_order, start=tied.start):
            if its_value(member) != previous:
                previous = its_value(member)
                parts.append(_Tied(place, place, number, number if parts else tied.decided_by))
            parts[-1].end = place + 1
            group.order[place] = member
            if place % _STEP_COMPETITORS == 0:
                yield
        return parts

    # ── Values ──────────────────────────────────────────────────────────────────────────────────────────

    def _value_of(self, criterion: Criterion) -> _Value:
        unity_id, counted = criterion.unity_id, self._counted

        def total(competitor_id: CompetitorId) -> Generator[None, None, int]:
            yield
            return counted.total(unity_id, competitor_id)

        def free_and_best(competitor_id: CompetitorId) -> Generator[None, None, int]:
            in_all, in_best = yield from self._added_up(criterion, competitor_id, self._counting_not_voided)
            return counted.total(unity_id, competitor_id) - in_all + in_best

        def reached(competitor_id: CompetitorId) -> Generator[None, None, int]:
            yield
            return counted.reached(unity_id, competitor_id)

        if criterion.first:
            return reached
        return total if criterion.best is None else free_and_best

    def _value_among(self, criterion: Criterion, counting: _Counting) -> _Value:
        def value(competitor_id: CompetitorId) -> Generator[None, None, int]:
            _, among_them = yield from self._added_up(criterion, competitor_id, counting)
            return among_them

        return value

    def _added_up(
        self, criterion: Criterion, competitor_id: CompetitorId, counting: _Counting
    ) -> Generator[None, None, tuple[int, int]]:
        """A competitor's points in all competitions, and in those that count (the best ones, if `best` is set). Raises
        TooMuchWork."""
        yield
        competition_ids, given = self._looked_at(criterion.unity_id, competitor_id)
        best_first = self._counted.sort(criterion.unity_id) is Sort.DESC
        in_all, kept = 0, list[int]()
        for start in range(0, len(given), _STEP_SUMS):
            some = competition_ids[start : start + _STEP_SUMS], given[start : start + _STEP_SUMS]
            in_all += sum(some[1])
            kept += yield from counting(some)
            kept = [sum(kept)] if criterion.best is None else sorted(kept, reverse=best_first)[: criterion.best]
        return in_all, sum(kept)

    def _looked_at(self, unity_id: UnityId, competitor_id: CompetitorId) -> SumsByCompetition:
        """A competitor's sums. Raises TooMuchWork."""
        sums = self._counted.sums(unity_id, competitor_id)
        if self._sums_left is not None:
            self._sums_left -= len(sums[0]) + 1
            if self._sums_left < 0:
                raise TooMuchWork("sums of competitions", self._sums_max or 0)
        return sums

    def _counting_not_voided(self, sums: SumsByCompetition) -> Generator[None, None, list[int]]:
        yield
        return [
            given for competition_id, given in zip(*sums, strict=True) if not self._counted.is_voided(competition_id)
        ]

    def _counting_among(self, tied: Collection[CompetitorId]) -> _Counting:
        """Counts the competitions in which at least two of the competitors took part."""
        known: dict[CompetitionId, bool] = {}

        def counting(sums: SumsByCompetition) -> Generator[None, None, list[int]]:
            for competition_id in sums[0]:
                if competition_id not in known:
                    among = (c for c in self._counted.participants(competition_id) if c in tied)
                    is_met = len(list(islice(among, 2))) == 2
                    known[competition_id] = is_met and not self._counted.is_voided(competition_id)
                    yield  # after each competition: it may have thousands of participants
            yield
            return [given for competition_id, given in zip(*sums, strict=True) if known[competition_id]]

        return counting


def _end_of_block(criteria: Items[Criterion], begin: int) -> int:
    """The number of the first criterion after the block that begins there."""
    return next((n for n in range(begin, len(criteria)) if criteria[n].among is None), len(criteria))
