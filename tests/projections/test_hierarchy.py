"""Nested sets: the bounds of a forest, against the recursion that defines them."""

import sys
from array import array
from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from engine.domain.terms import CompetitorId
from projections.board import hierarchy
from projections.board.hierarchy import Forest, NestedSetBounds
from tests.histories import unhurried
from tests.projections.forests import Parents, line_of, naive, small_leaves


def forest_of(parents: Parents) -> Forest:
    """Made in steps, as of a board that is there already."""
    numbers = {competitor_id: number for number, competitor_id in enumerate(parents, start=1)}
    steps = Forest.in_steps(array("i", (0, *(numbers[p] if p is not None else 0 for p in parents.values()))))
    made: list[Forest] = []

    def make() -> Iterator[None]:
        made.append((yield from steps))

    for _ in make():
        pass
    return made[0]


def bounds(parents: Parents, forest: Forest | None = None) -> dict[CompetitorId, NestedSetBounds]:
    forest = forest_of(parents) if forest is None else forest
    return {competitor_id: forest.bounds(number) for number, competitor_id in enumerate(parents, start=1)}


@st.composite
def forests(draw: st.DrawFn) -> Parents:
    """Competitors in any order: a parent may have been registered after its children."""
    count = draw(st.integers(0, 20))
    parents = [draw(st.none() | st.integers(1, n - 1)) if n > 1 else None for n in range(1, count + 1)]
    shuffled = draw(st.permutations(list(enumerate(parents, start=1))))
    return dict(shuffled)


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


@unhurried
@given(forests(), st.data())
def test_bounds_follow_registrations_and_changes_of_parents(parents: Parents, data: st.DataObject) -> None:
    with small_leaves():
        forest = forest_of(parents)
        assert bounds(parents, forest) == naive(parents)
        for _ in range(data.draw(st.integers(1, 12))):
            competitors = list(parents)
            moved = data.draw(st.none() | st.sampled_from(competitors)) if competitors else None
            if moved is None:  # a new one
                new = CompetitorId(max(competitors, default=0) + 1)
                parents[new] = data.draw(st.none() | st.sampled_from(competitors)) if competitors else None
                forest.add(0 if parents[new] is None else competitors.index(parents[new]) + 1)
            else:
                above = [c for c in competitors if c != moved and moved not in line_of(parents, c)]
                parent = parents[moved] = data.draw(st.sampled_from([None, *above]))
                forest.move(competitors.index(moved) + 1, 0 if parent is None else competitors.index(parent) + 1)
            assert bounds(parents, forest) == naive(parents)
            below = {c: 1 + sum(c in line_of(parents, other) for other in parents) for c in parents}
            assert {c: forest.family(n) for n, c in enumerate(parents, start=1)} == below
        assert len(forest) == len(parents)


@unhurried
@given(forests(), st.data())
def test_a_frozen_forest_keeps_its_bounds(parents: Parents, data: st.DataObject) -> None:
    with small_leaves():
        forest = forest_of(parents)
        frozen = forest.frozen()
        for _ in range(data.draw(st.integers(1, 5))):
            forest.add(data.draw(st.integers(0, len(forest))))
        for child in range(len(parents) + 1, len(forest) + 1):
            forest.move(child, data.draw(st.integers(0, child - 1)))
        assert bounds(parents, frozen) == naive(parents)
        assert len(frozen) == len(parents) < len(forest)


def test_many_children_and_moves_keep_the_leaves_as_few_as_they_may_be() -> None:
    """Families that move to and fro leave no empty leaves behind."""
    forest = Forest()
    for number in range(1, 3_001):
        forest.add(0 if number <= 2 else 1 + number % 2)
    family = forest.family(1)
    assert family == 1_500
    for n in range(200):
        forest.add(1 if n % 2 else 2)
        child = len(forest)
        for _ in range(100):
            forest.add(child)
        for parent in (1, 2, 1, 2):
            forest.move(child, parent)
    places = 2 * len(forest)
    assert forest.bounds(2) == NestedSetBounds(0, 2 * 1_500 + 1, places)
    assert len(forest._leaves) < 4 * places // hierarchy.LEAF_STOPS_MAX
    assert min(map(len, forest._leaves)) >= 1
