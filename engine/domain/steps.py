"""Work in small steps, between which the caller may pause for other work.

Pure. `engine/process/time_slices.py` takes steps with pauses.
"""

from collections.abc import Callable, Generator, Iterable, Iterator
from heapq import merge
from itertools import islice
from typing import Any, Final, TypeVar, cast

_T = TypeVar("_T")
Steps = Generator[None, None, _T]

RUN_ITEMS: Final = 1_000
"""Items that are sorted in one step. The runs are then merged, so there must not be too many of them."""


def collected(items: Iterable[_T]) -> Steps[list[_T]]:
    """A list of the items, each of which is made in a step."""
    found = []
    for item in items:
        found.append(item)
        yield
    return found


def in_order(items: Iterable[_T], key: Callable[[_T], Any], *, reverse: bool = False) -> Steps[Iterator[_T]]:
    """The items as `sorted` has them: runs are sorted, each in a step, and merged while they are read."""
    rest, runs = iter(items), list[list[_T]]()
    while run := sorted(islice(rest, RUN_ITEMS), key=key, reverse=reverse):
        runs.append(run)
        yield
    return merge(*runs, key=key, reverse=reverse)  # stable, reversed too


def finished(steps: Steps[_T]) -> _T:
    """Runs all steps without a pause, and returns their result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return cast(_T, end.value)
