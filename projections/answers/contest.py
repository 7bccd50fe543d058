"""The problems of a contest: who solved which, when and after how many tries."""

from typing import Final

from msgspec import Struct

from engine.domain.awards import Scoring
from engine.domain.problems import TriedProblem, problem_of
from engine.domain.scoring import choose, performances_of
from engine.domain.steps import Steps
from engine.domain.terms import CompetitorId, RankingId, UnityId
from engine.process.time_slices import in_time_slices
from projections.answers.board_table import BoardTable, BoardTableQuestion
from projections.answers.rounds import ROUND_COMPETITIONS_MAX, around_now
from projections.answers.view import Question, View, ask
from projections.board.board import Competition

CONTEST_TEAMS_MAX: Final = 150
"""Teams of a contest whose problems are shown: the first of the table."""
PROBLEMS_MAX: Final = 30
"""Problems of a contest that are shown: the first by their labels."""

Tried = dict[CompetitorId, dict[str, TriedProblem]]


class Contest(Struct, frozen=True, kw_only=True):
    """The last contest of a ranking. `table`: the first lines of the ranking. `labels`: those of its problems, in
    order; none if there is no contest, or if its results name no problems. `tried`: the problems of each team by their
    labels. `first`: the minute in which each problem was solved first."""

    table: BoardTable
    labels: list[str]
    tried: Tried
    first: dict[str, int]


class ContestQuestion(Question[Contest], frozen=True, kw_only=True):
    """Raises NotFound, and as `View.sums` and BoardTableQuestion."""

    ranking_id: RankingId
    unity_id: UnityId | None = None

    async def answered(self, view: View) -> Contest:
        table = await ask(view, BoardTableQuestion(ranking_id=self.ranking_id, limit=CONTEST_TEAMS_MAX, form=False))
        around, board = await around_now(view, self.ranking_id), view.live.board
        count = len(board.competitions)
        recent = [*board.competitions.run(count - ROUND_COMPETITIONS_MAX + 1, count)]
        scorings = board.rankings[self.ranking_id].scorings
        contests = (
            one
            for its, one in reversed(recent)
            if one.result
            and one.voided_at is None
            and around.belongs(its, one)
            and counts_problems(choose(scorings, one))
        )
        tried = await in_time_slices(_tried(next(contests, None)))
        labels = sorted({label for its in tried.values() for label in its}, key=lambda label: (len(label), label))
        first: dict[str, int] = {}
        for one in [one for its in tried.values() for one in its.values()]:
            if one.minute is not None:
                first[one.label] = min(one.minute, first.get(one.label, one.minute))
        return Contest(table=table, labels=labels[:PROBLEMS_MAX], tried=tried, first=first)


def counts_problems(scoring: Scoring | None) -> bool:
    """Whether it scores a contest of solved problems."""
    return scoring is not None and any(award.value == "solved" for award in scoring.awards)


def _tried(contest: Competition | None) -> Steps[Tried]:
    found: Tried = {}
    performances = None if contest is None else performances_of(contest.participants, contest.result)
    for one, performance in ({} if performances is None else performances).items():
        problems = [problem for part in performance.split() if (problem := problem_of(part)) is not None]
        found[one] = {problem.label: problem for problem in problems if problem.label}
        yield
    return found
