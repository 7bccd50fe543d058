"""A service of two processes, asked over HTTP while time passes: either shows what the naive model of `test_expiry`
says, after changes that were asked of both at once."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any, Final

import asyncpg
import pytest
from aiohttp import ClientSession, DummyCookieJar, TCPConnector
from yarl import URL

from engine.database.pool import Database
from engine.domain.terms import OPERATOR, CompetitionId, CompetitorId, RankingId, Sequence, UnityId
from projections.tables.worker import Worker
from tests.api.service.test_processes import accepted_by
from tests.api.test_expiry import (
    ANN,
    BOB,
    CID,
    DAILY,
    EVER,
    HOURLY,
    LASTS,
    LATEST,
    LEAST,
    OTHER,
    PEAK,
    RANKING,
    WEEKLY,
    Added,
    Naive,
    Totals,
)
from tests.projections.verified import verified
from tests.running import started
from tests.service import Client, Form, deltas, listed, make_token, register, slug_of
from tests.told_clock import IN_PROCESSES, ToldClock, told_clock
from tests.tournaments import open_new_tournament

CONNECTIONS: Final = 8
"""To the service; the kernel divides them among its processes."""
_FURTHER: Final[dict[UnityId, dict[str, str]]] = {
    DAILY: {"lasts": "P3D", "expires_on": "day"},
    EVER: {},
    PEAK: {"lasts": "P2D", "expires_on": "day", "counts": "best"},
    LEAST: {"lasts": "PT6H", "expires_on": "minute", "counts": "best", "sort": "ASC"},
    LATEST: {"lasts": "PT20H", "expires_on": "minute", "counts": "last"},
}
"""Unities of the first ranking, next to HOURLY."""
_CRITERIA: Final = {RANKING: (DAILY, PEAK), OTHER: (WEEKLY, WEEKLY)}
"""The unity of which the best two competitions count, and the one in which who was first stands before."""

Effect = Callable[[Sequence], None]
"""What an accepted change means for the model, given its event."""


class World:
    """A tournament of the service, and what there should be. `ids`: the service's, for those of the model. `done`
    counts what was accepted, refused and compared."""

    def __init__(self, clients: list[Client], clock: ToldClock, random: Random, done: Counter[str]) -> None:
        self.clients, self.clock, self.random, self.done = clients, clock, random, done
        self.naive = Naive()
        self.ids: dict[int, int] = {}
        self.undone_by: dict[Sequence, Sequence] = {}
        self.moments: list[tuple[Sequence, Totals]] = []

    @property
    def client(self) -> Client:
        return self.random.choice(self.clients)

    async def begin(self) -> None:
        self.ids.update(zip((ANN, BOB, CID), await register(self.client, "Ann", "Bob", "Cid"), strict=True))
        for ranking, main, lasts, on in (RANKING, HOURLY, "PT1H30M", "minute"), (OTHER, WEEKLY, "P2W", "week"):
            participants = listed([self.ids[who] for who in (ANN, BOB, CID)])
            form = {"name": "Rolling", "main_unity_name": f"{main}", "participants": participants}
            form |= {"main_unity_lasts": lasts, "main_unity_expires_on": on}
            created = (await self.client.post("rankings.json", form)).json["ranking"]
            self.ids |= {ranking: created["id"], main: created["unities"][0]["id"]}
        for unity, options in _FURTHER.items():
            form = {"name": f"{unity}"} | options
            made = await self.client.post(f"{self.path(RANKING)}/unities.json", form)
            self.ids[unity] = made.json["unity"]["id"]
        for ranking, (best, first) in _CRITERIA.items():
            criteria = [{"unity": self.ids[best], "best": 2}, {"unity": self.ids[first], "first": True}]
            declared = {"criteria": json.dumps(criteria)}
            assert (await self.client.put(f"{self.path(ranking)}/classification.json", declared)).status == 200

    # ── Changes ────────────────────────────────────────────────────────────────────────────────────────

    async def change(self) -> None:
        """One to three changes at once. What was accepted is as if done in the order of the log."""
        number = self.random.choice((1, 1, 2, 3))
        asked = await asyncio.gather(*[self.one_change() for _ in range(number)])
        accepted = sorted([one for one in asked if one is not None], key=lambda one: one[0])
        for sequence, effect in accepted:
            effect(sequence)
        if accepted and self.random.random() < 0.05:
            self.moments.append((accepted[-1][0], self.naive.totals(self.clock.now)))

    async def one_change(self) -> tuple[Sequence, Effect] | None:
        """What has been accepted, or None."""
        naive, pick = self.naive, self.random.choice
        one = pick(list(naive.dates)) if naive.dates else None
        match self.random.randrange(12):
            case 0 | 1:
                return await self.add_competition(self.some_date())
            case 6 if one is not None:
                voids = one not in naive.voided
                mark = naive.voided.add if voids else naive.voided.discard
                path = f"competitions/{one}/{'void' if voids else 'unvoid'}.json"
                return await self.put(path, {}, lambda _: mark(one))
            case 7 if one is not None:
                struck = one, pick([ANN, BOB, CID])
                strikes = struck not in naive.struck
                note = naive.struck.add if strikes else naive.struck.discard
                path = f"competitions/{one}/{'strike' if strikes else 'unstrike'}.json"
                return await self.put(path, {"competitors": self.ids[struck[1]]}, lambda _: note(struck))
            case 8 if naive.added:
                return await self.undo_or_redo(pick(list(naive.added)))
            case 9 if one is not None:
                date = self.some_date()
                form = {"started_at": "" if date is None else _text(date)}
                return await self.put(f"competitions/{one}.json", form, lambda _: naive.dates.update({one: date}))
            case 10 if naive.closed or self.random.random() < 0.3:
                return await self.close_or_reopen(pick(list(naive.closed) or [RANKING, OTHER]))
            case _:
                return await self.add(one if self.random.random() < 0.6 else None)

    def some_date(self) -> datetime | None:
        return self.some_time(-30_000, 5_000) if self.random.random() < 0.8 else None

    def some_time(self, least: int, most: int) -> datetime:
        """At least `least` and fewer than `most` minutes from now."""
        return self.clock.now + timedelta(minutes=self.random.randrange(least, most))

    async def add_competition(self, date: datetime | None) -> tuple[Sequence, Effect] | None:
        form = {"group_id": 1} | ({} if date is None else {"started_at": _text(date)})
        answer = await self.client.post("competitions.json", form)
        assert answer.status == 200, answer.body
        self.done["accepted"] += 1
        self.naive.dates[CompetitionId(answer.json["competition"]["id"])] = date
        return None

    async def add(self, competition: CompetitionId | None) -> tuple[Sequence, Effect] | None:
        random, now = self.random, self.clock.now
        unities = [WEEKLY] if random.random() < 0.3 else [HOURLY, DAILY, EVER, PEAK, LEAST, LATEST]
        ranking = OTHER if unities == [WEEKLY] else RANKING
        who = [ANN, BOB, CID]
        lines = [
            (random.choice(who), random.choice(unities), random.randint(-3, 9)) for _ in range(random.randint(1, 4))
        ]
        form: dict[str, object] = {"participants_delta": deltas(*[(self.ids[c], self.ids[u], n) for c, u, n in lines])}
        if competition is not None:
            form["competition_id"] = competition

        def effect(sequence: Sequence) -> None:
            self.naive.added[sequence] = Added(now, ranking, competition, lines)

        return await self.put(f"{self.path(ranking)}/add.json", form, effect)

    async def undo_or_redo(self, sequence: Sequence) -> tuple[Sequence, Effect] | None:
        added = self.naive.added[sequence]
        undoes = not added.undone

        def effect(its: Sequence) -> None:
            added.undone = undoes
            self.undone_by[sequence] = its

        named = sequence if undoes else self.undone_by[sequence]
        return await self.put(f"{self.path(added.ranking)}/reverse.json", {"sequence": named}, effect)

    async def close_or_reopen(self, ranking: RankingId) -> tuple[Sequence, Effect] | None:
        closed, now = self.naive.closed, self.clock.now
        if ranking in closed:
            return await self.put(f"{self.path(ranking)}/reopen.json", {}, lambda _: closed.pop(ranking) and None)
        return await self.put(f"{self.path(ranking)}/close.json", {}, lambda _: closed.update({ranking: now}))

    async def put(self, path: str, form: Form, effect: Effect) -> tuple[Sequence, Effect] | None:
        answer = await self.client.put(path, form)
        assert answer.status in (200, 409, 422), (path, form, answer.body)
        self.done["accepted" if answer.status == 200 else f"refused {path.rpartition('/')[2]}"] += 1
        return (Sequence(int(answer.headers["Tallybook-Sequence"])), effect) if answer.status == 200 else None

    # ── Answers ────────────────────────────────────────────────────────────────────────────────────────

    async def compare(self) -> None:
        """What both rankings show, and at times what else can be asked."""
        now, random = self.clock.now, self.random
        for ranking in (RANKING, OTHER):
            self.same(await self.standings(ranking), self.only(ranking, self.naive.totals(now)))
            if random.random() < 0.1:
                self.same(await self.best_of(ranking), self.naive.best_of(2, _CRITERIA[ranking][0], now))
        if random.random() < 0.1:
            await self.compare_losses(random.choice(list(LASTS)), self.some_time(1, 30_000))
        if random.random() < 0.05:
            on = self.some_time(-30_000, 5_000)
            for ranking in (RANKING, OTHER):
                totals = self.only(ranking, self.naive.totals(now, on))
                self.same(await self.standings(ranking, on=_text(on)), totals)
                best = self.naive.best_of(2, _CRITERIA[ranking][0], now, on)
                self.same(await self.best_of(ranking, on=_text(on)), best)
        if self.moments and random.random() < 0.05:
            sequence, totals = random.choice(self.moments)
            for ranking in (RANKING, OTHER):
                self.same(await self.standings(ranking, at_sequence=sequence), self.only(ranking, totals))

    async def compare_losses(self, unity: UnityId, until: datetime) -> None:
        path = f"{self.path(OTHER if unity == WEEKLY else RANKING)}/expiring.json"
        answer = await self.client.get(f"{path}?unity={self.ids[unity]}&until={_text(until)}")
        lines = answer.json["expiring"]["expiring"]
        shown = {(unity, self.of_model(one["competitor_id"])): one["total_then"] for one in lines if one["total_then"]}
        left = self.naive.totals(until).items()
        self.same(shown, {named: total for named, total in left if named[0] == unity and total})

    async def standings(self, ranking: RankingId, **moment: object) -> Totals:
        """The totals that are not 0, and those that there are of results."""
        shown: Totals = {}
        for its in (await self.asked(ranking, "standings", moment))["ranking"]["unities"]:
            unity = UnityId(int(its["name"]))
            for line in its["competitors_ranking"]:
                if line["total"] or (line["total"] == 0 and unity in (PEAK, LEAST, LATEST)):
                    shown[unity, self.of_model(line["competitor_id"])] = line["total"]
        return shown

    async def best_of(self, ranking: RankingId, **moment: object) -> dict[CompetitorId, int]:
        lines = (await self.asked(ranking, "classification", moment))["classification"]["standings"]
        return {self.of_model(line["competitor_id"]): line["values"][0] for line in lines}

    async def asked(self, ranking: RankingId, what: str, moment: dict[str, object]) -> Any:
        """What the service answers."""
        query = "&".join(f"{name}={value}" for name, value in moment.items())
        answer = await self.client.get(f"{self.path(ranking)}/{what}.json?{query}")
        assert answer.status == 200, answer.body
        return answer.json

    def same(self, shown: object, expected: object) -> None:
        self.done["compared"] += 1
        assert shown == expected, (self.clients[0].tournament, self.clock.now)

    def path(self, ranking: RankingId) -> str:
        return f"rankings/{self.ids[ranking]}"

    def of_model(self, id_: int) -> CompetitorId:
        return CompetitorId(next(ours for ours, its in self.ids.items() if its == id_))

    @staticmethod
    def only(ranking: RankingId, totals: Totals) -> Totals:
        return {named: total for named, total in totals.items() if (named[0] == WEEKLY) == (ranking == OTHER)}


def _text(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


@asynccontextmanager
async def connections(url: str, tournament: str, token: str) -> AsyncIterator[list[Client]]:
    """Clients with a connection of their own each."""
    async with AsyncExitStack() as stack:
        sessions = [
            await stack.enter_async_context(ClientSession(connector=TCPConnector(limit=1), cookie_jar=DummyCookieJar()))
            for _ in range(CONNECTIONS)
        ]
        yield [Client(session, url, tournament, token) for session in sessions]


async def pass_time(clock: ToldClock, random: Random, boundaries: list[datetime]) -> None:
    """Some, or until one of the boundaries, or until just before it."""
    if boundaries and random.random() < 0.5:
        await clock.set(random.choice(boundaries) - random.choice([timedelta(), timedelta(seconds=1)]))
    else:
        await clock.pass_by(minutes=random.choice([0.25, 1, 17, 90, 600, 1_440, 5_000, 20_000]))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(8))
async def test_either_process_shows_what_counts(
    dsn: str, owner: asyncpg.Connection, database: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, seed: int
) -> None:
    done = await play(dsn, owner, database, monkeypatch, tmp_path, seed, worlds=3, rounds=40)
    assert done["accepted"] > done["compared"] / 10, done


async def play(
    dsn: str,
    owner: asyncpg.Connection,
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
    folder: Path,
    seed: int,
    *,
    worlds: int,
    rounds: int,
) -> Counter[str]:
    """In each round time passes, and in each world a few changes are made and compared. Counts what was done."""
    random, clock, done = Random(seed), await told_clock(owner, monkeypatch), Counter[str]()
    token = await make_token(database)
    slugs = [await slug_of(database, await open_new_tournament(database, actor=OPERATOR)) for _ in range(worlds)]
    options = ("--processes", "2", "--port", "0", "--database-url", dsn)
    with started(folder, "serve", *options, **IN_PROCESSES) as running:
        url = await running.address()
        async with AsyncExitStack() as stack:
            played = [
                World(
                    await stack.enter_async_context(connections(url, slug, token)), clock, Random(f"{seed} {n}"), done
                )
                for n, slug in enumerate(slugs)
            ]
            await asyncio.gather(*[world.begin() for world in played])

            async def play_on(world: World) -> None:
                for _ in range(world.random.randrange(3)):
                    await world.change()
                    await world.compare()
                await world.compare()

            for _ in range(rounds):
                await pass_time(clock, random, random.choice(played).naive.boundaries(clock.now))
                await asyncio.gather(*[play_on(world) for world in played])
            assert all(accepted_by(pid, URL(url).port or 0) for pid in running.pids("api")), (
                "one process has nothing to do"
            )
        assert await running.stopped() == 0
    await Worker(database).catch_up()
    await clock.give_back()
    report = await verified(database)
    assert [(d.tournament, d.sequence, d.field, d.message[-700:]) for d in report.differences] == []
    return done
