"""A client that knows a tournament by its stream alone, and what it has documented: it folds events to standings.

It takes nothing from the code that sends them. Bytes come in pieces, cut anywhere; an event counts once it is whole.
"""

import asyncio
import json
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from aiohttp import ClientError, ClientSession, ClientTimeout

SSE: Final = "text/event-stream"
NDJSON: Final = "application/x-ndjson"
AGAIN_SECONDS: Final = 0.05
"""A client waits this long before it connects again."""
Lines = list[tuple[int, int, int | None]]
"""The standings of a unity: position, competitor and total of each."""


class Spectator:
    """What a client knows. `last_id`: of the last event; None: it has none, and begins at the beginning."""

    def __init__(self, media_type: str = NDJSON) -> None:
        self.media_type = media_type
        self.last_id: str | None = None
        self.sequence = 0
        self.told: list[tuple[str, Any]] = []  # the name and the data of each event, those beside the log as well
        self.silences = 0
        self._rest = b""
        self._fields: dict[str, str] = {}  # of the event that is coming
        self._names: dict[int, str] = {}
        self._lists: dict[int, list[int]] = {}
        self._unities: dict[int, dict[int, dict[str, str]]] = {}
        self._totals: dict[tuple[int, int], int] = defaultdict(int)
        self._results: dict[tuple[int, int], int | None] = {}  # the totals of unities that count results

    def start_over(self) -> None:
        """Forgets everything, as `reset` demands."""
        self.__init__(self.media_type)  # type: ignore[misc]

    def connect(self) -> None:
        """Forgets the part of an event at which the last connection broke off."""
        self._rest = b""
        self._fields = {}

    def feed(self, piece: bytes) -> None:
        """Takes the next bytes of the connection."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            (self._take_field if self.media_type == SSE else self._take_object)(line)

    def _take_field(self, line: bytes) -> None:
        if line == b":":
            self.silences += 1
        elif line:
            name, _, value = line.decode().partition(": ")
            self._fields[name] = value
        else:  # it ends an event
            assert list(self._fields) == ["event", "data", "id"]
            fields, self._fields = self._fields, {}
            self._take(fields["id"], fields["event"], json.loads(fields["data"]))

    def _take_object(self, line: bytes) -> None:
        if not line:
            self.silences += 1
            return
        taken = json.loads(line)
        assert list(taken) == ["id", "event", "data"]
        self._take(taken["id"], taken["event"], taken["data"])

    def _take(self, event_id: str, name: str, data: Any) -> None:
        assert event_id
        self.told.append((name, data))
        self.last_id = event_id
        if _is_of_log(name):
            assert data["sequence"] == int(event_id.partition("-")[0])
            assert data["sequence"] > self.sequence
            self.sequence = data["sequence"]
            self._fold(name, data)

    @property
    def sequences(self) -> list[int]:
        """Of the log's events, in the order in which they came."""
        return [data["sequence"] for name, data in self.told if _is_of_log(name)]

    def count(self, name: str) -> int:
        """How many events of this name have come."""
        return sum(one == name for one, _ in self.told)

    def _fold(self, name: str, data: Any) -> None:
        match name:
            case "CompetitorRegistered":
                self._names[data["competitor_id"]] = data.get("name", "erased")
            case "RankingCreated":
                self._lists[data["ranking_id"]] = data["participants"]
                main = {key: data.get(f"main_unity_{key}", default) for key, default in _UNITY.items()}
                self._unities[data["ranking_id"]] = {data["main_unity_id"]: main}
            case "RankingModified":
                self._lists[data["ranking_id"]] = data["participants"]
                next(iter(self._unities[data["ranking_id"]].values()))["name"] = data["main_unity_name"]
            case "ParticipantsChanged":
                stay = [one for one in self._lists[data["ranking_id"]] if one not in data.get("removed", ())]
                stay += [one for one in data.get("added", ()) if one not in stay]
                self._lists[data["ranking_id"]] = stay
            case "UnityAdded":
                unity = {key: data.get(key, default) for key, default in _UNITY.items()}
                self._unities[data["ranking_id"]][data["unity_id"]] = unity
            case "UnityChanged":
                changed = {key: data[key] for key in ("name", "sort") if key in data}
                self._unities[data["ranking_id"]][data["unity_id"]].update(changed)
            case "PointsAdded" | "PointsScored" | "PointsReversed" | "PointsExpired":
                for competitor_id, unity_id, amount in data["deltas"]:
                    self._totals[unity_id, competitor_id] += amount
                for competitor_id, unity_id, result in data.get("results", ()):
                    self._take_result(self._unities[data["ranking_id"]][unity_id], (unity_id, competitor_id), result)
                for competitor_id, unity_id, total in data.get("totals", ()):
                    self._results[unity_id, competitor_id] = total

    def _take_result(self, unity: dict[str, str], line: tuple[int, int], result: int) -> None:
        before = self._results.get(line)
        if unity["counts"] == "last" or before is None:
            self._results[line] = result
        elif unity["counts"] == "sum":
            self._results[line] = before + result
        else:
            self._results[line] = max(before, result) if unity["sort"] == "DESC" else min(before, result)

    def standings(self, only: int | None = None) -> dict[tuple[int, str], Lines]:
        """The standings of every unity, by its ranking and its name; of one ranking alone, if it is named."""
        return {
            (ranking_id, unity["name"]): self._lines(ranking_id, unity_id, unity)
            for ranking_id, unities in self._unities.items()
            for unity_id, unity in unities.items()
            if only in (None, ranking_id)
        }

    def _lines(self, ranking_id: int, unity_id: int, unity: dict[str, str]) -> Lines:
        sign, listed = -1 if unity["sort"] == "DESC" else 1, self._lists[ranking_id]
        if unity["counts"] != "sum" or unity["absent"]:
            known = {one: self._results.get((unity_id, one)) for one in listed}
            order = sorted(known.items(), key=lambda line: (line[1] is None, sign * (line[1] or 0)))
            with_total = [total for _, total in order if total is not None]
            last = 1 + len(with_total)
            return [(last if t is None else 1 + with_total.index(t), one, t) for one, t in order]
        totals = {one: self._totals.get((unity_id, one), 0) for one in listed}
        in_order = sorted(totals.items(), key=lambda line: sign * line[1])
        return [
            (1 + sum(sign * other < sign * total for other in totals.values()), one, total) for one, total in in_order
        ]


_UNITY: Final = {"name": "", "sort": "DESC", "counts": "sum", "absent": None}
"""What is known of a unity, and the defaults, which events leave out."""


def _is_of_log(name: str) -> bool:
    """Whether an event of this name is one of the log. `other` is one, of the log as the public sees it."""
    return name[0].isupper() or name in ("set-aside", "other")


def shown(answers: Iterable[Any]) -> dict[tuple[int, str], Lines]:
    """The same of what the service answers to the `standings.json` of each ranking."""
    return {
        (answer["ranking"]["id"], unity["name"]): [
            (line["position"], line["competitor_id"], line["total"]) for line in unity["competitors_ranking"]
        ]
        for answer in answers
        for unity in answer["ranking"]["unities"]
    }


class Connected:
    """One connection to the stream. `status` and `headers` are those of the answer."""

    def __init__(self, response: Any) -> None:
        self.status: int = response.status
        self.headers: Mapping[str, str] = response.headers
        self._response = response

    async def piece(self) -> bytes:
        """The next bytes; none: the stream has ended."""
        read: bytes = await self._response.content.readany()
        return read

    async def feed(self, spectator: Spectator, until: Callable[[], bool]) -> None:
        """Feeds the spectator until it knows enough, or the stream ends."""
        while not until():
            piece = await self.piece()
            if not piece:
                return
            spectator.feed(piece)


@asynccontextmanager
async def connected(address: str, headers: Mapping[str, str]) -> AsyncIterator[Connected]:
    """A connection to the stream at this address."""
    async with (
        ClientSession(timeout=ClientTimeout(total=None), read_bufsize=2**16) as session,
        session.get(address, headers=headers) as response,
    ):
        yield Connected(response)


async def follow(
    address: Callable[[], str], token: str | None, spectator: Spectator, until: Callable[[], bool]
) -> None:
    """Goes on, through all breaks and resets, until the spectator knows enough. `token` None: as the public."""
    while not until():
        headers = {"Accept": spectator.media_type} | ({"Authorization": f"Bearer {token}"} if token else {})
        if spectator.last_id is not None:
            headers["Last-Event-ID"] = spectator.last_id
        spectator.connect()
        try:
            async with connected(address(), headers) as connection:
                if connection.status == 200:
                    await connection.feed(spectator, until)
                if spectator.told and spectator.told[-1][0] == "reset":
                    spectator.start_over()
        except (ClientError, OSError):
            pass
        await asyncio.sleep(AGAIN_SECONDS)
