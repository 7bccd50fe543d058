"""Clients that append numbers to lists, read the lists, and write a history down.

A list is what a ranking's history shows: each append adds a delta that no other has, and a read shows all deltas in
their order. An append has a key, and is sent again until its answer is definite.
"""

import asyncio
import json
import time
from contextlib import suppress
from itertools import count
from random import Random
from typing import Final

from assurance.faults.clients import Answer, Arena, Caller, NotSent
from tests.outside.operations import Operation

APPENDS_SHARE: Final = 0.6
LINES: Final = 1_000  # of one page
PAUSE_SECONDS: Final = 0.05


class Recorder:
    """A client: it asks one thing after the other, of any of the services."""

    def __init__(self, number: int, callers: list[Caller], arenas: list[Arena], numbers: "count[int]") -> None:
        self.operations: list[Operation] = []
        self._number = number
        self._callers = callers
        self._arenas = arenas
        self._numbers = numbers
        self._random = Random(number)

    async def play(self, stopped: asyncio.Event) -> None:
        """Asks until `stopped` is set."""
        while not stopped.is_set():
            place = self._random.randrange(len(self._arenas))
            if self._random.random() < APPENDS_SHARE:
                await self._append(place, next(self._numbers), stopped)
            else:
                await self._read(place)

    async def read_all(self) -> None:
        """Reads every list once."""
        for place in range(len(self._arenas)):
            await self._read(place)

    async def _append(self, place: int, value: int, stopped: asyncio.Event) -> None:
        arena = self._arenas[place]
        deltas = [{"competitor_id": arena.competitors[0], "unities": [{"unity_id": arena.unities[0], "delta": value}]}]
        path = f"/tournament/{arena.slug}/rankings/{arena.ranking_id}/add.json"
        call = time.monotonic_ns()
        is_done, end = False, None
        while not is_done and not stopped.is_set():
            answer = await self._ask("PUT", path, {"participants_delta": json.dumps(deltas)}, f"list-{value}")
            is_done = answer is not None and answer.status == 200
            assert is_done or answer is None or answer.status in (500, 503), answer
            if not is_done:
                await asyncio.sleep(PAUSE_SECONDS)
        if is_done:
            end = time.monotonic_ns()
        self._note(place, "append", value, call, end)

    async def _read(self, place: int) -> None:
        arena = self._arenas[place]
        path = f"/tournament/{arena.slug}/rankings/{arena.ranking_id}/history.json?limit={LINES}"
        call = time.monotonic_ns()
        answer = await self._ask("GET", path)
        end = time.monotonic_ns()
        if answer is not None and answer.status == 200:
            found = json.loads(answer.body)
            assert found["next"] is None, "the list is longer than a page"
            self._note(place, "read", None, call, end, [line["delta"] for line in found["history"]])

    async def _ask(
        self, method: str, path: str, form: dict[str, object] | None = None, key: str | None = None
    ) -> Answer | None:
        with suppress(NotSent, OSError, EOFError, TimeoutError):
            return await self._random.choice(self._callers).ask(method, path, form, key)
        return None

    def _note(
        self, place: int, action: str, value: int | None, call: int, end: int | None, shown: list[int] | None = None
    ) -> None:
        name = self._arenas[place].slug
        self.operations.append(
            Operation(client=self._number, object=name, action=action, value=value, call=call, end=end, shown=shown)
        )

    def close(self) -> None:
        for caller in self._callers:
            caller.close()
