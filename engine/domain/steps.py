"""Work in small steps, between which the caller may pause for other work.

Pure. `engine/process/time_slices.py` takes steps with pauses.
"""

from collections.abc import Generator, Iterable
from typing import TypeVar, cast

_T = TypeVar("_T")
Steps = Generator[None, None, _T]


def collected(items: Iterable[_T]) -> Steps[list[_T]]:
    """A list of the items, each of which is made in a step."""
    found = []
    for item in items:
        found.append(item)
        yield
    return found


def finished(steps: Steps[_T]) -> _T:
    """Runs all steps without a pause, and returns their result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return cast(_T, end.value)
