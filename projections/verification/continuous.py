"""Continuous verification: repeated rounds over all tournaments, a little at a time, at a bounded share of a core.

Findings become log lines, metrics and notes for operators. A finding stops nothing.
"""

import asyncio
import time
from contextlib import aclosing, closing
from time import perf_counter
from typing import Final

from asyncpg import Connection

from engine.database.pool import Database
from engine.domain.errors import DatabaseUnavailable, NotFound, TallybookError
from engine.domain.terms import TournamentId
from engine.log import registry
from engine.process.background import set_within
from engine.process.logs import Logger
from engine.process.telemetry import DIFFERENCES, DIFFERING, UNVERIFIED_SECONDS, VERIFIED_EVENTS, VERIFIED_TOURNAMENTS
from projections.tables import defects
from projections.tables.defects import DefectPart, is_defect
from projections.verification import stored_log
from projections.verification.all_tournaments import Plan, database_differences, opened_witness
from projections.verification.findings import Difference
from projections.verification.noted import note_verified
from projections.verification.one_tournament import verification
from projections.verification.progress import Progress, ProgressFile, beginning
from projections.verification.source import TournamentSource
from projections.verification.stored_log import RegisteredTournament
from projections.verification.witness import Witness

VERIFICATION_ROUND_SECONDS_MIN: Final = 1.0
"""The least duration of a round, even if there is little to verify."""
RETRY_SECONDS: Final = 5.0

_logger: Final = Logger()


async def verify_continuously(database: Database, plan: Plan, *, share: float, stop: asyncio.Event) -> int:
    """Verifies one tournament after another, the longest unverified first, until `stop` is set.

    Works for `share` of the time, the database's work included. Verifies a tournament in chunks, each with a snapshot
    of its own, so that no long transaction holds back vacuum. Logs and counts differences, and returns their number.
    Logs trouble with the database, and continues when that is over. Raises NotFound if there is no tournament of the
    plan's slug, and Unacceptable.
    """
    with (
        opened_witness(plan) as witness,
        closing(ProgressFile(plan.state, plan.arguments("verify --forever"))) as progress_file,
    ):
        rounds = _Rounds(database, plan, witness, progress_file, share, stop)
        while not stop.is_set():
            try:
                await rounds.go_round()
            except (TallybookError, OSError) as error:
                if isinstance(error, NotFound):
                    raise
                _logger.error("verify_failed", reason=str(error))
                await rounds.pause(RETRY_SECONDS)
        return rounds.count


class _Rounds:
    """What `verify_continuously` works with. `count`: differences found so far; those found again count again."""

    def __init__(
        self,
        database: Database,
        plan: Plan,
        witness: Witness | None,
        progress_file: ProgressFile,
        share: float,
        stop: asyncio.Event,
    ) -> None:
        self.count = 0
        self._database = database
        self._plan = plan
        self._witness = witness
        self._progress_file = progress_file
        self._share = share
        self._stop = stop
        self._began_at = time.time()
        self._rested_at = perf_counter()
        self._verified_at = progress_file.verified_at()
        self._differing: set[TournamentId] = set()

    async def go_round(self) -> None:
        """Verifies every tournament once."""
        began = perf_counter()
        for tournament_id in await self._order():
            if self._stop.is_set():
                return
            try:
                await self._verify(tournament_id)
            except Exception as error:
                if isinstance(error, DatabaseUnavailable) or not (
                    isinstance(error, TallybookError) or is_defect(error)
                ):
                    raise
                await self._fail(tournament_id, error)
        await self.pause(VERIFICATION_ROUND_SECONDS_MIN - (perf_counter() - began))

    async def _order(self) -> list[TournamentId]:
        """All tournaments, the longest unverified first. Also looks for rows that belong to none."""
        if self._witness is not None:
            self._witness.read()
        async with self._database.connection() as connection, stored_log.one_moment(connection):
            registered = await stored_log.registered_tournaments(connection)
            found = await database_differences(connection, registered, self._witness, self._plan.slug)
        for difference in found:
            self._differ(difference)
        self.count += len(found)
        chosen = [one.tournament_id for one in registered if self._plan.slug in (None, one.slug)]
        if self._plan.slug is not None and not chosen and not any(difference.tournament for difference in found):
            raise NotFound(f"There is no tournament {self._plan.slug!r}; `tallybook tournament list` shows them.")
        await self._rest()
        return sorted(chosen, key=lambda tournament_id: (self._verified_at.get(tournament_id, 0.0), tournament_id))

    async def _verify(self, tournament_id: TournamentId) -> None:
        began = perf_counter()
        UNVERIFIED_SECONDS.set(time.time() - self._verified_at.get(tournament_id, self._began_at))
        progress = self._progress_file.of(tournament_id)
        slug = ""
        while progress is None or not progress.done:
            if self._witness is not None:
                self._witness.read()
            async with self._database.connection() as connection, stored_log.one_moment(connection):
                found = await stored_log.registered_tournaments(connection, tournament_id)
                if not found and await registry.is_deleted(connection, tournament_id):
                    return
                if not found:
                    gone = f"{tournament_id} is no longer registered"
                    self._differ(Difference(tournament=slug, sequence=None, field="tournament", message=gone))
                    self.count += 1
                    return
                slug = found[0].slug
                progress = progress or beginning(tournament_id, slug)
                await self._part(connection, found[0], progress)
            self._progress_file.keep(progress)
            if self._stop.is_set() and not progress.done:
                self.count += progress.account.count
                return
        async with self._database.connection() as connection:
            await note_verified(connection, tournament_id, progress.blocks.sequence, progress.account.count)
        self._conclude(progress, perf_counter() - began)
        await self._rest()

    async def _fail(self, tournament_id: TournamentId, error: Exception) -> None:
        """Reports a tournament that cannot be verified, so that it does not delay the others."""
        defects.alarm(tournament_id, DefectPart.VERIFYING, error)
        await defects.note(self._database, tournament_id, DefectPart.VERIFYING, error)
        wrong = f"the tournament {tournament_id} cannot be verified: {error!r}"
        self._differ(Difference(tournament="", sequence=None, field="tournament", message=wrong))
        self.count += 1
        self._differing.add(tournament_id)
        DIFFERING.set(len(self._differing))
        self._verified_at[tournament_id] = time.time()  # the others come first in the next round
        await self._rest()

    async def _part(self, connection: Connection, tournament: RegisteredTournament, progress: Progress) -> None:
        """Verifies the next chunk of a tournament, and rests after each batch of blocks."""
        source, events = TournamentSource(connection, [tournament.tournament_id]), 0
        run = verification(source, tournament, progress, witness=self._witness, reads_ahead=False)
        async with aclosing(run) as all_found:
            async for found in all_found:
                if isinstance(found, Difference):
                    self._differ(found)
                    continue
                VERIFIED_EVENTS.inc(found.events)
                events += found.events
                if not await self._rest() or events >= self._plan.mark_events:
                    return

    def _conclude(self, progress: Progress, seconds: float) -> None:
        tournament_id = progress.tournament_id
        self._progress_file.keep_verified(tournament_id)
        self._verified_at[tournament_id] = time.time()
        self.count += progress.account.count
        (self._differing.add if progress.account.count else self._differing.discard)(tournament_id)
        DIFFERING.set(len(self._differing))
        VERIFIED_TOURNAMENTS.inc()
        _logger.info(
            "tournament_verified",
            tournament=progress.slug,
            sequence=progress.blocks.sequence,
            events=progress.blocks.events,
            milliseconds=round(seconds * 1000, 3),
            differences=progress.account.count,
        )

    def _differ(self, difference: Difference) -> None:
        DIFFERENCES.inc()
        _logger.error(
            "difference_found",
            tournament=difference.tournament,
            sequence=difference.sequence,
            field=difference.field,
            message=difference.message,
        )

    async def _rest(self) -> bool:
        """Rests for as long as the share demands after the work since the last rest. False: stop working."""
        worked_seconds = perf_counter() - self._rested_at
        await self.pause(worked_seconds * (1 - self._share) / self._share)
        self._rested_at = perf_counter()
        return not self._stop.is_set()

    async def pause(self, seconds: float) -> None:
        await set_within(self._stop, seconds)
