"""The checks of what is made from the log, or noted about it elsewhere: outside digests, snapshots and tables. Each is
compared with the log when the fold has reached its sequence.

During a comparison, memory also holds the lists and totals of the tables or the snapshot, but only those competitors
and competitions that differ; lines of standings are read in chunks.
"""

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import aclosing
from itertools import chain, islice
from operator import attrgetter
from typing import Any, Final

import asyncpg
from msgspec import Struct

from engine.database.pool import DATABASE_TROUBLE
from engine.domain.terms import CompetitorId, Sequence
from engine.log import heads
from projections.board.board import FOLD_VERSION, Board, erase
from projections.board.differences import Unmatched, differences
from projections.board.order import OrderedLines
from projections.columns.enrolment import Enrolment
from projections.tables import snapshots, tables
from projections.tables.tables import Checkpoint
from projections.verification import table_checks
from projections.verification.block_checks import Blocks, PersonalFields
from projections.verification.findings import Finding, Reported, Unchecked
from projections.verification.fold_checks import FoldChecks
from projections.verification.source import TournamentSource
from projections.verification.stored_log import RegisteredTournament
from projections.verification.table_checks import StandingRow
from projections.verification.witness import NotedDigests, Witness

_NEVER: Final = 2**63


class Compared(Struct):
    """What was compared with the log: the tables, at the sequence `tables_at` (None: not yet), and how many snapshots
    and outside digests."""

    tables_at: Sequence | None = None
    snapshots: int = 0
    digests: int = 0


class DerivedChecks:
    """The comparisons that are due for one tournament, whose log is folded up to the end of `blocks`; the next one at
    the sequence `next_at`."""

    def __init__(
        self,
        source: TournamentSource,
        tournament: RegisteredTournament,
        compared: Compared,
        blocks: Blocks,
        names: PersonalFields,
        folding: FoldChecks,
        witness: Witness | None,
    ) -> None:
        self._source = source
        self._tournament = tournament
        self._compared = compared
        self._blocks = blocks
        self._names = names
        self._folding = folding
        self._checkpoint: Checkpoint | None = None
        self._snapshots: Iterator[Sequence] = iter(())
        self._snapshot: Sequence | None = None
        noted = () if witness is None else witness.digests_of(tournament.tournament_id, blocks.sequence)
        self._notes: Iterator[NotedDigests] = iter(noted)
        self._note = next(self._notes, None)
        self.next_at: int = 0

    async def begin(self) -> list[Reported]:
        """Looks up what is to be compared."""
        found: list[Reported] = []
        tournament_id, at = self._tournament.tournament_id, self._blocks.sequence
        checkpoint = await self._source.of(tournament_id, tables.checkpoints)
        if checkpoint is None:  # then there must be no rows
            checkpoint = Checkpoint(heads.beginning(tournament_id), FOLD_VERSION, Sequence(0))
        if checkpoint.fold_version != FOLD_VERSION:
            found.append(Unchecked(f"tables: they are of version {checkpoint.fold_version} of the fold"))
        elif checkpoint.head.sequence >= at:
            self._checkpoint = checkpoint
        elif self._compared.tables_at is None:
            found.append(Unchecked(f"tables: they are at {checkpoint.head.sequence}, before this was resumed"))
        taken = await self._source.of(tournament_id, snapshots.versions) or []
        if others := sum(version != FOLD_VERSION for _, version in taken):
            found.append(Unchecked(f"{others} snapshots: they are of other versions of the fold"))
        self._snapshots = iter([s for s, version in taken if version == FOLD_VERSION and (s > at or at == 0)])
        self._snapshot = next(self._snapshots, None)
        self._set_next()
        return found

    def _set_next(self) -> None:
        self.next_at = min(
            _NEVER if self._checkpoint is None else self._checkpoint.head.sequence,
            _NEVER if self._snapshot is None else self._snapshot,
            _NEVER if self._note is None else self._note.sequence,
        )

    async def compare(self) -> AsyncIterator[Reported]:
        """Makes the comparisons due at the current sequence."""
        at = self._blocks.sequence
        while self._note is not None and self._note.sequence <= at:
            for wrong in self._note_faults(self._note):
                yield Finding(self._note.sequence, "digests", wrong)
            self._compared.digests += 1
            self._note = next(self._notes, None)
        while self._snapshot is not None and self._snapshot <= at:
            for found in await self._of_snapshot(self._snapshot):
                yield found
            self._snapshot = next(self._snapshots, None)
        if self._checkpoint is not None and self._checkpoint.head.sequence <= at:
            async for of_tables in self._of_tables(self._checkpoint):
                yield of_tables
            self._checkpoint = None
        self._set_next()

    def beyond(self) -> Iterator[Finding]:
        """What there is beyond the end of the log."""
        last = self._blocks.sequence
        for note in [] if self._note is None else [self._note, *self._notes]:
            cut = f"{_noted(note)} was noted elsewhere, but the log ends at {last}: its tail was cut"
            yield Finding(note.sequence, "digests", cut)
            self._compared.digests += 1
        for sequence in [] if self._snapshot is None else [self._snapshot, *self._snapshots]:
            yield Finding(sequence, "snapshot.sequence", f"lies beyond the end of the log, {last}")
        if self._checkpoint is not None:
            wrong = f"lies beyond the end of the log, {last}"
            yield Finding(self._checkpoint.head.sequence, "checkpoint.sequence", wrong)

    # ── Outside digests and snapshots ───────────────────────────────────────────────────────────────────

    def _note_faults(self, note: NotedDigests) -> Iterator[str]:
        if len(note.digests) > 1:
            yield f"two were noted elsewhere: {_noted(note)}: the log was forked"
        if note.sequence != self._blocks.sequence:
            yield f"{_noted(note)} was noted elsewhere, but no block ends here now"
        elif self._blocks.digest not in note.digests:
            yield f"{_noted(note)} was noted elsewhere, the log has {self._blocks.digest.hex()}: it was rewritten"

    async def _of_snapshot(self, sequence: Sequence) -> Iterable[Reported]:
        if sequence != self._blocks.sequence or sequence == 0:
            return [Finding(sequence, "snapshot.sequence", "is not the end of a block")]
        if not self._folding.folded.foldable:
            return [Unchecked(f"snapshot at {sequence}: the log before it cannot be folded")]
        connection, tournament_id = self._source.connection, self._tournament.tournament_id
        try:
            snapshot = await snapshots.nearest(connection, tournament_id, sequence, like=self._folding.board)
        except snapshots.SnapshotUndecodable as error:
            return [Finding(sequence, "snapshot.board", str(error))]
        assert snapshot is not None
        self._compared.snapshots += 1
        wrong = []
        if snapshot.head.digest != self._blocks.digest:
            wrong.append(Finding(sequence, "snapshot.digest", "is not that of the block that ends here"))
        return chain(wrong, self._of_board(snapshot.board, "snapshot"))

    def _of_board(self, board: Board, what: str) -> Iterator[Finding]:
        """Every field in which `board` differs from the board folded from the log."""
        erase(board, self._forgotten())  # a worker is about to do so
        for unlike in differences(self._folding.board, board, path=what):
            yield Finding(self._blocks.sequence, unlike.path, f"is {unlike.found}, not {unlike.expected}")

    def _forgotten(self) -> list[CompetitorId]:
        """The competitors of the board whose names a later event has erased from the log."""
        competitors = self._folding.board.competitors
        return [one for one in self._names.lacking if one in competitors and competitors[one].erased == 0]

    # ── Tables ──────────────────────────────────────────────────────────────────────────────────────────

    async def _of_tables(self, checkpoint: Checkpoint) -> AsyncIterator[Reported]:
        head = checkpoint.head
        if head.sequence != self._blocks.sequence:
            yield Finding(head.sequence, "checkpoint.sequence", "is not the end of a block")
            return
        if head.digest != self._blocks.digest:
            yield Finding(head.sequence, "checkpoint.digest", "is not that of the block that ends here")
        if not self._folding.folded.foldable:
            yield Unchecked(f"tables at {head.sequence}: the log before it cannot be folded")
            return
        self._compared.tables_at = head.sequence
        tournament_id, alike = self._tournament.tournament_id, True
        for table, row_id, wrong in await self._source.of(tournament_id, table_checks.strays) or ():
            yield Finding(head.sequence, f"tables.{table}[{row_id}]", wrong)
            alike = False
        if (bare := await self._source.of(tournament_id, table_checks.incomplete)) is not None:
            yield Finding(head.sequence, f"tables.rankings[{bare}]", "has no list of competitors, or no unity")
            return
        try:
            board = await self._source.board(tournament_id, like=self._folding.board)
        except (ValueError, TypeError, OverflowError) as error:
            yield Finding(head.sequence, "tables", f"cannot be read: {error}")
            return
        for finding in self._of_board(board, "tables"):
            yield finding
            alike = False
        if self._forgotten():
            yield Unchecked("the view of standings: the tables have yet to forget a name")
        elif not alike:
            yield Unchecked("the view of standings: the tables under it differ")
        else:
            for finding in await self._of_standings():
                yield finding

    async def _of_standings(self) -> Iterable[Finding]:
        """Compares the view, which PostgreSQL computes, with the positions that answers show."""
        unmatched, ours = Unmatched(attrgetter("unity_id", "competitor_id")), self._standing_rows()
        try:
            async with aclosing(self._source.standing_rows(self._tournament.tournament_id)) as chunks:
                async for rows in chunks:
                    unmatched.take(list(islice(ours, len(rows))), rows)
        except DATABASE_TROUBLE:
            raise
        except asyncpg.PostgresError as error:
            return [Finding(self._blocks.sequence, "standing", f"cannot be read: {error}")]
        unmatched.take(list(ours), [])
        lists = {u: ranking.participants for ranking in self._folding.board.rankings.values() for u in ranking.unities}
        return self._unlike_standings(unmatched, lists)

    def _unlike_standings(self, unmatched: Unmatched[Any, Any], lists: Mapping[Any, Enrolment]) -> Iterator[Finding]:
        """What differs in the view. `lists`: the competitors of each unity."""
        at = self._blocks.sequence
        for unity_id, competitor_id in unmatched.found.keys() - unmatched.expected.keys():
            if competitor_id in lists.get(unity_id, ()):
                yield Finding(at, "standing", f"shows competitor {competitor_id} twice in unity {unity_id}")
                del unmatched.found[unity_id, competitor_id]
        for unlike in differences(unmatched.expected, unmatched.found, path="standing"):
            yield Finding(at, unlike.path, f"is {unlike.found}, not {unlike.expected}")

    def _standing_rows(self) -> Iterator[StandingRow]:
        """The lines of all standings, in the order of the view."""
        for ranking_id, ranking in sorted(self._folding.board.rankings.items()):
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
                        self._folding.board.competitors[line.competitor_id].name,
                    )


def _noted(note: NotedDigests) -> str:
    return " and ".join(known.hex() for known in note.digests)
