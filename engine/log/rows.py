"""Events as rows of the log: how statements read them, and what they are decoded to.

An event that was set aside is read as an `Ignored`, by every reader.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator
from collections.abc import Sequence as Items
from datetime import datetime
from itertools import accumulate, chain, repeat
from typing import Any, Final, Self

import msgspec
from asyncpg import Record
from msgspec import Struct

from engine.domain.errors import LogForked, LogUnreadable
from engine.domain.events import Ignored, Recorded
from engine.domain.terms import Sequence, TournamentId
from engine.log import codec
from engine.process.time_slices import TimeSlice

# The events of tournament $1 that were set aside. The only way past an event that cannot be folded is another event
# that names it. It counts only exactly as the service writes it, and if it names an earlier event of its log
# by the digest of the block that holds it. Any other is an ordinary event, and sets nothing aside.
#
# Each table is restricted to the tournament, or a distributed database would ask all shards.
ASIDE: Final = """
    SELECT s.named[1]::bigint AS sequence, s.set_aside_by
    FROM (
        SELECT
            t.sequence AS set_aside_by,
            regexp_match(
                split_part(b.text, chr(10), (t.sequence - b.first_sequence + 1)::int),
                '^\\["EventSetAside",[0-9]{1,18},null,\\{"sequence":([1-9][0-9]{0,17}),"digest":"([0-9a-f]{64})"\\}\\]$'
            ) AS named
        FROM topic AS t
        CROSS JOIN LATERAL (
            SELECT first_sequence, text
            FROM block
            WHERE tournament_id = $1 AND last_sequence >= t.sequence
            ORDER BY last_sequence
            LIMIT 1
        ) AS b
        WHERE t.tournament_id = $1 AND t.topic = -1
    ) AS s
    CROSS JOIN LATERAL (
        SELECT digest
        FROM block
        WHERE tournament_id = $1 AND last_sequence >= s.named[1]::bigint
        ORDER BY last_sequence
        LIMIT 1
    ) AS b
    WHERE s.named[1]::bigint < s.set_aside_by AND s.named[2] = encode(b.digest, 'hex')
"""
# The personal fields of a block `b` of tournament $1, as a JSON object by sequence; NULL: it has none.
PERSONALS: Final = """
    CASE WHEN b.personal THEN (
        SELECT json_object_agg(p.sequence, p.text)::text
        FROM personal AS p
        WHERE p.tournament_id = $1 AND p.sequence BETWEEN b.first_sequence AND b.last_sequence
    ) END AS personals"""


# Those of tournament $1, as an array.
ASIDES: Final = f"ARRAY(SELECT sequence FROM ({ASIDE}) AS set_aside) AS aside"  # noqa: S608 # written down above
# The blocks of tournament $1 with the events that follow $2, up to $3: as far as $4 events and $5 bytes reach. The
# first may begin before $2, and the last end beyond that.
EVENTS_BETWEEN: Final = f"""
    SELECT b.first_sequence, b.last_sequence, b.recorded_at, b.digest, b.text, {PERSONALS}, {ASIDES}
    FROM (
        SELECT *, sum(octet_length(text)) OVER (ORDER BY last_sequence ROWS UNBOUNDED PRECEDING) AS size
        FROM (
            SELECT first_sequence, last_sequence, recorded_at, digest, personal, text
            FROM block
            WHERE tournament_id = $1 AND last_sequence > $2 AND last_sequence <= coalesce(
                (
                    SELECT last_sequence
                    FROM block
                    WHERE tournament_id = $1 AND last_sequence >= least($3, $2 + $4)
                    ORDER BY last_sequence
                    LIMIT 1
                ),
                $3
            )
            ORDER BY last_sequence
            LIMIT $4
        ) AS b
    ) AS b
    WHERE b.size - octet_length(b.text) < $5
    ORDER BY b.last_sequence"""  # noqa: S608 # written down above


def events_at(asked: str, *, personal: bool = False) -> str:
    """The statement that reads the events of tournament $1 whose sequences the subquery `asked` gives: sequence, time,
    line, whether it was set aside, and with `personal` its personal fields. `event_of` takes a row."""
    apart = """,
            CASE WHEN b.personal THEN (
                SELECT p.text FROM personal AS p
                WHERE p.tournament_id = $1 AND p.sequence = b.first_sequence + l.n - 1
            ) END AS personal"""
    return f"""
    WITH asked AS MATERIALIZED ({asked}), aside AS MATERIALIZED (SELECT sequence FROM ({ASIDE}) AS set_aside)
    SELECT
        a.sequence, b.recorded_at, l.line,
        a.sequence IN (SELECT sequence FROM aside) AS is_aside{apart if personal else ""}
    FROM (
        SELECT DISTINCT ON (b.last_sequence) b.*
        FROM asked AS a
        CROSS JOIN LATERAL (
            SELECT first_sequence, last_sequence, recorded_at, personal, text
            FROM block
            WHERE tournament_id = $1 AND last_sequence >= a.sequence
            ORDER BY last_sequence
            LIMIT 1
        ) AS b
    ) AS b
    CROSS JOIN LATERAL string_to_table(b.text, chr(10)) WITH ORDINALITY AS l (line, n)
    JOIN asked AS a ON a.sequence = b.first_sequence + l.n - 1
    ORDER BY a.sequence
    """  # noqa: S608 # written down here and where it is called


class BlockLines(Struct, frozen=True, gc=False):
    """Consecutive events of a block: the first one's sequence, their number, time, lines, and personal fields as
    `PERSONALS` has them."""

    first_sequence: Sequence
    count: int
    recorded_at: datetime
    text: str
    personals: str | None = None

    def joined(self) -> str:
        """The lines, with the texts of the events instead of their bodies."""
        if self.personals is None:
            return self.text
        personals = _personals(self.personals)
        lines = enumerate(self.text.split("\n"), self.first_sequence)
        return "\n".join([codec.join_line(line, personals.get(str(sequence))) for sequence, line in lines])

    def between(self, after: Sequence, upto: Sequence) -> Self:
        """Those of the events that follow `after`, up to `upto`."""
        begin, end = max(0, after + 1 - self.first_sequence), min(self.count, upto + 1 - self.first_sequence)
        if begin == 0 and end == self.count:
            return self
        lines = "\n".join(self.joined().split("\n")[begin:end])
        return type(self)(Sequence(self.first_sequence + begin), end - begin, self.recorded_at, lines)

    def parts(self) -> Iterator[Self]:
        """The same events in parts of SLICE_CHARACTERS_MAX, or of one event."""
        lines = self.joined().split("\n")
        begin = size = 0
        for end, line in enumerate(lines, start=1):
            size += len(line)
            if size >= SLICE_CHARACTERS_MAX or end == len(lines):
                first = Sequence(self.first_sequence + begin)
                yield type(self)(first, end - begin, self.recorded_at, "\n".join(lines[begin:end]))
                begin, size = end, 0


def within(
    tournament_id: TournamentId,
    rows: Iterable[Record],
    after: Sequence,
    upto: Sequence,
    events_max: int,
    bytes_max: int,
) -> list[BlockLines]:
    """The events of these rows of `EVENTS_BETWEEN` that follow `after`, up to `upto`: at most `events_max`, and
    `bytes_max` characters of lines with their line feeds unless the first event has more. Raises LogForked."""
    upto = min(upto, Sequence(after + events_max))
    found: list[BlockLines] = []
    size = 0
    for row in rows:
        lines = lines_of(tournament_id, row).between(after, upto)
        ends = list(accumulate([len(line) + 1 for line in lines.joined().split("\n")], initial=size))
        fitting = max(bisect_right(ends, bytes_max) - 1, 0 if found else 1)
        if fitting < lines.count:
            if fitting:
                found.append(lines.between(after, Sequence(lines.first_sequence + fitting - 1)))
            break
        found.append(lines)
        size = ends[-1]
    return found


def lines_of(tournament_id: TournamentId, row: Record) -> BlockLines:
    """Those of the row of a block. Raises LogForked if they are not as many as its events."""
    first_sequence, text = row["first_sequence"], row["text"]
    count = row["last_sequence"] + 1 - first_sequence
    if text.count("\n") + 1 != count:
        raise LogForked(tournament_id, Sequence(first_sequence - 1))
    return BlockLines(first_sequence, count, row["recorded_at"], text, row["personals"])


_personals: Final = msgspec.json.Decoder(dict[str, str]).decode
SLICE_CHARACTERS_MAX: Final = 32 * 1024
"""Lines up to this length are decoded at once: it takes less than a millisecond."""


async def events_of(
    tournament_id: TournamentId, blocks: Iterable[BlockLines], aside: Collection[Sequence] = ()
) -> list[Recorded]:
    """The events of these blocks, decoded in time slices. Those in `aside` are ignored. Raises LogUnreadable."""
    events: list[Recorded] = []
    time_slice = TimeSlice()
    for several in _slices(blocks):
        events += decoded(tournament_id, several, aside)
        if time_slice.over:
            await time_slice.give_way()
    return events


def _slices(blocks: Iterable[BlockLines]) -> Iterator[list[BlockLines]]:
    """The blocks, or parts of them, in groups of some SLICE_CHARACTERS_MAX."""
    group: list[BlockLines] = []
    size = 0
    for block in blocks:
        for part in block.parts() if block.count > 1 and len(block.text) > SLICE_CHARACTERS_MAX else (block,):
            group.append(part)
            size += len(part.text)
            if size >= SLICE_CHARACTERS_MAX:
                yield group
                group, size = [], 0
    if group:
        yield group


def decoded(tournament_id: TournamentId, blocks: Items[BlockLines], aside: Collection[Sequence] = ()) -> list[Recorded]:
    """The events of these blocks, in one step. Raises as `events_of`."""
    sequences = chain.from_iterable([range(one.first_sequence, one.first_sequence + one.count) for one in blocks])
    times = chain.from_iterable([repeat(one.recorded_at, one.count) for one in blocks])
    lines = "\n".join([one.text if one.personals is None else one.joined() for one in blocks])
    try:
        entries = None if aside else codec.entries_of(lines)
    except codec.Undecodable:
        entries = None  # an event at a time, it is seen which
    if entries is None:
        each = zip(sequences, times, lines.split("\n"), strict=True)
        return [event_of(tournament_id, (number, moment, line, number in aside)) for number, moment, line in each]
    return [
        Recorded(Sequence(number), moment, entry.actor, entry.key, entry.event)
        for number, moment, entry in zip(sequences, times, entries, strict=True)
    ]


def event_of(tournament_id: TournamentId, row: Items[Any]) -> Recorded:
    """The event of a row: sequence, time, line, whether it was set aside, and perhaps personal fields. Raises
    LogUnreadable."""
    sequence, recorded_at, line, is_aside, *personal = row
    if is_aside:
        parts = codec.any_parts_of(line)
        return Recorded(sequence, recorded_at, parts.actor, parts.key, _IGNORED)
    try:
        entry = codec.entry_of(codec.join_line(line, *personal))
    except codec.Undecodable as error:
        raise LogUnreadable(tournament_id, sequence, str(error)) from error
    return Recorded(sequence, recorded_at, entry.actor, entry.key, entry.event)


_IGNORED: Final = Ignored()
