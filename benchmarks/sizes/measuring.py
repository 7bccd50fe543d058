"""Measures one world: for every operation, what one request costs and how long others wait meanwhile.

The cost is processor time of the API process and of the PostgreSQL processes that serve it: their clocks are read
before and after each group of requests, because wall-clock time depends on everything that runs on a shared machine.
The median of the groups counts. The cost of the tables is measured in the same way, for the worker and its PostgreSQL
processes, once they have caught up.

A stall is the longest wait of the probe during the operation, beyond its usual wait. Several spells of requests are
observed, and the spell with the shortest stall counts: an operation delays others in every spell, the machine only in
some.
"""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from math import inf
from statistics import median
from typing import Final
from urllib.parse import urlencode, urlsplit

import asyncpg
import msgspec
from aiohttp import ClientError, ClientSession, ClientTimeout, TCPConnector
from msgspec import Struct
from yarl import URL

from benchmarks import machine
from benchmarks.machine import ROOT
from benchmarks.processes import ProgramFailed
from benchmarks.service import Service, backends, owner
from benchmarks.sizes.operations import STALL_MS_MAX, Ask, Kind, Operation
from benchmarks.sizes.probe import Settings as ProbeSettings
from benchmarks.sizes.probe import Waits
from benchmarks.sizes.worlds import World
from benchmarks.traffic import get

ANSWER_SECONDS_MAX: Final = 10.0
FIRST_ANSWER_SECONDS_MAX: Final = 60.0
RECOVERY_SECONDS_MAX: Final = 120.0
"""How long a service may be busy with a request whose client has gone."""
CATCH_UP_SECONDS_MAX: Final = 120.0
POLL_SECONDS: Final = 0.02
GROUP: Final = 8
"""How many requests are sent at the same moment. They share work like requests of several clients, so that only the
cost of each itself shows."""
ALONE_SECONDS: Final = 0.02
"""A request that takes more processor time is sent alone."""
SLOW_SECONDS: Final = 2.0
"""An operation that takes this long is not repeated, unless others had to wait too long."""
SPELLS: Final = 3
DOUBTS: Final = 4
WARM_UPS: Final = 4
CALM_MS: Final = 8.0
"""A stall this short needs no second look."""
USUAL_SECONDS: Final = 0.2
REFUSAL_CHARACTERS_MAX: Final = 160

_LAG: Final = """
    SELECT count(*)
    FROM head AS h
    LEFT JOIN checkpoint AS c ON c.tournament_id = h.tournament_id
    WHERE h.sequence > coalesce(c.sequence, 0)
"""
_LAG_OF_ONE: Final = """
    SELECT h.sequence > coalesce(c.sequence, 0)
    FROM head AS h
    LEFT JOIN checkpoint AS c ON c.tournament_id = h.tournament_id
    WHERE h.tournament_id = $1
"""


class Effort(Struct, frozen=True, kw_only=True):
    """How long and how often each operation is asked: the number of groups for its cost, and of requests in each spell
    with the probe. `with_tables`: whether the costs of the tables are measured."""

    seconds: float
    times_max: int
    times_min: int
    idle_seconds: float
    with_tables: bool


class Cell(Struct, frozen=True, kw_only=True):
    """The findings for one operation in one world. Times are those of one request. `skipped`: why nothing was found;
    then `at_least_us` is the least that it would have cost, if it was asked and not answered in time."""

    cost_us: float | None = None
    at_least_us: float | None = None
    tables_us: float | None = None
    seconds: float | None = None
    stall_ms: float | None = None
    skipped: str = ""


class NotAnswered(Exception):
    """A request was refused or took too long. Has the service's message, and how many seconds the client waited."""

    def __init__(self, reason: str, waited_seconds: float | None = None) -> None:
        super().__init__(reason)
        self.waited_seconds = waited_seconds


class _Clock(Struct, frozen=True, kw_only=True):
    """Seconds of processor time so far."""

    serving: dict[int, float]
    tables: dict[int, float]

    def served(self, before: "_Clock") -> float:
        return _used(before.serving, self.serving)

    def kept(self, before: "_Clock") -> float:
        return _used(before.tables, self.tables)


def _used(before: Mapping[int, float], now: Mapping[int, float]) -> float:
    return sum(seconds - before.get(pid, 0.0) for pid, seconds in now.items())


class Measuring:
    """Use within `measuring`. Measures one world."""

    def __init__(
        self,
        service: Service,
        world: World,
        effort: Effort,
        *,
        connection: asyncpg.Connection,
        session: ClientSession,
        probe: "Probe",
    ) -> None:
        self._service = service
        self._world = world
        self._effort = effort
        self._connection = connection
        self._session = session
        self._probe = probe
        self._serving = [service.api]
        self._tables = [service.worker]
        self._idle_tables = 0.0

    async def first(self) -> Cell:
        """The first answer of a process that has read nothing of the tournament: the top line of its ranking."""
        await self._look_for_processes()
        before, began_at = self._clock(), time.perf_counter()
        await self._probe.begin()
        try:
            path = f"rankings/{self._world.tournament.ranking_id}/standings.json?top=1"
            await self.answered(Ask("GET", path), seconds_max=FIRST_ANSWER_SECONDS_MAX)
        except NotAnswered as refusal:
            return Cell(skipped=str(refusal))
        finally:
            stall_ms = await self._probe.stall_ms()
        seconds = time.perf_counter() - began_at
        return Cell(cost_us=self._clock().served(before) * 1e6, seconds=seconds, stall_ms=stall_ms)

    async def idle(self) -> Cell:
        """The processor time that a service uses in a second without requests."""
        await self._look_for_processes()
        before, began_at = self._clock(), time.perf_counter()
        await asyncio.sleep(self._effort.idle_seconds)
        now, seconds = self._clock(), time.perf_counter() - began_at
        self._idle_tables = now.kept(before) / seconds
        return Cell(cost_us=now.served(before) / seconds * 1e6, tables_us=self._idle_tables * 1e6, seconds=1.0)

    async def warm_up(self, operation: Operation) -> None:
        """Asks repeatedly until connections and plans have settled."""
        for n in range(WARM_UPS):
            await self._asked(operation, n * GROUP, GROUP)

    async def cell(self, operation: Operation, *, doubtful_us: float = inf) -> Cell:
        """The cost and the stall of an operation. A cost above `doubtful_us` is measured again, and the lowest counts:
        an operation has its cost each time, the machine adds to it only sometimes."""
        try:
            alone, _ = await self._asked(operation, 0)
            is_alone = operation.is_alone or operation.is_undone or alone > ALONE_SECONDS
            group = 1 if is_alone else min(GROUP, operation.times_max // 3)
            asked, measured = await self._cost(operation, group, asked=1)
            for _ in range(DOUBTS):
                if measured.cost_us is None or measured.cost_us <= doubtful_us or asked > operation.times_max / 2:
                    break
                asked, again = await self._cost(operation, group, asked=asked)
                measured = min(measured, again, key=lambda cell: cell.cost_us or 0.0)
            asked, stall_ms = await self._stall_ms(operation, asked)
            if operation.is_undone and asked % 2:
                await self._asked(operation, asked)
            return msgspec.structs.replace(measured, stall_ms=stall_ms)
        except NotAnswered as refusal:
            await self._probe.begin()  # waits until the service, which may be at work for a client that has gone,
            await self._probe.stall_ms()  # answers others again
            waited = refusal.waited_seconds
            return Cell(skipped=str(refusal), at_least_us=None if waited is None else waited * 1e6)

    async def answered(self, ask: Ask, *, seconds_max: float = ANSWER_SECONDS_MAX) -> None:
        """Sends a request and reads its answer. Raises NotAnswered for any status except 200."""
        url = URL(f"{self._service.url}{self._world.tournament.path}/{ask.path}", encoded=True)
        headers = {"Prefer": "return=minimal"} if ask.form is not None and ask.minimal else {}
        body = None if ask.form is None else urlencode(ask.form).encode()
        if body is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        try:
            timeout = ClientTimeout(total=seconds_max)
            async with self._session.request(ask.method, url, data=body, headers=headers, timeout=timeout) as response:
                refusal = b"" if response.status == 200 else await response.read()
                async for _ in response.content.iter_any():
                    pass
        except TimeoutError:
            raise NotAnswered(f"no answer in {seconds_max:.0f} s", seconds_max) from None
        except ClientError as error:
            raise NotAnswered(f"{type(error).__name__}: {error}") from error
        if refusal:
            raise NotAnswered(f"{response.status}: {_message(refusal)}")

    async def _asked(self, operation: Operation, first: int, group: int = 1) -> tuple[float, float]:
        """Asks for the `first`-th time and, at the same moment, for the others of a group. Returns seconds of processor
        time for one of them, and wall-clock seconds until all were answered."""
        numbers = range(first, first + group)
        if operation.before is not None:
            await self._all_answered([operation.before(self._world, n) for n in numbers])
        asks = [operation.ask(self._world, n) for n in numbers]
        before, began_at = self._clock(), time.perf_counter()
        await self._all_answered(asks)
        seconds = time.perf_counter() - began_at
        return self._clock().served(before) / group, seconds

    async def _all_answered(self, asks: list[Ask]) -> None:
        await asyncio.gather(*map(self.answered, asks))

    async def _cost(self, operation: Operation, group: int, *, asked: int) -> tuple[int, Cell]:
        """How often it has now been asked, `group` at the same moment, and what that cost. `asked`: how often it had
        been asked before."""
        effort = self._effort
        await self._look_for_processes()
        before, began_at = self._clock(), time.perf_counter()
        costs: list[float] = []
        taken: list[float] = []
        while not taken or self._goes_on(operation, taken, asked + (len(taken) + 1) * group):
            cost, took = await self._asked(operation, asked + len(costs) * group, group)
            costs.append(cost)
            taken.append(took)
        tables_us = None
        if operation.kind is Kind.CHANGE and effort.with_tables:
            await self._caught_up()
            idle = self._idle_tables * (time.perf_counter() - began_at)
            tables_us = max(self._clock().kept(before) - idle, 0.0) / len(costs) / group * 1e6
        cell = Cell(cost_us=median(costs) * 1e6, tables_us=tables_us, seconds=median(taken) / group)
        return asked + len(costs) * group, cell

    def _goes_on(self, operation: Operation, taken: list[float], asked_then: int) -> bool:
        effort = self._effort
        if len(taken) == effort.times_max or asked_then > operation.times_max:
            return False
        return sum(taken) < (SLOW_SECONDS if len(taken) < effort.times_min else effort.seconds)

    async def _stall_ms(self, operation: Operation, asked: int) -> tuple[int, float]:
        """How often it has now been asked, and the shortest of the longest waits of the spells."""
        effort, stalls = self._effort, []
        for _ in range(SPELLS):
            await self._probe.begin()
            began_at, times = time.perf_counter(), 0
            try:
                while not times or (
                    times < effort.times_max
                    and asked < operation.times_max
                    and time.perf_counter() - began_at < effort.seconds / SPELLS
                ):
                    await self._asked(operation, asked)
                    asked += 1
                    times += 1
            finally:
                stalls.append(await self._probe.stall_ms())
            is_slow = time.perf_counter() - began_at > SLOW_SECONDS / SPELLS
            if stalls[-1] < (STALL_MS_MAX if is_slow else CALM_MS):
                break
        return asked, min(stalls)

    async def _caught_up(self) -> None:
        began_at = time.perf_counter()
        while await self._connection.fetchval(_LAG_OF_ONE, self._world.tournament.tournament_id):
            if time.perf_counter() - began_at > CATCH_UP_SECONDS_MAX:
                raise NotAnswered(f"the tables had not caught up after {CATCH_UP_SECONDS_MAX:.0f} s")
            await asyncio.sleep(POLL_SECONDS)

    async def _look_for_processes(self) -> None:
        found = await backends(self._connection)
        self._serving = [self._service.api, *found.get("tallybook api", [])]
        self._tables = [self._service.worker, *found.get("tallybook worker", [])]

    def _clock(self) -> _Clock:
        """Raises ProgramFailed if the API process has ended: a new one has different memory."""
        if not machine.processor_seconds(self._service.api):
            raise ProgramFailed("The API process ended in the middle of a measurement.")
        return _Clock(
            serving={pid: machine.processor_seconds(pid) for pid in self._serving},
            tables={pid: machine.processor_seconds(pid) for pid in self._tables},
        )


class Probe:
    """Use within `probing`: the client of `probe.py`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._usual = 0.0

    async def begin(self) -> None:
        """Starts the probe's questions, which continue until `stall_ms`."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")
        await self._process.stdin.drain()

    async def stall_ms(self) -> float:
        """The longest wait since the probe began, beyond the usual one. Raises ProgramFailed if the probe has ended."""
        return max((await self._waits()).longest - self._usual, 0.0) * 1e3

    async def become_used(self) -> None:
        """Learns how long it usually waits."""
        await self.begin()
        await asyncio.sleep(USUAL_SECONDS)
        self._usual = (await self._waits()).usual

    async def _waits(self) -> Waits:
        await self.begin()
        assert self._process.stdout is not None
        async with asyncio.timeout(RECOVERY_SECONDS_MAX):
            line = await self._process.stdout.readline()
        if not line:
            raise ProgramFailed("The probe has ended: it was not answered 200.")
        return msgspec.json.decode(line, type=Waits)


@asynccontextmanager
async def measuring(service: Service, world: World, effort: Effort) -> AsyncIterator[Measuring]:
    """The measuring of `world`, once the tables of all tournaments have caught up."""
    connector = TCPConnector(limit=GROUP)
    headers = {"Authorization": f"Bearer {service.token}", "Accept-Encoding": "identity"}
    async with (
        owner(service.dsn) as connection,
        probing(service, world.elsewhere) as probe,
        ClientSession(connector=connector, headers=headers, auto_decompress=False) as session,
    ):
        await wait_for_tables(service.dsn)
        await probe.become_used()
        yield Measuring(service, world, effort, connection=connection, session=session, probe=probe)


async def wait_for_tables(dsn: str) -> None:
    """Waits until the tables lack nothing. Raises TimeoutError."""
    async with owner(dsn) as connection, asyncio.timeout(CATCH_UP_SECONDS_MAX):
        while await connection.fetchval(_LAG):  # noqa: ASYNC110 - it is another process that catches up
            await asyncio.sleep(POLL_SECONDS)


@asynccontextmanager
async def probing(service: Service, path: str) -> AsyncIterator[Probe]:
    """A probe that reads `path`."""
    address = urlsplit(service.url)
    assert address.hostname is not None
    assert address.port is not None
    request = get(path, service.token).decode()
    settings = ProbeSettings(host=address.hostname, port=address.port, request=request)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "benchmarks.sizes.probe"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
        start_new_session=True,
    )
    assert process.stdin is not None
    process.stdin.write(msgspec.json.encode(settings) + b"\n")
    try:
        yield Probe(process)
    finally:
        process.stdin.close()
        if process.returncode is None:
            process.kill()
        await process.wait()


def _message(refusal: bytes) -> str:
    """The service's answer in one line: its message, and the faults of each field."""
    try:
        said = msgspec.json.decode(refusal)
        faults = [f"{fault['field']} {fault['message']}" for fault in said.get("errors", [])]
        return " ".join([said["message"], *faults])[:REFUSAL_CHARACTERS_MAX]
    except (msgspec.DecodeError, AttributeError, KeyError, TypeError):
        return repr(refusal[:REFUSAL_CHARACTERS_MAX])
