"""The hash chain over a tournament's log.

    digest(block) = SHA-256(digest(previous block) ‖ SHA-256(text of the block in UTF-8))

The text is the first sequence, a blank, the time in µs since 1970 and a line feed, and then a line for each event
(`engine/log/codec.py`), with line feeds between them.

Pure. The database computes the same when it appends (`genesis_digest`, `block_place` and `append_block` in
`migrations/0001_log.sql`); this module is for checks. There are two levels so that a proof of one event needs 32 bytes
of each later block instead of its events.
"""

import re
import struct
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Final

from msgspec import Struct

from engine.domain.terms import Sequence, TournamentId

_FORMAT: Final = b"tallybook log 1"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def genesis(tournament_id: TournamentId) -> bytes:
    """The digest before the first block: it covers the format's version and the tournament's id."""
    return sha256(_FORMAT + struct.pack(">q", tournament_id)).digest()


def block_text(first_sequence: Sequence, recorded_at: datetime, lines: str) -> bytes:
    """What the digest of a block covers."""
    return f"{first_sequence} {microseconds(recorded_at)}\n{lines}".encode()


class BlockText(Struct, frozen=True):
    """The text of a block, taken apart: its first sequence, its time, the number of its events and their lines."""

    first_sequence: Sequence
    recorded_us: int
    lines: str

    @property
    def count(self) -> int:
        return self.lines.count("\n") + 1

    @property
    def recorded_at(self) -> datetime:
        """Raises OverflowError unless `is_moment`."""
        return moment(self.recorded_us)


def block_in(text: str) -> BlockText | None:
    """The content of a block's text; None: it does not begin with a place."""
    before, _, lines = text.partition("\n")
    found = _PLACE.fullmatch(before)
    return None if found is None else BlockText(Sequence(int(found[1])), int(found[2]), lines)


_PLACE: Final = re.compile("(0|-?[1-9][0-9]{0,18}) (0|-?[1-9][0-9]{0,19})")


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
    """The digest of the block with this text (see above), after a block with the digest `previous`."""
    return sha256(previous + sha256(text).digest()).digest()


_FIRST_US: Final = microseconds(datetime.min.replace(tzinfo=UTC))
_LAST_US: Final = microseconds(datetime.max.replace(tzinfo=UTC))
