"""Checks whether a change fits into the quotas of its tournament and of its token (`engine/log/quotas.py`).

A quota is an additional condition of a command, judged like any other: a refusal is confirmed by the current log, and a
repeat of an accepted command is still answered.

A process counts the events that its live tournaments fold: exactly, up to their heads, from any writer. What a token
writes in other tournaments is read every QUOTAS_SECONDS. Changes under way in other processes count once this process
sees them, so they can exceed a bound.
"""

import asyncio
from collections.abc import Callable, Iterable
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
from engine.log import codec, quotas
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

    def __init__(self, token_id: ActorId) -> None:
        self.ready = False
        self.recorded = NO_AMOUNTS
        self.early: list[Recorded] | None = None
        self.token_id = token_id
        self._sequence = Sequence(0)
        self._judged_at = Sequence(0)
        self._last: JudgedCase | None = None
        self._under_way: dict[JudgedCase, Amounts] = {}  # judged at that head, and sent
        self._pending = NO_AMOUNTS  # the sum of these

    def adopt(self, sequence: Sequence, amounts: Amounts) -> None:
        self._sequence, self.recorded, self.ready = sequence, amounts, True
        for recorded in self.early or ():
            self.follow(recorded)

    def follow(self, recorded: Recorded) -> None:
        if not self.ready:
            if self.early is not None:
                self.early.append(recorded)
        elif recorded.sequence > self._sequence and self.token_id in (ALL_TOKENS, recorded.actor):
            self.recorded += _amounts([recorded.event])

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
        return self.recorded + self._pending

    def judge(self, case: JudgedCase) -> None:
        """Notes a case that has room at this head. It counts if it is accepted."""
        self._last = case


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
        self._elsewhere: dict[ActorId, dict[TournamentId, Amounts]] = {}
        self._adopting = SharedTasks[UseCount, None]()
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
            QuotaPart(key, quota, self._count(live, key[1]), partial(self._written_elsewhere, live, key[1]))
            for key in _keys(live, case.actor)
            if (quota := self._quotas.get(key)) is not None
        ]
        return Limit(live, case, parts) if parts else None

    def is_settled(self, live: LiveTournament, actor: ActorId) -> bool:
        """Whether use is counted for all quotas of the token in this tournament."""
        return all(
            self._count(live, key[1]).ready and (key[1] == ALL_TOKENS or key[1] in self._elsewhere)
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
                if key[1] != ALL_TOKENS and key[1] not in self._elsewhere:
                    await self._look_elsewhere(key[1])

    async def read(self) -> None:
        """Reads the quotas, and what tokens have written elsewhere; checks some quotas for warnings. Raises
        DatabaseUnavailable."""
        async with self._database.connection() as connection:
            self._quotas = await quotas.quotas(connection)
        for live, counts in list(self._counts.items()):
            for token_id in [one for one in counts if _key(live, one) not in self._quotas]:
                self._forget(live, token_id)
        self._near = {key: near for key, near in self._near.items() if key in self._quotas}
        for token_id in list(self._elsewhere):
            if (ALL_TOURNAMENTS, token_id) in self._quotas:
                await self._look_elsewhere(token_id)
                self._forget_ended(token_id)
            else:
                del self._elsewhere[token_id]
        await self._look_for_warnings()

    def _count(self, live: LiveTournament, token_id: ActorId) -> UseCount:
        counts = self._counts.setdefault(live, {})
        if token_id not in counts:
            counts[token_id] = UseCount(token_id)
            live.followers.append(counts[token_id].follow)
        return counts[token_id]

    def _forget(self, live: LiveTournament, token_id: ActorId) -> None:
        live.followers.remove(self._counts[live].pop(token_id).follow)

    def _forget_ended(self, token_id: ActorId) -> None:
        """Forgets counts that the database has ended: the quota was removed, and set again before this process saw
        it."""
        for live, counts in list(self._counts.items()):
            if token_id in counts and counts[token_id].ready and live.tournament_id not in self._elsewhere[token_id]:
                self._forget(live, token_id)

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

    def _written_elsewhere(self, live: LiveTournament, token_id: ActorId) -> Amounts:
        """What the token has written in other tournaments than this one."""
        if token_id == ALL_TOKENS:
            return NO_AMOUNTS
        found = dict(self._elsewhere.get(token_id, {}))
        for one, counts in self._counts.items():
            if token_id in counts and counts[token_id].ready:
                found[one.tournament_id] = counts[token_id].recorded
        found.pop(live.tournament_id, None)
        return sum(found.values(), NO_AMOUNTS)

    async def _look_elsewhere(self, token_id: ActorId) -> None:
        self._elsewhere[token_id] = await _uses(self._database, token_id)

    async def _look_for_warnings(self) -> None:
        keys = list(self._quotas)
        for key in islice(cycle(keys), self._looked_at, self._looked_at + min(QUOTAS_LOOKED_AT, len(keys))):
            found = _shares(self._quotas[key], await _use(self._database, key))
            self._near[key] = [NearBound(share.what, share.percent, *key) for share in found if share.is_near]
        self._looked_at = (self._looked_at + QUOTAS_LOOKED_AT) % len(keys) if keys else 0
        QUOTAS_NEAR.set(sum(map(len, self._near.values())))


async def shares(database: Database, key: QuotaKey) -> list[Share]:
    """What a quota bounds; empty: there is none. Raises DatabaseUnavailable."""
    async with database.connection() as connection:
        quota = await quotas.quota_of(connection, key)
    return [] if quota is None else _shares(quota, await _use(database, key))


def _shares(quota: Quota, use: Amounts) -> list[Share]:
    return [Share(name, getattr(use, name), bound) for name, bound in quota.bounds()]


async def _use(database: Database, key: QuotaKey) -> Amounts:
    """The amounts that count for this quota, from the log."""
    tournament_id, token_id = key
    if token_id != ALL_TOKENS:
        return sum((await _uses(database, token_id)).values(), NO_AMOUNTS)
    return (await _counted(database, tournament_id, ALL_TOKENS)).amounts


async def _uses(database: Database, token_id: ActorId) -> dict[TournamentId, Amounts]:
    """The amounts of a token in each tournament."""
    async with database.connection() as connection:
        tournament_ids = await quotas.tournaments_of(connection, token_id)
    found: dict[TournamentId, Amounts] = {}
    for one in tournament_ids:
        found[one] = (await _counted(database, one, token_id)).amounts
    return found


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
