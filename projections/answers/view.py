"""What a question is asked of: a tournament at one moment, and its log up to there.

A question is a frozen struct that knows how to answer itself from a view. It and its answer are values: they know
nothing of HTTP, pages or JSON. The doors make the question from what they are sent, and render the answer.
"""

from collections.abc import Mapping
from datetime import datetime, tzinfo
from itertools import islice
from typing import Any, Generic, Self, TypeVar, cast, get_args, get_origin

import msgspec
from msgspec import Struct

from engine.database.pool import Database
from engine.domain.errors import NotFound, Overtaken
from engine.domain.rescoring import is_scored
from engine.domain.terms import CompetitionId, CompetitorId, RankingId, Sequence, UnityId
from engine.log.heads import Head
from engine.process.time_slices import TimeSlices, all_of
from projections.answers.lookup import competition_of, competitor_of, ranking_of, unity_of
from projections.answers.names import NamesById
from projections.answers.rankings import ListedRanking, ListedUnity, listed_ranking, listed_unity
from projections.answers.zones import with_days, zone_of
from projections.board.board import Board, Competition, Competitor
from projections.board.competition_sums import CompetitionSums, WhatCounts
from projections.board.publication import Publication
from projections.live.sums import read_sums
from projections.live.tournament import LiveTournament
from projections.past import folds, moments
from projections.past.moments import AtVersion, Moment, PastBoard
from projections.past.past import Past, faults

_Answer = TypeVar("_Answer", bound=Struct)


class View(Struct):
    """`live` is current: it knows the head and everything that exists now. `time_slices` are for long work.
    `log_is_read`: `past` was asked for, so the log must still contain what was read when the answer is complete.
    `log_head`: the head of the log that is read, if it is not the live's, which may stand at an earlier event than any
    block ends with. `hidden`: rankings that are not to be seen, whatever the live says. `is_frozen`: the live stands at
    a public end that a freeze holds."""

    live: LiveTournament
    _past: Past
    time_slices: TimeSlices
    log_is_read: bool = False
    log_head: Head | None = None
    hidden: frozenset[RankingId] = frozenset()
    is_frozen: bool = False

    @property
    def past(self) -> Past:
        self.log_is_read = True
        return self._past

    @property
    def zone(self) -> tzinfo:
        """The tournament's."""
        return zone_of(self.publication.presentation.zone)

    @property
    def names(self) -> NamesById:
        """As they are now."""
        return NamesById(self.live.board)

    @property
    def is_scored(self) -> bool:
        """Whether results give points in any ranking."""
        return is_scored(self.live.board)

    @property
    def publication(self) -> Publication:
        """What the public sees, and how the tournament presents itself."""
        return self.live.board.publication

    async def name(self) -> str:
        """The tournament's. Raises as `Past`."""
        return await moments.name(self.past, self.live.tournament_id, self.live.head.sequence)

    def undone(self, ranking_id: RankingId) -> Mapping[Sequence, Sequence]:
        """The events of a ranking whose points are undone, each with the event that undid them. Raises NotFound."""
        return ranking_of(self.live.board, ranking_id).undone

    def competitor(self, competitor_id: CompetitorId) -> Competitor:
        """Raises NotFound."""
        return competitor_of(self.live.board, competitor_id)

    def competition(self, competition_id: CompetitionId) -> Competition:
        """Raises NotFound."""
        return competition_of(self.live.board, competition_id)

    def ranking(self, ranking_id: RankingId) -> ListedRanking:
        """Raises NotFound."""
        return listed_ranking(self.live.board, ranking_id)

    def unity(self, ranking_id: RankingId, unity_id: UnityId | None) -> ListedUnity:
        """The unity; None: the ranking's main one. Raises NotFound."""
        board, found = self.live.board, unity_of(self.live.board, ranking_id, unity_id)
        return listed_unity(found, board.rankings[ranking_id].unities[found])

    async def rankings(self, limit: int | None = None) -> list[ListedRanking]:
        """The first `limit` rankings, in their order; None: all. There may be 100 unities in each."""
        ranking_ids = list(islice(self.live.board.rankings, limit))
        return await all_of(map(self.ranking, ranking_ids))

    async def names_after(self, sequence: Sequence) -> NamesById:
        """As they were after this event. Raises as `moments.board_after`."""
        return NamesById(await self.board_after(sequence))

    async def board_after(self, sequence: Sequence | None) -> Board:
        """The board after this event; None: now. At the head, it is the live one. Raises as `moments.board_after`."""
        live, head = self.live, self.live.head.sequence
        if sequence is None or sequence == head:
            return live.board
        return await moments.board_after(self.past, live.tournament_id, sequence, head)

    async def at(self, ranking_id: RankingId, moment: Moment | None, on: datetime | None = None) -> PastBoard:
        """The board at `moment`; None: now. Raises as `moments.at`."""
        live = self.live
        if isinstance(moment, AtVersion):
            unity_of(live.board, ranking_id, moment.unity_id)
        return await moments.at(self.past, live.tournament_id, ranking_id, moment, live.head.sequence, on)

    async def at_rest(self) -> Self:
        """The same, with a live that stays at the present head, for reads that were Overtaken. Raises as `Past`."""
        head = self.live.head
        still = await live_at(self.past, self.live, head.sequence)
        return msgspec.structs.replace(self, live=still, log_head=self.log_head or head)

    async def logo(self) -> bytes:
        """The PNG of the tournament. Raises NotFound, and as `Past`."""
        sequence = self.live.board.publication.presentation.logo
        if sequence is None:
            raise NotFound("This tournament has no logo.")
        return await moments.logo(self.past, self.live.tournament_id, sequence)

    async def recorded_at(self, head: Head) -> datetime:
        """When the event at this head was recorded: from the live, if this is its head and it knows; otherwise from the
        log."""
        live = self.live
        if live.head == head and live.recorded_at is not None:
            return live.recorded_at
        recorded_at = await moments.recorded_at(self.past, live.tournament_id, head.sequence)
        if live.head == head:
            live.recorded_at = recorded_at
        return recorded_at

    async def read_sums(self, sequence: Sequence, counts: WhatCounts) -> CompetitionSums:
        """Reads what the competitors of a ranking got in each competition up to an event, of the lines that count then.
        Raises as `Past`."""
        tournament_id, head = self.live.tournament_id, self.log_head or self.live.head
        sums = await folds.competition_sums(self._past, tournament_id, sequence, counts)
        await moments.refuse_replaced(self._past, tournament_id, head)  # or its chunks may be of two histories
        return sums

    async def know_sums(self, ranking_id: RankingId) -> None:
        """As `read_sums` of `projections/live/sums.py`."""
        await read_sums(self.live, ranking_id, self.read_sums)

    async def sums(self, ranking_id: RankingId) -> CompetitionSums:
        """Those of now, current until the next pause. Raises Overtaken, and as `know_sums`."""
        await self.know_sums(ranking_id)
        if (found := self.live.sums.get(ranking_id)) is None:
            raise Overtaken
        return found

    async def sums_then(self, ranking_id: RankingId, then: PastBoard) -> CompetitionSums:
        """What the competitors of a ranking had got in each competition. Raises as `Past`."""
        tournament_id, head = self.live.tournament_id, self.log_head or self.live.head
        at = then.board, then.sequence, then.clock
        sums = await folds.sums_then(self._past, tournament_id, ranking_id, *at)
        await moments.refuse_replaced(self._past, tournament_id, head)  # or its chunks may be of two histories
        return sums

    def rankings_in(self, board: Board) -> list[RankingId]:
        """The rankings that can be seen, in their order."""
        return [ranking_id for ranking_id in board.rankings if ranking_id not in self.hidden]

    def ranking_in(self, board: Board, ranking_id: RankingId | None) -> RankingId:
        """The ranking; None: the first one. Raises NotFound, also for a hidden one."""
        if ranking_id is not None:
            ranking_of(board, ranking_id)
            self.refuse_hidden(ranking_id)
            return ranking_id
        for first in self.rankings_in(board):
            return first
        raise NotFound("This tournament has no ranking yet.")

    def refuse_hidden(self, ranking_id: RankingId) -> None:
        """Raises the NotFound of a ranking that does not exist."""
        if ranking_id in self.hidden:
            raise NotFound.of("ranking", ranking_id)


def view_of(database: Database, live: LiveTournament) -> View:
    """The view of a tournament that is current, for a process that answers one question at a time."""
    return View(live, Past(database), TimeSlices())


async def live_at(past: Past, live: LiveTournament, end: Sequence) -> LiveTournament:
    """The tournament of `live` after the event `end`, as a separate live into which nothing is folded. Raises as
    `Past`."""
    tournament_id, head, erased = live.tournament_id, live.head, live.revisions.erased
    expired_until = live.expired_until if live.expires and end == head.sequence else None
    board = await moments.board_after(past, tournament_id, end, head.sequence)
    told_apart = b"%d" % erased if erased else b""  # otherwise, an answer could pass for one with a name
    still = LiveTournament(tournament_id, Head(end, told_apart), board, slug=live.slug)
    still.recorded_at = await moments.recorded_at(past, tournament_id, end)
    with faults():
        async with past.database.connection_for(tournament_id) as connection:
            await still.know_time(connection)
    if expired_until is not None:
        still.nothing_due(expired_until)
    return still


class Question(Struct, Generic[_Answer], frozen=True, kw_only=True):
    """Ask it with `ask`. Each question says what it raises, in addition to the errors of its view."""

    async def answered(self, view: View) -> _Answer:
        raise NotImplementedError


def kind_of(question: Any) -> type[Struct]:
    """The type of the answers to questions of this type."""
    (kind,) = [get_args(base)[0] for base in question.__orig_bases__ if get_origin(base) is Question]
    return cast(type[Struct], kind)


async def ask(view: View, question: Question[_Answer]) -> _Answer:
    """The answer. Days that the question names without a zone are those of the tournament. If changes of the tournament
    overtake it again and again, it is answered at rest."""
    question = with_days(view.live.board, question)
    try:
        return await question.answered(view)
    except Overtaken:
        return await question.answered(await view.at_rest())
