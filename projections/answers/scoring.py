"""The scorings of a ranking, and the results that give nothing by them."""

from collections.abc import Container, Mapping
from collections.abc import Sequence as Items
from functools import partial
from typing import Final

from msgspec import Struct

from engine.domain.awards import Scoring
from engine.domain.events import Event
from engine.domain.rescoring import GivenLines, competitions_of, given_amounts, scored_by, scored_lines
from engine.domain.scoring import ScoredCompetition, why_nothing
from engine.domain.steps import Steps, finished
from engine.domain.terms import CompetitionId, RankingId
from engine.log import reading
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
            async for events in reading.all_scored(connected, live.tournament_id, upto):
                await view.past.time_slices.each(given.take, events)
        found = await in_time_slices(_unscored(live.board, self.ranking_id, given))
        return DeclaredScoring(scorings=ranking.scorings, unscored=found)


class UnscoredResult(Struct, frozen=True, kw_only=True):
    """A result that gives no points in a ranking. `why`: a sentence, with the forms that count."""

    competition_id: CompetitionId
    ranking_id: RankingId
    why: str


def unscored_by(board: Board, events: Items[Event]) -> list[UnscoredResult]:
    """The results of these events that give nothing. The board may show the events already."""
    return finished(unscored_of(board, competitions_of(board.competitions, events), scored_by(events)))


def unscored_of(
    board: Board,
    competitions: Mapping[CompetitionId, ScoredCompetition],
    read: Container[tuple[CompetitionId | None, RankingId]] = (),
) -> Steps[list[UnscoredResult]]:
    """The results of these competitions that give nothing, because no scoring can read them. `read`: those that are
    known to give something, each with a ranking."""
    scored, found = {one: its for one, its in board.rankings.items() if its.scorings}, list[UnscoredResult]()
    for competition_id, competition in competitions.items() if scored else ():
        for ranking_id, its in scored.items():
            if (competition_id, ranking_id) in read or len(found) == UNSCORED_MAX:
                continue
            why = yield from why_nothing(its.scorings, competition, its)
            if why is not None:
                found.append(UnscoredResult(competition_id=competition_id, ranking_id=ranking_id, why=why))
        yield
    return found


def _unscored(board: Board, ranking_id: RankingId, given: GivenLines) -> Steps[list[Unscored]]:
    ranking, found = board.rankings[ranking_id], list[Unscored]()
    for competition_id, competition in board.competitions.items() if ranking.scorings else ():
        yield
        why = yield from why_nothing(ranking.scorings, competition, ranking)
        if why is None and ranking.closed_at is not None:
            amounts = yield from scored_lines(ranking, competition)
            if given_amounts(given.of(ranking_id, competition_id)) != amounts:
                why = "The ranking was closed when it was recorded; reopening the ranking scores it."
        if why is not None:
            found.append(Unscored(competition_id, why))
            if len(found) == UNSCORED_MAX:
                break
    return found
