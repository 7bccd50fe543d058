"""The verification of one tournament: folds its whole log once, and compares everything derived with the result.

This module reads the blocks, and compares notes, snapshots and tables. `block_checks.py` checks and folds each block.

However long the log is, memory holds two batches of blocks, one board, and one sum for each total of the board. During
a comparison of tables or a snapshot, it also holds their lists and totals, but only those competitors and competitions
that differ; lines of standings are read in chunks.
"""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping
from collections.abc import Sequence as Items
from contextlib import aclosing
from datetime import datetime
from itertools import chain, islice
from operator import attrgetter
from typing import Any, Final

import asyncpg
from asyncpg import Connection
from msgspec import UNSET, Struct

from engine.database.pool import DATABASE_TROUBLE
from engine.domain.counting import signed
from engine.domain.errors import LogForked
from engine.domain.events import (
    CompetitionChanged,
    CompetitionUnvoided,
    CompetitionVoided,
    PointsAdded,
    PointsReversed,
    RankingReopened,
    Recorded,
    Revaluation,
)
from engine.domain.expirations import Expiration, LinesByRanking, Redating, lines_at_once
from engine.domain.lines import declared_date, part_of, rule_of
from engine.domain.marks import mark_after
from engine.domain.terms import CompetitorId, Counts, RankingId, Sequence, UnityId
from engine.log import digest, heads, reading
from engine.log.heads import Head
from engine.process.time_slices import in_chunks
from projections.board.board import FOLD_VERSION, Board, erase
from projections.board.differences import Unmatched, differences
from projections.board.expiring import dated_between, expiring_intervals, expiring_points
from projections.board.order import OrderedLines
from projections.board.results import Results, note_given
from projections.columns.enrolment import Enrolment, Totals
from projections.columns.packed import WALK_CHUNK_ITEMS
from projections.tables import snapshots
from projections.tables.tables import Checkpoint
from projections.verification import stored_log
from projections.verification.block_checks import (
    BlockChecks,
    DifferenceCollector,
    DueReversals,
    ExpiredInBlock,
    is_reversed,
)
from projections.verification.progress import Difference, Progress, Sums, beginning
from projections.verification.source import TournamentSource
from projections.verification.stored_log import RegisteredTournament, StoredBlock
from projections.verification.table_checks import StandingRow
from projections.verification.witness import NotedDigests, Witness

MARK_EVENTS: Final = 1_000_000
"""Events of a tournament after which its progress is saved."""
RECEIVE_BYTES: Final = 64 * 1024
"""Bytes of the blocks' text that are verified before the next batch is received further. It may not fit into the
socket's buffer, and PostgreSQL would wait for room instead of continuing."""
_BEGINNING: Final = Sequence(0)
_NEVER: Final = 2**63
UNREVERSED_MAX: Final = 10
"""Events that are named in one difference."""

Rest = Callable[[], Awaitable[bool]]
"""Rests from the work done since the last rest. False: stop working."""


class Callbacks(Struct, frozen=True, kw_only=True):
    """What a verification calls. `on_difference` gets each difference that is kept, as soon as it is found;
    `on_events` the number of events read since its last call; `on_mark` each progress from which the verification could
    go on."""

    on_difference: Callable[[Difference], None]
    on_events: Callable[[int], None]
    on_mark: Callable[[Progress], None]


class _Batch(Struct, frozen=True):
    blocks: list[StoredBlock]
    keys: Mapping[str, Sequence]  # the remembered ones of its events


class TournamentVerification:
    """Use `run` once, within `stored_log.one_moment`; `tournament` and `source` must be of the same snapshot. `source`
    None: data is read on demand."""

    def __init__(
        self,
        connection: Connection,
        tournament: RegisteredTournament,
        progress: Progress,
        *,
        witness: Witness | None,
        callbacks: Callbacks,
        rest: Rest | None = None,
        mark_events: int = MARK_EVENTS,
        source: TournamentSource | None = None,
    ) -> None:
        collector = DifferenceCollector(progress, tournament.slug, callbacks.on_difference)
        self.progress = progress
        self._checks = BlockChecks(progress, tournament, collector)
        self._differ = collector.add
        self._connection = connection
        self._source = source or TournamentSource(connection, progress.tournament_id)
        self._tournament = tournament
        self._witness = witness
        self._callbacks = callbacks
        self._rest = rest
        self._mark_events = mark_events
        self._next_mark = progress.events + mark_events
        self._reading: asyncio.Task[list[StoredBlock]] | None = None
        self._stopped = False
        self._checkpoint: Checkpoint | None = None
        self._snapshots: Iterator[Sequence] = iter(())
        self._next_snapshot: Sequence | None = None
        self._notes: Iterator[NotedDigests] = (
            iter(()) if witness is None else witness.digests_of(progress.tournament_id, progress.sequence)
        )
        self._next_note: NotedDigests | None = next(self._notes, None)
        self._next_stop: int = 0

    async def run(self) -> bool:
        """Continues from the progress to the end of the log. False: `rest` demanded to stop."""
        await self._begin()
        async with aclosing(self._batches()) as batches:
            async for batch in batches:
                events = self.progress.events
                taken_bytes = 0
                for block in batch.blocks:
                    self._checks.check(block, batch.keys)
                    for unreversed in self._checks.unreversed:
                        await self._report_unreversed(unreversed)
                    self._checks.unreversed.clear()
                    if self._checks.undone:
                        await self._check_undone()
                    if self._checks.reversed_results:
                        await self._check_totals()
                    if self._checks.expired:
                        await self._check_expiries()
                    taken_bytes += block.size
                    if taken_bytes >= RECEIVE_BYTES:
                        taken_bytes = 0
                        await asyncio.sleep(0)
                    if block.count > 0 and block.count != block.last_sequence - block.first_sequence + 1:
                        await self._report_missing(block)
                    if self.progress.sequence >= self._next_stop:
                        await self._compare()
                self._callbacks.on_events(self.progress.events - events)
                if self.progress.events >= self._next_mark:
                    self._callbacks.on_mark(self.progress)
                    self._next_mark = self.progress.events + self._mark_events
        if self._stopped:
            return False
        await self._check_unexpired()
        await self._finish()
        self.progress.done = True
        self.progress.board = None
        self.progress.sums = {}
        self.progress.caused_sums = {}
        return True

    # ── Reading ─────────────────────────────────────────────────────────────────────────────────────────

    async def _batches(self) -> AsyncGenerator[_Batch, None]:
        """The following blocks, batch by batch. The next one is read while one is being verified. If there are to be
        rests, it is read afterwards."""
        reading = self._reading = asyncio.create_task(self._read(self.progress.sequence))
        try:
            while blocks := await reading:
                batch = _Batch(blocks, await self._remembered(blocks))
                last = blocks[-1].last_sequence
                if self._rest is None:
                    reading = self._reading = asyncio.create_task(self._read(last))
                    await asyncio.sleep(0)  # it sends its query
                yield batch
                if self._rest is not None:
                    if not await self._rest():
                        self._stopped = True
                        return
                    reading = self._reading = asyncio.create_task(self._read(last))
        finally:
            reading.cancel()
            await asyncio.wait([reading])

    async def _read(self, after: Sequence) -> list[StoredBlock]:
        return await self._source.blocks(after)

    async def _remembered(self, blocks: list[StoredBlock]) -> Mapping[str, Sequence]:
        """The sequences stored for the idempotency keys of the blocks' events.

        Only blocks with keys are decoded here, and again when they are verified. That takes 0.1 to 0.4 µs for each
        event.
        """
        of_blocks = [columns.keys for block in blocks if block.keyed and (columns := block.columns())]
        keys = {key for of_block in of_blocks if of_block for key in of_block if key is not None}
        return await self._source.key_sequences(list(keys)) if keys else {}

    async def _wait_for_connection(self) -> None:
        """Returns when the connection is free for another query."""
        if self._reading is not None:
            await asyncio.wait([self._reading])

    async def _check_undone(self) -> None:
        """Compares the events of the last block that undo or redo points with the points that they reverse."""
        await self._wait_for_connection()
        together = {event.reverses for _, event in self._checks.undone}
        for sequence, event in self._checks.undone:
            try:
                request = await reading.points_of_request(self._connection, self.progress.tournament_id, event.reverses)
                at = await self._expiring_since(event.reverses) if request else None
            except LogForked:  # it is not there
                request, at = {}, None
            self._checks.check_undone(sequence, event, request, together, at)
        self._checks.undone.clear()

    async def _expiring_since(self, sequence: Sequence) -> datetime | None:
        """When this event was recorded, if points expire."""
        if not self._checks.board.expiries:
            return None
        return (await reading.event_at(self._connection, self.progress.tournament_id, sequence)).recorded_at

    async def _check_expiries(self) -> None:
        """Compares the expiries of the last block with what expires by the rule."""
        assert self.progress.recorded_us is not None
        await self._wait_for_connection()
        finest = min([expiry for _, expiry in self._checks.board.expiries.values()], key=lambda one: one.on.length)
        boundary = finest.boundary(digest.moment(self.progress.recorded_us))
        for found in self._checks.expired:
            try:
                expected = await self._expiring(found, boundary)
            except LogForked:
                break  # reported: an event is missing
            self._checks.check_expired(found, boundary, expected)
        self._checks.expired.clear()

    async def _expiring(self, found: ExpiredInBlock, boundary: datetime) -> LinesByRanking:
        """The lines that expire with the expiries of the last block, because of what is before them there. Raises
        LogForked."""
        board, tournament_id, upto = self._checks.board, self.progress.tournament_id, Sequence(found.first - 1)
        cause = found.causes[-1] if found.causes else None
        match cause:
            case PointsAdded():
                request = found.causes[-1 if cause.part is None else -cause.part[1] :]
                added = [points for points in request if isinstance(points, PointsAdded)]  # others are reported
                return lines_at_once(board, cause.competition_id, added, boundary)
            case CompetitionChanged() if cause.started_at is not UNSET:
                back = Redating(board, cause.competition_id, found.before, boundary)
                async for recorded in reading.points_of(self._connection, tournament_id, cause.competition_id, upto):
                    if isinstance(recorded.event, PointsAdded):
                        back.take(recorded.sequence, recorded.recorded_at, recorded.event)
                return {one: (signed(-1, deltas), named) for one, (deltas, named) in back.lines().items()}
            case RankingReopened():
                began, rankings = min(boundary, found.before or boundary), [cause.ranking_id]
            case None:
                began = await reading.last_judged_at(self._connection, tournament_id, upto)
                rankings = [one for one, ranking in board.rankings.items() if ranking.closed_at is None]
            case _:
                return {}
        expiration = Expiration(board, began, boundary)
        async for recorded in self._given_between(began, boundary, rankings, upto):
            if (points := expiring_points(board, recorded, rankings)) is not None:
                expiration.take(recorded.sequence, recorded.recorded_at, points)
        return expiration.lines()

    async def _given_between(
        self, began: datetime, until: datetime, ranking_ids: Items[RankingId], upto: Sequence
    ) -> AsyncIterator[Recorded]:
        """The points up to this event that may expire in these rankings after `began`, and by `until`; each once."""
        board, tournament_id = self._checks.board, self.progress.tournament_id
        for after, by in expiring_intervals(board, began, until, ranking_ids):
            first = await heads.last_at(self._connection, tournament_id, after, upto)
            last = await heads.last_at(self._connection, tournament_id, by, upto)
            async for events in self._chunks(last, first):
                for recorded in events:
                    points = recorded.event
                    if isinstance(points, PointsAdded) and declared_date(board, points.competition_id) is None:
                        yield recorded
            walk = in_chunks(board.competitions.walk(), WALK_CHUNK_ITEMS)
            dated = [one async for some in walk for one in dated_between(some, after, by)]
            pending = deque((one, Sequence(0)) for one in dated)
            while pending:
                for recorded in await reading.points_of_competitions(self._connection, tournament_id, pending, upto):
                    yield recorded

    async def _check_unexpired(self) -> None:
        """Compares the totals of unities whose points expire with the totals of the points that count by the rule."""
        board, progress = self._checks.board, self.progress
        if not board.expiries or not progress.foldable:
            return
        await self._wait_for_connection()
        now = await reading.last_judged_at(self._connection, progress.tournament_id, progress.sequence)
        rules = {ranking_id: rule_of(board, ranking_id) for ranking_id in board.rankings}
        sums: dict[UnityId, dict[CompetitorId, int]] = {unity_id: {} for unity_id in board.expiries}
        async for events in self._chunks(progress.sequence):
            for recorded in events:
                ranking_id = recorded.event.ranking_id if isinstance(recorded.event, PointsAdded) else None
                if ranking_id not in rules:
                    continue
                for line in rules[ranking_id].of(recorded, now):
                    if line.expires_at is not None:
                        its = line.delta
                        unity, of_unity = board.rankings[ranking_id].unities[its.unity_id], sums[its.unity_id]
                        before = of_unity.get(its.competitor_id, 0)
                        of_unity[its.competitor_id] = (
                            before + its.amount
                            if unity.counts is Counts.SUM
                            else mark_after(before, its.amount, unity.counts, unity.sort)
                        )
            await asyncio.sleep(0)
        for unity_id, (ranking_id, _) in board.expiries.items():
            for competitor_id, total in board.rankings[ranking_id].unities[unity_id].totals.items():
                if total != (expected := sums[unity_id].get(competitor_id, 0)):
                    named = f"competitor {competitor_id} in unity {unity_id}"
                    shown = board.rankings[ranking_id].unities[unity_id].notation.shown
                    made = f"is {shown(total)}; what counts gives {shown(expected)}"
                    self._differ(None, "event.deltas", f"the total of {named} {made}")

    async def _check_totals(self) -> None:
        """Compares the totals that events of the last block name with the totals of the results."""
        checks, unities = self._checks, self._checks.board.rankings
        for sequence, event in checks.reversed_results:
            ranking_id = event.ranking_id
            if ranking_id not in checks.results:
                await self._wait_for_connection()
                results = Results()
                async for events in self._chunks(self.progress.sequence):
                    for recorded in events:
                        note_given(results, unities[ranking_id].unities, ranking_id, recorded)
                    await asyncio.sleep(0)
                checks.results[ranking_id] = results
            checks.check_totals(sequence, event)
        checks.reversed_results.clear()

    async def _chunks(self, upto: Sequence, after: Sequence = _BEGINNING) -> AsyncIterator[list[Recorded]]:
        """The events after `after` up to `upto`, chunk by chunk."""
        while after < upto:
            events = await reading.chunk_of(self._connection, self._tournament.tournament_id, after, upto)
            yield events
            after = events[-1].sequence

    async def _report_unreversed(self, due: DueReversals) -> None:
        """Reports points that should have been reversed but were not, and those reversed without a reason."""
        await self._wait_for_connection()
        competition_id = due.event.competition_id
        upto, wanted = self.progress.sequence, dict[Sequence, PointsAdded]()
        taken: list[PointsReversed] = []
        async for recorded in reading.points_of(self._connection, self.progress.tournament_id, competition_id, upto):
            event = recorded.event
            if isinstance(event, PointsAdded):
                points = self._to_reverse(due.event, recorded, event)
                if points.deltas or points.results:
                    wanted[recorded.sequence] = points
            elif isinstance(event, PointsReversed) and recorded.sequence > due.sequence and event.undone is None:
                taken.append(event)
        wrong: list[str] = []
        names = Counter([event.reverses for event in taken])
        wrong += [f"event {sequence} is not reversed" for sequence in wanted if sequence not in names]
        wrong += [f"event {sequence} is reversed {n} times" for sequence, n in names.items() if n > 1]
        wrong += [f"event {s} is reversed, which gave no points that count" for s in names if s not in wanted]
        wrong += [
            f"event {event.reverses} is reversed by other lines"
            for event in taken
            if event.reverses in wanted and not is_reversed(event, wanted[event.reverses], due.sign)
        ]
        if not wrong:
            return
        message = "; ".join(wrong[:UNREVERSED_MAX]) + (
            f"; and {len(wrong) - UNREVERSED_MAX} more" * (len(wrong) > UNREVERSED_MAX)
        )
        self._differ(due.sequence, "event.reverses", f"of competition {competition_id}: {message}")

    def _to_reverse(self, event: Revaluation, recorded: Recorded, points: PointsAdded) -> PointsAdded:
        """Those of the points that start or stop counting by `event`, which is in the last block."""
        rule, now = rule_of(self._checks.board, points.ranking_id), self._checks.recorded_at
        if isinstance(event, CompetitionVoided | CompetitionUnvoided):
            return part_of(points, rule.voiding(event.competition_id, voided=False).of(recorded, now))
        lines = rule.striking(event.competition_id, event.competitors, struck=False).of(recorded, now)
        return part_of(points, [line for line in lines if line.delta.competitor_id in event.competitors])

    async def _report_missing(self, block: StoredBlock) -> None:
        await self._wait_for_connection()
        missing = await stored_log.missing(
            self._connection, self.progress.tournament_id, block.first_sequence, block.last_sequence
        )
        self._differ(
            block.first_sequence if missing is None else missing,
            "event.sequence",
            f"is missing: the block from {block.first_sequence} to {block.last_sequence} has {block.count} events",
        )

    # ── What is kept next to the log ────────────────────────────────────────────────────────────────────

    async def _begin(self) -> None:
        """Looks up events that were set aside, and the comparisons due at each sequence."""
        progress, connection = self.progress, self._connection
        set_asides = await self._source.set_asides()
        self._checks.ignored = frozenset([s.sequence for s in set_asides if s.fault is None and s.sequence is not None])
        self._checks.faults = {s.by: s.fault for s in set_asides if s.fault is not None}
        if any(sequence <= progress.sequence and sequence not in progress.ignored for sequence in self._checks.ignored):
            self._start_over()
        if progress.sequence > 0:
            there = await stored_log.digest_at(connection, progress.tournament_id, progress.sequence)
            if there != progress.digest:
                self._differ(
                    progress.sequence, "block.digest", "is not the one that had been verified before the pause"
                )
            await self._erase_since()
        checkpoint = await self._source.checkpoint()
        if checkpoint is None:  # then there must be no rows
            checkpoint = Checkpoint(heads.beginning(progress.tournament_id), FOLD_VERSION, Sequence(0))
        if checkpoint.fold_version != FOLD_VERSION:
            progress.unchecked.append(f"tables: they are of version {checkpoint.fold_version} of the fold")
        elif checkpoint.head.sequence >= progress.sequence:
            self._checkpoint = checkpoint
        elif progress.tables_at is None:
            progress.unchecked.append(f"tables: they are at {checkpoint.head.sequence}, before this was resumed")
        taken = await self._source.snapshot_sequences()
        if others := await self._source.count_other_snapshots():
            progress.unchecked.append(f"{others} snapshots: they are of other versions of the fold")
        self._snapshots = (sequence for sequence in taken if sequence > progress.sequence or progress.sequence == 0)
        self._next_snapshot = next(self._snapshots, None)
        self._set_next_stop()
        if progress.sequence >= self._next_stop:
            await self._compare()

    async def _erase_since(self) -> None:
        """Erases on the board those who were erased after it was folded, as they are in snapshots and tables since."""
        since = self.progress.sequence
        erased = await reading.erased_since(self._connection, self.progress.tournament_id, since)
        for one in erase(self._checks.board, erased):
            self.progress.lacking.setdefault(one, since)

    def _start_over(self) -> None:
        """Starts again, because an event was set aside after it was folded. Keeps the differences found so far."""
        restarted = beginning(self.progress.tournament_id, self.progress.slug)
        restarted.differences, restarted.differences_count = self.progress.differences, self.progress.differences_count
        for name in restarted.__struct_fields__:
            setattr(self.progress, name, getattr(restarted, name))
        assert restarted.board is not None
        self._checks.board = restarted.board
        self._checks.results.clear()
        self._next_mark = self._mark_events
        if self._witness is not None:
            self._notes = self._witness.digests_of(restarted.tournament_id, restarted.sequence)
            self._next_note = next(self._notes, None)

    def _set_next_stop(self) -> None:
        """Sets the sequence at which the fold must pause for the next comparison."""
        self._next_stop = min(
            _NEVER if self._checkpoint is None else self._checkpoint.head.sequence,
            _NEVER if self._next_snapshot is None else self._next_snapshot,
            _NEVER if self._next_note is None else self._next_note.sequence,
        )

    async def _compare(self) -> None:
        """Makes the comparisons due at the current sequence."""
        await self._wait_for_connection()
        at = self.progress.sequence
        while self._next_note is not None and self._next_note.sequence <= at:
            self._compare_note(self._next_note)
            self._next_note = next(self._notes, None)
        while self._next_snapshot is not None and self._next_snapshot <= at:
            await self._compare_snapshot(self._next_snapshot)
            self._next_snapshot = next(self._snapshots, None)
        if self._checkpoint is not None and self._checkpoint.head.sequence <= at:
            await self._compare_tables(self._checkpoint.head)
            self._checkpoint = None
        self._set_next_stop()

    def _compare_note(self, note: NotedDigests) -> None:
        noted = " and ".join(known.hex() for known in note.digests)
        if len(note.digests) > 1:
            self._differ(note.sequence, "digests", f"two were noted elsewhere: {noted}: the log was forked")
        if note.sequence != self.progress.sequence:
            self._differ(note.sequence, "digests", f"{noted} was noted elsewhere, but no block ends here now")
        elif self.progress.digest not in note.digests:
            self._differ(
                note.sequence,
                "digests",
                f"{noted} was noted elsewhere, the log has {self.progress.digest.hex()}: it was rewritten",
            )
        self.progress.notes += 1

    async def _compare_snapshot(self, sequence: Sequence) -> None:
        if sequence != self.progress.sequence or sequence == 0:
            self._differ(sequence, "snapshot.sequence", "is not the end of a block")
            return
        if not self.progress.foldable:
            self.progress.unchecked.append(f"snapshot at {sequence}: the log before it cannot be folded")
            return
        try:
            snapshot = await snapshots.nearest(
                self._connection, self.progress.tournament_id, sequence, like=self._checks.board
            )
        except snapshots.SnapshotUndecodable as error:
            self._differ(sequence, "snapshot.board", str(error))
            return
        assert snapshot is not None
        if snapshot.head.digest != self.progress.digest:
            self._differ(sequence, "snapshot.digest", "is not that of the block that ends here")
        self._compare_board(snapshot.board, "snapshot")
        self.progress.snapshots += 1

    async def _compare_tables(self, head: Head) -> None:
        progress = self.progress
        if head.sequence != progress.sequence:
            self._differ(head.sequence, "checkpoint.sequence", "is not the end of a block")
            return
        if head.digest != progress.digest:
            self._differ(head.sequence, "checkpoint.digest", "is not that of the block that ends here")
        if not progress.foldable:
            progress.unchecked.append(f"tables at {head.sequence}: the log before it cannot be folded")
            return
        progress.tables_at = head.sequence
        count = progress.differences_count
        if not await self._compare_rows(head):
            return
        if self._forgotten():
            progress.unchecked.append("the view of standings: the tables have yet to forget a name")
        elif progress.differences_count == count:
            await self._compare_standings(head.sequence)
        else:
            progress.unchecked.append("the view of standings: the tables under it differ")

    async def _compare_rows(self, head: Head) -> bool:
        """Compares the rows with the board folded from the log. False: they do not form a board."""
        for table, row_id, wrong in await self._source.strays():
            self._differ(head.sequence, f"tables.{table}[{row_id}]", wrong)
        bare = await self._source.incomplete()
        if bare is not None:
            self._differ(head.sequence, f"tables.rankings[{bare}]", "has no list of competitors, or no unity")
            return False
        try:
            board = await self._source.board(like=self._checks.board)
        except (ValueError, TypeError, OverflowError) as error:
            self._differ(head.sequence, "tables", f"cannot be read: {error}")
            return False
        self._compare_board(board, "tables")
        return True

    async def _compare_standings(self, at: Sequence) -> None:
        """Compares the view, which PostgreSQL computes, with the positions that answers show."""
        unmatched, ours = Unmatched(attrgetter("unity_id", "competitor_id")), self._standing_rows()
        try:
            async with aclosing(self._source.standing_rows()) as chunks:
                async for rows in chunks:
                    unmatched.take(list(islice(ours, len(rows))), rows)
        except DATABASE_TROUBLE:
            raise
        except asyncpg.PostgresError as error:
            self._differ(at, "standing", f"cannot be read: {error}")
            return
        unmatched.take(list(ours), [])
        lists = {u: ranking.participants for ranking in self._checks.board.rankings.values() for u in ranking.unities}
        self._differ_where_unmatched(at, "standing", unmatched, lists, "unity")

    def _standing_rows(self) -> Iterator[StandingRow]:
        """The lines of all standings, in the order of `TournamentSource.standing_rows`."""
        for ranking_id, ranking in sorted(self._checks.board.rankings.items()):
            for unity_id, unity in sorted(ranking.unities.items()):
                order = OrderedLines(ranking.participants, unity.totals, unity.sort)
                for line in chain.from_iterable(order.in_runs()):
                    place = ranking.participants.place(line.competitor_id)
                    assert place is not None
                    yield StandingRow(
                        ranking_id,
                        unity_id,
                        line.position,
                        line.competitor_id,
                        unity.notation.shown(line.total),
                        unity.version,
                        place + 1,
                        self._tournament.slug,
                        ranking.name,
                        unity.name,
                        self._checks.board.competitors[line.competitor_id].name,
                    )

    def _differ_where_unmatched(
        self, at: Sequence, view: str, unmatched: Unmatched[Any, Any], lists: Mapping[Any, Enrolment], of: str
    ) -> None:
        """Reports what differs in a view. `lists`: the competitors of each unity or ranking, which `of` tells apart."""
        for id_, competitor_id in unmatched.found.keys() - unmatched.expected.keys():
            if competitor_id in lists.get(id_, ()):
                self._differ(at, view, f"shows competitor {competitor_id} twice in {of} {id_}")
                del unmatched.found[id_, competitor_id]
        for unlike in differences(unmatched.expected, unmatched.found, path=view):
            self._differ(at, unlike.path, f"is {unlike.found}, not {unlike.expected}")

    def _compare_board(self, board: Board, what: str) -> None:
        """Reports every field in which `board` differs from the board folded from the log."""
        expected = self._checks.board
        erase(board, self._forgotten())  # a worker is about to do so
        for unlike in differences(expected, board, path=what):
            self._differ(self.progress.sequence, unlike.path, f"is {unlike.found}, not {unlike.expected}")

    def _forgotten(self) -> list[CompetitorId]:
        """The competitors of the board whose names a later event has erased from the log."""
        competitors = self._checks.board.competitors
        return [one for one in self.progress.lacking if one in competitors and competitors[one].erased == 0]

    # ── The end ─────────────────────────────────────────────────────────────────────────────────────────

    async def _finish(self) -> None:
        progress, last = self.progress, self.progress.sequence
        self._compare_lock()
        await self._compare_set_asides()
        await self._compare_erased()
        stray = await self._source.out_of_range(last)
        if stray.event_beyond is not None:
            self._differ(stray.event_beyond, "event.sequence", f"lies beyond the last block, which ends at {last}")
        for before in stray.event_before, stray.block_before:
            if before is not None:
                self._differ(before, "event.sequence", "lies before the beginning")
        for note in [] if self._next_note is None else [self._next_note, *self._notes]:
            noted = " and ".join(known.hex() for known in note.digests)
            self._differ(
                note.sequence, "digests", f"{noted} was noted elsewhere, but the log ends at {last}: its tail was cut"
            )
            progress.notes += 1
        for sequence in [] if self._next_snapshot is None else [self._next_snapshot, *self._snapshots]:
            self._differ(sequence, "snapshot.sequence", f"lies beyond the end of the log, {last}")
        if self._checkpoint is not None:
            beyond = self._checkpoint.head.sequence
            self._differ(beyond, "checkpoint.sequence", f"lies beyond the end of the log, {last}")
        remembered = await self._source.key_count()
        if remembered != progress.keys:
            self._differ(None, "idempotency", f"{remembered} keys are remembered; the events have {progress.keys}")
        caused = await self._source.caused_count(last)
        if caused != progress.caused:
            wrong = f"has {caused} events that competitions caused; the log has {progress.caused}"
            self._differ(None, "index.event_competition", wrong)
        if progress.foldable:
            rankings = self._checks.board.rankings.values()
            folded = {u: unity.totals for r in rankings for u, unity in r.unities.items()}
            if not _are_same(progress.sums, folded):
                expected, found = _not_zero(progress.sums), _not_zero(folded)
                for unlike in differences(expected, found, path="sums"):
                    wrong = f"the fold has {unlike.found}, its deltas add up to {unlike.expected}"
                    self._differ(last, unlike.path, wrong)
        else:
            progress.unchecked.append("sums and everything folded: an event cannot be folded")

    def _compare_lock(self) -> None:
        registered = self._tournament
        if not registered.locked:
            self._differ(None, "append_lock", "is missing: nothing can be appended")
        elif registered.refusals != (registered.last_refusal or 0):
            self._differ(
                None, "append_lock.refusals", f"is {registered.refusals}; the last refusal is {registered.last_refusal}"
            )
        if self.progress.blocks == 0:
            self._differ(Sequence(1), "block", "there is none: the log is empty")

    async def _compare_erased(self) -> None:
        """Personal fields lack just where an event erased the competitor. (It may be later than what was verified: they
        were read afterwards.)"""
        progress = self.progress
        if not progress.lacking and not progress.erased:
            return
        erased = await reading.erased_since(self._connection, progress.tournament_id, Sequence(0))
        for competitor_id, sequence in progress.lacking.items():
            if competitor_id not in erased:
                self._differ(sequence, "event.personal", f"is missing, and no event erased competitor {competitor_id}")
        for competitor_id, sequence in await stored_log.not_erased(
            self._connection, progress.tournament_id, progress.erased
        ):
            self._differ(sequence, "event.personal", f"is there, although competitor {competitor_id} was erased")

    async def _compare_set_asides(self) -> None:
        """Compares the events set aside in the log with those that the service ignores."""
        progress = self.progress
        found = await self._source.set_asides()
        progress.set_aside = [set_aside for set_aside in found if set_aside.fault is None]
        ignored = await self._source.ignored()
        for sequence in sorted(self._checks.ignored - ignored):
            self._differ(sequence, "set_aside", "is set aside by the log, but the service does not ignore it")
        for sequence in sorted(ignored - self._checks.ignored):
            self._differ(sequence, "set_aside", "is ignored by the service, but the log does not set it aside")


def _are_same(sums: Sums, folded: Mapping[UnityId, Totals]) -> bool:
    """Whether both have the same sums, those that are 0 or missing aside. Makes no copy of either."""
    counted = 0
    for unity_id, of_unity in sums.items():
        totals = folded.get(unity_id)
        for competitor_id, total in of_unity.items():
            if total != (0 if totals is None else totals.get(competitor_id)):
                return False
            counted += total != 0
    return counted == sum(map(len, folded.values()))


def _not_zero(sums: Mapping[UnityId, Mapping[CompetitorId, int]]) -> dict[UnityId, dict[CompetitorId, int]]:
    """The sums that are not 0, without unities that have none."""
    found = {unity_id: {c: total for c, total in of_unity.items() if total} for unity_id, of_unity in sums.items()}
    return {unity_id: of_unity for unity_id, of_unity in found.items() if of_unity}
