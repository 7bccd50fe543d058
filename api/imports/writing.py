"""Standings written as files of other programs, which `bring` reads again: a CLICS scoreboard, or TRF.

A ranking can be written if all its totals come from results that such a file has: one contest, or rounds of games. What
is not kept here, such as ratings and tries at unsolved problems, is left out.
"""

from collections import Counter
from datetime import tzinfo
from typing import Literal

from api.imports.written import LINES_WRITTEN_MAX, Written, WrittenLine, unwritable
from api.imports.written_scoreboard import scoreboard
from api.imports.written_trf import report
from engine.domain.scoring import NotRead, choose, wanted
from engine.domain.steps import Steps
from engine.domain.terms import CompetitorId, Counts, RankingId, UnityId
from engine.process.time_slices import in_time_slices
from projections.answers.board_table import BoardTable, BoardTableQuestion
from projections.answers.view import View, ask
from projections.board.board import Board, Competition, Ranking

WrittenForm = Literal["clics", "trf"]


async def written(view: View, ranking_id: RankingId | None, form: WrittenForm, *, with_keys: bool) -> str:
    """The standings of a ranking (None: the first one) in this form. `with_keys`: by the organiser's ids. Raises
    NotFound, Unacceptable and TooMuchWork."""
    table = await ask(view, BoardTableQuestion(ranking_id=ranking_id, limit=LINES_WRITTEN_MAX, form=False))
    if table.count > LINES_WRITTEN_MAX:
        raise unwritable(f"it has more than {LINES_WRITTEN_MAX:,} competitors")
    found = await in_time_slices(_written(view.live.board, table, await view.name(), view.zone, with_keys))
    return scoreboard(found) if form == "clics" else report(found)


def _written(board: Board, table: BoardTable, tournament: str, zone: tzinfo, with_keys: bool) -> Steps[Written]:
    ranking = board.rankings[table.ranking_id]
    given = Counter[tuple[CompetitorId, UnityId]]()
    competitions = []
    for number, competition_id in enumerate(board.competitions, start=1):
        if number % 20 == 0:
            yield
        competition = board.competitions[competition_id]
        if competition.voided_at is None and (gives := _gives(ranking, competition)) is not None:
            competitions.append(competition)
            given.update(gives)
    positions = {line.competitor_id: line for line in table.lines}
    lines = []
    for competitor_id in ranking.participants:
        for unity_id, unity in ranking.unities.items():
            if unity.counts is not Counts.SUM or unity.totals.get(competitor_id, 0) != given[competitor_id, unity_id]:
                raise unwritable(f"the total of {board.competitors[competitor_id].name} is not that of results")
        competitor = board.competitors[competitor_id]
        key = competitor.key if with_keys else None
        position = positions[competitor_id].position if competitor_id in positions else 0
        lines.append(WrittenLine(competitor_id=competitor_id, name=competitor.name, key=key or "", position=position))
    name = ranking.name if ranking.name == tournament else f"{tournament}: {ranking.name}"
    return Written(
        name=name,
        end=table.sequence,
        at=table.recorded_at,
        zone=zone,
        ranking=ranking,
        lines=lines,
        competitions=competitions,
    )


def _gives(ranking: Ranking, competition: Competition) -> dict[tuple[CompetitorId, UnityId], int] | None:
    """None: no scoring is for it. Raises Unacceptable."""
    scoring = choose(ranking.scorings, competition)
    if scoring is None:
        return None
    try:
        gives = wanted(scoring, competition, ranking)
    except NotRead as error:
        raise unwritable(f"a result cannot be read: {error.why}") from error
    return {(one, unity): amount for (one, unity), amount in gives.items() if one not in competition.struck}
