"""Frees what is large step by step: to free a million objects in one go takes tens of milliseconds, and nobody else has
a turn meanwhile."""

import asyncio
from collections.abc import Iterable


def free_in_steps(parts: Iterable[object]) -> None:
    """Keeps `parts`, and lets go of one in each round of the event loop. Call it where nobody else keeps them. Without
    an event loop, all are let go of at once."""
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
