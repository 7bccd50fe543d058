"""The totals that messages of points show: those right after the event, whenever the message is sent.

The tables show later totals, so the deltas between are subtracted. A webhook that is far behind starts from a board of
the past instead. Either way, the totals are found once for a window of the log, and then change with its events. So a
message costs about as much for a webhook that is far behind as for any other.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from collections.abc import Sequence as Items
from contextlib import AbstractAsyncContextManager
from typing import Final

from asyncpg import Connection
from msgspec import UNSET

from api.webhooks.message import MESSAGE_LINES_MAX, ChangedLine, lines_of, points_of
from engine.domain.events import MAKING_UNITIES, Delta, Total, changed_by
from engine.domain.marks import mark_after, mark_of, result_of
from engine.domain.terms import CompetitorId, Counts, Sequence, Sort, TournamentId, UnityId
from engine.log import codec, reading, undecoded
from engine.log.heads import Head
from engine.log.undecoded import Stored
from projections.answers.totals import PastTotals
from projections.tables import tables

WINDOW_EVENTS_MAX: Final = 10_000
WINDOW_DELTAS_MAX: Final = 20_000
"""Events and deltas of a window. A single event may have more."""

_Key = tuple[UnityId, CompetitorId]
OfResults = tuple[Counts, Sort]
"""How a unity counts results."""


class TotalsWindow:
    """The totals after the event `at` of all competitors that messages name up to the event `end`."""

    def __init__(
        self, at: Sequence, end: Sequence, totals: dict[_Key, int], of_results: Mapping[UnityId, OfResults]
    ) -> None:
        self.at = at
        self.end = end
        self._totals = totals
        self._of_results = of_results

    def lines_after(self, stored: Stored) -> list[ChangedLine]:
        """Advances by this event, which is the next one. Returns the lines of its message."""
        changed, lines = lines_of(stored), []
        for line in changed:
            key = line.unity_id, line.competitor_id
            if key in self._totals:
                lines.append(self._changed(key, line))
        self.at = stored.sequence
        return lines if len(changed) <= MESSAGE_LINES_MAX else []

    def _changed(self, key: _Key, line: Delta | Total) -> ChangedLine:
        unity_id, competitor_id = key
        if unity_id not in self._of_results:
            assert isinstance(line, Delta)
            self._totals[key] += line.amount
            return ChangedLine(competitor_id, unity_id, line.amount, self._totals[key])
        counts, sort = self._of_results[unity_id]
        before, given = self._totals[key], None if isinstance(line, Total) else line.amount
        mark = mark_of(line.total, sort) if isinstance(line, Total) else mark_after(before, line.amount, counts, sort)
        self._totals[key], total = mark, result_of(mark, sort)
        if counts is Counts.SUM:
            return ChangedLine(competitor_id, unity_id, (total or 0) - (result_of(before, sort) or 0), total)
        return ChangedLine(competitor_id, unity_id, None, total, UNSET if given is None else given)


class Windows:
    """Makes windows. `asking` gives the connection for one query."""

    def __init__(self, asking: Callable[[], AbstractAsyncContextManager[Connection]], past: PastTotals) -> None:
        self._asking = asking
        self._past = past

    async def window(
        self, tournament_id: TournamentId, after: Head, events: Items[Stored], upto: Sequence
    ) -> TotalsWindow:
        """The window that begins after the event `after`. `events` follow that; the log is read to the event `upto`,
        or as far as a window goes. Raises LogForked, and as `Past`."""
        named: set[_Key] = set()
        later: defaultdict[_Key, int] = defaultdict(int)
        of_results: dict[UnityId, OfResults] = {}
        end, deltas, has_results = after, 0, False
        while True:
            for stored in events:
                deltas += _count(stored, named, later)
                has_results = _note_results(stored, of_results) or has_results
                end = Head(stored.sequence, stored.digest)
            if end.sequence >= upto and not has_results:  # otherwise, earlier totals do not follow from later ones
                async with self._asking() as connection:
                    upto, totals = await tables.totals(connection, tournament_id, named)
                if upto == end.sequence:
                    before = {key: total - later[key] for key, total in totals.items()}
                    return TotalsWindow(after.sequence, upto, before, {})
            is_full = has_results or end.sequence - after.sequence >= WINDOW_EVENTS_MAX or deltas >= WINDOW_DELTAS_MAX
            if is_full or end.sequence > upto:  # beyond: the tables are being made again
                then = await self._past.after(tournament_id, after.sequence, named)
                return TotalsWindow(after.sequence, end.sequence, dict(then.totals), {**of_results, **then.of_results})
            async with self._asking() as connection:
                most = min(reading.CHUNK_EVENTS_MAX, WINDOW_EVENTS_MAX)
                events = await undecoded.stored(
                    connection, tournament_id, undecoded.EventSpan(end, upto), events_max=most
                )


def _count(stored: Stored, named: set[_Key], later: defaultdict[_Key, int]) -> int:
    """Adds the deltas of this event to `later`, and the competitors that its message names to `named`. Returns the
    number of its lines."""
    points = points_of(stored)
    if points is None:
        return 0
    for delta in points.deltas:
        later[delta.unity_id, delta.competitor_id] += delta.amount
    lines = changed_by(points)
    if len(lines) <= MESSAGE_LINES_MAX:
        named.update([(line.unity_id, line.competitor_id) for line in lines])
    return len(lines)


def _note_results(stored: Stored, of_results: dict[UnityId, OfResults]) -> bool:
    """Whether the event gives or reverses results. If it makes a unity that counts them, adds that to `of_results`."""
    if stored.kind in MAKING_UNITIES:
        made = codec.decode(stored.kind, stored.body).made_unity
        if made is not None and made.options.counts_results:
            of_results[made.unity_id] = made.options.counts, made.sort
        return False
    points = points_of(stored)
    return points is not None and len(changed_by(points)) > len(points.deltas)
