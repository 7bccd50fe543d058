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


class CrossResult(Struct, frozen=True, gc=False):
    """A result, empty: there is none yet. `struck`: it does not count for somebody whom the cell is about."""

    competition_id: CompetitionId
    result: str
    struck: bool


Pair = tuple[CompetitorId, CompetitorId]
CrossResults = dict[Pair, list[CrossResult]]


class CrossTable(Struct, frozen=True, kw_only=True):
    """`competitors`: in the order of the table; `left_out`: how many more there are. `results` of
    the first against the second: of matches in which the first is named first, as of a home team, or else of all. They
    read for the first, if they can be turned. The former are about both, the latter about the first. `others`: whether
    there are competitions of other numbers of participants."""

    competitors: list[CompetitorId]
    left_out: int
    results: CrossResults
    others: bool


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
        results, others = await in_time_slices(_results(view.live.board, around, {*competitors}))
        left_out = table.count - len(competitors)
        return CrossTable(competitors=competitors, left_out=left_out, results=results, others=others)


def _results(board: Board, around: Around, among: Collection[CompetitorId]) -> Steps[tuple[CrossResults, bool]]:
    """The results, and whether there are competitions of other numbers of participants."""
    count, others = len(board.competitions), False
    met: dict[Pair, list[tuple[CompetitionId, Competition]]] = {}
    for competition_id, one in board.competitions.run(count - ROUND_COMPETITIONS_MAX + 1, count):
        yield
        if one.voided_at is not None:
            continue
        if len(one.participants) != 2:
            others = others or around.belongs(competition_id, one)
        elif all(its in among for its in one.participants) and around.belongs(competition_id, one):
            met.setdefault((one.participants[0], one.participants[1]), []).append((competition_id, one))

    found: CrossResults = {}
    for (first, second), matches in met.items():
        yield
        is_alone = (second, first) not in met
        for its, one in matches:
            result = one.result if isinstance(one.result, str) else ""
            struck = first in one.struck if is_alone else bool(one.struck)
            found.setdefault((first, second), []).append(CrossResult(its, result, struck))
            if is_alone:
                theirs = CrossResult(its, turned(result) or result, second in one.struck)
                found.setdefault((second, first), []).append(theirs)
    return found, others
