"""Looks up the things that a question names. If one is missing, the answer is a 404 that says which."""

from collections.abc import Mapping
from typing import Any, TypeVar

from engine.domain.errors import Fault, NotFound, existing
from engine.domain.faults import unacceptable
from engine.domain.terms import CompetitionId, CompetitorId, RankingId, UnityId
from projections.board.board import Board, Competition, Competitor, Ranking

_K = TypeVar("_K", bound=int)
_V = TypeVar("_V")


def ranking_of(board: Board, ranking_id: RankingId) -> Ranking:
    """Raises NotFound."""
    return existing(board.rankings, "ranking", ranking_id)


def competitor_of(board: Board, competitor_id: CompetitorId) -> Competitor:
    """Raises NotFound."""
    return existing(board.competitors, "competitor", competitor_id)


def competition_of(board: Board, competition_id: CompetitionId) -> Competition:
    """Raises NotFound."""
    return existing(board.competitions, "competition", competition_id)


def unity_of(board: Board, ranking_id: RankingId, unity_id: UnityId | None) -> UnityId:
    """The unity; None: the ranking's main one. Raises NotFound."""
    unities = ranking_of(board, ranking_id).unities
    if unity_id is None:
        return next(iter(unities))
    if unity_id not in unities:
        raise NotFound(f"Ranking {ranking_id} has no unity {unity_id}.")
    return unity_id


def number_before(items: Mapping[_K, Any], what: str, after: _K) -> int:
    """How many items there are up to the item `after`, in the order of creation; none up to 0. Raises Unacceptable if
    there is no such item."""
    if not after:
        return 0
    number: int = named(items, what, "after", after).number
    return number


def named(items: Mapping[_K, _V], what: str, field: str, item_id: _K) -> _V:
    """The item that a field of the query names. Raises Unacceptable if there is none."""
    found = items.get(item_id)
    if found is None:
        raise unacceptable([Fault(field, f"{what} {item_id} is not in this tournament")])
    return found
