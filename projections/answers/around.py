"""The competitions around the moment that a board shows: the latest ones, with what each gave, and the next ones.

A competition belongs to a ranking if it gave points in it, whether these have expired or not. A competition that gave
none in any ranking, and has no result, is a fixture of every ranking that lists all its participants. If a hidden
ranking lists all of them, too, it is shown nowhere, because nothing tells which ranking it belongs to.
"""

from collections.abc import Collection, Generator
from collections.abc import Sequence as Items
from datetime import datetime
from itertools import islice
from typing import Final

from msgspec import Struct, structs

from engine.domain.terms import CompetitionId, CompetitorId, RankingId, UnityId
from projections.board.board import Board, Competition, Ranking
from projections.board.competition_sums import CompetitionSums
from projections.columns.enrolment import Enrolment

RESULTS_SHOWN: Final = 6
FIXTURES_SHOWN: Final = 6
"""Competitions on a page: past ones, and coming ones."""
SIDES_SHOWN: Final = 3
"""Participants that are named of a competition with more than two: the best ones."""
COMPETITIONS_LOOKED_AT_MAX: Final = 1_000
"""The competitions of a page are searched among this many, the last that were added."""
_SIDES_LOOKED_AT_MAX: Final = 1_000
_STEP_COMPETITIONS: Final = 100


class Side(Struct, frozen=True, gc=False):
    """A participant. `gained`: their points, or their result, in the unity shown; None: they got none. `performance`:
    their own part of the result."""

    competitor_id: CompetitorId
    name: str
    won: bool
    gained: int | None
    performance: str | None


class ShownCompetition(Struct, frozen=True, kw_only=True):
    """`result`: the score. `sides`: the participants, or some if there are more than two; `others`: the number of the
    rest."""

    competition_id: CompetitionId
    started_at: datetime
    location: str
    result: str | None
    sides: list[Side]
    others: int


class ShownCompetitions(Struct, frozen=True, kw_only=True):
    """`latest`: the one that gave points last, whatever its date. `results`: the newest first; `fixtures`: the next
    first."""

    latest: ShownCompetition | None = None
    results: list[ShownCompetition] = []
    fixtures: list[ShownCompetition] = []


class Around(Struct, frozen=True):
    """The competitions of a ranking around a moment, among those looked at: `results` gave points in it, the newest
    first; `fixtures` did not, and have no result, the next first. `begun`: fixtures that may have given points in other
    rankings."""

    results: list[CompetitionId]
    fixtures: list[CompetitionId]
    begun: list[CompetitionId]


def competitions_around(
    board: Board, ranking: Ranking, sums: CompetitionSums, hidden: Collection[RankingId], on: datetime | None
) -> Generator[None, None, Around]:
    """The competitions of a ranking with these sums. `on`: only what had taken place by then is known; None:
    everything. Pauses for other work."""
    number = len(board.competitions)
    results: list[_Dated] = []
    fixtures: list[_Dated] = []
    begun: list[CompetitionId] = []
    listed = ranking.participants
    elsewhere = [board.rankings[one].participants for one in hidden if one in board.rankings]
    looked_at = board.competitions.run(number - COMPETITIONS_LOOKED_AT_MAX + 1, number)
    for place, (competition_id, competition) in enumerate(looked_at):
        if place % _STEP_COMPETITIONS == 0:
            yield
        has_begun = _has_begun(competition, on)
        who = competition.participants
        if competition.voided_at is not None:
            continue
        one = _Dated((competition.started_at, competition.number), competition_id)
        has_result = has_begun and (competition.result is not None or competition.winner_id is not None)
        if competition_id in sums.given:
            results.append(one)
        elif who and not has_result and _all_in(listed, who) and not any(_all_in(hers, who) for hers in elsewhere):
            fixtures.append(one)
            begun += [competition_id] if has_begun else []
    results.sort(key=_when, reverse=True)
    fixtures.sort(key=_when)
    return Around([one.competition_id for one in results], [one.competition_id for one in fixtures], begun)


def competitions_shown(
    board: Board,
    ranking: Ranking,
    sums: CompetitionSums,
    unity_id: UnityId,
    latest_id: CompetitionId | None,
    around: Around,
    taken_place: Collection[CompetitionId],
    on: datetime | None,
) -> Generator[None, None, ShownCompetitions]:
    """The competitions of a page, with their points in this unity. Competitions that have `taken_place` elsewhere are
    not fixtures. Pauses for other work."""
    results = around.results[:RESULTS_SHOWN]
    fixtures = [one for one in around.fixtures if one not in taken_place][:FIXTURES_SHOWN]
    shown = {}
    for one in {*results, *fixtures} | (set() if latest_id is None else {latest_id}):
        competition = board.competitions.get(one)
        if competition is not None:
            shown[one] = _shown(board, ranking, sums, unity_id, one, _known_by(competition, on))
        yield
    return ShownCompetitions(
        latest=None if latest_id is None else shown.get(latest_id),
        results=[shown[one] for one in results],
        fixtures=[shown[one] for one in fixtures],
    )


def last_by_date(board: Board, sums: CompetitionSums) -> Generator[None, None, CompetitionId | None]:
    """The competition with the last declared date that gave points in the ranking of these sums. Pauses for other
    work."""
    last: tuple[datetime, int, CompetitionId] | None = None
    for competition_id, one in board.competitions.held([*sums.given]):
        if one.date is not None and one.voided_at is None:
            place = one.date, one.number, competition_id
            last = place if last is None else max(last, place)
        yield
    return None if last is None else last[2]


class _Dated(Struct, frozen=True):
    place: tuple[datetime, int]
    competition_id: CompetitionId


def _when(one: _Dated) -> tuple[datetime, int]:
    return one.place


def _has_begun(competition: Competition, on: datetime | None) -> bool:
    return on is None or competition.started_at <= on


def _known_by(competition: Competition, on: datetime | None) -> Competition:
    """The competition as known by `on`: before it took place, it had no result."""
    return competition if _has_begun(competition, on) else structs.replace(competition, result=None, winner_id=None)


def _all_in(listed: Enrolment, who: Items[CompetitorId]) -> bool:
    return all(one in listed for one in who)


def _shown(
    board: Board,
    ranking: Ranking,
    sums: CompetitionSums,
    unity_id: UnityId,
    competition_id: CompetitionId,
    competition: Competition,
) -> ShownCompetition:
    notation = ranking.unities[unity_id].notation
    who: Items[CompetitorId] = competition.participants[:_SIDES_LOOKED_AT_MAX]
    if not who:  # it shows those who got points
        listed = [*islice(ranking.participants, _SIDES_LOOKED_AT_MAX)]
        who = [one for one in listed if sums.sum(unity_id, one, competition_id) is not None]
    number = max(len(competition.participants), len(who))
    gained = {one: sums.sum(unity_id, one, competition_id) for one in who}
    if len(who) > 2:
        sign = -1 if notation.results is None else ranking.unities[unity_id].better
        by_points = sorted(who, key=lambda one: (gained[one] is None, sign * (gained[one] or 0)))
        who = by_points[:SIDES_SHOWN]
    result = competition.result
    sides = []
    for one in who:
        points = gained[one]
        sides.append(
            Side(
                competitor_id=one,
                name=board.competitors[one].name,
                won=one == competition.winner_id,
                gained=None if points is None else notation.shown(points),
                performance=result.get(one) if isinstance(result, dict) else None,
            )
        )
    return ShownCompetition(
        competition_id=competition_id,
        started_at=competition.started_at,
        location=competition.location,
        result=result if isinstance(result, str) else None,
        sides=sides,
        others=number - len(sides),
    )
