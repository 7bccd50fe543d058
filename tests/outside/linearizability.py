"""Whether a history of one object is linearizable.

Is there an order of all operations that were answered, and of any of the others, in which each shows what it must after
those before it, and in which no operation stands before another that was answered before it was asked? The search is
that of Wing and Gong ("Testing and Verifying Concurrent Objects", 1993) with the memory of Lowe ("Testing for
Linearizability", 2017): where the same operations are done and the state is the same, it does not search again.
"""

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

from tests.outside.operations import Operation

State = TypeVar("State", bound=Hashable)


def misfit(
    operations: Iterable[Operation], state: State, step: Callable[[State, Operation], State | None]
) -> Operation | None:
    """None: the history is linearizable from `state` on. Else the operation that fits nowhere: in the order that goes
    farthest, no operation that was answered earlier is left."""
    every = sorted(operations, key=lambda one: one.call)
    answered = [one for one in every if one.end is not None]
    unknown = [one for one in every if one.end is None]
    nodes, known = [(0, 0, 0, state)], set[tuple[int, int, int, State]]()
    farthest = -1
    while nodes:
        # All of `answered` before `base` are done, and after it those whose bit is set in `ahead`.
        base, ahead, taken, state = nodes.pop()
        while ahead & 1:
            base, ahead = base + 1, ahead >> 1
        if base == len(answered):
            return None
        if (base, ahead, taken, state) in known:
            continue
        known.add((base, ahead, taken, state))
        farthest = max(farthest, base)
        first_end = _first_end(answered, base, ahead)
        for n, one in enumerate(unknown):
            if one.call <= first_end and not taken >> n & 1 and (after := step(state, one)) is not None:
                nodes.append((base, ahead, taken | 1 << n, after))
        for n in range(len(answered) - base):
            one = answered[base + n]
            if one.call > first_end:
                break
            if not ahead >> n & 1 and (after := step(state, one)) is not None:
                nodes.append((base, ahead | 1 << n, taken, after))
    return answered[farthest]


def _first_end(answered: list[Operation], base: int, ahead: int) -> int:
    """When the first of those that are not done was answered: what was asked later cannot come next."""
    first = answered[base].end
    assert first is not None
    for n in range(1, len(answered) - base):
        one = answered[base + n]
        if one.call > first:
            break
        if not ahead >> n & 1:
            assert one.end is not None
            first = min(first, one.end)
    return first
