"""Who played whom in a ranking, with what result: each against each."""

from collections.abc import Collection
from typing import Final

from msgspec import Struct

from engine.domain.scoring import turned
from engine.domain.steps import Steps
from engine.domain.terms import CompetitionId, CompetitorId, RankingId, UnityId
from engine.process.time_slices import in_time_slices
from projections.answers.around import Around
from projections.answers.board_table import BoardTableQuestion
from projections.answers.rounds import ROUND_COMPETITIONS_MAX, around_now
from projections.answers.view import Question, View, ask
from projections.board.board import Board, Competition

CROSS_COMPETITORS_MAX: Final = 30
"""Competitors of a cross table: the first of the table."""

Pair = tuple[CompetitorId, CompetitorId]
CrossResults = dict[Pair, list[tuple[CompetitionId, str]]]


class CrossTable(Struct, frozen=True, kw_only=True):
    """`competitors`: in the order of the table; `left_out`: how many more there are. `results` of
    the first against the second: of matches in which the first is named first, as of a home team, or else of all. They
    read for the first, if they can be turned; empty: no result yet."""

    competitors: list[CompetitorId]
    left_out: int
    results: CrossResults


class CrossTableQuestion(Question[CrossTable], frozen=True, kw_only=True):
    """`unity_id`: whose order decides; None: the classification. Raises NotFound, and as `View.sums` and
    BoardTableQuestion."""

    ranking_id: RankingId
    unity_id: UnityId | None = None

    async def answered(self, view: View) -> CrossTable:
        table = await ask(
            view,
            BoardTableQuestion(
                ranking_id=self.ranking_id, unity_id=self.unity_id, limit=CROSS_COMPETITORS_MAX, form=False
            ),
        )
        competitors = [line.competitor_id for line in table.lines]
        around = await around_now(view, self.ranking_id)
        results = await in_time_slices(_results(view.live.board, around, {*competitors}))
        return CrossTable(competitors=competitors, left_out=table.count - len(competitors), results=results)


def _results(board: Board, around: Around, among: Collection[CompetitorId]) -> Steps[CrossResults]:
    count = len(board.competitions)
    met: dict[Pair, list[tuple[CompetitionId, Competition]]] = {}
    for competition_id, one in board.competitions.run(count - ROUND_COMPETITIONS_MAX + 1, count):
        yield
        if (
            len(one.participants) == 2
            and one.voided_at is None
            and all(its in among for its in one.participants)
            and around.belongs(competition_id, one)
        ):
            met.setdefault((one.participants[0], one.participants[1]), []).append((competition_id, one))

    found: CrossResults = {}
    for (first, second), matches in met.items():
        yield
        results = [(its, one.result if isinstance(one.result, str) else "") for its, one in matches]
        found[first, second] = results
        if (second, first) not in met:
            found[second, first] = [(its, turned(one) or one) for its, one in results]
    return found
