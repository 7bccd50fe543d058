"""The bounds of competitors in a hierarchy, at 10³ to 10⁶ of them: what a question, a new child, a new root and another
parent cost, and what the forest takes in memory. To be run by itself:

    python -m benchmarks.trials.forest

There are three shapes: teams of some twenty, one chain, one family of all. Who is asked about and moved is drawn, from
a seed. Figures: µs of processor time; ms to freeze it; how long making it in steps takes, in seconds, with its longest
step in ms; bytes for each competitor, by tracemalloc.
"""

import random
import tracemalloc
from array import array
from collections.abc import Callable, Generator
from time import thread_time
from typing import cast

from projections.board.hierarchy import Forest

SIZES = (1_000, 10_000, 100_000, 1_000_000)
TEAM = 20
TIMES = 2_000
SEED = 15


def main() -> None:
    print(
        "| competitors | shape | question | new child | new root | other parent | freeze, ms | made, s | step | bytes |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for number in SIZES:
        for name, shape in SHAPES.items():
            print(f"| {number:,} | {name} | {' | '.join(_figures(shape(number), number))} |", flush=True)


def _figures(parents: "array[int]", number: int) -> list[str]:
    draw = random.Random(SEED)
    forest, seconds, longest = _made(Forest.in_steps(parents[:]))
    question = _each(lambda: forest.bounds(draw.randrange(1, number + 1)))
    child = _each(lambda: forest.add(draw.randrange(1, number + 1)))
    root = _each(lambda: forest.add(0))
    other = _each(lambda: forest.move(number + draw.randrange(1, TIMES + 1), draw.randrange(1, number + 1)))
    freezing = min(_each(forest.frozen, 1) for _ in range(5)) / 1_000
    tracemalloc.start()
    kept, _, _ = _made(Forest.in_steps(parents[:]))
    size_bytes = tracemalloc.get_traced_memory()[0] / len(kept)
    tracemalloc.stop()
    micro = [f"{microseconds:.0f}" for microseconds in (question, child, root, other)]
    return [*micro, f"{freezing:.2f}", f"{seconds:.2f}", f"{longest * 1_000:.1f}", f"{size_bytes:.0f}"]


def _made(steps: Generator[None, None, Forest]) -> tuple[Forest, float, float]:
    """The forest, the seconds that all steps took, and the longest one."""
    began_at, longest = thread_time(), 0.0
    while True:
        step_at = thread_time()
        try:
            next(steps)
        except StopIteration as end:
            return cast(Forest, end.value), thread_time() - began_at, longest
        longest = max(longest, thread_time() - step_at)


def _each(once: Callable[[], object], times: int = TIMES) -> float:
    """µs of processor time of each call."""
    began_at = thread_time()
    for _ in range(times):
        once()
    return (thread_time() - began_at) / times * 1e6


SHAPES: dict[str, Callable[[int], "array[int]"]] = {
    "teams": lambda n: array("i", (0, *(0 if k <= n // TEAM else k % (n // TEAM) + 1 for k in range(1, n + 1)))),
    "a chain": lambda n: array("i", (0, *range(n))),
    "one family": lambda n: array("i", (0, 0, *([1] * (n - 1)))),
}


if __name__ == "__main__":
    main()
