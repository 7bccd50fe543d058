"""The checks of what a tournament's blocks store about their events: chain, times, keys, topics, and structure.

The chain is recomputed from the stored bytes, link by link. A broken link is reported, and the next one is computed
from the stored digest. So each place of tampering is reported once, without all blocks after it.

This file does not read the database. `fold_checks.py` checks what the events say.
"""

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Sequence as Items
from operator import attrgetter
from typing import Final, get_args

from msgspec import UNSET, Struct, field

from engine.domain.events import Naming
from engine.domain.rejudging import RULES
from engine.domain.terms import CompetitorId, Sequence
from engine.log import codec, digest
from engine.log.codec import BlockContent
from projections.verification.findings import Finding
from projections.verification.stored_log import TOPICS_SUM, StoredBlock, hash_of_topic

_PERSONAL_FIELDS: Final = attrgetter("event.personal")
_NAMING: Final = frozenset(kind.tag for kind in get_args(Naming))


class Blocks(Struct, kw_only=True):
    """The blocks verified so far. The last of the `count` ends at `sequence`, with this `digest` and `log_size`, and
    was recorded at `recorded_us`. `structure_sequence`: the end of the last structural one. `events` and `keys` count
    their events and idempotency keys; `topics` and `topics_sum` are what `stored_log.counts` has of their topics."""

    digest: bytes
    sequence: Sequence = Sequence(0)
    log_size: int = 0
    recorded_us: int | None = None
    structure_sequence: Sequence = Sequence(0)
    count: int = 0
    events: int = 0
    keys: int = 0
    topics: int = 0
    topics_sum: int = 0

    def check_link(self, block: StoredBlock, content: BlockContent | None) -> list[Finding]:
        """Checks that the block follows, with this content."""
        found: list[Finding] = []
        first, last = block.first_sequence, block.last_sequence
        if first != self.sequence + 1 or last < first:
            wrong = f"the block that ends at {last} begins at {first}: the blocks do not follow each other"
            found.append(Finding(Sequence(self.sequence + 1), "block.first_sequence", wrong))
        if block.rules != RULES:
            wrong = f"is {block.rules}; this program judges by version {RULES} of the rules"
            found.append(Finding(first, "block.rules", wrong))
        if block.text is None or content is None:
            return [*found, Finding(first, "block.text", f"the block from {first} to {last} has no text or no time")]
        if self.recorded_us is not None and content.recorded_us < self.recorded_us:
            found.append(Finding(first, "block.recorded_at", "is before that of the block before it"))
        if content.count != last - first + 1:
            wrong = f"of the block from {first} to {last} has {content.count} lines"
            found.append(Finding(first, "block.text", wrong))
        size = self.log_size + content.size
        if block.personals is not None:
            size += block.personal_size
        # It still includes erased fields, whose length is no longer known.
        if first == self.sequence + 1 and (block.log_size < size or (block.log_size > size and not block.personal)):
            wrong = f"is {block.log_size}; with the blocks before it, there are {size}"
            found.append(Finding(first, "block.log_bytes", wrong))
        recomputed = digest.chain(self.digest, block.text)
        if recomputed != block.digest:
            made = f"is {block.digest.hex()}; its events give {recomputed.hex()}"
            found.append(Finding(first, "block.digest", f"of the block from {first} to {last} {made}"))
        return found

    def are_linked(self, blocks: Items[StoredBlock]) -> bool:
        """Whether these blocks of plain points follow, and nothing that is stored of them is wrong: `check_link`, and
        all that concerns columns."""
        sequence, log_size, recorded_us, previous = self.sequence, self.log_size, self.recorded_us, self.digest
        structure_sequence, chain = self.structure_sequence, digest.chain
        for block in blocks:
            text, at_us = block.text, block.recorded_us
            if text is None or at_us is None or (recorded_us is not None and at_us < recorded_us):
                return False
            log_size += len(text) - text.index(b"\n") - 1
            if (
                block.first_sequence != sequence + 1
                or block.log_size != log_size
                or block.structure_sequence != structure_sequence
                or block.created
                or block.rules != RULES
                or (previous := chain(previous, text)) != block.digest
            ):
                return False
            sequence, recorded_us = block.last_sequence, at_us
        times = blocks[0].recorded_us, recorded_us
        return all(at_us is not None and digest.is_moment(at_us) for at_us in times)

    def check_keys(
        self, first: Sequence, keys: Items[str | None], recorded: Mapping[str, Sequence]
    ) -> Iterator[Finding]:
        """Counts the keys of a block's events, and checks them: the events of a request are consecutive, and its first
        sequence is `recorded`."""
        before: str | None = None
        for sequence, key in enumerate(keys, start=first):
            if key is not None and key != before:
                self.keys += 1
                if key not in recorded:
                    yield Finding(Sequence(sequence), "idempotency.idempotency_key", f"{key!r} is not remembered")
                elif recorded[key] != sequence:
                    yield Finding(Sequence(sequence), "idempotency.sequence", f"of {key!r} is {recorded[key]}")
            before = key

    def structure_fault(self, block: StoredBlock, *, structural: bool, doubtful: bool) -> str | None:
        """What is wrong with where the block says that structure changed. `doubtful`: the fold cannot tell."""
        before, found = self.structure_sequence, block.structure_sequence
        expected = self.structure_sequence = block.last_sequence if structural else before
        if doubtful and found in (block.last_sequence, before):
            self.structure_sequence = found
        elif found != expected:
            return f"is {found}; the last structural block up to it ends at {expected}"
        return None

    def advance(self, block: StoredBlock, content: BlockContent | None) -> None:
        """Moves to the end of the block."""
        if content is None:
            self.structure_sequence = block.structure_sequence
        else:
            self.recorded_us = content.recorded_us
        self.digest = block.digest
        self.sequence = block.last_sequence
        self.log_size = block.log_size
        self.count += 1
        self.events += 0 if content is None else content.count

    def advance_over(self, blocks: Items[StoredBlock], events: int) -> None:
        """Moves to the end of these blocks, which have that many events."""
        last = blocks[-1]
        self.recorded_us, self.digest, self.sequence = last.recorded_us, last.digest, last.last_sequence
        self.log_size = last.log_size
        self.count += len(blocks)
        self.events += events

    def note_topics(self, sequence: Sequence, topics: Iterable[int]) -> None:
        """Counts the topics of an event."""
        for topic in topics:
            self.topics += 1
            self.topics_sum = (self.topics_sum + hash_of_topic(topic, sequence)) % TOPICS_SUM


class PersonalFields(Struct):
    """`lacking` has, of each competitor without personal fields where there should be some, the first event."""

    lacking: dict[CompetitorId, Sequence] = field(default_factory=dict)

    def concern(self, block: StoredBlock, content: BlockContent) -> bool:
        """Whether one of the block's events has personal fields, or had some."""
        if block.personals is not None or content.entries is None:
            return True
        return any(map(_PERSONAL_FIELDS, content.entries))

    def check(self, block: StoredBlock, content: BlockContent) -> Iterator[Finding]:
        """Checks the personal fields of the block's events against the commitments in their bodies."""
        personals = block.personal_fields()
        for number, parts in enumerate(content.parts, start=content.first_sequence):
            sequence, kind, body = Sequence(number), parts.kind, parts.body
            personal = personals.get(sequence)
            if personal is None and kind not in _NAMING:
                continue
            joined = body if personal is None else codec.join(body, personal.text)
            try:
                event = codec.decode(kind, joined)
            except codec.Undecodable:
                continue  # the fold reports it
            found, text = "" if personal is None else personal.text, codec.text_of(event)
            if isinstance(event, Naming) and event.commitment is not UNSET:
                self.lacking.setdefault(event.competitor_id, sequence)
            elif codec.part(event, text, found[: codec.SALT_DIGITS]) != (body, found):
                yield Finding(sequence, "personal.text", "is not what the body has a commitment to")
            elif personal is not None and isinstance(event, Naming) and event.competitor_id != personal.competitor_id:
                wrong = f"is {personal.competitor_id}; the event is about {event.competitor_id}"
                yield Finding(sequence, "personal.competitor_id", wrong)


def created_fault(block: StoredBlock, created: list[int], *, certain: bool) -> str | None:
    """What is wrong with the ids that the block says its events create; they create these. `certain`: the fold saw all
    of its events."""
    if block.created is None:
        return None
    missing, more = set(created) - set(block.created), set(block.created) - set(created)
    if missing or (more and block.whole and certain):
        return f"is {block.created}; its events create {created}"
    return None
