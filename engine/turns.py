"""Turns of the event loop: whoever has long work gives way to the others every few milliseconds.

turn = Turn()
for item in many:
    work(item)
    if turn.over:
        await turn.give_way()
"""

import asyncio
import time
from typing import Final

TURN_SECONDS_MAX: Final = 0.002
"""Of work in one go, beside the item that is begun then; several who work so at once have a turn each in one round."""


class Turn:
    """Begins when it is made, and anew whenever it gave way."""

    def __init__(self) -> None:
        self._until = time.perf_counter() + TURN_SECONDS_MAX

    @property
    def over(self) -> bool:
        return time.perf_counter() > self._until

    async def give_way(self) -> None:
        """Returns when everybody else who had something to do has had a turn."""
        await asyncio.sleep(0)
        self._until = time.perf_counter() + TURN_SECONDS_MAX
