"""The nodes of a database distributed by Citus, as processes of this machine: killed, and started again as before."""

import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import asyncpg

from assurance.faults.cluster import LOST, Cluster
from tests.desks import until
from tests.running import below, lives

STARTED_SECONDS_MAX: Final = 30.0
_POSTMASTER: Final = "SELECT split_part(pg_read_file('postmaster.pid'), E'\\n', 1)::int"
# As the server was started: in a session of its own, by nobody who waits for it.
_DETACHED: Final = ("sh", "-c", 'exec "$@" >/dev/null 2>&1 &', "sh")


class Nodes(Cluster):
    """A distributed database in the place of a cluster of one server; `dsn` is the coordinator's."""

    def __init__(self, dsn: str) -> None:
        super().__init__(Path(), {})
        self._dsn = dsn

    @property
    def dsn(self) -> str:
        return self._dsn


class Node:
    """One server; it must run on this machine, and its address must be that of a superuser."""

    def __init__(self, dsn: str, pid: int) -> None:
        self._dsn = dsn
        self._pid = pid
        self.port = urlsplit(dsn).port
        process = Path(f"/proc/{pid}")
        self._command = process.joinpath("cmdline").read_text().rstrip("\0").split("\0")
        self._owner = process.stat().st_uid
        self._group = process.stat().st_gid
        self._folder = process.joinpath("cwd").resolve()
        self._environment = dict(
            line.split("=", 1) for line in process.joinpath("environ").read_text().split("\0") if "=" in line
        )

    @classmethod
    async def at(cls, dsn: str) -> "Node":
        """That which answers there."""
        return cls(dsn, await _asked(dsn))

    async def kill(self) -> None:
        """kill -9 of the server and all its processes; returns when none of them lives."""
        victims = [self._pid, *below(self._pid)]
        for pid in victims:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        await until(lambda: not [pid for pid in victims if lives(pid)], STARTED_SECONDS_MAX)

    def pause(self) -> None:
        """Stops the server and all its processes: it takes connections, and never answers."""
        for pid in (self._pid, *below(self._pid)):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)

    def resume(self) -> None:
        for pid in (*below(self._pid), self._pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    async def start(self) -> None:
        """Returns when it answers."""
        self._unlock()
        started = subprocess.run(
            [*_DETACHED, *self._command],
            cwd=self._folder,
            env=self._environment,
            user=self._owner,
            group=self._group,
            start_new_session=True,
            check=False,
        )
        assert started.returncode == 0

        async def answers() -> bool:
            with suppress(*LOST):
                self._pid = await _asked(self._dsn)
                return True
            return False

        await until(answers, STARTED_SECONDS_MAX)

    def _unlock(self) -> None:
        """Removes the lock files of the server that was killed. While nobody has asked for the exit code of its
        process, another server takes that for one that runs."""
        lock = self._folder / "postmaster.pid"
        _, _, _, port, sockets, *_ = lock.read_text().splitlines()
        Path(sockets, f".s.PGSQL.{port}.lock").unlink()
        lock.unlink()


async def _asked(dsn: str) -> int:
    session = await asyncpg.connect(dsn)
    try:
        return int(await session.fetchval(_POSTMASTER))
    finally:
        await session.close()
