"""Metrics that are sampled, at intervals or on request. All others are counted as events happen."""

import asyncio
import os
import platform
import re
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import REGISTRY, Collector, CollectorRegistry

from engine.database.pool import Database
from engine.log.clock import CLOCK
from engine.process.telemetry import BUILD_INFO, LOOP_LAG
from engine.process.version import version
from projections.board.board import FOLD_VERSION

LOOK_SECONDS: Final = 0.1
"""Time between two looks at the event loop. Each piece of work that holds the loop for longer is seen; shorter ones are
seen now and then."""
FIGURES_DIRECTORY: Final = "PROMETHEUS_MULTIPROC_DIR"
_LIVE: Final = re.compile(r"gauge_live\w+_([0-9]+)\.db", re.ASCII)


async def watch(database: Database) -> None:
    """Samples the figures of this process until it is cancelled."""
    BUILD_INFO.labels(version(), platform.python_version(), str(FOLD_VERSION)).set(1)
    while True:
        due_at = time.perf_counter() + LOOK_SECONDS
        await asyncio.sleep(LOOK_SECONDS)
        LOOP_LAG.observe(max(0.0, time.perf_counter() - due_at))
        database.show_use()
        CLOCK.watch()


def registry() -> CollectorRegistry:
    """The figures of all processes that share a directory for them; without one, those of this process."""
    directory = os.environ.get(FIGURES_DIRECTORY)
    if directory is None:
        return REGISTRY
    shared = CollectorRegistry()
    MultiProcessCollector(shared)  # type: ignore[no-untyped-call]
    shared.register(_Processes(Path(directory)))
    return shared


class _Processes(Collector):
    """The `process_*` figures of each running process, by its `pid`. prometheus_client's own collector knows only one
    process."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def collect(self) -> Iterator[Metric]:
        found = {int(live[1]) for path in self._directory.iterdir() if (live := _LIVE.fullmatch(path.name))}
        families: dict[str, Metric] = {}
        for pid in sorted(found):
            of_process = ProcessCollector(pid=partial(int, pid), registry=CollectorRegistry())
            for metric in of_process.collect():
                family = families.setdefault(metric.name, Metric(metric.name, metric.documentation, metric.type))
                for sample in metric.samples:
                    family.add_sample(sample.name, {**sample.labels, "pid": str(pid)}, sample.value)
        yield from families.values()
