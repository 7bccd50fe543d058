"""The competitions around the moment that a board shows: the latest ones, with what each gave, and the next ones.

A competition belongs to a ranking if it gave points in it, whether these have expired or not. A competition that gave
none in any ranking, and has no result, is a fixture of every ranking that lists all its participants. If a hidden
ranking lists all of them, too, it is shown nowhere, because nothing tells which ranking it belongs to.
"""

from collections.abc import Collection
from collections.abc import Sequence as Items
from datetime import datetime
from heapq import nlargest
from itertools import islice
from typing import Final

from msgspec import Struct, structs

from engine.domain.scoring import performances_of
from engine.domain.terms import CompetitionId, CompetitorId, RankingId, UnityId
from projections.board.board import Board, Competition, Ranking
from projections.board.competition_sums import CompetitionSums, FirstPoints
from projections.columns.enrolment import Enrolment

RESULTS_SHOWN: Final = 6
FIXTURES_SHOWN: Final = 6
"""Competitions on a page: past ones, and coming ones."""
SIDES_SHOWN: Final = 3
"""Participants that are named of a competition with more than two: the best ones."""
COMPETITIONS_LOOKED_AT_MAX: Final = 1_000
"""The competitions of a page are searched among this many, the last that were added; in a long log, the latest result
among this many that were entered last."""
LOOKED_AT_MAX: Final = 1_000
"""Of a competition without participants, those who got points are sought among this many of the ranking."""


class Side(Struct, frozen=True, gc=False):
    """A participant. `gained`: their points, or their result, in the unity shown; None: they got none. `performance`:
    their own part of the result, such as a bye."""

    competitor_id: CompetitorId
    name: str
    won: bool
    gained: int | None
    performance: str | None


class ShownCompetition(Struct, frozen=True, kw_only=True):
    """`competition`: as it was known at the moment. `took_place`: its date or, without one, when its first points were
    recorded; None: it has neither. `entered_late`: when these were, if points of a later competition had been recorded
    by then; None: they had not. `sides`: its participants, or some if there are more than two; `others`: the number of
    the rest."""

    competition_id: CompetitionId
    competition: Competition
    took_place: datetime | None
    entered_late: datetime | None
    sides: list[Side]
    others: int


class ShownCompetitions(Struct, frozen=True, kw_only=True):
    """`latest`: the one that took place last, on the clock that the board shows. `late`: the one that was entered last,
    if it took place before. `results`: newest first; `fixtures`: the next first."""

    latest: ShownCompetition | None = None
    late: ShownCompetition | None = None
    results: list[ShownCompetition] = []
    fixtures: list[ShownCompetition] = []


class Around:
    """The competitions of a ranking around a moment: those that gave points in it, and its fixtures, which did not and
    have no result. `hidden`: rankings that are shown nowhere. `on`: only what had taken place by then is known; None:
    everything. `begun`: fixtures that may have given points in other rankings."""

    def __init__(
        self,
        board: Board,
        ranking: Ranking,
        sums: CompetitionSums,
        hidden: Collection[RankingId],
        on: datetime | None,
    ) -> None:
        self.begun: list[CompetitionId] = []
        self._board, self._ranking, self._sums, self._on = board, ranking, sums, on
        self._elsewhere = [board.rankings[one].participants for one in hidden if one in board.rankings]
        self._results: list[tuple[datetime, int, CompetitionId]] = []
        self._fixtures: list[tuple[datetime, int, CompetitionId]] = []

    def look_at(self, competition_id: CompetitionId, competition: Competition) -> None:
        if competition.voided_at is not None:
            return
        has_begun, who = _has_begun(competition, self._on), competition.participants
        has_result = has_begun and (competition.result is not None or competition.winner_id is not None)
        if competition_id in self._sums.given:
            took_place = self._sums.took_place(competition_id, competition.date)
            self._results.append((took_place, competition.number, competition_id))
        elif who and not has_result and self._is_hers(who):
            self._fixtures.append((competition.started_at, competition.number, competition_id))
            self.begun += [competition_id] if has_begun else []

    def belongs(self, competition_id: CompetitionId, competition: Competition) -> bool:
        """Whether it gave points in the ranking or, by its participants, belongs to it and to no hidden one."""
        who = competition.participants
        return competition_id in self._sums.given or (bool(who) and self._is_hers(who))

    def _is_hers(self, who: Items[CompetitorId]) -> bool:
        return _all_in(self._ranking.participants, who) and not any(_all_in(one, who) for one in self._elsewhere)

    @property
    def results(self) -> list[CompetitionId]:
        """The last of those that gave points, newest first."""
        return [one for _, _, one in nlargest(RESULTS_SHOWN, self._results)]

    def fixtures(self, taken_place: Collection[CompetitionId]) -> list[CompetitionId]:
        """The next fixtures, without those that have `taken_place` in other rankings."""
        return [one for _, _, one in sorted(self._fixtures) if one not in taken_place][:FIXTURES_SHOWN]

    def shown(self, competition_id: CompetitionId, unity_id: UnityId) -> ShownCompetition:
        """An existing competition, with its points in this unity. Call it after all competitions were looked at."""
        known = _known_by(self._board.competitions[competition_id], self._on)
        first = self._sums.given.get(competition_id)
        sides, others = _sides(self._board, self._ranking, self._sums, unity_id, competition_id, known)
        return ShownCompetition(
            competition_id=competition_id,
            competition=known,
            took_place=known.date or (None if first is None else first.recorded_at),
            entered_late=None if first is None or not self._is_late(known.date, first) else first.recorded_at,
            sides=sides,
            others=others,
        )

    def _is_late(self, date: datetime | None, first: FirstPoints) -> bool:
        """Whether one of the results took place after this date, but gave points before these."""
        given = self._sums.given
        return date is not None and any(
            at > date and given[one].sequence < first.sequence for at, _, one in self._results
        )


def _has_begun(competition: Competition, on: datetime | None) -> bool:
    return on is None or competition.started_at <= on


def _known_by(competition: Competition, on: datetime | None) -> Competition:
    """The competition as known by `on`: before it took place, it had no result."""
    return competition if _has_begun(competition, on) else structs.replace(competition, result=None, winner_id=None)


def _all_in(listed: Enrolment, who: Items[CompetitorId]) -> bool:
    return all(one in listed for one in who)


def _sides(
    board: Board,
    ranking: Ranking,
    sums: CompetitionSums,
    unity_id: UnityId,
    competition_id: CompetitionId,
    competition: Competition,
) -> tuple[list[Side], int]:
    """The participants, or some if there are more than two, and the number of the rest."""
    unity = ranking.unities[unity_id]
    who: Items[CompetitorId] = competition.participants[:LOOKED_AT_MAX]
    if not who:  # it shows those who got points
        listed = [*islice(ranking.participants, LOOKED_AT_MAX)]
        who = [one for one in listed if sums.sum(unity_id, one, competition_id) is not None]
    number = max(len(competition.participants), len(who))
    gained = {one: sums.sum(unity_id, one, competition_id) for one in who}
    if len(who) > 2:
        by_points = sorted(who, key=lambda one: (gained[one] is None, unity.better * (gained[one] or 0)))
        who = by_points[:SIDES_SHOWN]
    performances = performances_of(competition.participants, competition.result) or {}
    if len(competition.participants) == 1 and isinstance(competition.result, str):
        performances = {competition.participants[0]: competition.result}
    sides = []
    for one in who:
        points = gained[one]
        sides.append(
            Side(
                competitor_id=one,
                name=board.competitors[one].name,
                won=one == competition.winner_id,
                gained=None if points is None else sums.shown(unity_id, points),
                performance=performances.get(one),
            )
        )
    return sides, number - len(sides)
