"""A dictionary in shards, against a dictionary."""

import asyncio
import gc
import tracemalloc
from array import array
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from time import thread_time
from types import ModuleType
from typing import Any, Final
from unittest.mock import patch
from weakref import WeakSet

import pytest
from hypothesis import given
from hypothesis import strategies as st

from projections.columns import shards
from projections.columns.enrolment import Enrolment
from projections.columns.packed import Packed
from projections.columns.shards import RUN_BITS, Shards, Values
from tests.projections.boards import Item
from tests.projections.classified import STEP_SECONDS_MAX, frozen

MANY: Final = 1_000_000
AT_ONCE: Final = 500

ids: Final = st.integers(1, 200) | st.integers(2**63 - 200, 2**63 - 1)
entries: Final = st.tuples(ids, st.integers(-(2**63), 2**63 - 1))
integers: Final = partial(array, "q")


@given(
    changes=st.lists(entries | st.lists(entries, max_size=20), max_size=60),
    column=st.sampled_from([Values, integers]),
)
def test_entries_are_those_of_a_dictionary(
    changes: list[tuple[int, int] | list[tuple[int, int]]], column: Callable[[], Any]
) -> None:
    with patch.object(shards, "WHOLE_MAX", 30):
        found, expected = Shards[int, int](column), dict[int, int]()
        for change in changes:
            copy, then = found.copy(), dict(expected)
            if isinstance(change, tuple):
                key, value = change
                found[key] = expected[key] = value
            else:
                found.update(change)
                expected.update(change)
            assert {key: copy.get(key) for key in then} == then
            assert len(copy) == len(then)
            assert {key: found.get(key) for key in then | expected} == then | expected
            assert (not found.whole) == (not 0 < len(expected) <= 30)
        assert len(found) == len(expected)
        for key, value in expected.items():
            assert found[key] == found.get(key) == (found.whole or found.shard(key))[key] == value
        for missing in {key + 1 for key in expected} - expected.keys():
            assert found.get(missing) is None
            with pytest.raises(KeyError):
                found[missing]
        again = Shards[int, int](column)
        for key in reversed(expected):
            again[key] = expected[key]
        assert again == found
        again[1] = expected.get(1, 0) + 1
        assert again != found
    assert found.get(0) is None
    with pytest.raises(KeyError):
        found[0]


@pytest.mark.long
def test_an_entry_of_a_large_one_takes_little_memory() -> None:
    tracemalloc.start()
    try:
        made = Shards[int, int](integers)
        for key in range(MANY):
            made[key] = key
        taken_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken_bytes < 20 * MANY
    assert made.size_bytes == pytest.approx(taken_bytes, rel=0.1)


def packed() -> Iterator[Packed[int, Item]]:
    made = Packed[int, Item](Item)
    for n in range(1, MANY):
        made.put(n, b"")
        if n % AT_ONCE == 0:
            yield made
    yield made


def enrolled() -> Iterator[Enrolment]:
    made = Enrolment()
    ascending = iter(range(1, MANY))
    while run := list(islice(ascending, AT_ONCE)):
        made.append_places(run)
        yield made


@pytest.mark.long
@pytest.mark.parametrize("make", [packed, enrolled])
async def test_no_step_of_growing_to_a_million_or_of_being_freed_is_long(make: Callable[[], Iterator[object]]) -> None:
    """One dictionary of a million makes room in some 20 ms, and is freed in as many."""
    assert min([await longest_step(make()) for _ in range(3)]) < STEP_SECONDS_MAX / 2


async def longest_step(making: Iterator[object]) -> float:
    """Seconds of processor time, for making it or for freeing it."""
    longest = 0.0
    gc.collect()
    with frozen():
        began_at = thread_time()
        while next(making, None) is not None:
            longest = max(longest, thread_time() - began_at)
            began_at = thread_time()
        for _ in range(100):
            longest = max(longest, thread_time() - began_at)
            began_at = thread_time()
            await asyncio.sleep(0)
    return longest


def test_the_garbage_collector_looks_at_few_of_many_packed_items() -> None:
    """It looked at all of them, which took it 30 ms for a million."""
    made = Packed[int, Item](Item)
    for n in range(1, 100_001):
        made.put(n, bytes(4))
    gc.collect()
    assert sum(map(len, looked_at(made))) < 15_000


def looked_at(root: object) -> Iterator[list[object]]:
    """What each object that the collector goes through refers to, from `root` on."""
    met, waiting = {id(root)}, [root]
    while waiting:
        referents = gc.get_referents(waiting.pop())
        yield referents
        new = {id(one): one for one in referents if gc.is_tracked(one) and not isinstance(one, type | ModuleType)}
        waiting += [one for key, one in new.items() if key not in met]
        met |= new.keys()


class Value:
    """Something that can be seen to be freed."""


def divided() -> tuple[Shards[int, Value], WeakSet[Value]]:
    made, alive = Shards[int, Value](), WeakSet[Value]()
    for n in range(shards.WHOLE_MAX + 1):
        made[n] = value = Value()
        alive.add(value)
    return made, alive


async def test_what_is_divided_is_freed_shard_by_shard() -> None:
    made, alive = divided()
    del made
    await asyncio.sleep(0)
    assert 0 < len(alive) <= shards.WHOLE_MAX + 1
    for _ in range(100):
        before = len(alive)
        await asyncio.sleep(0)
        assert before - len(alive) <= 1 << RUN_BITS
    assert not alive


def test_without_an_event_loop_all_is_freed_at_once() -> None:
    made, alive = divided()
    del made
    assert not alive
