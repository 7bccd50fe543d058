"""Long work gives way: to all else between two slices, however much long work there is."""

import asyncio
from collections.abc import Iterator
from itertools import pairwise

import pytest

from engine.process.time_slices import TimeSlices
from tests.desks import GUARD_SECONDS


class OneStepEach(TimeSlices):
    """Each slice is over after one step."""

    @property
    def over(self) -> bool:
        return True


async def test_between_two_slices_all_others_have_their_turn() -> None:
    """Also where much work begins in the same round of the loop."""
    happened: list[str] = []

    def steps(name: str) -> Iterator[None]:
        for _ in range(5):
            happened.append(name)
            yield

    async def go_on() -> None:
        while True:
            happened.append("others")
            await asyncio.sleep(0)

    others = asyncio.create_task(go_on())
    time_slices = OneStepEach()
    await asyncio.gather(*(time_slices.work(steps(name)) for name in "abc"))
    others.cancel()
    slices = [n for n, name in enumerate(happened) if name != "others"]
    assert len(slices) == 15
    assert all("others" in happened[first:second] for first, second in pairwise(slices))
    assert [happened[n] for n in slices] == [*"abcabcabcabcabc"]


async def test_work_that_is_given_up_while_it_gives_way_leaves_the_turn_to_the_next() -> None:
    time_slices = OneStepEach()
    given_up = asyncio.create_task(time_slices.work(iter([None] * 1_000_000)))
    await asyncio.sleep(0)
    given_up.cancel()
    with pytest.raises(asyncio.CancelledError):
        await given_up
    async with asyncio.timeout(GUARD_SECONDS):
        await time_slices.work(iter([None] * 3))
