"""Archives: a tournament's log in a file, as it is stored, for import into another database.

Pure. An archive is lines of text. Each is a sum, a blank and JSON. The first line has the manifest, and each other line
a block: its stored columns, and its text (see `digest.block_text`). A sum is the SHA-256 of the sum before it and the
line's JSON. So the first line that was changed, moved or left out can be named. The manifest gives the end of the last
block.

An archive has the used idempotency keys, with the fingerprints of their requests. It has no tokens and no refused keys:
those matter only to requests under way to the original database.
"""

import codecs
from collections.abc import Iterable, Iterator
from hashlib import sha256
from itertools import chain
from typing import Annotated, Final
from uuid import UUID

import msgspec
from msgspec import Meta, Struct

from engine.domain.errors import LogDisproved, Unreadable
from engine.domain.terms import ID_MAX, Sequence, TournamentId
from engine.log import codec, digest
from engine.log.codec import BlockContent, content_of

ARCHIVE_FORMAT: Final = "tallybook archive 1"
ARCHIVE_LINE_BYTES_MAX: Final = 1 << 30
"""Bytes of a line. PostgreSQL cannot hold a longer text, so no block makes a longer line."""
_NO_SUM: Final = "0" * 64
_Integer = Annotated[int, Meta(ge=-ID_MAX - 1, le=ID_MAX)]
_Place = Annotated[Sequence, Meta(ge=1, le=ID_MAX)]
_Hexadecimal = Annotated[str, Meta(pattern=r"^([0-9a-f]{2})*\Z")]


class Manifest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of the archive: a tournament up to `sequence`, where the digest of the chain is `digest`
    (hexadecimal)."""

    format: str = ARCHIVE_FORMAT
    tournament_id: Annotated[TournamentId, Meta(ge=1, le=ID_MAX)]
    slug: str
    name: str
    sequence: _Place
    digest: _Hexadecimal


class UsedKey(Struct, frozen=True, array_like=True):
    """An idempotency key, the fingerprint of its request (hexadecimal), and the sequence of its first event."""

    key: str
    fingerprint: _Hexadecimal
    sequence: _Place


class ArchivedBlock(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A block as it is stored; `text` is what its digest covers. `personals`: the personal fields of its events, in
    their order, as they are stored next to the block; None: no event has any."""

    last_sequence: _Place
    digest: _Hexadecimal
    append_id: UUID
    answers: list[_Integer | None] | None
    structure_sequence: _Place
    created: list[_Integer] | None
    rules: Annotated[int, Meta(ge=1, le=32_767)]
    keys: list[UsedKey]
    personals: list[str | None] | None = None
    text: str

    def content(self) -> BlockContent:
        """The content of its text. Raises `codec.Undecodable`."""
        return content_of(self.text)


class Writer:
    """Makes the lines of an archive, one after another."""

    def __init__(self) -> None:
        self._sum = _NO_SUM

    def line(self, part: Manifest | ArchivedBlock) -> str:
        text = msgspec.json.encode(part)
        self._sum = _sum(self._sum, text)
        return f"{self._sum} {text.decode()}\n"


def read(lines: Iterable[bytes]) -> Iterator[Manifest | ArchivedBlock]:
    """The manifest, then each block, in order.

    Raises Unreadable if it is not an archive, or if a line has content that no database could hold; LogDisproved,
    naming the line, for a line that was changed, for blocks whose chain does not lead to the manifest's digest, and for
    an archive that ends too early.
    """
    before, number = _NO_SUM, 0
    manifest: Manifest | None = None
    sequence, chained = Sequence(0), b""
    for number, line in enumerate(lines, start=1):
        if len(line) > ARCHIVE_LINE_BYTES_MAX:
            raise Unreadable(f"Line {number} of the archive is longer than {ARCHIVE_LINE_BYTES_MAX:,} bytes.")
        unmarked = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
        found, _, text = unmarked.rstrip(b"\n").partition(b" ")
        before = _sum(before, text)
        if found.decode("ascii", "replace") != before:
            hint = "" if number > 1 else " Is it an archive at all?"
            raise LogDisproved(f"Line {number} of the archive is altered or damaged.{hint}")
        try:
            if manifest is None:
                manifest = msgspec.json.decode(text, type=Manifest)
                if manifest.format != ARCHIVE_FORMAT:
                    raise Unreadable(f"This version reads {ARCHIVE_FORMAT!r}; the archive is {manifest.format!r}.")
                chained = digest.genesis(manifest.tournament_id)
                yield manifest
                continue
            block = msgspec.json.decode(text, type=ArchivedBlock)
            content = block.content()
        except (msgspec.MsgspecError, codec.Undecodable, UnicodeDecodeError, RecursionError) as error:
            raise Unreadable(f"Line {number} of the archive cannot be read: {error}") from error
        if fault := _fault(block, content):
            raise Unreadable(f"Line {number} of the archive cannot be read: {fault}.")
        chained = digest.chain(chained, block.text.encode())
        last = content.first_sequence + content.count - 1
        if content.first_sequence != sequence + 1 or last != block.last_sequence or chained.hex() != block.digest:
            raise LogDisproved(
                f"Line {number} of the archive: its events from {content.first_sequence} to {last} do not follow event "
                f"{sequence} with the digest {block.digest}."
            )
        sequence = block.last_sequence
        yield block
    if manifest is None:
        raise Unreadable("The file is not an archive of a tournament.")
    if (sequence, chained.hex()) != (manifest.sequence, manifest.digest):
        raise LogDisproved(f"The archive ends with event {sequence}; it was written up to event {manifest.sequence}.")


def _fault(block: ArchivedBlock, content: BlockContent) -> str | None:
    """Why no database could hold this block, or None."""
    if block.personals is not None and len(block.personals) != content.count:
        return "its personal fields are not those of its events"
    if not digest.is_moment(content.recorded_us):
        return "its time is outside the years 1 to 9999"
    if not all(0 <= sent.actor <= ID_MAX for sent in content.sent):
        return "one of its actors is not an id"
    given = (text for text in block.personals or () if text)
    if any("\0" in text for text in chain([block.text], given, (used.key for used in block.keys))):
        return "one of its texts contains U+0000"
    return None


def _sum(before: str, text: bytes) -> str:
    return sha256(before.encode() + text).hexdigest()
