"""Which lines of points count, and when they took place.

THE RULE. A line of points counts if and only if its event is not undone, its competition is not voided, its competitor
is not struck there, it has not expired, and no correction of a result has replaced it. Points of a competition with a
declared date took place at that date. All others, and points without a competition, took place when they were recorded;
those of a corrected result, when its first points were.

Everything that sums, explains, expires, dates or compares points asks a `Rule`. It is about one state of a tournament;
`undoing`, `voiding`, `striking`, `dating`, `replacing` and `reopening` give that of the state after such a change.

Pure.
"""

from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final, Generic, Self, TypeAlias, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from engine.domain.events import Delta, PointsAdded, Recorded, origin
from engine.domain.expiry import Expiry
from engine.domain.state import RankingState, State
from engine.domain.terms import CompetitionId, CompetitorId, RankingId, Sequence, UnityId

_T = TypeVar("_T")


LineName = tuple[CompetitorId, UnityId]
"""Names a line of an event of a scoring."""
NOT_RECORDED: Final = Sequence(2**62)
"""Events that are not yet recorded have sequences from here in their order: after all others."""


class Line(Struct, frozen=True, gc=False):
    """A line that counts, or did until it expired. `number`: its place among those that its event gave, or the results
    among them. `expires_at`: None: never."""

    delta: Delta
    number: int
    is_result: bool
    took_place: datetime
    expires_at: datetime | None


Lookup: TypeAlias = "Mapping[Any, Any] | _Dates | _Given"
"""Something that is found by its key with `get`."""


class Rule(Struct, frozen=True, kw_only=True):
    """The rule for one ranking, in one state. `struck`: by competition, for whom it does not count. `dates`: declared
    ones. `replaced`: by the place of points in the log (`origin`), the lines that corrections have replaced, with the
    last event that did: those of events before it do not count. `expiries`: of unities whose points expire.
    `closed_at`: nothing expires afterwards; None: it is open."""

    ranking_id: RankingId
    undone: Container[Sequence]
    voided: Container[CompetitionId | None]
    struck: Lookup
    dates: Lookup
    replaced: Lookup
    expiries: Mapping[UnityId, Expiry]
    closed_at: datetime | None = None

    # ── The rule ────────────────────────────────────────────────────────────────────────────────────────

    def lines(
        self, sequence: Sequence, recorded_at: datetime, points: PointsAdded, now: datetime | None = None
    ) -> Iterator[Line]:
        """The lines of an event of the ranking that count. `now`: those that have expired by then are left out; None:
        age does not matter."""
        gone = self._gone(sequence, points.competition_id)
        if gone is None:
            return
        took_place = self.took_place(points.since or recorded_at, points.competition_id)
        replaced = self.replaced.get(origin(sequence, points))
        ends = {one: expiry.expires_at(took_place) for one, expiry in self.expiries.items()}
        over_by = None if now is None else self.by(now)
        for is_result, deltas in ((False, points.given), (True, points.given_results)):
            for number, delta in enumerate(deltas):
                if delta.competitor_id not in gone and (
                    replaced is None or replaced.get((delta.competitor_id, delta.unity_id), 0) <= sequence
                ):
                    expires_at = ends.get(delta.unity_id)
                    if over_by is None or expires_at is None or expires_at > over_by:
                        yield Line(delta, number, is_result, took_place, expires_at)

    def of(self, recorded: Recorded, now: datetime | None = None) -> Iterator[Line]:
        """As `lines`, for any event; none if it does not give points in the ranking."""
        event = recorded.event
        if isinstance(event, PointsAdded) and event.ranking_id == self.ranking_id:
            yield from self.lines(recorded.sequence, recorded.recorded_at, event, now)

    def counts(
        self,
        sequence: Sequence,
        place: Sequence,
        recorded_at: datetime,
        competition_id: CompetitionId | None,
        competitor_id: CompetitorId,
        unity_id: UnityId,
        now: datetime | None,
    ) -> bool:
        """Whether `lines` has such a line. `place`: its `origin`. `recorded_at`: when it was recorded, or the first
        that it was given instead of."""
        gone = self._gone(sequence, competition_id)
        if gone is None or competitor_id in gone:
            return False
        if (replaced := self.replaced.get(place)) and replaced.get((competitor_id, unity_id), 0) > sequence:
            return False
        expiry = self.expiries.get(unity_id)
        if now is None or expiry is None:
            return True
        return not expiry.is_over(self.took_place(recorded_at, competition_id), self.by(now))

    def all_count(
        self, sequence: Sequence, place: Sequence, competition_id: CompetitionId | None, now: datetime | None
    ) -> bool:
        """Whether it is certain that `counts` is true of all lines."""
        may_expire = now is not None and self.expiries
        return not may_expire and self._gone(sequence, competition_id) == () and not self.replaced.get(place)

    def took_place(self, recorded_at: datetime, competition_id: CompetitionId | None) -> datetime:
        """When points took place that were recorded then."""
        date: datetime | None = self.dates.get(competition_id)
        return date or recorded_at

    def by(self, now: datetime) -> datetime:
        """The time up to which points expire in the ranking: not after its closing."""
        return now if self.closed_at is None else min(now, self.closed_at)

    def _gone(self, sequence: Sequence, competition_id: CompetitionId | None) -> Container[CompetitorId] | None:
        """The competitors whose lines of the event do not count; None: none of its lines does."""
        if sequence in self.undone or competition_id in self.voided:
            return None
        gone: Container[CompetitorId] = self.struck.get(competition_id, ())
        return gone

    # ── In another state ────────────────────────────────────────────────────────────────────────────────

    def undoing(self, sequences: Collection[Sequence], *, undone: bool) -> Self:
        """After these events have been undone, or redone."""
        return replace(self, undone=_Changed(self.undone, frozenset(sequences), undone))

    def voiding(self, competition_id: CompetitionId, *, voided: bool) -> Self:
        """After a competition has been voided, or unvoided."""
        return replace(self, voided=_Changed(self.voided, frozenset([competition_id]), voided))

    def striking(self, competition_id: CompetitionId, competitors: Iterable[CompetitorId], *, struck: bool) -> Self:
        """After these competitors have been struck there, or are not any more."""
        now = _Changed(self.struck.get(competition_id, ()), frozenset(competitors), struck)
        return replace(self, struck=_Given(self.struck, {competition_id: now}))

    def dating(self, dates: Mapping[CompetitionId, datetime | None]) -> Self:
        """After competitions have got these dates; None: none is declared."""
        return replace(self, dates=_Given(self.dates, dates))

    def replacing(self, lines: Mapping[Sequence, Mapping[LineName, Sequence]]) -> Self:
        """If these events have been the last to replace these lines of points with these places in the log."""
        now = {place: _Given(self.replaced.get(place, {}), its) for place, its in lines.items()}
        return replace(self, replaced=_Given(self.replaced, now))

    def reopening(self) -> Self:
        """After the ranking has been reopened: its points expire again."""
        return replace(self, closed_at=None)


def rule_of(state: State, ranking_id: RankingId) -> Rule:
    """The rule in the present state, and in that into which it is changed in place."""
    ranking = state.rankings[ranking_id]
    return Rule(
        ranking_id=ranking_id,
        undone=ranking.undone,
        voided=state.voided,
        struck=state.struck,
        dates=_Dates(state),
        replaced=ranking.replaced,
        expiries=expiries_of(ranking),
        closed_at=ranking.closed_at,
    )


def part_of(points: PointsAdded, lines: Iterable[Line]) -> PointsAdded:
    """The points, with only these of their lines."""
    deltas, results = list[Delta](), list[Any]()
    for line in lines:
        (results if line.is_result else deltas).append(line.delta)
    return PointsAdded(
        ranking_id=points.ranking_id,
        competition_id=points.competition_id,
        deltas=tuple(deltas),
        results=tuple(results),
    )


def expiries_of(ranking: RankingState) -> dict[UnityId, Expiry]:
    """The unities of the ranking whose points expire."""
    return {one: expiry for one in ranking.special if (expiry := ranking.unities[one].expiry) is not None}


def declared_date(state: State, competition_id: CompetitionId | None) -> datetime | None:
    """The declared date of the competition. None: it has none, or there is no competition."""
    competition = None if competition_id is None else state.competitions.get(competition_id)
    return None if competition is None else competition.date


class _Dates(Struct, frozen=True, eq=False):
    state: State

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Dates) and self.state is other.state

    def __hash__(self) -> int:
        return id(self.state)

    def get(self, competition_id: Any, _default: Any = None) -> Any:
        return declared_date(self.state, competition_id)


class _Changed(Struct, Generic[_T], frozen=True):
    """The items of `before`, with or without the items `changed`."""

    before: Container[_T]
    changed: Container[_T]
    has_them: bool

    def __contains__(self, item: object) -> bool:
        return self.has_them if item in self.changed else item in self.before


class _Given(Struct, frozen=True):
    """The values of `before`, except those that are given."""

    before: Lookup
    values: Mapping[Any, Any]

    def get(self, key: Any, default: Any = None) -> Any:
        return self.values[key] if key in self.values else self.before.get(key, default)
