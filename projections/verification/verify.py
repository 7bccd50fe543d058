"""The verification of one tournament: its whole log is folded once, and everything kept besides is compared with it.

The chain is recomputed from the stored bytes, link by link. A link that does not hold is named, and the next one is
judged from the stored digest. So each place that was tampered with is named once, and not everything behind it.

Memory holds two batches of blocks, one board, and as many sums as the board has totals, however long the log is.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from collections.abc import Sequence as Items
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Final

import asyncpg
from asyncpg import Connection
from msgspec import Struct, field

from engine.database.pool import DATABASE_TROUBLE
from engine.domain.events import (
    CompetitionAdded,
    CompetitionUnvoided,
    CompetitionVoided,
    CompetitorRegistered,
    Event,
    EventSetAside,
    Points,
    PointsAdded,
    PointsReversed,
    RankingCreated,
    Recorded,
    TournamentOpened,
    UnityAdded,
)
from engine.domain.terms import ActorId, CompetitionId, Sequence, UnityId
from engine.log import codec, digest, log
from engine.log.log import Head
from projections.board.board import FOLD_VERSION, Board, Revisions, add_points, fold
from projections.board.differences import differences
from projections.board.standing import standings
from projections.tables import snapshots, tables
from projections.tables.tables import Checkpoint
from projections.verification import stored, table_checks
from projections.verification.progress import DIFFERENCES_MAX, Difference, Effect, Progress, beginning
from projections.verification.stored import Block, Columns, Stand
from projections.verification.table_checks import StandingRow
from projections.verification.witness import Noted, Witness

MARK_EVENTS: Final = 1_000_000
"""After so many events of a tournament its progress is kept."""
RECEIVE_BYTES: Final = 64 * 1024
"""After so much of the blocks' text has been verified, we receive what has come of the next batch. All of it may not
fit into the socket's buffer, and PostgreSQL would wait for room instead of going on."""
_FIRST_US: Final = digest.microseconds(datetime.min.replace(tzinfo=UTC))
_LAST_US: Final = digest.microseconds(datetime.max.replace(tzinfo=UTC))
_UNORDERED: Final = ("totals", "sums")
"""The parts of a board whose order is never shown."""
_NEVER: Final = 2**63
_SUM_MASK: Final = 2**63 - 1
_SET_ASIDE: Final = "\0"
"""Stands in place of the tag of an event that was set aside. No column of PostgreSQL can hold it."""
UNREVERSED_MAX: Final = 10
"""Events that are named in one difference."""
_POINTS: Final = (PointsAdded, PointsReversed)  # isinstance takes half as long with a tuple as with a union

Rest = Callable[[], Awaitable[bool]]
"""Rests from the work done since the last rest. False: stop working."""


class Watch(Struct, frozen=True, kw_only=True):
    """Callbacks of a verification. `on_difference` gets each difference that is kept, as soon as it is found;
    `on_events` the number of events read since its last call; `on_mark` each progress from which the verification could
    go on."""

    on_difference: Callable[[Difference], None]
    on_events: Callable[[int], None]
    on_mark: Callable[[Progress], None]


class _Batch(Struct, frozen=True):
    blocks: list[Block]
    keys: Mapping[str, Sequence]  # the remembered ones of its events


class Verification:
    """Use `run` once, within `stored.one_moment`; `stand` is of the same moment."""

    def __init__(
        self,
        connection: Connection,
        stand: Stand,
        progress: Progress,
        *,
        witness: Witness | None,
        watch: Watch,
        rest: Rest | None = None,
        mark_events: int = MARK_EVENTS,
    ) -> None:
        assert progress.board is not None
        self.progress = progress
        self._board: Board = progress.board
        self._connection = connection
        self._stand = stand
        self._witness = witness
        self._watch = watch
        self._rest = rest
        self._mark_events = mark_events
        self._next_mark = progress.events + mark_events
        self._revisions = Revisions()
        self._reading: asyncio.Task[list[Block]] | None = None
        self._stopped = False
        self._checkpoint: Checkpoint | None = None
        self._snapshots: Iterator[Sequence] = iter(())
        self._next_snapshot: Sequence | None = None
        self._notes: Iterator[Noted] = (
            iter(()) if witness is None else witness.of(progress.tournament_id, progress.sequence)
        )
        self._next_note: Noted | None = next(self._notes, None)
        self._next_stop: int = 0
        self._ignored: frozenset[Sequence] = frozenset()  # what was set aside
        self._faults: Mapping[Sequence, str] = {}  # why an EventSetAside set nothing aside
        self._unreversed: list[_Due] = []

    async def run(self) -> bool:
        """Goes on from where the progress stands to the end of the log. False: `rest` said to stop."""
        await self._begin()
        async with aclosing(self._batches()) as batches:
            async for batch in batches:
                events = self.progress.events
                taken_bytes = 0
                for block in batch.blocks:
                    self._take(block, batch.keys)
                    for unreversed in self._unreversed:
                        await self._name_unreversed(unreversed)
                    self._unreversed.clear()
                    taken_bytes += block.size
                    if taken_bytes >= RECEIVE_BYTES:
                        taken_bytes = 0
                        await asyncio.sleep(0)
                    if block.count > 0 and block.count != block.last_sequence - block.first_sequence + 1:
                        await self._name_missing(block)
                    if self.progress.sequence >= self._next_stop:
                        await self._compare()
                self._watch.on_events(self.progress.events - events)
                if self.progress.events >= self._next_mark:
                    self._watch.on_mark(self.progress)
                    self._next_mark = self.progress.events + self._mark_events
        if self._stopped:
            return False
        await self._finish()
        self.progress.done = True
        self.progress.board = None
        self.progress.sums = {}
        self.progress.effects = {}
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

    async def _read(self, after: Sequence) -> list[Block]:
        return await stored.blocks(self._connection, self.progress.tournament_id, after)

    async def _remembered(self, blocks: list[Block]) -> Mapping[str, Sequence]:
        """The sequences that are remembered for the keys of these blocks' events.

        Only blocks with keys are decoded here, and again when they are verified. That takes 0.1 to 0.4 µs for each
        event.
        """
        of_blocks = [columns.keys for block in blocks if block.keyed and (columns := block.columns())]
        keys = {key for of_block in of_blocks if of_block for key in of_block if key is not None}
        return await stored.key_sequences(self._connection, self.progress.tournament_id, list(keys))

    async def _quiet(self) -> None:
        """Returns when the connection is free for another query."""
        if self._reading is not None:
            await asyncio.wait([self._reading])

    # ── A block ─────────────────────────────────────────────────────────────────────────────────────────

    def _take(self, block: Block, keys: Mapping[str, Sequence]) -> None:
        progress, columns, first, last = self.progress, block.columns(), block.first_sequence, block.last_sequence
        made: _Made | None = None
        if first != progress.sequence + 1 or last < first:
            self._differ(
                Sequence(progress.sequence + 1),
                "block.first_sequence",
                f"the block that ends at {last} begins at {first}: the blocks do not follow each other",
            )
        if block.text is None or block.recorded_us is None:
            self._differ(first, "event.sequence", f"there is no event at all in the block from {first} to {last}")
        else:
            if not block.timely:
                self._differ(first, "event.recorded_at", f"is not that of the block from {first} to {last}")
            if progress.recorded_us is not None and block.recorded_us < progress.recorded_us:
                self._differ(first, "event.recorded_at", "is before that of the event before it")
            if block.size != len(block.text):
                self._differ(first, "block.bytes", f"is {block.size}; its text has {len(block.text)}")
            recomputed = digest.chain(progress.digest, block.text)
            if recomputed != block.digest:
                self._differ(
                    first,
                    "block.digest",
                    f"of the block from {first} to {last} is {block.digest.hex()}; its events make {recomputed.hex()}",
                )
            if columns is None:
                self._differ(first, "event", f"something is NULL in the block from {first} to {last}")
                progress.foldable = False
            else:
                made = self._fold(columns)
                if columns.keys is not None:
                    self._look_at_keys(columns.first_sequence, columns.keys, keys)
            progress.recorded_us = block.recorded_us
        if made is None:
            progress.structure_sequence = last if block.structure_sequence is None else block.structure_sequence
        else:
            self._look_at_made(block, made)
        progress.digest = block.digest
        progress.sequence = last
        progress.blocks += 1
        progress.events += block.count

    def _fold(self, columns: Columns) -> "_Made":
        """Folds the events of a block, and returns what else must be known about them."""
        progress, board, sums, kinds = self.progress, self._board, self.progress.sums, columns.kinds
        decode, sequence, made = codec.decode, columns.first_sequence, _Made(structural=columns.first_sequence == 1)
        if not _FIRST_US <= columns.recorded_us <= _LAST_US:
            self._differ(sequence, "event.recorded_at", "is not in any year from 1 to 9999")
            progress.foldable = False
        if self._ignored:
            kinds = self._without_ignored(sequence, kinds)
        elif sequence == 1 and kinds[0] != "TournamentOpened":
            self._differ(sequence, "event.kind", f"is {kinds[0]!r}: the first event opens the tournament")
        for kind, body in zip(kinds, columns.bodies, strict=True):
            try:
                event = decode(kind, body)
                if not isinstance(event, _POINTS):
                    self._fold_other(made, sequence, columns.recorded_us, event)
                elif progress.foldable:
                    add_points(board, event)  # as `fold` does, but it needs a time: making one takes a tenth of all
            except codec.Undecodable as error:
                made.doubtful = True
                if kind != _SET_ASIDE:
                    self._differ(sequence, "event.body", f"cannot be decoded: {error}")
                    progress.foldable = False
            except LookupError as error:
                made.doubtful = True
                self._differ(sequence, "event.body", f"names {error}, which does not exist")
                progress.foldable = False
            else:
                if isinstance(event, _POINTS):
                    for delta in event.deltas:  # counted apart from the fold
                        of_unity = sums.get(delta.unity_id)
                        if of_unity is None:
                            of_unity = sums[delta.unity_id] = {}
                        of_unity[delta.competitor_id] = of_unity.get(delta.competitor_id, 0) + delta.amount
                    if event.competition_id is not None and progress.foldable:
                        self._count_effect(made, sequence, event)
            sequence = Sequence(sequence + 1)
        return made

    def _without_ignored(self, first: Sequence, kinds: list[str]) -> list[str]:
        """The tags of a block's events, with _SET_ASIDE, which cannot be decoded, in place of those that were set
        aside."""
        aside = {sequence for sequence in self._ignored if first <= sequence < first + len(kinds)}
        self.progress.ignored += sorted(aside)
        return [_SET_ASIDE if n in aside else kind for n, kind in enumerate(kinds, start=first)]

    def _fold_other(self, made: "_Made", sequence: Sequence, recorded_us: int, event: Event) -> None:
        """Folds an event that gives no points. Raises LookupError as the fold does."""
        if self.progress.foldable:
            for name in event.creates:
                made.created.append(getattr(event, name))
            for what in _existing(self._board, event):
                self._differ(sequence, "event.body", f"creates {what}, which exists")
            fold(self._board, self._revisions, Recorded(sequence, digest.moment(recorded_us), _NOBODY, None, event))
        if event.structural:
            made.structural = True
        match event:
            case TournamentOpened():
                self._hold_registry_against(sequence, event)
            case EventSetAside():
                if sequence in self._faults:
                    self._differ(sequence, "event.body", self._faults[sequence])
            case CompetitionVoided() | CompetitionUnvoided() if self.progress.foldable:
                self._void(made, sequence, event)

    # ── What competitions caused ────────────────────────────────────────────────────────────────────────

    def _void(self, made: "_Made", sequence: Sequence, event: CompetitionVoided | CompetitionUnvoided) -> None:
        """Notes that the rest of the block must reverse all points of the competition that are in effect."""
        competition_id, voids = event.competition_id, isinstance(event, CompetitionVoided)
        effect = self.progress.effects.setdefault(competition_id, Effect())
        if effect.voided == voids:
            was = "is voided already" if voids else "is not voided"
            self._differ(sequence, "event.body", f"names competition {competition_id}, which {was}")
        due = made.due.setdefault(competition_id, _Due(competition_id, sequence))
        due.count += effect.count
        due.sum += effect.sum
        effect.count, effect.sum, effect.voided = 0, 0, voids

    def _count_effect(self, made: "_Made", sequence: Sequence, event: Points) -> None:
        """Adds points to what is in effect. A reversal also takes what it reverses off what is due to be reversed."""
        competition_id = event.competition_id
        assert competition_id is not None
        effect = self.progress.effects.get(competition_id)
        if effect is None:
            effect = self.progress.effects[competition_id] = Effect()
        if isinstance(event, PointsReversed):
            due: Effect | _Due | None = made.due.get(competition_id)
            if due is None:
                wrong = f"reverses points of competition {competition_id}, which this block neither voids nor unvoids"
                self._differ(sequence, "event.body", wrong)
                due = effect
            due.count -= 1
            due.sum = (due.sum - hash_of_points(self.progress.salt, event.reverses, event, -1)) & _SUM_MASK
        elif effect.voided:
            self._differ(sequence, "event.body", f"gives points to competition {competition_id}, which is voided")
        effect.count += 1
        effect.sum = (effect.sum + hash_of_points(self.progress.salt, sequence, event, 1)) & _SUM_MASK

    def _look_at_made(self, block: Block, made: "_Made") -> None:
        """Checks what the block says of its events, and that all that was due to be reversed was reversed."""
        progress, first, last = self.progress, block.first_sequence, block.last_sequence
        structure = last if made.structural else progress.structure_sequence
        if block.structure_sequence is None:
            if progress.structure_kept:
                self._differ(first, "block.structure_sequence", "is NULL, and in a block before it it is not")
            structure = last
        elif made.doubtful and block.structure_sequence in (last, progress.structure_sequence):
            structure = block.structure_sequence
        elif block.structure_sequence != structure:
            wrong = f"is {block.structure_sequence}; the last structural block up to it ends at {structure}"
            self._differ(first, "block.structure_sequence", wrong)
        progress.structure_sequence = structure
        progress.structure_kept = progress.structure_kept or block.structure_sequence is not None
        if block.created is not None:
            missing, more = set(made.created) - set(block.created), set(block.created) - set(made.created)
            if missing or (more and block.whole and not made.doubtful and progress.foldable):
                wrong = f"is {block.created}; its events create {made.created}"
                self._differ(first, "block.created", wrong)
        for competition_id, due in made.due.items():
            if due.count or due.sum & _SUM_MASK:
                effect = progress.effects[competition_id]
                effect.count += due.count
                effect.sum = (effect.sum + due.sum) & _SUM_MASK
                if made.doubtful:
                    sentence = f"what the event {due.sequence} had reversed: an event of its block was set aside"
                    progress.unchecked.append(sentence)
                else:
                    self._unreversed.append(due)

    async def _name_unreversed(self, due: "_Due") -> None:
        """Names the points that a voiding or unvoiding left as they were, or reversed without a reason."""
        await self._quiet()
        upto, wanted = self.progress.sequence, dict[Sequence, Points]()
        taken: list[PointsReversed] = []
        async for recorded in log.points_of(self._connection, self.progress.tournament_id, due.competition_id, upto):
            event = recorded.event
            if recorded.sequence < due.sequence and isinstance(event, _POINTS):
                if isinstance(event, PointsReversed):
                    wanted.pop(event.reverses, None)
                wanted[recorded.sequence] = event
            elif isinstance(event, PointsReversed):
                taken.append(event)
        wrong: list[str] = []
        names = Counter([event.reverses for event in taken])
        wrong += [f"event {sequence} is not reversed" for sequence in wanted if sequence not in names]
        wrong += [f"event {sequence} is reversed {n} times" for sequence, n in names.items() if n > 1]
        wrong += [f"event {s} is reversed, which is not in effect" for s in names if s not in wanted]
        wrong += [
            f"event {event.reverses} is reversed by other lines"
            for event in taken
            if event.reverses in wanted and not _reverses(event, wanted[event.reverses])
        ]
        told = "; ".join(wrong[:UNREVERSED_MAX]) + (
            f"; and {len(wrong) - UNREVERSED_MAX} more" * (len(wrong) > UNREVERSED_MAX)
        )
        self._differ(due.sequence, "event.reverses", f"of competition {due.competition_id}: {told}")

    def _hold_registry_against(self, sequence: Sequence, event: Event) -> None:
        if sequence != 1:
            self._differ(sequence, "event.kind", "opens the tournament, which is open")
        registered = TournamentOpened(name=self._stand.name, slug=self._stand.slug)
        for unlike in differences(event, registered):
            self._differ(sequence, f"tournament.{unlike.path}", f"is {unlike.found}, not {unlike.expected}")

    def _look_at_keys(self, first: Sequence, used: Items[str | None], keys: Mapping[str, Sequence]) -> None:
        """Checks the keys of a block: the events of a request follow each other, and its first sequence is
        remembered."""
        before: str | None = None
        for sequence, key in enumerate(used, start=first):
            if key is not None and key != before:
                self.progress.keys += 1
                if key not in keys:
                    self._differ(Sequence(sequence), "idempotency.idempotency_key", f"{key!r} is not remembered")
                elif keys[key] != sequence:
                    self._differ(Sequence(sequence), "idempotency.sequence", f"of {key!r} is {keys[key]}")
            before = key

    async def _name_missing(self, block: Block) -> None:
        await self._quiet()
        missing = await stored.missing(
            self._connection, self.progress.tournament_id, block.first_sequence, block.last_sequence
        )
        self._differ(
            block.first_sequence if missing is None else missing,
            "event.sequence",
            f"is missing: the block from {block.first_sequence} to {block.last_sequence} has {block.count} events",
        )

    # ── What is kept besides the log ────────────────────────────────────────────────────────────────────

    async def _begin(self) -> None:
        progress, connection = self.progress, self._connection
        said = await stored.set_asides(connection, progress.tournament_id)
        self._ignored = frozenset([s.sequence for s in said if s.fault is None and s.sequence is not None])
        self._faults = {s.by: s.fault for s in said if s.fault is not None}
        if any(sequence <= progress.sequence and sequence not in progress.ignored for sequence in self._ignored):
            self._begin_anew()
        if progress.sequence > 0:
            there = await stored.digest_at(connection, progress.tournament_id, progress.sequence)
            if there != progress.digest:
                self._differ(
                    progress.sequence, "block.digest", "is not the one that had been verified before the pause"
                )
        checkpoint = await tables.checkpoint(connection, progress.tournament_id)
        if checkpoint is None:  # then there must be no rows
            checkpoint = Checkpoint(log.beginning(progress.tournament_id), FOLD_VERSION, Sequence(0))
        if checkpoint.fold_version != FOLD_VERSION:
            progress.unchecked.append(f"tables: they are of version {checkpoint.fold_version} of the fold")
        elif checkpoint.head.sequence >= progress.sequence:
            self._checkpoint = checkpoint
        elif progress.tables_at is None:
            progress.unchecked.append(f"tables: they are at {checkpoint.head.sequence}, before this was resumed")
        taken = await snapshots.sequences(connection, progress.tournament_id)
        if others := await snapshots.count_others(connection, progress.tournament_id):
            progress.unchecked.append(f"{others} snapshots: they are of other versions of the fold")
        self._snapshots = (sequence for sequence in taken if sequence > progress.sequence or progress.sequence == 0)
        self._next_snapshot = next(self._snapshots, None)
        self._plan()
        if progress.sequence >= self._next_stop:
            await self._compare()

    def _begin_anew(self) -> None:
        """Begins anew, because an event was set aside after it was folded. What has been found stays found."""
        anew = beginning(self.progress.tournament_id, self.progress.slug)
        anew.differences, anew.differences_count = self.progress.differences, self.progress.differences_count
        for name in anew.__struct_fields__:
            setattr(self.progress, name, getattr(anew, name))
        assert anew.board is not None
        self._board = anew.board
        self._next_mark = self._mark_events
        if self._witness is not None:
            self._notes = self._witness.of(anew.tournament_id, anew.sequence)
            self._next_note = next(self._notes, None)

    def _plan(self) -> None:
        """Sets where the fold must pause next to compare something."""
        self._next_stop = min(
            _NEVER if self._checkpoint is None else self._checkpoint.head.sequence,
            _NEVER if self._next_snapshot is None else self._next_snapshot,
            _NEVER if self._next_note is None else self._next_note.sequence,
        )

    async def _compare(self) -> None:
        await self._quiet()
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
        self._plan()

    def _compare_note(self, note: Noted) -> None:
        noted = " and ".join(known.hex() for known in note.digests)
        if len(note.digests) > 1:
            self._differ(note.sequence, "digests", f"two were noted elsewhere: {noted}: the log was forked")
        if note.sequence != self.progress.sequence:
            self._differ(note.sequence, "digests", f"{noted} was noted elsewhere, but no block ends here any more")
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
            snapshot = await snapshots.nearest(self._connection, self.progress.tournament_id, sequence)
        except snapshots.Undecodable as error:
            self._differ(sequence, "snapshot.board", str(error))
            return
        assert snapshot is not None
        if snapshot.head.digest != self.progress.digest:
            self._differ(sequence, "snapshot.digest", "is not that of the block that ends here")
        self._hold_against(snapshot.board, "snapshot")
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
        for table, row_id, wrong in await table_checks.strays(self._connection, progress.tournament_id):
            self._differ(head.sequence, f"tables.{table}[{row_id}]", wrong)
        bare = await table_checks.incomplete(self._connection, progress.tournament_id)
        if bare is not None:
            self._differ(head.sequence, f"tables.rankings[{bare}]", "has no list of competitors, or no unity")
            return
        try:
            board = await tables.load_board(self._connection, progress.tournament_id)
        except (ValueError, TypeError, OverflowError) as error:
            self._differ(head.sequence, "tables", f"cannot be read: {error}")
            return
        self._hold_against(board, "tables")
        if progress.differences_count == count:
            await self._compare_view(head.sequence)
        else:
            progress.unchecked.append("the view of standings: the tables under it differ")

    async def _compare_view(self, at: Sequence) -> None:
        """Compares the view, which PostgreSQL computes, with the positions that answers show."""
        try:
            async with self._connection.transaction():  # a savepoint: an error does not end the moment
                rows = await table_checks.standing_rows(self._connection, self.progress.tournament_id)
        except DATABASE_TROUBLE:
            raise
        except asyncpg.PostgresError as error:
            self._differ(at, "standing", f"cannot be read: {error}")
            return
        expected = {(row.unity_id, row.competitor_id): row for row in self._standing_rows()}
        found = {(row.unity_id, row.competitor_id): row for row in rows}
        if len(found) != len(rows):
            self._differ(at, "standing", "shows a competitor twice")
        for unlike in differences(expected, found, path="standing"):
            self._differ(at, unlike.path, f"is {unlike.found}, not {unlike.expected}")

    def _standing_rows(self) -> Iterator[StandingRow]:
        for ranking_id, ranking in sorted(self._board.rankings.items()):
            enrolled = {competitor_id: number for number, competitor_id in enumerate(ranking.participants, start=1)}
            for unity_id, unity in sorted(ranking.unities.items()):
                for line in standings(ranking.participants, unity.totals, unity.sort):
                    yield StandingRow(
                        ranking_id,
                        unity_id,
                        line.position,
                        line.competitor_id,
                        line.total,
                        unity.version,
                        enrolled[line.competitor_id],
                        self._stand.slug,
                        ranking.name,
                        unity.name,
                        self._board.competitors[line.competitor_id].name,
                    )

    def _hold_against(self, board: Board, what: str) -> None:
        """Names every field in which `board` differs from the one that the log gives."""
        for unlike in differences(self._board, board, unordered=_UNORDERED, path=what):
            self._differ(self.progress.sequence, unlike.path, f"is {unlike.found}, not {unlike.expected}")

    # ── The end ─────────────────────────────────────────────────────────────────────────────────────────

    async def _finish(self) -> None:
        progress, connection, last = self.progress, self._connection, self.progress.sequence
        self._compare_lock()
        await self._compare_set_asides()
        outside = await stored.outside(connection, progress.tournament_id, last)
        if outside.event_beyond is not None:
            self._differ(outside.event_beyond, "event.sequence", f"lies beyond the last block, which ends at {last}")
        for before in outside.event_before, outside.block_before:
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
        remembered = await stored.key_count(connection, progress.tournament_id)
        if remembered != progress.keys:
            self._differ(None, "idempotency", f"{remembered} keys are remembered; the events have {progress.keys}")
        if progress.foldable:
            folded = {u: unity.totals for r in self._board.rankings.values() for u, unity in r.unities.items()}
            totals = {unity_id: of_unity for unity_id, of_unity in folded.items() if of_unity}
            for unlike in differences(progress.sums, totals, unordered=_UNORDERED, path="sums"):
                self._differ(last, unlike.path, f"the fold has {unlike.found}, its deltas add up to {unlike.expected}")
        else:
            progress.unchecked.append("sums and everything folded: an event cannot be folded")

    def _compare_lock(self) -> None:
        stand = self._stand
        if not stand.locked:
            self._differ(None, "append_lock", "is missing: nothing can be appended")
        elif stand.refusals != (stand.last_refusal or 0):
            self._differ(None, "append_lock.refusals", f"is {stand.refusals}; the last refusal is {stand.last_refusal}")
        if self.progress.blocks == 0:
            self._differ(Sequence(1), "block", "there is none: the log is empty")

    async def _compare_set_asides(self) -> None:
        """Compares what the log says was set aside with what the service is made to ignore."""
        progress = self.progress
        found = await stored.set_asides(self._connection, progress.tournament_id)
        progress.set_aside = [said for said in found if said.fault is None]
        ignored = await stored.ignored(self._connection, progress.tournament_id)
        for sequence in sorted(self._ignored - ignored):
            self._differ(sequence, "set_aside", "is set aside by the log, but the service does not ignore it")
        for sequence in sorted(ignored - self._ignored):
            self._differ(sequence, "set_aside", "is ignored by the service, but the log does not set it aside")

    def _differ(self, sequence: Sequence | None, field: str, message: str) -> None:
        self.progress.differences_count += 1
        if len(self.progress.differences) < DIFFERENCES_MAX:
            found = Difference(tournament=self._stand.slug, sequence=sequence, field=field, message=message)
            self.progress.differences.append(found)
            self._watch.on_difference(found)


_NOBODY: Final = ActorId(0)


class _Due(Struct):
    """What is still to be reversed of a competition because the event `sequence` voided or unvoided it. `count` and
    `sum` as in Effect."""

    competition_id: CompetitionId
    sequence: Sequence
    count: int = 0
    sum: int = 0


class _Made(Struct):
    """What must be known about a block's events beside what they fold to. `doubtful`: one of them cannot be decoded or
    folded, or was set aside."""

    structural: bool
    doubtful: bool = False
    created: list[int] = field(default_factory=list)
    due: dict[CompetitionId, _Due] = field(default_factory=dict)


def hash_of_points(salt: int, sequence: Sequence, event: Points, sign: int) -> int:
    """The hash of the lines of `event` as those of the event `sequence`, each amount times `sign` (1 or -1). Add such
    hashes up modulo 2⁶³.

    Amounts are made odd, because the hashes of -1 and -2 are the same. The hash of a tuple is nearly linear in its last
    item: if two events exchanged their amounts, the sum would be the same more often than not. Hence the square.
    """
    double = 2 * sign
    if len(event.deltas) == 1:  # as nearly always
        (line,) = event.deltas
        odd = line.amount * double + 1
        hashed = hash((salt, sequence, event.ranking_id, line.competitor_id, line.unity_id, odd))
        return hashed * hashed
    lines = [n for d in event.deltas for n in (d.competitor_id, d.unity_id, d.amount * double + 1)]
    hashed = hash((salt, sequence, event.ranking_id, *lines))
    return hashed * hashed


def _existing(board: Board, event: Event) -> Iterator[str]:
    """What `event` creates although it exists."""
    match event:
        case CompetitorRegistered() if event.competitor_id in board.competitors:
            yield f"competitor {event.competitor_id}"
        case CompetitionAdded() if event.competition_id in board.competitions:
            yield f"competition {event.competition_id}"
        case RankingCreated():
            if event.ranking_id in board.rankings:
                yield f"ranking {event.ranking_id}"
            yield from _existing_unity(board, event.main_unity_id)
        case UnityAdded():
            yield from _existing_unity(board, event.unity_id)


def _existing_unity(board: Board, unity_id: UnityId) -> Iterator[str]:
    if any(unity_id in ranking.unities for ranking in board.rankings.values()):
        yield f"unity {unity_id}"


def _reverses(event: PointsReversed, points: Points) -> bool:
    """Whether `event` takes back just these points, line by line."""
    lines = [(d.competitor_id, d.unity_id, -d.amount) for d in event.deltas]
    return event.ranking_id == points.ranking_id and lines == [
        (d.competitor_id, d.unity_id, d.amount) for d in points.deltas
    ]
