"""Time slices of the event loop: long work yields to the rest of the process about every half millisecond.

`TimeSlice` is for one piece of work, if few are under way at once: loading, rebuilding, the worker.

    time_slice = TimeSlice()
    for item in many:
        work(item)
        if time_slice.over:
            await time_slice.give_way()

All answers of a process share one `TimeSlices`, however many are made at the same time: together they get one slice in
each round of the loop.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Generator, Iterable
from itertools import islice
from typing import Final, TypeVar, cast

_T = TypeVar("_T")

SHARED_SLICE_SECONDS: Final = 0.0005
"""How long the work that shares a `TimeSlices` runs in one round of the event loop, plus the rest of the current step.
Another request takes some five rounds, and should not wait for more than 20 ms."""
SLICE_SECONDS_MAX: Final = 0.0005
"""How long work with a `TimeSlice` runs without a pause, plus the rest of the current item. Each piece of such work
gets a slice in each round."""


class TimeSlice:
    """Begins when created, and again each time after `give_way`."""

    def __init__(self) -> None:
        self._until = time.perf_counter() + SLICE_SECONDS_MAX

    @property
    def over(self) -> bool:
        return time.perf_counter() > self._until

    async def give_way(self) -> None:
        """Returns when all other work that was ready has had a slice."""
        await asyncio.sleep(0)
        self._until = time.perf_counter() + SLICE_SECONDS_MAX


async def in_time_slices(steps: Generator[object, None, _T], time_slice: TimeSlice | None = None) -> _T:
    """Takes all `steps`, each of which must be small. Returns their result. `time_slice`: the one that has begun."""
    time_slice = time_slice or TimeSlice()
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return cast(_T, end.value)
        if time_slice.over:
            await time_slice.give_way()


async def all_of(items: Iterable[_T], at_once: int = 1) -> list[_T]:
    """All items, with pauses for other work. Making `at_once` of them must take little time."""
    return [item async for chunk in in_chunks(items, at_once) for item in chunk]


async def in_chunks(items: Iterable[_T], chunk_items: int) -> AsyncIterator[list[_T]]:
    """The items in chunks of this size, with pauses for other work between them."""
    rest, time_slice = iter(items), TimeSlice()
    while chunk := list(islice(rest, chunk_items)):
        yield chunk
        if time_slice.over:
            await time_slice.give_way()


WOKEN_AT_ONCE: Final = 16
"""The number of ready requests, of possibly hundreds, that continue in one round of the event loop."""
WOKEN_PER_SECOND_MIN: Final = 4_000
"""The least number that continue in a second, even if other work makes rounds long."""


class Rounds:
    """Distributes tasks to be woken over rounds of the event loop. If hundreds continued in one round, every other task
    would wait for all of them at each of its own steps."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    async def leave(self) -> int:
        """The number of tasks that may be woken now. Returns in a new round each time, to one caller per round."""
        async with self._lock:
            began_at = time.perf_counter()
            await asyncio.sleep(0)
            return max(WOKEN_AT_ONCE, int((time.perf_counter() - began_at) * WOKEN_PER_SECOND_MIN))


class TimeSlices:
    """Divides the long work of a process into slices, one slice in each round of the event loop, however much such work
    there is. Do the work `async with` this, step by step, until `over`; then leave and enter again.

    The lock is held until a round has passed, so that work that reaches its slice in the same round waits. It is fair,
    and wakes the next waiter in a later round than the one in which it was released. So all other work gets its turn
    between two slices.
    """

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._until = 0.0

    async def __aenter__(self) -> None:
        await self._lock.acquire()
        self._until = time.perf_counter() + SHARED_SLICE_SECONDS

    async def __aexit__(self, *_: object) -> None:
        try:
            await asyncio.sleep(0)
        finally:
            self._lock.release()

    @property
    def over(self) -> bool:
        return time.perf_counter() > self._until

    async def each(self, do: Callable[[_T], object], items: Iterable[_T]) -> None:
        """Calls `do`, which must take little time, with each of the items."""
        await self.work(map(do, items))

    async def work(self, steps: Iterable[object]) -> None:
        """Takes all `steps`, which must be small, in as many slices as they need."""
        walk = iter(steps)
        while True:
            async with self:
                for _ in walk:
                    if self.over:
                        break
                else:
                    return
