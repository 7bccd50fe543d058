"""Frees large structures in small steps, because freeing a million objects at once blocks the event loop for tens of
milliseconds."""

import asyncio
from collections.abc import Iterable


def free_in_steps(parts: Iterable[object]) -> None:
    """Keeps `parts` and releases one per round of the event loop; without an event loop, all at once. Only useful if
    nothing else refers to them."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return
    kept = list(parts)

    def step() -> None:
        kept.pop()
        if kept:
            loop.call_soon(step)

    if kept:
        loop.call_soon(step)
