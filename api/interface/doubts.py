"""What is asked before it is recorded, at every door that records results: it is unlikely, but may be right. Pure.

Texts have places for the words of the sport (`sports.py`).
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol, TypeVar

from msgspec import UnsetType

from engine.domain.errors import Fault
from engine.domain.events import Result
from engine.domain.presentation import in_zone
from engine.domain.scoring import tells_the_winner, winner_by_score
from engine.domain.terms import CompetitorId

_DAYS_APART: Final = timedelta(days=3)
_DOUBLE: Final = "There is a {{match}} of the same two on {}. Is this another one?"


class _Match(Protocol):
    @property
    def key(self) -> str | None: ...
    @property
    def group_id(self) -> int: ...
    @property
    def round(self) -> int | None: ...
    @property
    def round_name(self) -> str | None: ...
    @property
    def started_at(self) -> datetime | None: ...


_M = TypeVar("_M", bound=_Match)


def doubts(
    participants: tuple[CompetitorId, ...],
    begins: datetime | None,
    result: Result | None | UnsetType,
    winner_id: CompetitorId | None | UnsetType,
    now: datetime,
) -> Iterator[Fault]:
    """What is asked about a result of a match that begins then. `now`: in the tournament's zone, by whose days a match
    is still to come."""
    if not result:
        return
    if winner_id and (by_score := winner_by_score(participants, result)) != winner_id:
        if by_score is not None:
            yield Fault("winner", "The winner has the lower score. Is that right?")
        elif tells_the_winner(participants, result):
            yield Fault("winner", "By the result nobody has won, and yet a winner is named. Is that right?")
    if begins is not None and in_zone(begins, now.tzinfo or UTC).date() > now.date():
        yield Fault("date", "This {match} is still to come. Has it been played?")


def is_near(one: _Match, other: _Match) -> bool:
    """Whether two matches of the same two may be one: they are at most two days apart, in the same group and round."""
    same = (one.group_id, one.round, one.round_name or "") == (other.group_id, other.round, other.round_name or "")
    if not same or one.started_at is None or other.started_at is None:
        return False
    return abs(one.started_at - other.started_at) < _DAYS_APART


def twin_of(made: _Match, others: Iterable[_M]) -> _M | None:
    """The first of others of the same two that may be the match that is made. Two with keys are two."""
    return next((one for one in others if (one.key is None or made.key is None) and is_near(one, made)), None)


def double(known: datetime) -> Fault:
    """What is asked about a match that may be the one that took place then, in the tournament's zone."""
    return Fault("date", _DOUBLE.format(f"{known:%Y-%m-%d %H:%M}".removesuffix(" 00:00")))
