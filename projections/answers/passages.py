"""Points of a ranking in order, for clients that add them up: in the order of the log, or of time."""

from collections.abc import Iterable, Iterator
from collections.abc import Sequence as Items
from datetime import datetime
from typing import Final

from msgspec import Struct

from engine.domain.errors import Unacceptable
from engine.domain.events import Delta, Points
from engine.domain.notation import Notation
from engine.domain.terms import CompetitorId, RankingId, Sequence, Sort, UnityId
from engine.process.time_slices import all_of
from projections.answers.names import NamesById
from projections.answers.view import Question, View
from projections.board.board import Board, Competition, Ranking
from projections.board.classification import by_totals_alone, in_force
from projections.past import folds, passage
from projections.past.effects import Effects
from projections.past.folds import TIMELINE_EVENTS_MAX
from projections.past.timeline import TimelineStep

PASSAGE_TOTALS_MAX: Final = 25_000
"""Totals of a ranking, competitors times unities, up to which passages are shown. For larger rankings, the service
makes the table of each moment."""


class PassageUnity(Struct, frozen=True, kw_only=True):
    """`totals`: at the beginning, in the order of the passage's competitors."""

    unity_id: UnityId
    name: str
    sort: Sort
    notation: Notation
    totals: list[int]


class PassageStep(Struct, frozen=True, kw_only=True):
    """Points. `took_place`: when the competition began, or, without one, when they were recorded. `deltas`: by how much
    stored totals change. `competitions`: that gave them, in a timeline."""

    sequence: int
    recorded_at: datetime
    took_place: datetime
    deltas: list[Delta]
    competitions: list[Competition] = []


class ShownPassage(Struct, frozen=True, kw_only=True):
    """The history of a ranking after the event `first` up to `last`; of a timeline, its steps, numbered from 1. `end`:
    the last event of the log. `criteria`: the unities by which the classification is ordered; None: more than totals
    decide."""

    first: int
    last: int
    end: Sequence
    names: NamesById
    competitor_ids: Items[CompetitorId]
    unities: list[PassageUnity]
    criteria: list[UnityId] | None
    steps: list[PassageStep]


class PassageQuestion(Question[ShownPassage], frozen=True, kw_only=True):
    """The passage that shows the event `at`; without competitors, if there was no such ranking yet. Raises NotFound and
    Unacceptable."""

    ranking_id: RankingId
    at: Sequence

    async def answered(self, view: View) -> ShownPassage:
        live = view.live
        view.refuse_hidden(self.ranking_id)
        found = await folds.passage_at(view.past, live.tournament_id, self.ranking_id, self.at, live.head.sequence)
        return await told(found, self.ranking_id, live.head.sequence)


class TimelineQuestion(Question[ShownPassage], frozen=True, kw_only=True):
    """What took place in a ranking, up to now. None: the first ranking. Raises NotFound and TooMuchWork."""

    ranking_id: RankingId | None = None

    async def answered(self, view: View) -> ShownPassage:
        tournament_id, ranking_id = view.live.tournament_id, view.ranking_in(view.live.board, self.ranking_id)
        then = await view.at(ranking_id, None)
        board, ranking = then.board, then.board.rankings[ranking_id]
        steps = await folds.timeline(view.past, tournament_id, board, ranking_id, then.sequence)
        is_short = is_folded(ranking)
        ids = ranking.participants.listed() if is_short else []
        return ShownPassage(
            first=0,
            last=len(steps),
            end=then.sequence,
            names=NamesById(board),
            competitor_ids=ids,
            unities=await all_of(_unities(ranking, ids, is_empty=True)),
            criteria=_criteria(ranking) if is_short else None,
            steps=await all_of(_steps_in_time(steps, board)),
        )


async def told(found: passage.Passage, ranking_id: RankingId, end: Sequence) -> ShownPassage:
    """The passage of a ranking, in a log that ends with the event `end`. Raises Unacceptable."""
    ranking = found.board.rankings.get(ranking_id)
    names = NamesById(found.board)
    if ranking is None:
        bounds = {"first": found.first, "last": found.last, "end": end}
        return ShownPassage(**bounds, names=names, competitor_ids=[], unities=[], criteria=[], steps=[])
    if not is_folded(ranking):
        raise Unacceptable(f"Passages are shown for at most {PASSAGE_TOTALS_MAX:,} totals: competitors times unities.")
    ids = ranking.participants.listed()
    return ShownPassage(
        first=found.first,
        last=found.last,
        end=end,
        names=names,
        competitor_ids=ids,
        unities=await all_of(_unities(ranking, ids)),
        criteria=_criteria(ranking),
        steps=await all_of(_steps(found, ranking)),
    )


def has_timeline(end: Sequence) -> bool:
    """Whether the points of a log that ends with this event can be put in order of time."""
    return end <= TIMELINE_EVENTS_MAX


def is_folded(ranking: Ranking) -> bool:
    """Whether browsers add up the totals of a ranking."""
    return len(ranking.participants) * len(ranking.unities) <= PASSAGE_TOTALS_MAX


def _unities(ranking: Ranking, ids: Items[CompetitorId], *, is_empty: bool = False) -> Iterator[PassageUnity]:
    """The unities with the totals of these competitors, or, if `is_empty`, with totals of 0."""
    for unity_id, unity in ranking.unities.items():
        yield PassageUnity(
            unity_id=unity_id,
            name=unity.name,
            sort=unity.sort,
            notation=unity.notation,
            totals=[0] * len(ids) if is_empty else [unity.totals.get(one, 0) for one in ids],
        )


def _steps(found: passage.Passage, ranking: Ranking) -> Iterator[PassageStep]:
    effects = Effects(ranking)
    for recorded in found.points:
        event = recorded.event
        assert isinstance(event, Points)
        yield PassageStep(
            sequence=recorded.sequence,
            recorded_at=recorded.recorded_at,
            took_place=found.clock(recorded),
            deltas=[*effects.of(event)],
        )


def _steps_in_time(steps: Iterable[TimelineStep], board: Board) -> Iterator[PassageStep]:
    for number, step in enumerate(steps, start=1):
        yield PassageStep(
            sequence=number,
            recorded_at=step.recorded_at,
            took_place=step.at,
            deltas=[Delta(who, unity_id, amount) for (who, unity_id), amount in step.deltas.items() if amount],
            competitions=[board.competitions[one] for one in step.competitions if one in board.competitions],
        )


def _criteria(ranking: Ranking) -> list[UnityId] | None:
    criteria = in_force(ranking)
    return [one.unity_id for one in criteria] if by_totals_alone(criteria) else None
