"""What a share of the campaign needs in ordinary tests: a prepared data directory, and a trial of a small size."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from assurance.faults.stage import prepare
from assurance.faults.table import Trial


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, prepare(tmp_path_factory.mktemp("prepared"))).result()


@pytest.fixture
def trial(prepared: Path, tmp_path: Path) -> Callable[[float], Trial]:
    """A trial of that scale, always of the same seed."""
    return lambda scale: Trial(prepared, tmp_path, seed=1, scale=scale)
