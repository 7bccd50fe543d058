"""A case: one command under way, from when it is taken until it is answered."""

import asyncio
from functools import partial
from time import monotonic

from msgspec import Struct

from api.desk.conditions import Condition, Refused
from api.desk.evidence import Evidence, LookUp
from api.desk.quotas import Limit
from api.desk.remembered import Refusals
from engine.domain.commands import Command
from engine.domain.counting import Known, LacksResults
from engine.domain.errors import DatabaseUnavailable, OutcomeUnknown
from engine.domain.events import Event
from engine.domain.expirations import say_totals
from engine.domain.judging import decide
from engine.domain.terms import ActorId, Sequence
from engine.process.tracing import RequestSpan
from projections.live.given_results import read_results
from projections.live.tournament import LiveTournament


class Receipt(Struct, frozen=True):
    """The result of a command: its events, the first with this sequence. `replayed`: it had been accepted before."""

    events: tuple[Event, ...]
    sequence: Sequence
    replayed: bool

    @property
    def event(self) -> Event:
        """The first of the events."""
        return self.events[0]

    @property
    def last_sequence(self) -> Sequence:
        return Sequence(self.sequence + len(self.events) - 1)


class Key(Struct, frozen=True):
    """An idempotency key, with the fingerprint of its request, and the refusals that were known when it came in."""

    text: str
    fingerprint: bytes | None
    refusals: Refusals.Stamp


class Case(Struct, eq=False, kw_only=True):
    """One command under way.

    `taken_at`, `until`: when it was taken and when its time is over, on the monotonic clock. `condition`: an additional
    condition: the client's on the state of the resource, or the operator's on use. `span`: that of the request, if it
    is traced. `evidence`: what it needs besides the board, kept current until the case is settled, which may be later
    than its answer. `events`: its result at the last judging; `judged`: the number of judgings. `sent`: it may be in
    the log. `exact`: no event may lie between its judging and its append. `alone`: it needs a separate block, as an
    exact command always does. `withdrawn`: the client was told that it was not applied, so it must never be.
    """

    command: Command
    actor: ActorId
    receipt: "asyncio.Future[Receipt]"
    taken_at: float
    until: float
    key: Key | None = None
    condition: Condition | Refused | Limit | None = None
    span: RequestSpan | None = None
    evidence: Evidence | None = None
    events: tuple[Event, ...] = ()
    judged: int = 0
    sent: bool = False
    exact: bool = False
    alone: bool = False
    withdrawn: bool = False

    def lacks(self) -> LookUp | None:
        """What must be looked up before the case is judged; None: nothing, as far as is known."""
        if self.evidence is not None and not self.evidence.is_current:
            return self.evidence.look_up
        return None

    def judge(self, live: LiveTournament) -> LookUp | None:
        """Sets the command's events by the state of `live`; none, if nothing is due. Makes the case exact if they say
        totals, which are valid only at this sequence. Returns what must be looked up first; None: nothing. Raises a
        Refusal and IdTaken."""
        if self.condition is not None or self.evidence is not None:
            if (look_up := self.lacks()) is not None:
                return look_up
            if self.condition is not None:
                self.condition.refuse_unless_met(live.board)
        try:
            if self.evidence is not None:
                self.events = self.evidence.decide()
                self.alone |= self.evidence.alone
            elif live.expires:
                self.events = decide(live.board, self.command, Known(results=live.results, now=live.expired_by))
            else:
                self.events = decide(live.board, self.command)
                return None
        except LacksResults as lack:
            return partial(read_results, live=live, ranking_ids=lack.ranking_ids)
        if say_totals(self.events):
            self.exact = self.alone = True
        return None

    def succeed(self, receipt: Receipt, now: float) -> None:
        """Answers, unless its time is over `now`."""
        if now >= self.until:
            self.time_out()
        elif not self.receipt.done():
            self.receipt.set_result(receipt)
        if self.evidence is not None:
            self.evidence.close()

    def fail(self, error: Exception) -> None:
        if monotonic() >= self.until:
            self.time_out()
        elif not self.receipt.done():
            self.receipt.set_exception(error)
        self.let_go()

    def time_out(self) -> None:
        """Fails the case because it took too long. If it was not sent yet, it never will be. If it was, its outcome is
        unknown, and it may still be judged again."""
        self.withdrawn = not self.sent
        if not self.receipt.done():
            self.receipt.set_exception(OutcomeUnknown() if self.sent else DatabaseUnavailable())

    def let_go(self) -> None:
        """Releases what judging needs: the case will not be judged any more."""
        if self.evidence is not None:
            self.evidence.close()
