"""What a competitor's page shows: place, record, next matches, opponents, and how the place came about."""

from collections.abc import Iterable
from collections.abc import Sequence as Items
from datetime import datetime
from typing import Final

from msgspec import Struct

from engine.domain.errors import TooMuchWork
from engine.domain.scoring import turned
from engine.domain.terms import FIRST_TIME, CompetitionId, CompetitorId, RankingId, Sequence, UnityId
from engine.process.time_slices import all_of
from projections.answers.around import FIXTURES_SHOWN, ShownCompetition
from projections.answers.board_table import BoardTable, BoardTableQuestion
from projections.answers.classification import ClassificationLine, ClassificationQuestion
from projections.answers.competitions import CompetitionListQuestion
from projections.answers.explanation import ExplainQuestion, Explanation
from projections.answers.lookup import competitor_of, ranking_of, unity_of
from projections.answers.names import NamesById
from projections.answers.rounds import around_now
from projections.answers.view import Question, View, ask

STEPS_SHOWN: Final = 100
"""Steps of an explanation on one page."""
MET_MAX: Final = 300
"""Competitions of a competitor among which a page looks for fixtures and opponents: the newest."""


class Met(Struct, frozen=True, kw_only=True):
    """A match of two. `result`: as it reads for the competitor; empty: there is none yet, or only a winner. `won`:
    None: no winner was declared. `took_place`: None: it is not known. `struck`: it does not count for them."""

    competition_id: CompetitionId
    result: str
    won: bool | None
    took_place: datetime | None
    struck: bool


class AboutCompetitor(Struct, frozen=True, kw_only=True):
    """`table`: only the competitor's line; None: they are not in the table, or it takes too much work. `around`: the
    lines of the classification from the one above to the one below; none if a unity was requested. `next`: the first
    fixtures. `opponents`: whom the competitor met or will meet, in the order of the first match. Past moments have
    neither. `names`: as of the moment."""

    explanation: Explanation
    table: BoardTable | None
    around: list[ClassificationLine]
    next: list[ShownCompetition]
    opponents: dict[CompetitorId, list[Met]]
    names: NamesById


class AboutCompetitorQuestion(Question[AboutCompetitor], frozen=True, kw_only=True):
    """A competitor in a ranking, after the event `at` (None: now), with what had taken place by `on` (None: all). `to`:
    only the explanation up to this event; None: everything. `unity_id`: None: the classification. Raises as
    ExplainQuestion and BoardTableQuestion."""

    ranking_id: RankingId
    competitor_id: CompetitorId
    unity_id: UnityId | None = None
    at: Sequence | None = None
    on: datetime | None = None
    to: Sequence | None = None

    async def answered(self, view: View) -> AboutCompetitor:
        head = view.live.head.sequence
        moment = self.at or head
        board, end = await view.board_after(moment), min(moment, self.to or moment)
        unity_id = unity_of(board, self.ranking_id, self.unity_id)
        competitor_of(board, self.competitor_id)
        explanation = await ask(
            view,
            ExplainQuestion(
                ranking_id=self.ranking_id,
                competitor_id=self.competitor_id,
                unity_id=unity_id,
                end=end,
                on=self.on,
                limit=STEPS_SHOWN,
                latest=True,
            ),
        )
        table, around, matches = None, list[ClassificationLine](), list[ShownCompetition]()
        try:
            if end == moment and self.competitor_id in ranking_of(board, self.ranking_id).participants:
                table, around = await self._placed(view, None if end == head else end)
            if end == head and self.on is None:
                matches = await self._matches(view, unity_id)
        except TooMuchWork:  # the explanation says what it can
            pass
        return AboutCompetitor(
            explanation=explanation,
            table=table,
            around=around,
            next=[one for one in matches if not _is_over(one)][:FIXTURES_SHOWN],
            opponents=_opponents(matches, self.competitor_id),
            names=NamesById(board),
        )

    async def _placed(self, view: View, at: Sequence | None) -> tuple[BoardTable | None, list[ClassificationLine]]:
        """The table with the competitor's line alone, and the lines of the classification around it."""
        its = self.ranking_id, self.competitor_id
        table = await ask(
            view,
            BoardTableQuestion(ranking_id=its[0], unity_id=self.unity_id, at=at, on=self.on, line=its[1], limit=1),
        )
        around = list[ClassificationLine]()
        if self.unity_id is None:
            question = ClassificationQuestion(ranking_id=its[0], around=its[1], span=1, at_sequence=at, on=self.on)
            around = (await ask(view, question)).standings
        return (table if [line.competitor_id for line in table.lines] == [its[1]] else None), around

    async def _matches(self, view: View, unity_id: UnityId) -> list[ShownCompetition]:
        """Those of the ranking, in order of time."""
        its = CompetitionListQuestion(competitor_id=self.competitor_id, voided=False, newest_first=True, limit=MET_MAX)
        found = (await ask(view, its)).competitions
        around = await around_now(view, self.ranking_id)
        hers = [one for one, competition in found.items() if around.belongs(one, competition)]
        return sorted(await all_of(around.shown(one, unity_id) for one in hers), key=_in_time)


def _in_time(one: ShownCompetition) -> tuple[bool, datetime, int]:
    return one.took_place is None, one.took_place or FIRST_TIME, one.competition.number


def _is_over(one: ShownCompetition) -> bool:
    return one.competition.result is not None or one.competition.winner_id is not None


def _opponents(matches: Iterable[ShownCompetition], her: CompetitorId) -> dict[CompetitorId, list[Met]]:
    found: dict[CompetitorId, list[Met]] = {}
    for one in matches:
        who: Items[CompetitorId] = one.competition.participants
        if len(who) != 2:
            continue
        is_second, winner = her == who[1], one.competition.winner_id
        result = one.competition.result if isinstance(one.competition.result, str) else ""
        met = Met(
            competition_id=one.competition_id,
            result=(turned(result) or result) if is_second else result,
            won=None if winner is None else winner == her,
            took_place=one.took_place,
            struck=her in one.competition.struck,
        )
        found.setdefault(who[0] if is_second else who[1], []).append(met)
    return found
