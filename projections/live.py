"""One tournament in memory: what commands are judged against and what answers are made from, at one head.

A live is a cache of the log: it holds nothing that a replay would not give. It is folded strictly in the order of
sequences, by whoever has the next events, and remembers the digest it stands at, so that a log which does not
continue from there (restored, failed over) is noticed instead of being mixed into what was read before.
"""

import asyncio
from collections.abc import Callable, Hashable, Iterable, Sized
from typing import Any, Final, TypeVar, cast

from asyncpg import Connection
from msgspec import Struct

from engine import log
from engine.errors import LogForked, LogUnreadable
from engine.events import Recorded
from engine.log import Appended, Block, Head
from engine.terms import Sequence, TournamentId
from engine.tournament import Ranking as JudgedRanking
from engine.tournament import Tournament, evolve
from projections import tables
from projections.board import FOLD_VERSION, Board, Revisions, fold

RENDERED_BYTES_MAX: Final = 32 * 1024 * 1024
"""Of the pieces of answers that are kept for one tournament."""

BEHIND_EVENTS_MAX: Final = 20_000
"""Of the log beyond a live, that are folded into it; where more are missing, it is made anew from the tables if they
have them. To fold so many takes some tenths of a second."""

# Estimates of what things take in memory, measured on CPython 3.11 with ordinary names; in bytes.
_BYTES: Final = 4_000
_COMPETITOR_BYTES: Final = 700
_COMPETITION_BYTES: Final = 900
_RANKING_BYTES: Final = 1_500
_ENROLMENT_BYTES: Final = 100
_TOTAL_BYTES: Final = 140
_SIZED_EVERY_EVENTS: Final = 256

_T = TypeVar("_T", bound=Sized)


class Live:
    """`slug`: the registry's when the live was loaded; None: it had no such tournament. `pins`: for how many reasons it
    must stay in memory. `dropped`: it is no longer the truth; load another. `followers` are told of every event that
    it folds."""

    def __init__(
        self,
        tournament_id: TournamentId,
        head: Head,
        tournament: Tournament,
        board: Board,
        *,
        slug: str | None = None,
    ) -> None:
        self.tournament_id = tournament_id
        self.slug = slug
        self.head = head
        self.tournament = tournament
        self.board = board
        self.revisions = Revisions()
        self.pins = 0
        self.dropped = False
        self.catching_up = asyncio.Lock()
        self.followers: list[Callable[[Recorded], None]] = []
        self._sized_at = head.sequence
        self._board_bytes = 0
        self._rendered: dict[Hashable, _Rendered] = {}
        self._rendered_bytes = 0

    def fold(self, events: Iterable[Recorded], head: Head) -> None:
        """Folds those of `events` that lie beyond the live, which then stands at `head`.

        They must follow it without a gap. Raises LogUnreadable; the live must be dropped then.
        """
        sequence = self.head.sequence
        for recorded in events:
            if recorded.sequence <= sequence:
                continue
            sequence = recorded.sequence
            try:
                evolve(self.tournament, recorded.event)
                fold(self.board, self.revisions, recorded)
            except LookupError as error:
                raise LogUnreadable.dangling(self.tournament_id, sequence, error) from error
            for follow in self.followers:
                follow(recorded)
        if head.sequence > self.head.sequence:
            self.head = head

    def fold_appended(self, block: Block, appended: Appended) -> bool:
        """Folds a block of ours that was just appended. False where it does not tell enough: others' events lie
        between or behind, or it held nothing but repeats. Then catch up instead.

        Raises LogForked where the block follows another digest than the live stands at.
        """
        if appended.first_sequence is None or appended.last_sequence is None or appended.digest is None:
            return False
        if appended.last_sequence <= self.head.sequence:
            # Somebody who caught up has read it already, unless this is another log, which was shorter.
            return Head(appended.last_sequence, appended.digest) == self.head
        if appended.first_sequence != self.head.sequence + 1 or appended.previous_digest is None:
            return False
        if appended.previous_digest != self.head.digest:
            raise LogForked(self.tournament_id, self.head.sequence)
        self.fold(log.recorded_events(block, appended), Head(appended.last_sequence, appended.digest))
        return True

    async def catch_up(self, connection: Connection, to: Sequence) -> None:
        """Folds from the log until the live stands at `to` or beyond.

        Appends may be folded meanwhile; what has been folded is not folded again. Two had better not do this at the
        same time, that is what `catching_up` is for. Raises LogForked and LogUnreadable; the live must be dropped then.
        """
        while self.head.sequence < to:
            tail = await log.tail(connection, self.tournament_id, self.head)
            if not tail.events and self.head.sequence < to:
                raise LogForked(self.tournament_id, self.head.sequence)
            self.fold(tail.events, tail.head)

    async def catch_up_by_tables(self, connection: Connection, to: Sequence) -> None:
        """Goes on from the tables, where they are so far ahead that to fold up to there would take longer.

        Does nothing while somebody follows, who must be told of every event. Raises LogForked where the live's head is
        none of the log's; the live must be dropped then.
        """
        if to - self.head.sequence <= BEHIND_EVENTS_MAX or self.followers:
            return
        began_at = self.head
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            if not await log.has_head(connection, self.tournament_id, began_at):
                raise LogForked(self.tournament_id, began_at.sequence)
            anew = await _from_tables(connection, self.tournament_id)
        if anew.head.sequence <= self.head.sequence + BEHIND_EVENTS_MAX or self.followers:
            return
        # At most our own appends have been folded meanwhile, and each of them followed the one before.
        self.head, self.tournament, self.board = anew.head, anew.tournament, anew.board
        then = self.revisions
        self.revisions = Revisions(then.competitors + 1, then.competitions + 1, then.rankings + 1)

    def size_bytes(self) -> int:
        """What the live takes in memory, estimated; counted anew once in a while."""
        if self.head.sequence >= self._sized_at + _SIZED_EVERY_EVENTS or self._board_bytes == 0:
            self._sized_at = self.head.sequence
            self._board_bytes = _board_bytes(self.board)
        return self._board_bytes + self._rendered_bytes

    def rendered(
        self, key: Hashable, stamp: object, render: Callable[[], _T], size_bytes: Callable[[_T], int] = len
    ) -> _T:
        """What `render` makes of the board: made once for `key`, and again when `stamp` is another.

        Up to RENDERED_BYTES_MAX are kept, those first made going first.
        """
        kept = self._rendered.get(key)
        if kept is not None and kept.stamp == stamp:
            return cast(_T, kept.value)
        fresh = _Rendered(stamp, render())
        fresh.size_bytes = size_bytes(fresh.value)
        self._rendered_bytes += fresh.size_bytes - (kept.size_bytes if kept else 0)
        self._rendered[key] = fresh
        while self._rendered_bytes > RENDERED_BYTES_MAX:
            self._rendered_bytes -= self._rendered.pop(next(iter(self._rendered))).size_bytes
        return cast(_T, fresh.value)


class _Rendered(Struct):
    stamp: object
    value: Any
    size_bytes: int = 0


def _board_bytes(board: Board) -> int:
    size = _BYTES + len(board.competitors) * _COMPETITOR_BYTES + len(board.competitions) * _COMPETITION_BYTES
    for ranking in board.rankings.values():
        size += _RANKING_BYTES + len(ranking.participants) * _ENROLMENT_BYTES
        size += sum(len(unity.totals) for unity in ranking.unities.values()) * _TOTAL_BYTES
    return size


async def load(connection: Connection, tournament_id: TournamentId) -> Live:
    """The tournament as it is in the log: from its tables at their checkpoint plus what the log has beyond, or,
    where the tables are of another version of the fold, from the log alone; all seen in one snapshot.

    Raises LogForked where the tables stand at a block the log does not have, and LogUnreadable.
    """
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        live = await _from_tables(connection, tournament_id)
        while True:
            tail = await log.tail(connection, tournament_id, live.head)
            if not tail.events:
                return live
            live.fold(tail.events, tail.head)


async def _from_tables(connection: Connection, tournament_id: TournamentId) -> Live:
    slug = await log.slug_of(connection, tournament_id)
    checkpoint = await tables.checkpoint(connection, tournament_id)
    if checkpoint is None or checkpoint.fold_version != FOLD_VERSION:
        return Live(tournament_id, log.beginning(tournament_id), Tournament(), Board(), slug=slug)
    board = await tables.load_board(connection, tournament_id)
    return Live(tournament_id, checkpoint.head, judged(board), board, slug=slug)


def judged(board: Board) -> Tournament:
    """The tournament state that belongs to `board`: both are folds of the same events."""
    return Tournament(
        competitors={competitor_id: c.parent_id for competitor_id, c in board.competitors.items()},
        competitions={competition_id: c.participants for competition_id, c in board.competitions.items()},
        voided={competition_id for competition_id, c in board.competitions.items() if c.voided_at is not None},
        rankings={
            ranking_id: JudgedRanking(
                participants=frozenset(ranking.participants),
                unities={unity_id: unity.name for unity_id, unity in ranking.unities.items()},
                closed=ranking.closed_at is not None,
            )
            for ranking_id, ranking in board.rankings.items()
        },
    )
