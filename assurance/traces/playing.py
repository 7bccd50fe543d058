"""Real processes at play: two API processes and two workers of one database, killed and cut off where it hurts, and
clients that leave a trace.

In half of the tournaments a ranking is closed and reopened among adds, in the others a competition is voided. Clients
ask for points with a key and without. With a key they ask again after a 503, a 500 and a cut connection, and sometimes
at the other process while they still wait for the first answer. Another client reads, of one process or the other, and
one listens to the stream of either, hangs up, and goes on where it was.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from collections.abc import Sequence as Items
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from enum import StrEnum
from itertools import count
from pathlib import Path
from random import Random
from typing import Any, Final

import asyncpg
import msgspec
from aiohttp import ClientError
from asyncpg import Connection

from assurance.faults.clients import Answer, Arena, Caller, NotSent
from assurance.faults.replaced import ended_with
from assurance.faults.resources import promoted, standby_of, streaming, synchronous_standby
from assurance.faults.stage import Stage
from assurance.faults.table import Trial
from assurance.faults.wire import wire
from assurance.model.state import Kind
from assurance.traces.lines import DATABASE, PROCESSES, SERVICES, Did, Entry, Line, Log, Lost, Trace, read
from assurance.traces.recorder import PLACE
from engine.process.failpoints import VARIABLE, Point
from tests.desks import until
from tests.restoring import older
from tests.spectator import Spectator, connected

POINTS: Final = (Point.APPEND_SENT, Point.APPEND_COMMITTED, Point.APPEND)
"""Where process 1 dies."""
_HERE: Final = Path(__file__).parent
_FIRSTS: Final = {"PointsAdded", "RankingClosed", "RankingReopened", "CompetitionVoided"}
_OLDER: Final = """
    SELECT h.sequence, h.digest, l.refusals, coalesce(c.sequence, 0) AS checkpoint,
        array(SELECT r.idempotency_key FROM refusal AS r WHERE r.tournament_id = $1 ORDER BY 1) AS keys,
        array(SELECT r.number FROM refusal AS r WHERE r.tournament_id = $1 ORDER BY r.idempotency_key) AS numbers
    FROM head AS h
    JOIN append_lock AS l USING (tournament_id)
    LEFT JOIN checkpoint AS c USING (tournament_id)
    WHERE h.tournament_id = $1
"""
PLAY_SECONDS_MAX: Final = 120.0
_PAUSE_SECONDS: Final = 0.05  # until a client asks again


class Fault(StrEnum):
    """What can go wrong while they play."""

    KILLED = "an API process is killed"
    WORKER_KILLED = "a worker is killed"
    CUT_OFF = "an API process loses its connections"
    WORKER_CUT_OFF = "a worker loses its connections"
    CRASHED = "PostgreSQL is killed, and started again"
    FAILOVER = "PostgreSQL is killed, and a synchronous standby takes its place"
    RESTORED = "a backup takes the place of the database"
    LAGGED = "PostgreSQL is killed, and a standby that lags takes its place"


LOSING: Final = (Fault.RESTORED, Fault.LAGGED)
"""The newest part of the log is lost. As in the model, that happens once."""


def some_faults(random: Random, most: int) -> list[Fault]:
    """Any, of which one loses something at most."""
    faults = random.choices(list(Fault), k=most)
    losing = [place for place, fault in enumerate(faults) if fault in LOSING]
    return [fault for place, fault in enumerate(faults) if place not in losing[1:]]


async def traces(trial: Trial, *, tournaments: int, clients: int, requests: int, faults: Items[Fault]) -> list[Trace]:
    """One of each tournament. Each client asks for that many things in each. Process 1 dies at a failpoint again and
    again; meanwhile things go wrong, at any moment. One of the faults at most is of those that lose something."""
    folder = trial.folder / "traces"
    folder.mkdir()
    armed = f"{trial.random.choice(POINTS)}:{trial.random.randint(8, 16)}"
    path = f"{_HERE / 'startup'}:{_HERE.parents[1]}"
    variables = [{PLACE: str(folder / str(n)), "PYTHONPATH": path} for n in PROCESSES]
    variables[1][VARIABLE] = armed
    async with (
        AsyncExitStack() as stack,
        trial.stage(tournaments=tournaments, variables=variables) as stage,
        ended_with(stack, stage),
    ):
        players = [await _player(stage, folder, place) for place in range(tournaments)]
        async with asyncio.timeout(PLAY_SECONDS_MAX), asyncio.TaskGroup() as tasks:
            playing = [
                tasks.create_task(player.play(n, clients, requests, Random(f"{trial.seed} {player.place} {n}")))
                for player in players
                for n in range(clients)
            ]
            for player in players:
                tasks.create_task(player.read(playing))
            listening = [tasks.create_task(player.listen()) for player in players]

            async def more() -> None:
                await _more_lines(folder, trial.random.randint(20, 60), playing)

            for fault in faults:
                await more()
                if fault is Fault.RESTORED:
                    await _restored(players, stage, more)
                elif fault is Fault.LAGGED:
                    await _fallen_behind(players, trial, stage, more)
                else:
                    await _make(fault, trial, stage, folder)
            await asyncio.wait(playing)
            for one in listening:
                one.cancel()
        for n in SERVICES:
            await _answers(stage.caller(n))  # who died has started again
        async with stage.cluster.owner() as owner:
            logs = [await _log(owner, player.arena.tournament_id, player.begin) for player in players]
        deaths = sum(service.deaths for service in stage.services)
    lines = read(folder)
    trial.tell(f"{len(lines)} lines, {deaths} deaths, armed: {armed}; {', '.join(faults)}")
    return [
        Trace(
            tuple([line for line in lines if line.tournament in (0, player.arena.tournament_id)]),
            log,
            player.lost,
        )
        for player, log in zip(players, logs, strict=True)
    ]


async def _more_lines(folder: Path, more: int, playing: list[asyncio.Task[None]]) -> None:
    """Returns when there are that many more lines, or nobody plays any more."""
    enough = _text(folder).count(b"\n") + more
    await until(lambda: all(one.done() for one in playing) or _text(folder).count(b"\n") >= enough, 60)


async def _make(fault: Fault, trial: Trial, stage: Stage, folder: Path) -> None:
    random = trial.random
    match fault:
        case Fault.KILLED:
            stage.services[0].kill()
        case Fault.WORKER_KILLED:
            worker = random.choice(stage.workers)
            worker.kill()
            await worker.again()
        case Fault.CUT_OFF:
            random.choice(stage.back).reset_all()
        case Fault.WORKER_CUT_OFF:
            random.choice(stage.tables).reset_all()
        case Fault.CRASHED:
            await stage.cluster.kill()
            _note(folder, Line(at=time.monotonic_ns(), process=DATABASE, tournament=0, did=Did.CRASHED))
            await stage.cluster.start()
        case Fault.FAILOVER:
            other = await synchronous_standby(trial, stage)
            await stage.cluster.kill()
            _note(folder, Line(at=time.monotonic_ns(), process=DATABASE, tournament=0, did=Did.CRASHED))
            await promoted(stage, other)


def _note(folder: Path, line: Line) -> None:
    """What the database does, which nobody records within it."""
    with (folder / f"{DATABASE}.ndjson").open("ab") as file:
        file.write(msgspec.json.encode(line) + b"\n")


async def _restored(players: Items["_Player"], stage: Stage, more: Callable[[], Awaitable[None]]) -> None:
    """Between the backup and the restore, something more happens."""
    async with older(stage.cluster.dsn) as copy:
        async with _owner(copy.dsn) as owner:
            for player in players:
                await player.look_at_older(owner)
        await more()
        moment = await copy.take_its_place()
        async with _owner(copy.dsn) as owner:
            for player in players:
                await player.lose(owner, moment)


async def _fallen_behind(
    players: Items["_Player"], trial: Trial, stage: Stage, more: Callable[[], Awaitable[None]]
) -> None:
    """Something more happens that does not reach the standby, before it takes the place of the primary."""
    primary = stage.cluster
    async with wire(primary.target) as between:
        there = await standby_of(trial, stage, between)
        await streaming(primary)
        between.clog()
        await more()
        await primary.kill()
        between.reset_all()
    moment = time.monotonic_ns()
    await there.execute("SELECT pg_promote(true, 30)")
    async with there.owner() as owner:
        for player in players:
            await player.look_at_older(owner)
    stage.cluster = there
    await primary.start()
    async with primary.owner() as owner:
        for player in players:
            await player.lose(owner, moment)
    await primary.stop()


@asynccontextmanager
async def _owner(dsn: str) -> AsyncIterator[Connection]:
    owner = await asyncpg.connect(dsn, server_settings={"search_path": "tallybook"})
    try:
        yield owner
    finally:
        await owner.close()


async def _player(stage: Stage, folder: Path, place: int) -> "_Player":
    caller = stage.caller(0)
    arena = stage.arenas[place]
    competition = 0
    while not competition:
        with suppress(NotSent, OSError, EOFError):
            answer = await caller.ask("POST", f"/tournament/{arena.slug}/competitions.json", {"group_id": 1}, "made")
            if answer.status == 200:
                competition = json.loads(answer.body)["competition"]["id"]
    caller.close()
    begin = (await stage.cluster.fetch("SELECT sequence FROM head WHERE tournament_id = $1", arena.tournament_id))[0]
    return _Player(stage, folder, place, competition, begin["sequence"])


class _Player:
    """Asks for things in one tournament."""

    def __init__(self, stage: Stage, folder: Path, place: int, competition: int, begin: int) -> None:
        self.place = place
        self.arena: Arena = stage.arenas[place]
        self.begin = begin
        self.lost: Lost | None = None
        self._older: Any = None
        self._stage = stage
        self._folder = folder
        self._competition = competition
        self._amounts = count(1)

    async def play(self, n: int, clients: int, requests: int, random: Random) -> None:
        """As client `n`: one thing after the other."""
        callers = [self._stage.caller(service) for service in range(2)]
        for step in range(requests):
            kind = self._kind(n, step, clients, requests)
            key = f"{self.place}-{n}-{step}" if kind is not Kind.POINTS or random.random() < 0.7 else None
            await self._ask(kind, key, callers, random)
        for caller in callers:
            caller.close()

    async def read(self, others: list[asyncio.Task[None]]) -> None:
        """Asks for a list of either process, one after the other, until the others have done."""
        callers = [self._stage.caller(service) for service in range(2)]
        random, path = Random(f"reader {self.place}"), f"/tournament/{self.arena.slug}/rankings.json"
        while not all(one.done() for one in others):
            answer = await _answer(callers[random.randrange(2)], "GET", path, None, None)
            assert answer is None or answer.status in (200, 503), answer
            await asyncio.sleep(_PAUSE_SECONDS)
        for caller in callers:
            caller.close()

    async def listen(self) -> None:
        """Listens to either process, hangs up after some events, and goes on where it was; until it is cancelled."""
        spectator, random = Spectator(), Random(f"listener {self.place}")
        for number in count(1):
            port = self._stage.front[random.randrange(2)].port
            enough = len(spectator.told) + random.randint(1, 12)
            headers = {
                "Accept": spectator.media_type,
                "Authorization": f"Bearer {self._stage.token}",
                "User-Agent": str(number),
            }
            if spectator.last_id is not None:
                headers["Last-Event-ID"] = spectator.last_id
            spectator.connect()
            with suppress(ClientError, OSError):
                address = f"http://127.0.0.1:{port}/tournament/{self.arena.slug}/events"
                async with connected(address, headers) as connection:
                    assert connection.status in (200, 503), connection.status
                    await connection.feed(spectator, lambda enough=enough: len(spectator.told) >= enough)  # type: ignore[misc]
            if spectator.told and spectator.told[-1][0] == "reset":
                spectator.start_over()
            await asyncio.sleep(_PAUSE_SECONDS)

    async def look_at_older(self, owner: Connection) -> None:
        """`owner`: of the database that is to take the place of theirs."""
        self._older = await owner.fetchrow(_OLDER, self.arena.tournament_id)

    async def lose(self, owner: Connection, moment: int) -> None:
        """`owner`: of the database that was theirs, and was replaced at that moment."""
        older = self._older
        line = Line(
            at=moment,
            process=DATABASE,
            tournament=self.arena.tournament_id,
            did=Did.RESTORED,
            sequence=older["sequence"],
            digest=older["digest"].hex(),
        )
        _note(self._folder, line)
        log = await _log(owner, self.arena.tournament_id, self.begin)
        keys = dict(zip(older["keys"], older["numbers"], strict=True))
        self.lost = Lost(log, keys, older["refusals"], older["checkpoint"])

    def _kind(self, n: int, step: int, clients: int, requests: int) -> Kind:
        if self.place % 2:
            return Kind.VOID if n == 0 and step == requests * 2 // 3 else Kind.POINTS
        closes = n == clients - 1 and step % 3
        return (Kind.POINTS, Kind.CLOSE, Kind.REOPEN)[closes]

    async def _ask(self, kind: Kind, key: str | None, callers: list[Caller], random: Random) -> None:
        """Asks until the answer is definite, if there is a key."""
        method, path, form = self._request(kind)
        first = random.randrange(2)
        if key is not None and random.random() < 0.3:
            one = asyncio.create_task(_answer(callers[first], method, path, form, key))
            await until(lambda: one.done() or self._has_asked(key))
            other = await _answer(callers[1 - first], method, path, form, key)
            if _is_definite(await one) or _is_definite(other):
                return
        while True:
            answer = await _answer(callers[random.randrange(2)], method, path, form, key)
            if key is None or _is_definite(answer):
                return
            await asyncio.sleep(_PAUSE_SECONDS)

    def _request(self, kind: Kind) -> tuple[str, str, dict[str, object]]:
        below, arena = f"/tournament/{self.arena.slug}", self.arena
        if kind is Kind.VOID:
            return "PUT", f"{below}/competitions/{self._competition}/void.json", {}
        ranking = f"{below}/rankings/{arena.ranking_id}"
        if kind is not Kind.POINTS:
            return "PUT", f"{ranking}/{'close' if kind is Kind.CLOSE else 'reopen'}.json", {}
        unities = [{"unity_id": arena.unities[0], "delta": next(self._amounts)}]
        form: dict[str, object] = {
            "participants_delta": json.dumps([{"competitor_id": arena.competitors[0], "unities": unities}])
        }
        return "PUT", f"{ranking}/add.json", form | ({"competition_id": self._competition} if self.place % 2 else {})

    def _has_asked(self, key: str) -> bool:
        return f'"request":"{key}"'.encode() in _text(self._folder)


async def _answers(caller: Caller) -> None:
    """Returns when the service answers."""

    async def answered() -> bool:
        with suppress(NotSent, OSError, EOFError):
            return (await caller.ask("GET", "/healthz")).status == 200
        return False

    await until(answered)
    caller.close()


def _text(folder: Path) -> bytes:
    return b"".join([path.read_bytes() for path in folder.glob("*.ndjson")])


async def _answer(
    caller: Caller, method: str, path: str, form: dict[str, object] | None, key: str | None
) -> Answer | None:
    """None: nobody knows."""
    with suppress(NotSent, OSError, EOFError):
        return await caller.ask(method, path, form, key)
    return None


def _is_definite(answer: Answer | None) -> bool:
    assert answer is None or answer.status in (200, 409, 422, 500, 503), answer
    return answer is not None and answer.status < 500


async def _log(owner: Connection, tournament_id: int, begin: int) -> Log:
    """What was appended after `begin`."""
    events = await owner.fetch(
        "SELECT sequence, kind, idempotency_key, body FROM event WHERE tournament_id = $1 AND sequence > $2"
        " ORDER BY sequence",
        tournament_id,
        begin,
    )
    blocks = await owner.fetch("SELECT last_sequence, digest FROM block WHERE tournament_id = $1", tournament_id)
    refusals = await owner.fetch("SELECT idempotency_key, number FROM refusal WHERE tournament_id = $1", tournament_id)
    return Log(
        begin,
        tuple(_entries([dict(event) for event in events])),
        {block["last_sequence"]: block["digest"].hex() for block in blocks},
        {refusal["idempotency_key"]: refusal["number"] for refusal in refusals},
    )


def _entries(events: list[dict[str, object]]) -> Iterator[Entry]:
    """The events of each request."""
    entry: Entry | None = None
    for event in events:
        body, sequence = json.loads(str(event["body"])), event["sequence"]
        assert isinstance(sequence, int)
        if event["kind"] in _FIRSTS:
            if entry is not None:
                yield entry
            key = event["idempotency_key"]
            entry = Entry(str(key) if key else f"{body['deltas'][0][2]:+}", sequence, sequence)
        else:
            assert entry is not None, event
            reverses = (*entry.reverses, body["reverses"])
            entry = msgspec.structs.replace(entry, last=sequence, reverses=reverses)
    if entry is not None:
        yield entry
