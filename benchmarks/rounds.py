"""Interleaved rounds: peer, peer, ours, peer, peer, ours … A machine that is now fast and now slow is so for all."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

_T = TypeVar("_T")

Contestant = Callable[[], Awaitable[_T]]
"""Runs once and returns its figures."""


async def interleaved(rounds: int, contestants: Mapping[str, Contestant[_T]]) -> dict[str, list[_T]]:
    """The figures of every contestant by its name, one per round; each round has them all, in their order."""
    figures: dict[str, list[_T]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, run in contestants.items():
            figures[name].append(await run())
    return figures
