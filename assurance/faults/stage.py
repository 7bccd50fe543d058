"""The stage: PostgreSQL, two services, two workers, all as real processes, and a wire of our own in every gap.

clients ──wire──► service 0 ──wire──┐
        ──wire──► service 1 ──wire──┼──► PostgreSQL
                  worker  0 ──wire──┤
                  worker  1 ──wire──┘
"""

import asyncio
import json
import os
import shutil
import signal
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any, Final

from assurance.faults.checker import Evidence, Head, Verdicts, judge, read_log
from assurance.faults.clients import Arena, Caller, Client, NotSent, playing, reopen, settle
from assurance.faults.cluster import LOST, Cluster, cluster
from assurance.faults.history import History, Kind, Outcome, Shown
from assurance.faults.wire import Wire, wire
from engine.database.embedded import embedded_postgres
from engine.database.migrator import migrate
from engine.database.pool import open_database
from engine.domain.terms import OPERATOR
from engine.log import registry
from tests.desks import until
from tests.running import Running, lives, started
from tests.service import make_token

SERVICES: Final = 2
WORKERS: Final = 2
COMPETITORS: Final = 5
HEADS_SECONDS: Final = 0.25
QUIET_SECONDS_MAX: Final = 90.0
_HEADS: Final = "SELECT tournament_id, sequence, digest FROM head"
_LAG: Final = """
    SELECT coalesce(sum(h.sequence - coalesce(c.sequence, 0)), 0)::bigint
    FROM head AS h
    LEFT JOIN checkpoint AS c ON c.tournament_id = h.tournament_id
"""


async def prepare(directory: Path) -> Path:
    """A data directory with a migrated, empty database, for stages to be copies of."""
    async with embedded_postgres(directory) as embedded:
        await migrate(embedded.dsn)
    return directory


class Program:
    """A command of ours that can be ended in any way and started again, always with the same variables."""

    def __init__(self, folder: Path, kind: str, *arguments: str, **variables: str) -> None:
        self.kind = kind
        self.variables = variables
        self.prefix: tuple[str, ...] = ()
        self._folder = folder
        self._arguments = arguments
        self._context: Any = None
        self._running: Running | None = None
        self._said: list[Running] = []

    @property
    def running(self) -> Running:
        assert self._running is not None
        return self._running

    def start(self) -> None:
        self._context = started(self._folder, *self._arguments, **self.variables)
        self._running = self._context.__enter__()
        self._said.append(self._running)

    async def ready(self) -> None:
        await self.running.logged("listening" if self.kind == "api" else "keeping_tables")

    @property
    def port(self) -> int:
        """Of a service; 0 while it does not say."""
        found = [line["address"] for line in self.running.log if line["event"] == "listening"]
        return int(found[-1].rpartition(":")[2]) if found else 0

    @property
    def pid(self) -> int:
        """Of the process that does the work: of a service, its API process that lives."""
        return self.running.pids(self.kind)[-1] if self.kind == "api" else self.running.pid

    def kill(self) -> None:
        """kill -9; a service starts its API process again, a worker is gone."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    async def end(self) -> int:
        """Its exit code, after SIGTERM, or sooner."""
        if self._context is None:
            return 0
        process = self.running.process
        if process.poll() is None:
            process.terminate()
        await until(lambda: process.poll() is not None, 45)
        self._context.__exit__(None, None, None)
        self._context = None
        return int(process.returncode)

    async def again(self, **variables: str) -> None:
        """Ended, and started again."""
        if self._context is not None:
            await self.end()
        self.variables = self.variables | variables
        self.variables = {name: value for name, value in self.variables.items() if value}
        self.start()
        await self.ready()

    def close(self) -> None:
        if self._context is not None:
            with suppress(ProcessLookupError):
                os.kill(self.running.pid, signal.SIGCONT)
            self._context.__exit__(None, None, None)
            self._context = None

    @property
    def deaths(self) -> int:
        """How often its API process died, as it says itself."""
        return self.said.count('"code":-9')

    @property
    def said(self) -> str:
        return "\n".join(running.err for running in self._said)


class Stage:
    """Use within `stage`."""

    def __init__(self, folder: Path, there: Cluster, seed: int) -> None:
        self.folder = folder
        self.cluster = there
        self.random = Random(seed)
        self.history = History()
        self.services: list[Program] = []
        self.workers: list[Program] = []
        self.front: list[Wire] = []
        """Between clients and each service."""
        self.back: list[Wire] = []
        """Between each service and PostgreSQL."""
        self.tables: list[Wire] = []
        """Between each worker and PostgreSQL."""
        self.arenas: list[Arena] = []
        self.clients: list[Client] = []
        self.token = ""
        self.resumed: list[float] = []
        self.heads: dict[tuple[int, int], bytes] = {}
        self.resumed_seconds_max = 30.0

    @property
    def wires(self) -> list[Wire]:
        return [*self.front, *self.back, *self.tables]

    @property
    def programs(self) -> list[Program]:
        return [*self.services, *self.workers]

    # ── Setting it ──────────────────────────────────────────────────────────────────────────────────────

    async def open_arenas(self, number: int) -> None:
        """Tournaments to play in, made over HTTP; and a token for all of them."""
        async with open_database(self.cluster.dsn, name="harness") as database:
            self.token = self.token or await make_token(database)
            ids = []
            async with database.connection() as connection:
                for n in range(len(self.arenas), len(self.arenas) + number):
                    tournament_id, slug = registry.new_tournament_id(), f"cup-{n}"
                    assert await registry.open_tournament(
                        connection, tournament_id, name=f"Cup {n}", slug=slug, actor=OPERATOR
                    )
                    ids.append((tournament_id, slug))
        caller = self.caller(0)
        for tournament_id, slug in ids:
            self.arenas.append(await _arena(caller, tournament_id, slug))
        caller.close()

    def caller(self, service: int) -> Caller:
        return Caller(lambda: self.front[service].port, self.token)

    async def figures(self, service: int) -> dict[str, float]:
        """What a service's /metrics says, by name and labels as they are written there; up to a second old. A service
        that refuses requests, because too many wait, is asked again."""
        caller = self.caller(service)

        async def said() -> str | None:
            answer = await caller.ask("GET", "/metrics")
            return answer.body.decode() if answer.status == 200 else None

        try:
            text = await until(said)
        finally:
            caller.close()
        lines = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
        return {name: float(value) for name, _, value in lines}

    def client(self, *, direct: bool = False, **attributes: object) -> Client:
        """Another client; `direct`: past the wires, which take connections for a service that is gone."""
        number = len(self.clients)
        ends: list[Wire] | list[Program] = self.services if direct else self.front
        ports: list[Callable[[], int]] = [lambda end=end: end.port for end in ends]  # type: ignore[misc]
        client = Client(number, self.random.getrandbits(64), self.arenas, ports, self.token, self.history)
        for name, value in attributes.items():
            setattr(client, name, value)
        self.clients.append(client)
        return client

    @asynccontextmanager
    async def load(self, clients: int = 8, services: list[int] | None = None, **attributes: Any) -> AsyncIterator[None]:
        """Clients at play; it begins when each service has answered."""
        players = [self.client(**attributes) for _ in range(clients)]
        async with playing(players, services), self._heads_noted():
            await self.resume(services, count=False)
            yield
        for player in players:
            player.close()

    @asynccontextmanager
    async def _heads_noted(self) -> AsyncIterator[None]:
        """Notes what the heads are, again and again: each must be a prefix of the log in the end."""
        task = asyncio.create_task(self._note_heads())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _note_heads(self) -> None:
        while True:
            with suppress(*LOST):
                await self.note_heads()
            await asyncio.sleep(HEADS_SECONDS)

    async def note_heads(self) -> None:
        """From what was confirmed: a head that was seen is one that somebody may have kept elsewhere."""
        places = {arena.tournament_id: n for n, arena in enumerate(self.arenas)}
        for row in await self.cluster.fetch(_HEADS):
            if row["tournament_id"] in places:
                self.heads[places[row["tournament_id"]], row["sequence"]] = row["digest"]

    # ── What happens on it ──────────────────────────────────────────────────────────────────────────────

    async def resume(self, services: list[int] | None = None, *, count: bool = True, seconds: float = 60.0) -> float:
        """Seconds until each service has answered with ok what was asked for after this call."""
        began = time.monotonic()
        wanted = range(len(self.services)) if services is None else services
        await until(lambda: all(self.history.last_ok.get(n, 0.0) > began for n in wanted), seconds)
        took = max(self.first_ok(n, began) for n in wanted) - began
        if count:
            self.resumed.append(took)
        return took

    def first_ok(self, service: int, since: float) -> float:
        return min(
            a.ended
            for a in reversed(self.history.attempts[-5_000:])
            if a.service == service and a.outcome is Outcome.OK and a.began > since
        )

    def heal(self) -> None:
        for one in self.wires:
            one.heal()

    async def caught_up(self, seconds: float = QUIET_SECONDS_MAX) -> float:
        """Seconds until the tables lack nothing."""
        began = time.monotonic()

        async def no_lag() -> bool:
            with suppress(*LOST):
                return bool((await self.cluster.fetch(_LAG))[0][0] == 0)
            return False

        await until(no_lag, seconds)
        return time.monotonic() - began

    # ── What became of it ───────────────────────────────────────────────────────────────────────────────

    async def settled(self) -> int:
        """Everything that nobody knew about is known; how much that was."""
        self.heal()
        client = self.client()
        try:
            count = await settle(client, list(range(len(self.services))))
            if any(attempt.asked.kind is Kind.CLOSE for attempt in self.history.attempts):
                for place in range(len(self.arenas)):
                    await reopen(client, place)
            return count
        finally:
            client.close()

    async def evidence(self, *, settle: bool = True, tables: bool = True) -> Evidence:
        """All there is, when all is quiet."""
        if settle:
            await self.settled()
        looks = await self._looks()
        if tables:
            await self.caught_up()
        async with self.cluster.owner() as owner:
            logs = [await read_log(owner, arena) for arena in self.arenas]
        return Evidence(
            self.history,
            logs,
            [Head(t, sequence, digest) for (t, sequence), digest in self.heads.items()],
            looks,
            [line for program in self.programs for line in program.said.splitlines()],
            self.resumed,
            self.resumed_seconds_max,
        )

    async def judged(self, *, settle: bool = True) -> Verdicts:
        return judge(await self.evidence(settle=settle))

    async def _looks(self) -> list[tuple[int, Shown]]:
        """The standings by each service, of which the last by each is of the same moment."""
        client = self.client()
        looks: list[tuple[int, Shown]] = []
        for place in range(len(self.arenas)):
            for service in range(len(self.services)):
                asked = client.draw(Kind.REVISE, place, keyed=True)
                for _ in range(50):
                    attempt = await client.attempt(asked, service)
                    if attempt.outcome is Outcome.OK:
                        break
                    await asyncio.sleep(0.2)
                assert attempt.shown is not None, attempt
                looks.append((place, attempt.shown))
        client.close()
        return looks


async def _arena(caller: Caller, tournament_id: int, slug: str) -> Arena:
    below = f"/tournament/{slug}"

    async def create(path: str, name: str, form: dict[str, object]) -> Any:
        for _ in range(50):
            with suppress(NotSent):
                answer = await caller.ask("POST", f"{below}/{path}", form, key=f"{path}-{form['name']}")
                if answer.status == 200:
                    return json.loads(answer.body)[name]
            await asyncio.sleep(0.1)
        raise AssertionError(answer)

    competitors = tuple(
        [(await create("competitors.json", "competitor", {"name": f"C{n}"}))["id"] for n in range(COMPETITORS)]
    )
    form = {"name": "Season", "main_unity_name": "points", "participants": ",".join(map(str, competitors))}
    ranking = await create("rankings.json", "ranking", form)
    unity = await create(f"rankings/{ranking['id']}/unities.json", "unity", {"name": "fouls", "sort": "ASC"})
    first, second = ranking["unities"][0]["id"], unity["id"]
    return Arena(tournament_id, slug, ranking["id"], (first, second), competitors)


@asynccontextmanager
async def stage(
    prepared: Path,
    folder: Path,
    *,
    seed: int = 1,
    tournaments: int = 3,
    services: int = SERVICES,
    workers: int = WORKERS,
    settings: dict[str, str] | None = None,
    data_dir: Path | None = None,
    variables: Sequence[dict[str, str]] = (),
) -> AsyncIterator[Stage]:
    """All of it at work, with tournaments to play in, on a copy of what was prepared. `variables`: of the services,
    then of the workers."""
    folder.mkdir(parents=True, exist_ok=True)
    data_dir = data_dir or folder / "data"
    shutil.copytree(prepared, data_dir, dirs_exist_ok=True, ignore=shutil.ignore_patterns("socket*", "lock"))
    async with AsyncExitStack() as stack:
        there = await stack.enter_async_context(cluster(data_dir, **(settings or {})))
        one = Stage(folder, there, seed)

        async def target() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
            return await one.cluster.target()

        async def program(kind: str, n: int, *arguments: str, **more: str) -> Program:
            back = await stack.enter_async_context(wire(target, seed=seed + n))
            (one.back if kind == "api" else one.tables).append(back)
            (folder / f"{kind}-{n}").mkdir(exist_ok=True)
            dsn = f"postgresql://tallybook@127.0.0.1:{back.port}/tallybook?sslmode=disable"
            added = Program(folder / f"{kind}-{n}", kind, *arguments, TALLYBOOK_DATABASE_URL=dsn, **more)
            (one.services if kind == "api" else one.workers).append(added)
            stack.callback(added.close)
            added.start()
            return added

        for n in range(services):
            added = await program("api", n, "serve", "--port", "0", "--no-worker", **dict(*variables[n : n + 1]))

            async def front_target(added: Program = added) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
                return await asyncio.open_connection("127.0.0.1", added.port)

            one.front.append(await stack.enter_async_context(wire(front_target, seed=seed + 100 + n)))
        for n in range(workers):
            await program("worker", n, "worker", **dict(*variables[services + n : services + n + 1]))
        for added in one.programs:
            await added.ready()
        await one.open_arenas(tournaments)
        try:
            yield one
        except BaseException:
            one.history.write(folder / "history.ndjson")
            raise
        finally:
            for client in one.clients:
                client.close()
            one.heal()
            # While the wires still carry: what a service has under way it finishes.
            await asyncio.gather(*(program.end() for program in one.programs), return_exceptions=True)


def processor_seconds(pid: int) -> float:
    """That a process has used so far, to the microsecond: what it takes, whatever else the machine does."""
    return time.clock_gettime((~pid << 3) | 2)  # CPUCLOCK_SCHED of a process, see clock_getcpuclockid(3)


@contextmanager
def paused(pids: list[int]) -> Any:
    """SIGSTOP for as long as the context lasts."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            if lives(pid):
                os.kill(pid, signal.SIGCONT)
