"""The forest of competitors as nested sets: level, lft and rgt from parents.

Pure. Bounds are derived when they are shown and never stored, so there is nothing to keep in step.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from engine.domain.terms import CompetitorId


class NestedSetBounds(Struct, frozen=True):
    """`level` is 0 for a root. Everything below a competitor has its bounds within `lft` and `rgt`."""

    level: int
    lft: int
    rgt: int


def bounds(parents: Mapping[CompetitorId, CompetitorId | None]) -> dict[CompetitorId, NestedSetBounds]:
    """The bounds of each competitor in one numbering of the forest; siblings in the order of `parents`."""
    found: dict[CompetitorId, NestedSetBounds] = {}
    for _ in walk(parents.items(), found):
        pass
    return found


def walk(
    parents: Iterable[tuple[CompetitorId, CompetitorId | None]], found: dict[CompetitorId, NestedSetBounds]
) -> Iterator[None]:
    """Enters the bounds of each competitor in `found`, in steps of some hundred competitors. `parents` has each
    competitor with its parent, and is read in the first steps.

    Walks without recursion: a hierarchy may be as deep as it is long.
    """
    children: dict[CompetitorId | None, list[CompetitorId]] = {}
    for number, (competitor_id, parent_id) in enumerate(parents):
        children.setdefault(parent_id, []).append(competitor_id)
        if number % _STEP == 0:
            yield
    entered: dict[CompetitorId, int] = {}
    next_bound = 1
    way = list(reversed(children.get(None, [])))
    level = 0
    while way:
        competitor_id = way[-1]
        if competitor_id in entered:
            way.pop()
            level -= 1
            found[competitor_id] = NestedSetBounds(level, entered[competitor_id], next_bound)
        else:
            entered[competitor_id] = next_bound
            level += 1
            way.extend(reversed(children.get(competitor_id, [])))
        next_bound += 1
        if next_bound % _STEP == 0:
            yield


_STEP: Final = 500
