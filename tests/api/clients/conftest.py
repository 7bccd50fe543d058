"""The Python client, connected with the service that the test has."""

from collections.abc import AsyncIterator

import pytest

from tallybook_client import Client as PythonClient
from tallybook_client import Patience
from tests.service import Service

AT_ONCE = Patience(pause_seconds=0.0)
"""Tries again without a pause of its own."""


@pytest.fixture
async def tallybook(service: Service, token: str) -> AsyncIterator[PythonClient]:
    async with PythonClient(service.url, token, patience=AT_ONCE) as client:
        yield client
