"""What tests of pages begin with."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from tests.api.web.browser import driven, started
from tests.api.web.season import Championship, played
from tests.service import Service


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
