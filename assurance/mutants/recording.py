"""A plugin of pytest that records which lines of the core each test runs, and how long it takes:
`-p assurance.mutants.recording`.

What runs before the first test, such as imports, counts for none. What a test has set up for a session or a module
counts for the test that needed it first. Statements that other processes run are not recorded.
"""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import coverage  # type: ignore[import-not-found, unused-ignore] # only who asks about mutants needs it
import pytest

from assurance.mutants.covering import FOLDER_VARIABLE, SECONDS_PREFIX
from assurance.mutants.places import CORE, ROOT


class Recording:
    def __init__(self, folder: str) -> None:
        self._coverage = coverage.Coverage(
            data_file=f"{folder}/lines",
            data_suffix=True,
            config_file=False,
            include=[str(ROOT / file) for file in CORE],
            concurrency=["thread"],
            messages=False,
        )
        # With several processes, the one that hands out the tests runs none.
        self._coverage.set_option("run:disable_warnings", ["no-data-collected"])
        self._coverage.start()
        self._folder = Path(folder)
        self._seconds: dict[str, float] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        test = item.nodeid.partition("[")[0]
        self._coverage.switch_context(test)
        began_at = time.monotonic()
        try:
            return (yield)  # type: ignore[return-value]
        finally:
            self._seconds[test] = self._seconds.get(test, 0.0) + time.monotonic() - began_at
            self._coverage.switch_context("")

    def pytest_sessionfinish(self) -> None:
        self._coverage.stop()
        self._coverage.save()
        (self._folder / f"{SECONDS_PREFIX}{os.getpid()}.json").write_text(json.dumps(self._seconds), "utf-8")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Recording(os.environ[FOLDER_VARIABLE]))
