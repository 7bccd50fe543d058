"""Inclusion: a proof that one event is in a log whose digest is known, without the log and without the database.

The digest before the event's block and the text of the block give the digest of the block. Each later block adds 32
bytes, the hash of its text, until the known digest is reached. `check_proof.py` checks it.
"""

from hashlib import sha256
from typing import Final

from asyncpg import Connection
from msgspec import Struct

from engine.domain.errors import LogDisproved, NotFound
from engine.domain.terms import Sequence, TournamentId
from engine.log import digest
from projections.verification import stored_log

FORMAT: Final = "tallybook proof 1"


class Proof(Struct, frozen=True, kw_only=True):
    """All digests and hashes are hexadecimal. `block` is the text of the block that holds the event `sequence`.
    `previous_digest` is the digest of the block before it, which ends at `previous_sequence`. `later` are the hashes of
    the texts of the blocks after it. They lead to `digest`, the digest of the block that ends at `digest_sequence`."""

    format: str = FORMAT
    tournament: TournamentId
    slug: str
    sequence: Sequence
    previous_sequence: Sequence
    previous_digest: str
    block: str
    later: list[str]
    digest: str
    digest_sequence: Sequence


async def prove(
    connection: Connection, tournament_id: TournamentId, slug: str, sequence: Sequence, to: Sequence | None = None
) -> Proof:
    """The proof of the event `sequence`, up to the head or to the first block that ends at `to` or later.

    Call it within `stored_log.one_moment`. It takes the digest before the event's block as stored, and computes
    everything else from the stored events. Raises NotFound if the log has no such event or does not reach `to`, and
    LogDisproved if it does not verify from the block before the event on.
    """
    if sequence < 1:
        raise NotFound(f"There is no event {sequence}; the first one is 1.")
    before = await stored_log.end_before(connection, tournament_id, sequence)
    genesis = digest.genesis(tournament_id)
    previous = await stored_log.digest_at(connection, tournament_id, before) if before else genesis
    assert previous is not None
    upto = sequence if to is None else max(sequence, to)
    at, known, text = before, previous, b""
    later: list[str] = []
    while (to is None or at < upto) and (blocks := await stored_log.blocks(connection, tournament_id, at)):
        for block in blocks:
            said = _verified(block, at, known, slug)
            known = block.digest
            if text:
                later.append(sha256(said).hexdigest())
            else:
                text = said
            at = block.last_sequence
            if to is not None and at >= upto:
                break
    if at < upto:
        raise NotFound(f"The log of {slug} ends at sequence {at}; there is no event {upto}.")
    return Proof(
        tournament=tournament_id,
        slug=slug,
        sequence=sequence,
        previous_sequence=before,
        previous_digest=previous.hex(),
        block=text.decode(),
        later=later,
        digest=known.hex(),
        digest_sequence=at,
    )


def _verified(block: stored_log.StoredBlock, after: Sequence, known: bytes, slug: str) -> bytes:
    """The text of the block, which follows the event `after` with the digest `known`. Raises LogDisproved."""
    if block.text is None or not is_whole(block, after):
        raise LogDisproved(f"{slug} at sequence {block.first_sequence}: the log has a gap; nothing is proved.")
    if (found := digest.chain(known, block.text)) != block.digest:
        raise LogDisproved(
            f"{slug} at sequence {block.first_sequence}: the events of the block that ends at {block.last_sequence} "
            f"give the digest {found.hex()}, not {block.digest.hex()}; nothing is proved."
        )
    return block.text


def is_whole(block: stored_log.StoredBlock, after: Sequence) -> bool:
    """Whether the block follows the one that ends at `after`, and has all of its events."""
    return block.first_sequence == after + 1 and (block.text or b"").count(b"\n") == block.last_sequence - after
