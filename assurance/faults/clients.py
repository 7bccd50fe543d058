"""Seeded clients that ask two services for changes and write down every attempt.

They speak HTTP themselves, because libraries retry what they deem harmless, and an attempt that nobody wrote down
cannot be judged. What was answered with 503, and what nobody knows about, is asked for again with its key; without
one, never.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from itertools import count
from random import Random
from typing import Final
from urllib.parse import urlencode

import msgspec
from msgspec import Struct

from assurance.faults.history import Asked, Attempt, History, Kind, Outcome, shown_by

ANSWER_SECONDS_MAX: Final = 25.0
"""Longer than any deadline of the service's."""
CONNECT_SECONDS_MAX: Final = 5.0
RETRY_SECONDS: Final = 0.1
SETTLE_SECONDS_MAX: Final = 90.0
MARKS_FROM: Final = 1_000_000
PLAIN: Final = {Kind.ADD: 84, Kind.COMPETITION: 5, Kind.REVISE: 2, Kind.LIST: 9}
"""How often what is asked for."""
MIXED: Final = PLAIN | {
    Kind.ADD: 55,
    Kind.COMPETITION: 10,
    Kind.REGISTER: 8,
    Kind.RANKING: 2,
    Kind.UNITY: 3,
    Kind.CLOSE: 2,
    Kind.VOID: 5,
    Kind.UNVOID: 4,
    Kind.ERASE: 3,
}
"""With creations, erasures, voids and unvoids, with closings, each of which is followed by a reopening."""
NAMES: Final = {Kind.REGISTER: "competitor", Kind.RANKING: "ranking", Kind.UNITY: "unity"}
"""What is made gets a name of this and its mark."""
KEY: Final = "k"
"""What keys of clients begin with. Others are of cases themselves."""
LATEST: Final = 10
"""So many of what was created last are made use of."""
FOR_A_COMPETITION: Final = 0.4
"""The share of adds that are for a competition, where clients know of one and there are voids."""


class Arena(Struct, frozen=True):
    """A tournament with one ranking of all its competitors in two unities."""

    tournament_id: int
    slug: str
    ranking_id: int
    unities: tuple[int, int]
    competitors: tuple[int, ...]


class Answer(Struct, frozen=True):
    status: int
    headers: dict[str, str]
    body: bytes


class NotSent(Exception):
    """No connection was to be had, so nothing was asked."""


class Caller:
    """One connection after the other to a port, one request at a time."""

    def __init__(self, port: Callable[[], int], token: str) -> None:
        self._port = port
        self._token = token
        self._ends: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(
        self, method: str, path: str, form: dict[str, object] | None = None, key: str | None = None
    ) -> Answer:
        """Raises NotSent; OSError, EOFError or TimeoutError where nobody knows what became of it."""
        body = b"" if form is None else urlencode(form).encode()
        lines = [f"{method} {path} HTTP/1.1", "Host: tallybook", f"Authorization: Bearer {self._token}"]
        if key is not None:
            lines.append(f"Idempotency-Key: {key}")
        if form is not None:
            lines += ["Content-Type: application/x-www-form-urlencoded", f"Content-Length: {len(body)}"]
        sent = "\r\n".join([*lines, "", ""]).encode() + body
        if self._ends is not None and self._ends[0].at_eof():
            self.close()  # the server said that it is done with it
        if self._ends is None:
            try:
                async with asyncio.timeout(CONNECT_SECONDS_MAX):
                    self._ends = await asyncio.open_connection("127.0.0.1", self._port())
            except (OSError, TimeoutError) as error:
                raise NotSent from error
        try:
            async with asyncio.timeout(ANSWER_SECONDS_MAX):
                answer = await _exchange(*self._ends, sent)
        except BaseException:
            self.close()
            raise
        if answer.headers.get("connection") == "close":
            self.close()
        return answer

    def close(self) -> None:
        ends, self._ends = self._ends, None
        if ends is not None:
            ends[1].transport.abort()


async def _exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, sent: bytes) -> Answer:
    writer.write(sent)
    await writer.drain()
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")[:-2]
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return Answer(int(first.split()[1]), headers, await reader.readexactly(int(headers["content-length"])))


_numbers = count(1)
"""Of things asked for in this run of the program; keys and marks are made from them, so none is ever used twice."""


class Client:
    """Asks for one thing after the other, by whichever service the dice say."""

    def __init__(
        self, number: int, seed: int, arenas: list[Arena], ports: list[Callable[[], int]], token: str, history: History
    ) -> None:
        self.number = number
        self.random = Random(seed)
        self.arenas = arenas
        self.history = history
        self.pause_seconds = 0.02
        self.lines_max = 3
        self.keyless = 0.1
        self.kind: Kind | None = None
        self.mix: dict[Kind, int] = PLAIN
        self._closed: tuple[int, int] | None = None
        self._callers = [Caller(port, token) for port in ports]

    async def play(self, stopped: asyncio.Event, services: list[int] | None = None) -> None:
        """Until `stopped` is set. What nobody knows about then is left to `settle`."""
        while not stopped.is_set():
            asked = self.draw()
            attempt = await self.attempt(asked, self._service(services))
            while asked.key is not None and _again(attempt) and not stopped.is_set():
                await asyncio.sleep(RETRY_SECONDS)
                attempt = await self.attempt(asked, self._service(services))
            if attempt.outcome is not Outcome.OK:
                await asyncio.sleep(RETRY_SECONDS)
            elif self.pause_seconds:
                await asyncio.sleep(self.random.uniform(0, 2 * self.pause_seconds))

    def _service(self, services: list[int] | None) -> int:
        return self.random.choice(services or list(range(len(self._callers))))

    def draw(self, kind: Kind | None = None, tournament: int | None = None, *, keyed: bool | None = None) -> Asked:
        """What to ask for next."""
        number = next(_numbers)
        place = self.random.randrange(len(self.arenas)) if tournament is None else tournament
        kind = kind or self.kind or self.random.choices(list(self.mix), list(self.mix.values()))[0]
        target = 0
        if self._closed is not None and tournament is None:
            (place, target), self._closed, kind = self._closed, None, Kind.REOPEN
        elif kind in (Kind.CLOSE, Kind.REOPEN, Kind.UNITY, Kind.VOID, Kind.UNVOID, Kind.ERASE):
            kind, target = self._about(place, kind)
        elif kind is Kind.ADD and Kind.VOID in self.mix and self.random.random() < FOR_A_COMPETITION:
            target = self._latest(place, Kind.COMPETITION)
        if kind is Kind.CLOSE:
            self._closed = place, target
        keyed = self.random.random() >= self.keyless if keyed is None else keyed
        key = f"{KEY}{number}-{self.random.getrandbits(32):08x}" if keyed and kind is not Kind.LIST else None
        lines: list[tuple[int, int, int]] = []
        mark = MARKS_FROM + number
        if kind is Kind.ADD:
            arena = self.arenas[place]
            lines = [
                (self.random.choice(arena.competitors), self.random.choice(arena.unities), self.random.randint(-9, 9))
                for _ in range(self.random.randint(0, self.lines_max - 1))
            ]
            sign = self.random.choice((-1, 1))
            lines.insert(0, (self.random.choice(arena.competitors), self.random.choice(arena.unities), sign * mark))
        return Asked(number, self.number, place, kind, key, tuple(lines), mark, target)

    def _about(self, place: int, kind: Kind) -> tuple[Kind, int]:
        """What is closed, reopened, voided, erased, or gets a unity; where there is nothing yet, it is made instead."""
        if kind is Kind.ERASE:
            target = self._latest(place, Kind.REGISTER)
            return (kind, target) if target else (Kind.REGISTER, 0)
        if kind in (Kind.VOID, Kind.UNVOID):
            target = self._latest(place, Kind.COMPETITION)
            return (kind, target) if target else (Kind.COMPETITION, 0)
        target = self._latest(place, Kind.RANKING)
        if kind is Kind.UNITY:
            return (kind, target) if target else (Kind.RANKING, 0)
        return kind, self.random.choice((target, 0)) or self.arenas[place].ranking_id

    def _latest(self, place: int, kind: Kind) -> int:
        """One of those that were created last; 0: there is none."""
        made = self.history.made.get((place, kind))
        return self.random.choice(made[-LATEST:]) if made else 0

    async def attempt(self, asked: Asked, service: int) -> Attempt:
        """Asks once, and writes it down."""
        attempt = self.history.begin(asked, service, time.monotonic())
        method, path, form = request_of(asked, self.arenas[asked.tournament])
        try:
            answer = await self._callers[service].ask(method, path, form, asked.key)
        except NotSent as error:
            attempt.outcome, attempt.why = Outcome.NO, repr(error.__cause__)
        except (OSError, EOFError, TimeoutError) as error:
            attempt.why = repr(error)
        else:
            _note(attempt, answer)
            if attempt.made:
                self.history.made.setdefault((asked.tournament, asked.kind), []).append(attempt.made)
        self.history.end(attempt, time.monotonic())
        return attempt

    def close(self) -> None:
        for caller in self._callers:
            caller.close()


def request_of(asked: Asked, arena: Arena) -> tuple[str, str, dict[str, object] | None]:
    """Method, path and form of what is asked for."""
    below = f"/tournament/{arena.slug}"
    match asked.kind:
        case Kind.ADD:
            deltas = [
                {"competitor_id": competitor, "unities": [{"unity_id": unity, "delta": str(amount)}]}
                for competitor, unity, amount in asked.lines
            ]
            path = f"{below}/rankings/{arena.ranking_id}/add.json"
            points: dict[str, object] = {"participants_delta": json.dumps(deltas, separators=(",", ":"))}
            return "PUT", path, points | ({"competition_id": asked.target} if asked.target else {})
        case Kind.COMPETITION:
            return "POST", f"{below}/competitions.json", {"group_id": asked.mark}
        case Kind.REVISE:
            form: dict[str, object] = {
                "main_unity_name": "points",
                "participants": ",".join(map(str, arena.competitors)),
                "description": str(asked.mark),
            }
            return "PUT", f"{below}/rankings/{arena.ranking_id}.json", form
        case Kind.LIST:
            return "GET", f"{below}/competitions.json?per_page=1", None
        case Kind.REGISTER:
            return "POST", f"{below}/competitors.json", {"name": _name(asked)}
        case Kind.RANKING:
            form = {"name": _name(asked), "main_unity_name": "points", "participants": arena.competitors[0]}
            return "POST", f"{below}/rankings.json", form
        case Kind.UNITY:
            return "POST", f"{below}/rankings/{asked.target}/unities.json", {"name": _name(asked), "sort": "DESC"}
        case Kind.CLOSE | Kind.REOPEN:
            return "PUT", f"{below}/rankings/{asked.target}/{asked.kind}.json", {}
        case Kind.VOID | Kind.UNVOID:
            return "PUT", f"{below}/competitions/{asked.target}/{asked.kind}.json", {}
        case Kind.ERASE:
            return "PUT", f"{below}/competitors/{asked.target}/erase.json", {}


def _name(asked: Asked) -> str:
    return f"{NAMES[asked.kind]}-{asked.mark}"


def _note(attempt: Attempt, answer: Answer) -> None:
    attempt.status = answer.status
    if answer.status == 500 or answer.status in (502, 504):
        attempt.why = json.loads(answer.body)["message"]
    elif answer.status >= 400:
        attempt.outcome, attempt.why = Outcome.NO, json.loads(answer.body)["message"]
        if answer.status == 503 and "retry-after" not in answer.headers:
            attempt.why = "503 without Retry-After"
    else:
        attempt.outcome = Outcome.OK
        attempt.sequence = int(answer.headers.get("tallybook-sequence", 0))
        attempt.replayed = answer.headers.get("idempotency-replayed") == "true"
        match attempt.asked.kind:
            case Kind.LIST:
                attempt.count = json.loads(answer.body)["competitions"]["total"]
            case Kind.ADD | Kind.REVISE:
                attempt.shown = shown_by(answer.body)
            case Kind.COMPETITION | Kind.REGISTER | Kind.RANKING | Kind.UNITY:
                (attempt.made,) = (made["id"] for made in json.loads(answer.body).values() if isinstance(made, dict))
            case Kind.CLOSE | Kind.REOPEN | Kind.VOID | Kind.UNVOID | Kind.ERASE:
                pass


def _again(attempt: Attempt) -> bool:
    return attempt.outcome is Outcome.UNKNOWN or (attempt.outcome is Outcome.NO and attempt.status in (0, 503))


def unsettled(history: History) -> list[Asked]:
    """What has a key and no definite answer yet."""
    known: dict[int, bool] = {}
    asked: dict[int, Asked] = {}
    for attempt in history.attempts:
        if attempt.asked.key is not None:
            asked[attempt.asked.number] = attempt.asked
            definite = attempt.outcome is Outcome.OK or attempt.status in range(400, 500)
            known[attempt.asked.number] = known.get(attempt.asked.number, False) or definite
    return [asked[number] for number, definite in known.items() if not definite]


async def settle(client: Client, services: list[int]) -> int:
    """Asks again for everything that nobody knows about, each until there is a definite answer; how much there was."""
    left = unsettled(client.history)
    deadline = time.monotonic() + SETTLE_SECONDS_MAX
    for n, asked in enumerate(left):
        while _again(await client.attempt(asked, services[n % len(services)])):
            assert time.monotonic() < deadline, f"there is no definite answer to {asked}"
            await asyncio.sleep(RETRY_SECONDS)
    return len(left)


async def reopen(client: Client, place: int) -> None:
    """The ranking of the arena is open; what was closed may have been left so by a client that stopped."""
    asked = client.draw(Kind.REOPEN, place, keyed=True)
    asked = msgspec.structs.replace(asked, target=client.arenas[place].ranking_id)
    deadline = time.monotonic() + SETTLE_SECONDS_MAX
    while _again(await client.attempt(asked, 0)):
        assert time.monotonic() < deadline, f"there is no definite answer to {asked}"
        await asyncio.sleep(RETRY_SECONDS)


@asynccontextmanager
async def playing(clients: list[Client], services: list[int] | None = None) -> AsyncIterator[asyncio.Event]:
    """The clients at play for as long as the context lasts; what is under way at its end is waited for."""
    stopped = asyncio.Event()
    tasks = [asyncio.create_task(client.play(stopped, services)) for client in clients]
    try:
        yield stopped
    finally:
        stopped.set()
        _, late = await asyncio.wait(tasks, timeout=ANSWER_SECONDS_MAX + CONNECT_SECONDS_MAX + 5)
        for task in late:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            with suppress(asyncio.CancelledError):
                raise result
    assert not late, "a client was left without an answer beyond every deadline"
