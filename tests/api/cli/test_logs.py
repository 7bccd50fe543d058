"""The log of a service: as urgent as it was asked to be, and without what asks every second whether it is well."""

import asyncio
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from tests.running import started


def asked(address: str) -> int:
    """The status of the answer."""
    try:
        with urlopen(address) as answer:
            return int(answer.status)
    except HTTPError as refused:
        with refused:
            return refused.code


async def test_health_checks_that_are_well_leave_no_line(dsn: str, tmp_path: Path) -> None:
    with started(tmp_path, "serve", "--port", "0", TALLYBOOK_DATABASE_URL=dsn) as service:
        address = await service.address()
        for path, status in ("/healthz", 200), ("/readyz", 200), ("/healthz", 200), ("/nowhere", 404), ("/docs", 200):
            assert await asyncio.to_thread(asked, f"{address}{path}") == status
        assert await service.stopped() == 0
        requests = [(line["route"], line["status"]) for line in service.log if line["event"] == "request"]
        assert requests == [("none", 404), ("/docs", 200)]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("how", ["option", "environment"])
async def test_a_service_logs_from_its_level_on(dsn: str, tmp_path: Path, how: str) -> None:
    option = ["--log-level", "warning"] if how == "option" else []
    variables = {} if option else {"TALLYBOOK_LOG_LEVEL": "warning"}
    with started(tmp_path, "serve", "--port", "0", *option, TALLYBOOK_DATABASE_URL=dsn, **variables) as service:
        address = await service.address()
        assert await asyncio.to_thread(asked, f"{address}/docs") == 200
        assert await service.stopped() == 0
        assert service.log == []
