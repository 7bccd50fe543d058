"""The rounds of a tournament, and the matches of one of them."""

from collections.abc import Iterable
from datetime import date, datetime, tzinfo
from typing import Final, TypeAlias

from msgspec import Struct

from engine.domain.errors import NotFound
from engine.domain.steps import Steps
from engine.domain.terms import CompetitionId
from engine.process.time_slices import in_time_slices
from projections.answers.view import Question, View
from projections.answers.zones import zone_of
from projections.board.board import Board, Competition

ROUND_COMPETITIONS_MAX: Final = 20_000
"""Competitions among which rounds are sought: the newest."""
ROUND_MATCHES_MAX: Final = 100
"""Matches of a round in one answer."""
_NAMED: Final = "name:"
_UNDATED: Final = "undated"


RoundMatch: TypeAlias = Competition
"""One of a round."""


class Round(Struct, kw_only=True):
    """A round: its number or, without one, its name, or else the day of its matches; none of these: they have no date.
    `begins`: its first date. `left`: how many of its matches have no result yet."""

    number: int | None = None
    name: str = ""
    day: date | None = None
    begins: datetime | None = None
    matches: int = 0
    left: int = 0

    @property
    def key(self) -> str:
        """What names it in an address: `3`, `name:Final`, `2026-05-09`."""
        return _key(self.number, self.name, self.day)


class RoundMatches(Struct, frozen=True, kw_only=True):
    """The rounds in their order, the requested one, and its matches, by group and date. `more`: those left out. Matches
    that are voided are left out of everything."""

    rounds: list[Round]
    round: Round | None
    matches: dict[CompetitionId, RoundMatch]
    more: int


class RoundMatchesQuestion(Question[RoundMatches], frozen=True, kw_only=True):
    """The round with this key; None: the one that is played `now`: the last that has begun, if a result of it is
    missing, or else the next with one missing. `group_id`: only matches of this group. Raises NotFound."""

    now: datetime
    round: str | None = None
    group_id: int | None = None

    async def answered(self, view: View) -> RoundMatches:
        board = view.live.board
        zone = zone_of(board.publication.presentation.zone)
        found = await in_time_slices(_by_round(board, zone, self.group_id))
        rounds = sorted([one for one, _ in found.values()], key=_order)
        if self.round is not None and self.round not in found:
            raise NotFound("There is no such round.")
        shown = found[self.round][0] if self.round is not None else current(rounds, self.now)
        matches = [] if shown is None else sorted(found[shown.key][1], key=lambda one: _match_order(*one))
        return RoundMatches(
            rounds=rounds,
            round=shown,
            matches=dict(matches[:ROUND_MATCHES_MAX]),
            more=max(0, len(matches) - ROUND_MATCHES_MAX),
        )


def current(rounds: Iterable[Round], now: datetime) -> Round | None:
    """The round that is played now, of rounds in their order; None: there are none."""
    last = following = None
    for one in rounds:
        if one.begins is not None and one.begins <= now:
            last = one
    for one in rounds:
        has_begun = one.begins is not None and one.begins <= now
        if following is None and one.left and (last is None or not has_begun):
            following = one
    if last is not None and (last.left or following is None):
        return last
    return following or next(iter(reversed([*rounds])), None)


def key_of(competition: Competition, zone: tzinfo) -> str:
    """The key of the round of a competition."""
    return _key(competition.round, competition.round_name, _day(competition, zone))


def _key(number: int | None, name: str, day: date | None) -> str:
    if number is not None:
        return str(number)
    if name:
        return f"{_NAMED}{name}"
    return _UNDATED if day is None else day.isoformat()


def _by_round(
    board: Board, zone: tzinfo, group_id: int | None
) -> Steps[dict[str, tuple[Round, list[tuple[CompetitionId, Competition]]]]]:
    found: dict[str, tuple[Round, list[tuple[CompetitionId, Competition]]]] = {}
    count = len(board.competitions)
    for competition_id, one in board.competitions.run(count - ROUND_COMPETITIONS_MAX + 1, count):
        yield
        if one.voided_at is not None or group_id not in (None, one.group_id):
            continue
        key = key_of(one, zone)
        if key not in found:
            by_day = one.in_round is None
            of_day = _day(one, zone) if by_day else None
            found[key] = Round(number=one.round, name=one.round_name, day=of_day), []
        its, matches = found[key]
        matches.append((competition_id, one))
        its.matches += 1
        its.left += one.result is None and one.winner_id is None
        if one.date is not None and (its.begins is None or one.date < its.begins):
            its.begins = one.date
    return found


def _day(competition: Competition, zone: tzinfo) -> date | None:
    return None if competition.date is None else competition.date.astimezone(zone).date()


def _order(one: Round) -> tuple[bool, float, bool, int, str]:
    """By the date of their beginning; without one, by number, after all others."""
    begins = 0.0 if one.begins is None else one.begins.timestamp()
    return one.begins is None, begins, one.number is None, one.number or 0, one.name


def _match_order(competition_id: CompetitionId, one: Competition) -> tuple[int, bool, float, int]:
    date = 0.0 if one.date is None else one.date.timestamp()
    return one.group_id, one.date is None, date, one.number
