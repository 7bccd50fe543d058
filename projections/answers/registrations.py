"""What correcting a registration leads to: a competitor that was registered twice or by mistake, or that withdraws."""

from collections.abc import Callable
from typing import Final

from msgspec import UNSET, Struct

from engine.domain.commands import (
    ChangeCompetition,
    ChangeCompetitor,
    ChangeParticipants,
    Command,
    EraseCompetitor,
    StrikeCompetitors,
    VoidCompetition,
)
from engine.domain.counting import closed_among
from engine.domain.errors import Conflict, Fault
from engine.domain.events import Points, Recorded
from engine.domain.faults import unacceptable
from engine.domain.lines import rule_of
from engine.domain.steps import Steps
from engine.domain.terms import SCORE_PARTICIPANTS_MAX, CompetitionId, CompetitorId, RankingId, Sequence, UnityId
from engine.process.time_slices import in_time_slices
from projections.answers.competitions import CompetitionListQuestion
from projections.answers.foreseen import ComparedRanking
from projections.answers.view import Question, View
from projections.answers.what_if import WhatIfQuestion
from projections.board.board import Board, Competition
from projections.board.selection import CompetitorFilter

_LISTED: Final = 20
"""Competitions that a refusal names."""


class PointsByHand(Struct, frozen=True, kw_only=True):
    """A line of points that somebody gave, and that counts. `amount`: in the smallest unit of the unity."""

    sequence: Sequence
    ranking_id: RankingId
    unity_id: UnityId
    amount: int
    competition_id: CompetitionId | None


class Replacing(Struct, frozen=True, kw_only=True):
    """`competitions`: those in which the other one takes part from then on. `rankings`: those that the former one
    leaves. `points`: those that somebody gave it; they stay with it. `commands`: in their order."""

    competitions: list[CompetitionId]
    rankings: list[RankingId]
    points: list[PointsByHand]
    commands: list[Command]


class ReplacingQuestion(Question[Replacing], frozen=True, kw_only=True):
    """`former`: the registration that goes; `present`: the one that stays. Raises NotFound, and Conflict if both took
    part in a competition, the former was struck from one, a ranking of it is closed, or one is above the other."""

    former: CompetitorId
    present: CompetitorId

    async def answered(self, view: View) -> Replacing:
        _refuse_erased(view, self.former)
        _refuse_erased(view, self.present)
        if self.former == self.present:
            raise unacceptable([Fault("by", "must be another competitor")])
        _refuse_closed(view.live.board, self.former)
        commands = await in_time_slices(self._commands(view.live.board))
        changed = [one.competition_id for one in commands if isinstance(one, ChangeCompetition)]
        left = [one.ranking_id for one in commands if isinstance(one, ChangeParticipants) and one.removed]
        points = await _points_by_hand(view, self.former)
        return Replacing(competitions=changed, rankings=left, points=points, commands=commands)

    def _commands(self, board: Board) -> Steps[list[Command]]:
        """It joins the rankings before, because scorings give points to those who are in them."""
        former, present = self.former, self.present
        is_now, other = board.competitors[former], board.competitors[present]
        enrolled = [one for one, ranking in board.rankings.items() if former in ranking.participants]
        new = [one for one in enrolled if present not in board.rankings[one].participants]
        competitions = yield from self._competitions(board)
        children = list[Command]()
        for competitor_id, competitor in board.competitors.walk():
            if competitor.parent_id == former:
                children.append(ChangeCompetitor(competitor_id=competitor_id, parent_id=present))
            yield
        keys = list[Command]()
        if is_now.key is not None and other.key is None:
            keys.append(ChangeCompetitor(competitor_id=former, key=None))
            keys.append(ChangeCompetitor(competitor_id=present, key=is_now.key))
        return [
            *[ChangeParticipants(ranking_id=one, added=(present,)) for one in new],
            *competitions,
            *[ChangeParticipants(ranking_id=one, removed=(former,)) for one in enrolled],
            *children,
            *keys,
            EraseCompetitor(competitor_id=former),
        ]

    def _competitions(self, board: Board) -> Steps[list[ChangeCompetition]]:
        former, present = self.former, self.present
        above = board.competitors[present].parent_id
        while above is not None:
            if above == former:
                raise Conflict(f"Competitor {present} is below competitor {former}; give it another parent first.")
            above = board.competitors[above].parent_id
        changes, both, struck = list[ChangeCompetition](), list[CompetitionId](), list[CompetitionId]()
        for competition_id, one in board.competitions.walk():
            if former in one.participants:
                if present in one.participants:
                    both.append(competition_id)
                elif former in one.struck:
                    struck.append(competition_id)
                changes.append(self._change(competition_id, one))
            yield
        if both:
            raise Conflict(f"Competitors {former} and {present} both took part in {_named(both)}; correct that first.")
        if struck:
            raise Conflict(f"Competitor {former} is struck from {_named(struck)}; unstrike it there first.")
        return changes

    def _change(self, competition_id: CompetitionId, one: Competition) -> ChangeCompetition:
        def now(who: CompetitorId) -> CompetitorId:
            return self.present if who == self.former else who

        result = {now(who): text for who, text in one.result.items()} if isinstance(one.result, dict) else UNSET
        return ChangeCompetition(
            competition_id=competition_id,
            participants=tuple(map(now, one.participants)),
            result=result,
            winner_id=self.present if one.winner_id == self.former else UNSET,
        )


class Withdrawing(Struct, frozen=True, kw_only=True):
    """`voided` competitions, and those from which it is `struck`, because they had more participants. `rankings`: those
    that it leaves; `compared`: these, before and after."""

    voided: list[CompetitionId]
    struck: list[CompetitionId]
    rankings: list[RankingId]
    compared: list[ComparedRanking]
    commands: list[Command]


class WithdrawingQuestion(Question[Withdrawing], frozen=True, kw_only=True):
    """`keeps_results`: only what it has not played is voided, and it stays in the rankings. Raises NotFound, and
    Conflict if a ranking of it is closed."""

    competitor_id: CompetitorId
    keeps_results: bool = False

    async def answered(self, view: View) -> Withdrawing:
        who, board = self.competitor_id, view.live.board
        _refuse_erased(view, who)
        _refuse_closed(board, who)
        voided, struck = await in_time_slices(self._taken_out(board))
        rankings = [] if self.keeps_results else _others_left(board, who)
        asked = [
            WhatIfQuestion(ranking_id=one, competitions=frozenset(voided), competitors=frozenset([who]))
            for one in rankings
        ]
        return Withdrawing(
            voided=voided,
            struck=struck,
            rankings=rankings,
            compared=[await question.answered(view) for question in asked],
            commands=[
                *[VoidCompetition(competition_id=one) for one in voided],
                *[StrikeCompetitors(competition_id=one, competitors=(who,)) for one in struck],
                *[ChangeParticipants(ranking_id=one, removed=(who,)) for one in rankings],
            ],
        )

    def _taken_out(self, board: Board) -> Steps[tuple[list[CompetitionId], list[CompetitionId]]]:
        who, voided, struck = self.competitor_id, list[CompetitionId](), list[CompetitionId]()
        for competition_id, one in board.competitions.walk():
            if who in one.participants and one.voided_at is None and who not in one.struck:
                is_played = one.result is not None or one.winner_id is not None
                if len(one.participants) > SCORE_PARTICIPANTS_MAX:
                    struck += [] if self.keeps_results else [competition_id]
                elif not (self.keeps_results and is_played):
                    voided.append(competition_id)
            yield
        return voided, struck


class Removing(Struct, frozen=True):
    """`commands`: in their order."""

    commands: list[Command]


class RemovingQuestion(Question[Removing], frozen=True, kw_only=True):
    """A competitor that was registered by mistake. `words`: puts those of the sport into a text. Raises NotFound, and
    Conflict if it is in a competition or above another competitor, has points, or is in a closed ranking or alone in
    one."""

    competitor_id: CompetitorId
    words: Callable[[str], str]

    async def answered(self, view: View) -> Removing:
        who, board = self.competitor_id, view.live.board
        _refuse_erased(view, who)
        name = view.names.competitor(who).name
        played = await CompetitionListQuestion(competitor_id=who, limit=1).answered(view)
        if played.total:
            matches = self.words("{match}" if played.total == 1 else "{matches}")
            raise Conflict(f"{name} is in {played.total:,} {matches}, so it cannot be removed; withdraw it instead.")
        if len(await view.live.selections.of(CompetitorFilter(parent_id=who), view.time_slices)):
            raise Conflict(f"{name} is the parent of other competitors; give them another one first.")
        _refuse_closed(board, who)
        if await _points_by_hand(view, who):
            raise Conflict(f"{name} has points, so it cannot be removed; undo them first.")
        enrolled = [one for one, its in board.rankings.items() if who in its.participants]
        if alone := [one for one in enrolled if one not in _others_left(board, who)]:
            raise Conflict(f"{name} is alone in {board.rankings[alone[0]].name}; add another one to it first.")
        return Removing(
            [
                *[ChangeParticipants(ranking_id=one, removed=(who,)) for one in enrolled],
                EraseCompetitor(competitor_id=who),
            ]
        )


def _others_left(board: Board, who: CompetitorId) -> list[RankingId]:
    """The rankings with this competitor and others."""
    return [one for one, its in board.rankings.items() if who in its.participants and len(its.participants) > 1]


def _refuse_erased(view: View, competitor_id: CompetitorId) -> None:
    if view.competitor(competitor_id).erased is not None:
        raise Conflict(f"Competitor {competitor_id} was erased.")


def _refuse_closed(board: Board, who: CompetitorId) -> None:
    closed = closed_among(board, [one for one, its in board.rankings.items() if who in its.participants])
    if closed:
        raise Conflict(f"These rankings are closed; reopen them first: {closed}.")


def _named(those: list[CompetitionId]) -> str:
    more = f" and {len(those) - _LISTED:,} more" if len(those) > _LISTED else ""
    return f"competition {', '.join(map(str, those[:_LISTED]))}{more}"


async def _points_by_hand(view: View, competitor_id: CompetitorId) -> list[PointsByHand]:
    live, past, found = view.live, view.past, list[PointsByHand]()
    rules, now = {one: rule_of(live.board, one) for one in live.board.rankings}, live.expired_by

    def take(recorded: Recorded) -> None:
        event = recorded.event
        if not isinstance(event, Points) or not event.gives or event.scores:
            return
        for line in rules[event.ranking_id].of(recorded, now):
            if line.delta.competitor_id == competitor_id:
                by_hand = PointsByHand(
                    sequence=recorded.sequence,
                    ranking_id=event.ranking_id,
                    unity_id=line.delta.unity_id,
                    amount=line.delta.amount,
                    competition_id=event.competition_id,
                )
                found.append(by_hand)

    async with past.admitted():
        async for events in past.chunks_read_ahead(live.tournament_id, Sequence(0), live.head.sequence):
            await past.time_slices.each(take, events)
    return found
