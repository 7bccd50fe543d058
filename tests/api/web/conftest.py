"""What tests of pages begin with."""

import os
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from tests.api.conftest import SEASON
from tests.api.web.browser import driven, started
from tests.api.web.season import Championship, play, played
from tests.conftest import Administrator
from tests.service import Service

CHAMPIONSHIP = f"tallybook_championship_{os.getpid()}"
"""The database that tests with a `championship` have a copy of."""


@pytest.fixture(scope="session")
def template_championship(administrator: Administrator) -> Iterator[None]:
    administrator.make_template(CHAMPIONSHIP, play)
    yield
    administrator.drop(CHAMPIONSHIP)


@pytest.fixture
def templates() -> dict[str, str]:
    return {"championship": CHAMPIONSHIP, "season": SEASON}


@pytest.fixture
async def championship(service: Service) -> Championship:
    return await played(service)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def chromium() -> AsyncIterator[str]:
    """The address of one browser for all tests: to start one takes longer than what most of them do with it."""
    async with started() as address:
        yield address


@pytest.fixture
async def browser(chromium: str) -> AsyncIterator[Browser]:
    """A browser in which nothing is open."""
    async with driven(chromium) as browser:
        yield browser
