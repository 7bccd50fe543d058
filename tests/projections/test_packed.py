"""Packed items, against a dictionary of them."""

from typing import Final
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct, structs

from projections.board import parts
from projections.board.board import FOLD_VERSION, Competition, Competitor
from projections.columns import packed
from projections.columns.packed import RECENT_MAX, Packed
from tests.projections.boards import Item

ids: Final = st.integers(1, 2 * RECENT_MAX) | st.just(2**63 - 1)
integers: Final = st.integers(-(2**63), 2**64 - 1)
items: Final = st.builds(Item, st.text(max_size=3), st.lists(integers, max_size=2).map(tuple))


@given(st.lists(st.tuples(ids, items), max_size=60), st.integers(-1, 40), st.integers(-1, 40))
def test_items_are_those_that_were_set_in_the_order_of_the_first_time(
    changes: list[tuple[int, Item]], first: int, last: int
) -> None:
    found, expected = Packed[int, Item](Item), dict[int, Item]()
    for number, (item_id, item) in enumerate(changes):
        assert found.get(item_id) == expected.get(item_id)
        found[item_id] = expected[item_id] = item
        assert found[item_id] == item
        if number == len(changes) // 2:
            copy, then = found.copy(), dict(expected)
    assert list(found.items()) == list(expected.items())
    assert (len(found), 0 in found) == (len(expected), False)
    assert found.ids(first, last) == [n for number, n in enumerate(expected, 1) if first <= number <= last]
    assert list(found.run(first, last)) == [(n, expected[n]) for n in found.ids(first, last)]
    if changes:
        assert list(copy.items()) == list(then.items())
        again = Packed[int, Item](Item)
        for item_id in found:
            again.put(item_id, found.packed(item_id))
        assert again == found == expected
        assert again.is_just(found)
        like = Packed[int, Item](Item, like=found)
        for item_id in found:
            like[item_id] = expected[item_id]
            assert like.packed(item_id) is found.packed(item_id)
        assert like.is_just(found)
        assert again.size_bytes == found.size_bytes
    with pytest.raises(KeyError):
        found[0]
    with pytest.raises(KeyError):
        found.packed(0)


class Keyed(Struct, frozen=True, array_like=True):
    key: str | None = None


@given(st.lists(st.tuples(ids, st.none() | st.integers(0, 9).map(str)), max_size=60))
def test_items_with_a_key_are_found_by_it_and_by_no_former_one(changes: list[tuple[int, str | None]]) -> None:
    """No two have the same key: the domain sees to that."""
    found, expected = Packed[int, Keyed](Keyed), dict[int, str | None]()
    for item_id, key in changes:
        if key is None or expected.get(item_id) == key or key not in expected.values():
            found[item_id] = Keyed(key)
            expected[item_id] = key
    copy, like = found.copy(), Packed[int, Keyed](Keyed, like=found)
    for item_id in found:
        like.put(item_id, found.packed(item_id), expected[item_id])
    by_key = {key: item_id for item_id, key in expected.items() if key is not None}
    for those in (found, copy, like):
        assert {key: those.by_key(key) for key in map(str, range(10))} == {
            key: by_key.get(key) for key in map(str, range(10))
        }
        assert those.is_just(found)
    without = Packed[int, Keyed](Keyed)
    for item_id in found:
        without.put(item_id, found.packed(item_id))
    assert without.is_just(found) == (not by_key), "an index that lacks a key is not the same"


@pytest.mark.parametrize("copied_in_a_look_up", [0, 10**9], ids=["looked up one by one", "copied"])
@given(before=st.dictionaries(ids, items), after=st.dictionaries(ids, items), asked=st.lists(ids))
def test_what_is_held_stays_as_it_was(
    copied_in_a_look_up: int, before: dict[int, Item], after: dict[int, Item], asked: list[int]
) -> None:
    found = Packed[int, Item](Item)
    for item_id, item in before.items():
        found[item_id] = item
    with patch.object(packed, "_COPIED_IN_A_LOOK_UP", copied_in_a_look_up):
        held = found.held(asked)
    for item_id, item in after.items():
        found[item_id] = item
    assert list(held) == [(item_id, before[item_id]) for item_id in asked if item_id in before]


def test_to_hold_few_copies_nothing_and_to_hold_many_copies_once() -> None:
    found = Packed[int, Item](Item)
    for item_id in range(1, 101):
        found[item_id] = Item("", ())
    shards = type(found._packed)
    with (
        patch.object(packed, "_COPIED_IN_A_LOOK_UP", 10),
        patch.object(shards, "copy", autospec=True, side_effect=shards.copy) as copied,
    ):
        assert [item_id for item_id, _ in found.held(range(1, 10))] == [*range(1, 10)]
        assert copied.call_count == 0
        assert [item_id for item_id, _ in found.held(range(1, 11))] == [*range(1, 11)]
        assert copied.call_count == 1


STORED: Final[dict[tuple[int, type[Struct]], str]] = {
    (12, Competitor): "number name tags color parent_id created_at updated_at revised erased key former",
    (12, Competition): (
        "number group_id date location participants result winner_id voided_at created_at updated_at revised struck "
        "scale round round_name key"
    ),
    (12, parts._Unity): "unity_id number name sort version decimals time counts lasts expires_on absent",
}
"""The fields of structs that snapshots store as arrays, when a version of the fold began."""


@pytest.mark.parametrize("kind", [Competitor, Competition, parts._Unity])
def test_a_field_that_a_version_of_the_fold_did_not_begin_with_is_last_and_has_a_default(kind: type[Struct]) -> None:
    """Or snapshots of this version could not be read, or would give the wrong fields."""
    first = STORED[FOLD_VERSION, kind].split()
    assert list(kind.__struct_fields__[: len(first)]) == first
    assert [field.name for field in structs.fields(kind)[len(first) :] if field.required] == []
