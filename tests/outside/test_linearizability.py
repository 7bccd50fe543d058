"""The checker itself: it agrees with trying every order, and finds what does not fit."""

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from tests.outside.linearizability import misfit
from tests.outside.operations import Operation
from tests.outside.sequential import NO_POINTS, of_list, of_points


def append(value: int, call: int, end: int | None) -> Operation:
    return Operation(client=value, object="list", action="append", value=value, call=call, end=end)


def read(shown: list[int], call: int, end: int) -> Operation:
    return Operation(client=0, object="list", action="read", call=call, end=end, shown=shown)


def test_what_is_answered_must_be_shown_to_who_asks_afterwards() -> None:
    assert misfit([append(1, 0, 1), read([1], 2, 3)], (), of_list) is None
    stale = read([], 2, 3)
    assert misfit([append(1, 0, 1), stale], (), of_list) is not None


def test_what_is_under_way_may_be_shown_or_not_but_not_taken_back() -> None:
    assert misfit([append(1, 0, 5), read([], 1, 2), read([1], 3, 4)], (), of_list) is None
    assert misfit([append(1, 0, 5), read([1], 1, 2), read([], 3, 4)], (), of_list) is not None


def test_what_nobody_knows_about_may_have_been_done_at_any_time_or_never() -> None:
    unknown = append(1, 0, None)
    assert misfit([unknown, read([], 1, 2), read([1], 8, 9)], (), of_list) is None
    assert misfit([unknown, read([], 1, 2)], (), of_list) is None
    assert misfit([read([1], 0, 1), append(1, 2, None)], (), of_list) is not None


def test_nothing_may_be_there_twice() -> None:
    assert misfit([append(1, 0, 1), read([1, 1], 2, 3)], (), of_list) is not None


def test_the_operation_that_fits_nowhere_is_named() -> None:
    wrong = read([2, 1], 4, 5)
    assert misfit([append(1, 0, 1), append(2, 2, 3), wrong, read([1, 2], 6, 7)], (), of_list) == wrong


def test_an_answer_to_an_add_shows_its_own_points_and_perhaps_later_ones() -> None:
    def add(number: int, amount: int, call: int, end: int) -> Operation:
        return Operation(client=1, object="p", action="add", value=[number, [(7, 70, amount)]], call=call, end=end)

    def answer(number: int, total: int, call: int, end: int) -> Operation:
        return Operation(client=1, object="p", action="read", value=number, call=call, end=end, shown=[[0, 7, total]])

    adds = [add(1, 5, 0, 3), add(2, 10, 1, 3)]
    assert misfit([*adds, answer(1, 15, 0, 3), answer(2, 15, 1, 3)], NO_POINTS, of_points({70: 0})) is None
    assert misfit([*adds, answer(1, 5, 0, 3), answer(2, 15, 1, 3)], NO_POINTS, of_points({70: 0})) is None
    assert misfit([*adds, answer(1, 10, 0, 3), answer(2, 15, 1, 3)], NO_POINTS, of_points({70: 0})) is not None


@st.composite
def small_histories(draw: st.DrawFn) -> list[Operation]:
    found = []
    for n in range(draw(st.integers(1, 5))):
        call = draw(st.integers(0, 12))
        end = call + draw(st.integers(1, 6))
        if draw(st.booleans()):
            found.append(append(n, call, draw(st.sampled_from([end, None]))))
        else:
            shown = draw(st.lists(st.integers(0, 4), max_size=3, unique=True))
            found.append(read(shown, call, end))
    return found


@given(small_histories())
def test_it_agrees_with_trying_every_order(history: list[Operation]) -> None:
    assert (misfit(history, (), of_list) is None) == _some_order_fits(history)


def _some_order_fits(history: list[Operation]) -> bool:
    answered = [one for one in history if one.end is not None]
    unknown = [one for one in history if one.end is None]
    return any(
        _fits(order)
        for chosen in range(1 << len(unknown))
        for order in permutations(answered + [one for n, one in enumerate(unknown) if chosen >> n & 1])
    )


def _fits(order: tuple[Operation, ...]) -> bool:
    state: tuple[int, ...] | None = ()
    for n, one in enumerate(order):
        if any(later.end is not None and later.end < one.call for later in order[n + 1 :]):
            return False
        if state is None or (state := of_list(state, one)) is None:
            return False
    return True
