"""A ranking as it is, compared with what it would be without some competitions or competitors."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime

import msgspec

from engine.domain.events import Recorded
from engine.domain.lines import rule_of
from engine.domain.terms import CompetitionId, CompetitorId, RankingId, Sequence, UnityId
from engine.process.time_slices import in_time_slices
from projections.answers.foreseen import ComparedRanking, compared
from projections.answers.lookup import ranking_of
from projections.answers.view import Question, View
from projections.board.board import Board, folding, what_counts
from projections.board.classification import Counted, needs_sums
from projections.board.competition_sums import CompetitionSums, WhatCounts
from projections.board.results import Last
from projections.past.comparison import ClassifiedMove, Comparison, classified_move_steps, copied, without
from projections.past.world_clock import add_special, drop_totals


class WhatIfQuestion(Question[ComparedRanking], frozen=True, kw_only=True):
    """The ranking now, and without the points of these competitions and competitors: a replay of the log without them.
    `unity_id`: only this unity, and no classification; None: everything. `advance` is called with each event that the
    replay reaches. Raises NotFound and TooMuchWork."""

    ranking_id: RankingId
    unity_id: UnityId | None = None
    competitions: frozenset[CompetitionId] = frozenset()
    competitors: frozenset[CompetitorId] = frozenset()
    advance: Callable[[Sequence], object] = lambda _reached: None

    async def answered(self, view: View) -> ComparedRanking:
        live, ranking_id = view.live, self.ranking_id
        ranking = ranking_of(live.board, ranking_id)
        for competition_id in self.competitions:
            view.competition(competition_id)
        for competitor_id in self.competitors:
            view.competitor(competitor_id)
        before, head = copied(ranking), live.head.sequence
        counts = what_counts(live.board, ranking_id, live.expired_by)
        is_lacking = needs_sums(ranking) and live.sums.get(ranking_id) is None
        with live.classifications.counts(ranking_id) as counted:
            board, sums = await self._replayed(view, head, counts)
            after = board.rankings[ranking_id]
            classified_moves: list[ClassifiedMove] | None = None
            if before.criteria and self.unity_id is None:
                if is_lacking:
                    counted.give(await view.read_sums(head, counts))
                steps = classified_move_steps(before, after, counted, Counted(board, after, sums))
                classified_moves = await in_time_slices(steps)
        (found,) = compared(live.board, {ranking_id: Comparison(before, after, classified_moves)}, self.unity_id)
        return found

    async def _replayed(self, view: View, head: Sequence, counts: WhatCounts) -> tuple[Board, CompetitionSums]:
        """The board of the log up to `head` without these, and the ranking's sums of competitions. Raises as `Past`."""
        tournament_id, ranking_id, time_slices = view.live.tournament_id, self.ranking_id, view.past.time_slices
        board, sums = Board(), CompetitionSums(counts.first)
        now = view.live.expired_by or datetime.max.replace(tzinfo=UTC)
        async with view.past.admitted():
            async for events in view.past.chunks_read_ahead(tournament_id, Sequence(0), head):
                left = self._left(events)
                await time_slices.work(folding(tournament_id, board, left))
                await time_slices.each(lambda one: sums.take(one, counts), left)
                self.advance(events[-1].sequence)
            if board.rankings[ranking_id].special:  # their reversals and expiries have other lines
                ranking, rule, last = board.rankings[ranking_id], rule_of(board, ranking_id), Last()
                drop_totals(board, ranking_id, ranking.special)
                async for events in view.past.chunks_read_ahead(tournament_id, Sequence(0), head):
                    await time_slices.each(lambda one: add_special(ranking, rule, last, one, now), self._left(events))
        return board, sums

    def _left(self, events: Iterable[Recorded]) -> list[Recorded]:
        """The events without these competitions and competitors."""
        return [
            msgspec.structs.replace(recorded, event=event)
            for recorded in events
            if (event := without(recorded.event, self.competitions, self.competitors)) is not None
        ]
