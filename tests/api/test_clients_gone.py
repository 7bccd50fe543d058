"""Clients that go away in the middle of a request: nobody is there to be answered, and it is no defect."""

import asyncio
import socket
import struct
from contextlib import suppress
from typing import Any

import pytest
import structlog
from yarl import URL

from tests.api.service import FORM, Client, Service
from tests.desks import until

_RESET = struct.pack("ii", 1, 0)


@pytest.mark.parametrize("how", ["reset", "end"])
async def test_a_client_that_is_cut_off_within_its_body_is_no_defect(
    service: Service, client: Client, how: str, capfd: pytest.CaptureFixture[str]
) -> None:
    url = URL(service.url)
    with structlog.testing.capture_logs() as lines:
        for _ in range(5):
            _, writer = await asyncio.open_connection(url.host, url.port)
            head = (
                f"POST /tournament/{client.tournament}/competitors.json HTTP/1.1\r\nHost: t\r\n"
                f"Authorization: Bearer {client.token}\r\nContent-Type: {FORM}\r\nContent-Length: 100\r\n\r\nname="
            )
            writer.write(head.encode())
            await writer.drain()
            await until(service_is_reading)
            if how == "reset":
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                writer.transport.abort()
            else:
                writer.close()
                with suppress(OSError):
                    await writer.wait_closed()
            await until(lambda: not service_is_reading())
        assert (await client.get("competitors.json")).status == 200
    assert [line for line in lines if line["event"] == "request_failed"] == []
    assert "Traceback" not in capfd.readouterr().err


def service_is_reading() -> bool:
    """Whether it waits for the rest of a body."""
    return any(_waits_in(task, "_read") for task in asyncio.all_tasks())


def _waits_in(task: asyncio.Task[Any], name: str) -> bool:
    coroutine: Any = task.get_coro()
    while coroutine is not None:
        if getattr(coroutine, "__name__", "") == name:
            return True
        coroutine = getattr(coroutine, "cr_await", None)
    return False
