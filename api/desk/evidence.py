"""What a command needs from the log before it can be judged.

    evidence_of(live, command) ──► look_up ──► is_current ──► decide ──► close

Most commands need only the board. The others need events that no board keeps, because few competitions are ever voided
and few points undone. One object looks up what such a command needs, keeps it current while the live folds other
events, and decides with it.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from datetime import datetime
from functools import partial
from typing import Final, get_args

from msgspec import UNSET
from msgspec.structs import replace

from engine.domain.commands import (
    ChangeCompetition,
    ChangeParticipants,
    ChangePublication,
    DeclareScoring,
    ModifyRanking,
    NextReveal,
    Previewed,
    RecordResult,
    RecordResults,
    ReopenRanking,
    Revalue,
    ReversePoints,
    StrikeCompetitors,
    UnstrikeCompetitors,
    UnvoidCompetition,
    VoidCompetition,
)
from engine.domain.counting import Known
from engine.domain.errors import Refusal, Unacceptable
from engine.domain.events import Event, Recorded
from engine.domain.judging import decide, recorded_before, recording
from engine.domain.names import name_key
from engine.domain.rescoring import Rescoring, may_rescore
from engine.domain.steps import finished
from engine.domain.terms import Sequence
from projections.board.publication import NextRevealSearch
from projections.live.caused import read_caused, update_of_caused
from projections.live.due import (
    Due,
    read_due,
    read_redated,
    read_reopened,
    update_of_due,
    update_of_redated,
    update_of_reopened,
)
from projections.live.kept import Kept, Update, unfollowed
from projections.live.pool import LivePool
from projections.live.scored import read_rescoring
from projections.live.tournament import LiveTournament

LookUp = Callable[[LivePool], Awaitable[None]]
"""Looks something up in the log. Raises TournamentStopped, HistoryReplaced, DatabaseUnavailable, NotFound and
Overtaken."""
NeedsEvidence = Previewed | ChangePublication | RecordResult
"""The commands that may need more than the board."""
NEEDS_EVIDENCE: Final = get_args(NeedsEvidence)
_MOVED: Final = "Where points expire and results give points, change a date in a separate request."
_Rescoring = ChangeCompetition | RecordResults | DeclareScoring | ReopenRanking | ChangeParticipants | ModifyRanking
"""The commands after which results may give other points."""


class Evidence(ABC):
    """What one command needs. `alone`: the command needs a separate block. `exact`: no event may lie between its
    judging and its append. Both may show only when this is looked up."""

    alone = False
    exact = False

    def __init__(self, live: LiveTournament) -> None:
        self._live = live

    @property
    @abstractmethod
    def is_current(self) -> bool:
        """Whether the command can be judged with it. Otherwise, `look_up` first."""

    @abstractmethod
    async def look_up(self, live_pool: LivePool) -> None:
        """Looks it up. Raises as LookUp."""

    @abstractmethod
    def decide(self) -> tuple[Event, ...]:
        """The events of the command in the present state. Raises a Refusal, IdTaken and LacksResults."""

    @property
    def within(self) -> tuple[datetime, datetime]:
        """The two boundaries between which these events may be recorded, where points expire."""
        return self._live.boundaries

    def close(self) -> None:  # noqa: B027 - most keep nothing current
        """Stops keeping it current: the command will not be judged any more. Idempotent."""


def evidence_of(live: LiveTournament, command: NeedsEvidence) -> Evidence | None:
    """The evidence that the command needs; None: it needs none."""
    match command:
        case ChangePublication():
            return PublicEnds(live, command)
        case RecordResult():
            return ResultByKey(live, command)
        case _:
            return evidence_of_previewed(live, command)


def evidence_of_previewed(live: LiveTournament, command: Previewed) -> Evidence:
    """As `evidence_of`."""
    match command:
        case ReversePoints():
            return NamedPoints(live, command)
        case VoidCompetition() | UnvoidCompetition() | StrikeCompetitors() | UnstrikeCompetitors():
            return CompetitionPoints(live, command)
        case _:
            return ScoredAgain(live, command)


class _Revaluing(Evidence):
    """Points that the command makes count, or stop counting."""

    def _decided(self, command: Previewed, recorded_at: Mapping[Sequence, datetime]) -> tuple[Event, ...]:
        """The command's events. `recorded_at`: when the points were, which matters where points expire."""
        live = self._live
        known = Known(results=live.results, now=live.expired_by, recorded_at=recorded_at)
        return decide(live.board, command, known)


class NamedPoints(_Revaluing):
    """The event that an undoing names, with the rest of its request: they never change."""

    def __init__(self, live: LiveTournament, command: ReversePoints) -> None:
        super().__init__(live)
        self._command = command

    @property
    def is_current(self) -> bool:
        return self._command.named is not None

    async def look_up(self, live_pool: LivePool) -> None:
        await live_pool.make_current(self._live)
        named = await live_pool.named_event(self._live, self._command.sequence)
        self._command = replace(self._command, named=named)
        self.exact = any(points.given_results for points in named.points.values())

    def decide(self) -> tuple[Event, ...]:
        named = self._command.named
        if named is None or named.recorded_at is None:
            return self._decided(self._command, {})
        return self._decided(self._command, dict.fromkeys(named.points, named.recorded_at))


class CompetitionPoints(_Revaluing):
    """The points of a competition that is voided, struck, or the reverse of these."""

    alone = True

    def __init__(self, live: LiveTournament, command: Revalue) -> None:
        super().__init__(live)
        self._command = command
        self._points = live.keep(Kept(partial(update_of_caused, command.competition_id)))

    @property
    def is_current(self) -> bool:
        return self._points.value is not None

    async def look_up(self, live_pool: LivePool) -> None:
        await self._points.look_up(partial(read_caused, live_pool, self._live, self._command.competition_id))

    def decide(self) -> tuple[Event, ...]:
        caused = self._points.value
        assert caused is not None
        its = caused.of(self._command.competition_id)
        return self._decided(replace(self._command, caused=its), caused.recorded_at)

    def close(self) -> None:
        self._live.let_go(self._points)


class PublicEnds(Evidence):
    """The ends of requests at which a publication is frozen or revealed: otherwise the public would see points that
    have never counted."""

    def __init__(self, live: LiveTournament, command: ChangePublication) -> None:
        super().__init__(live)
        self._command = command
        self.alone = command.freeze is not None
        self._is_known = command.freeze in (None, "now") and command.reveal in (None, "all")

    @property
    def is_current(self) -> bool:
        return self._is_known

    async def look_up(self, live_pool: LivePool) -> None:
        await live_pool.make_current(self._live)
        given: dict[str, object] = {}
        for name in ("freeze", "reveal"):
            if isinstance(named := getattr(self._command, name), int):
                given[name] = await live_pool.end_of_request(self._live, Sequence(named))
        if self._command.reveal == "next":
            given["next_reveal"] = await self._next_reveal(live_pool)
        self._command, self._is_known = replace(self._command, **given), True

    async def _next_reveal(self, live_pool: LivePool) -> NextReveal:
        """The next competition to reveal, up to the end of a request."""
        held = self._live.board.publication.frozen_at
        search = NextRevealSearch(held)
        if held is not None:
            async with aclosing(live_pool.chunks(self._live, held)) as chunks:
                async for events in chunks:
                    search.take(events)
                    if search.over:
                        break
        found = search.found
        if found.last is None:
            return found
        return NextReveal(held, await live_pool.end_of_request(self._live, found.last))

    def decide(self) -> tuple[Event, ...]:
        return decide(self._live.board, replace(self._command, head=self._live.head.sequence))


class PointsAtAnotherDate(Evidence):
    """What expires, or counts again, when a competition gets another date or a ranking is reopened. Nothing does where
    points do not expire."""

    def __init__(self, live: LiveTournament, command: ChangeCompetition | ReopenRanking) -> None:
        super().__init__(live)
        self._command = command
        self._until: datetime | None = None  # what is due by then has expired
        if isinstance(command, ReopenRanking):
            self._points = live.keep(Kept(partial(update_of_reopened, command.ranking_id)))
        else:
            self._points = live.keep(Kept(partial(update_of_redated, command.competition_id)))

    @property
    def is_current(self) -> bool:
        return not self._live.expires or (self._points.value is not None and self._until == self._live.boundaries[0])

    async def look_up(self, live_pool: LivePool) -> None:
        if self._until != self._live.boundaries[0]:
            self._points.clear()
        until = self._until = self._live.boundaries[0]
        command, of = self._command, (live_pool, self._live)
        if isinstance(command, ReopenRanking):
            await self._points.look_up(partial(read_reopened, *of, command.ranking_id, until))
        else:
            assert command.started_at is not UNSET
            await self._points.look_up(partial(read_redated, *of, command.competition_id, command.started_at, until))
        self.exact = True

    def decide(self) -> tuple[Event, ...]:
        live, events = self._live, decide(self._live.board, self._command)
        if not live.expires or self._points.value is None:
            return events
        return *events, *self._points.value.events(live.results)

    def close(self) -> None:
        self._live.let_go(self._points)


class ScoredAgain(Evidence):
    """What scorings give differently after a command, and what expires, or counts again, with it."""

    def __init__(self, live: LiveTournament, command: _Rescoring) -> None:
        super().__init__(live)
        self.command = command
        self.alone = isinstance(command, ChangeCompetition) and command.participants is not UNSET  # it is exact
        self._are_many = isinstance(command, RecordResults)
        self._keys = set[str]()
        if isinstance(command, RecordResults):
            self._keys = {name_key(one.key) for one in command.items if one.key}
            self.alone = self.exact = True  # keys and other requests must not change what any of them means
        self._dated: PointsAtAnotherDate | None = None
        if isinstance(command, ReopenRanking) or (
            isinstance(command, ChangeCompetition) and command.started_at is not UNSET
        ):
            self._dated = PointsAtAnotherDate(live, command)
        self._by: datetime | None = None  # what is due by then has expired
        self._rescoring = live.keep(Kept(self._update))

    @property
    def _may_rescore(self) -> bool:
        return may_rescore(self._live.board, self.command)

    @property
    def is_current(self) -> bool:
        if self._dated is not None and not self._dated.is_current:
            return False
        is_read = self._rescoring.value is not None and self._by == self._live.expired_by
        return is_read or not self._may_rescore or self._is_refused

    async def look_up(self, live_pool: LivePool) -> None:
        if self._dated is not None and not self._dated.is_current:
            await self._dated.look_up(live_pool)
            self.exact = True
        if self._may_rescore:
            await live_pool.make_current(self._live)
            if self._by != self._live.expired_by:
                self._rescoring.clear()
            self._by = self._live.expired_by
            with suppress(Refusal):  # by a state that may change yet; see `is_current`
                await self._rescoring.look_up(partial(self._read, live_pool))
            self.exact = True

    def _decided(self) -> tuple[Event, ...]:
        """The events of the command alone. Raises a Refusal."""
        live = self._live
        return decide(live.board, self.command, Known(results=live.results, now=live.expired_by))

    @property
    def _is_refused(self) -> bool:
        """Whether the command is refused, whatever results give."""
        try:
            self._decided()
        except Refusal:
            return True
        return False

    async def _read(self, live_pool: LivePool) -> Rescoring:
        return await read_rescoring(live_pool, self._live, self._decided())

    def _update(self, recorded: Recorded) -> Update[Rescoring]:
        """How an event updates it. What a key in the command means is decided again."""
        if getattr(recorded.event, "key", None) in self._keys:
            return unfollowed
        return lambda rescoring: rescoring.take(recorded)

    def _refuse_moved(self) -> None:
        """Raises Unacceptable if points expire and an existing competition gets another date, rather than the same
        again."""
        if not self._live.expires:
            return
        board, command = self._live.board, self.command
        changes = [recording(board, one) for one in command.items] if isinstance(command, RecordResults) else [command]
        for one in changes:
            if isinstance(one, ChangeCompetition) and one.started_at not in (
                UNSET,
                board.competitions[one.competition_id].date,
            ):
                raise Unacceptable(_MOVED)

    def decide(self) -> tuple[Event, ...]:
        events = self._decided() if self._dated is None else self._dated.decide()
        if self._are_many or self._may_rescore:
            self._refuse_moved()
        if not self._may_rescore or self._rescoring.value is None:
            return events
        return *events, *finished(self._rescoring.value.events(self._live.results))

    def close(self) -> None:
        self._live.let_go(self._rescoring)
        if self._dated is not None:
            self._dated.close()


class ResultByKey(Evidence):
    """What is needed if a competition has the key with which a result is recorded: as for its correction."""

    def __init__(self, live: LiveTournament, command: RecordResult) -> None:
        super().__init__(live)
        self._command = command
        self._corrected: ScoredAgain | None = None

    @property
    def _correction(self) -> ScoredAgain | None:
        """That of the competition that has the key now. None: none has, or what is recorded will be refused."""
        command = None
        if recorded_before(self._live.board, self._command) is not None:
            with suppress(Refusal):
                command = recording(self._live.board, self._command)
        if self._corrected is not None and self._corrected.command != command:
            self._corrected.close()
            self._corrected = None
        if self._corrected is None and isinstance(command, ChangeCompetition):
            self._corrected = ScoredAgain(self._live, command)
            self.alone = True  # what it changes depends on what others change
        return self._corrected

    @property
    def is_current(self) -> bool:
        return self._correction is None or self._correction.is_current

    async def look_up(self, live_pool: LivePool) -> None:
        if self._correction is not None:
            await self._correction.look_up(live_pool)
            self.exact = self._correction.exact

    def decide(self) -> tuple[Event, ...]:
        if self._correction is not None:
            return self._correction.decide()
        return decide(self._live.board, self._command, Known(results=self._live.results, now=self._live.expired_by))

    def close(self) -> None:
        if self._corrected is not None:
            self._corrected.close()


class PointsDue(Evidence):
    """All points that are due by `until`, for their expiry. `before`: the same by an earlier time, which is closed."""

    def __init__(self, live: LiveTournament, until: datetime, before: "PointsDue | None" = None) -> None:
        super().__init__(live)
        self.until = until
        self._points = live.keep(Kept(update_of_due))
        self._before = before

    @property
    def is_current(self) -> bool:
        return not self._live.expires or self._points.value is not None

    async def look_up(self, live_pool: LivePool) -> None:
        async def read() -> Due:
            before = None if self._before is None else self._before._points.value
            self._let_go_before()
            return await read_due(live_pool, self._live, self.until, before)

        await self._points.look_up(read)

    def decide(self) -> tuple[Event, ...]:
        """The expiries; none if nothing is due."""
        return self._points.value.events if self._live.expires and self._points.value is not None else ()

    def close(self) -> None:
        self._let_go_before()
        self._live.let_go(self._points)

    def _let_go_before(self) -> None:
        if self._before is not None:
            self._before.close()
            self._before = None

    @property
    def within(self) -> tuple[datetime, datetime]:
        last, following = self._live.boundaries
        begin = max(last, self.until)
        return begin, begin + (following - last)
