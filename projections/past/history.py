"""History: every delta of a ranking as a line with its effect, and every declaration of its classification.

Pure. The board's fold defines the effect of an event, and advances with the lines. This module adds the positions
before and after, which the board does not keep.
"""

from collections.abc import Generator
from collections.abc import Sequence as Items
from datetime import datetime
from typing import Final, TypeGuard

from msgspec import Struct

from engine.domain import events
from engine.domain.events import (
    Criterion,
    Delta,
    Event,
    Points,
    PointsAdded,
    PointsExpired,
    PointsReversed,
    PointsScored,
    Recorded,
    changed_by,
)
from engine.domain.terms import ActorId, CompetitionId, CompetitorId, Counts, RankingId, Reversal, Sequence, UnityId
from projections.board.board import Board, Revisions, fold
from projections.board.order import OrderedLines
from projections.past.effects import Effects


def reversal_of(board: Board, event: Points) -> Reversal | None:
    """Why `event` reverses points. None: it adds points. The board may be the one before or after the event."""
    if isinstance(event, PointsAdded):
        return None
    if isinstance(event, PointsExpired):
        return Reversal.EXPIRY
    if event.replaced:
        return Reversal.CORRECTION
    if event.struck is not None:
        return Reversal.STRIKE if event.struck else Reversal.UNSTRIKE
    if event.undone is None:
        return Reversal.VOID if event.competition_id in board.voided else Reversal.UNVOID
    return Reversal.UNDO if event.undone else Reversal.REDO


class DeltaLine(Struct, frozen=True, gc=False):
    """One line of points. `delta` None: the best or last result counts, and the line gave a `result` or, if that is
    also None, reversed results. `competition_id` None: a free modification. `total`: the total after this line; None:
    nothing counts. The positions are those before and after the whole event; None: the competitor was not in the list.
    `reverses`: the sequence of the event whose points this one takes back or restores; None: it does neither.
    `reversal`: why it does. `reason`: the reason given for the whole event; None: none. `scored`: a scoring gave it."""

    sequence: Sequence
    recorded_at: datetime
    actor: ActorId
    competitor_id: CompetitorId
    unity_id: UnityId
    competition_id: CompetitionId | None
    delta: int | None
    total: int | None
    position_before: int | None
    position_after: int | None
    reverses: Sequence | None
    reversal: Reversal | None
    reason: str | None
    result: int | None = None
    scored: bool = False


class DeclarationLine(Struct, frozen=True, gc=False):
    """One declaration of the classification. `criteria` empty: it ended the declaration before."""

    sequence: Sequence
    recorded_at: datetime
    actor: ActorId
    criteria: tuple[Criterion, ...]


AnyLine = DeltaLine | DeclarationLine


class Filter(Struct, frozen=True, kw_only=True):
    """Which lines are requested. None as a field selects any value. A declaration has no unity, competitor or
    competition."""

    unity_id: UnityId | None = None
    competitor_id: CompetitorId | None = None
    competition_id: CompetitionId | None = None
    actor: ActorId | None = None

    def takes(self, line: AnyLine) -> bool:
        if isinstance(line, DeclarationLine):
            asked = self.unity_id, self.competitor_id, self.competition_id
            return asked == (None, None, None) and self.actor in (None, line.actor)
        return (
            self.competitor_id in (None, line.competitor_id)
            and self.unity_id in (None, line.unity_id)
            and self.competition_id in (None, line.competition_id)
            and self.actor in (None, line.actor)
        )


EVERYTHING: Final = Filter()
_STEP_LINES: Final = 200


_REORDERING: Final = (
    events.RankingCreated
    | events.RankingModified
    | events.ParticipantsChanged
    | events.UnityAdded
    | events.UnityChanged
)


def changes_order(event: Event, ranking_id: RankingId) -> bool:
    """Whether this event, which changes no points, may change positions: by the ranking's list, its unities, or a
    sort."""
    return isinstance(event, _REORDERING) and event.ranking_id == ranking_id


def changes_table(event: Event, ranking_id: RankingId) -> bool:
    """Whether this event, which changes no points, changes the table of a ranking: its order, criteria or names."""
    if isinstance(event, events.CompetitorChanged | events.CompetitorErased):
        return True
    return changes_order(event, ranking_id) or (
        isinstance(event, events.ClassificationDeclared) and event.ranking_id == ranking_id
    )


def _has_one_delta(event: Event) -> TypeGuard[Points]:
    """Whether the event has a single line of points, in a unity that counts sums."""
    return isinstance(event, Points) and len(event.deltas) == len(changed_by(event)) == 1


class Historian:
    """Makes the lines of one ranking from the events of the log after those that `board` shows. Takes ownership of the
    board."""

    def __init__(self, board: Board, ranking_id: RankingId) -> None:
        self.board = board
        self._ranking_id = ranking_id
        self._revisions = Revisions()
        self._orders: dict[UnityId, OrderedLines] = {}  # made when first needed

    def lines(self, recorded: Recorded) -> Generator[None, None, Items[AnyLine]]:
        """Folds the next event, and returns its lines in order. In time slices: each line of an event with many takes
        some microseconds. Raises KeyError as the fold does."""
        event = recorded.event
        if isinstance(event, Points) and event.ranking_id == self._ranking_id:
            for unity_id in dict.fromkeys([line.unity_id for line in changed_by(event)]):
                if unity_id not in self._orders:
                    self._orders[unity_id] = yield from self._order(unity_id)
            if _has_one_delta(event):
                return self._one_line(recorded, event, self._orders[event.deltas[0].unity_id])
            return (yield from self._many_lines(recorded, event))
        if isinstance(event, events.ParticipantsChanged) and event.ranking_id == self._ranking_id:
            yield from self._change_members(recorded, event)
            return ()
        fold(self.board, self._revisions, recorded)
        if changes_order(event, self._ranking_id):
            self._orders.clear()
        if isinstance(event, events.ClassificationDeclared) and event.ranking_id == self._ranking_id:
            return (DeclarationLine(recorded.sequence, recorded.recorded_at, recorded.actor, event.criteria),)
        return ()

    def _one_line(self, recorded: Recorded, event: Points, order: OrderedLines) -> Items[DeltaLine]:
        """As `_many_lines` in half the time, for events with one delta, as nearly all are."""
        (delta,) = event.deltas
        competitor_id, unity_id = delta.competitor_id, delta.unity_id
        before = order.line(competitor_id)
        position_before = order.position(before)
        fold(self.board, self._revisions, recorded)
        after = order.line(competitor_id)
        order.replace(before, after)
        line = DeltaLine(
            recorded.sequence,
            recorded.recorded_at,
            recorded.actor,
            competitor_id,
            unity_id,
            event.competition_id,
            delta.amount,
            self.board.rankings[self._ranking_id].unities[unity_id].totals[competitor_id],
            position_before,
            order.position(after),
            event.reverses if isinstance(event, PointsReversed) else None,
            reversal_of(self.board, event),
            event.reason if isinstance(event, PointsAdded) else None,
            scored=isinstance(event, PointsScored),
        )
        return (line,)

    def _many_lines(self, recorded: Recorded, event: Points) -> Generator[None, None, Items[DeltaLine]]:
        unities, orders = self.board.rankings[self._ranking_id].unities, self._orders
        running: dict[tuple[CompetitorId, UnityId], int] = {}
        before: dict[tuple[CompetitorId, UnityId], tuple[int | None, int | None]] = {}  # line and position
        lines_of_event = changed_by(event)
        effects = list(Effects(self.board.rankings[self._ranking_id]).of(event))
        for number, delta in enumerate(lines_of_event, start=1):
            named = delta.competitor_id, delta.unity_id
            if named not in before:
                running[named] = unities[delta.unity_id].totals.get(delta.competitor_id, 0)
                line = orders[delta.unity_id].line(delta.competitor_id)
                before[named] = line, orders[delta.unity_id].position(line)
            if number % _STEP_LINES == 0:
                yield
        fold(self.board, self._revisions, recorded)
        for number, ((competitor_id, unity_id), (line, _)) in enumerate(before.items(), start=1):
            orders[unity_id].replace(line, orders[unity_id].line(competitor_id))
            if number % _STEP_LINES == 0:
                yield
        reverses = event.reverses if isinstance(event, PointsReversed) else None
        reversal = reversal_of(self.board, event)
        reason = event.reason if isinstance(event, PointsAdded) else None
        lines = []
        for number, (delta, effect) in enumerate(zip(lines_of_event, effects, strict=True), start=1):
            named, order = (delta.competitor_id, delta.unity_id), orders[delta.unity_id]
            unity, before_line = unities[delta.unity_id], running[named]
            running[named] += effect.amount
            is_sum = unity.counts is Counts.SUM
            lines.append(
                DeltaLine(
                    recorded.sequence,
                    recorded.recorded_at,
                    recorded.actor,
                    delta.competitor_id,
                    delta.unity_id,
                    event.competition_id,
                    unity.notation.change(before_line, running[named]) if is_sum else None,
                    unity.notation.shown(running[named]),
                    before[named][1],
                    order.position(order.line(delta.competitor_id)),
                    reverses,
                    reversal,
                    reason,
                    delta.amount if isinstance(delta, Delta) and not is_sum else None,
                    isinstance(event, PointsScored),
                )
            )
            if number % _STEP_LINES == 0:
                yield
        return lines

    def _change_members(self, recorded: Recorded, event: events.ParticipantsChanged) -> Generator[None, None, None]:
        changed = dict.fromkeys((*event.removed, *event.added))
        before = {unity_id: list(map(order.line, changed)) for unity_id, order in self._orders.items()}
        fold(self.board, self._revisions, recorded)
        for unity_id, lines in before.items():
            order = self._orders[unity_id]
            if order.outdated:
                del self._orders[unity_id]
            else:
                yield from order.replace_all(changed, lines)

    def _order(self, unity_id: UnityId) -> Generator[None, None, OrderedLines]:
        ranking = self.board.rankings[self._ranking_id]
        unity = ranking.unities[unity_id]
        return (yield from OrderedLines.in_steps(ranking.participants, unity.totals, unity.sort))
