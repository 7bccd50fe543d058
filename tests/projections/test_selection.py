"""What a filter lets through: found in steps, kept current, asked for in parts."""

import asyncio
import gc
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any, Final, cast

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import UNSET

from api.interface.paging import ListPart, PageQuestion
from engine.database.pool import Database
from engine.domain.events import (
    CompetitionAdded,
    CompetitionChanged,
    CompetitionVoided,
    CompetitorChanged,
    CompetitorRegistered,
    Event,
)
from engine.domain.terms import CompetitionId, CompetitorId, Sequence, TournamentId
from engine.log.heads import Head
from engine.process.time_slices import TimeSlices
from projections.answers.competitions import CompetitionListQuestion
from projections.answers.view import View, ask
from projections.board.board import Board, Revisions, fold
from projections.board.selection import CompetitionFilter, CompetitorFilter, ListFilter, Selection
from projections.live.tournament import LiveTournament
from projections.past.past import Past
from tests.api.crowds import go_on, recorded
from tests.bounds import Bounds, set_bounds
from tests.histories import unhurried

NOON: Final = datetime(2030, 1, 1, 12, tzinfo=UTC)
HOUR: Final = timedelta(hours=1)

# Ids are no numbers: they are drawn from many, in any order, so that an id taken for a number is noticed.
_ids: Final = st.integers(1, 2**62)
_names: Final = st.sampled_from(["Ann", "anna", "ANNE", "Bea", "Straße", "STRASSE", "Zoë"])
_tags: Final = st.lists(st.sampled_from(["a", "b"]), unique=True).map(tuple)

COMPETITORS: Final = [
    CompetitorFilter(name="ann"),
    CompetitorFilter(name="strass"),
    CompetitorFilter(tag="a"),
    CompetitorFilter(name="b", tag="b"),
]
COMPETITIONS: Final = [
    CompetitionFilter(group_id=1),
    CompetitionFilter(competitor_id=CompetitorId(2)),
    CompetitionFilter(has_result=True),
    CompetitionFilter(has_result=False, group_id=2),
    CompetitionFilter(since=NOON),
    CompetitionFilter(since=NOON - HOUR, until=NOON),
]


def test_each_condition_lets_through_what_meets_it() -> None:
    live = live_of(
        CompetitorRegistered(competitor_id=CompetitorId(7), name="Straße", tags=("x", "y")),
        CompetitorRegistered(competitor_id=CompetitorId(3), name="strassen", parent_id=CompetitorId(7)),
        CompetitorRegistered(competitor_id=CompetitorId(5), name="Ort", parent_id=CompetitorId(3), tags=("X",)),
        CompetitionAdded(competition_id=CompetitionId(9), group_id=0, started_at=NOON, result="1:0"),
        CompetitionAdded(
            competition_id=CompetitionId(8), group_id=-1, started_at=NOON + HOUR, participants=(CompetitorId(5),)
        ),
        CompetitionVoided(competition_id=CompetitionId(9)),
    )
    expected: list[tuple[ListFilter, list[int]]] = [
        (CompetitorFilter(name="strass"), [7, 3]),
        (CompetitorFilter(name="strasse"), [7, 3]),
        (CompetitorFilter(name="strassen"), [3]),
        (CompetitorFilter(tag="x"), [7]),
        (CompetitorFilter(tag="X"), [5]),
        (CompetitorFilter(parent_id=CompetitorId(7)), [3]),
        (CompetitorFilter(parent_id=CompetitorId(7), tag="x"), []),
        (CompetitionFilter(group_id=0), [9]),
        (CompetitionFilter(group_id=-1), [8]),
        (CompetitionFilter(competitor_id=CompetitorId(5)), [8]),
        (CompetitionFilter(has_result=True), [9]),
        (CompetitionFilter(has_result=False), [8]),
        (CompetitionFilter(since=NOON), [9, 8]),
        (CompetitionFilter(since=NOON + HOUR), [8]),
        (CompetitionFilter(until=NOON), [9]),
        (CompetitionFilter(since=NOON, until=NOON, has_result=False), []),
    ]
    for chosen, ids in expected:
        assert let_through(live.board, chosen) == ids
        assert whole(Selection(chosen, live.board)) == ids


def test_an_item_whose_check_failed_is_checked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    ann = CompetitorRegistered(competitor_id=CompetitorId(7), name="Ann")
    live = live_of(ann, msgspec.structs.replace(ann, competitor_id=CompetitorId(3)))
    selection = Selection(CompetitorFilter(name="ann"), live.board)
    for found in ([7, 3], [3]):
        with monkeypatch.context() as patch:
            patch.setattr(CompetitorFilter, "lets_through", lambda *_: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                whole(selection)
        assert whole(selection) == found
        another = CompetitorChanged(competitor_id=CompetitorId(7), name="Bea")
        selection.note(another)
        go_on(live, recorded([another], after=live.head.sequence))


# ── Walks while there are changes ───────────────────────────────────────────────────────────────────────


def live_of(*events: Event) -> LiveTournament:
    live = LiveTournament(TournamentId(1), Head(Sequence(0), b""), Board())
    go_on(live, recorded([*events]))
    return live


def let_through(board: Board, chosen: ListFilter) -> list[int]:
    return [item_id for item_id, item in chosen.items(board).items() if chosen.lets_through(item)]


def whole(selection: Selection) -> list[int]:
    for _ in selection.steps(0, None):
        pass
    return [*selection.run(0, len(selection))]


@st.composite
def interleavings(draw: st.DrawFn) -> tuple[ListFilter | None, list[Event | int]]:
    """A filter or none; and what happens, with numbers in between: that many steps of a walk are taken there, each with
    as many items on a page."""
    chosen = draw(st.sampled_from([None, *COMPETITORS, *COMPETITIONS]))
    about_competitions = isinstance(chosen, CompetitionFilter)
    ids = draw(st.lists(_ids, unique=True, min_size=1, max_size=12))
    made: list[Event] = []
    happens: list[Event | int] = []
    for item_id in ids:
        made.append(draw(_additions(item_id) if about_competitions else _registrations(item_id)))
        happens.append(made[-1])
        existing = st.sampled_from(ids[: len(made)])
        changes = existing.flatmap(_competition_changes if about_competitions else _competitor_changes)
        happens += draw(st.lists(changes | st.integers(1, 3), max_size=4))
    return chosen, happens


def _registrations(item_id: int) -> st.SearchStrategy[Event]:
    return st.builds(CompetitorRegistered, competitor_id=st.just(item_id), name=_names, tags=_tags)


def _competitor_changes(item_id: int) -> st.SearchStrategy[Event]:
    return st.builds(
        CompetitorChanged,
        competitor_id=st.just(item_id),
        name=st.just(UNSET) | _names,
        tags=st.just(UNSET) | _tags,
        parent_id=st.just(UNSET) | st.none(),
    )


_starts: Final = st.sampled_from([NOON - HOUR, NOON, NOON + HOUR])


def _additions(item_id: int) -> st.SearchStrategy[Event]:
    return st.builds(
        CompetitionAdded,
        competition_id=st.just(item_id),
        group_id=st.integers(1, 2),
        started_at=_starts,
        participants=st.sampled_from([(), (CompetitorId(2),), (CompetitorId(1), CompetitorId(2)), (CompetitorId(1),)]),
        result=st.none() | st.just("1:0"),
    )


def _competition_changes(item_id: int) -> st.SearchStrategy[Event]:
    return st.builds(
        CompetitionChanged,
        competition_id=st.just(item_id),
        started_at=st.just(UNSET) | st.none() | _starts,
        result=st.just(UNSET) | st.none() | st.just("0:1"),
    )


class Walk:
    """A walk over a list from its beginning, a part at a time, while it changes. `always` and `ever` are the ids that
    the filter let through all the time since the walk began, or at some moment of it."""

    def __init__(self, board: Board, chosen: ListFilter | None) -> None:
        self.board = board
        self.chosen = chosen
        self.selection = None if chosen is None else Selection(chosen, board)
        self.seen: list[int] = []
        self.always = set(self.now)
        self.ever = set(self.now)
        self.after = 0

    @property
    def items(self) -> dict[Any, Any]:
        return dict((self.chosen or CompetitorFilter()).items(self.board))

    @property
    def now(self) -> list[int]:
        return let_through(self.board, self.chosen or CompetitorFilter())

    def happens(self, event: Event) -> None:
        if self.selection is not None:
            self.selection.note(event)
        fold(self.board, Revisions(), recorded([event])[0])
        self.always &= set(self.now)
        self.ever |= set(self.now)

    def goes_on(self, per_page: int) -> bool:
        """One part further. Returns whether there was to be more."""
        part = self._part(PageQuestion(per_page=per_page, after=self.after))
        assert len(part.ids) <= per_page
        position = {item_id: number for number, item_id in enumerate(self.items)}
        behind = [c for c in self.now if not self.after or position[c] > position[self.after]]
        assert [*part.ids] == behind[:per_page]
        assert part.paging.next == (part.ids[-1] if len(behind) > per_page else None)
        self.seen += part.ids
        self.after = self.seen[-1] if self.seen else 0
        return part.paging.next is not None

    def _part(self, question: PageQuestion) -> ListPart:
        if self.selection is None:
            return question.part(self.board.competitors, "competitor")
        number = self.items[self.after].number if self.after else 0
        for _ in self.selection.steps(number, question.per_page + 1):
            pass
        return question.part_of(self.selection, number)


@unhurried
@given(interleavings(), st.integers(1, 3))
def test_a_walk_shows_once_whatever_is_there_throughout(
    drawn: tuple[ListFilter | None, list[Event | int]], looked_at_once: int
) -> None:
    chosen, happens = drawn
    with pytest.MonkeyPatch.context() as patch:
        set_bounds(patch, LOOKED_AT_ONCE=looked_at_once)
        walk = Walk(Board(), chosen)
        began = False
        for one in happens:
            if not isinstance(one, int):
                walk.happens(one)
                continue
            if not began:
                walk.always, walk.ever, began = set(walk.now), set(walk.now), True
            walk.goes_on(per_page=one)
        if not began:
            walk.always = set(walk.now)
        while walk.goes_on(per_page=2):
            pass
    assert len(walk.seen) == len(set(walk.seen))
    assert walk.always <= set(walk.seen) <= walk.ever
    assert walk.seen == [item_id for item_id in walk.items if item_id in set(walk.seen)]


@unhurried
@given(interleavings())
@example(
    (
        CompetitionFilter(has_result=True),
        [
            CompetitionAdded(competition_id=CompetitionId(1), group_id=1),
            1,
            CompetitionChanged(competition_id=CompetitionId(1), result="1:0"),
            1,
        ],
    )
)
def test_pages_and_totals_are_those_of_now(drawn: tuple[ListFilter | None, list[Event | int]]) -> None:
    chosen, happens = drawn
    if chosen is None:
        return
    board = Board()
    selection = Selection(chosen, board)
    for one in happens:
        if not isinstance(one, int):
            selection.note(one)
            fold(board, Revisions(), recorded([one])[0])
            continue
        for _ in selection.steps(0, None):
            pass
        expected = let_through(board, chosen)
        for page in range(1, 4):
            part = PageQuestion(page, one).part_of(selection, 0)
            assert [*part.ids] == expected[(page - 1) * one : page * one]
            assert (part.paging.page, part.paging.total) == (page, len(expected))


# ── Of a tournament ─────────────────────────────────────────────────────────────────────────────────────

BEGINS_WITH_C: Final = CompetitorFilter(name="c")


def crowd(number: int, first: int = 1) -> list[Event]:
    return [
        CompetitorRegistered(competitor_id=CompetitorId(n), name=f"c{n}" if n % 2 else f"d{n}")
        for n in range(first, first + number)
    ]


class Between(TimeSlices):
    """`meanwhile` happens before each time slice; each is over after one step."""

    def __init__(self, meanwhile: Callable[[], None]) -> None:
        super().__init__()
        self.meanwhile = meanwhile
        self.taken = 0

    async def __aenter__(self) -> None:
        await super().__aenter__()
        self.taken += 1

    async def __aexit__(self, *error: object) -> None:
        await super().__aexit__(*error)
        self.meanwhile()

    @property
    def over(self) -> bool:
        return True


async def test_a_part_is_found_without_looking_at_what_comes_behind_it(bounds: Bounds) -> None:
    bounds(LOOKED_AT_ONCE=10)
    live = live_of(*crowd(1_000))
    time_slices = Between(lambda: None)
    assert (await live.selections.of(BEGINS_WITH_C, time_slices, count=5)).run(0, 5)[-1] == 9
    assert time_slices.taken == 1 + 1  # the first ten; then it finds that it has enough
    assert (await live.selections.of(BEGINS_WITH_C, time_slices, number=9, count=1)).run(5, 6)[0] == 11
    assert time_slices.taken == 2 + 2
    await live.selections.of(BEGINS_WITH_C, time_slices, number=3, count=2)
    assert time_slices.taken == 4  # it has them already
    assert len(await live.selections.of(BEGINS_WITH_C, time_slices)) == 500
    taken = time_slices.taken
    go_on(live, recorded(crowd(1, first=1_001), after=live.head.sequence))
    assert len(await live.selections.of(BEGINS_WITH_C, time_slices)) == 501
    assert time_slices.taken == taken + 2


async def test_what_was_found_for_a_client_that_went_away_stays(bounds: Bounds) -> None:
    bounds(LOOKED_AT_ONCE=10)
    live = live_of(*crowd(1_000))
    forty = asyncio.Event()
    time_slices = Between(lambda: forty.set() if time_slices.taken == 40 else None)
    asking = asyncio.create_task(live.selections.of(BEGINS_WITH_C, time_slices))
    await forty.wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    del asking
    gc.collect()
    taken = time_slices.taken
    assert len(await live.selections.of(BEGINS_WITH_C, time_slices)) == 500
    assert time_slices.taken - taken <= 61  # of a hundred, and one to find that there is no more


@pytest.mark.parametrize("group_id", [None, 1])
@pytest.mark.parametrize("newest_first", [False, True])
async def test_lists_are_cut_out_of_whatever_meets_their_conditions(newest_first: bool, group_id: int | None) -> None:
    ids = [CompetitionId(1_000 - n) for n in range(7)]
    live = live_of(*[CompetitionAdded(competition_id=one, group_id=one % 2) for one in ids])
    view = View(live, Past(cast(Database, None), TimeSlices()), TimeSlices())
    those = [one for one in ids if group_id is None or one % 2 == group_id]
    expected = those[::-1] if newest_first else those
    for offset, limit in product(range(9), (1, 3, None)):
        question = CompetitionListQuestion(group_id=group_id, newest_first=newest_first, offset=offset, limit=limit)
        found = await ask(view, question)
        assert (found.total, [*found.competitions]) == (len(those), expected[offset:][:limit])


def changing(live: LiveTournament, times: int) -> Callable[[], None]:
    """After each time slice somebody is registered, and somebody else gets another name."""
    changes: Iterator[list[Event]] = (
        [*crowd(1, first=2_000 + n), CompetitorChanged(competitor_id=CompetitorId(n + 1), name="cd"[n % 2])]
        for n in range(times)
    )
    return lambda: go_on(live, recorded(next(changes, []), after=live.head.sequence))


@pytest.mark.parametrize("times", [5, 90])
async def test_what_changes_while_it_is_looked_for_is_found_as_it_is_in_the_end(bounds: Bounds, times: int) -> None:
    bounds(LOOKED_AT_ONCE=10)
    live = live_of(*crowd(100))
    selection = await live.selections.of(BEGINS_WITH_C, Between(changing(live, times)))
    assert [*selection.run(0, 1_000)] == let_through(live.board, BEGINS_WITH_C)


async def test_a_selection_that_changes_too_much_is_restarted(bounds: Bounds) -> None:
    bounds(LOOKED_AGAIN_MAX=3)
    live = live_of(*crowd(100))
    time_slices = TimeSlices()
    selection = await live.selections.of(BEGINS_WITH_C, time_slices)
    renamed: list[Event] = [CompetitorChanged(competitor_id=CompetitorId(n), name="x") for n in range(1, 9)]
    go_on(live, recorded(renamed[:3], after=live.head.sequence))
    assert (selection.changed, len(selection)) == (3, 50)
    go_on(live, recorded(renamed[3:4], after=live.head.sequence))
    assert (selection.changed, len(selection)) == (0, 0)
    assert [*(await live.selections.of(BEGINS_WITH_C, time_slices)).run(0, 2)] == [5, 7]


async def test_selections_count_in_the_size_of_their_live_and_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    live = live_of(*crowd(100))
    time_slices = TimeSlices()
    before = live.size_bytes()
    first = await live.selections.of(BEGINS_WITH_C, time_slices)
    assert live.size_bytes() == before + first.size_bytes
    for name in ("SELECTIONS_MAX", "SELECTIONS_BYTES_MAX"):
        with pytest.MonkeyPatch.context() as patch:
            set_bounds(patch, **{name: 1})
            other = await live.selections.of(CompetitorFilter(name="d"), time_slices)
            assert live.selections.size_bytes == other.size_bytes
            await live.selections.of(BEGINS_WITH_C, time_slices)
    # One that is no longer kept, but which somebody still has, goes on being told what changes.
    await live.selections.of(CompetitorFilter(tag="none"), time_slices)
    go_on(live, recorded([CompetitorChanged(competitor_id=CompetitorId(1), name="x")], after=live.head.sequence))
    assert whole(other) == let_through(live.board, CompetitorFilter(name="d"))


async def test_another_board_has_other_selections() -> None:
    live = live_of(*crowd(10))
    time_slices = TimeSlices()
    selection = await live.selections.of(BEGINS_WITH_C, time_slices)
    live.board = live_of(*crowd(4)).board
    live.selections.clear()
    assert live.selections.size_bytes == 0
    assert [*(await live.selections.of(BEGINS_WITH_C, time_slices)).run(0, 9)] == whole(selection) == [1, 3]
