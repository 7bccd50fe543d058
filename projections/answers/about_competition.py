"""What the page of a competition shows: who took part, the points it gave in a ranking and for what, and its
corrections."""

from collections.abc import Iterable
from datetime import datetime
from itertools import dropwhile, islice
from typing import Final

from msgspec import Struct

from engine.domain.errors import NotFound
from engine.domain.events import Result
from engine.domain.notation import Notation
from engine.domain.scoring import performances_of
from engine.domain.steps import Steps
from engine.domain.terms import CompetitionId, CompetitorId, Counts, RankingId, UnityId
from engine.process.time_slices import in_time_slices
from projections.answers.around import LOOKED_AT_MAX, ShownCompetition
from projections.answers.competition_results import CompetitionResultsQuestion
from projections.answers.lookup import unity_of
from projections.answers.rounds import around_now
from projections.answers.scored_for import ScoredFor, scored_for
from projections.answers.view import Question, View, ask
from projections.board.board import Competition, Ranking
from projections.board.competition_sums import CompetitionSums

TAKING_PART_SHOWN_MAX: Final = 100
"""Participants that the page of a competition lists. With more, it does not say what they got points for."""


class GivenPoints(Struct, frozen=True, kw_only=True):
    """What a competition gave somebody in a unity. `scored`: what a scoring gave it for; None: none did."""

    unity_id: UnityId
    amount: int
    scored: ScoredFor | None


class TakingPart(Struct, frozen=True, kw_only=True):
    """`performance`: the competitor's part of the result. `struck`: it does not count for them."""

    competitor_id: CompetitorId
    performance: str | None
    struck: bool
    given: list[GivenPoints]


class EnteredResult(Struct, frozen=True, kw_only=True):
    """A result that the competition had from then on; with neither result nor winner, it had none any more."""

    recorded_at: datetime
    result: Result | None
    winner_id: CompetitorId | None


class AboutCompetition(Struct, frozen=True, kw_only=True):
    """`who`: the participants or, without any, those who got points; the first TAKING_PART_SHOWN_MAX, the best first if
    there are more than two. `notations`: of the amounts, by unity, in the order of the ranking. `entered`: its
    results from the first to the one in force; none: it has had no result yet."""

    shown: ShownCompetition
    who: list[TakingPart]
    left_out: int
    notations: dict[UnityId, Notation]
    entered: list[EnteredResult]


class AboutCompetitionQuestion(Question[AboutCompetition], frozen=True, kw_only=True):
    """A competition of a ranking, as of now; `unity_id`: in whose order of points its participants are; None: the main
    one's. Raises NotFound also for one that belongs to other rankings, and as `View.sums`."""

    ranking_id: RankingId
    competition_id: CompetitionId
    unity_id: UnityId | None = None

    async def answered(self, view: View) -> AboutCompetition:
        competition = view.competition(self.competition_id)
        unity_id = unity_of(view.live.board, self.ranking_id, self.unity_id)
        results = await ask(view, CompetitionResultsQuestion(self.competition_id))
        around, sums = await around_now(view, self.ranking_id), await view.sums(self.ranking_id)
        if not around.belongs(self.competition_id, competition):
            raise NotFound.of("competition", self.competition_id)
        ranking = view.live.board.rankings[self.ranking_id]
        given = await in_time_slices(_given(ranking, sums, self.competition_id, competition))
        better = ranking.unities[unity_id].better

        def order(one: TakingPart) -> tuple[bool, int]:
            amounts = [its.amount for its in one.given if its.unity_id == unity_id]
            return not amounts, better * sum(amounts)

        who = given if len(competition.participants) == 2 else sorted(given, key=order)
        return AboutCompetition(
            shown=around.shown(self.competition_id, unity_id),
            who=who[:TAKING_PART_SHOWN_MAX],
            left_out=max(len(who) - TAKING_PART_SHOWN_MAX, 0),
            notations={
                one: unity.notation.of_points if unity.counts is Counts.SUM else unity.notation
                for one, unity in ranking.unities.items()
            },
            entered=[
                EnteredResult(recorded_at=one.recorded_at, result=one.result, winner_id=one.winner_id)
                for one in dropwhile(lambda one: one.result is None and one.winner_id is None, results.results)
            ],
        )


def _given(
    ranking: Ranking, sums: CompetitionSums, competition_id: CompetitionId, competition: Competition
) -> Steps[list[TakingPart]]:
    listed = frozenset(competition.participants)
    who: Iterable[CompetitorId] = competition.participants or [*islice(ranking.participants, LOOKED_AT_MAX)]
    tells = len(competition.participants) <= TAKING_PART_SHOWN_MAX
    performances = performances_of(competition.participants, competition.result) or {}
    found = []
    for one in who:
        yield
        given = []
        for unity_id in ranking.unities if competition.voided_at is None else ():
            if (amount := sums.sum(unity_id, one, competition_id)) is not None:
                scored = (yield from scored_for(ranking, unity_id, competition, one)) if tells else None
                told = None if scored is None or scored.kind == "nothing" else scored
                given.append(GivenPoints(unity_id=unity_id, amount=sums.shown(unity_id, amount), scored=told))
        if given or one in listed:
            its = TakingPart(
                competitor_id=one,
                performance=performances.get(one),
                struck=one in competition.struck,
                given=given,
            )
            found.append(its)
    return found
