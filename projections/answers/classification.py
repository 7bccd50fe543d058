"""The classification of a ranking."""

from collections.abc import Sequence as Items
from datetime import datetime
from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from engine.domain.events import Criterion
from engine.domain.notation import Notation
from engine.domain.terms import CompetitorId, Sequence
from engine.process.time_slices import in_time_slices
from projections.answers.boards import board_at
from projections.answers.criteria import Criteria, criteria_shape
from projections.answers.explainer import ClassifiedNeighbours
from projections.answers.tables import (
    TableQuestion,
    earlier_of,
    earlier_positions,
    found,
    moved,
    selection_of,
    unplaced,
)
from projections.answers.view import Question, View
from projections.board.board import Ranking
from projections.board.classification import Classified, in_force, value_notations
from projections.board.tiebreaks import Broken, LeftOut, PlayKind, scale_of, shown_value


class ClassificationLine(Struct, frozen=True, gc=False):
    """One competitor's line. `values`: one for each criterion, null if it was not needed. `decided_by`: the number,
    from 0, of the criterion that separates it from the line above in the whole table. `overall`, in a sub-table only:
    the position in the whole table. `moved`, if requested: places gained since then, negative if lost; null for a
    competitor outside this table then. `placed`: false if there is no value of the first criterion, because nothing of
    theirs counts; otherwise absent."""

    competitor_id: CompetitorId
    position: int
    values: list[int | None]
    decided_by: int | None
    overall: int | UnsetType = UNSET
    moved: int | None | UnsetType = UNSET
    placed: bool | UnsetType = UNSET


class Classification(Struct, frozen=True, kw_only=True):
    """`criteria` are those in force: the declared ones, or the main unity alone. `lines`: the total number of lines; in
    a sub-table, its own. `on`, if requested: only points that had taken place by then count."""

    criteria: Criteria
    sequence: Sequence
    recorded_at: datetime
    lines: int
    standings: list[ClassificationLine]
    on: datetime | UnsetType = UNSET


class ClassificationQuestion(TableQuestion, Question[Classification], frozen=True, kw_only=True):
    """A window of the classification, now or at a past moment; without a window, its first lines.

    Raises NotFound if there was no such moment, Unacceptable if the window names a competitor outside the ranking or
    too many have the tag, and TooMuchWork.
    """

    async def answered(self, view: View) -> Classification:
        at = await board_at(view, self.ranking_id, self.moment, self.on)
        selection = await selection_of(at, self.tag)
        upto = view.live.head.sequence
        async with at.classified(self.ranking_id) as lines:
            head, ranking = at.head, at.board.rankings[self.ranking_id]
            criteria = in_force(ranking)
            read = await in_time_slices(found(self, lines, selection))
        recorded_at = await at.recorded_at(head)
        positions = await earlier_positions(await earlier_of(view, self, upto), self, None, read.lines)
        notations = value_notations(ranking, criteria)
        return Classification(
            criteria=criteria_shape(criteria),
            sequence=head.sequence,
            recorded_at=recorded_at,
            lines=read.count,
            standings=[
                ClassificationLine(
                    line.competitor_id,
                    position,
                    shown_values(notations, line.values),
                    line.decided_by,
                    overall,
                    moved(line.competitor_id, position, positions),
                    unplaced_among(notations, line.values),
                )
                for line, position, overall in read.placed()
            ],
            on=UNSET if at.on is None else at.on,
        )


def classification_lines(
    ranking: Ranking, criteria: Items[Criterion], lines: Items[Classified]
) -> list[ClassificationLine]:
    notations = value_notations(ranking, criteria)
    return [
        ClassificationLine(
            line.competitor_id,
            line.position,
            shown_values(notations, line.values),
            line.decided_by,
            placed=unplaced_among(notations, line.values),
        )
        for line in lines
    ]


def shown_values(notations: Items[Notation], values: Items[int | None]) -> list[int | None]:
    """The values to show for the stored values of a line."""
    return [None if value is None else notation.shown(value) for notation, value in zip(notations, values, strict=True)]


def unplaced_among(notations: Items[Notation], values: Items[int | None]) -> Literal[False] | UnsetType:
    """As `unplaced`, of the stored values of a line."""
    first = values[0]
    return UNSET if first is None else unplaced(notations[0].shown(first))


class TiebreakPart(Struct, frozen=True, kw_only=True, gc=False):
    """What a round adds to a tie-break: `amount` divided by `games`, the number of games with the same opponent.
    `opponent_id`: who was paired. `dummy`: the round was not played, and counts as one against a dummy. `score`: of the
    opponent or dummy, multiplied by `points` if there are some. `left_out`: why it does not count."""

    round: int
    kind: PlayKind
    opponent_id: CompetitorId | None
    amount: int
    games: int
    dummy: bool
    score: int | None
    points: int | None
    left_out: LeftOut | None


class TiebreakValue(Struct, frozen=True, kw_only=True):
    """A competitor's value of the criterion with this number, from 0: the sum of the parts that count, divided by
    `divisor`. Of a direct encounter, the value is the place among the tied, and the sum is what was compared last."""

    criterion: int
    value: int
    divisor: int
    parts: list[TiebreakPart]


def tiebreak_value(number: int, criterion: Criterion, broken: Broken) -> TiebreakValue:
    scale = scale_of(criterion)
    return TiebreakValue(
        criterion=number,
        value=shown_value(criterion, broken),
        divisor=broken.divisor,
        parts=[
            TiebreakPart(
                round=one.round,
                kind=one.kind,
                opponent_id=one.opponent_id,
                amount=scale * one.amount.numerator,
                games=one.amount.denominator,
                dummy=one.is_dummy,
                score=one.score,
                points=one.times,
                left_out=one.left_out,
            )
            for one in broken.parts
        ],
    )


class Neighbours(Struct, frozen=True, kw_only=True):
    """A competitor's line by the declared criteria, and those above and below it; none if the competitor was not in the
    ranking. Null: that would take more sums of competitions than an answer may read. `tiebreaks`: the competitor's, if
    criteria have some."""

    criteria: Criteria
    standings: list[ClassificationLine] | None
    tiebreaks: list[TiebreakValue] | UnsetType = UNSET


def neighbours_of(ranking: Ranking, neighbours: ClassifiedNeighbours) -> Neighbours:
    criteria, lines = neighbours.criteria, neighbours.lines
    broken = [tiebreak_value(number, criteria[number], one) for number, one in neighbours.broken.items()]
    return Neighbours(
        criteria=criteria_shape(criteria),
        standings=None if lines is None else classification_lines(ranking, criteria, lines),
        tiebreaks=broken or UNSET,
    )
