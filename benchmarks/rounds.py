"""Interleaved rounds: peer, peer, ours, peer, peer, ours … So a change in the machine's speed affects all
contestants."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

_T = TypeVar("_T")

Contestant = Callable[[], Awaitable[_T]]
"""Runs once and returns its figures."""


async def interleaved(rounds: int, contestants: Mapping[str, Contestant[_T]]) -> dict[str, list[_T]]:
    """The figures of every contestant by its name, one per round. Each round runs all of them, in the order given."""
    figures: dict[str, list[_T]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, run in contestants.items():
            figures[name].append(await run())
    return figures
