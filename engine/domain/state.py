"""What judging needs to know of a tournament: protocols, which the board satisfies (`projections/board/board.py`).

Pure. Totals, for example, are not part of it: no delta is refused because of a sum.
"""

from abc import abstractmethod
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from datetime import datetime
from typing import NamedTuple, Protocol, TypeVar

from engine.domain.awards import Scoring
from engine.domain.events import Result
from engine.domain.expiry import Expiry
from engine.domain.notation import Notation
from engine.domain.terms import CompetitionId, CompetitorId, Counts, RankingId, Sequence, Stage, UnityId

_Id = TypeVar("_Id", bound=int)
_T_co = TypeVar("_T_co", covariant=True)


class Keyed(Mapping[_Id, _T_co]):
    """Things by their ids. Those to which the organiser gave a key are found by it, too."""

    @abstractmethod
    def by_key(self, key: str) -> _Id | None:
        """The id of the one with this key; None: none has it."""


class CompetitorState(Protocol):
    """`erased`: the event that erased it; None or 0: it is not erased."""

    @property
    def parent_id(self) -> CompetitorId | None: ...
    @property
    def erased(self) -> Sequence | None: ...


class CompetitionState(Protocol):
    """`voided_at` is None while the competition counts. `date`: its declared date; None: none was declared."""

    @property
    def group_id(self) -> int: ...
    @property
    def scale(self) -> str: ...
    @property
    def participants(self) -> tuple[CompetitorId, ...]: ...
    @property
    def result(self) -> Result | None: ...
    @property
    def winner_id(self) -> CompetitorId | None: ...
    @property
    def voided_at(self) -> datetime | None: ...
    @property
    def date(self) -> datetime | None: ...


class UnityState(Protocol):
    """`counts`: what a total is. `expiry` is None if its points do not expire."""

    @property
    def name(self) -> str: ...
    @property
    def notation(self) -> Notation: ...
    @property
    def counts(self) -> Counts: ...
    @property
    def expiry(self) -> Expiry | None: ...


class GivenResult(Protocol):
    """A result that an event gave."""

    @property
    def sequence(self) -> Sequence: ...
    @property
    def origin(self) -> Sequence: ...
    @property
    def recorded_at(self) -> datetime: ...
    @property
    def competition_id(self) -> CompetitionId | None: ...
    @property
    def result(self) -> int: ...


class ResultLine(NamedTuple):
    """A result that an event gave. `origin` decides its place in order; `number`: that of the line in the event.
    `recorded_at`: of the first event that it was given instead of, or its own."""

    sequence: Sequence
    origin: Sequence
    number: int
    result: int
    recorded_at: datetime
    competition_id: CompetitionId | None


class ResultsState(Protocol):
    """The results of a ranking, which no state keeps: they are read from the log when they are needed. `of` returns
    those of a competitor in a unity, with the lines `given_back`. The first one that counts is the total, unless the
    unity counts their sum (`adds_up`). Results that do not count may be missing; those given back are. The first
    line has the least number of `precedence`."""

    def of(
        self, unity_id: UnityId, competitor_id: CompetitorId, given_back: Iterable[ResultLine] = ()
    ) -> Iterator[GivenResult]: ...

    def precedence(self, unity_id: UnityId, line: ResultLine) -> int: ...

    def adds_up(self, unity_id: UnityId) -> bool: ...


class ParticipantsState(Collection[CompetitorId], Protocol):
    """The competitors of a ranking. Finds one without a scan, and many faster in what `lookup` returns. `row` returns
    None for a competitor who was never in the ranking."""

    def lookup(self) -> Container[CompetitorId]: ...
    def row(self, competitor_id: CompetitorId) -> int | None: ...


class RankingState(Protocol):
    """`closed_at` is None while the ranking is open. `unities` has the main one first. `undone` maps each event whose
    points are undone to the event that undid it. `replaced`: the lines that corrections have replaced, as a `Rule` has
    them. `of_results`: the unities that count results. `special`: these, and those whose points expire. `scorings`:
    what results give."""

    @property
    def name(self) -> str: ...
    @property
    def closed_at(self) -> datetime | None: ...
    @property
    def participants(self) -> ParticipantsState: ...
    @property
    def unities(self) -> Mapping[UnityId, UnityState]: ...
    @property
    def undone(self) -> Mapping[Sequence, Sequence]: ...
    @property
    def replaced(self) -> Mapping[Sequence, Mapping[tuple[CompetitorId, UnityId], Sequence]]: ...
    @property
    def scorings(self) -> tuple[Scoring, ...]: ...
    @property
    def of_results(self) -> Collection[UnityId]: ...
    @property
    def special(self) -> Collection[UnityId]: ...


class PublicationState(Protocol):
    """`frozen_at` is None while the public end is not held. `seen` returns the last sequence that the public has seen
    of a log with this head. `hidden`: the rankings that the public does not see. `stage` is None while the tournament
    can change."""

    @property
    def hidden(self) -> Collection[RankingId]: ...
    @property
    def published(self) -> bool: ...
    @property
    def frozen_at(self) -> Sequence | None: ...
    @property
    def stage(self) -> Stage | None: ...
    def seen(self, head: Sequence) -> Sequence: ...


class State(Protocol):
    """A tournament, as far as decisions look at it. `voided`: the competitions that do not count. `struck`: by
    competition, the competitors for whom it does not count. Both are found without a scan."""

    @property
    def competitors(self) -> Keyed[CompetitorId, CompetitorState]: ...
    @property
    def competitions(self) -> Keyed[CompetitionId, CompetitionState]: ...
    @property
    def rankings(self) -> Mapping[RankingId, RankingState]: ...
    @property
    def voided(self) -> Collection[CompetitionId]: ...
    @property
    def struck(self) -> Mapping[CompetitionId, Collection[CompetitorId]]: ...
    @property
    def publication(self) -> PublicationState: ...
