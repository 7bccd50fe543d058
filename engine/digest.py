"""The hash chain over a tournament's log.

    digest(block) = SHA-256(digest(previous block) ‖ SHA-256(bytes of its events, one after the other))

Pure. The database computes the same when it appends (`genesis_digest`, `event_bytes` and `append_block` in
`migrations/0001_log.sql`); this is for whoever checks. Two levels, so that a proof of one event needs the 32
bytes of each later block instead of its events.
"""

import struct
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Final

from engine.terms import ActorId, Sequence, TournamentId

_FORMAT: Final = b"tallybook log 1"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def genesis(tournament_id: TournamentId) -> bytes:
    """The digest before the first block: of the format's version and the tournament's id."""
    return sha256(_FORMAT + struct.pack(">q", tournament_id)).digest()


def event_bytes(
    sequence: Sequence, recorded_at: datetime, actor: ActorId, kind: str, key: str | None, body: str
) -> bytes:
    """Every stored field of one event: three big-endian int64 (the time in µs since 1970), then tag, key and
    body as UTF-8, each after its length in bytes as int32; length -1 and no bytes for a missing key."""
    numbers = struct.pack(">qqq", sequence, (recorded_at - _EPOCH) // _MICROSECOND, actor)
    return numbers + _prefixed(kind) + (_NO_KEY if key is None else _prefixed(key)) + _prefixed(body)


def chain(previous: bytes, events: Iterable[bytes]) -> bytes:
    """The digest of the block made of `events` (see `event_bytes`) that follows the digest `previous`."""
    return sha256(previous + sha256(b"".join(events)).digest()).digest()


_NO_KEY: Final = struct.pack(">i", -1)


def _prefixed(text: str) -> bytes:
    encoded = text.encode()
    return struct.pack(">i", len(encoded)) + encoded
