"""A set of whole numbers in ascending order that finds how many are smaller than a number, and the n-th number.

Pure. The numbers are in leaves of at most LEAF_MAX, as 64-bit arrays. `Tallies` count the numbers in the leaves before
each leaf. So each operation costs a bisection, one move within a leaf, and log₂ of the number of leaves. A
leaf with a number beyond 64 bits is a list instead: larger, but exact.
"""

from array import array
from bisect import bisect_left, bisect_right, insort
from collections.abc import Generator, Iterable, Iterator
from collections.abc import Sequence as Items
from itertools import chain, islice
from typing import Final, TypeAlias

LEAF_MAX: Final = 1_024
"""Numbers in a leaf. Moving them costs as much as finding the leaf."""
_LEAF_FILLED: Final = LEAF_MAX * 7 // 8
_LEAF_MIN: Final = LEAF_MAX // 8
_INTEGER_BYTES: Final = 9
"""A number in an array, with the room that arrays keep for more."""
_WIDE_LEAF_BYTES: Final = LEAF_MAX * 40
_LEAF_BYTES: Final = 180
"""The overhead of a leaf in addition to its numbers: the object, its places in lists, its separator and its count."""

_Leaf: TypeAlias = "array[int] | list[int]"


class Tallies:
    """Counts in a row, and their sums from the first on, in log₂ of their number: a Fenwick tree (P. Fenwick, "A new
    data structure for cumulative frequency tables", 1994)."""

    def __init__(self, counts: Iterable[int]) -> None:
        # Entry n, from 1, is the sum of the counts from n - (n & -n) to before n.
        tree = [0, *counts]
        for n in range(1, len(tree)):
            if (above := n + (n & -n)) < len(tree):
                tree[above] += tree[n]
        self._tree = tree

    def add(self, number: int, more: int) -> None:
        """Adds to the count of this number, from 0."""
        tree, n = self._tree, number + 1
        while n < len(tree):
            tree[n] += more
            n += n & -n

    def before(self, number: int) -> int:
        """The sum of the counts before this number."""
        tree, count = self._tree, 0
        while number:
            count += tree[number]
            number &= number - 1
        return count

    def place(self, index: int) -> tuple[int, int]:
        """The number of the count that contains the `index`-th item, and the item's index within it, from 0."""
        tree, number = self._tree, 0
        step = 1 << (len(tree) - 1).bit_length()
        while step := step >> 1:
            if number + step < len(tree) and tree[number + step] <= index:
                number += step
                index -= tree[number]
        return number, index

    def copy(self) -> "Tallies":
        copied = Tallies(())
        copied._tree = self._tree[:]
        return copied


class SortedIntegers:
    """Whole numbers, each once. Filled with `ascending`, which must be in order and hold none twice."""

    def __init__(self, ascending: Iterable[int] = ()) -> None:
        for _ in self.fill(ascending):
            pass

    def fill(self, ascending: Iterable[int]) -> Generator[None, None, None]:
        """Replaces the content by `ascending`, once the generator has ended. Each of its steps is a leaf."""
        rest = iter(ascending)
        leaves = []
        while run := list(islice(rest, _LEAF_FILLED)):
            leaves.append(_leaf(run))
            yield
        self._leaves: list[_Leaf] = leaves or [_leaf([])]
        # Leaf n holds the numbers smaller than separator n and not smaller than the one before.
        self._separators: list[int] = [leaf[0] for leaf in self._leaves[1:]]
        self._counts = Tallies(map(len, self._leaves))
        self._wide = _wide(self._leaves)

    def copy(self) -> "SortedIntegers":
        """An independent copy."""
        copied = SortedIntegers()
        copied._leaves = [leaf[:] for leaf in self._leaves]
        copied._separators = self._separators[:]
        copied._counts = self._counts.copy()
        copied._wide = self._wide
        return copied

    def __len__(self) -> int:
        return self._counts.before(len(self._leaves))

    def __iter__(self) -> Iterator[int]:
        for leaf in self._leaves:
            yield from leaf

    def add(self, integer: int) -> None:
        """Adds a number that is not in the set."""
        number = bisect_right(self._separators, integer)
        leaf = self._leaves[number]
        try:
            insort(leaf, integer)
        except OverflowError:
            leaf = self._leaves[number] = list(leaf)
            self._wide += 1
            insort(leaf, integer)
        if len(leaf) > LEAF_MAX:
            self._replace(number, number + 1, leaf)
        else:
            self._counts.add(number, 1)

    def remove(self, integer: int) -> None:
        """Raises KeyError if the number is not in the set."""
        number = bisect_right(self._separators, integer)
        leaf = self._leaves[number]
        at = bisect_left(leaf, integer)
        if at == len(leaf) or leaf[at] != integer:
            raise KeyError(integer)
        del leaf[at]
        if len(leaf) < _LEAF_MIN and len(self._leaves) > 1:
            first = max(number - 1, 0)
            self._replace(first, first + 2, [*self._leaves[first], *self._leaves[first + 1]])
        else:
            self._counts.add(number, -1)

    def smaller(self, integer: int) -> int:
        """How many numbers are smaller than this one, which need not be in the set."""
        number = bisect_right(self._separators, integer)
        return self._counts.before(number) + bisect_left(self._leaves[number], integer)

    def least_from(self, integer: int) -> int | None:
        """The least number that is not smaller than this one; None: all are smaller."""
        number = bisect_right(self._separators, integer)
        leaf = self._leaves[number]
        at = bisect_left(leaf, integer)
        if at < len(leaf):
            return leaf[at]
        return self._leaves[number + 1][0] if number + 1 < len(self._leaves) else None

    def run(self, start: int, stop: int) -> list[int]:
        """The numbers from the `start`-th to before the `stop`-th, counted from 0; fewer if the set ends before."""
        return list(chain.from_iterable(self.parts(start, stop)))

    def parts(self, start: int, stop: int) -> list[Items[int]]:
        """The same in chunks, which is faster by the length of a chunk."""
        number, at = self._counts.place(start)
        missing = stop - start
        found: list[Items[int]] = []
        while missing > 0 and number < len(self._leaves):
            part = self._leaves[number][at : at + missing]
            found.append(part)
            missing -= len(part)
            number, at = number + 1, 0
        return found

    @property
    def size_bytes(self) -> int:
        """Bytes in memory, estimated."""
        return len(self) * _INTEGER_BYTES + len(self._leaves) * _LEAF_BYTES + self._wide * _WIDE_LEAF_BYTES

    # ── Leaves ──────────────────────────────────────────────────────────────────────────────────────────

    def _replace(self, first: int, end: int, integers: Items[int]) -> None:
        """Replaces the leaves from `first` to before `end` by `integers`, as one leaf, or as two if there are too many.
        No leaf stays empty, because two are merged as soon as one is small."""
        half = len(integers) // 2
        parts = [integers] if len(integers) <= LEAF_MAX else [integers[:half], integers[half:]]
        leaves = [_leaf(part) for part in parts]
        self._wide += _wide(leaves) - _wide(self._leaves[first:end])
        self._leaves[first:end] = leaves
        self._separators[first : end - 1] = [part[0] for part in parts[1:]]
        self._counts = Tallies(map(len, self._leaves))


def _wide(leaves: Iterable[_Leaf]) -> int:
    """How many of the leaves are lists."""
    return sum([isinstance(leaf, list) for leaf in leaves])


def _leaf(integers: Items[int]) -> _Leaf:
    try:
        return array("q", integers)
    except OverflowError:
        return list(integers)
