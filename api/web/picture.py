"""The picture of a table, for previews of links to a board: a PNG of 1200 by 630, a usual size in Open Graph.

It shows the first lines. `drawing.py` draws it; it is imported at the first picture, for a service that starts sooner.
Drawing takes about a tenth of a second. Each process draws one picture at a time, in a thread, once for all requests
for it, and at most PICTURES_PER_SECOND_MAX.
"""

import asyncio
import importlib
from typing import Final

from api.http.throttle import Throttle
from api.web.pictured import Pictured

PICTURES_PER_SECOND_MAX: Final = 2.0
PICTURES_AT_ONCE_MAX: Final = 20
"""Pictures that a process draws per second, after a burst of this many."""
PICTURES_KEPT_MAX: Final = 10
"""Pictures that a process keeps: the last that it drew. Some requests for a picture still read the log when it is
done."""


class Pictures:
    """Draws the pictures of one process."""

    def __init__(self) -> None:
        message = "Too many pictures are being drawn; ask for this one again in a moment."
        self._drawn = Throttle(message, at_once=PICTURES_AT_ONCE_MAX, per_second=PICTURES_PER_SECOND_MAX)
        self._one_at_a_time = asyncio.Lock()  # two threads must not use fonts at once
        self._drawing: dict[Pictured, asyncio.Task[bytes]] = {}
        self._kept: dict[Pictured, bytes] = {}  # in the order in which they were drawn

    async def drawn(self, shown: Pictured) -> bytes:
        """The picture as a PNG. Raises TooManyRequests."""
        if (kept := self._kept.get(shown)) is not None:
            return kept
        drawing = self._drawing.get(shown)
        if drawing is None:
            self._drawn.take(None)
            drawing = self._drawing[shown] = asyncio.create_task(self._draw(shown))
            drawing.add_done_callback(lambda _: self._drawing.pop(shown))
        return await asyncio.shield(drawing)  # others may wait for it too

    async def _draw(self, shown: Pictured) -> bytes:
        async with self._one_at_a_time:
            drawn = await asyncio.to_thread(_drawn, shown)
        self._kept[shown] = drawn
        if len(self._kept) > PICTURES_KEPT_MAX:
            del self._kept[next(iter(self._kept))]
        return drawn


def _drawn(shown: Pictured) -> bytes:
    png: bytes = importlib.import_module("api.web.drawing").draw(shown)
    return png
