"""The hash chain over a tournament's log.

    digest(block) = SHA-256(digest(previous block) ‖ SHA-256(text of the block in UTF-8))

Pure. The database computes the same when it appends (`genesis_digest`, `block_text` and `append_block` in
`migrations/0001_log.sql`); this module is for checks. There are two levels so that a proof of one
event needs 32 bytes of each later block instead of its events.
"""

import struct
from collections.abc import Sequence as Items
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Final

import msgspec
from msgspec import Struct

from engine.domain.terms import ActorId, Sequence, TournamentId

_FORMAT: Final = b"tallybook log 1"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def genesis(tournament_id: TournamentId) -> bytes:
    """The digest before the first block: it covers the format's version and the tournament's id."""
    return sha256(_FORMAT + struct.pack(">q", tournament_id)).digest()


def block_text(
    first_sequence: Sequence,
    recorded_at: datetime,
    actors: Items[ActorId],
    kinds: Items[str],
    keys: Items[str | None],
    bodies: Items[str],
) -> bytes:
    """Every stored field of a block's events, as UTF-8. `actors` to `bodies` are columns in the order of the events.

    The text is a JSON array without blanks: the first sequence, the time in µs since 1970, actors, kinds, keys (null
    instead of the list if no event has one) and bodies. Only quotation marks, backslashes and characters below U+0020
    are escaped.
    """
    given_keys = None if all(key is None for key in keys) else keys
    return _encode((first_sequence, microseconds(recorded_at), actors, kinds, given_keys, bodies))


def microseconds(moment: datetime) -> int:
    """The time in µs since 1970, as in the text of a block."""
    return (moment - _EPOCH) // _MICROSECOND


def moment(microseconds: int) -> datetime:
    """The time in UTC for the µs in the text of a block. Raises OverflowError outside the years 1 to 9999."""
    return _EPOCH + microseconds * _MICROSECOND


def is_moment(microseconds: int) -> bool:
    """Whether `moment` can return this time: whether its year is from 1 to 9999."""
    return _FIRST_US <= microseconds <= _LAST_US


def chain(previous: bytes, text: bytes) -> bytes:
    """The digest of the block with this text (see `block_text`), after a block with the digest `previous`."""
    return sha256(previous + sha256(text).digest()).digest()


class EventColumns(Struct, frozen=True, array_like=True):
    """The content of a block's text: every stored field of its events. `keys` None: no event has a key."""

    first_sequence: Sequence
    recorded_us: int
    actors: list[ActorId]
    kinds: list[str]
    keys: list[str | None] | None
    bodies: list[str]


def columns_of(text: bytes) -> EventColumns:
    """The content of a block's text (see `block_text`). Raises msgspec.ValidationError if a value in it is null."""
    return _decode(text)


_FIRST_US: Final = microseconds(datetime.min.replace(tzinfo=UTC))
_LAST_US: Final = microseconds(datetime.max.replace(tzinfo=UTC))
_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(EventColumns).decode
