"""The rounds of a tournament, and the matches of one of them."""

from collections.abc import Callable, Iterable
from datetime import date, datetime, tzinfo
from typing import Final, TypeAlias

from msgspec import Struct

from engine.domain.errors import NotFound
from engine.domain.notation import Notation
from engine.domain.presentation import in_zone
from engine.domain.steps import Steps
from engine.domain.terms import CompetitionId, Counts, RankingId, Sequence, UnityId
from engine.process.time_slices import all_of, in_time_slices
from projections.answers.around import Around, ShownCompetition
from projections.answers.lookup import ranking_of, unity_of
from projections.answers.view import Question, View
from projections.answers.zones import zone_of
from projections.board.board import Board, Competition, Competitor

ROUND_COMPETITIONS_MAX: Final = 20_000
"""Competitions among which rounds are sought: the newest."""
ROUND_MATCHES_MAX: Final = 100
"""Matches of a round in one answer."""
CALENDAR_MATCHES_MAX: Final = 1_000
"""Matches in a calendar."""
CALENDAR_NAMES_MAX: Final = 10
"""Participants that an entry of a calendar names."""
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
        found = await in_time_slices(_by_round(board, zone, lambda _, one: self.group_id in (None, one.group_id)))
        return _chosen(found, self.round, self.now)


class RankingRound(Struct, frozen=True, kw_only=True):
    """As RoundMatches, with what each match gave in a unity, written in this `notation`."""

    rounds: list[Round]
    round: Round | None
    matches: list[ShownCompetition]
    more: int
    notation: Notation


class RankingRoundQuestion(Question[RankingRound], frozen=True, kw_only=True):
    """A round of a ranking: the matches that gave points in it, and those of its participants alone. `unity_id`: None:
    the main one. `round`: its key; None: the one that was played at the last event. Raises NotFound, and as
    `View.sums`."""

    ranking_id: RankingId
    unity_id: UnityId | None = None
    round: str | None = None

    async def answered(self, view: View) -> RankingRound:
        live = view.live
        unity_id = unity_of(live.board, self.ranking_id, self.unity_id)
        now = await view.recorded_at(live.head)
        around = await around_now(view, self.ranking_id)
        unity = live.board.rankings[self.ranking_id].unities[unity_id]
        zone = zone_of(live.board.publication.presentation.zone)
        found = _chosen(await in_time_slices(_by_round(live.board, zone, around.belongs)), self.round, now)
        return RankingRound(
            rounds=found.rounds,
            round=found.round,
            matches=await all_of(around.shown(one, unity_id) for one in found.matches),
            more=found.more,
            notation=unity.notation.of_points if unity.counts is Counts.SUM else unity.notation,
        )


class DatedMatch(Struct, frozen=True, kw_only=True):
    """A match that has a date, and its participants. `revised`, `updated_at`: of the last event that changed it or one
    of these names."""

    competition_id: CompetitionId
    begins: datetime
    competition: Competition
    names: list[str]
    revised: Sequence
    updated_at: datetime


class DatedMatches(Struct, frozen=True):
    """Those of a calendar, by date."""

    matches: list[DatedMatch]


class CalendarQuestion(Question[DatedMatches], frozen=True, kw_only=True):
    """The dated matches of a ranking, chosen as in RankingRoundQuestion: the last CALENDAR_MATCHES_MAX. Raises as
    that."""

    ranking_id: RankingId

    async def answered(self, view: View) -> DatedMatches:
        around, board = await around_now(view, self.ranking_id), view.live.board
        found = await in_time_slices(_by_round(board, zone_of(board.publication.presentation.zone), around.belongs))
        dated = [(one.date, its) for _, matches in found.values() for its, one in matches if one.date is not None]
        last = sorted(dated)[-CALENDAR_MATCHES_MAX:]
        return DatedMatches(await all_of(_dated(board, date, its) for date, its in last))


def _dated(board: Board, begins: datetime, competition_id: CompetitionId) -> DatedMatch:
    competition = board.competitions[competition_id]
    named = [board.competitors[one] for one in competition.participants[:CALENDAR_NAMES_MAX]]
    told: list[Competition | Competitor] = [competition, *named]
    return DatedMatch(
        competition_id=competition_id,
        begins=begins,
        competition=competition,
        names=[one.name for one in named],
        revised=max([one.revised for one in told]),
        updated_at=max([one.updated_at for one in told]),
    )


async def around_now(view: View, ranking_id: RankingId) -> Around:
    """What tells the competitions of a ranking from others, as of now. Raises NotFound, and as `View.sums`."""
    sums, board = await view.sums(ranking_id), view.live.board
    return Around(board, ranking_of(board, ranking_id), sums, view.hidden, None)


_ByKey: TypeAlias = dict[str, tuple[Round, list[tuple[CompetitionId, Competition]]]]


def _chosen(found: _ByKey, key: str | None, now: datetime) -> RoundMatches:
    """The round with this key; None: the current one. Raises NotFound."""
    rounds = sorted([one for one, _ in found.values()], key=_order)
    if key is not None and key not in found:
        raise NotFound("There is no such round.")
    shown = found[key][0] if key is not None else current(rounds, now)
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


def _by_round(board: Board, zone: tzinfo, wanted: Callable[[CompetitionId, Competition], bool]) -> Steps[_ByKey]:
    found: _ByKey = {}
    count = len(board.competitions)
    for competition_id, one in board.competitions.run(count - ROUND_COMPETITIONS_MAX + 1, count):
        yield
        if one.voided_at is not None or not wanted(competition_id, one):
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
    return None if competition.date is None else in_zone(competition.date, zone).date()


def _order(one: Round) -> tuple[bool, float, bool, int, str]:
    """By the date of their beginning; without one, by number, after all others."""
    begins = 0.0 if one.begins is None else one.begins.timestamp()
    return one.begins is None, begins, one.number is None, one.number or 0, one.name


def _match_order(competition_id: CompetitionId, one: Competition) -> tuple[int, bool, float, int]:
    date = 0.0 if one.date is None else one.date.timestamp()
    return one.group_id, one.date is None, date, one.number
