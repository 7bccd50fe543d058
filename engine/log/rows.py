"""Events as rows of the log: how a statement reads them, and what they are decoded to.

In a row, `kind` is NULL for an event that was set aside: every reader ignores it.
"""

from collections.abc import Iterable
from typing import Any, Final

from engine.domain.errors import LogUnreadable
from engine.domain.events import Ignored, Recorded
from engine.log import codec
from engine.process.time_slices import TimeSlice

# The text of an event, as `codec.join` makes it of its body and its personal fields.
TEXT: Final = """
    CASE WHEN personal IS NULL THEN body ELSE left(body, -81) || ',' || substr(personal, 66) END AS body"""
# The rows of the view `set_aside` for tournament $1. Each table is restricted to it, or a distributed database would
# ask all shards.
ASIDE: Final = """
    SELECT s.sequence, s.set_aside_by
    FROM (
        SELECT
            substring(body FROM '^\\{"sequence":([1-9][0-9]{0,17}),"digest":"[0-9a-f]{64}"\\}$')::bigint AS sequence,
            substring(body FROM '"digest":"([0-9a-f]{64})"\\}$') AS digest,
            sequence AS set_aside_by
        FROM event
        WHERE tournament_id = $1 AND kind = 'EventSetAside'
    ) AS s
    CROSS JOIN LATERAL (
        SELECT digest
        FROM block
        WHERE tournament_id = $1 AND last_sequence >= s.sequence
        ORDER BY last_sequence
        LIMIT 1
    ) AS b
    WHERE s.sequence < s.set_aside_by AND s.digest = encode(b.digest, 'hex')
"""
# For tournament $1. The kind of an event that was set aside is not read: it is a no-op in every reader.
COLUMNS: Final = f"""
        tournament_id, sequence, recorded_at, actor,
        CASE
            WHEN sequence IN (SELECT sequence FROM ({ASIDE}) AS set_aside) THEN NULL
            ELSE kind
        END AS kind,
        idempotency_key, {TEXT}"""  # noqa: S608 # written down above


async def events_of(rows: Iterable[Any]) -> list[Recorded]:
    """The events of these rows, decoded in time slices: one may hold thousands of deltas. Raises LogUnreadable."""
    events, time_slice = [], TimeSlice()
    for row in rows:
        events.append(event_of(row))
        if (len(events) % _SMALL_AT_ONCE == 0 or len(row[-1]) > _SMALL_CHARACTERS_MAX) and time_slice.over:
            await time_slice.give_way()
    return events


_SMALL_AT_ONCE: Final = 16
_SMALL_CHARACTERS_MAX: Final = 1_000
"""Events with bodies up to this length are decoded 16 at once: looking at the clock takes a tenth of decoding one."""


def event_of(row: Any) -> Recorded:
    """The event of a row: tournament, sequence, time, actor, kind, key and text. Raises LogUnreadable."""
    tournament_id, sequence, recorded_at, actor, kind, key, body = row
    if kind is None:
        return Recorded(sequence, recorded_at, actor, key, _IGNORED)
    try:
        return Recorded(sequence, recorded_at, actor, key, codec.decode(kind, body))
    except codec.Undecodable as error:
        raise LogUnreadable(tournament_id, sequence, str(error)) from error


_IGNORED: Final = Ignored()
