"""The forest of competitors as nested sets: level, lft and rgt from parents.

Pure. Competitors are identified by their numbers, from 1. Siblings and roots are in the order of numbers.

The forest is kept as a tour: each competitor, all competitors below it, and the competitor again as a negative number.
`lft` and `rgt` are its two places in the tour. The tour is stored in leaves. The leaves of both places are known for
each competitor, and `Tallies` count the entries in the leaves before. So a query, a new competitor and a move each cost
a search in a leaf and log₂ of the number of leaves. A move also costs time for everything that it moves.
"""

from array import array
from collections.abc import Generator
from itertools import chain
from typing import Final

from msgspec import Struct

from engine.domain.errors import Impossible
from projections.columns.sorted_integers import SortedIntegers, Tallies

LEAF_STOPS_MAX: Final = 512
"""Places of the tour in a leaf. Searching a leaf of this size takes as long as finding the leaf."""
_LEAF_FILLED: Final = LEAF_STOPS_MAX * 7 // 8
_LEAF_MIN: Final = LEAF_STOPS_MAX // 8
_STEP: Final = 2_000
_PARENT_BITS: Final = 32
_NODE: Final = (1 << _PARENT_BITS) - 1
_NODE_BYTES: Final = 36
_CHILD_BYTES: Final = 10


class NestedSetBounds(Struct, frozen=True):
    """`level` is 0 for a root. Everything below a competitor has its bounds within `lft` and `rgt`."""

    level: int
    lft: int
    rgt: int


class Forest:
    """The competitors 1, 2, 3 … Parents are numbers, too; 0: the competitor is a root. Empty when created."""

    def __init__(self) -> None:
        self._parents = array("i", (0,))  # the first is above all roots
        self._levels = array("i", (-1,))
        self._siblings = SortedIntegers()  # of each competitor the parent, and below it itself
        self._leaves = [array("i")]  # in no order; replaced and not changed, so that a frozen forest can share them
        self._order = [0]  # which leaf is the n-th of the tour
        self._places = [0]  # by leaf: its place in the order
        self._counts = Tallies((0,))  # in the order
        self._begins = array("i", (0,))  # by competitor: in which leaf it stands first, and again
        self._ends = array("i", (0,))

    @classmethod
    def in_steps(cls, parents: "array[int]") -> Generator[None, None, "Forest"]:
        """Makes it in time slices. `parents` has the parent of each competitor at its number, and
        something at 0. Raises Impossible if a competitor is below itself."""
        size = len(parents)
        first, following = array("i", bytes(4 * size)), array("i", bytes(4 * size))
        for start in range(size - 1, 0, -_STEP):
            for node in range(start, max(start - _STEP, 0), -1):
                following[node] = first[parents[node]]
                first[parents[node]] = node
            yield
        forest = cls()
        forest._parents = parents
        forest._levels, forest._begins, forest._ends = (array("i", bytes(4 * size)) for _ in range(3))
        forest._levels[0] = -1
        yield from forest._tour(first, following)
        siblings = array("q")
        for parent in range(size):
            node = first[parent]
            while node:
                siblings.append(parent << _PARENT_BITS | node)
                node = following[node]
                if len(siblings) % _STEP == 0:
                    yield
            if parent % _STEP == 0:
                yield
        yield from forest._siblings.fill(siblings)
        return forest

    def _tour(self, first: "array[int]", following: "array[int]") -> Generator[None, None, None]:
        """Walks the tour without recursion: a hierarchy may be as deep as it is long. A competitor is followed by its
        `first` child, or else by its `following` sibling, or that of the next above it that has one."""
        levels, begins, ends, leaves, parents = self._levels, self._begins, self._ends, self._leaves, self._parents
        number, leaf, node, level = 0, leaves[0], first[0], 0
        while node:
            if len(leaf) >= _LEAF_FILLED:
                number, leaf = len(leaves), array("i")
                leaves.append(leaf)
                yield
            leaf.append(node)
            if node > 0:
                levels[node], begins[node] = level, number
                level += bool(first[node])
                node = first[node] or -node
            else:
                ends[-node] = number
                level -= not following[-node]
                node = following[-node] or -parents[-node]
        self._order, self._places = list(range(len(leaves))), list(range(len(leaves)))
        self._counts = Tallies(map(len, leaves))
        if sum(map(len, leaves)) != 2 * (len(parents) - 1):  # the tour began at the roots
            raise Impossible("a circle of parents")

    def frozen(self) -> "Forest":
        """A read-only copy with the current bounds."""
        frozen = Forest()
        frozen._parents = self._parents
        frozen._levels, frozen._begins, frozen._ends = self._levels[:], self._begins[:], self._ends[:]
        frozen._leaves, frozen._places, frozen._counts = self._leaves[:], self._places, self._counts.copy()
        return frozen

    # ── Questions ───────────────────────────────────────────────────────────────────────────────────────

    def __len__(self) -> int:
        """The number of competitors."""
        return len(self._levels) - 1

    def bounds(self, node: int) -> NestedSetBounds:
        """The bounds of an existing competitor."""
        leaf = self._begins[node]
        stops = self._leaves[leaf]
        at, before = stops.index(node), self._counts.before(self._places[leaf])
        if self._ends[node] == leaf:  # as nearly always
            end = before + stops.index(-node, at + 1)
        else:
            leaf = self._ends[node]
            end = self._counts.before(self._places[leaf]) + self._leaves[leaf].index(-node)
        return NestedSetBounds(self._levels[node], before + at + 1, end + 1)

    def family(self, node: int) -> int:
        """The size of a competitor's subtree, including the competitor."""
        found = self.bounds(node)
        return (found.rgt - found.lft + 1) // 2

    @property
    def size_bytes(self) -> int:
        """Bytes in memory."""
        return len(self._levels) * _NODE_BYTES + len(self._siblings) * _CHILD_BYTES

    # ── Changes ─────────────────────────────────────────────────────────────────────────────────────────

    def add(self, parent: int) -> None:
        """Adds the competitor with the next number."""
        node = len(self._parents)
        self._parents.append(parent)
        self._levels.append(self._levels[parent] + 1)
        self._begins.append(0)
        self._ends.append(0)
        self._insert(node, parent, array("i", (node, -node)))

    def move(self, node: int, parent: int) -> None:
        """Gives a competitor another parent, which must not be below it, or none. All competitors below it move as
        well."""
        if parent == self._parents[node]:
            return
        stops = self._cut(node)
        self._siblings.remove(self._parents[node] << _PARENT_BITS | node)
        self._parents[node] = parent
        levels, deeper = self._levels, self._levels[parent] + 1 - self._levels[node]
        for stop in stops:
            if stop > 0:
                levels[stop] += deeper
        self._insert(node, parent, stops)

    def _insert(self, node: int, parent: int, stops: "array[int]") -> None:
        """Inserts the tour of a competitor and all below it before its next sibling, or else at its parent's end."""
        self._siblings.add(parent << _PARENT_BITS | node)
        after = self._siblings.least_from(parent << _PARENT_BITS | node + 1)
        if after is not None and after >> _PARENT_BITS == parent:
            leaf, stop = self._begins[after & _NODE], after & _NODE
            at = self._leaves[leaf].index(stop)
        elif parent:
            leaf = self._ends[parent]
            at = self._leaves[leaf].index(-parent)
        else:
            leaf = self._order[-1]
            at = len(self._leaves[leaf])
        place = self._places[leaf]
        stops_there = self._leaves[leaf]
        with_them = stops_there[:at] + stops + stops_there[at:]
        if len(with_them) > LEAF_STOPS_MAX:
            self._replace(place, place + 1, with_them)
        else:
            self._leaves[leaf] = with_them
            self._note(stops, leaf)
            self._counts.add(place, len(stops))

    def _cut(self, node: int) -> "array[int]":
        """Takes a competitor and all below it out of the tour."""
        first, last = self._places[self._begins[node]], self._places[self._ends[node]]
        start = self._leaves[self._begins[node]].index(node)
        around = array("i", chain.from_iterable(self._leaves[leaf] for leaf in self._order[first : last + 1]))
        end = start + around[start:].index(-node) + 1
        stops = around[start:end]
        del around[start:end]
        if first == last and len(around) >= _LEAF_MIN:
            self._leaves[self._order[first]] = around
            self._counts.add(first, -len(stops))
            return stops
        if len(around) < _LEAF_MIN and last + 1 < len(self._order):
            last += 1
            around += self._leaves[self._order[last]]
        elif len(around) < _LEAF_MIN and first:
            first -= 1
            around = self._leaves[self._order[first]] + around
        self._replace(first, last + 1, around)
        return stops

    def _replace(self, first: int, end: int, stops: "array[int]") -> None:
        """Replaces the leaves from `first` to before `end` in the order by `stops`."""
        free = self._order[first:end]
        taken = []
        size = len(stops) if len(stops) <= LEAF_STOPS_MAX else -(-len(stops) // -(-len(stops) // _LEAF_FILLED))
        for start in range(0, len(stops), size):
            part = stops[start : start + size]
            if free:
                leaf = free.pop()
                self._leaves[leaf] = part
            else:
                leaf = len(self._leaves)
                self._leaves.append(part)
            self._note(part, leaf)
            taken.append(leaf)
        self._order[first:end] = taken
        for leaf in sorted(free, reverse=True):
            self._drop(leaf)
        self._places = [0] * len(self._leaves)
        for place, leaf in enumerate(self._order):
            self._places[leaf] = place
        self._counts = Tallies(len(self._leaves[leaf]) for leaf in self._order)

    def _drop(self, leaf: int) -> None:
        """Frees the number of this leaf, and gives it to the last leaf."""
        last = self._leaves.pop()
        if leaf < len(self._leaves):
            self._leaves[leaf] = last
            self._order[self._order.index(len(self._leaves))] = leaf
            self._note(last, leaf)

    def _note(self, stops: "array[int]", leaf: int) -> None:
        begins, ends = self._begins, self._ends
        for stop in stops:
            if stop > 0:
                begins[stop] = leaf
            else:
                ends[-stop] = leaf
