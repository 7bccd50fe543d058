"""Two states of a ranking side by side, for the effect of a change and for standings without some past events.

Pure.
"""

from collections.abc import Collection, Generator, Iterable
from collections.abc import Sequence as Items
from datetime import datetime
from itertools import chain
from typing import Final

import msgspec
from msgspec import UNSET, Struct

from engine.domain import events
from engine.domain.events import Event, Recorded
from engine.domain.lines import NOT_RECORDED
from engine.domain.rescoring import competitions_of
from engine.domain.scoring import ScoredCompetition, choose
from engine.domain.steps import finished
from engine.domain.terms import FIRST_TIME, OPERATOR, CompetitionId, CompetitorId, RankingId, Sequence, UnityId
from projections.board.board import (
    Board,
    CompetitionEvent,
    Ranking,
    Revisions,
    copied_replaced,
    count_in,
    fold,
    reached_first,
)
from projections.board.classification import Counted, classified, has_tiebreaks, in_force, needs_sums
from projections.board.classified_lines import CLASSIFIED_SUMS_MAX
from projections.board.competition_sums import CompetitionSums, SumsByCompetition, WhatCounts
from projections.board.order import OrderedLines
from projections.board.standing import Standing
from projections.columns.enrolment import Enrolment

_STEP_LINES: Final = 500
_UNKNOWN: Final = Sequence(0)
"""The sequence of an event that was not appended."""


class Move(Struct, frozen=True):
    """One competitor's standing in the first and the second state; None: the competitor is not in that list."""

    competitor_id: CompetitorId
    before: Standing | None
    after: Standing | None


class ClassifiedMove(Struct, frozen=True, gc=False):
    """One competitor's position in the classification of the first and the second state; None: the competitor is not in
    that list."""

    competitor_id: CompetitorId
    before: int | None
    after: int | None


class Comparison(Struct, frozen=True):
    """A ranking in two states, and the moves in its classification. None: no classification is declared or wanted."""

    before: Ranking
    after: Ranking
    classified_moves: list[ClassifiedMove] | None

    @property
    def reorders(self) -> bool:
        """Whether a position in the classification changes."""
        return any(move.before != move.after for move in self.classified_moves or ())


def moves(before: Ranking, after: Ranking) -> dict[UnityId, list[Move]]:
    """The moves in each unity that both states have: the competitors of the second standing in its order, then those of
    the first that are not in the second."""
    return {u: finished(move_steps(before, after, u)) for u in after.unities if u in before.unities}


def move_steps(before: Ranking, after: Ranking, unity_id: UnityId) -> Generator[None, None, list[Move]]:
    """The moves in one unity, in time slices."""
    standing_before = yield from _standing_of_each(before, unity_id)
    standing_after = yield from _standing_of_each(after, unity_id)
    found = []
    for number, competitor_id in enumerate(dict.fromkeys(chain(standing_after, standing_before)), start=1):
        found.append(Move(competitor_id, standing_before.get(competitor_id), standing_after.get(competitor_id)))
        if number % _STEP_LINES == 0:
            yield
    return found


def _standing_of_each(ranking: Ranking, unity_id: UnityId) -> Generator[None, None, dict[CompetitorId, Standing]]:
    unity = ranking.unities[unity_id]
    order = yield from OrderedLines.in_steps(ranking.participants, unity.totals, unity.sort)
    found: dict[CompetitorId, Standing] = {}
    for lines in order.in_runs():
        found.update({line.competitor_id: line for line in lines})
        yield
    return found


def classified_move_steps(
    before: Ranking, after: Ranking, counted_before: Counted, counted_after: Counted
) -> Generator[None, None, list[ClassifiedMove]]:
    """The moves in the classification, in the order of `moves`, in time slices. Raises TooMuchWork if one of the states
    would take more than CLASSIFIED_SUMS_MAX sums."""
    positions_before = yield from _position_of_each(before, counted_before)
    positions_after = yield from _position_of_each(after, counted_after)
    found = []
    for number, competitor_id in enumerate(dict.fromkeys(chain(positions_after, positions_before)), start=1):
        found.append(
            ClassifiedMove(competitor_id, positions_before.get(competitor_id), positions_after.get(competitor_id))
        )
        if number % _STEP_LINES == 0:
            yield
    return found


def _position_of_each(ranking: Ranking, counted: Counted) -> Generator[None, None, dict[CompetitorId, int]]:
    listed = ranking.participants.held()
    group = yield from classified(counted, in_force(ranking), listed, sums_max=CLASSIFIED_SUMS_MAX)
    found: dict[CompetitorId, int] = {}
    for number, line in enumerate(group, start=1):
        found[line.competitor_id] = line.position
        if number % _STEP_LINES == 0:
            yield
    return found


def copied(ranking: Ranking, enrolment: Enrolment | None = None) -> Ranking:
    """A copy that does not change when `ranking` is folded further. `enrolment`: an existing copy of the ranking's
    enrolment to share."""
    enrolment = enrolment or ranking.participants.copy()
    unities = {
        unity_id: msgspec.structs.replace(unity, totals=unity.totals.copied_for(enrolment))
        for unity_id, unity in ranking.unities.items()
    }
    return msgspec.structs.replace(
        ranking,
        participants=enrolment,
        unities=unities,
        undone=ranking.undone.copy(),
        replaced=copied_replaced(ranking),
    )


ListChange: Final = events.ParticipantsChanged | events.RankingModified
"""The events that change the list of a ranking's competitors."""
_Foreseeable: Final = events.Points | ListChange


def foreseen_rankings(board: Board, decided: Items[Event]) -> dict[RankingId, bool]:
    """The rankings that `decided` may change. False: only in their classification, because games or participants
    do."""
    found = dict.fromkeys([event.ranking_id for event in decided if isinstance(event, _Foreseeable)], True)
    later = competitions_of(board.competitions, decided)
    for event in decided:
        if isinstance(event, CompetitionEvent):
            its = [those.get(event.competition_id) for those in (board.competitions, later)]
            known = [one for one in its if one is not None]
            for ranking_id, ranking in board.rankings.items():
                if _reorders(event, known, ranking):
                    found.setdefault(ranking_id, False)
        elif isinstance(event, events.ScoringDeclared) and has_tiebreaks(board.rankings[event.ranking_id]):
            found.setdefault(event.ranking_id, False)
    return found


def _reorders(event: CompetitionEvent, its: Items[ScoredCompetition], ranking: Ranking) -> bool:
    """Whether the event may change the classification, even if no points change. `its`: the competition before and
    after it."""
    if event.relists is not None and any(criterion.among is not None for criterion in ranking.criteria):
        return True
    if isinstance(event, events.CompetitionChanged) and not (event.scored or event.redates or event.round is not UNSET):
        return False
    return has_tiebreaks(ranking) and any(choose(ranking.scorings, one) is not None for one in its)


def foreseen(board: Board, decided: Items[Event]) -> dict[RankingId, Ranking]:
    """The `foreseen_rankings` in the state after `decided`. `board` does not change."""
    ahead = Board()
    for ranking_id in foreseen_rankings(board, decided):
        ahead.rankings[ranking_id] = copied(board.rankings[ranking_id])
    for event in decided:
        if isinstance(event, _Foreseeable):
            fold(ahead, Revisions(), Recorded(_UNKNOWN, FIRST_TIME, OPERATOR, None, event))
    return ahead.rankings


def what_will_count(after: Ranking, decided: Iterable[Event], counts: WhatCounts) -> WhatCounts:
    """What `what_counts` would return after `decided`; `counts`: before it. `after`: the ranking in that state."""
    rule = counts.rule
    for event in decided:
        match event:
            case events.CompetitorsStruck() | events.CompetitorsUnstruck():
                is_struck = isinstance(event, events.CompetitorsStruck)
                rule = rule.striking(event.competition_id, event.competitors, struck=is_struck)
            case events.CompetitionVoided() | events.CompetitionUnvoided():
                is_voided = isinstance(event, events.CompetitionVoided)
                rule = rule.voiding(event.competition_id, voided=is_voided)
            case events.PointsReversed() if event.undone is not None:
                rule = rule.undoing([event.reverses], undone=event.undone)
            case events.PointsReversed() if event.replaced:
                place = events.origin(_UNKNOWN, event)
                rule = rule.replacing({place: dict.fromkeys(event.replaced, NOT_RECORDED)})
            case events.CompetitionAdded():
                rule = rule.dating({event.competition_id: event.started_at})
            case events.CompetitionChanged() if event.started_at is not UNSET:
                rule = rule.dating({event.competition_id: event.started_at})
            case events.RankingReopened() if event.ranking_id == rule.ranking_id:
                rule = rule.reopening()
    return WhatCounts(rule, counts.now, reached_first(after.criteria))


class ForeseenCounts(Counted):
    """The source of a ranking's values after `decided`, at the time `now`. `before`: their source without it. `after`:
    the ranking that `foreseen` returns. If it `lacks_sums` of competitions, because `decided` does not only add to
    them, `give` those of the lines that will count."""

    def __init__(
        self,
        board: Board,
        before: Counted,
        ranking_id: RankingId,
        after: Ranking,
        decided: Items[Event],
        now: datetime,
    ) -> None:
        self._recorded = [
            Recorded(Sequence(NOT_RECORDED + number), FIRST_TIME, OPERATOR, None, event)
            for number, event in enumerate(decided)
        ]
        added = CompetitionSums(reached_first(after.criteria))
        is_followed = all(_is_counted(added, one, after, ranking_id) for one in self._recorded)
        added = added if is_followed else CompetitionSums(added.first)
        for event in decided:
            if isinstance(event, events.ScoringDeclared) and event.ranking_id == ranking_id:
                after = msgspec.structs.replace(after, scorings=event.scorings)
            elif isinstance(event, events.RankingReopened) and event.ranking_id == ranking_id:
                after = msgspec.structs.replace(after, closed_at=None)
        super().__init__(board, after, added)
        if has_tiebreaks(after):
            ahead = Board(competitions=before.competitions.copy())
            for event in decided:
                if isinstance(event, CompetitionEvent):  # one without a date belongs to the round of this day
                    fold(ahead, Revisions(), Recorded(_UNKNOWN, now, OPERATOR, None, event))
            self.competitions = ahead.competitions
        self.lacks_sums = needs_sums(after) and not is_followed
        self._before = before
        self._given: CompetitionSums | None = None
        self._will_be_voided = {
            event.competition_id: isinstance(event, events.CompetitionVoided)
            for event in decided
            if isinstance(event, events.CompetitionVoided | events.CompetitionUnvoided)
        }
        self._will_take_part = {
            event.competition_id: event.participants
            for event in decided
            if isinstance(event, events.CompetitionAdded | events.CompetitionChanged)
            and event.participants is not UNSET
        }

    def give(self, sums: CompetitionSums, counts: WhatCounts) -> Generator[None, None, None]:
        """`sums`: of the lines in the log that will count, which `counts` says; it takes those of `decided`, in time
        slices."""
        for recorded in self._recorded:
            sums.take(msgspec.structs.replace(recorded, recorded_at=counts.now or FIRST_TIME), counts)
            yield
        self._given = sums

    def sums(self, unity_id: UnityId, competitor_id: CompetitorId) -> SumsByCompetition:
        given = self._given
        sums = self._before.sums(unity_id, competitor_id) if given is None else given.of(unity_id, competitor_id)
        added = super().sums(unity_id, competitor_id)
        if not added[0]:
            return sums
        found = dict(zip(*sums, strict=True))
        for competition_id, amount in zip(*added, strict=True):
            found[competition_id] = found.get(competition_id, 0) + amount
        return list(found), list(found.values())

    def reached(self, unity_id: UnityId, competitor_id: CompetitorId) -> int:
        if self._given is not None:
            return self._given.reached(unity_id, competitor_id)
        return max(self._before.reached(unity_id, competitor_id), super().reached(unity_id, competitor_id))

    def participants(self, competition_id: CompetitionId) -> Items[CompetitorId]:
        theirs = self._will_take_part.get(competition_id)
        return self._before.participants(competition_id) if theirs is None else theirs

    def took_place(self) -> Collection[CompetitionId] | None:
        return None if self._ranking.closed_at is None else self._before.took_place()

    def is_voided(self, competition_id: CompetitionId) -> bool:
        return self._will_be_voided.get(competition_id, self._before.is_voided(competition_id))


def _is_counted(added: CompetitionSums, recorded: Recorded, after: Ranking, ranking_id: RankingId) -> bool:
    """Counts the event, if it may change the ranking's sums. Returns False if it does not only add sums."""
    event = recorded.event
    if isinstance(event, events.CompetitionChanged):
        return not (event.redates and after.expires)
    if not isinstance(event, events.Points) or event.ranking_id != ranking_id:
        return True
    is_simple = not event.results  # another result in a competition is not always a sum
    return is_simple and count_in(added, recorded.sequence, FIRST_TIME, event, expires=after.expires)


_LINES: Final = ("deltas", "results", "silent", "silent_results", "totals")
"""The fields of events with lines of points."""


def without(
    event: Event, competitions: Collection[CompetitionId], competitors: Collection[CompetitorId]
) -> Event | None:
    """`event` without the points and reversals of the given competitions, without the points of the given competitors,
    and without these competitors in lists. None: nothing is left."""
    match event:
        case events.PointsAdded() | events.PointsReversed() | events.PointsExpired():
            had = {name: getattr(event, name) for name in _LINES if name in event.__struct_fields__}
            left = {name: tuple([one for one in had[name] if one.competitor_id not in competitors]) for name in had}
            if event.competition_id in competitions or (any(had.values()) and not any(left.values())):
                return None
            return msgspec.structs.replace(event, **left)
        case events.RankingCreated() | events.RankingModified():
            others = tuple([competitor_id for competitor_id in event.participants if competitor_id not in competitors])
            return msgspec.structs.replace(event, participants=others)
        case events.ParticipantsChanged():
            return msgspec.structs.replace(
                event, added=tuple([competitor_id for competitor_id in event.added if competitor_id not in competitors])
            )
        case _:
            return event
