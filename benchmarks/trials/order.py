"""The lines of one unity in order, at 10³ to 10⁶ competitors: what an update, a position, the top ten and the eleven
lines around a competitor cost, and what the order takes in memory beside the totals. To be run by itself:

    python -m benchmarks.trials.order

Totals and updates are drawn, from a seed. Figures: µs of processor time, bytes for each competitor (by tracemalloc,
once made and again after the updates), and how long making it in steps takes, in seconds, with its longest step in ms.
"""

import gc
import random
import tracemalloc
from collections.abc import Callable, Iterable
from time import thread_time
from typing import TypeVar

from engine.domain.terms import CompetitorId, Sort
from projections.board.enrolment import Enrolment, Totals
from projections.board.order import OrderedLines

SIZES = (1_000, 10_000, 100_000, 1_000_000)
TOTALS_MAX = 1_000_000
DELTAS_MAX = 100
UPDATES = 200_000
QUESTIONS = 50_000
SEED = 15
_T = TypeVar("_T")


def main() -> None:
    print("members | update | position | top ten | around | made, s | longest step, ms | bytes made | bytes after")
    for members in SIZES:
        print(" | ".join([f"{members:,}", *_times(members), *_bytes(members)]), flush=True)


def _times(members: int) -> list[str]:
    draw, enrolment, totals = _world(members)
    order, seconds, longest = _made(enrolment, totals)
    updates, asked = _updates(draw, members), draw.choices(range(1, members + 1), k=QUESTIONS)

    def update(one: tuple[CompetitorId, int]) -> None:
        competitor_id, amount = one
        before = order.line(competitor_id)
        totals.add(competitor_id, amount)
        order.replace(before, order.line(competitor_id))

    def position(competitor_id: CompetitorId) -> None:
        order.position(order.line(competitor_id))

    def top(_: CompetitorId) -> None:
        order.standings(0, 10)

    def around(competitor_id: CompetitorId) -> None:
        offset = order.offset(competitor_id)
        assert offset is not None
        order.standings(max(offset - 5, 0), offset + 6)

    ids = [CompetitorId(n) for n in asked]
    each = _each(update, updates), _each(position, ids), _each(top, ids), _each(around, ids)
    return [*(f"{microseconds:.1f}" for microseconds in each), f"{seconds:.2f}", f"{longest * 1e3:.1f}"]


def _bytes(members: int) -> list[str]:
    draw, enrolment, totals = _world(members)
    updates = _updates(draw, members)
    gc.collect()
    tracemalloc.start()
    order = OrderedLines(enrolment, totals, Sort.DESC)
    made = tracemalloc.get_traced_memory()[0]
    for competitor_id, amount in updates:
        before = order.line(competitor_id)
        totals.add(competitor_id, amount)
        order.replace(before, order.line(competitor_id))
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return [f"{made / members:.0f}", f"{after / members:.0f}"]


def _world(members: int) -> tuple[random.Random, Enrolment, Totals]:
    draw = random.Random(SEED)
    ids = [CompetitorId(n) for n in range(1, members + 1)]
    enrolment = Enrolment(ids)
    return draw, enrolment, Totals(enrolment, {competitor_id: draw.randint(1, TOTALS_MAX) for competitor_id in ids})


def _updates(draw: random.Random, members: int) -> list[tuple[CompetitorId, int]]:
    return [(CompetitorId(draw.randint(1, members)), draw.randint(1, DELTAS_MAX)) for _ in range(UPDATES)]


def _made(enrolment: Enrolment, totals: Totals) -> tuple[OrderedLines, float, float]:
    steps, longest, began_at = OrderedLines.in_steps(enrolment, totals, Sort.DESC), 0.0, thread_time()
    while True:
        step_began_at = thread_time()
        try:
            next(steps)
        except StopIteration as end:
            return end.value, thread_time() - began_at, longest
        longest = max(longest, thread_time() - step_began_at)


def _each(work: Callable[[_T], None], items: Iterable[_T]) -> float:
    """Microseconds of processor time for each of `items`, with what is drawn out of the garbage collector's sight."""
    todo = [*items]
    gc.collect()
    gc.freeze()
    began_at = thread_time()
    for item in todo:
        work(item)
    return (thread_time() - began_at) / len(todo) * 1e6


if __name__ == "__main__":
    main()
