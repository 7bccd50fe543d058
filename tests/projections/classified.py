"""Histories with ties, and classifications that a naive rule computes."""

import asyncio
import gc
from collections import deque
from collections.abc import AsyncGenerator, Collection, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Final

from hypothesis import strategies as st

from engine.domain import events
from engine.domain.events import Criterion, Delta, Event, Recorded
from engine.domain.steps import finished
from engine.domain.terms import OPERATOR, CompetitionId, CompetitorId, RankingId, Sequence, Sort, TournamentId, UnityId
from engine.log.heads import Head
from projections.board.board import Board
from projections.board.classification import Classified, classified, in_force
from projections.board.competition_sums import CompetitionSums, WhatCounts
from projections.live.sums import read_sums
from projections.live.tournament import LiveTournament
from tests.histories import SummedBoard, counted_of, drops, fold_events, with_sums

RANKING: Final = RankingId(1)
COMPETITORS: Final = [CompetitorId(n) for n in range(11, 18)]
UNITIES: Final = {UnityId(21): Sort.DESC, UnityId(22): Sort.ASC, UnityId(23): Sort.DESC}
Gains = list[tuple[CompetitionId | None, tuple[Delta, ...]]]
COMPETITIONS: Final = [CompetitionId(n) for n in range(31, 41)]
criteria_lists = st.lists(
    st.builds(
        Criterion,
        unity_id=st.sampled_from(list(UNITIES)),
        best=st.none() | st.integers(1, 3),
        among=st.none() | st.just("tied"),
        drop=drops,
    )
    | st.builds(Criterion, unity_id=st.sampled_from(list(UNITIES)), first=st.just(True)),
    max_size=5,
).map(tuple)


participants_of = st.lists(
    st.lists(st.sampled_from(COMPETITORS), unique=True, max_size=4).map(tuple),
    min_size=len(COMPETITIONS),
    max_size=len(COMPETITIONS),
)
gains = st.lists(
    st.tuples(
        st.none() | st.sampled_from(COMPETITIONS),
        st.lists(
            st.builds(Delta, st.sampled_from(COMPETITORS), st.sampled_from(list(UNITIES)), st.integers(-1, 1)),
            min_size=1,
            max_size=4,
        ).map(tuple),
    ),
    max_size=25,
)
voidings = st.sets(st.sampled_from(COMPETITIONS), max_size=3)


def history_of(
    criteria: tuple[Criterion, ...],
    participants: list[tuple[CompetitorId, ...]],
    given_points: Gains,
    voided: set[CompetitionId],
    unvoided: Collection[CompetitionId] = (),
) -> list[Event]:
    """What happened: everything of this, then the voiding of `voided`, and then the unvoiding of `unvoided`."""
    history: list[Event] = [
        *(events.CompetitorRegistered(competitor_id=c, name=f"C{c}") for c in COMPETITORS),
        events.RankingCreated(
            ranking_id=RANKING,
            name="Overall",
            participants=tuple(COMPETITORS),
            main_unity_id=next(iter(UNITIES)),
            main_unity_name="U21",
        ),
        *(
            events.UnityAdded(ranking_id=RANKING, unity_id=u, name=f"U{u}", sort=sort)
            for u, sort in UNITIES.items()
            if u != next(iter(UNITIES))
        ),
        events.ClassificationDeclared(ranking_id=RANKING, criteria=criteria),
        *(
            events.CompetitionAdded(competition_id=c, group_id=1, participants=its)
            for c, its in zip(COMPETITIONS, participants, strict=True)
        ),
    ]
    points = [
        events.PointsAdded(ranking_id=RANKING, deltas=deltas, competition_id=competition_id)
        for competition_id, deltas in given_points
    ]
    history += points
    for competition_id in sorted(voided):
        history.append(events.CompetitionVoided(competition_id=competition_id))
        history += reversals(points, competition_id, -1)
    for competition_id in sorted(voided.intersection(unvoided)):
        history.append(events.CompetitionUnvoided(competition_id=competition_id))
        history += reversals(points, competition_id, 1)
    return history


histories_with_ties: Final = st.builds(history_of, criteria_lists, participants_of, gains, voidings, voidings)


def reversals(points: list[events.PointsAdded], competition_id: CompetitionId, sign: int) -> list[Event]:
    return [
        events.PointsReversed(
            ranking_id=RANKING,
            deltas=tuple(Delta(d.competitor_id, d.unity_id, sign * d.amount) for d in event.deltas),
            competition_id=competition_id,
            reverses=Sequence(1),
        )
        for event in points
        if event.competition_id == competition_id
    ]


def board_of(history: list[Event]) -> SummedBoard:
    """With the sums of competitions, as if they had been read from the log."""
    board = Board()
    fold_events(board, *history)
    return with_sums(board, history)


def classification(board: SummedBoard, ranking_id: RankingId = RANKING) -> list[Classified]:
    ranking = board.rankings[ranking_id]
    return list(finished(classified(counted_of(board, ranking_id), in_force(ranking), ranking.participants)))


STEP_SECONDS_MAX: Final = 0.02
"""Of processor time. Steps are made to take a millisecond."""


@contextmanager
def frozen() -> Iterator[None]:
    """What is in memory is not searched for garbage, as it is not in a service."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def ranking_of(competitor_ids: Collection[CompetitorId], unity_id: UnityId) -> SummedBoard:
    board = Board()
    fold_events(
        board,
        *(events.CompetitorRegistered(competitor_id=c, name=f"C{c}") for c in competitor_ids),
        events.RankingCreated(
            ranking_id=RANKING,
            name="Overall",
            participants=tuple(competitor_ids),
            main_unity_id=unity_id,
            main_unity_name="points",
        ),
    )
    return with_sums(board, ())


NOW: Final = datetime(2024, 2, 29, tzinfo=UTC)


class RecordedLive(LiveTournament):
    """A live with its log. `waiting`: what is folded while the log is read, one event for each that is read."""

    def __init__(self) -> None:
        super().__init__(TournamentId(1), Head(Sequence(0), b""), Board())
        self.log: list[Recorded] = []
        self.waiting: deque[Recorded] = deque()

    def append(self, *history: Event) -> None:
        for event in history:
            self.go_on(Recorded(Sequence(self.head.sequence + 1), NOW, OPERATOR, None, event))

    def go_on(self, *run: Recorded) -> None:
        for recorded in run:
            self.log.append(recorded)
            self.fold([recorded], Head(recorded.sequence, b""))

    async def chunks(self, _live: LiveTournament, after: Sequence) -> AsyncGenerator[list[Recorded], None]:
        for recorded in self.log[after:]:
            yield [recorded]
            await asyncio.sleep(0)
            if self.waiting:
                self.go_on(self.waiting.popleft())

    async def read_sums(self, sequence: Sequence, counts: WhatCounts) -> CompetitionSums:
        assert sequence == self.head.sequence
        sums = CompetitionSums(counts.first)
        async for events_ in self.chunks(self, Sequence(0)):
            sums.take(events_[0], counts)
        return sums

    async def know_sums(self, ranking_id: RankingId) -> None:
        await read_sums(self, ranking_id, self.read_sums)


def live_at(log: list[Recorded]) -> RecordedLive:
    live = RecordedLive()
    live.go_on(*log)
    return live


def live_of(history: list[Event]) -> RecordedLive:
    live = RecordedLive()
    live.append(*history)
    return live


def turned(history: list[Event], match: CompetitionId) -> list[Event]:
    """What voiding a competition leads to, or unvoiding it if it is voided."""
    points = [event for event in history if isinstance(event, events.PointsAdded)]
    if match in board_of(history).voided:
        return [events.CompetitionUnvoided(competition_id=match), *reversals(points, match, 1)]
    return [events.CompetitionVoided(competition_id=match), *reversals(points, match, -1)]


def meanwhile(history: list[Event], more: list[Event]) -> list[Event]:
    """What may follow `history`: points and declarations of another one, a voiding or its opposite, and what changes
    the order of all lines."""
    voided = board_of(history).voided
    added = [
        event
        for event in more
        if (isinstance(event, events.PointsAdded) and event.competition_id not in voided)
        or isinstance(event, events.ClassificationDeclared)
    ]
    return [
        *added,
        *turned([*history, *added], COMPETITIONS[0]),
        events.CompetitionChanged(competition_id=COMPETITIONS[1], participants=tuple(COMPETITORS[:3])),
        events.UnityChanged(ranking_id=RANKING, unity_id=next(iter(UNITIES)), sort=Sort.ASC),
        events.ParticipantsChanged(ranking_id=RANKING, removed=tuple(COMPETITORS[2:5])),
    ]
