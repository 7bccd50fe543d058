"""The verification of all tournaments in one snapshot, several at a time, and its report.

Outside digests are read before the moment is taken, so everything noted by then must be in the log.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Iterator
from contextlib import aclosing, closing, contextmanager
from datetime import datetime
from pathlib import Path
from time import perf_counter
from typing import Final

from asyncpg import Connection
from msgspec import Struct

from engine.database.pool import Database, durable_elsewhere
from engine.domain.errors import NotFound, Unacceptable
from engine.domain.terms import Sequence, TournamentId
from projections.tables.defects import is_defect
from projections.verification import safeguards, stored_log, table_checks
from projections.verification import source as sources
from projections.verification.deletion import deleted_among
from projections.verification.findings import Difference
from projections.verification.one_tournament import verification
from projections.verification.progress import Progress, ProgressFile, beginning
from projections.verification.setting_aside import SetAside
from projections.verification.source import TournamentSource
from projections.verification.stored_log import RegisteredTournament
from projections.verification.witness import Witness

PARALLEL_MAX: Final = 16
MARK_EVENTS: Final = 1_000_000
"""Events of a tournament after which its progress is saved."""

CHECKED: Final = (
    "the server's settings, the triggers that refuse change, the service role's rights, primary keys, indexes, "
    "functions",
    "the log: sequences, blocks, times, tags, bodies, bounds of deltas, lengths, structure, ids that were created, the "
    "rows that are locked, the registry, idempotency keys",
    "that each event could have been made: its references, values and limits, by the rules that judge commands",
    "that each voiding and striking, and what takes it back, reverses exactly the lines that count, each undoing "
    "and redoing those that it names, that voided competitions get none, and the index that finds the points of a "
    "competition",
    "that each expiry has the lines that expire by its boundary and no others, as has each change of a date, and that "
    "requests about several rankings are whole",
    "events that were set aside: that a later event names each one and its digest",
    "the chain of digests, recomputed link by link from the stored bytes",
    "tables and snapshots against the fold of the log, field by field; the view of standings; sums, counted separately",
)
UNCHECKED: Final = (
    "fingerprints of idempotency keys, keys that were refused, append ids and answers of blocks, ids that were created "
    "where a block does not list them: the chain does not hold them",
    "tokens, webhooks, notes of stopped and of verified tournaments, when a checkpoint was written: the log says "
    "nothing about them",
    "the pages of tables and indexes: use amcheck and pg_checksums",
)
WITHOUT_DIGESTS: Final = (
    "whether a log's end was cut off, or all of it rewritten: only outside digests (--digests) show that"
)
WITH_DIGESTS: Final = "what lies beyond the last outside digest of a tournament: it could be cut off or rewritten"
ALWAYS_UNCHECKED: Final = {*UNCHECKED, WITHOUT_DIGESTS, WITH_DIGESTS}
"""Limits of every verification, whatever it finds."""

_NO_TOURNAMENT: Final = TournamentId(0)
"""The id under which findings that belong to no tournament are kept."""


class Plan(Struct, frozen=True, kw_only=True):
    """What to verify. `slug` None: all tournaments. `digests`: the file of outside digests. `state`: the file that
    keeps the progress. `parallel`: tournaments at once. `mark_events`: events of a tournament after which its progress
    is kept."""

    slug: str | None = None
    digests: Path | None = None
    state: Path | None = None
    parallel: int = 1
    mark_events: int = MARK_EVENTS

    def arguments(self, way: str) -> str:
        """The arguments that a file of progress must have been begun with to be resumed."""
        return f"{way}, tournament {self.slug or 'all'}, digests {self.digests or 'none'}"


class VerifiedTournament(Struct, frozen=True, kw_only=True):
    """A tournament, verified up to this head. `events` and `blocks` are those of the whole log. `tables_at`: where its
    tables were compared; None: they were not. `set_aside`: the events that have no effect."""

    tournament: TournamentId
    slug: str
    sequence: Sequence
    digest: str
    recorded_at: datetime | None
    events: int
    blocks: int
    tables_at: Sequence | None
    snapshots: int
    digests: int
    set_aside: list[SetAside]
    differences: int


class Report(Struct, frozen=True, kw_only=True):
    """The findings of a run. It read `events` in `seconds`; a resumed run reads fewer than all. `differences`: all of
    the `differences_count`, or the first of them if there are very many."""

    heads: list[VerifiedTournament]
    differences: list[Difference]
    differences_count: int
    checked: list[str]
    unchecked: list[str]
    events: int
    seconds: float
    events_per_second: float
    resumed: bool


# ── All in one snapshot ───────────────────────────────────────────────────────────────────────────────────


async def verify_all(
    database: Database,
    plan: Plan,
    *,
    on_difference: Callable[[Difference], None],
    on_events: Callable[[int, int], None],
) -> Report:
    """Verifies everything in one snapshot. `on_difference` gets each difference when it is found, after those that a
    resumed run had found before; `on_events` gets how many events have been verified, and of how many.

    Raises NotFound, Unacceptable and DatabaseUnavailable; the file of progress then keeps what has been verified.
    """
    with (
        opened_witness(plan) as witness,
        closing(ProgressFile(plan.state, plan.arguments("verify"))) as progress_file,
    ):
        if witness is not None and not any(witness.tournaments()):
            raise Unacceptable(f"{plan.digests} has no digest, so nothing could be compared with it.")
        run = _Run(plan, witness, progress_file, on_difference, on_events)
        began = perf_counter()
        async with database.connection() as connection, stored_log.one_moment(connection) as moment:
            await run.prepare(connection)
            under_way = [asyncio.create_task(run.work(database, moment)) for _ in range(plan.parallel)]
            try:
                await asyncio.gather(*under_way)
            finally:
                for task in under_way:
                    task.cancel()
                await asyncio.gather(*under_way, return_exceptions=True)
        report = run.report(perf_counter() - began)
        progress_file.end()
    return report


class _Run:
    """One run of `verify_all`."""

    def __init__(
        self,
        plan: Plan,
        witness: Witness | None,
        progress_file: ProgressFile,
        on_difference: Callable[[Difference], None],
        on_events: Callable[[int, int], None],
    ) -> None:
        self._plan = plan
        self._witness = witness
        self._progress_file = progress_file
        self._on_difference = on_difference
        self._on_events = on_events
        self._tournaments: list[RegisteredTournament] = []
        self._left: deque[RegisteredTournament] = deque()
        self._heads: list[VerifiedTournament] = []
        self._unchecked: list[str] = []
        self._differences: list[Difference] = []
        self._differences_count = 0
        self._read_events = 0
        self._verified_events = 0
        self._all_events = 0

    async def prepare(self, connection: Connection) -> None:
        """Looks for rows that belong to no tournament, and for the tournaments to verify. Raises NotFound."""
        registered = await stored_log.registered_tournaments(connection)
        self._tournaments = [one for one in registered if self._plan.slug in (None, one.slug)]
        found = await database_differences(connection, registered, self._witness, self._plan.slug)
        if self._plan.slug is not None and not self._tournaments and not any(d.tournament for d in found):
            raise NotFound(f"There is no tournament {self._plan.slug!r}; `tallybook tournament list` shows them.")
        self._keep_database_differences(found)
        if place := await durable_elsewhere(connection):
            self._unchecked.append(f"that the database keeps what it confirmed: {place} is trusted to, not the server")
        self._unchecked += await _deleted(connection, registered, self._witness)
        self._left.extend(self._tournaments)
        self._all_events = sum(tournament.sequence or 0 for tournament in self._tournaments)

    def _keep_database_differences(self, found: list[Difference]) -> None:
        """Reports what was found to differ outside the verified tournaments, now or before the run was resumed."""
        kept = self._progress_file.of(_NO_TOURNAMENT) or beginning(_NO_TOURNAMENT, "")
        kept.account.differences += [one for one in found if one not in kept.account.differences]
        self._progress_file.keep(kept)
        for difference in kept.account.differences:
            self._differ(difference)
        self._differences_count = len(kept.account.differences)

    async def work(self, database: Database, moment: str) -> None:
        """Verifies tournaments that no other task has taken, one after another."""
        if database.is_distributed:
            await self._work_one_by_one(database)
        if not self._left:
            return
        async with database.connection() as connection, stored_log.one_moment(connection, moment):
            while self._left:
                batch = self._next_batch()
                source = TournamentSource(connection, [tournament.tournament_id for tournament in batch])
                for tournament in batch:
                    await self._verify(source, tournament)

    async def _work_one_by_one(self, database: Database) -> None:
        """Like `work`, with a snapshot for each tournament."""
        while self._left:
            tournament_id = self._left.popleft().tournament_id
            async with database.connection() as connection, stored_log.one_moment(connection):
                for tournament in await stored_log.registered_tournaments(connection, tournament_id):
                    await self._verify(TournamentSource(connection, [tournament_id]), tournament)

    def _next_batch(self) -> list[RegisteredTournament]:
        """The next tournament, with some following ones if all are small and not started yet."""
        batch = [self._left.popleft()]
        if self._fits(batch[0]):
            while self._left and len(batch) < sources.TOGETHER_MAX and self._fits(self._left[0]):
                batch.append(self._left.popleft())
        return batch

    def _fits(self, tournament: RegisteredTournament) -> bool:
        return sources.is_small(tournament) and self._progress_file.of(tournament.tournament_id) is None

    async def _verify(self, source: TournamentSource, tournament: RegisteredTournament) -> None:
        tournament_id, slug = tournament.tournament_id, tournament.slug
        progress = self._progress_file.of(tournament_id) or beginning(tournament_id, slug)
        blocks = progress.blocks
        for difference in progress.account.differences:
            self._differ(difference)
        self._verified_events += blocks.events
        self._on_events(self._verified_events, self._all_events)
        if not progress.done:
            try:
                await self._continue(source, tournament, progress)
            except Exception as error:
                if not is_defect(error):
                    raise
                wrong = f"the tournament cannot be verified further: {error!r}"
                at = progress.blocks.sequence
                self._differ(Difference(tournament=slug, sequence=at, field="event", message=wrong))
                self._differences_count += 1
            else:
                self._progress_file.keep(progress)
        elif await stored_log.digest_at(source.connection, tournament_id, blocks.sequence) != blocks.digest:
            gone = "is not the one that had been verified before the pause"
            self._differ(Difference(tournament=slug, sequence=blocks.sequence, field="block.digest", message=gone))
            self._differences_count += 1
        self._differences_count += progress.account.count
        self._heads.append(_verified_tournament(progress, tournament))
        self._unchecked += [f"{slug}: {sentence}" for sentence in progress.account.unchecked]

    async def _continue(self, source: TournamentSource, tournament: RegisteredTournament, progress: Progress) -> None:
        """Verifies the rest of a tournament, and keeps its progress now and then."""
        since_mark = 0
        async with aclosing(verification(source, tournament, progress, witness=self._witness)) as all_found:
            async for found in all_found:
                if isinstance(found, Difference):
                    self._differ(found)
                    continue
                self._read_events += found.events
                self._verified_events += found.events
                self._on_events(self._verified_events, self._all_events)
                since_mark += found.events
                if since_mark >= self._plan.mark_events:
                    self._progress_file.keep(progress)
                    since_mark = 0

    def _differ(self, difference: Difference) -> None:
        self._differences.append(difference)
        self._on_difference(difference)

    def report(self, seconds: float) -> Report:
        witness = self._witness
        checked = list(CHECKED)
        unchecked = [*UNCHECKED, WITHOUT_DIGESTS if witness is None else WITH_DIGESTS, *self._unchecked]
        if witness is not None:
            checked.append(f"{sum(head.digests for head in self._heads)} outside digests of {witness.lines} lines")
            unchecked += list(_unread(witness, self._plan))
            unchecked += [f"{h.slug}: no outside digest of it was noted" for h in self._heads if h.digests == 0]
        return Report(
            heads=sorted(self._heads, key=lambda head: head.tournament),
            differences=self._differences,
            differences_count=self._differences_count,
            checked=checked,
            unchecked=unchecked,
            events=self._read_events,
            seconds=round(seconds, 3),
            events_per_second=round(self._read_events / seconds, 1),
            resumed=self._progress_file.resumed,
        )


def _verified_tournament(progress: Progress, tournament: RegisteredTournament) -> VerifiedTournament:
    blocks, compared = progress.blocks, progress.compared
    return VerifiedTournament(
        tournament=progress.tournament_id,
        slug=progress.slug,
        sequence=blocks.sequence,
        digest=blocks.digest.hex(),
        recorded_at=tournament.recorded_at if tournament.sequence == blocks.sequence else None,
        events=blocks.events,
        blocks=blocks.count,
        tables_at=compared.tables_at,
        snapshots=compared.snapshots,
        digests=compared.digests,
        set_aside=progress.set_aside,
        differences=progress.account.count,
    )


def _unread(witness: Witness, plan: Plan) -> Iterator[str]:
    if witness.torn:
        yield f"the last line of {plan.digests}: it is incomplete, as after a crash"
    if witness.unreadable:
        lines = ", ".join(map(str, witness.unreadable_lines))
        yield f"{witness.unreadable} lines of {plan.digests}: they are not digests ({lines})"


# ── What differs outside the logs ───────────────────────────────────────────────────────────────────────


async def database_differences(
    connection: Connection, registered: Collection[RegisteredTournament], witness: Witness | None, slug: str | None
) -> list[Difference]:
    """Rules that do not hold, rows of tournaments that are not registered, and noted tournaments that are gone."""
    found = [
        Difference(tournament="", sequence=None, field=broken.rule, message=broken.message)
        for broken in await safeguards.broken_rules(connection)
    ]
    for table, tournament_id in await table_checks.unregistered(connection):
        wrong = f"has rows of tournament {tournament_id}, which is not registered"
        found.append(Difference(tournament="", sequence=None, field=table, message=wrong))
    registered_ids = {tournament.tournament_id for tournament in registered}
    missing = [one for one in witness.tournaments() if one[0] not in registered_ids] if witness is not None else []
    deleted = await deleted_among(connection, [one[0] for one in missing])
    for tournament_id, noted_slug, last in missing:
        note = deleted.get(tournament_id)
        if note is not None and last <= note.sequence:
            continue
        if slug in (None, noted_slug):
            gone = "it was noted elsewhere up to this sequence, and is gone"
            if note is not None:
                gone = f"it was noted elsewhere up to this sequence, and was deleted at {note.sequence}"
            found.append(Difference(tournament=noted_slug, sequence=last, field="tournament", message=gone))
    return found


async def _deleted(
    connection: Connection, registered: Collection[RegisteredTournament], witness: Witness | None
) -> list[str]:
    """A sentence for each noted tournament that was deleted."""
    registered_ids = {tournament.tournament_id for tournament in registered}
    noted = [] if witness is None else [one[0] for one in witness.tournaments() if one[0] not in registered_ids]
    return [
        f"{one.slug}: deleted on {one.deleted_at:%Y-%m-%d}, up to event {one.sequence} ({one.digest.hex()})"
        for one in (await deleted_among(connection, noted)).values()
    ]


@contextmanager
def opened_witness(plan: Plan) -> Iterator[Witness | None]:
    if plan.digests is None:
        yield None
        return
    with closing(Witness(plan.digests)) as witness:
        try:
            witness.read()
        except OSError as error:
            raise Unacceptable(f"{plan.digests} cannot be read: {error.strerror}.") from error
        yield witness
