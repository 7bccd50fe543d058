"""Checks whether a change fits into the quota of its tournament (`engine/log/quotas.py`).

A quota is an additional condition of a command, judged like any other: a refusal is confirmed by the current log, and a
repeat of an accepted command is still answered. What is used is known without counting: the head, the competitors of
the board, and the bytes that the log says it has, as of the last look. Changes that are under way at the same time are
not compared with each other, so they can exceed a bound.
"""

from typing import Final

from msgspec import Struct

from api.desk.conditions import Condition, Refused
from engine.database.pool import Database
from engine.domain.commands import (
    AddCompetitions,
    AddPointsToRankings,
    Command,
    RecordResults,
    RegisterCompetitor,
    RegisterCompetitors,
)
from engine.domain.errors import Fault, QuotaReached
from engine.domain.terms import TournamentId
from engine.log import heads, quotas
from engine.log.quotas import Quota
from engine.process.telemetry import QUOTAS_NEAR
from projections.board.board import Board
from projections.live.pool import LivePool
from projections.live.tournament import LiveTournament

QUOTAS_SECONDS: Final = 2.0
"""How often a process reads the quotas, and how many bytes there are."""
NEAR: Final = 0.8
"""Operators are warned when this share of a bound is used."""


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


class NearBound(Struct, frozen=True):
    """A bound of a tournament that is reached, or nearly."""

    what: str
    percent: int
    tournament: TournamentId


class Limit(Struct, frozen=True):
    """The quota of a tournament with this many stored bytes, for one command, and the command's own condition."""

    live: LiveTournament
    quota: Quota
    stored_bytes: int
    command: Command
    condition: Condition | Refused | None

    def refuse_unless_met(self, board: Board) -> None:
        """Raises QuotaReached and PreconditionFailed."""
        if self.condition is not None:
            self.condition.refuse_unless_met(board)
        need = _need(self.command)
        if faults := [
            Fault(one.what, f"{one.used:,} of {one.bound:,} are used")
            for one in shares(self.live, self.quota, self.stored_bytes)
            if 0 < need[one.what] > one.bound - one.used
        ]:
            raise QuotaReached(faults)


class Quotas:
    """The quotas, as one process knows them: in `known`. It knows none until they are read."""

    def __init__(self, database: Database, live_pool: LivePool) -> None:
        self.known: dict[TournamentId, Quota] = {}
        self._database = database
        self._live_pool = live_pool
        self._stored_bytes: dict[TournamentId, int] = {}

    @property
    def near(self) -> list[NearBound]:
        """The bounds that are nearly reached, of tournaments in memory, the nearest first."""
        near = [
            NearBound(one.what, one.percent, tournament_id)
            for tournament_id, quota in self.known.items()
            if (live := self._live_pool.in_memory(tournament_id)) is not None
            for one in shares(live, quota, self._stored_bytes.get(tournament_id, 0))
            if one.is_near
        ]
        return sorted(near, key=lambda one: -one.percent)

    def limit(self, live: LiveTournament, command: Command, condition: Condition | Refused | None) -> Limit | None:
        """The limit of a command with this condition; None: no quota bounds it."""
        quota = self.known.get(live.tournament_id)
        if quota is None:
            return None
        return Limit(live, quota, self._stored_bytes.get(live.tournament_id, 0), command, condition)

    async def read(self) -> None:
        """Reads the quotas, and how many bytes the tournaments have whose bytes are bounded. Raises
        DatabaseUnavailable."""
        async with self._database.connection() as connection:
            known = await quotas.quotas(connection)
            bounded = [tournament_id for tournament_id, quota in known.items() if quota.bytes is not None]
            self._stored_bytes = await heads.log_bytes(connection, bounded)
        self.known = known
        QUOTAS_NEAR.set(len(self.near))


def shares(live: LiveTournament, quota: Quota, stored_bytes: int) -> list[Share]:
    """What a quota bounds in a tournament with this many stored bytes."""
    used = _used(live, stored_bytes)
    return [Share(what, used[what], bound) for what, bound in quota.bounds()]


def _used(live: LiveTournament, stored_bytes: int) -> dict[str, int]:
    return {"events": live.head.sequence, "competitors": len(live.board.competitors), "bytes": stored_bytes}


async def use_of(database: Database, live: LiveTournament) -> tuple[dict[str, int], Quota]:
    """How much a tournament has of all that a quota can bound, and its quota. Raises DatabaseUnavailable."""
    async with database.connection() as connection:
        quota = await quotas.quota_of(connection, live.tournament_id)
        stored = await heads.log_bytes(connection, [live.tournament_id])
    return _used(live, stored.get(live.tournament_id, 0)), quota or Quota()


async def shares_of(database: Database, live: LiveTournament) -> list[Share]:
    """What the quota of a tournament bounds; empty: there is none. Raises DatabaseUnavailable."""
    used, quota = await use_of(database, live)
    return [Share(what, used[what], bound) for what, bound in quota.bounds()]


def _need(command: Command) -> dict[str, int]:
    """What the command certainly adds. The effects of voiding or undoing are not known before judging."""
    events = competitors = 1
    match command:
        case RegisterCompetitors() | AddCompetitions() | RecordResults():
            events = competitors = len(command.items)
        case AddPointsToRankings():
            events = len(command.rankings)
        case _:
            pass
    registers = isinstance(command, RegisterCompetitor | RegisterCompetitors)
    return {"events": events, "competitors": competitors if registers else 0, "bytes": 1}
