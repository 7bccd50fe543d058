"""Work in small steps, between which the caller may pause for other work.

Pure. `engine/process/time_slices.py` takes steps with pauses.
"""

from collections.abc import Generator, Iterable
from itertools import islice
from typing import TypeVar, cast

_T = TypeVar("_T")
Steps = Generator[None, None, _T]


def collected(items: Iterable[_T], at_once: int = 1) -> Steps[list[_T]]:
    """A list of the items. `at_once`: how many are made in a step."""
    found, rest = list[_T](), iter(items)
    while some := [*islice(rest, at_once)]:
        found += some
        yield
    return found


def finished(steps: Steps[_T]) -> _T:
    """Runs all steps without a pause, and returns their result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return cast(_T, end.value)
