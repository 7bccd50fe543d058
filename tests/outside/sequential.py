"""What the objects do when one operation follows the other.

A list of numbers: `append` puts its value at the end, `read` shows the whole list.
Points: `add` has a number and lines (competitor, unity, amount), which it adds; `read` shows all totals that are not
zero, and names an add that was done before it, if it is the answer to that.
A number: `count one` makes it one more, `read` shows it.
"""

from collections.abc import Callable, Hashable, Mapping
from typing import TypeVar

from tests.outside.operations import Operation

State = TypeVar("State", bound=Hashable)
Step = Callable[[State, Operation], State | None]
"""The state after an operation; None: it cannot have been done in this state, because it showed something else."""


def of_list(state: tuple[int, ...], operation: Operation) -> tuple[int, ...] | None:
    """A list that begins empty."""
    if operation.action == "append":
        state = (*state, operation.value)
    return state if operation.shown is None or tuple(operation.shown) == state else None


Totals = tuple[frozenset[tuple[int, int, int]], int]
"""The totals that are not zero: place of the unity, competitor, total; and the adds that were done, a bit for each."""
NO_POINTS: Totals = (frozenset(), 0)


def of_points(unities: Mapping[int, int]) -> Step[Totals]:
    """Points that begin as NO_POINTS; `unities`: the place of each unity, by which answers show it."""

    def step(state: Totals, operation: Operation) -> Totals | None:
        lines, done = state
        if operation.action == "add":
            number, added = operation.value
            totals = {(place, competitor): total for place, competitor, total in lines}
            for competitor, unity, amount in added:
                of_line = unities[unity], competitor
                totals[of_line] = totals.get(of_line, 0) + amount
            return frozenset((*of_line, total) for of_line, total in totals.items() if total), done | 1 << number
        is_done = operation.value is None or done >> operation.value & 1
        return state if is_done and frozenset(map(tuple, operation.shown)) == lines else None

    return step


def of_number(state: int, operation: Operation) -> int | None:
    """A number that begins at zero."""
    if operation.action == "count one":
        state += 1
    return state if operation.shown is None or operation.shown == state else None
