"""Measurements without HTTP: each is a process of its own, so that none inherits what another left in memory.

A trial is told its settings as JSON on standard input and says its figures as JSON on standard output. Those here
are run by the product's interpreter and use the product's own modules; those of peers are in `benchmarks/peers`.
"""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
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
    """`seconds` that passed within `timing`."""

    def __init__(self) -> None:
        self.seconds = 0.0

    @contextmanager
    def timing(self) -> Iterator[None]:
        """What is in memory before stays out of the garbage collector's sight, as in the product's processes."""
        gc.collect()
        gc.freeze()
        started_at = perf_counter()
        yield
        self.seconds += perf_counter() - started_at
