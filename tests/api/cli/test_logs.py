"""The log of a service: as urgent as it was asked to be, and without what asks every second whether it is well."""

import asyncio
import json
from pathlib import Path
from typing import Final
from unittest.mock import ANY
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

import pytest

from tests.desks import until
from tests.running import free_port, started

TROUBLE: Final = """
import logging, threading, warnings


class Unraisable:
    def __del__(self):
        raise ValueError("of a destructor")


def fail():
    raise ValueError("of a thread")


warnings.warn("of Python")
logging.getLogger("a.library").warning("of a library%s", "\\n")
logging.getLogger("a.library").info("of no importance")
logging.getLogger("a.library").log(35, "of a level in between")
logging.getLogger("a.library").error("of %d arguments", "wrong")
Unraisable()
thread = threading.Thread(target=fail)
thread.start()
thread.join()
raise ImportError("it is not installed")
"""
"""Stands for a library that a process imports as it starts."""


def asked(address: str) -> int:
    """The status of the answer; 0: nobody listens there."""
    try:
        with urlopen(address) as answer:
            return int(answer.status)
    except HTTPError as refused:
        with refused:
            return refused.code
    except URLError:
        return 0


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
    port = str(free_port())
    with started(tmp_path, "serve", "--port", port, *option, TALLYBOOK_DATABASE_URL=dsn, **variables) as service:
        assert await until(lambda: asyncio.to_thread(asked, f"http://127.0.0.1:{port}/docs")) == 200
        assert await service.stopped() == 0
        assert service.log == []


@pytest.mark.parametrize(
    ("command", "ready", "troubled"),
    [
        ("serve --port 0", "listening", 2),
        ("worker", "keeping_tables", 1),
        ("verify --forever --metrics-port 0", "verifying", 0),
    ],
)
async def test_everything_that_a_service_writes_is_a_line_of_its_log(
    dsn: str, tmp_path: Path, command: str, ready: str, troubled: int
) -> None:
    (tmp_path / "opentelemetry.py").write_text(TROUBLE)
    variables = {"PYTHONPATH": str(tmp_path), "TALLYBOOK_DATABASE_URL": dsn}
    with started(tmp_path, *command.split(), **variables) as service:
        await service.logged(ready)
        assert await service.stopped() == 0
    assert service.out == ""
    lines = [json.loads(line) for line in service.err.splitlines()]
    said = [(line["level"], line["logger"], line["message"]) for line in lines if line["event"] == "library_said"]
    assert sorted(said) == sorted(
        troubled
        * [
            ("error", "a.library", "of %d arguments"),
            ("warning", "a.library", "of a level in between"),
            ("warning", "a.library", "of a library\n"),
            ("warning", "py.warnings", ANY),
        ]
    )
    ignored = [line["exception"].splitlines()[-1] for line in lines if line["event"] == "exception_ignored"]
    assert sorted(ignored) == sorted(troubled * ["ValueError: of a destructor", "ValueError: of a thread"])


async def test_a_process_that_fails_says_why_in_its_log(dsn: str, tmp_path: Path) -> None:
    (tmp_path / "opentelemetry.py").write_text("raise ZeroDivisionError")
    with started(tmp_path, "worker", PYTHONPATH=str(tmp_path), TALLYBOOK_DATABASE_URL=dsn) as worker:
        assert await worker.ended() == 1
    (line,) = [json.loads(line) for line in worker.err.splitlines()]
    assert (line["event"], line["level"]) == ("process_failed", "error")
    assert line["exception"].endswith("ZeroDivisionError")
