"""The competitors of a ranking in order, with their totals in its unities: a table with a row for each competitor.

Pure. A row's number is its place, from 0. Places grow in the order of enrolment, so the list is in the order of places.
A competitor has one place at a time. A competitor who leaves keeps the place and the totals there; one who returns
moves to a new place at the end. The old place stays vacant until all places are assigned again.

All of this, including the numbers of places, follows from the events only. So a change can address its row in the
database, and a loaded board continues like a folded one.

Adding, removing and looking up take the same time in a list of a million as in a short one. A competitor takes some 30
bytes here in a long list, 110 in a short one, and 8 more in each unity.
"""

from array import array
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from collections.abc import Sequence as Items
from functools import partial
from itertools import compress, takewhile
from operator import eq
from typing import Final, Protocol, TypeAlias, cast
from weakref import ref

from engine.domain.events import Delta
from engine.domain.terms import CompetitorId, UnityId
from projections.columns.shards import Shards

VACANT_SPARE: Final = 1_024
"""Places are assigned again when vacant ones outnumber the others by this number: when the returns exceed the number
of competitors by it."""

_Column: TypeAlias = "array[int] | list[int]"
_INTEGERS: Final = partial(array, "q")


class Enrolment(Collection[CompetitorId]):
    """The competitors of a ranking in their order. Changed in place, together with the `Totals` made for it.

    `generation` grows when places are assigned again.
    """

    def __init__(self, competitors: Iterable[CompetitorId] = ()) -> None:
        self.generation = 0
        # By place: a competitor in the list; the negative of one who has left it; 0 where vacant.
        self._places: array[int] = array("q")
        self._place_of: Shards[CompetitorId, int] = Shards(_INTEGERS)  # never replaced: the totals have it too
        self._enrolled = 0
        self._vacant = 0
        self._all_totals: list[ref[Totals]] = []  # weak: in a cycle, a board would wait for the garbage collector
        for competitor_id in competitors:
            self.enrol(competitor_id)

    # ── Questions ───────────────────────────────────────────────────────────────────────────────────────

    def __len__(self) -> int:
        return self._enrolled

    def __iter__(self) -> Iterator[CompetitorId]:
        return (CompetitorId(competitor_id) for competitor_id in self._places if competitor_id > 0)

    def __contains__(self, competitor_id: object) -> bool:
        # Does not call `place`, because the call would double the time for each delta that is judged.
        known = self._place_of
        place = (known.whole or known.shard(competitor_id)).get(competitor_id)  # type: ignore[arg-type, call-overload]
        return place is not None and self._places[place] > 0

    def lookup(self) -> Container[CompetitorId]:
        """The same competitors, to be asked for many: a dictionary, which takes half the time, unless somebody left."""
        known = self._place_of.whole
        return known if len(known) == self._enrolled else self

    def __eq__(self, other: object) -> bool:
        """Whether lists, places and those who have left are the same."""
        return isinstance(other, Enrolment) and self._places == other._places

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Enrolment({self._places.tolist()})"

    @property
    def places(self) -> "array[int]":
        """By place: a competitor in the list; the negative of one who has left it; 0 if vacant. Do not change it."""
        return self._places

    def listed(self) -> Items[CompetitorId]:
        """The current competitors in their order."""
        if self._enrolled == len(self._places):
            return cast("Items[CompetitorId]", self._places[:])
        return cast("Items[CompetitorId]", array("q", [c for c in self._places if c > 0]))

    def held(self) -> "HeldList":
        """The same as an iterator, for callers that pause: if a competitor has left, building a list of a million takes
        60 ms."""
        return HeldList(self._places[:], self._enrolled)

    @property
    def size_bytes(self) -> int:
        """Bytes in memory, estimated."""
        return self._place_of.size_bytes + len(self._places) * 8

    def place(self, competitor_id: CompetitorId) -> int | None:
        """The place of a competitor in the list; None: the competitor is not in it."""
        place = self._place_of.get(competitor_id)
        return place if place is not None and self._places[place] > 0 else None

    def row(self, competitor_id: CompetitorId) -> int | None:
        """The place of a competitor who is or was in the list; None: the competitor was never in it."""
        return self._place_of.get(competitor_id)

    # ── Changes ─────────────────────────────────────────────────────────────────────────────────────────

    def enrol(self, competitor_id: CompetitorId) -> bool:
        """Adds a competitor at the end of the list. Returns False, and changes nothing, if the competitor is in it."""
        before = self._place_of.get(competitor_id)
        if before is not None and self._places[before] > 0:
            return False
        place = len(self._places)
        self._places.append(competitor_id)
        self._place_of[competitor_id] = place
        self._enrolled += 1
        if before is not None:
            self._places[before] = 0
            self._vacant += 1
            for totals in self._beside():
                totals.move(before, place)
            self._renumber_if_worth_it()
        return True

    def remove(self, competitor_id: CompetitorId) -> bool:
        """Removes a competitor from the list, but keeps the totals. Returns False if the competitor is not in it."""
        place = self.place(competitor_id)
        if place is None:
            return False
        self._places[place] = -competitor_id
        self._enrolled -= 1
        return True

    def replace(self, competitors: Collection[CompetitorId]) -> bool:
        """Makes `competitors` the list, in that order. Returns False if it already is. Competitors in the unchanged
        beginning of the list keep their places."""
        listed, wanted = list(self), list(competitors)
        same = len(list(takewhile(bool, map(eq, listed, wanted))))
        for competitor_id in listed[same:]:
            self.remove(competitor_id)
        for competitor_id in wanted[same:]:
            self.enrol(competitor_id)
        return listed != wanted

    def append_places(self, places: Items[int]) -> None:
        """Continues with the `places` of another enrolment."""
        start = len(self._places)
        self._place_of.update((CompetitorId(abs(c)), place) for place, c in enumerate(places, start) if c)
        self._places.extend(places)
        self._enrolled += sum(map((0).__lt__, places))
        self._vacant += places.count(0)

    def keep_totals_of(self, competitor_id: CompetitorId) -> int:
        """The place for the totals of a competitor. One who was never in the list gets a place as if they had left."""
        place = self._place_of.get(competitor_id)
        if place is None:
            place = self._place_of[competitor_id] = len(self._places)
            self._places.append(-competitor_id)
        return place

    def copy(self) -> "Enrolment":
        """A copy without totals; see `Totals.copied_for`."""
        copy = Enrolment()
        copy._places, copy._place_of = self._places[:], self._place_of.copy()
        copy.generation, copy._enrolled, copy._vacant = self.generation, self._enrolled, self._vacant
        return copy

    def _renumber_if_worth_it(self) -> None:
        """Assigns all places again, in the same order, if most are vacant.

        This is one step, because places follow from the events only: it must be complete before the next event. With a
        million competitors it takes half a second of processor time, but only after a million returns. These take at
        least a hundred requests, each removing and adding 10,000.
        """
        if self._vacant <= len(self._places) - self._vacant + VACANT_SPARE:  # everybody has one place
            return
        before = self._places
        self._places, self._enrolled, self._vacant = array("q"), 0, 0
        self.append_places(array("q", filter(None, before)))  # everybody still has a place
        for totals in self._beside():
            totals.rearrange(before)
        self.generation += 1

    def _beside(self) -> Iterator["Totals"]:
        return (totals for known in self._all_totals if (totals := known()) is not None)


class HeldList(Iterable[CompetitorId]):
    """The competitors of a list in their order, at one moment. `places`: as in an enrolment, which no longer changes
    them. `count`: the number of competitors."""

    def __init__(self, places: "array[int]", count: int) -> None:
        self._places = places
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[CompetitorId]:
        return (CompetitorId(competitor_id) for competitor_id in self._places if competitor_id > 0)

    @property
    def size_bytes(self) -> int:
        """Bytes in memory."""
        return len(self._places) * self._places.itemsize


class Totals(Mapping[CompetitorId, int]):
    """The sums of one unity, for each competitor who was ever in the list. Iteration gives the entries that are not 0.

    A column parallel to the places of `enrolment`, of 64-bit numbers as long as all sums fit.
    """

    def __init__(self, enrolment: Enrolment, totals: Mapping[CompetitorId, int] | None = None) -> None:
        self._enrolment = enrolment
        self._place_of = enrolment._place_of
        self._column: _Column = array("q")  # ends with a place that has a sum, or with spare room
        enrolment._all_totals.append(ref(self))
        for competitor_id, total in (totals or {}).items():
            self.add(competitor_id, total)

    # ── Questions ───────────────────────────────────────────────────────────────────────────────────────

    def __getitem__(self, competitor_id: CompetitorId) -> int:
        """A competitor's sum; 0 for one without. Raises KeyError for one who was never in the list."""
        place = self._place_of[competitor_id]
        return self._column[place] if place < len(self._column) else 0

    def get(self, competitor_id: CompetitorId, default: int = 0) -> int:  # type: ignore[override]
        """A competitor's sum; `default` for one who was never in the list."""
        place = self._place_of.get(competitor_id)
        if place is None:
            return default
        return self._column[place] if place < len(self._column) else 0

    def __iter__(self) -> Iterator[CompetitorId]:
        return (CompetitorId(abs(c)) for c, total in zip(self._enrolment.places, self._column, strict=False) if total)

    def __len__(self) -> int:
        return sum([total != 0 for total in self._column])

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Totals) and self._enrolment == other._enrolment:
            ours, theirs = self.trimmed(), other.trimmed()
            if type(ours) is type(theirs):  # otherwise one has or had a sum beyond 64 bits
                return ours == theirs
        return super().__eq__(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(dict(self.items()))

    def trimmed(self) -> _Column:
        """The sums by place, up to the last that is not 0."""
        end = len(self._column)
        while end and not self._column[end - 1]:
            end -= 1
        return self._column[:end]

    @property
    def column(self) -> _Column:
        """The sums by place; places beyond its end have 0. Do not change it."""
        return self._column

    @property
    def size_bytes(self) -> int:
        """Bytes in memory, estimated."""
        wide = 0 if isinstance(self._column, array) else _INTEGER_BYTES
        return len(self._column) * (8 + wide)

    # ── Changes ─────────────────────────────────────────────────────────────────────────────────────────

    def add(self, competitor_id: CompetitorId, amount: int) -> None:
        """Adds `amount` to the sum of a competitor."""
        try:
            self._column[(self._place_of.whole or self._place_of.shard(competitor_id))[competitor_id]] += amount
        except (LookupError, OverflowError):
            self._add_with_room(self._enrolment.keep_totals_of(competitor_id), amount)

    def make_room(self) -> None:
        """Makes room for the sums of all competitors who were ever in the list, so that the column need not grow with
        each."""
        self._column.extend(array("q", [0]) * (len(self._enrolment.places) - len(self._column)))

    def append_column(self, column: _Column) -> None:
        """Continues with the `column` of other totals."""
        if isinstance(column, list):
            self._column = list(self._column)
        self._column.extend(column)

    def move(self, before: int, place: int) -> None:
        """Moves a sum to a new place, the last one."""
        if before < len(self._column) and (total := self._column[before]):
            self._column[before] = 0
            self._add_with_room(place, total)

    def rearrange(self, before: Items[int]) -> None:
        """Leaves out the sums of the places that were vacant, as `places` had them before."""
        kept = compress(self._column, before)
        self._column = array("q", kept) if isinstance(self._column, array) else list(kept)

    def copied_for(self, enrolment: Enrolment) -> "Totals":
        """A copy of these sums for a copy of their enrolment."""
        copy = Totals(enrolment)
        copy._column = self._column[:]
        return copy

    def _add_with_room(self, place: int, amount: int) -> None:
        column = self._column
        if place >= len(column):
            room = min(len(column) // _SPARE_PART, len(self._enrolment.places) - place - 1)
            column.extend(array("q", [0]) * (place + 1 - len(column) + room))
        try:
            column[place] += amount
        except OverflowError:
            self._column = list(column)
            self._column[place] += amount


class HasTotals(Protocol):
    """A unity, as far as it matters here."""

    @property
    def totals(self) -> Totals: ...


def add_deltas(unities: Mapping[UnityId, HasTotals], deltas: Iterable[Delta]) -> set[UnityId]:
    """Adds the amount of each delta to the sum of its competitor, in a half to two thirds of the time that as many
    calls of `Totals.add` take. Returns the unities that were named. They have one enrolment."""
    named, unity_id = set(), None
    for delta in deltas:
        if delta.unity_id != unity_id:
            unity_id = delta.unity_id
            totals = unities[unity_id].totals
            column, known = totals._column, totals._place_of
            whole = known.whole
            named.add(unity_id)
        competitor_id = delta.competitor_id
        try:
            column[(whole or known.shard(competitor_id))[competitor_id]] += delta.amount
        except (LookupError, OverflowError):
            totals.add(competitor_id, delta.amount)
            column = totals._column  # perhaps another one, for wide sums
    return named


_SPARE_PART: Final = 8
"""A growing column makes spare room of one in this many of its entries."""
_INTEGER_BYTES: Final = 32
