"""Nested sets: the bounds of a forest, against the recursion that defines them."""

import sys

from hypothesis import given
from hypothesis import strategies as st

from engine.domain.terms import CompetitorId
from projections.board.hierarchy import NestedSetBounds, bounds
from tests.histories import unhurried

Parents = dict[CompetitorId, CompetitorId | None]


@st.composite
def forests(draw: st.DrawFn) -> Parents:
    """Competitors in any order: a parent may have been registered after its children."""
    count = draw(st.integers(0, 20))
    parents = [draw(st.none() | st.integers(1, n - 1)) if n > 1 else None for n in range(1, count + 1)]
    shuffled = draw(st.permutations(list(enumerate(parents, start=1))))
    return dict(shuffled)


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


@unhurried
@given(forests())
def test_bounds_are_those_of_a_walk_through_the_forest(parents: Parents) -> None:
    assert bounds(parents) == naive(parents)


@unhurried
@given(forests())
def test_each_number_up_to_twice_the_competitors_is_used_once(parents: Parents) -> None:
    numbers = [number for b in bounds(parents).values() for number in (b.lft, b.rgt)]
    assert sorted(numbers) == list(range(1, 2 * len(parents) + 1))


@unhurried
@given(forests())
def test_a_competitor_lies_within_just_those_above_it(parents: Parents) -> None:
    found = bounds(parents)
    for competitor_id, inner in found.items():
        around = {other_id for other_id, outer in found.items() if outer.lft < inner.lft < inner.rgt < outer.rgt}
        assert around == set(line_of(parents, competitor_id))
        assert inner.level == len(around)


@unhurried
@given(forests())
def test_siblings_stand_in_the_order_of_their_registration(parents: Parents) -> None:
    found = bounds(parents)
    for family in set(parents.values()):
        siblings = [found[competitor_id].lft for competitor_id, parent_id in parents.items() if parent_id == family]
        assert siblings == sorted(siblings)


def test_nobody_has_no_bounds() -> None:
    assert bounds({}) == {}


def test_a_small_forest() -> None:
    club, anna, team, ben, single = map(CompetitorId, (1, 2, 3, 4, 5))
    assert bounds({club: None, anna: team, team: club, ben: club, single: None}) == {
        club: NestedSetBounds(0, 1, 8),
        team: NestedSetBounds(1, 2, 5),
        anna: NestedSetBounds(2, 3, 4),
        ben: NestedSetBounds(1, 6, 7),
        single: NestedSetBounds(0, 9, 10),
    }


def test_a_chain_may_be_deeper_than_python_recurses() -> None:
    length = 5_000
    assert length > sys.getrecursionlimit()
    found = bounds({CompetitorId(n): CompetitorId(n - 1) if n > 1 else None for n in range(1, length + 1)})
    assert found == {n: NestedSetBounds(n - 1, n, 2 * length + 1 - n) for n in range(1, length + 1)}
