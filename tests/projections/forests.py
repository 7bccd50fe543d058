"""Forests of competitors, and nested sets by counting."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from engine.domain.events import (
    CompetitorChanged,
    CompetitorRegistered,
    Event,
)
from engine.domain.terms import CompetitorId
from projections.board import hierarchy
from projections.board.hierarchy import NestedSetBounds
from tests.bounds import set_bounds

Parents = dict[CompetitorId, CompetitorId | None]


@contextmanager
def small_leaves() -> Iterator[None]:
    """Few competitors fill many leaves."""
    with pytest.MonkeyPatch.context() as patch:
        set_bounds(patch, LEAF_STOPS_MAX=4)
        patch.setattr(hierarchy, "_LEAF_FILLED", 3)
        patch.setattr(hierarchy, "_LEAF_MIN", 2)
        patch.setattr(hierarchy, "_STEP", 2)
        yield


def naive(parents: Parents) -> dict[CompetitorId, NestedSetBounds]:
    """Walks through the forest and counts every coming and going."""
    found: dict[CompetitorId, NestedSetBounds] = {}
    steps = 0

    def visit(competitor_id: CompetitorId, level: int) -> None:
        nonlocal steps
        lft = steps = steps + 1
        for child_id, parent_id in parents.items():
            if parent_id == competitor_id:
                visit(child_id, level + 1)
        steps += 1
        found[competitor_id] = NestedSetBounds(level, lft, steps)

    for competitor_id, parent_id in parents.items():
        if parent_id is None:
            visit(competitor_id, 0)
    return found


def line_of(parents: Parents, competitor_id: CompetitorId) -> list[CompetitorId]:
    """All above a competitor."""
    parent_id = parents[competitor_id]
    return [] if parent_id is None else [parent_id, *line_of(parents, parent_id)]


def registered(number: int, parent: int | None = None) -> Event:
    parent_id = None if parent is None else CompetitorId(parent)
    return CompetitorRegistered(competitor_id=CompetitorId(number), name="a", parent_id=parent_id)


def moved(number: int, parent: int | None) -> Event:
    parent_id = None if parent is None else CompetitorId(parent)
    return CompetitorChanged(competitor_id=CompetitorId(number), parent_id=parent_id)
