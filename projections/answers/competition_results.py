"""The results that a competition had."""

from msgspec import Struct

from engine.domain.terms import CompetitionId
from projections.answers.view import Question, View
from projections.past.recorded_results import RecordedResult, recorded_results


class CompetitionResults(Struct, frozen=True):
    """`results`: the first one is that with which it was added; the last one is in force."""

    results: list[RecordedResult]


class CompetitionResultsQuestion(Question[CompetitionResults], frozen=True):
    """Raises NotFound, and as `Past`."""

    competition_id: CompetitionId

    async def answered(self, view: View) -> CompetitionResults:
        view.competition(self.competition_id)
        live, ids = view.live, [self.competition_id]
        found = await recorded_results(view.past, live.tournament_id, live.board, ids, live.head.sequence)
        return CompetitionResults(found[self.competition_id])
