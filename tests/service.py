"""The service as tests use it: in this very process on a free port, and asked over HTTP like any other.

`serve` starts one with a database pool and a desk of its own, so two of them on one database are to each
other what two processes are. `Client` knows the interface's document and the operations in its manner that are ours;
it is told addresses, and takes nothing from the code that answers.
"""

import asyncio
import json
import re
import socket
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import Any, BinaryIO, Final
from urllib.parse import urlencode

from aiohttp import ClientSession, DummyCookieJar, TCPConnector
from multidict import CIMultiDictProxy
from yarl import URL

from api.access import auth
from api.access.auth import Scope, ScorerPart
from api.desk.desk import Desk, open_desk
from api.service.app import make_front, serving
from api.service.settings import Settings
from engine.database.pool import Database, open_database
from engine.domain.terms import TournamentId
from engine.process.telemetry import Lines
from tests.desks import GUARD_SECONDS

FORM: Final = "application/x-www-form-urlencoded"
Form = Mapping[str, object]
"""What is to be sent, as text, under which name."""


@dataclass(frozen=True)
class Answer:
    status: int
    headers: CIMultiDictProxy[str]
    body: bytes

    def __post_init__(self) -> None:
        assert len(self.headers.getall("Cache-Control", ())) == 1, "it must say how long it may be kept"

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Client:
    """Asks one service about one tournament with one token. Paths are relative to the tournament's."""

    def __init__(self, session: ClientSession, url: str, tournament: str, token: str | None) -> None:
        self.tournament = tournament
        self.token = token
        self._session = session
        self._url = url

    async def get(self, path: str, headers: Mapping[str, str] | None = None) -> Answer:
        return await self.send("GET", f"/tournament/{self.tournament}/{path}", headers=headers)

    async def post(self, path: str, form: Form | bytes = b"", headers: Mapping[str, str] | None = None) -> Answer:
        return await self._write("POST", path, form, headers)

    async def put(self, path: str, form: Form | bytes = b"", headers: Mapping[str, str] | None = None) -> Answer:
        return await self._write("PUT", path, form, headers)

    async def send(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """As it is given: `path` is absolute and not encoded any further; of headers only the token is added."""
        bearer = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        async with self._session.request(
            method, URL(self._url + path, encoded=True), data=body, headers=bearer | dict(headers or {})
        ) as response:
            return Answer(response.status, response.headers, await response.read())

    async def _write(self, method: str, path: str, form: Form | bytes, headers: Mapping[str, str] | None) -> Answer:
        body = form if isinstance(form, bytes) else urlencode(form).encode()
        headers = {"Content-Type": FORM} | dict(headers or {})
        return await self.send(method, f"/tournament/{self.tournament}/{path}", body, headers)


class Service:
    """Use within `serve`. `url` is where it answers, the rest what it answers with."""

    def __init__(self, url: str, session: ClientSession, database: Database, desk: Desk) -> None:
        self.url = url
        self.database = database
        self.desk = desk
        self._session = session

    def client(self, tournament: str, token: str | None) -> Client:
        return Client(self._session, self.url, tournament, token)


@asynccontextmanager
async def serve(dsn: str, *, lines: BinaryIO | None = None, **chosen: Any) -> AsyncIterator[Service]:
    """A service on the database at `dsn`, on a port that was free; what it says of requests goes to `lines`.

    `chosen` are Settings of its front. Who fails to authenticate may do so as often as a test likes, else.
    """
    settings = Settings(**{"failures_at_once": 1_000_000} | chosen)
    async with open_database(dsn, name="test") as database, open_desk(database, with_quotas=True) as desk:
        listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        connector = TCPConnector(limit=0)
        unasked = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")
        async with (
            serving(
                make_front(desk, Lines(lines or BytesIO()), settings), listener, connections_max=settings.connections
            ),
            ClientSession(connector=connector, cookie_jar=DummyCookieJar(), skip_auto_headers=unasked) as session,
        ):
            yield Service(url, session, database, desk)


async def sent_raw(service: Service, *parts: bytes) -> tuple[int, bytes] | None:
    """Status and body of the first answer to these very bytes on a connection of their own; None: it was closed."""
    address = URL(service.url)
    async with asyncio.timeout(GUARD_SECONDS):
        reader, writer = await asyncio.open_connection(address.host, address.port)
        try:
            for part in parts:
                writer.write(part)
                await writer.drain()
            head = await reader.readuntil(b"\r\n\r\n")
            status, length = re.match(rb"HTTP/\S+ (\d+)", head), re.search(rb"(?i)\r\ncontent-length: (\d+)", head)
            assert status
            assert length
            assert head.count(b"\r\nCache-Control: ") == 1
            return int(status[1]), await reader.readexactly(int(length[1]))
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
        finally:
            writer.close()


async def make_token(
    database: Database, scope: Scope = Scope.ADMIN, tournament_ids: Iterable[TournamentId] | None = None
) -> str:
    """The text of a new token; for all tournaments where none are named."""
    async with database.connection() as connection:
        _, text = await auth.create(
            connection,
            name="test",
            scope=scope,
            tournament_ids=tournament_ids,
            expires_in_days=None,
            part=ScorerPart(round="1") if scope is Scope.SCORE else None,
        )
    return text


async def slug_of(database: Database, tournament_id: TournamentId) -> str:
    """How a path names the tournament."""
    async with database.connection() as connection:
        slug: str = await connection.fetchval("SELECT slug FROM tournament WHERE tournament_id = $1", tournament_id)
    return slug


# ── What most tests begin with ──────────────────────────────────────────────────────────────────────────


def listed(ids: Iterable[int]) -> str:
    """Ids as a form field takes them."""
    return ",".join(map(str, ids))


def deltas(*lines: tuple[int, int, int | str]) -> str:
    """The field participants_delta for lines of competitor, unity and delta."""
    return json.dumps(
        [
            {"competitor_id": competitor, "unities": [{"unity_id": unity, "delta": str(delta)}]}
            for competitor, unity, delta in lines
        ]
    )


def rankings_deltas(deltas_of: Mapping[int, str]) -> str:
    """The field rankings_delta for the deltas of rankings, each as `deltas` has them."""
    return json.dumps([{"ranking_id": r, "participants_delta": json.loads(of)} for r, of in deltas_of.items()])


async def register(client: Client, *names: str) -> list[int]:
    """Registers competitors, in this order; returns their ids."""
    return [(await client.post("competitors.json", {"name": name})).json["competitor"]["id"] for name in names]


async def create_ranking(client: Client, participants: Iterable[int], **fields: object) -> Any:
    """Creates a ranking with the main unity "points"; returns it in the creation shape."""
    usual = {"name": "Season", "main_unity_name": "points", "participants": listed(participants)}
    return (await client.post("rankings.json", usual | fields)).json["ranking"]


@dataclass(frozen=True)
class Season:
    """A tournament in which there is something of everything."""

    client: Client
    ids: list[int]
    """Of three competitors, the third below the first."""
    ranking_id: int
    """Of all three, in points and fouls, open."""
    unity_id: int
    """Its points."""
    closed_ranking_id: int
    """Of the second alone."""
    competition_id: int
    """Of all three, without a result yet; there are two others."""
    voided_competition_id: int
    """The first of those."""
    added: int = 0
    """An event that added points, if there is one."""
    idle_id: int = 0
    """A competitor that took part in nothing, if there is one."""

    @property
    def path(self) -> str:
        return f"rankings/{self.ranking_id}"


async def play_season(client: Client) -> Season:
    """Fills an empty tournament."""
    ada, ben = await register(client, "Ada", "Ben")
    pair = {"name": "Pair", "tags": "doubles, mixed", "color": "c0ffee", "parent": ada}
    ids = [ada, ben, (await client.post("competitors.json", pair)).json["competitor"]["id"]]
    ranking = await create_ranking(client, ids, description="All of it")
    await client.post(f"rankings/{ranking['id']}/unities.json", {"name": "fouls", "sort": "ASC"})
    closed = await create_ranking(client, [ben], name="Of Ben alone")
    await client.put(f"rankings/{closed['id']}/close.json")
    duel = await client.post("competitions.json", {"group_id": 1, "participants": f"{ada},{ben}", "result": "2:0"})
    voided_id = duel.json["competition"]["id"]
    await client.put(f"competitions/{voided_id}/void.json")
    sprint = {"participants": listed(ids), "result": json.dumps({ada: "9.8 s"}), "winner": ada}
    await client.post("competitions.json", {"group_id": 2} | sprint)
    last = await client.post("competitions.json", {"group_id": 2, "participants": listed(ids)})
    return Season(
        client=client,
        ids=ids,
        ranking_id=ranking["id"],
        unity_id=ranking["unities"][0]["id"],
        closed_ranking_id=closed["id"],
        competition_id=last.json["competition"]["id"],
        voided_competition_id=voided_id,
    )


def totals(answer: Answer, unity: str = "points") -> dict[int, int]:
    """Of the named unity of a ranking in the modification shape: the total of each competitor."""
    (named,) = [u for u in answer.json["ranking"]["unities"] if u["name"] == unity]
    return {line["competitor_id"]: line["total"] for line in named["competitors_ranking"]}
