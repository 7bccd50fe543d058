"""Checks whether a change fits into the quotas of its tournament and of its token (`engine/log/quotas.py`).

A quota is an additional condition of a command, judged like any other: a refusal is confirmed by the current log, and a
repeat of an accepted command is still answered.

A process counts the events that its live tournaments fold: exactly, up to their heads, from any writer. What a token
writes in other tournaments is read every QUOTAS_SECONDS. Changes under way in other processes count once this process
sees them, so they can exceed a bound.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import nullcontext
from functools import partial
from itertools import cycle, islice
from typing import Any, Final, Protocol
from weakref import WeakKeyDictionary

from msgspec import Struct

from api.desk.conditions import Condition
from engine.database.pool import Database
from engine.domain.commands import (
    AddCompetitions,
    AddPointsToRankings,
    Command,
    RegisterCompetitor,
    RegisterCompetitors,
)
from engine.domain.errors import Fault, QuotaReached, TokenQuotaReached
from engine.domain.events import Event, Recorded
from engine.domain.terms import ActorId, Sequence, TournamentId
from engine.log import codec, heads, quotas
from engine.log.heads import Head
from engine.log.quotas import ALL_TOKENS, ALL_TOURNAMENTS, Amounts, Quota, QuotaKey
from engine.process.background import SharedTasks
from engine.process.telemetry import QUOTAS_NEAR
from engine.process.time_slices import TimeSlice
from projections.board.board import Board
from projections.live.pool import LivePool
from projections.live.tournament import LiveTournament

QUOTAS_SECONDS: Final = 2.0
"""How often a process reads the quotas, and what tokens use elsewhere."""
NEAR: Final = 0.8
"""Operators are warned when this share of a bound is used."""
QUOTAS_LOOKED_AT: Final = 50
"""Quotas whose use is counted for warnings each time that the quotas are read, one after another in rounds."""
NO_AMOUNTS: Final = Amounts()


class Share(Struct, frozen=True):
    """What a quota bounds, and how much of that is used."""

    what: str
    used: int
    bound: int

    @property
    def percent(self) -> int:
        return 100 * self.used // self.bound

    @property
    def is_near(self) -> bool:
        """Whether the bound is reached, or nearly."""
        return self.used >= NEAR * self.bound


class NearBound(Struct, frozen=True, omit_defaults=True):
    """A bound that is reached, or nearly: of a `tournament` or a `token`, by id."""

    what: str
    percent: int
    tournament: TournamentId = ALL_TOURNAMENTS
    token: ActorId = ALL_TOKENS


class JudgedCase(Protocol):
    """A case: the events that judging gave it, whether it may be in the log, and whether it is settled."""

    command: Command
    actor: ActorId
    condition: "Condition | Limit | None"
    events: tuple[Event, ...]
    sent: bool
    receipt: "asyncio.Future[Any]"


class UseCount:
    """What a token, or ALL_TOKENS, has written in one tournament, up to the head of its live. `adopt` sets the amounts
    up to a sequence; `follow` adds each folded event. `early`: those folded while the log is counted."""

    def __init__(self, token_id: ActorId, noted: Callable[[Amounts], None] | None) -> None:
        self.ready = False
        self.early: list[Recorded] | None = None
        self.token_id = token_id
        self._noted = noted  # gets the recorded amounts of a token each time that they change
        self._recorded = NO_AMOUNTS
        self._sequence = Sequence(0)
        self._judged_at = Sequence(0)
        self._last: JudgedCase | None = None
        self._under_way: dict[JudgedCase, Amounts] = {}  # judged at that head, and sent
        self._pending = NO_AMOUNTS  # the sum of these

    def adopt(self, sequence: Sequence, amounts: Amounts) -> None:
        self._sequence, self.ready = sequence, True
        self._record(amounts)
        for recorded in self.early or ():
            self.follow(recorded)

    def follow(self, recorded: Recorded) -> None:
        if not self.ready:
            if self.early is not None:
                self.early.append(recorded)
        elif recorded.sequence > self._sequence and self.token_id in (ALL_TOKENS, recorded.actor):
            self._record(self._recorded + _amounts([recorded.event]))

    def _record(self, amounts: Amounts) -> None:
        self._recorded = amounts
        if self._noted is not None:
            self._noted(amounts)

    def use(self, head: Sequence, *, exactly: bool = False) -> Amounts:
        """The amounts recorded up to the head, and under way since. Unless `exactly`, changes that failed meanwhile
        count, too."""
        last, self._last = self._last, None
        if head != self._judged_at:
            self._judged_at, self._under_way, self._pending = head, {}, NO_AMOUNTS
        elif last is not None and last.sent:
            self._under_way[last] = _amounts(last.events)
            self._pending += self._under_way[last]
        if exactly:
            self._under_way = {case: one for case, one in self._under_way.items() if not case.receipt.done()}
            self._pending = sum(self._under_way.values(), NO_AMOUNTS)
        return self._recorded + self._pending

    def judge(self, case: JudgedCase) -> None:
        """Notes a case that has room at this head. It counts if it is accepted."""
        self._last = case


class _Read(Struct, frozen=True):
    """What was read of a tournament: the saved count, the head, and the amounts. While the first two stay the same, so
    do the amounts."""

    saved: quotas.CountedUse | None = None
    head: Head | None = None
    amounts: Amounts = NO_AMOUNTS


_NOTHING_READ: Final = _Read()


class TokenUse:
    """What a token has written in each tournament where that counts. `ready`: it has been read."""

    def __init__(self, token_id: ActorId) -> None:
        self.ready = False
        self.everywhere = NO_AMOUNTS
        self._token_id = token_id
        self._by_tournament: dict[TournamentId, Amounts] = {}
        self._read: dict[TournamentId, _Read] = {}

    def note(self, tournament_id: TournamentId, amounts: Amounts) -> None:
        self.everywhere += amounts - self._by_tournament.get(tournament_id, NO_AMOUNTS)
        self._by_tournament[tournament_id] = amounts

    def elsewhere(self, tournament_id: TournamentId) -> Amounts:
        """What it has written in other tournaments than this one."""
        return self.everywhere - self._by_tournament.get(tournament_id, NO_AMOUNTS)

    async def read(
        self, database: Database, followed: Callable[[], Mapping[TournamentId, Sequence]] = dict
    ) -> Collection[TournamentId]:
        """Reads and notes what the log has, with pauses for other work. `followed`: the tournaments whose amounts are
        noted as they are folded, each with the event up to which; these are left alone unless the log is ahead. Counts
        only where the log has changed since it was read. Returns where the token's events count. Raises
        DatabaseUnavailable."""
        async with database.connection() as connection:
            saved = await quotas.saved_everywhere(connection, self._token_id)
            at = await heads.current(connection, list(saved))
        time_slice = TimeSlice()
        found: dict[TournamentId, _Read] = {}
        for one, its in saved.items():
            head, found[one] = at.get(one), self._read.get(one, _NOTHING_READ)
            if (found[one].saved, found[one].head) != (its, head):
                counted = await _counted(database, one, self._token_id, since=its)
                found[one] = _Read(its, head, counted.amounts)
            if time_slice.over:
                await time_slice.give_way()
        self._read = found
        up_to = followed()
        for one in found.keys() | self._by_tournament.keys():
            read = found.get(one, _NOTHING_READ)
            is_followed = one in up_to and (read.head is None or read.head.sequence <= up_to[one])
            if not is_followed and read.amounts != self._by_tournament.get(one):
                self.note(one, read.amounts)
            if time_slice.over:
                await time_slice.give_way()
                up_to = followed()
        self.ready = True
        return found.keys()


class QuotaPart(Struct, frozen=True):
    """One quota of a limit: its `key`, the `count` in this tournament, and what the token has written `elsewhere`."""

    key: QuotaKey
    quota: Quota
    count: UseCount
    elsewhere: Callable[[], Amounts]

    def refuse_beyond(self, need: Amounts, head: Sequence) -> None:
        """Raises QuotaReached and TokenQuotaReached."""
        if self._faults(need, self.count.use(head)) and (
            faults := self._faults(need, self.count.use(head, exactly=True))
        ):
            raise (QuotaReached if self.key[1] == ALL_TOKENS else TokenQuotaReached)(faults)

    def _faults(self, need: Amounts, here: Amounts) -> list[Fault]:
        return [
            Fault(share.what, f"{share.used:,} of {share.bound:,} are used")
            for share in _shares(self.quota, here + self.elsewhere())
            if 0 < getattr(need, share.what) > share.bound - share.used
        ]


class Limit:
    """The quotas of one case, and its own condition. `is_settled`: use is counted for all of them; if not, `settle`
    before the case is judged."""

    def __init__(self, known: "Quotas", live: LiveTournament, case: JudgedCase, parts: list[QuotaPart]) -> None:
        self._known = known
        self._condition = case.condition
        self._live = live
        self._case = case
        self._parts = parts
        self._need = _need(case.command)

    @property
    def is_settled(self) -> bool:
        return self._known.is_settled(self._live, self._case.actor)

    async def settle(self, _: LivePool) -> None:
        """Counts what is already in the log. Raises DatabaseUnavailable."""
        await self._known.settle(self._live, self._case.actor)

    def refuse_unless_met(self, board: Board) -> None:
        """Raises QuotaReached, TokenQuotaReached and PreconditionFailed."""
        if self._condition is not None:
            self._condition.refuse_unless_met(board)
        for part in self._parts:
            part.refuse_beyond(self._need, self._live.head.sequence)
        for part in self._parts:
            part.count.judge(self._case)


class Quotas:
    """The quotas, as one process knows them: in `known`. It knows none until they are read."""

    def __init__(self, database: Database) -> None:
        self.known: dict[QuotaKey, Quota] = {}
        self._database = database
        self._counts: WeakKeyDictionary[LiveTournament, dict[ActorId, UseCount]] = WeakKeyDictionary()
        self._tokens: dict[ActorId, TokenUse] = {}
        self._adopting = SharedTasks[UseCount, None]()
        self._reading = SharedTasks[TokenUse, None]()
        self._counting = asyncio.Lock()
        self._near: dict[QuotaKey, list[NearBound]] = {}
        self._looked_at = 0

    @property
    def near(self) -> list[NearBound]:
        """The bounds that are nearly reached, as of the last look, the nearest first."""
        return sorted((one for near in self._near.values() for one in near), key=lambda one: -one.percent)

    def limit(self, live: LiveTournament, case: JudgedCase) -> Limit | None:
        """The limit of a case; None: no quota bounds it."""
        parts = [
            QuotaPart(key, quota, self._count(live, key[1]), partial(self._elsewhere, live.tournament_id, key[1]))
            for key in _keys(live, case.actor)
            if (quota := self.known.get(key)) is not None
        ]
        return Limit(self, live, case, parts) if parts else None

    def is_settled(self, live: LiveTournament, actor: ActorId) -> bool:
        """Whether use is counted for all quotas of the token in this tournament."""
        return all(
            self._count(live, key[1]).ready and (key[1] == ALL_TOKENS or self._token(key[1]).ready)
            for key in _keys(live, actor)
            if key in self.known
        )

    async def settle(self, live: LiveTournament, actor: ActorId) -> None:
        """Counts what is already in the log. Raises DatabaseUnavailable."""
        for key in _keys(live, actor):
            if key in self.known:
                count = self._count(live, key[1])
                if not count.ready:
                    await asyncio.shield(self._adopting.begun(count, partial(self._adopt, live, count)))
                if key[1] != ALL_TOKENS and not self._token(key[1]).ready:
                    await self._read_token(key[1])

    async def read(self) -> None:
        """Reads the quotas, and what tokens have written elsewhere; checks some quotas for warnings. Raises
        DatabaseUnavailable."""
        async with self._database.connection() as connection:
            self.known = await quotas.quotas(connection)
        for live, counts in list(self._counts.items()):
            for token_id in [one for one in counts if _key(live, one) not in self.known]:
                self._forget(live, token_id)
        self._near = {key: near for key, near in self._near.items() if key in self.known}
        for token_id in list(self._tokens):
            if (ALL_TOURNAMENTS, token_id) in self.known:
                await self._read_token(token_id)
            else:
                del self._tokens[token_id]
        await self._look_for_warnings()

    def _count(self, live: LiveTournament, token_id: ActorId) -> UseCount:
        counts = self._counts.setdefault(live, {})
        if token_id not in counts:
            noted = None if token_id == ALL_TOKENS else partial(self._token(token_id).note, live.tournament_id)
            counts[token_id] = UseCount(token_id, noted)
            live.followers.append(counts[token_id].follow)
        return counts[token_id]

    def _forget(self, live: LiveTournament, token_id: ActorId) -> None:
        live.followers.remove(self._counts[live].pop(token_id).follow)

    def _token(self, token_id: ActorId) -> TokenUse:
        if token_id not in self._tokens:
            self._tokens[token_id] = TokenUse(token_id)
        return self._tokens[token_id]

    def _elsewhere(self, tournament_id: TournamentId, token_id: ActorId) -> Amounts:
        return NO_AMOUNTS if token_id == ALL_TOKENS else self._token(token_id).elsewhere(tournament_id)

    async def _read_token(self, token_id: ActorId) -> None:
        use = self._token(token_id)
        await asyncio.shield(self._reading.begun(use, partial(self._read_use, token_id, use)))

    async def _read_use(self, token_id: ActorId, use: TokenUse) -> None:
        """Reads the use of a token. Forgets counts that the database has ended: the quota was removed, and set again
        before this process saw it."""
        counting = self._lives_counting(token_id)
        begun = await use.read(
            self._database,
            lambda: {one.tournament_id: one.head.sequence for one in self._lives_counting(token_id) if not one.dropped},
        )
        for live in counting:
            if live.tournament_id not in begun and token_id in self._counts.get(live, ()):
                self._forget(live, token_id)
                use.note(live.tournament_id, NO_AMOUNTS)

    def _lives_counting(self, token_id: ActorId) -> list[LiveTournament]:
        return [live for live, counts in self._counts.items() if token_id in counts and counts[token_id].ready]

    async def _adopt(self, live: LiveTournament, count: UseCount) -> None:
        token_id, head, count.early = count.token_id, live.head.sequence, []
        try:
            async with self._database.connection_for(live.tournament_id) as connection:
                begin = quotas.BEGINNING if token_id == ALL_TOKENS else head
                await quotas.begin(connection, live.tournament_id, token_id, begin)
            counted = await _counted(self._database, live.tournament_id, token_id, head, turns=self._counting)
            count.adopt(counted.sequence, counted.amounts)
        finally:
            count.early = None

    async def _look_for_warnings(self) -> None:
        keys = list(self.known)
        for key in islice(cycle(keys), self._looked_at, self._looked_at + min(QUOTAS_LOOKED_AT, len(keys))):
            found = _shares(self.known[key], await _used(self._database, key, self._tokens.get(key[1])))
            self._near[key] = [NearBound(share.what, share.percent, *key) for share in found if share.is_near]
        self._looked_at = (self._looked_at + QUOTAS_LOOKED_AT) % len(keys) if keys else 0
        QUOTAS_NEAR.set(sum(map(len, self._near.values())))


async def shares(database: Database, key: QuotaKey) -> list[Share]:
    """What a quota bounds; empty: there is none. Raises DatabaseUnavailable."""
    async with database.connection() as connection:
        quota = await quotas.quota_of(connection, key)
    return [] if quota is None else _shares(quota, await _used(database, key))


def _shares(quota: Quota, use: Amounts) -> list[Share]:
    return [Share(name, getattr(use, name), bound) for name, bound in quota.bounds()]


async def _used(database: Database, key: QuotaKey, use: TokenUse | None = None) -> Amounts:
    """The amounts that count for this quota. `use`: what is known of its token."""
    tournament_id, token_id = key
    if token_id == ALL_TOKENS:
        return (await _counted(database, tournament_id, ALL_TOKENS)).amounts
    if use is None or not use.ready:
        use = TokenUse(token_id)
        await use.read(database)
    return use.everywhere


async def _counted(
    database: Database,
    tournament_id: TournamentId,
    token_id: ActorId,
    to: Sequence = quotas.END,
    *,
    since: quotas.CountedUse | None = None,
    turns: asyncio.Lock | None = None,
) -> quotas.CountedUse:
    """The amounts up to the event `to`. `since`: the saved count, if it is known. Counting a large log takes many
    `turns` and connections, one after another, so that others get theirs in between."""
    counted = since
    while counted is None or not counted.whole:
        async with turns or nullcontext(), database.connection_for(tournament_id) as connection:
            before = counted or await quotas.saved(connection, tournament_id, token_id)
            counted = await quotas.counted_on(connection, tournament_id, token_id, before, to)
    return counted


def _keys(live: LiveTournament, actor: ActorId) -> tuple[QuotaKey, QuotaKey]:
    return _key(live, ALL_TOKENS), _key(live, actor)


def _key(live: LiveTournament, token_id: ActorId) -> QuotaKey:
    return (live.tournament_id, ALL_TOKENS) if token_id == ALL_TOKENS else (ALL_TOURNAMENTS, token_id)


def _need(command: Command) -> Amounts:
    """The amounts that the command certainly adds. The effects of voiding or undoing are not known before judging."""
    match command:
        case RegisterCompetitors():
            return Amounts(len(command.items), len(command.items), 1)
        case AddCompetitions():
            return Amounts(len(command.items), 0, 1)
        case AddPointsToRankings():
            return Amounts(len(command.rankings), 0, 1)
        case _:
            return Amounts(1, int(isinstance(command, RegisterCompetitor)), 1)


def _amounts(events: Iterable[Event]) -> Amounts:
    return sum(
        (Amounts(1, int("competitor_id" in e.creates), codec.stored_bytes(e)) for e in events),
        NO_AMOUNTS,
    )
