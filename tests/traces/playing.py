"""Real processes at play: two API processes of one database, killed where it hurts, and clients that leave a trace.

In half of the tournaments a ranking is closed and reopened among adds, in the others a competition is voided. Clients
ask for points with a key and without. With a key they ask again after a 503, a 500 and a cut connection, and sometimes
at the other process while they still wait for the first answer. Another client reads, of one process or the other.
"""

import asyncio
import json
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from random import Random
from typing import Final

import msgspec
from asyncpg import Connection

from engine.process.failpoints import VARIABLE, Point
from tests.desks import until
from tests.faults.clients import Answer, Arena, Caller, NotSent
from tests.faults.stage import Stage
from tests.faults.table import Trial
from tests.model.state import Kind
from tests.traces.lines import Entry, Log, Trace, read
from tests.traces.recorder import PLACE

POINTS: Final = (Point.APPEND_SENT, Point.APPEND_COMMITTED, Point.APPEND)
"""Where process 1 dies."""
_HERE: Final = Path(__file__).parent
_FIRSTS: Final = {"PointsAdded", "RankingClosed", "RankingReopened", "CompetitionVoided"}
PLAY_SECONDS_MAX: Final = 120.0
_PAUSE_SECONDS: Final = 0.05  # until a client asks again


async def traces(trial: Trial, *, tournaments: int, clients: int, requests: int, kills: int) -> list[Trace]:
    """One of each tournament. Each client asks for so many things in each. Process 1 dies at a failpoint again and
    again; process 0 is killed so often, at any moment."""
    folder = trial.folder / "traces"
    folder.mkdir()
    armed = f"{trial.random.choice(POINTS)}:{trial.random.randint(8, 16)}"
    variables = [{PLACE: str(folder / str(n)), "PYTHONPATH": f"{_HERE / 'startup'}:{_HERE.parents[1]}"} for n in (0, 1)]
    variables[1][VARIABLE] = armed
    async with trial.stage(tournaments=tournaments, workers=0, variables=variables) as stage:
        players = [await _player(stage, folder, place) for place in range(tournaments)]
        async with asyncio.timeout(PLAY_SECONDS_MAX), asyncio.TaskGroup() as tasks:
            playing = [
                tasks.create_task(player.play(n, clients, requests, Random(f"{trial.seed} {player.place} {n}")))
                for player in players
                for n in range(clients)
            ]
            for player in players:
                tasks.create_task(player.read(playing))
            for _ in range(kills):
                lines = _text(folder).count(b"\n") + trial.random.randint(20, 60)
                await until(lambda n=lines: all(one.done() for one in playing) or _text(folder).count(b"\n") >= n, 60)
                stage.services[0].kill()
        for n in (0, 1):
            await _answers(stage.caller(n))  # who died has started again
        async with stage.cluster.owner() as owner:
            logs = [await _log(owner, player.arena.tournament_id, player.begin) for player in players]
        deaths = sum(service.deaths for service in stage.services)
    lines = read(folder)
    trial.tell(f"{len(lines)} lines, {deaths} deaths, armed: {armed}")
    return [
        Trace(tuple([line for line in lines if line.tournament in (0, player.arena.tournament_id)]), log)
        for player, log in zip(players, logs, strict=True)
    ]


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

    await until(answered, 30)
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
