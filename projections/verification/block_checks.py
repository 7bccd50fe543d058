"""The checks of what a tournament's blocks store about their events: chain, times, lengths, keys, and structure.

The chain is recomputed from the stored bytes, link by link. A broken link is reported, and the next one is computed
from the stored digest. So each place of tampering is reported once, without all blocks after it.

This file does not read the database. `fold_checks.py` checks what the events say.
"""

from collections.abc import Iterator, Mapping
from collections.abc import Sequence as Items
from typing import Final, get_args

from msgspec import UNSET, Struct, field

from engine.domain.events import Naming
from engine.domain.rejudging import RULES
from engine.domain.terms import CompetitorId, Sequence
from engine.log import codec, digest
from engine.log.digest import EventColumns
from projections.verification.findings import Finding
from projections.verification.stored_log import StoredBlock

_NAMING: Final = frozenset(kind.tag for kind in get_args(Naming))


class Blocks(Struct, kw_only=True):
    """The blocks verified so far. The last of the `count` ends at `sequence`, with this `digest` and `log_size`, and
    was recorded at `recorded_us`. `structure_sequence`: the end of the last structural one; `structure_kept` tells
    whether one of them says that. `events`, `keys` and `caused` count their events, idempotency keys, and events in the
    index of what competitions caused."""

    digest: bytes
    sequence: Sequence = Sequence(0)
    log_size: int = 0
    recorded_us: int | None = None
    structure_sequence: Sequence = Sequence(0)
    structure_kept: bool = False
    count: int = 0
    events: int = 0
    keys: int = 0
    caused: int = 0

    def check_link(self, block: StoredBlock, columns: EventColumns | None) -> list[Finding]:
        """Checks that the block follows, with the events of these columns."""
        found: list[Finding] = []
        first, last = block.first_sequence, block.last_sequence
        if first != self.sequence + 1 or last < first:
            wrong = f"the block that ends at {last} begins at {first}: the blocks do not follow each other"
            found.append(Finding(Sequence(self.sequence + 1), "block.first_sequence", wrong))
        if block.rules != RULES:
            wrong = f"is {block.rules}; this program judges by version {RULES} of the rules"
            found.append(Finding(first, "block.rules", wrong))
        if block.text is None or block.recorded_us is None:
            wrong = f"there is no event at all in the block from {first} to {last}"
            return [*found, Finding(first, "event.sequence", wrong)]
        if not block.timely:
            found.append(Finding(first, "event.recorded_at", f"is not that of the block from {first} to {last}"))
        if self.recorded_us is not None and block.recorded_us < self.recorded_us:
            found.append(Finding(first, "event.recorded_at", "is before that of the event before it"))
        size = len(block.text) + sum(len(personal.encode()) for personal in block.personals or () if personal)
        # The size still includes erased fields, whose length is no longer known.
        if block.size != size and not (block.size > size and _lacks_some(block, columns)):
            found.append(Finding(first, "block.bytes", f"is {block.size}; its text and personal fields have {size}"))
        elif first == self.sequence + 1 and block.log_size != self.log_size + block.size:
            wrong = f"is {block.log_size}; with the blocks before it, there are {self.log_size + block.size}"
            found.append(Finding(first, "block.log_bytes", wrong))
        recomputed = digest.chain(self.digest, block.text)
        if recomputed != block.digest:
            made = f"is {block.digest.hex()}; its events give {recomputed.hex()}"
            found.append(Finding(first, "block.digest", f"of the block from {first} to {last} {made}"))
        if columns is None:
            found.append(Finding(first, "event", f"something is NULL in the block from {first} to {last}"))
        return found

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
        if found is None:
            self.structure_sequence = block.last_sequence
            return "is NULL, and in a block before it it is not" if self.structure_kept else None
        self.structure_kept = True
        if doubtful and found in (block.last_sequence, before):
            self.structure_sequence = found
        elif found != expected:
            return f"is {found}; the last structural block up to it ends at {expected}"
        return None

    def advance(self, block: StoredBlock, columns: EventColumns | None) -> None:
        """Moves to the end of the block."""
        if block.text is not None:
            self.recorded_us = block.recorded_us
        if columns is None:
            structure = block.structure_sequence
            self.structure_sequence = block.last_sequence if structure is None else structure
        else:
            self.caused += sum(map(codec.is_caused, columns.kinds, columns.bodies))
        self.digest = block.digest
        self.sequence = block.last_sequence
        self.log_size = block.log_size
        self.count += 1
        self.events += block.count


class PersonalFields(Struct):
    """`lacking` has, of each competitor without personal fields where there should be some, the first event."""

    lacking: dict[CompetitorId, Sequence] = field(default_factory=dict)

    def concern(self, block: StoredBlock, columns: EventColumns) -> bool:
        """Whether one of the block's events has personal fields, or had some."""
        return block.personals is not None or not _NAMING.isdisjoint(columns.kinds)

    def check(self, block: StoredBlock, columns: EventColumns) -> Iterator[Finding]:
        """Checks the personal fields of the block's events against the commitments in their bodies."""
        personals = [None] * len(columns.bodies) if block.personals is None else block.personals
        stored = zip(columns.kinds, columns.bodies, personals, strict=True)
        for number, (kind, body, personal) in enumerate(stored, start=columns.first_sequence):
            if personal is None and kind not in _NAMING:
                continue
            try:
                event = codec.decode(kind, codec.join(body, personal))
            except codec.Undecodable:
                continue  # the fold reports it
            sequence, text = Sequence(number), codec.text_of(event)
            if isinstance(event, Naming) and event.commitment is not UNSET:
                self.lacking.setdefault(event.competitor_id, sequence)
            elif codec.part(event, text, (personal or "")[: codec.SALT_DIGITS]) != (body, personal or ""):
                yield Finding(sequence, "event.personal", "is not what its body has a commitment to")


def created_fault(block: StoredBlock, created: list[int], *, certain: bool) -> str | None:
    """What is wrong with the ids that the block says its events create; they create these. `certain`: the fold saw all
    of its events."""
    if block.created is None:
        return None
    missing, more = set(created) - set(block.created), set(block.created) - set(created)
    if missing or (more and block.whole and certain):
        return f"is {block.created}; its events create {created}"
    return None


def _lacks_some(block: StoredBlock, columns: EventColumns | None) -> bool:
    """Whether the personal fields of an event may have been erased."""
    if columns is None:
        return False
    personals = [None] * len(columns.kinds) if block.personals is None else block.personals
    return any(kind in _NAMING and not personal for kind, personal in zip(columns.kinds, personals, strict=False))
