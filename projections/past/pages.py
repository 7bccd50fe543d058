"""The history of a ranking, page by page or as a whole."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator
from collections.abc import Sequence as Items
from contextlib import aclosing
from typing import Final

from msgspec import Struct

from engine.domain.errors import LogUnreadable
from engine.domain.events import Recorded
from engine.domain.terms import RankingId, Sequence, TournamentId
from projections.past.history import EVERYTHING, AnyLine, Filter, Historian
from projections.past.moments import Span
from projections.past.past import Past

SCANNED_EVENTS_MAX: Final = 20_000
"""Events that one page may scan. If a filter matches few of them, the page is short or empty, and the next one
continues."""


class Cursor(Struct, frozen=True):
    """Where a page of history ends: after the first `lines` lines of the event `sequence`."""

    sequence: Sequence
    lines: int = 0

    @property
    def text(self) -> str:
        """As answers give it and queries take it."""
        return f"{self.sequence}.{self.lines}"


class HistoryPage(Struct, frozen=True):
    """A page of history. `next` None: it is the last page."""

    lines: list[AnyLine]
    next: Cursor | None


async def page(
    past: Past,
    tournament_id: TournamentId,
    ranking_id: RankingId,
    span: Span,
    *,
    asked: Filter = EVERYTHING,
    after: Cursor | None = None,
    limit: int,
) -> HistoryPage:
    """The lines of `span` from the cursor `after` on that `asked` selects: at most `limit`, from at most
    SCANNED_EVENTS_MAX events."""
    begin = Cursor(span.first) if after is None or after.sequence < span.first else after
    last = min(span.last, Sequence(begin.sequence + SCANNED_EVENTS_MAX - 1))
    lines: list[AnyLine] = []
    given = begin.lines
    found = _lines_by_event(past, tournament_id, ranking_id, Span(begin.sequence, last), past.chunks)
    async with past.admitted(), aclosing(found):
        async for lines_by_event in found:
            for sequence, event_lines in lines_by_event:
                for n, line in enumerate(event_lines[given:], start=given + 1):
                    if asked.takes(line):
                        lines.append(line)
                        if len(lines) == limit:
                            end = Cursor(sequence, n) if n < len(event_lines) else Cursor(Sequence(sequence + 1))
                            return HistoryPage(lines, end if end.sequence <= span.last else None)
                given = 0
    return HistoryPage(lines, Cursor(Sequence(last + 1)) if last < span.last else None)


async def lines(
    past: Past, tournament_id: TournamentId, ranking_id: RankingId, span: Span, asked: Filter = EVERYTHING
) -> AsyncIterator[tuple[Sequence, list[AnyLine]]]:
    """Yields all lines of `span` that `asked` selects, chunk by chunk, each chunk with the sequence reached."""
    found = _lines_by_event(past, tournament_id, ranking_id, span, past.chunks_read_ahead)
    async with past.admitted(), aclosing(found):
        async for lines_by_event in found:
            yield (
                lines_by_event[-1][0],
                [line for _, event_lines in lines_by_event for line in event_lines if asked.takes(line)],
            )


async def _lines_by_event(
    past: Past,
    tournament_id: TournamentId,
    ranking_id: RankingId,
    span: Span,
    chunks: Callable[[TournamentId, Sequence, Sequence], AsyncIterator[list[Recorded]]],
) -> AsyncGenerator[list[tuple[Sequence, Items[AnyLine]]], None]:
    """The lines of each event of `span`, chunk by chunk."""
    if span.last < span.first:
        return
    board = await past.board_at(tournament_id, Sequence(span.first - 1))
    historian = Historian(board, ranking_id)
    async for events in chunks(tournament_id, Sequence(span.first - 1), span.last):
        lines: list[tuple[Sequence, Items[AnyLine]]] = []
        await past.time_slices.work(_add_lines(tournament_id, historian, events, lines))
        yield lines


def _add_lines(
    tournament_id: TournamentId,
    historian: Historian,
    events: Iterable[Recorded],
    lines: list[tuple[Sequence, Items[AnyLine]]],
) -> Iterator[None]:
    """Adds the lines of each event to `lines`, step by step. Raises LogUnreadable."""
    for recorded in events:
        try:
            lines.append((recorded.sequence, (yield from historian.lines(recorded))))
        except LookupError as error:
            raise LogUnreadable.unfoldable(tournament_id, recorded.sequence, error) from error
        yield
