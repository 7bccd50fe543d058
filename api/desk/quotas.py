"""Checks whether a change fits into the quotas of its tournament and of its token (`engine/log/quotas.py`).

A quota is an additional condition of a command, judged like any other: a refusal is confirmed by the current log, and a
repeat of an accepted command is still answered.

A process counts the events that its live tournaments fold: exactly, up to their heads, from any writer. What a token
writes in other tournaments is read every QUOTAS_SECONDS. Changes under way in other processes count once this process
sees them, so they can exceed a bound.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable
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
from engine.domain.events import CompetitorRegistered, Event, Recorded
from engine.domain.terms import ActorId, Sequence, TournamentId
from engine.log import codec, heads, quotas
from engine.log.heads import Head
from engine.log.quotas import ALL_TOKENS, ALL_TOURNAMENTS, Amounts, Quota, QuotaKey
from engine.process.background import SharedTasks
from engine.process.telemetry import QUOTAS_NEAR
from projections.board.board import Board
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

    def __init__(self, token_id: ActorId, noted: Callable[[Amounts], None]) -> None:
        self.ready = False
        self.early: list[Recorded] | None = None
        self.token_id = token_id
        self._noted = noted  # gets the recorded amounts each time that they change
        self._recorded = NO_AMOUNTS
        self._sequence = Sequence(0)
        self._judged_at = Sequence(0)
        self._last: JudgedCase | None = None
        self._under_way: dict[JudgedCase, Amounts] = {}  # judged at that head, and sent
        self._pending = NO_AMOUNTS  # the sum of these

    def adopt(self, sequence: Sequence, amounts: Amounts) -> None:
        self._sequence, self._recorded, self.ready = sequence, amounts, True
        self._noted(amounts)
        for recorded in self.early or ():
            self.follow(recorded)

    def follow(self, recorded: Recorded) -> None:
        if not self.ready:
            if self.early is not None:
                self.early.append(recorded)
        elif recorded.sequence > self._sequence and self.token_id in (ALL_TOKENS, recorded.actor):
            self._recorded += _amounts([recorded.event])
            self._noted(self._recorded)

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


_Standing = tuple[quotas.CountedUse, Head | None]
"""The saved count of a tournament, and its head. While both are the same, so are the amounts."""


class QuotaUse:
    """What counts for a quota in each tournament that it covers. `ready`: it has been read, or the quota is of one
    tournament."""

    def __init__(self, key: QuotaKey) -> None:
        self.ready = key[1] == ALL_TOKENS
        self.everywhere = NO_AMOUNTS
        self._token_id = key[1]
        self._by_tournament: dict[TournamentId, Amounts] = {}
        self._read: dict[TournamentId, tuple[_Standing, Amounts]] = {}

    def note(self, tournament_id: TournamentId, amounts: Amounts) -> None:
        self.everywhere += amounts - self._by_tournament.get(tournament_id, NO_AMOUNTS)
        self._by_tournament[tournament_id] = amounts

    def elsewhere(self, tournament_id: TournamentId) -> Amounts:
        """What counts in other tournaments than this one."""
        return self.everywhere - self._by_tournament.get(tournament_id, NO_AMOUNTS)

    async def read(
        self, database: Database, but: Callable[[], Collection[TournamentId]] = tuple
    ) -> Collection[TournamentId]:
        """Reads and notes what a token has written in all tournaments, except in those that `but` returns afterwards.
        Counts only where the log has changed since it was read. Returns where the token's events count. Raises
        DatabaseUnavailable."""
        async with database.connection() as connection:
            saved = await quotas.saved_everywhere(connection, self._token_id)
            at = await heads.current(connection, list(saved))
        found = dict[TournamentId, tuple[_Standing, Amounts]]()
        for one, its in saved.items():
            standing, known = (its, at.get(one)), self._read.get(one)
            if known is None or known[0] != standing:
                known = standing, (await _counted(database, one, self._token_id)).amounts
            found[one] = known
        self._read, self.ready = found, True
        counted_otherwise = frozenset(but())
        for one in [*found, *self._by_tournament]:
            if one not in counted_otherwise:
                self.note(one, found[one][1] if one in found else NO_AMOUNTS)
        return found


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
    """The quotas of one case, and its own condition."""

    def __init__(self, live: LiveTournament, case: JudgedCase, parts: list[QuotaPart]) -> None:
        self._condition = case.condition
        self._live = live
        self._case = case
        self._parts = parts
        self._need = _need(case.command)

    def refuse_unless_met(self, board: Board) -> None:
        """Raises QuotaReached, TokenQuotaReached and PreconditionFailed."""
        if self._condition is not None:
            self._condition.refuse_unless_met(board)
        for part in self._parts:
            part.refuse_beyond(self._need, self._live.head.sequence)
        for part in self._parts:
            part.count.judge(self._case)


class Quotas:
    """The quotas, as one process knows them. It knows none until they are read."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._quotas: dict[QuotaKey, Quota] = {}
        self._counts: WeakKeyDictionary[LiveTournament, dict[ActorId, UseCount]] = WeakKeyDictionary()
        self._uses: dict[QuotaKey, QuotaUse] = {}
        self._adopting = SharedTasks[UseCount, None]()
        self._reading = SharedTasks[QuotaKey, Collection[TournamentId]]()
        self._counting = asyncio.Lock()
        self._near: dict[QuotaKey, list[NearBound]] = {}
        self._looked_at = 0

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._quotas)

    @property
    def near(self) -> list[NearBound]:
        """The bounds that are nearly reached, as of the last look, the nearest first."""
        return sorted((one for near in self._near.values() for one in near), key=lambda one: -one.percent)

    def limit(self, live: LiveTournament, case: JudgedCase) -> Limit | None:
        """The limit of a case; None: no quota bounds it. Call `settle` before it is judged, unless `is_settled`."""
        parts = [
            QuotaPart(key, quota, self._count(live, key[1]), partial(self._use(key).elsewhere, live.tournament_id))
            for key in _keys(live, case.actor)
            if (quota := self._quotas.get(key)) is not None
        ]
        return Limit(live, case, parts) if parts else None

    def is_settled(self, live: LiveTournament, actor: ActorId) -> bool:
        """Whether use is counted for all quotas of the token in this tournament."""
        return all(
            self._count(live, key[1]).ready and self._use(key).ready
            for key in _keys(live, actor)
            if key in self._quotas
        )

    async def settle(self, live: LiveTournament, actor: ActorId) -> None:
        """Counts what is already in the log. Raises DatabaseUnavailable."""
        for key in _keys(live, actor):
            if key in self._quotas:
                count = self._count(live, key[1])
                if not count.ready:
                    await asyncio.shield(self._adopting.begun(count, partial(self._adopt, live, count)))
                if not self._use(key).ready:
                    await self._read_use(key)

    async def read(self) -> None:
        """Reads the quotas, and what tokens have written elsewhere; checks some quotas for warnings. Raises
        DatabaseUnavailable."""
        async with self._database.connection() as connection:
            self._quotas = await quotas.quotas(connection)
        for live, counts in list(self._counts.items()):
            for token_id in [one for one in counts if _key(live, one) not in self._quotas]:
                self._forget(live, token_id)
        self._near = {key: near for key, near in self._near.items() if key in self._quotas}
        for key in list(self._uses):
            if key not in self._quotas:
                del self._uses[key]
            elif key[1] != ALL_TOKENS:
                self._forget_ended(key[1], await self._read_use(key))
        await self._look_for_warnings()

    def _count(self, live: LiveTournament, token_id: ActorId) -> UseCount:
        counts = self._counts.setdefault(live, {})
        if token_id not in counts:
            counts[token_id] = UseCount(token_id, partial(self._use(_key(live, token_id)).note, live.tournament_id))
            live.followers.append(counts[token_id].follow)
        return counts[token_id]

    def _forget(self, live: LiveTournament, token_id: ActorId) -> None:
        live.followers.remove(self._counts[live].pop(token_id).follow)

    def _forget_ended(self, token_id: ActorId, begun: Collection[TournamentId]) -> None:
        """Forgets counts that the database has ended: the quota was removed, and set again before this process saw
        it. `begun`: where it counts."""
        for live in self._counted(token_id):
            if live.tournament_id not in begun:
                self._forget(live, token_id)

    def _counted(self, token_id: ActorId) -> list[LiveTournament]:
        """Where this process counts what the token writes."""
        return [live for live, counts in self._counts.items() if token_id in counts and counts[token_id].ready]

    def _use(self, key: QuotaKey) -> QuotaUse:
        if key not in self._uses:
            self._uses[key] = QuotaUse(key)
        return self._uses[key]

    async def _read_use(self, key: QuotaKey) -> Collection[TournamentId]:
        """Reads the use of a token. Returns where it counts."""

        def counted() -> list[TournamentId]:
            return [live.tournament_id for live in self._counted(key[1])]

        read = partial(self._use(key).read, self._database, counted)
        return await asyncio.shield(self._reading.begun(key, read))

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
        keys = list(self._quotas)
        for key in islice(cycle(keys), self._looked_at, self._looked_at + min(QUOTAS_LOOKED_AT, len(keys))):
            found = _shares(self._quotas[key], await _used(self._database, key, self._uses.get(key)))
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


async def _used(database: Database, key: QuotaKey, use: QuotaUse | None = None) -> Amounts:
    """The amounts that count for this quota. `use`: what is known of it."""
    tournament_id, token_id = key
    if token_id == ALL_TOKENS:
        return (await _counted(database, tournament_id, ALL_TOKENS)).amounts
    if use is None or not use.ready:
        use = QuotaUse(key)
        await use.read(database)
    return use.everywhere


async def _counted(
    database: Database,
    tournament_id: TournamentId,
    token_id: ActorId,
    to: Sequence = quotas.END,
    *,
    turns: asyncio.Lock | None = None,
) -> quotas.CountedUse:
    """The amounts up to the event `to`. Counting a large log takes many `turns` and connections, one after another, so
    that others get theirs in between."""
    counted: quotas.CountedUse | None = None
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
        (Amounts(1, int(isinstance(e, CompetitorRegistered)), codec.stored_bytes(e)) for e in events),
        NO_AMOUNTS,
    )
