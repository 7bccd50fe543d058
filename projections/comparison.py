"""Two states of a ranking side by side: who would stand where.

Pure. Used for what a change would lead to, and for how things would stand had something not been.
"""

from collections.abc import Collection, Iterable
from copy import deepcopy

import msgspec
from msgspec import Struct

from engine import events
from engine.events import Event, Points
from engine.terms import CompetitionId, CompetitorId, RankingId, UnityId
from projections.board import Board, Ranking, add_points
from projections.standing import Standing, standings


class Move(Struct, frozen=True):
    """One competitor's standing in the first state and in the second; None where they are not in the list."""

    competitor_id: CompetitorId
    before: Standing | None
    after: Standing | None


def moves(before: Ranking, after: Ranking) -> dict[UnityId, list[Move]]:
    """Of each unity that both have: every competitor, in the order of the second standing; then who is not in it."""
    compared = {}
    for unity_id, unity in after.unities.items():
        if unity_id in before.unities:
            earlier = before.unities[unity_id]
            stood = {s.competitor_id: s for s in standings(before.participants, earlier.totals, earlier.sort)}
            stand = {s.competitor_id: s for s in standings(after.participants, unity.totals, unity.sort)}
            everybody = dict.fromkeys([*stand, *stood])
            compared[unity_id] = [Move(c, stood.get(c), stand.get(c)) for c in everybody]
    return compared


def foreseen(board: Board, decided: Iterable[Event]) -> dict[RankingId, Ranking]:
    """The rankings whose points `decided` would change, as they would be then. `board` stays as it is."""
    ahead = Board()
    for event in decided:
        if isinstance(event, Points):
            if event.ranking_id not in ahead.rankings:
                ahead.rankings[event.ranking_id] = deepcopy(board.rankings[event.ranking_id])
            add_points(ahead, event)
    return ahead.rankings


def without(
    event: Event, competitions: Collection[CompetitionId], competitors: Collection[CompetitorId]
) -> Event | None:
    """`event` as it would have been without these: no points of the competitions, nor the reversals of those; no
    points of the competitors, and their names in no list. None: nothing of it is left."""
    match event:
        case events.PointsAdded() | events.PointsReversed():
            deltas = tuple([delta for delta in event.deltas if delta.competitor_id not in competitors])
            if event.competition_id in competitions or not deltas:
                return None
            return msgspec.structs.replace(event, deltas=deltas)
        case events.RankingCreated() | events.RankingModified():
            left = tuple([competitor_id for competitor_id in event.participants if competitor_id not in competitors])
            return msgspec.structs.replace(event, participants=left)
        case _:
            return event
