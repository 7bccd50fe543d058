"""The verification of one tournament: folds its whole log once, and compares everything derived with the result.

This module reads the blocks, and says in which order what is checked. Checks return or yield what they find. However
long the log is, memory holds two batches of blocks, one board, and one sum for each total of the board.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import aclosing
from typing import Final

from msgspec import Struct

from engine.domain.terms import CompetitorId, Sequence, UnityId
from engine.log import reading
from engine.log.codec import BlockContent
from projections.board.board import erase
from projections.board.differences import differences
from projections.columns.enrolment import Totals
from projections.verification import setting_aside, stored_log
from projections.verification.block_checks import created_fault
from projections.verification.derived_checks import DerivedChecks
from projections.verification.findings import Difference, Finding, Reported, Unchecked
from projections.verification.fold_checks import BlockFacts, FoldChecks, FoldState, Sums
from projections.verification.log_checks import LogChecks
from projections.verification.progress import Progress, beginning
from projections.verification.setting_aside import SetAside
from projections.verification.source import TournamentSource
from projections.verification.stored_log import BlockRun, RegisteredTournament, StoredBlock, StoredCounts
from projections.verification.witness import Witness

RECEIVE_BYTES: Final = 64 * 1024
"""Bytes of the blocks' text that are verified before the next batch is received further. It may not fit into the
socket's buffer, and PostgreSQL would wait for room instead of continuing."""


class Advanced(Struct, frozen=True):
    """Another batch of blocks is verified, with this number of events. The progress can be continued from here."""

    events: int


async def verification(
    source: TournamentSource,
    tournament: RegisteredTournament,
    progress: Progress,
    *,
    witness: Witness | None = None,
    reads_ahead: bool = True,
) -> AsyncGenerator[Difference | Advanced, None]:
    """Continues from `progress` to the end of the log; then the progress is done. Yields each difference that is kept,
    as soon as it is found, and after each batch of blocks that it has advanced. Use it `aclosing`.

    `tournament` and `source` must be of the same snapshot. `reads_ahead`: the next batch is read while one is verified;
    otherwise, nothing is read while the caller has what was yielded.
    """
    set_asides = await source.of(tournament.tournament_id, setting_aside.set_asides) or []
    ignored = [one.sequence for one in set_asides if one.fault is None and one.sequence is not None]
    if any(sequence <= progress.blocks.sequence and sequence not in progress.folded.ignored for sequence in ignored):
        _start_over(progress)
    run = _Verification(source, tournament, progress, witness, set_asides)
    async with aclosing(run.found(reads_ahead=reads_ahead)) as all_found:
        async for found in all_found:
            if isinstance(found, Advanced):
                yield found
            elif (difference := progress.account.take(tournament.slug, found)) is not None:
                yield difference


def _start_over(progress: Progress) -> None:
    """Starts again, because an event was set aside after it was folded. Keeps the differences found so far."""
    restarted = beginning(progress.tournament_id, progress.slug)
    restarted.account.differences, restarted.account.count = progress.account.differences, progress.account.count
    for name in restarted.__struct_fields__:
        setattr(progress, name, getattr(restarted, name))


class _Batch(Struct, frozen=True):
    runs: list[BlockRun]
    keys: Mapping[str, Sequence]  # the remembered ones of its events


class _Verification:
    def __init__(
        self,
        source: TournamentSource,
        tournament: RegisteredTournament,
        progress: Progress,
        witness: Witness | None,
        set_asides: list[SetAside],
    ) -> None:
        assert progress.board is not None
        self._source = source
        self._connection = source.connection
        self._tournament = tournament
        self._tournament_id = tournament.tournament_id
        self._progress = progress
        self._set_asides = set_asides
        self._reading: asyncio.Task[list[StoredBlock]] | None = None
        self._folding = FoldChecks(progress.board, progress.folded, tournament, set_asides)
        self._of_log = LogChecks(self._connection, self._tournament_id, progress.blocks, self._folding)
        self._derived = DerivedChecks(
            source, tournament, progress.compared, progress.blocks, progress.names, self._folding, witness
        )

    async def found(self, *, reads_ahead: bool) -> AsyncGenerator[Reported | Advanced, None]:
        """What is found, and when the progress has advanced."""
        blocks = self._progress.blocks
        async for found in self._begin():
            yield found
        async with aclosing(self._batches(reads_ahead)) as batches:
            async for batch in batches:
                before, received_bytes = blocks.events, 0
                for run in batch.runs:
                    for facts, all_found in self._checked(run, batch.keys):
                        for found in all_found:
                            yield found
                        if facts.needs_log or blocks.sequence >= self._derived.next_at:
                            async for found in self._look_up(facts):
                                yield found
                    received_bytes += run.size
                    if received_bytes >= RECEIVE_BYTES:
                        received_bytes = 0
                        await asyncio.sleep(0)
                yield Advanced(blocks.events - before)
        async for found in self._end():
            yield found
        self._progress.board, self._progress.folded = None, FoldState()

    # ── Reading ─────────────────────────────────────────────────────────────────────────────────────────

    async def _batches(self, reads_ahead: bool) -> AsyncGenerator[_Batch, None]:
        """The following blocks, batch by batch."""
        try:
            reading = self._read(self._progress.blocks.sequence)
            while reading is not None and (blocks := await reading):
                runs = list(stored_log.runs(blocks, RECEIVE_BYTES))
                keyed = [run.content.sent for run in runs if run.content is not None and run.content.keyed]
                keys = {sent.key for of_block in keyed for sent in of_block if sent.key is not None}
                remembered = await self._source.key_sequences(self._tournament_id, list(keys)) if keys else {}
                batch = _Batch(runs, remembered)
                if reads_ahead and (reading := self._read(blocks[-1].last_sequence)) is not None:
                    await asyncio.sleep(0)  # it sends its query
                yield batch
                if not reads_ahead:
                    reading = self._read(blocks[-1].last_sequence)
        finally:
            if self._reading is not None:
                self._reading.cancel()
                await asyncio.wait([self._reading])

    def _read(self, after: Sequence) -> asyncio.Task[list[StoredBlock]] | None:
        """Begins to read the blocks after this sequence. None: there are none."""
        if after >= (self._tournament.sequence or 0):
            return None
        self._reading = asyncio.create_task(self._source.blocks(self._tournament_id, after))
        return self._reading

    async def _wait_for_connection(self) -> None:
        """Returns when the connection is free for another query."""
        if self._reading is not None and not self._reading.done():
            await asyncio.wait([self._reading])

    # ── What is checked ─────────────────────────────────────────────────────────────────────────────────

    async def _begin(self) -> AsyncIterator[Reported]:
        """Looks up the comparisons due at each sequence, and makes those that are due where the progress is."""
        blocks = self._progress.blocks
        if blocks.sequence > 0:
            if await stored_log.digest_at(self._connection, self._tournament_id, blocks.sequence) != blocks.digest:
                yield Finding(blocks.sequence, "block.digest", "is not the one that had been verified before the pause")
            # Snapshots and tables have forgotten them since.
            erased = await reading.erased_since(self._connection, self._tournament_id, blocks.sequence)
            for one in erase(self._folding.board, erased):
                self._progress.names.lacking.setdefault(one, blocks.sequence)
        for found in await self._derived.begin():
            yield found
        if blocks.sequence >= self._derived.next_at:
            async for due in self._derived.compare():
                yield due

    def _checked(self, run: BlockRun, keys: Mapping[str, Sequence]) -> Iterator[tuple[BlockFacts, list[Reported]]]:
        """Checks the blocks of a run, in one step if nothing can be wrong; otherwise, one after another."""
        if run.plain and self._holds(run):
            yield BlockFacts(), []
            return
        for block in run.blocks:
            facts = BlockFacts()
            yield facts, self._check(block, block.content() if run.plain else run.content, keys, facts)

    def _holds(self, run: BlockRun) -> bool:
        """Folds a run of plain points and moves the progress to its end. False, and nothing has changed: something may
        be wrong with a block, or a comparison is due before the last one."""
        blocks, first = self._progress.blocks, run.blocks[0].first_sequence
        if len(run.blocks) > 1 and run.blocks[-2].last_sequence >= self._derived.next_at:
            return False
        if not blocks.are_linked(run.blocks) or not self._folding.fold_plain(run.plain, first):
            return False
        blocks.advance_over(run.blocks, len(run.plain))
        return True

    def _check(
        self, block: StoredBlock, content: BlockContent | None, keys: Mapping[str, Sequence], facts: BlockFacts
    ) -> list[Reported]:
        """Checks the next block, folds its events, and moves the progress to its end. `keys`: the recorded sequences of
        the keys of its events."""
        blocks, names, folded = self._progress.blocks, self._progress.names, self._progress.folded
        found: list[Reported] = [*blocks.check_link(block, content)]
        if content is not None:
            if names.concern(block, content):
                found += names.check(block, content)
            found += self._folding.check(block, content, facts)
            if content.keyed:
                found += blocks.check_keys(content.first_sequence, [sent.key for sent in content.sent], keys)
            for sequence, topics in facts.topics:
                blocks.note_topics(sequence, topics)
            doubtful = facts.doubtful or facts.may_be_structural
            if fault := blocks.structure_fault(block, structural=facts.structural, doubtful=doubtful):
                found.append(Finding(block.first_sequence, "block.structure_sequence", fault))
            if block.created != facts.created:
                certain = folded.foldable and not facts.doubtful
                if fault := created_fault(block, facts.created, certain=certain):
                    found.append(Finding(block.first_sequence, "block.created", fault))
        else:
            folded.foldable = False
        blocks.advance(block, content)
        return found

    async def _look_up(self, facts: BlockFacts) -> AsyncIterator[Reported]:
        """Checks what the last block leaves open."""
        await self._wait_for_connection()
        async for of_log in self._of_log.of_block(facts):
            yield of_log
        if self._progress.blocks.sequence >= self._derived.next_at:
            async for found in self._derived.compare():
                yield found

    async def _end(self) -> AsyncIterator[Reported]:
        """Checks what can only be told when the whole log is folded."""
        tournament_id, progress = self._tournament_id, self._progress
        async for of_totals in self._of_log.unexpired_totals():
            yield of_totals
        for of_lock in self._lock_faults():
            yield of_lock
        progress.set_aside = [one for one in self._set_asides if one.fault is None]
        async for of_names in self._of_names():
            yield of_names
        if (before := await self._source.of(tournament_id, stored_log.before_the_beginning)) is not None:
            yield Finding(before, "block.last_sequence", "lies before the beginning")
        for of_derived in self._derived.beyond():
            yield of_derived
        for of_counts in self._count_faults(await self._source.of(tournament_id, stored_log.counts) or StoredCounts()):
            yield of_counts
        if not progress.folded.foldable:
            yield Unchecked("sums and everything folded: an event cannot be folded")
            return
        for of_sums in self._sum_faults():
            yield of_sums

    def _count_faults(self, counts: StoredCounts) -> Iterator[Reported]:
        blocks = self._progress.blocks
        if counts.keys != blocks.keys:
            yield Finding(None, "idempotency", f"{counts.keys} keys are remembered; the events have {blocks.keys}")
        if counts.unseen_personal is not None:
            wrong = "is there, and the block does not say that it has personal fields"
            yield Finding(counts.unseen_personal, "personal", wrong)
        if not self._progress.folded.foldable or self._folding.ignored:
            yield Unchecked("topics: an event cannot be folded")
        elif (counts.topics, counts.topics_sum) != (blocks.topics, blocks.topics_sum):
            yield Finding(None, "topic", f"{counts.topics} rows are not the {blocks.topics} topics of the events")

    def _lock_faults(self) -> Iterator[Finding]:
        registered = self._tournament
        if not registered.locked:
            yield Finding(None, "append_lock", "is missing: nothing can be appended")
        elif registered.refusals != (registered.last_refusal or 0):
            wrong = f"is {registered.refusals}; the last refusal is {registered.last_refusal}"
            yield Finding(None, "append_lock.refusals", wrong)
        if self._progress.blocks.count == 0:
            yield Finding(Sequence(1), "block", "there is none: the log is empty")

    async def _of_names(self) -> AsyncIterator[Finding]:
        """Personal fields lack just where an event erased the competitor. (It may be later than what was verified: they
        were read afterwards.)"""
        connection, tournament_id = self._connection, self._tournament_id
        lacking, erased_here = self._progress.names.lacking, self._progress.folded.erased
        if not lacking and not erased_here:
            return
        erased = await reading.erased_since(connection, tournament_id, Sequence(0))
        for competitor_id, sequence in lacking.items():
            if competitor_id not in erased:
                yield Finding(sequence, "personal", f"is missing, and no event erased competitor {competitor_id}")
        for competitor_id, sequence in await stored_log.not_erased(connection, tournament_id, erased_here):
            yield Finding(sequence, "personal", f"is there, although competitor {competitor_id} was erased")

    def _sum_faults(self) -> Iterator[Finding]:
        """Compares the totals of the fold with the deltas, added up."""
        sums, rankings = self._progress.folded.sums, self._folding.board.rankings.values()
        folded = {u: unity.totals for ranking in rankings for u, unity in ranking.unities.items()}
        if not _are_same(sums, folded):
            for unlike in differences(_not_zero(sums), _not_zero(folded), path="sums"):
                wrong = f"the fold has {unlike.found}, its deltas add up to {unlike.expected}"
                yield Finding(self._progress.blocks.sequence, unlike.path, wrong)


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
