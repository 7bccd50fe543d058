"""The processes of a running service: starts them, restarts one that dies, stops them all.

Every API process has a listening socket of its own on the one port (SO_REUSEPORT: the kernel spreads the
connections). This process owns the sockets and hands each down, so that a restarted process finds its queue of
connections again. Children get standard input as a lifeline: when this process is gone, they read its end and stop.
"""

import asyncio
import errno
import os
import socket
import sys
import tempfile
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from typing import Final

import msgspec
from prometheus_client.multiprocess import mark_process_dead

from api.http.limits import UNACCEPTED_MAX
from api.service import systemd
from api.service.lifecycle import DSN_VARIABLE, LOG_LEVEL_VARIABLE, READY
from api.service.settings import Settings
from engine.domain.errors import StartupRefused
from engine.process.logs import Logger
from engine.process.telemetry import LogLevel

PROCESSES_MAX: Final = 64
READY_SECONDS_MAX: Final = 30.0
STOP_SECONDS_MAX: Final = 30.0
RESTART_SECONDS: Final = 1.0
SideTask = Callable[[], Coroutine[object, object, None]]
"""Light work that runs until cancelled, and handles its own failures."""

_logger: Final = Logger()


async def run_service(
    dsn: str,
    *,
    host: str,
    port: int,
    processes: int,
    worker: bool,
    settings: Settings,
    log_level: LogLevel,
    side_task: SideTask | None,
    stop: asyncio.Event,
    on_ready: Callable[[str], None],
) -> None:
    """Runs the service until `stop` is set, then stops all of it cleanly.

    `port` 0: any free one. `on_ready` is given the address when every process is ready. From then on `side_task` runs
    in this process. Raises StartupRefused if it cannot listen on the port, or if a process does not become ready.
    """
    with ExitStack() as stack:
        listeners = [stack.enter_context(listener) for listener in _listen(host, port, processes)]
        environment = systemd.without_systemd(dict(os.environ)) | {
            DSN_VARIABLE: dsn,
            LOG_LEVEL_VARIABLE: log_level,
            "PROMETHEUS_MULTIPROC_DIR": stack.enter_context(tempfile.TemporaryDirectory(prefix="tallybook-metrics-")),
        }
        children = [
            _Child(environment, ("api", str(s.fileno()), msgspec.json.encode(settings).decode()), s) for s in listeners
        ]
        if worker:
            children.append(_Child(environment, ("worker", str(settings.memory_bytes)), None))
        try:
            await asyncio.gather(*(child.start() for child in children))
            on_ready(_address(listeners[0]))
            systemd.tell(systemd.IS_READY)
            async with systemd.watched(lambda: all(child.runs for child in children)):
                await _supervise(children, side_task, stop)
        finally:
            for listener in listeners:
                listener.close()
            await asyncio.gather(*(child.stop() for child in children))
            _logger.info("process_stopped", kind="service", pid=os.getpid())


class _Child:
    def __init__(self, environment: dict[str, str], arguments: tuple[str, ...], listener: socket.socket | None) -> None:
        self.kind = arguments[0]
        self._environment = environment
        self._arguments = arguments
        self._listener = listener
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Starts the process. Raises StartupRefused unless it is ready within READY_SECONDS_MAX."""
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",  # or Python could take folders of the current directory for our packages
            "-m",
            "tallybook_command",  # which checks that Python finds our packages
            *self._arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=self._environment,
            pass_fds=() if self._listener is None else (self._listener.fileno(),),
            start_new_session=True,  # Ctrl-C reaches only this process, which then stops the others
        )
        assert self._process.stdout is not None
        try:
            async with asyncio.timeout(READY_SECONDS_MAX):
                said = await self._process.stdout.readline()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
            said = b""
        if said != READY:
            raise StartupRefused(f"A process ({self.kind}) did not start; see its message above.")

    @property
    def runs(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def keep_running(self) -> None:
        """Starts it again whenever it ends."""
        while True:
            assert self._process is not None
            code = await self._process.wait()
            _logger.error("process_died", kind=self.kind, pid=self._process.pid, code=code)
            self._forget_figures()
            await asyncio.sleep(RESTART_SECONDS)
            try:
                await self.start()
            except (StartupRefused, OSError) as error:
                _logger.error("process_died", kind=self.kind, reason=str(error))

    async def stop(self) -> None:
        """Has the process finish what it has taken. Kills it after STOP_SECONDS_MAX."""
        if self._process is None or not self.runs:
            return
        self._process.terminate()
        try:
            async with asyncio.timeout(STOP_SECONDS_MAX):
                await self._process.wait()
        except TimeoutError:
            _logger.error("process_died", kind=self.kind, pid=self._process.pid, reason="did not stop, killed")
            self._process.kill()
            await self._process.wait()
        self._forget_figures()

    def _forget_figures(self) -> None:
        """Forgets what a dead process had under way. What it counted is kept."""
        if self._process is not None:
            mark_process_dead(self._process.pid, self._environment["PROMETHEUS_MULTIPROC_DIR"])  # type: ignore[no-untyped-call]


async def _supervise(children: list[_Child], side_task: SideTask | None, stop: asyncio.Event) -> None:
    keeping = [asyncio.create_task(child.keep_running()) for child in children]
    if side_task is not None:
        keeping.append(asyncio.create_task(side_task()))
    try:
        await stop.wait()
    finally:
        for task in keeping:
            task.cancel()
        await asyncio.gather(*keeping, return_exceptions=True)


def refuse_unless_free(host: str, port: int, *, chosen_with: str = "--port") -> socket.AddressFamily:
    """Raises StartupRefused if no service can listen there; else returns the family of the address. `chosen_with`: what
    chooses the port."""
    option = "--host"
    try:
        family, *_ = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        option = chosen_with
        with socket.socket(family) as probe:
            # SO_REUSEPORT would let two services share a port, each answering some requests from its own database.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except (OSError, UnicodeError) as error:
        raise _cannot_listen(host, port, error, option) from error
    return family


def _listen(host: str, port: int, processes: int) -> list[socket.socket]:
    family = refuse_unless_free(host, port)
    listeners: list[socket.socket] = []
    try:
        for _ in range(processes):
            listener = socket.socket(family)
            listeners.append(listener)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            listener.bind((host, port))
            listener.listen(UNACCEPTED_MAX)
            port = listener.getsockname()[1]
    except OSError as error:
        raise _cannot_listen(host, port, error, "--port") from error
    return listeners


def _cannot_listen(host: str, port: int, error: OSError | UnicodeError, option: str) -> StartupRefused:
    if isinstance(error, OSError) and error.errno == errno.EADDRNOTAVAIL:  # an address of another machine
        option = "--host"
    reason = error.strerror if isinstance(error, OSError) else error
    return StartupRefused(f"Cannot listen on {host}, port {port}: {reason}; choose another with {option}.")


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    return f"http://{'localhost' if shown in ('0.0.0.0', '127.0.0.1', '[::]') else shown}:{port}"  # noqa: S104
