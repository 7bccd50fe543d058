"""What systemd is told of a service that it watches."""

import asyncio
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from api.service import systemd
from api.service.lifecycle import DSN_VARIABLE
from tests.desks import until
from tests.running import started

WATCHDOG_USEC = 300_000


class Listener:
    """The socket that systemd would listen on, and what was said to it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.said: list[str] = []
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind("\0" + name[1:] if name.startswith("@") else name)
        self._socket.setblocking(False)

    def heard(self, state: str, times: int = 1) -> bool:
        while True:
            try:
                self.said.append(self._socket.recv(1_000).decode())
            except BlockingIOError:
                return self.said.count(state) >= times

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def listener(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Listener]:
    """Has this process, and those that it starts, tell a listener."""
    listener = Listener(str(tmp_path / "notify"))
    monkeypatch.setenv(systemd.SOCKET_VARIABLE, listener.name)
    yield listener
    listener.close()


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "command", [("serve", "--port", "0", "--processes", "2"), ("worker",), ("verify", "--forever")], ids=" ".join
)
async def test_a_service_is_ready_once_then_well_and_then_stopping(
    command: tuple[str, ...], dsn: str, tmp_path: Path, listener: Listener
) -> None:
    watchdog = {"WATCHDOG_USEC": str(WATCHDOG_USEC)}
    with started(tmp_path, *command, **{DSN_VARIABLE: dsn}, **watchdog) as running:
        await until(lambda: listener.heard(systemd.IS_WELL, 3))
        assert listener.said[0] == systemd.IS_READY
        assert await running.stopped() == 0
    assert listener.heard(systemd.IS_STOPPING)
    assert (listener.said.count(systemd.IS_READY), listener.said.count(systemd.IS_STOPPING)) == (1, 1)
    assert listener.said[-1] == systemd.IS_STOPPING


async def test_a_service_that_cannot_start_is_never_ready(dsn: str, tmp_path: Path, listener: Listener) -> None:
    with started(tmp_path, "serve", "--port", "0", **{DSN_VARIABLE: f"{dsn}_absent"}) as running:
        assert await running.ended() != 0
    assert not listener.heard(systemd.IS_READY)
    assert listener.said == []


async def test_nothing_is_said_while_a_service_is_not_well(listener: Listener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WATCHDOG_USEC", "3000")
    answers = iter((False, False, True))
    asked: list[bool] = []

    def is_well() -> bool:
        asked.append(next(answers, True))
        return asked[-1]

    async with systemd.watched(is_well):
        await until(lambda: listener.heard(systemd.IS_WELL))
        assert asked[:3] == [False, False, True]


@pytest.mark.parametrize("usec", ["", "0", "often"])
async def test_without_a_watchdog_a_service_is_not_asked_how_it_is(
    usec: str, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WATCHDOG_USEC", usec)
    async with systemd.watched(lambda: pytest.fail("it was asked")):
        await asyncio.sleep(0)
    assert listener.heard(systemd.IS_STOPPING)
    assert listener.said == [systemd.IS_STOPPING]


async def test_another_process_is_not_the_one_that_is_watched(
    listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WATCHDOG_USEC", "3000")
    monkeypatch.setenv("WATCHDOG_PID", str(os.getppid()))
    async with systemd.watched(lambda: pytest.fail("it was asked")):
        await asyncio.sleep(0)
    assert not listener.heard(systemd.IS_WELL)


def test_a_socket_may_have_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    listener = Listener(f"@tallybook-{os.getpid()}")
    monkeypatch.setenv(systemd.SOCKET_VARIABLE, listener.name)
    systemd.tell(systemd.IS_READY)
    assert listener.heard(systemd.IS_READY)
    listener.close()


@pytest.mark.parametrize("address", ["", "/nowhere/at/all"])
def test_a_service_continues_where_nobody_listens(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(systemd.SOCKET_VARIABLE, address)
    systemd.tell(systemd.IS_READY)
