"""Two services and two workers on one database: whoever answers shows what was acknowledged by either.

Whatever the clients do here adds to something that can be counted: events, competitions, points, fouls (which count
downwards), revisions of a description. So there is a least that an answer may show, which is what was acknowledged
before it was asked for, or seen in an earlier answer, and a most, which is what has ever been sent.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from random import Random
from typing import Any, Final

import asyncpg
import pytest

from engine.database.pool import Database, open_database
from engine.domain.terms import OPERATOR, TournamentId
from projections.live.pool import LivePool
from projections.tables.worker import Worker
from tests.service import Answer, Client, Form, Service, create_ranking, deltas, listed, register, slug_of
from tests.shares import every
from tests.tournaments import open_new_tournament

CHECKS: Final = 4_000
CLIENTS: Final = 64
TOURNAMENTS: Final = 3
COMPETITORS: Final = 8
READS_PER_REVISION: Final = 20
ATTEMPTS_MAX: Final = 100

Thing = str | tuple[str, str | int]
"""What can be counted: "events", …; a competitor's "points" or "fouls"; the "version" of a unity."""
Line = tuple[str, int, int]
"""Unity, competitor, and how much more of it."""


@every(2)
async def test_every_answer_shows_what_either_service_had_acknowledged(
    service: Service, peer: Service, token: str, database: Database, dsn: str, owner: asyncpg.Connection, step: int
) -> None:
    checks = Checks()
    tournaments = [await Tournament.opened([service, peer], token, database, checks) for _ in range(TOURNAMENTS)]
    async with working(dsn), working(dsn):
        await play(tournaments, CHECKS // step, revising=True)
    assert checks.wrong == []

    for tournament in tournaments:
        await tournament.assert_log_holds_what_was_acknowledged(owner)
        for client in tournament.clients:
            assert shown_by(await tournament.left_as_it_is(client)).items() >= tournament.acknowledged().items()
    await Worker(database).catch_up()
    for tournament in tournaments:
        await tournament.assert_tables_say_the_same(owner)


async def test_the_check_finds_services_that_read_without_the_barrier(
    service: Service, peer: Service, token: str, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def as_it_is(_lives: LivePool, _live: object, **_: object) -> None:
        """Instead of making a live current."""

    checks = Checks()
    tournament = await Tournament.opened([service, peer], token, database, checks)
    monkeypatch.setattr(LivePool, "make_current", as_it_is)
    # One client: those of others would have each service append, which tells it what the other has appended. And no
    # revisions, which would wait for the barrier for ever.
    await play([tournament], CHECKS // 20, clients=1, revising=False)
    assert checks.wrong != []


@asynccontextmanager
async def working(dsn: str) -> AsyncIterator[None]:
    """A worker at work, with connections of its own."""
    async with open_database(dsn, name="worker") as database:
        work = asyncio.create_task(Worker(database).run())
        yield
        assert not work.done()
        work.cancel()
        await asyncio.wait([work])


# ── What is checked ─────────────────────────────────────────────────────────────────────────────────────


class Checks:
    """How many answers were judged, and what was wrong with them."""

    def __init__(self) -> None:
        self.count = 0
        self.wrong: list[str] = []

    def judge(self, shown: Mapping[Thing, int], least: Mapping[Thing, int], most: Mapping[Thing, int]) -> None:
        self.count += 1
        self.wrong += [
            f"{thing}: {number} instead of {least[thing]} to {most[thing]}"
            for thing, number in shown.items()
            if not least[thing] <= number <= most[thing]
        ]


def shown_by(answer: Answer) -> dict[Thing, int]:
    """What an answer shows of the things that are counted."""
    shown: dict[Thing, int] = {}
    if "Tallybook-Sequence" in answer.headers:
        shown["events"] = int(answer.headers["Tallybook-Sequence"])
    match answer.json:
        case {"ranking": {"unities": unities, "description": revision}}:
            shown["revisions"] = int(revision)
            for unity in unities:
                shown["version", unity["name"]] = unity["version"]
                for line in unity["competitors_ranking"]:
                    shown[unity["name"], line["competitor_id"]] = abs(line["total"])
        case {"rankings": {"ranking": [{"description": revision}]}}:
            shown["revisions"] = int(revision)
        case {"competitions": {"total": total}}:
            shown["competitions"] = total
        case {"competitors": {"total": total}}:
            shown["competitors"] = total
    return shown


class Tournament:
    """One tournament, as those know it who write to it. `clients` has one for each service."""

    def __init__(
        self,
        clients: list[Client],
        tournament_id: TournamentId,
        ids: list[int],
        ranking: Any,
        fouls: int,
        checks: Checks,
    ) -> None:
        self.clients = clients
        self.checks = checks
        self.ids = ids
        self._tournament_id = tournament_id
        self._ranking = f"rankings/{ranking['id']}"
        self._unities = {"points": ranking["unities"][0]["id"], "fouls": fouls}
        beginning: Counter[Thing] = Counter(competitors=len(ids), events=len(ids) + 3)
        beginning.update({("version", unity): 1 for unity in self._unities})
        self._sent = Counter(beginning)
        self._acknowledged = Counter(beginning)
        self._seen: Counter[Thing] = Counter()
        self._sequences = list(range(1, beginning["events"] + 1))

    @classmethod
    async def opened(cls, services: Iterable[Service], token: str, database: Database, checks: Checks) -> "Tournament":
        tournament_id = await open_new_tournament(database, actor=OPERATOR)
        slug = await slug_of(database, tournament_id)
        clients = [service.client(slug, token) for service in services]
        ids = await register(clients[0], *(f"No. {number}" for number in range(COMPETITORS)))
        ranking = await create_ranking(clients[0], ids, description="0")
        fouls = await clients[0].post(f"rankings/{ranking['id']}/unities.json", {"name": "fouls", "sort": "ASC"})
        return cls(clients, tournament_id, ids, ranking, fouls.json["unity"]["id"], checks)

    # ── What clients ask for ────────────────────────────────────────────────────────────────────────────

    async def add(self, client: Client, *lines: Line) -> None:
        signed = [(who, self._unities[unity], n if unity == "points" else -n) for unity, who, n in lines]
        adds: Counter[Thing] = Counter({("version", unity): 1 for unity, _, _ in lines})
        for unity, who, n in lines:
            adds[unity, who] += n
        await self._write(client, "PUT", f"{self._ranking}/add.json", {"participants_delta": deltas(*signed)}, adds)

    async def add_competition(self, client: Client) -> None:
        await self._write(client, "POST", "competitions.json", {"group_id": 1}, {"competitions": 1})

    async def add_competitor(self, client: Client) -> None:
        await self._write(client, "POST", "competitors.json", {"name": "Guest"}, {"competitors": 1})

    async def revise(self, client: Client) -> None:
        """For one to do after the other: what is shown is what was said last."""
        form = self._as_it_is() | {"description": self._sent["revisions"] + 1}
        await self._write(client, "PUT", f"{self._ranking}.json", form, {"revisions": 1})

    async def read(self, client: Client, path: str) -> None:
        least = self._least()
        answer = await client.get(path)
        assert answer.status == 200, answer.body
        self._judge(answer, least)

    async def left_as_it_is(self, client: Client) -> Answer:
        """The answer to a modification that changes nothing: the whole ranking."""
        self._acknowledged["events"] += 1
        answer = await client.put(f"{self._ranking}.json", self._as_it_is())
        assert answer.status == 200, answer.body
        return answer

    def _as_it_is(self) -> dict[str, object]:
        return {"main_unity_name": "points", "participants": listed(self.ids)}

    async def _write(self, client: Client, method: str, path: str, form: Form, adds: Mapping[Thing, int]) -> None:
        adds = Counter(adds) + Counter(events=1)
        self._sent.update(adds)
        for _ in range(ATTEMPTS_MAX):
            least = self._least(adds)
            answer = await (client.put if method == "PUT" else client.post)(path, form)
            if answer.status != 503:
                break
        assert answer.status == 200, answer.body
        self._judge(answer, least)
        self._acknowledged.update(adds)
        self._sequences.append(int(answer.headers["Tallybook-Sequence"]))

    def _least(self, adds: Mapping[Thing, int] | None = None) -> Counter[Thing]:
        """What an answer that is asked for now must show, if what is asked for adds something."""
        return (self._acknowledged + Counter(adds)) | self._seen

    def _judge(self, answer: Answer, least: Counter[Thing]) -> None:
        shown = shown_by(answer)
        self.checks.judge(shown, least, self._sent)
        self._seen |= Counter(shown)

    # ── What there is in the end ────────────────────────────────────────────────────────────────────────

    def acknowledged(self) -> dict[Thing, int]:
        """Of all that a ranking shows; nothing has been sent that was not acknowledged."""
        named = self._acknowledged
        totals = {(unity, who): named[unity, who] for unity in self._unities for who in self.ids}
        versions = {("version", unity): named["version", unity] for unity in self._unities}
        return {"events": named["events"], "revisions": named["revisions"], **totals, **versions}

    async def assert_log_holds_what_was_acknowledged(self, owner: asyncpg.Connection) -> None:
        assert self._sent == self._acknowledged
        log = "SELECT sequence FROM event WHERE tournament_id = $1 ORDER BY sequence"
        sequences = [row["sequence"] for row in await owner.fetch(log, self._tournament_id)]
        assert sequences == list(range(1, len(sequences) + 1)) == sorted(self._sequences)

    async def assert_tables_say_the_same(self, owner: asyncpg.Connection) -> None:
        query = "SELECT unity, competitor_id, position, total, version FROM standing WHERE tournament_id = $1"
        tables = sorted(map(tuple, await owner.fetch(query, self._tournament_id)))
        answer = await self.left_as_it_is(self.clients[0])
        assert tables == sorted(
            (unity["name"], line["competitor_id"], line["position"], line["total"], unity["version"])
            for unity in answer.json["ranking"]["unities"]
            for line in unity["competitors_ranking"]
        )


# ── What is played ──────────────────────────────────────────────────────────────────────────────────────


async def play(tournaments: list[Tournament], checks: int, *, clients: int = CLIENTS, revising: bool) -> None:
    """Has many clients write by one service and ask the other, until that many answers were judged."""
    async with asyncio.TaskGroup() as tasks:
        for number in range(clients):
            tasks.create_task(keep_score(tournaments[number % len(tournaments)], Random(number), checks))
        if revising:
            for tournament in tournaments:
                tasks.create_task(keep_revising(tournament, Random(0), checks))


async def keep_score(tournament: Tournament, random: Random, checks: int) -> None:
    while tournament.checks.count < checks:
        one, other = random.sample(tournament.clients, 2)
        match random.randrange(8):
            case 0:
                await tournament.add_competition(one)
                await tournament.read(other, "competitions.json?per_page=1")
            case 1:
                await tournament.add_competitor(one)
                await tournament.read(other, "competitors.json?per_page=1")
            case _:
                unities, ids = random.choices(["points", "fouls"], k=3), random.choices(tournament.ids, k=3)
                await tournament.add(
                    one, *[(unity, who, random.randrange(9)) for unity, who in zip(unities, ids, strict=True)]
                )
                await tournament.add(other, (unities[0], ids[0], 0))


async def keep_revising(tournament: Tournament, random: Random, checks: int) -> None:
    while tournament.checks.count < checks:
        await tournament.revise(random.choice(tournament.clients))
        for _ in range(READS_PER_REVISION):
            await tournament.read(random.choice(tournament.clients), "rankings.json")
