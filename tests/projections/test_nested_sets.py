"""The bounds of a live are those of its competitors at every moment, and those that are held are of theirs."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.domain.events import (
    CompetitorChanged,
    CompetitorErased,
    Event,
    ParticipantsChanged,
    RankingClosed,
    RankingCreated,
    RankingInformationChanged,
    RankingModified,
    Recorded,
    UnityAdded,
    UnityChanged,
)
from engine.domain.terms import OPERATOR, CompetitorId, RankingId, Sequence, Sort, TournamentId, UnityId
from engine.log.heads import Head
from projections.board.board import Board
from projections.board.hierarchy import NestedSetBounds
from projections.live import held as held_module
from projections.live import nested_sets
from projections.live.held import HeldBoard
from projections.live.tournament import LiveTournament
from tests.bounds import set_bounds
from tests.histories import unhurried
from tests.projections.forests import Parents, line_of, moved, naive, registered, small_leaves

NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)


def live_of(*events: Event) -> LiveTournament:
    live = LiveTournament(TournamentId(1), Head(Sequence(0), b""), Board())
    for event in events:
        go_on(live, event)
    return live


def go_on(live: LiveTournament, event: Event) -> None:
    sequence = Sequence(live.head.sequence + 1)
    live.fold(
        [Recorded(sequence=sequence, recorded_at=NOW, actor=OPERATOR, idempotency_key=None, event=event)],
        Head(sequence, b""),
    )


def shown(live: LiveTournament) -> dict[CompetitorId, NestedSetBounds]:
    return {c: live.nested_sets.of(competitor) for c, competitor in live.board.competitors.items()}


def shown_by(held: HeldBoard, parents: Parents) -> dict[CompetitorId, NestedSetBounds]:
    return {c: held.bounds(held.competitor(c)) for c in parents}


@contextmanager
def small_steps() -> Iterator[None]:
    """Little is done at once, and little is a lot."""
    with small_leaves(), pytest.MonkeyPatch.context() as patch:
        set_bounds(patch, MOVED_AT_ONCE_MAX=2)
        patch.setattr(nested_sets, "_CHANGED_SPARE", 4)
        patch.setattr(nested_sets, "_STEP", 1)
        yield


@unhurried
@given(st.data())
def test_bounds_are_those_of_the_parents_at_each_moment_however_little_was_done_before(data: st.DataObject) -> None:
    with small_steps():
        live, parents = live_of(), Parents()
        held: list[tuple[HeldBoard, Parents]] = []
        for _ in range(data.draw(st.integers(1, 25))):
            match data.draw(st.sampled_from(["register", "register", "move", "rename", "step", "ask", "hold"])):
                case "register":
                    new = CompetitorId(len(parents) + 1)
                    parents[new] = data.draw(st.none() | st.sampled_from([*parents])) if parents else None
                    go_on(live, registered(new, parents[new]))
                case "move" if parents:
                    competitor = data.draw(st.sampled_from([*parents]))
                    above = [c for c in parents if c != competitor and competitor not in line_of(parents, c)]
                    parents[competitor] = data.draw(st.sampled_from([None, *above]))
                    go_on(live, moved(competitor, parents[competitor]))
                case "rename" if parents:
                    competitor = data.draw(st.sampled_from([*parents]))
                    go_on(live, CompetitorChanged(competitor_id=competitor, name="b"))
                case "step" if not live.nested_sets.ready:
                    live.nested_sets._step()
                case "ask":
                    assert shown(live) == naive(parents)
                case "hold":
                    held.append((live.hold(), dict(parents)))
        assert shown(live) == naive(parents)
        for then, parents_then in held:
            assert shown_by(then, parents_then) == naive(parents_then)


def test_settling_gives_way_and_all_that_wait_are_ready_at_once() -> None:
    number = 20_000
    live = live_of(registered(1), *(registered(n, n // 2) for n in range(2, number)))

    async def settle() -> int:
        rounds = 0

        async def look() -> None:
            nonlocal rounds
            while True:
                rounds += 1
                await asyncio.sleep(0)

        looking = asyncio.create_task(look())
        await asyncio.gather(*(live.nested_sets.settle() for _ in range(3)))
        looking.cancel()
        assert live.nested_sets.ready
        return rounds

    assert asyncio.run(settle()) > 10
    assert live.nested_sets.of(live.board.competitors[CompetitorId(1)]) == NestedSetBounds(0, 1, 2 * (number - 1))


def test_nothing_is_kept_while_all_are_roots() -> None:
    live = live_of(*(registered(n) for n in range(1, 1_001)))
    assert shown(live)[CompetitorId(1_000)] == NestedSetBounds(0, 1_999, 2_000)
    assert live.nested_sets.flat
    assert live.nested_sets.size_bytes == 0
    go_on(live, registered(1_001, 1))
    assert not live.nested_sets.ready
    assert shown(live)[CompetitorId(1_000)] == NestedSetBounds(0, 2_001, 2_002)
    assert live.nested_sets.size_bytes > 1_000 * 8


def test_what_is_held_counts_once_it_is_of_another_moment() -> None:
    live = live_of(registered(1), *(registered(n, 1) for n in range(2, 1_001)))
    first = live.hold()
    go_on(live, registered(1_001))
    second = live.hold()
    assert second.all_bounds.size_bytes == 0
    assert first.all_bounds.size_bytes > 1_000 * 30
    for n in range(1_002, 2_000):
        go_on(live, registered(n, 1))
    assert live.nested_sets.size_bytes == 0  # too much has changed: it is dropped, but for who holds it
    assert second.all_bounds.size_bytes > 1_000 * 30
    assert second.bounds(second.competitor(CompetitorId(1))) == NestedSetBounds(0, 1, 2_000)


def test_a_change_costs_as_much_among_many_as_among_few() -> None:
    """Counted in steps, not in time: one for each change, whatever there is beside it."""
    for number in (100, 30_000):
        live = live_of(registered(1), *(registered(n, 1 + n % 10 if n > 11 else None) for n in range(2, number + 1)))
        assert shown(live)
        steps = 0
        go_on(live, registered(number + 1, 5))
        go_on(live, moved(number + 1, 6))
        go_on(live, moved(number, 7))
        while not live.nested_sets.ready:
            live.nested_sets._step()
            steps += 1
        assert steps == 3


def test_what_is_held_shows_names_and_lists_of_its_moment() -> None:
    live = live_of(registered(1), registered(2))
    held = live.hold()
    assert live.hold() is held
    go_on(live, CompetitorChanged(competitor_id=CompetitorId(1), name="other"))
    go_on(live, CompetitorChanged(competitor_id=CompetitorId(1), name="third"))
    assert live.hold() is not held
    assert held.competitor(CompetitorId(1)).name == "a"
    assert held.size_bytes == live.hold().size_bytes + held_module._COMPETITOR_BYTES
    assert live.hold().competitor(CompetitorId(1)).name == "third"


def test_a_competitor_erased_since_counts_once_in_the_size_of_what_is_held() -> None:
    live = live_of(registered(1), registered(2))
    held = live.hold()
    before = held.size_bytes
    go_on(live, CompetitorErased(competitor_id=CompetitorId(1)))
    assert held.size_bytes == before + held_module._COMPETITOR_BYTES
    go_on(live, CompetitorChanged(competitor_id=CompetitorId(2), name="other"))
    go_on(live, CompetitorErased(competitor_id=CompetitorId(2)))
    assert held.size_bytes == before + 2 * held_module._COMPETITOR_BYTES


def test_a_held_ranking_shows_its_own_fields_its_list_and_its_unities_of_that_moment() -> None:
    live = live_of(registered(1), registered(2))
    ranking_id, unity_id, first, second = RankingId(7), UnityId(8), CompetitorId(1), CompetitorId(2)
    created = RankingCreated(
        ranking_id=ranking_id, name="Overall", participants=(first,), main_unity_id=unity_id, main_unity_name="Points"
    )
    go_on(live, created)
    changes: list[Event] = [
        ParticipantsChanged(ranking_id=ranking_id, added=(second,), removed=(first,)),
        RankingModified(ranking_id=ranking_id, participants=(second,), main_unity_name="Goals"),
        UnityChanged(ranking_id=ranking_id, unity_id=unity_id, sort=Sort.ASC),
        UnityAdded(ranking_id=ranking_id, unity_id=UnityId(9), name="Wins"),
        RankingInformationChanged(ranking_id=ranking_id, name="other"),
        RankingClosed(ranking_id=ranking_id),
    ]
    for change in changes:
        held, before = live.hold(), live.board.rankings[ranking_id]
        shown = [*before.participants], [(u, one.name, one.sort) for u, one in before.unities.items()]
        go_on(live, change)
        then = held.ranking(ranking_id)
        assert ([*then.participants], [(u, one.name, one.sort) for u, one in then.unities.items()]) == shown
        assert (then.ranking.name, then.ranking.closed_at) == (before.name, before.closed_at)
