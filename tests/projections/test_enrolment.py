"""The lists of rankings and the totals beside them, against a list and dictionaries."""

import gc
from typing import Final
from unittest import mock
from weakref import ref

from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from engine.domain.events import Delta
from engine.domain.terms import CompetitorId, UnityId
from projections.columns import enrolment, shards
from projections.columns.enrolment import Enrolment, Totals, add_deltas
from projections.columns.shards import WHOLE_MAX
from tests.histories import unhurried

everybody: Final = [CompetitorId(n) for n in (*range(1, 9), 2**63 - 1)]
who: Final = st.sampled_from(everybody)
lists: Final = st.lists(who, unique=True)
amounts: Final = st.integers(-2, 2) | st.sampled_from([2**62, -(2**62)])
steps: Final = st.lists(
    st.tuples(st.sampled_from(["enrol", "remove"]), who, st.just(0))
    | st.tuples(st.just("replace"), lists, st.just(0))
    | st.tuples(st.sampled_from(["first", "second"]), who, amounts),
    max_size=40,
)


@unhurried
@given(lists, steps)
def test_lists_and_totals_are_those_of_a_list_and_dictionaries(
    start: list[CompetitorId], changes: list[tuple[str, CompetitorId | list[CompetitorId], int]]
) -> None:
    """With so few spare places that they are given again all the time. The second totals begin in the middle."""
    with mock.patch.object(enrolment, "VACANT_SPARE", 1):
        found, listed = Enrolment(start), list(start)
        totals, sums = {"first": Totals(found)}, {"first": dict.fromkeys(everybody, 0)}
        held = []
        for number, (kind, whom, amount) in enumerate(changes):
            if number == len(changes) // 2:
                totals["second"], sums["second"] = Totals(found), dict.fromkeys(everybody, 0)
            if isinstance(whom, list):
                assert found.replace(whom) == (whom != listed)
                listed = list(whom)
            elif kind == "enrol":
                assert found.enrol(whom) == (whom not in listed)
                listed += [] if whom in listed else [whom]
            elif kind == "remove":
                assert found.remove(whom) == (whom in listed)
                listed = [competitor_id for competitor_id in listed if competitor_id != whom]
            elif kind in totals:
                totals[kind].add(whom, amount)
                sums[kind][whom] += amount
            assert_same(found, listed)
            held.append((found.held(), listed[:]))
            assert len(found.places) <= 2 * len(everybody) + 1
            for name, of_unity in totals.items():
                assert {c: of_unity.get(c, 0) for c in everybody} == sums[name]
                assert of_unity == {c: total for c, total in sums[name].items() if total}
        for as_it_was, was in held:
            assert list(as_it_was) == list(as_it_was) == was
        again = Enrolment()
        again.append_places(found.places[: len(changes)])
        again.append_places(found.places[len(changes) :])
        assert again == found
        assert_same(again, listed)
        for of_unity in totals.values():
            restored = Totals(again)
            restored.append_column(of_unity.column)
            assert restored == of_unity == of_unity.copied_for(again)
            restored.make_room()
            assert len(restored.column) == len(again.places)
            assert restored == of_unity
            restored.add(everybody[0], 1)
            assert restored != of_unity


def assert_same(found: Enrolment, listed: list[CompetitorId]) -> None:
    assert list(found) == listed
    assert len(found) == len(listed)
    for competitor_id in everybody:
        assert (competitor_id in found) == (competitor_id in found.lookup()) == (competitor_id in listed)
    places = [found.place(competitor_id) for competitor_id in listed]
    assert places == sorted(places, key=lambda place: -1 if place is None else place)


UNITIES: Final = (UnityId(1), UnityId(2))
deltas: Final = st.lists(st.builds(Delta, who, st.sampled_from(UNITIES), amounts), max_size=12)


class Unity(Struct):
    totals: Totals


@unhurried
@given(lists, deltas, st.booleans())
def test_many_deltas_at_once_give_the_sums_that_they_give_one_by_one(
    start: list[CompetitorId], deltas: list[Delta], is_divided: bool
) -> None:
    """Also beyond 64 bits, for competitors who were never in the list, and in one that is or becomes divided."""
    with mock.patch.object(shards, "WHOLE_MAX", 2 if is_divided else WHOLE_MAX):
        at_once, one_by_one = Enrolment(start), Enrolment(start)
        together, each = [{one: Unity(Totals(found)) for one in UNITIES} for found in (at_once, one_by_one)]
        assert add_deltas(together, deltas) == {delta.unity_id for delta in deltas}
        for delta in deltas:
            each[delta.unity_id].totals.add(delta.competitor_id, delta.amount)
        assert (together, at_once) == (each, one_by_one)
        assert [together[one].totals.trimmed() for one in UNITIES] == [each[one].totals.trimmed() for one in UNITIES]


def test_competitors_are_looked_up_in_a_list_that_is_divided() -> None:
    found = Enrolment(map(CompetitorId, range(1, WHOLE_MAX + 2)))
    assert CompetitorId(1) in found.lookup()
    assert CompetitorId(WHOLE_MAX + 2) not in found.lookup()


@given(lists, lists)
def test_a_list_that_is_replaced_keeps_the_places_of_its_beginning(
    before: list[CompetitorId], after: list[CompetitorId]
) -> None:
    found = Enrolment(before)
    places = found.places[:]
    found.replace(after)
    assert list(found) == after
    same = next((n for n, (one, other) in enumerate(zip(before, after, strict=False)) if one != other), None)
    kept = min(len(before), len(after)) if same is None else same
    assert found.places[:kept] == places[:kept]


def test_a_board_goes_at_once_when_nobody_needs_it() -> None:
    """A past board of a million must not wait for the garbage collector."""
    gc.disable()
    try:
        found = Enrolment(everybody)
        totals = Totals(found, {everybody[0]: 5})
        gone = ref(found), ref(totals)
        del found, totals
        assert [one() for one in gone] == [None, None]
    finally:
        gc.enable()


def test_totals_are_equal_if_their_sums_are_however_they_came_about() -> None:
    found = Enrolment(everybody)
    narrow, wide, longer, others = (Totals(found, {everybody[0]: 5}) for _ in range(4))
    for amount in (2**62, 2**62, -(2**62), -(2**62)):
        wide.add(everybody[0], amount)
    longer.add(everybody[3], 0)
    elsewhere = Totals(Enrolment(reversed(everybody)), {everybody[0]: 5})
    assert narrow == wide == longer == elsewhere == {everybody[0]: 5}
    others.add(everybody[3], 1)
    assert narrow != others
    assert wide != others


def test_a_copy_stays_as_it_is() -> None:
    found = Enrolment(everybody[:4])
    totals = Totals(found, {everybody[0]: 5})
    copy = found.copy()
    totals_then = totals.copied_for(copy)
    found.remove(everybody[0])
    found.enrol(everybody[0])
    totals.add(everybody[0], 7)
    assert (list(copy), dict(totals_then)) == (everybody[:4], {everybody[0]: 5})
    totals_then.add(everybody[1], 1)
    assert dict(totals) == {everybody[0]: 12}


def test_sums_are_shown_without_those_that_are_0_and_wide_ones_take_more_room() -> None:
    found = Enrolment(everybody[:4])
    totals = Totals(found, {everybody[0]: 5, everybody[3]: 7})
    assert repr(totals) == f"{{{everybody[0]}: 5, {everybody[3]}: 7}}"
    narrow = totals.size_bytes
    totals.add(everybody[0], 2**63)
    assert totals.size_bytes > 3 * narrow > 0
