"""A tournament as the documentation speaks of it: the accepted commands, and what counts after any of them.

A line of points counts if and only if its event is not undone, its competition is not voided, its competitor is not
struck there, and it has not expired. The order of commands never matters. What a result gives by a scoring took place,
and stands in order, with the first points that scorings gave for it. Nothing here comes from the product.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from msgspec import Struct, field

from tests.what_counts import results

MONDAY: Final = datetime(2024, 1, 1, tzinfo=UTC)
NEVER: Final = datetime.max.replace(tzinfo=UTC)
SHOWN: Final = 6
"""Results, and fixtures, on a page."""

Drops = tuple[tuple[int, int], ...]
Standings = dict[int, tuple[int, int | None]]
"""Position and total of each competitor in the list."""


class Unity(Struct, frozen=True, kw_only=True):
    """`counts`: sum, best or last. `lasts`: how long points count; None: for ever. `on`: between two boundaries.
    `absent`: the sum of no lines is no total."""

    counts: str = "sum"
    descending: bool = True
    lasts: timedelta | None = None
    on: timedelta = timedelta(minutes=1)
    absent: bool = False

    @property
    def of_nothing(self) -> int | None:
        """The total where no line counts."""
        return 0 if self.counts == "sum" and not self.absent else None


class Line(Struct, frozen=True, kw_only=True):
    """A line of the request `request`, in the event `sequence`; `request` None: of a scoring, which began with it."""

    request: int | None
    sequence: int
    recorded_at: datetime
    ranking: int
    competition: int | None
    competitor: int
    unity: int
    amount: int


class Competition(results.Competition, frozen=True, kw_only=True):
    """`date`: the declared one."""

    created_at: datetime
    date: datetime | None = None

    @property
    def has_result(self) -> bool:
        return bool(self.result) or self.winner is not None

    @property
    def began(self) -> datetime:
        return self.date or self.created_at


class State(Struct, kw_only=True):
    """What the commands up to a moment have led to. `undone`: requests; `closed`: since when. `ever`: who is or was in
    the list. `scored`: by ranking and competition, what scorings give; `began`: with which event, and when, they first
    gave something."""

    lines: list[Line] = field(default_factory=list)
    competitions: dict[int, Competition] = field(default_factory=dict)
    lists: dict[int, list[int]] = field(default_factory=dict)
    undone: set[int] = field(default_factory=set)
    voided: set[int] = field(default_factory=set)
    struck: set[tuple[int | None, int]] = field(default_factory=set)
    closed: dict[int, datetime] = field(default_factory=dict)
    best: dict[int, tuple[int, int | None, Drops]] = field(default_factory=dict)
    ever: dict[int, set[int]] = field(default_factory=dict)
    scorings: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    scored: dict[tuple[int, int], results.Amounts] = field(default_factory=dict)
    began: dict[tuple[int, int], tuple[int, datetime]] = field(default_factory=dict)

    def score(self, accepted: "Accepted", upto: int) -> None:
        """Scores all results in the open rankings. `upto`: if it is an event of the command, then those before it."""
        following = [of for of, sequence in accepted.scored.items() if sequence == upto + 1]
        for ranking, scorings in self.scorings.items():
            for number in dict.fromkeys([*accepted.named, *self.competitions]) if ranking not in self.closed else ():
                of, one = (ranking, number), self.competitions[number]
                if of in following:
                    break
                self.scored[of] = results.given(scorings, one, self.lists[ranking], self.ever[ranking])
                if self.scored[of] and of not in self.began:
                    self.began[of] = accepted.scored[of], accepted.recorded_at

    def given(self) -> list[Line]:
        """All lines, in their order."""
        lines = [
            Line(
                request=None,
                sequence=self.began[ranking, competition][0],
                recorded_at=self.began[ranking, competition][1],
                ranking=ranking,
                competition=competition,
                competitor=competitor,
                unity=unity,
                amount=amount,
            )
            for (ranking, competition), amounts in self.scored.items()
            for (competitor, unity), amount in amounts.items()
        ]
        return sorted([*self.lines, *lines], key=lambda line: line.sequence)

    def took_place(self, line: Line) -> datetime:
        date = None if line.competition is None else self.competitions[line.competition].date
        return date or line.recorded_at


def _kept(sums: list[int], number: int | None, drops: Drops, *, descending: bool) -> list[int]:
    """The best of the sums, without the worst ones that are dropped of as many."""
    worst = [dropped for start, dropped in drops if len(sums) >= start][-1:]
    return sorted(sums, reverse=descending)[: len(sums) - sum(worst)][:number]


Change = Callable[[State], object]


class Accepted(Struct, frozen=True):
    """A command whose events have the sequences `first` to `last`. `change` None: it changes nothing of what counts.
    `scored`: by ranking and competition, its events that give what scorings give. `named`: the competitions of a round,
    whose results are scored in this order."""

    first: int
    last: int
    recorded_at: datetime
    change: Change | None
    scored: Mapping[tuple[int, int], int]
    named: Iterable[int] = ()


class Moment(Struct, frozen=True, kw_only=True):
    """`upto`: after this event. `now`: what was due by then has expired. `on`: only what had taken place by then."""

    upto: int
    now: datetime
    on: datetime | None = None


class Model:
    """`unities`: those of each ranking. `accepted`: the commands, in the order of the log."""

    def __init__(self, unities: Mapping[Any, Mapping[int, Unity]]) -> None:
        self.unities = unities
        self.accepted: list[Accepted] = []
        self._states: dict[int | None, State] = {}

    def accept(self, one: Accepted) -> None:
        self.accepted.append(one)
        self._states.clear()

    def state(self, upto: int | None) -> State:
        """After this event; None: now."""
        if upto in self._states:
            return self._states[upto]
        state = self._states[upto] = State()
        for one in self.accepted:
            if one.change is not None and (upto is None or one.last <= upto or upto + 1 in one.scored.values()):
                one.change(state)
                state.score(one, one.last if upto is None else upto)
        return state

    def begin_of_request(self, sequence: int) -> int:
        """The first event of the request that the event `sequence` belongs to."""
        return next((one.first for one in self.accepted if one.first <= sequence <= one.last), sequence)

    def end_of_request(self, sequence: int) -> int:
        """The last event of the request that the event `sequence` belongs to."""
        return next((one.last for one in self.accepted if one.first <= sequence <= one.last), sequence)

    def unity(self, number: int) -> Unity:
        return next(its[number] for its in self.unities.values() if number in its)

    # ── What counts ─────────────────────────────────────────────────────────────────────────────────────

    def given(self, state: State, on: datetime | None) -> Iterator[Line]:
        """The lines that were given, in the order of the log: those that count, or have expired."""
        for line in state.given():
            if (
                line.request not in state.undone
                and line.competition not in state.voided
                and (line.competition, line.competitor) not in state.struck
                and (on is None or state.took_place(line) <= on)
            ):
                yield line

    def counting(self, state: State, moment: Moment) -> Iterator[Line]:
        for line in self.given(state, moment.on):
            unity = self.unities[line.ranking][line.unity]
            by = min(moment.on or moment.now, state.closed.get(line.ranking, NEVER))
            if unity.lasts is None or by - (by - MONDAY) % unity.on < state.took_place(line) + unity.lasts:
                yield line

    def totals(self, moment: Moment) -> dict[tuple[int, int], int]:
        """By unity and competitor."""
        return self._totals(self.counting(self.state(moment.upto), moment))

    def _totals(self, lines: Iterable[Line]) -> dict[tuple[int, int], int]:
        found: dict[tuple[int, int], int] = {}
        for line in lines:
            unity, named = self.unities[line.ranking][line.unity], (line.unity, line.competitor)
            before = found.get(named)
            if before is None or unity.counts == "last":
                found[named] = line.amount
            elif unity.counts == "sum":
                found[named] = before + line.amount
            else:
                found[named] = max(before, line.amount) if unity.descending else min(before, line.amount)
        return found

    def given_by(self, unity: int, competitor: int, moment: Moment) -> dict[int | None, int]:
        """What each competition, or none, gives a competitor, other than 0, in a unity whose points do not expire."""
        found: dict[int | None, int] = {}
        for line in self.counting(self.state(moment.upto), moment):
            if (line.unity, line.competitor) == (unity, competitor):
                found[line.competition] = found.get(line.competition, 0) + line.amount
        return {one: amount for one, amount in found.items() if amount}

    def totals_within(
        self, end: int, unity: int, competitor: int, competitions: Iterable[int | None]
    ) -> list[int | None]:
        """The totals in a unity whose points do not expire, during the request that ends so: after each of these
        competitions, or none, has come to give what it gives after the request, one by one."""
        begun = self.begin_of_request(end) - 1
        before, after = [
            [
                line
                for line in self.given(self.state(upto), None)
                if (line.unity, line.competitor) == (unity, competitor)
            ]
            for upto in (begun, end)
        ]
        found, done = list[int | None](), set[int | None]()
        for one in competitions:
            done.add(one)
            lines = [line for line in before if line.competition not in done]
            lines += [line for line in after if line.competition in done]
            totals = self._totals(sorted(lines, key=lambda line: line.sequence))
            found.append(totals.get((unity, competitor), self.unity(unity).of_nothing))
        return found

    def standings(self, ranking: int, moment: Moment) -> dict[int, Standings]:
        """Of each unity."""
        listed, totals = self.state(moment.upto).lists[ranking], self.totals(moment)
        return {
            unity_id: placed(
                {one: totals.get((unity_id, one), unity.of_nothing) for one in listed},
                descending=unity.descending,
            )
            for unity_id, unity in self.unities[ranking].items()
        }

    def best_of(self, ranking: int, moment: Moment) -> dict[int, int | None]:
        """The first value of a classification by the best results, of which `State.best` has the unity, the number and
        what is dropped: points without a competition, and the best sums in competitions."""
        state = self.state(moment.upto)
        unity_id, number, drops = state.best[ranking]
        unity = self.unities[ranking][unity_id]
        sums: dict[int, dict[int | None, int]] = {one: {} for one in state.lists[ranking]}
        for line in self.counting(state, moment):
            if line.unity == unity_id and line.competitor in sums:
                its = sums[line.competitor]
                its[line.competition] = its.get(line.competition, 0) + line.amount
        return {
            one: its.pop(None, 0) + sum(_kept([*its.values()], number, drops, descending=unity.descending))
            if its
            else unity.of_nothing
            for one, its in sums.items()
        }

    def classified(self, ranking: int, moment: Moment) -> Standings:
        """By `best_of`; of equal ones, those who reached their total in the unity earlier stand ahead."""
        best, reached = self.best_of(ranking, moment), self._reached(ranking, moment)
        sign = -1 if self.unities[ranking][self.state(moment.upto).best[ranking][0]].descending else 1
        keys = {one: (value is None, sign * (value or 0), reached[one]) for one, value in best.items()}
        return {one: (1 + sum(other < key for other in keys.values()), best[one]) for one, key in keys.items()}

    def _reached(self, ranking: int, moment: Moment) -> dict[int, int]:
        """The last event that counts and changed the total, which the first one does if there was none; 0: none did."""
        state = self.state(moment.upto)
        unity, *_ = state.best[ranking]
        changes: dict[int, dict[int, int]] = {one: {} for one in state.lists[ranking]}
        for line in self.counting(state, moment):
            if line.unity == unity and line.competitor in changes:
                its = changes[line.competitor]
                its[line.sequence] = its.get(line.sequence, 0) + line.amount
        if self.unities[ranking][unity].absent:
            changes = {
                one: {at: change or at == min(its) for at, change in its.items()} for one, its in changes.items()
            }
        return {one: max([at for at, change in its.items() if change], default=0) for one, its in changes.items()}

    # ── Competitions on a page ──────────────────────────────────────────────────────────────────────────

    def gave(self, ranking: int, moment: Moment) -> list[int]:
        """The competitions that gave points in a ranking, the latest first."""
        state, first = self.state(moment.upto), self._first_lines(ranking, moment)
        numbers = list(state.competitions)
        return sorted(first, key=lambda one: (state.took_place(first[one]), numbers.index(one)), reverse=True)

    def fixtures(self, ranking: int, hidden: Iterable[int], moment: Moment) -> list[int]:
        """The competitions that may yet give points in a ranking, the next first."""
        state, hidden = self.state(moment.upto), set(hidden)
        lists = [set(state.lists[one]) for one in hidden]
        gave = {one for other in self.unities if other not in hidden for one in self.gave(other, moment)}
        return self._by_date(
            state,
            (
                number
                for number, one in state.competitions.items()
                if number not in gave | state.voided
                and one.participants
                and {*one.participants} <= {*state.lists[ranking]}
                and not any({*one.participants} <= those for those in lists)
                and not (one.has_result and (moment.on is None or one.began <= moment.on))
            ),
        )

    def _by_date(self, state: State, competitions: Iterable[int]) -> list[int]:
        numbers = list(state.competitions)
        return sorted(competitions, key=lambda one: (state.competitions[one].began, numbers.index(one)))

    def latest(self, ranking: int, moment: Moment) -> int | None:
        """The competition that took place last; the one that gave points last, if none has a date and no time is asked
        for."""
        state, first = self.state(moment.upto), self._first_lines(ranking, moment)
        if self._is_dated(state, first, moment):
            return max(first, key=lambda one: (state.took_place(first[one]), first[one].sequence), default=None)
        its = [one.competition for one in self.given(state, moment.on) if one.ranking == ranking]
        return next((one for one in reversed(its) if one is not None), None)

    def late(self, ranking: int, moment: Moment) -> int | None:
        """The competition that was entered last, if one that took place later had been entered before."""
        state, first = self.state(moment.upto), self._first_lines(ranking, moment)
        last = max(first, key=lambda one: first[one].sequence, default=None)
        if last is None or (date := state.competitions[last].date) is None:
            return None
        return last if any(state.took_place(line) > date for line in first.values()) else None

    def before_latest(self, ranking: int, moment: Moment) -> tuple[int, datetime | None] | None:
        """The event after which, and the time by which, the table is the one before the request that gave the first
        points of the latest competition, or before its day."""
        latest, state = self.latest(ranking, moment), self.state(moment.upto)
        if latest is None:
            return None
        first = self._first_lines(ranking, moment)
        if self._is_dated(state, first, moment):
            began = [state.took_place(line) for line in first.values()]
            day = state.took_place(first[latest]).date()
            return moment.upto, min(one for one in began if one.date() == day) - timedelta(microseconds=1)
        return self.begin_of_request(first[latest].sequence) - 1, None

    def _first_lines(self, ranking: int, moment: Moment) -> dict[int, Line]:
        """Of each competition that gave points."""
        first: dict[int, Line] = {}
        for line in self.given(self.state(moment.upto), moment.on):
            if line.ranking == ranking and line.competition is not None:
                first.setdefault(line.competition, line)
        return first

    def _is_dated(self, state: State, competitions: Iterable[int], moment: Moment) -> bool:
        """Whether a page shows the world's clock."""
        return moment.on is not None or any(state.competitions[one].date for one in competitions)


def placed(totals: Mapping[int, int | None], *, descending: bool = True) -> Standings:
    """Equal totals share a place; who has none stands last."""
    sign = -1 if descending else 1
    keys = {one: (total is None, sign * (total or 0)) for one, total in totals.items()}
    return {one: (1 + sum(other < key for other in keys.values()), totals[one]) for one, key in keys.items()}
