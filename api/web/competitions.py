"""The competitions around a moment that a board shows: the last ones with what each gave, and the next ones.

A competition is one of a ranking's if it gave points in it. One that has neither points nor a result is a next one of
each ranking in which all its participants are, unless all of them are also in one that is hidden: nothing says of which
of the two it is.
"""

from collections.abc import Collection, Generator
from collections.abc import Sequence as Items
from datetime import datetime
from functools import partial
from typing import Final

from msgspec import Struct, structs

from api.web.page import number_text, signed_text
from engine.domain.notation import Notation
from engine.domain.terms import CompetitionId, CompetitorId, RankingId, UnityId
from projections.board.board import Board, Competition
from projections.columns.enrolment import Enrolment

RESULTS_SHOWN: Final = 6
FIXTURES_SHOWN: Final = 6
"""Competitions of a page that were, and that will be."""
SIDES_SHOWN: Final = 3
"""Participants that are named of a competition of more than two: those who got most."""
COMPETITIONS_LOOKED_AT_MAX: Final = 1_000
"""Competitions that were added last, among which those of a page are looked for."""
_PARTICIPANTS_LOOKED_AT_MAX: Final = 8
"""Participants of whom one must have points, for a competition to have given any."""
_SIDES_LOOKED_AT_MAX: Final = 1_000
_STEP_COMPETITIONS: Final = 100


class ShownSide(Struct, frozen=True, gc=False):
    """A participant. `gained`: their points in the unity that is shown, as people read them; None: none were given.
    `performance`: what a result has of them alone."""

    competitor_id: str
    name: str
    won: bool
    gained: str | None
    performance: str | None


class ShownCompetition(Struct, frozen=True, kw_only=True):
    """`result` is a score. `sides` are the participants, of more than two some; `others` is the number of the rest."""

    id: str
    started_at: datetime
    location: str
    result: str | None
    sides: list[ShownSide]
    others: int


class ShownCompetitions(Struct, frozen=True, kw_only=True):
    """`latest`: the one that gave points last, whenever it was. `results`: the newest first; `fixtures`: the next
    first."""

    latest: ShownCompetition | None = None
    results: list[ShownCompetition] = []
    fixtures: list[ShownCompetition] = []


def competitions_shown(
    board: Board,
    ranking_id: RankingId,
    unity_id: UnityId,
    latest_id: CompetitionId | None,
    hidden: Collection[RankingId],
    on: datetime | None,
) -> Generator[None, None, ShownCompetitions]:
    """Those of a ranking that has its sums of competitions, with points of this unity. `on`: the time by which what has
    taken place is known; None: all is. Pauses for other work."""
    number = len(board.competitions)
    results: list[_Dated] = []
    fixtures: list[_Dated] = []
    listed = board.rankings[ranking_id].participants
    elsewhere = [board.rankings[one].participants for one in hidden if one in board.rankings]
    looked_at = board.competitions.run(number - COMPETITIONS_LOOKED_AT_MAX + 1, number)
    for place, (competition_id, recorded) in enumerate(looked_at):
        if place % _STEP_COMPETITIONS == 0:
            yield
        competition = recorded if on is None or recorded.started_at <= on else _coming(recorded)
        who = competition.participants
        if competition.voided_at is not None or not who:
            continue
        one = _Dated((competition.started_at, competition.number), competition_id, competition)
        if _gave(board, ranking_id, competition_id, who):
            results.append(one)
        elif competition.result is None and competition.winner_id is None and _all_in(listed, who):
            fixtures += [] if any(_all_in(hers, who) for hers in elsewhere) else [one]
    results.sort(key=_when, reverse=True)
    fixtures.sort(key=_when)
    latest = None if latest_id is None else board.competitions.get(latest_id)
    shown = partial(_shown, board, ranking_id, unity_id)
    return ShownCompetitions(
        latest=None if latest is None or latest_id is None else shown(latest_id, latest),
        results=[shown(one.competition_id, one.competition) for one in results[:RESULTS_SHOWN]],
        fixtures=[shown(one.competition_id, one.competition) for one in fixtures[:FIXTURES_SHOWN]],
    )


class _Dated(Struct, frozen=True):
    place: tuple[datetime, int]
    competition_id: CompetitionId
    competition: Competition


def _when(one: _Dated) -> tuple[datetime, int]:
    return one.place


def _coming(competition: Competition) -> Competition:
    """The competition as it was before it took place."""
    return structs.replace(competition, result=None, winner_id=None)


def _all_in(listed: Enrolment, who: Items[CompetitorId]) -> bool:
    return all(one in listed for one in who)


def _gave(board: Board, ranking_id: RankingId, competition_id: CompetitionId, who: Items[CompetitorId]) -> bool:
    """Whether the competition gave points in the ranking."""
    ranking = board.rankings[ranking_id]
    sums = ranking.competition_sums
    assert sums is not None
    some = who[:_PARTICIPANTS_LOOKED_AT_MAX]
    return any(sums.sum(unity_id, one, competition_id) is not None for unity_id in ranking.unities for one in some)


def _gained_text(points: int, notation: Notation) -> str:
    """What a competition gave: points, or a result."""
    return signed_text(points, notation) if notation.results is None else number_text(notation.shown(points), notation)


def _shown(
    board: Board, ranking_id: RankingId, unity_id: UnityId, competition_id: CompetitionId, competition: Competition
) -> ShownCompetition:
    sums, notation = board.rankings[ranking_id].competition_sums, board.rankings[ranking_id].unities[unity_id].notation
    assert sums is not None
    who: Items[CompetitorId] = competition.participants[:_SIDES_LOOKED_AT_MAX]
    gained = {one: sums.sum(unity_id, one, competition_id) for one in who}
    if len(who) > 2:
        sign = -1 if notation.results is None else board.rankings[ranking_id].unities[unity_id].better
        by_points = sorted(who, key=lambda one: (gained[one] is None, sign * (gained[one] or 0)))
        who = by_points[:SIDES_SHOWN]
    result = competition.result
    sides = []
    for one in who:
        points = gained[one]
        sides.append(
            ShownSide(
                competitor_id=str(one),
                name=board.competitors[one].name,
                won=one == competition.winner_id,
                gained=None if points is None else _gained_text(points, notation),
                performance=result.get(one) if isinstance(result, dict) else None,
            )
        )
    return ShownCompetition(
        id=str(competition_id),
        started_at=competition.started_at,
        location=competition.location,
        result=result if isinstance(result, str) else None,
        sides=sides,
        others=len(competition.participants) - len(sides),
    )
