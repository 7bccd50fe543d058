"""Measurements without HTTP. Each is a separate process, so that none inherits the memory of another.

A trial reads its settings as JSON from standard input and prints its figures as JSON on standard output. The trials
here run in the product's interpreter and use the product's own modules; those of peers are in `benchmarks/peers`.
"""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter, process_time
from typing import TypeVar

import msgspec

_T = TypeVar("_T")


def told(kind: type[_T]) -> _T:
    """The settings of this trial."""
    return msgspec.json.decode(sys.stdin.buffer.read(), type=kind)


def say(**figures: float) -> None:
    """The figures of this trial."""
    sys.stdout.buffer.write(msgspec.json.encode(figures))


class Stopwatch:
    """`seconds` that passed within `timing`, and `busy_seconds` of processor time of this process."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.busy_seconds = 0.0

    @contextmanager
    def timing(self) -> Iterator[None]:
        """Hides all existing objects from the garbage collector, as the product's processes do."""
        gc.collect()
        gc.freeze()
        started_at, busy_before = perf_counter(), process_time()
        yield
        self.seconds += perf_counter() - started_at
        self.busy_seconds += process_time() - busy_before
