"""Classification: the competitors of a ranking in the order of a chain of criteria.

THE RULE. Competitors are ordered by the first criterion, competitors equal in it by the second, and so on. Competitors
equal in all criteria share a position, which is 1 + the number of lines above them (1, 2, 2, 4), and are in the order
of enrolment. A criterion compares totals of a unity, by the unity's sort.

BEST. With `best: N`, a competitor's value is their points without a competition plus their N best sums in competitions,
or all of them if there are fewer. A competition belongs to a competitor if a delta of theirs names it, even if the sum
is 0. A voided competition belongs to nobody.

DROP. With `drop: [[4, 1], [8, 2]]`, the worst sum does not count once four competitions belong to a competitor, nor the
two worst ones once eight do. What is left may be further reduced by `best`.

AMONG THE TIED. With `among: tied`, a competition counts only if two or more members of the tied group are among its
participants. Consecutive criteria of this kind form a block. The group that is tied on reaching a block stays the same
for every criterion in it. If the block splits the group, each smaller group that is still tied starts the block again,
among its own members. If not, the group continues after the block.

FIRST. With `first: true`, a competitor's value is the sequence of the last event that changed their total by points
that count; 0: none did. The lower value is better. In a unity that counts results, it is the event of the result: among
the results that count, the first of the best ones, or the first of the equal ones at the end.

TIE-BREAKS. With `tiebreak`, a competitor's value follows from the games of the competitions that count
(`tiebreaks.py`, `games.py`); the higher one is better, but in a direct encounter among the tied the lower place. Those
without a value have 0. Means are compared exactly.

QUOTIENTS. With `ratio` or `per`, a competitor's value is their total divided by that in another unity (`quotients.py`),
compared exactly, by the sort of the first.

So each run over a block splits the group completely, makes it smaller, or moves past the block, and the procedure
terminates. The values of a line are those of the last run over each criterion; None: the line was no longer tied.

Pure.
"""

from array import array
from collections.abc import Callable, Collection, Iterable, Iterator
from collections.abc import Sequence as Items
from datetime import datetime
from itertools import islice, takewhile
from typing import Any, Final, TypeAlias

from msgspec import Struct

from engine.domain.errors import TooMuchWork
from engine.domain.events import Criterion
from engine.domain.notation import WHOLE, Notation
from engine.domain.steps import Steps, in_order
from engine.domain.terms import CompetitionId, CompetitorId, Sort, UnityId
from projections.board.board import Board, Ranking, Unity
from projections.board.competition_sums import CompetitionSums, SumsByCompetition
from projections.board.games import Games, played_by, tiebreaks_of
from projections.board.quotients import Quotient, quotient_notation, quotient_of
from projections.board.standing import position_after
from projections.board.tiebreaks import Amount, Tiebreaks, notation_of_value, shown_value


class Classified(Struct, frozen=True, gc=False):
    """One competitor's line. `values` has one for each criterion; None: it was not needed. `decided_by`: the number,
    from 0, of the criterion that separates the line from the one above it; None: none does, or it is the first line."""

    competitor_id: CompetitorId
    position: int
    values: tuple[int | None, ...]
    decided_by: int | None


class Counted:
    """The source of the values of a ranking's criteria: the ranking on its board, and, unless totals alone decide, its
    sums of competitions. `on`: only what had taken place by then counts; None: all."""

    def __init__(
        self,
        board: Board,
        ranking: Ranking,
        sums: CompetitionSums | None = None,
        games: Games | None = None,
        on: datetime | None = None,
    ) -> None:
        self._unities = ranking.unities
        self._sums = sums
        self.competitions = board.competitions
        self._voided: Collection[CompetitionId] = board.voided
        self._ranking = ranking
        self._games = games or Games()
        self._on = on
        self._tiebreaks: dict[tuple[UnityId, str | None, str | None, bool], Tiebreaks] = {}

    def sort(self, unity_id: UnityId) -> Sort:
        return self._unities[unity_id].sort

    def total(self, unity_id: UnityId, competitor_id: CompetitorId) -> int:
        return self._unities[unity_id].totals.get(competitor_id)

    def notation(self, unity_id: UnityId) -> Notation:
        return self._unities[unity_id].notation

    def quotient(self, criterion: Criterion, competitor_id: CompetitorId) -> Quotient:
        """A competitor's value of a criterion that divides totals."""
        assert criterion.divisor is not None
        ids = criterion.unity_id, criterion.divisor
        above, below = [self.notation(one) for one in ids]
        dividend, divisor = [self.notation(one).shown(self.total(one, competitor_id)) for one in ids]
        return quotient_of(criterion, dividend, divisor, (above, below), self.sort(criterion.unity_id))

    def stored(self, criterion: Criterion, quotient: Quotient) -> int:
        """Such a value in the stored form of its notation."""
        return _notation(criterion, self._unities[criterion.unity_id]).kept(quotient.shown)

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
        competition = self.competitions.get(competition_id)  # None: its event was set aside
        return () if competition is None else competition.participants

    def took_place(self) -> Collection[CompetitionId] | None:
        """Of the competitions that give points, those whose games count unless they are voided; None: all."""
        if self._on is None and self._ranking.closed_at is None:
            return None
        assert self._sums is not None
        return self._sums.given

    def tiebreaks(self, criterion: Criterion) -> Steps[Tiebreaks]:
        """The tie-breaks with the points of a criterion, as they were when this object was created. Raises
        TooMuchWork."""
        rated = criterion.tiebreak == "ARO"
        key = criterion.unity_id, criterion.edition, criterion.pairing, rated
        if key not in self._tiebreaks:
            games = yield from self._games.of(self.competitions, self._ranking, self.took_place(), self._on)
            everybody = {*self._ranking.participants, *played_by(games)} if rated else ()
            ratings = {one: self.total(criterion.unity_id, one) for one in everybody}
            self._tiebreaks[key] = yield from tiebreaks_of(games, self._ranking, criterion, ratings)
        return self._tiebreaks[key]


def in_force(ranking: Ranking) -> tuple[Criterion, ...]:
    """The criteria that a ranking is classified by: the declared ones, or only the main unity."""
    return ranking.criteria or (Criterion(unity_id=next(iter(ranking.unities))),)


def leading(criteria: Items[Criterion]) -> int:
    """The number of leading criteria that are plain totals."""
    return len(list(takewhile(compares_totals, criteria)))


def compares_totals(criterion: Criterion) -> bool:
    """Whether its values are totals."""
    is_plain = criterion.among is None and criterion.tiebreak is None and criterion.divisor is None
    return is_plain and not (criterion.first or leaves_out(criterion))


def leaves_out(criterion: Criterion) -> bool:
    """Whether only some results count."""
    return criterion.best is not None or bool(criterion.drop)


def by_totals_alone(criteria: Items[Criterion]) -> bool:
    """Whether the values of all criteria are totals."""
    return leading(criteria) == len(criteria)


def has_tiebreaks(ranking: Ranking) -> bool:
    """Whether its criteria need its games."""
    return any(one.tiebreak is not None for one in ranking.criteria)


def value_notations(ranking: Ranking, criteria: Items[Criterion]) -> list[Notation]:
    """The notations of the values of these criteria."""
    return [_notation(one, ranking.unities[one.unity_id]) for one in criteria]


def _notation(criterion: Criterion, unity: Unity) -> Notation:
    if criterion.divisor is not None:
        return quotient_notation(criterion, unity.notation, unity.sort)
    return WHOLE if criterion.first else notation_of_value(criterion, unity.notation)


def needs_sums(ranking: Ranking) -> bool:
    """Whether its criteria need its sums of competitions; tie-breaks do in a closed ranking, which gets no points of
    later results."""
    if has_tiebreaks(ranking) and ranking.closed_at is not None:
        return True
    return any(not compares_totals(one) and one.tiebreak is None and one.divisor is None for one in ranking.criteria)


def classified(
    counted: Counted,
    criteria: Items[Criterion],
    group: Iterable[CompetitorId],
    *,
    after: int = 0,
    above: int = 0,
    decided_by: int | None = None,
    sums_max: int | None = None,
) -> Steps["ClassifiedGroup"]:
    """The lines of a group, given in the order of enrolment. The group must not change meanwhile.

    `after`: the number of criteria in which the group is equal, all plain totals. `above`: the number of
    lines above it. `decided_by`: that of its first line. Raises TooMuchWork if it would examine more than `sums_max`
    sums.
    """
    classifying, rest = _Classifying(counted, criteria, sums_max), iter(group)
    while run := list(islice(rest, _STEP_COMPETITORS)):
        classifying.enter(run, after)
        yield
    lines = classifying.group
    waiting = [_Tied(0, len(lines), after, decided_by)]  # a stack instead of recursion, for any depth
    while waiting:
        tied = waiting.pop()
        if tied.end - tied.start > 1 and tied.reached < len(criteria):
            waiting += reversed((yield from classifying.parted(tied)))
        else:
            lines.place_next(tied.end - tied.start, position_after(above + tied.start), tied.decided_by)
            yield
    return lines


class ClassifiedGroup:
    """The lines of a group, in order. They are stored as columns, and made on demand. So a hundred thousand lines cost
    the garbage collector nothing, and are freed immediately."""

    def __init__(self, criteria_count: int) -> None:
        # Members have numbers, from 0, in the order of enrolment.
        self.competitor_ids = array("q")
        self.values: list[_Column] = [array("q") for _ in range(criteria_count)]  # of each criterion, by member
        self.valued = array("b")  # by member: how many criteria were needed
        self.order = array("q")  # members, in order
        self.positions = array("q")  # by place in that order
        self.decided_by = array("b")  # by place; -1: nothing
        self._criteria_count = criteria_count

    def place_next(self, count: int, position: int, decided_by: int | None) -> None:
        """Places the next members of the order, who share a position."""
        self.positions.extend(array("q", [position]) * count)
        if count:
            self.decided_by.append(-1 if decided_by is None else decided_by)
            self.decided_by.extend(array("b", [-1]) * (count - 1))

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

    def lines_among(self, sought: Collection[CompetitorId]) -> Steps[list[Classified]]:
        """The lines of those sought."""
        found: list[Classified] = []
        for place, member in enumerate(self.order):
            if self.competitor_ids[member] in sought:
                found.append(self._line(place))
            if place % _STEP_PLACES == 0:
                yield
        return found

    def place(self, competitor_id: CompetitorId) -> Steps[int]:
        """A member's place in the order of the group, from 0."""
        member = yield from _index(self.competitor_ids, competitor_id)
        return (yield from _index(self.order, member))

    def _line(self, place: int) -> Classified:
        member, by = self.order[place], self.decided_by[place]
        values: list[int | None] = [column[member] for column in self.values[: self.valued[member]]]
        values += [None] * (self._criteria_count - len(values))
        competitor_id = CompetitorId(self.competitor_ids[member])
        return Classified(competitor_id, self.positions[place], tuple(values), None if by < 0 else by)


def _index(numbers: "array[int]", number: int) -> Steps[int]:
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
_STEP_COMPETITORS: Final = 200
_STEP_PLACES: Final = 1_000
_STEP_SOUGHT: Final = 20_000
_STEP_SUMS: Final = 1_000


class _Block(Struct):
    """A group that is tied on reaching a block of criteria, and which competitions count for it, as far as it is
    known."""

    tied: set[CompetitorId]
    counts: dict[CompetitionId, bool]


class _Classifying:
    """`group`: the lines so far."""

    def __init__(self, counted: Counted, criteria: Items[Criterion], sums_max: int | None) -> None:
        self.group = ClassifiedGroup(len(criteria))
        self._counted = counted
        self._criteria = criteria
        self._sums_max = self._sums_left = sums_max

    def enter(self, run: Items[CompetitorId], after: int) -> None:
        """Enters further members, who are equal in the criteria before the number `after`, with their values of
        these."""
        group = self.group
        group.order.extend(range(len(group), len(group) + len(run)))
        group.competitor_ids.extend(run)
        group.valued.extend([after] * len(run))
        for number, criterion in enumerate(self._criteria):
            equal = number < after
            values = [self._counted.total(criterion.unity_id, one) if equal else 0 for one in run]
            try:
                group.values[number].extend(array("q", values))
            except OverflowError:
                group.values[number] = [*group.values[number], *values]

    def parted(self, tied: _Tied) -> Steps[list[_Tied]]:
        """The groups that a group splits into at a criterion, or at the block that starts there, in order."""
        group, begin, end = self.group, tied.reached, _end_of_block(self._criteria, tied.reached)
        if begin == end:
            return (yield from self._parts(tied, begin, begin + 1, None))
        competitor_ids = set[CompetitorId]()
        for start in range(tied.start, tied.end, _STEP_COMPETITORS):
            for member in group.order[start : min(start + _STEP_COMPETITORS, tied.end)]:
                group.valued[member] = begin
                competitor_ids.add(CompetitorId(group.competitor_ids[member]))
            yield
        parts, block = [tied], _Block(competitor_ids, {})
        for number in range(begin, end):
            finer = list[_Tied]()
            for part in parts:
                finer += yield from self._parts(part, number, begin, block)
            parts = finer
        if len(parts) == 1:
            parts[0].reached = end
        return parts

    def _parts(self, tied: _Tied, number: int, reached: int, block: _Block | None) -> Steps[list[_Tied]]:
        """The groups into which a criterion splits this one, better ones first."""
        yield
        if tied.end - tied.start == 1:
            return [tied]
        group, criterion = self.group, self._criteria[number]
        members = group.order[tied.start : tied.end]
        its_value: Callable[[int], Any]
        best_first = not criterion.first and self._counted.sort(criterion.unity_id) is Sort.DESC
        if criterion.divisor is not None:
            its_value = (yield from self._quotients(number, criterion, members)).__getitem__
        elif criterion.tiebreak is None:
            for member in members:
                value = yield from self._value(criterion, CompetitorId(group.competitor_ids[member]), block)
                self._give(number, member, value)
            its_value = group.values[number].__getitem__
        else:
            exact = yield from self._broken(number, criterion, members)
            its_value, best_first = exact.__getitem__, criterion.tiebreak != "DE"
        ordered = yield from in_order(members, its_value, reverse=best_first)
        parts: list[_Tied] = []
        previous = None
        for place, member in enumerate(ordered, start=tied.start):
            if its_value(member) != previous:
                previous = its_value(member)
                parts.append(_Tied(place, place, reached, number if parts else tied.decided_by))
            parts[-1].end = place + 1
            group.order[place] = member
            if place % _STEP_COMPETITORS == 0:
                yield
        return parts

    def _give(self, number: int, member: int, value: int) -> None:
        """Sets a member's value of a criterion. The values of earlier criteria are already set."""
        self.group.valued[member] = number + 1
        try:
            self.group.values[number][member] = value
        except OverflowError:
            column = self.group.values[number] = list(self.group.values[number])
            column[member] = value

    # ── Values ──────────────────────────────────────────────────────────────────────────────────────────

    def _broken(self, number: int, criterion: Criterion, members: Iterable[int]) -> Steps[dict[int, Amount]]:
        """The exact values of a tie-break, by member. Those to be shown are set. Raises TooMuchWork."""
        tiebreaks = yield from self._counted.tiebreaks(criterion)
        of = {CompetitorId(self.group.competitor_ids[member]): member for member in members}
        among = tiebreaks.among(of) if criterion.tiebreak == "DE" else {}
        exact: dict[int, Amount] = {}
        for competitor_id, member in of.items():
            broken = among.get(competitor_id) or tiebreaks.of(criterion, competitor_id)
            exact[member] = 0 if broken is None else broken.value
            self._give(number, member, shown_value(criterion, broken))
            yield
        return exact

    def _quotients(self, number: int, criterion: Criterion, members: Iterable[int]) -> Steps[dict[int, Any]]:
        """The same of a criterion that divides totals."""
        exact: dict[int, Any] = {}
        for member in members:
            competitor_id = CompetitorId(self.group.competitor_ids[member])
            quotient = self._counted.quotient(criterion, competitor_id)
            exact[member] = quotient.compared
            self._give(number, member, self._counted.stored(criterion, quotient))
            yield
        return exact

    def _value(self, criterion: Criterion, competitor_id: CompetitorId, block: _Block | None) -> Steps[int]:
        """A competitor's value of a criterion. Raises TooMuchWork."""
        yield
        unity_id, counted = criterion.unity_id, self._counted
        if criterion.first:
            return counted.reached(unity_id, competitor_id)
        if compares_totals(criterion):
            return counted.total(unity_id, competitor_id)
        competition_ids, given = self._looked_at(unity_id, competitor_id)
        best_first, only_worst = counted.sort(unity_id) is Sort.DESC, criterion.best is None
        most = criterion.best or max([dropped for _, dropped in criterion.drop], default=0)
        in_all, number, ends = 0, 0, list[int]()  # the best ones or, if `only_worst`, the worst
        for start in range(0, len(given), _STEP_SUMS):
            some_ids, some = competition_ids[start : start + _STEP_SUMS], given[start : start + _STEP_SUMS]
            if block is None:
                some = [amount for one, amount in zip(some_ids, some, strict=True) if not counted.is_voided(one)]
            else:
                for one in some_ids:
                    if one not in block.counts:
                        block.counts[one] = self._counts(one, block.tied)
                        yield  # after each competition: it may have thousands of participants
                some = [amount for one, amount in zip(some_ids, some, strict=True) if block.counts[one]]
            in_all, number = in_all + sum(some), number + len(some)
            if most:
                ends = sorted([*ends, *some], reverse=best_first is not only_worst)[:most]
            yield
        kept = criterion.kept(number)
        value = in_all - sum(ends[: number - kept]) if only_worst else sum(ends[:kept])
        if block is not None:
            return counted.notation(unity_id).kept(value if number else None)
        return counted.total(unity_id, competitor_id) + value - in_all

    def _looked_at(self, unity_id: UnityId, competitor_id: CompetitorId) -> SumsByCompetition:
        """A competitor's sums. Raises TooMuchWork."""
        sums = self._counted.sums(unity_id, competitor_id)
        if self._sums_left is not None:
            self._sums_left -= len(sums[0]) + 1
            if self._sums_left < 0:
                raise TooMuchWork("sums of competitions", self._sums_max or 0)
        return sums

    def _counts(self, competition_id: CompetitionId, tied: Collection[CompetitorId]) -> bool:
        """Whether a competition is not voided, and at least two of these took part in it."""
        among = (c for c in self._counted.participants(competition_id) if c in tied)
        return len(list(islice(among, 2))) == 2 and not self._counted.is_voided(competition_id)


def left_out(counted: Counted, criterion: Criterion, competitor_id: CompetitorId) -> Steps[list[CompetitionId]]:
    """The competitions of a competitor that `best` and `drop` leave out: of equal sums, those of the last ones."""
    counting, found = list[tuple[CompetitionId, int]](), list[CompetitionId]()
    for number, given in enumerate(zip(*counted.sums(criterion.unity_id, competitor_id), strict=True)):
        if not counted.is_voided(given[0]):
            counting.append(given)
        if number % _STEP_SUMS == 0:
            yield
    kept, best_first = criterion.kept(len(counting)), counted.sort(criterion.unity_id) is Sort.DESC
    for number, (one, _) in enumerate((yield from in_order(counting, lambda given: given[1], reverse=best_first))):
        if number >= kept:
            found.append(one)
        if number % _STEP_SUMS == 0:
            yield
    return found


def _end_of_block(criteria: Items[Criterion], begin: int) -> int:
    """The number of the first criterion after the block that begins there."""
    return next((n for n in range(begin, len(criteria)) if criteria[n].among is None), len(criteria))
