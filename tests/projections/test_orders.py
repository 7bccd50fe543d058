"""The orders of a tournament: made when asked for, kept current, dropped when they would cost more than they save."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import count, cycle
from typing import Any, Final

import pytest
from msgspec import UNSET, UnsetType

from engine.domain.events import (
    Delta,
    Event,
    ParticipantsChanged,
    PointsAdded,
    RankingModified,
    Recorded,
    UnityChanged,
)
from engine.domain.terms import OPERATOR, CompetitorId, RankingId, Sequence, Sort, TournamentId, UnityId
from engine.log.heads import Head
from projections.board import order
from projections.board.board import Board, Ranking, Unity
from projections.columns.enrolment import Enrolment, Totals
from projections.live import orders
from projections.live.tournament import LiveTournament
from tests.bounds import Bounds
from tests.positions import standings
from tests.projections.pacing import AlwaysOver

NOW: Final = datetime(2024, 2, 29, tzinfo=UTC)
RANKING: Final = RankingId(7)
POINTS: Final = UnityId(8)
FOULS: Final = UnityId(9)
LIST: Final = tuple(CompetitorId(n) for n in range(1, 101))


@pytest.fixture
def live() -> LiveTournament:
    enrolment = Enrolment(LIST)
    unities = {
        POINTS: Unity(number=1, name="Points", sort=Sort.DESC, totals=Totals(enrolment, {c: c % 7 for c in LIST})),
        FOULS: Unity(number=2, name="Fouls", sort=Sort.ASC, totals=Totals(enrolment)),
    }
    ranking = Ranking(
        number=1,
        place=1,
        name="Season",
        description=None,
        participants=enrolment,
        unities=unities,
        updated_at=NOW,
        revised=Sequence(1),
    )
    return LiveTournament(TournamentId(1), Head(Sequence(1), b""), Board(rankings={RANKING: ranking}))


def fold(live: LiveTournament, *events: Event) -> None:
    for event in events:
        sequence = Sequence(live.head.sequence + 1)
        live.fold([Recorded(sequence, NOW, OPERATOR, None, event)], Head(sequence, b""))


def points(*lines: tuple[int, UnityId, int]) -> PointsAdded:
    return PointsAdded(ranking_id=RANKING, deltas=tuple(Delta(CompetitorId(c), u, amount) for c, u, amount in lines))


def listed(*competitor_ids: CompetitorId) -> RankingModified:
    return RankingModified(ranking_id=RANKING, participants=competitor_ids, main_unity_name="Points")


def joined(*competitor_ids: int) -> ParticipantsChanged:
    return ParticipantsChanged(ranking_id=RANKING, added=tuple(map(CompetitorId, competitor_ids)))


def left(*competitor_ids: int) -> ParticipantsChanged:
    return ParticipantsChanged(ranking_id=RANKING, removed=tuple(map(CompetitorId, competitor_ids)))


def redefined(unity_id: UnityId, *, name: str | UnsetType = UNSET, sort: Sort | UnsetType = UNSET) -> UnityChanged:
    return UnityChanged(ranking_id=RANKING, unity_id=unity_id, name=name, sort=sort)


async def assert_current(live: LiveTournament, unity_id: UnityId) -> object:
    order = await live.orders.of(RANKING, unity_id)
    ranking = live.board.rankings[RANKING]
    unity = ranking.unities[unity_id]
    expected = standings(ranking.participants, unity.totals, unity.sort)
    assert order.standings(0, 1_000) == expected
    return order


async def test_an_order_is_kept_while_totals_and_members_change(live: LiveTournament) -> None:
    first = await assert_current(live, POINTS)
    fold(live, points((3, POINTS, 9), (3, POINTS, -2), (4, FOULS, 1)), points((3, POINTS, 1), (999, POINTS, 1)))
    assert await assert_current(live, POINTS) is first
    fold(live, listed(*LIST))
    fold(live, points((5, POINTS, 9)))
    assert await assert_current(live, POINTS) is first
    fold(live, joined(101, 102), points((5, POINTS, 9), (102, POINTS, 9)), left(7), joined(7, 5, 103), left(103, 8))
    assert await assert_current(live, POINTS) is first
    assert 8 not in live.board.rankings[RANKING].participants
    fold(live, listed(*LIST[::-1]))
    fold(live, points((5, POINTS, 9)))
    assert await assert_current(live, POINTS) is not first
    await assert_current(live, FOULS)


async def test_an_order_is_made_again_for_another_sort_and_kept_for_another_name(live: LiveTournament) -> None:
    first, fouls = await assert_current(live, POINTS), await assert_current(live, FOULS)
    fold(live, redefined(POINTS, name="Score"), redefined(POINTS, sort=Sort.DESC), points((3, POINTS, 9)))
    assert await assert_current(live, POINTS) is first
    fold(live, redefined(POINTS, sort=Sort.ASC), points((3, POINTS, 9)))
    assert await assert_current(live, POINTS) is not first
    assert await assert_current(live, FOULS) is fouls


async def test_an_order_whose_lines_nearly_all_moved_is_dropped_and_made_again(live: LiveTournament) -> None:
    first = await assert_current(live, POINTS)
    kept_bytes = live.orders.size_bytes
    fold(live, *(points((c, POINTS, c)) for c in LIST[:76]))
    assert live.orders.size_bytes == kept_bytes
    assert await assert_current(live, POINTS) is first
    fold(live, *(points((c, POINTS, c)) for c in LIST[:77]))
    assert live.orders.size_bytes == 0
    second = await assert_current(live, POINTS)
    assert second is not first
    fold(live, joined(*range(101, 200)))  # at once
    assert live.orders.size_bytes == 0
    assert await assert_current(live, POINTS) is not second


async def test_an_order_that_could_not_be_made_or_kept_current_is_made_again(
    live: LiveTournament, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("__init__", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(order.OrderedLines, name, _failing)
            with pytest.raises(ZeroDivisionError):
                await live.orders.of(RANKING, POINTS)
        await assert_current(live, POINTS)
        fold(live, points((3, POINTS, 9), (4, POINTS, 9)))
    for _ in range(2):
        fold(live, redefined(POINTS, sort=Sort.ASC), redefined(POINTS, sort=Sort.DESC))
        await assert_current(live, POINTS)


def _failing(*_: object) -> None:
    raise ZeroDivisionError


async def test_an_order_counts_in_the_size_of_its_live(live: LiveTournament) -> None:
    before = live.size_bytes()
    order = await live.orders.of(RANKING, POINTS)
    assert live.size_bytes() == before + live.orders.size_bytes
    assert live.orders.size_bytes > order.size_bytes
    await live.orders.of(RANKING, POINTS)
    assert live.size_bytes() == before + live.orders.size_bytes
    live.orders.clear()
    assert live.size_bytes() == before


@pytest.mark.parametrize("name", ["ORDERS_MAX", "ORDERS_BYTES_MAX"])
async def test_orders_are_bounded_and_the_last_one_stays(live: LiveTournament, bounds: Bounds, name: str) -> None:
    bounds(**{name: 1})
    first = await live.orders.of(RANKING, POINTS)
    size_bytes = live.orders.size_bytes
    assert await live.orders.of(RANKING, POINTS) is first
    other = await assert_current(live, FOULS)
    assert live.orders.size_bytes <= size_bytes
    assert await assert_current(live, FOULS) is other
    assert await assert_current(live, POINTS) is not first


async def test_an_order_is_made_though_the_list_changes_at_each_pause(
    live: LiveTournament, monkeypatch: pytest.MonkeyPatch, bounds: Bounds
) -> None:
    bounds(MADE_AT_ONCE_MAX=0)
    monkeypatch.setattr(orders, "TimeSlice", AlwaysOver)
    most = 40
    lists = iter([listed(*LIST[n:]) for n in range(1, most)])
    AlwaysOver.meanwhile = lambda: fold(live, *(event for event in [next(lists, None)] if event))
    await live.orders.of(RANKING, POINTS)
    assert len(live.board.rankings[RANKING].participants) > len(LIST) - most + 1


async def test_what_changes_while_an_order_is_made_is_in_it(
    live: LiveTournament, monkeypatch: pytest.MonkeyPatch, bounds: Bounds
) -> None:
    """A point after each time slice; in the middle another list, then another sort; in the end the asker has gone."""
    bounds(MADE_AT_ONCE_MAX=0)
    monkeypatch.setattr(orders, "TimeSlice", AlwaysOver)
    changes: Iterator[Event] = (points((n % 100 + 1, POINTS, n + 1)) for n in count())
    AlwaysOver.meanwhile = lambda: fold(live, next(changes)) if live.head.sequence < 40 else None
    await assert_current(live, POINTS)
    assert live.head.sequence >= 4
    live.orders.clear()
    lists = iter([listed(*LIST[50:]), listed(*LIST[20:])])
    AlwaysOver.meanwhile = lambda: fold(live, *(event for event in [next(lists, None)] if event))
    await assert_current(live, POINTS)
    live.orders.clear()
    sorts = iter([redefined(POINTS, sort=Sort.ASC), points((7, POINTS, 70)), redefined(POINTS, sort=Sort.DESC)])
    AlwaysOver.meanwhile = lambda: fold(live, *(event for event in [next(sorts, None)] if event))
    await assert_current(live, POINTS)
    live.orders.clear()
    AlwaysOver.meanwhile = lambda: None
    asking = asyncio.create_task(live.orders.of(RANKING, POINTS))
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    fold(live, points((1, POINTS, 1)))
    assert live.orders.size_bytes == 0
    await assert_current(live, POINTS)


async def test_others_get_their_turns_however_many_lines_are_moved(
    live: LiveTournament, monkeypatch: pytest.MonkeyPatch
) -> None:
    await assert_current(live, POINTS)
    fold(live, points(*((n, POINTS, n) for n in range(1, 31))))
    turns = count()
    monkeypatch.setattr(orders, "_MOVED_AT_ONCE", 1)
    monkeypatch.setattr(orders, "TimeSlice", AlwaysOver)
    monkeypatch.setattr(AlwaysOver, "meanwhile", lambda: next(turns))
    await assert_current(live, POINTS)
    assert next(turns) >= 30


async def test_an_order_that_was_overtaken_twice_is_made_at_once(
    live: LiveTournament, monkeypatch: pytest.MonkeyPatch, bounds: Bounds
) -> None:
    """Its unity is sorted otherwise again and again."""
    at_once, make = list[bool](), orders.Orders._make

    async def noted(self: orders.Orders, *given: Any, **how: Any) -> None:
        at_once.append(how["at_once"])
        await make(self, *given, **how)

    sorts = cycle([redefined(POINTS, sort=Sort.ASC), redefined(POINTS, sort=Sort.DESC)])
    monkeypatch.setattr(orders.Orders, "_make", noted)
    bounds(MADE_AT_ONCE_MAX=0)
    monkeypatch.setattr(orders, "TimeSlice", AlwaysOver)
    monkeypatch.setattr(AlwaysOver, "meanwhile", lambda: None if len(at_once) > 2 else fold(live, next(sorts)))
    await assert_current(live, POINTS)
    assert at_once == [False, False, True]


async def test_an_order_does_not_wait_for_another_that_is_being_made(
    live: LiveTournament, monkeypatch: pytest.MonkeyPatch, bounds: Bounds
) -> None:
    """Two who ask for the same share what is made."""
    bounds(MADE_AT_ONCE_MAX=0)
    monkeypatch.setattr(order, "_STEP_COMPETITORS", 10)
    monkeypatch.setattr(orders, "TimeSlice", AlwaysOver)
    AlwaysOver.meanwhile = lambda: None
    asking = [asyncio.create_task(live.orders.of(RANKING, POINTS)) for _ in range(2)]
    await asyncio.sleep(0)
    bounds(MADE_AT_ONCE_MAX=1_000)
    other = asyncio.create_task(live.orders.of(RANKING, FOULS))
    done, _ = await asyncio.wait([*asking, other], return_when=asyncio.FIRST_COMPLETED)
    assert done == {other}
    first, second = await asyncio.gather(*asking)
    assert first is second


async def test_a_reader_of_a_current_order_does_not_queue_behind_those_that_waited_for_it(
    live: LiveTournament, monkeypatch: pytest.MonkeyPatch, bounds: Bounds
) -> None:
    bounds(MADE_AT_ONCE_MAX=0)
    monkeypatch.setattr(orders, "TimeSlice", AlwaysOver)
    AlwaysOver.meanwhile = lambda: None
    waiting = {asyncio.create_task(live.orders.of(RANKING, POINTS)) for _ in range(10)}
    _, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    assert waiting
    with pytest.raises(StopIteration):  # it gives way to nobody
        live.orders.of(RANKING, POINTS).send(None)
    await asyncio.gather(*waiting)
