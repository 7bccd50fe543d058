"""A plugin of pytest that records which lines of the core each test runs: `-p tests.mutants.recording`.

What runs before the first test, such as imports, counts for none. What a test has set up for a session or a module
counts for the test that needed it first. Statements that other processes run are not recorded.
"""

import os
from collections.abc import Iterator

import coverage  # type: ignore[import-not-found, unused-ignore] # only who asks about mutants needs it
import pytest

from tests.mutants.covering import FOLDER_VARIABLE
from tests.mutants.places import CORE, ROOT


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

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._coverage.switch_context(item.nodeid.partition("[")[0])
        try:
            return (yield)  # type: ignore[return-value]
        finally:
            self._coverage.switch_context("")

    def pytest_sessionfinish(self) -> None:
        self._coverage.stop()
        self._coverage.save()


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Recording(os.environ[FOLDER_VARIABLE]))
