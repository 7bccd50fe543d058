"""The scorings of a ranking, and the results that give nothing by them."""

from functools import partial
from typing import Final

from msgspec import Struct

from engine.domain.awards import Scoring
from engine.domain.rescoring import GivenLines, given_amounts
from engine.domain.scoring import NotRead, choose, wanted
from engine.domain.steps import Steps
from engine.domain.terms import CompetitionId, RankingId, Sequence
from engine.log import reading
from engine.log.codec import Topic
from engine.process.time_slices import in_time_slices
from projections.answers.lookup import ranking_of
from projections.answers.view import Question, View
from projections.board.board import Board

UNSCORED_MAX: Final = 1_000
"""Results that give nothing, in one answer: the first."""


class Unscored(Struct, frozen=True):
    """A result that gives nothing. `why`: a sentence."""

    competition_id: CompetitionId
    why: str


class DeclaredScoring(Struct, frozen=True, kw_only=True):
    """`unscored`: at most UNSCORED_MAX of the results that give nothing."""

    scorings: tuple[Scoring, ...]
    unscored: list[Unscored]


class ScoringQuestion(Question[DeclaredScoring], frozen=True):
    """Raises NotFound."""

    ranking_id: RankingId

    async def answered(self, view: View) -> DeclaredScoring:
        live = view.live
        ranking, given = ranking_of(live.board, self.ranking_id), GivenLines()
        if ranking.scorings and ranking.closed_at is not None:
            connected, upto = partial(view.past.database.connection_for, live.tournament_id), live.head.sequence
            for topic in (Topic.SCORED, Topic.REVERSED):
                async for events in reading.all_with_topic(connected, live.tournament_id, topic, Sequence(0), upto):
                    await view.past.time_slices.each(given.take, events)
        found = await in_time_slices(_unscored(live.board, self.ranking_id, given))
        return DeclaredScoring(scorings=ranking.scorings, unscored=found)


def _unscored(board: Board, ranking_id: RankingId, given: GivenLines) -> Steps[list[Unscored]]:
    ranking, found = board.rankings[ranking_id], list[Unscored]()
    for competition_id, competition in board.competitions.items() if ranking.scorings else ():
        yield
        if competition.result is None and competition.winner_id is None:
            continue
        if all(ranking.participants.row(one) is None for one in competition.participants):
            continue
        scoring, why = choose(ranking.scorings, competition), None
        try:
            amounts = {} if scoring is None else wanted(scoring, competition, ranking)
        except NotRead as error:
            why = str(error)
        else:
            if scoring is None and competition.scale:
                why = f"No scoring of the ranking is called {competition.scale!r}."
            elif ranking.closed_at is not None and given_amounts(given.of(ranking_id, competition_id)) != amounts:
                why = "The ranking was closed when it was recorded; reopening the ranking scores it."
        if why is not None:
            found.append(Unscored(competition_id, why))
            if len(found) == UNSCORED_MAX:
                break
    return found
