"""The forest of competitors as nested sets: level, lft and rgt from parents.

Pure. Bounds are derived when they are shown and never stored, so there is nothing to keep in step.
"""

from collections.abc import Mapping

from msgspec import Struct

from engine.terms import CompetitorId


class Bounds(Struct, frozen=True):
    """`level` is 0 for a root. All that is below a competitor has its bounds within `lft` and `rgt`."""

    level: int
    lft: int
    rgt: int


def bounds(parents: Mapping[CompetitorId, CompetitorId | None]) -> dict[CompetitorId, Bounds]:
    """The bounds of each competitor in one numbering of the forest; siblings in the order of `parents`.

    Walks without recursion: a hierarchy may be as deep as it is long.
    """
    children: dict[CompetitorId | None, list[CompetitorId]] = {}
    for competitor_id, parent_id in parents.items():
        children.setdefault(parent_id, []).append(competitor_id)
    found: dict[CompetitorId, Bounds] = {}
    entered: dict[CompetitorId, int] = {}
    next_bound = 1
    walk = list(reversed(children.get(None, [])))
    level = 0
    while walk:
        competitor_id = walk[-1]
        if competitor_id in entered:
            walk.pop()
            level -= 1
            found[competitor_id] = Bounds(level, entered[competitor_id], next_bound)
        else:
            entered[competitor_id] = next_bound
            level += 1
            walk.extend(reversed(children.get(competitor_id, [])))
        next_bound += 1
    return found
