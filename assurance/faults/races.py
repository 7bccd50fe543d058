"""Cases 27 to 37: who comes at the same time, twice, late, in another order, with what nobody can read."""

import asyncio
import json
import time
from contextlib import AsyncExitStack
from typing import Final

import msgspec
import pytest

from assurance.faults import checker
from assurance.faults.clients import request_of
from assurance.faults.history import Asked, Attempt, Kind, Outcome
from assurance.faults.stage import Stage
from assurance.faults.table import Trial, absent, case, control
from assurance.faults.tools import FAKETIME, faketime
from engine.database.pool import open_database
from engine.domain.terms import TournamentId
from projections.tables.worker import Worker
from tests.desks import DOOR, until
from tests.desks import Arena as DeskArena
from tests.poison import POISONS, poison, repair

# ── Two at once ─────────────────────────────────────────────────────────────────────────────────────────


@case(
    27,
    "Two workers, one tournament",
    "both start on the same few events at once, repeatedly",
    "exactly one advances; I5-I7",
)
async def two_workers(trial: Trial) -> None:
    async with trial.stage(tournaments=1, workers=0, services=1) as stage, AsyncExitStack() as stack:
        names = ("one", "other")
        databases = [await stack.enter_async_context(open_database(stage.cluster.dsn, name=name)) for name in names]
        workers = [Worker(database) for database in databases]
        client = stage.client()
        rounds = trial.times(1_000, least=50)
        folded = 0
        for _ in range(rounds):
            attempt = await client.attempt(client.draw(Kind.ADD, 0), 0)
            assert attempt.outcome is Outcome.OK
            folded += sum(await asyncio.gather(*(worker.catch_up() for worker in workers)))
        evidence = await stage.evidence(tables=False)
        folded += sum(await asyncio.gather(*(worker.catch_up() for worker in workers)))
        async with stage.cluster.owner() as owner:
            evidence.logs = [await checker.read_log(owner, arena) for arena in stage.arenas]
        head = evidence.logs[0].head["sequence"]
        trial.look("I5", folded == head, f"{folded} folded of {head}")
        trial.take(stage, checker.judge(evidence))
        trial.tell(f"{rounds} rounds; {folded} events folded of {head}, none twice")


# ── Again and again ─────────────────────────────────────────────────────────────────────────────────────


@case(
    28,
    "Duplicates",
    "each key sent 1 to 10 times at once to two services; all again after a restart, shuffled",
    "the same answer, which says so; I1-I10",
)
async def duplicates(trial: Trial) -> None:
    async with trial.stage() as stage:
        clients = [stage.client() for _ in range(10)]
        asked = [
            clients[0].draw(kind, keyed=True)
            for kind in [Kind.ADD] * trial.times(300, least=20) + [Kind.COMPETITION, Kind.REVISE] * 5
        ]

        async def send(one: Asked) -> None:
            times = trial.random.randint(1, 10)
            attempts = await asyncio.gather(*(clients[n].attempt(one, n % 2) for n in range(times)))
            _same(trial, one, attempts)

        for one in asked:
            await send(one)
        for service in stage.services:
            await service.again()
        for client in clients:
            client.close()  # its connections led to what is gone
        for one in trial.random.sample(asked, len(asked)):
            await send(one)
        replays = 0
        for one in asked:
            of_one = [a for a in stage.history.attempts if a.asked is one]
            replays += sum(a.replayed for a in of_one)
            trial.look(
                "I2", sum(not a.replayed for a in of_one) <= 1, f"more than one answer says it is the first: {one}"
            )
        for client in clients:
            client.close()
        await trial.judge(stage)
        trial.tell(f"{len(asked)} keys, {replays} replays")


def _same(trial: Trial, asked: Asked, attempts: list[Attempt]) -> None:
    for attempt in attempts:
        trial.look("I2", attempt.outcome is Outcome.OK, f"a repeat was answered {attempt.status} {attempt.why}")
    trial.look("I2", len({a.sequence for a in attempts}) == 1, f"repeats have several sequences: {asked}")


@case(
    29,
    "Reordered and late",
    "a third of the requests sent again much later, shuffled, by the other service",
    "I1-I10",
)
async def late(trial: Trial) -> None:
    async with trial.stage() as stage:
        async with stage.load(pause_seconds=0.005, keyless=0.0):
            await asyncio.sleep(trial.seconds(10, least=2))
        done = {a.asked.number: a.asked for a in stage.history.ok() if a.asked.key}
        again = trial.random.sample(list(done.values()), len(done) // 3)
        client = stage.client()
        async with stage.load(clients=4):
            for asked in again:
                attempt = await client.attempt(asked, trial.random.randrange(2))
                trial.look("I2", attempt.replayed, f"a late repeat was taken for new: {asked}")
        await trial.judge(stage)
        trial.tell(f"{len(again)} repeated late")


@case(
    30,
    "Same key, another request",
    "a used key with another delta, competitor or kind, or in another tournament",
    "422, nothing recorded; I1-I11",
)
async def same_key(trial: Trial) -> None:
    async with trial.stage(tournaments=2) as stage:
        client, caller = stage.client(), stage.caller(0)
        wrong = own = 0
        for _ in range(trial.times(200, least=20)):
            first = client.draw(Kind.ADD, 0, keyed=True)
            assert (await client.attempt(first, 0)).outcome is Outcome.OK
            for other in (client.draw(Kind.ADD, 0), client.draw(Kind.COMPETITION, 0), client.draw(Kind.REVISE, 0)):
                method, path, form = request_of(other, stage.arenas[0])
                answer = await caller.ask(method, path, form, first.key)
                wrong += answer.status != 422
                trial.look("I2", answer.status == 422, f"another request under a used key was answered {answer.status}")
            elsewhere = msgspec.structs.replace(client.draw(Kind.COMPETITION, 1), key=first.key)
            attempt = await client.attempt(elsewhere, 0)
            own += attempt.outcome is Outcome.OK and not attempt.replayed
            trial.look("I11", attempt.outcome is Outcome.OK, f"another tournament's key was seen: {attempt.status}")
            trial.look("I11", not attempt.replayed, f"another tournament's key was taken for this one's: {elsewhere}")
        await trial.judge(stage)
        caller.close()
        trial.tell(f"{wrong} wrong accepts; {own} keys free in the other tournament")


# ── In another order ────────────────────────────────────────────────────────────────────────────────────

_FOREIGN: Final = """
    SELECT last_sequence
    FROM append_block(
        $1, gen_random_uuid(), true, (SELECT sequence FROM head WHERE tournament_id = $1), NULL, false, false, true,
        NULL, 0, 0, NULL, NULL, NULL, $2, NULL, NULL, NULL
    )
"""


_FOLLOWING: Final = """
    SELECT generate_series(greatest(first_sequence, $1 + 1), last_sequence) AS id
    FROM block
    WHERE last_sequence > $1 AND tournament_id = $2
    ORDER BY id
"""


async def _readers(stage: Stage, seen: list[int], stop: asyncio.Event, query: str, *arguments: object) -> None:
    """Remembers the greatest it has seen, and asks for what is greater."""
    async with stage.cluster.owner() as owner:
        last = 0
        while not stop.is_set():
            for row in await owner.fetch(query, last, *arguments):
                last = row["id"]
                seen.append(last)
            await asyncio.sleep(0)


@case(
    31,
    "Out-of-order commits",
    "writers draw a sequence and commit at random later; two services append; readers ask for `sequence > last`",
    "nothing is skipped (I7); I1-I10",
)
async def out_of_order(trial: Trial) -> None:
    async with trial.stage(tournaments=1) as stage:
        tournament_id = stage.arenas[0].tournament_id
        stop, seen = asyncio.Event(), [list[int](), list[int]()]
        readers = [asyncio.create_task(_readers(stage, s, stop, _FOLLOWING, tournament_id)) for s in seen]

        async def write(n: int) -> None:
            async with stage.cluster.owner() as owner:
                for m in range(trial.times(100, least=10)):
                    async with owner.transaction():
                        body = {"competitor_id": 900_000_000 + n * 10_000 + m, "name": "Foreign"}
                        line = json.dumps(["CompetitorRegistered", 0, None, body], separators=(",", ":"))
                        await owner.fetchval(_FOREIGN, tournament_id, line)
                        await asyncio.sleep(trial.random.uniform(0, 0.02))

        async with stage.load(pause_seconds=0.005):
            await asyncio.gather(*(write(n) for n in range(8)))
        evidence = await stage.evidence()
        stop.set()
        await asyncio.gather(*readers)
        head = evidence.logs[0].head["sequence"]
        skipped = sum(len(set(range(1, max(s) + 1)) - set(s)) for s in seen)
        trial.look("I7", skipped == 0, f"{skipped} were skipped by readers")
        trial.take(stage, checker.judge(evidence))
        trial.tell(f"{skipped} skipped by 2 readers of {head} events")


@control("bigserial", "a reader by `id > last` of a bigserial skips events")
async def classic_reader(trial: Trial) -> str:
    rounds = 10
    async with trial.stage(tournaments=1, workers=0, services=1) as stage:
        await stage.cluster.execute("CREATE TABLE classic (id bigserial PRIMARY KEY)")
        stop, seen = asyncio.Event(), list[int]()
        reader = asyncio.create_task(_readers(stage, seen, stop, "SELECT id FROM classic WHERE id > $1 ORDER BY id"))
        async with stage.cluster.owner() as late, stage.cluster.owner() as early:
            for n in range(1, rounds + 1):
                async with late.transaction():
                    await late.execute("INSERT INTO classic DEFAULT VALUES")
                    await early.execute("INSERT INTO classic DEFAULT VALUES")
                    await until(lambda n=n: seen and seen[-1] == 2 * n)  # type: ignore[misc]
            await early.execute("INSERT INTO classic DEFAULT VALUES")
        await until(lambda: seen[-1] == 2 * rounds + 1)
        stop.set()
        await reader
        skipped = 2 * rounds + 1 - len(seen)
        return f"{skipped} of {rounds} that were committed late skipped" if skipped else ""


@control(
    "deduplication",
    "deduplication off in the database: a repeat is recorded twice",
)
async def without_deduplication(trial: Trial) -> str:
    async with trial.stage(tournaments=1, workers=1, services=1) as stage:
        ((text,),) = await stage.cluster.fetch(DOOR)
        broken = text.replace("IF v_seen IS NOT NULL THEN", "IF false THEN").replace(
            "answers[r]);", "answers[r]) ON CONFLICT DO NOTHING;"
        )
        assert broken.count("IF false") == broken.count("ON CONFLICT") == 1
        await stage.cluster.execute(broken)
        client = stage.client()
        for _ in range(10):
            asked = client.draw(Kind.ADD, 0, keyed=True)
            for _ in range(2):
                await client.attempt(asked, 0)
        verdicts = await stage.judged()
        doubled = len(verdicts.wrong.get("I2", []))
        return f"{doubled} faults of I2" if doubled else ""


@control(
    "chain",
    "one byte of an event changed as owner, triggers off: only the check of the chain sees it",
)
async def changed_delta(trial: Trial) -> str:
    async with trial.stage(tournaments=1, workers=1, services=1) as stage:
        async with stage.load(clients=2):
            await asyncio.sleep(0.5)
        await stage.settled()
        async with stage.cluster.owner() as owner:
            await owner.execute("ALTER TABLE block DISABLE TRIGGER append_only")
            await owner.execute(
                "UPDATE block SET text = replace(text, '\"deltas\":[[', '\"deltas\": [[') WHERE last_sequence = "
                "(SELECT max(last_sequence) FROM block WHERE text ~ '^\\[\"PointsAdded\"')"
            )
        wrong = (await stage.judged()).wrong
        faults = wrong.pop("I8", [])  # and now as if nobody checked the chain
        return f"{len(faults)} faults of I8, and none without its check" if faults and not wrong else ""


# ── What nobody can read ────────────────────────────────────────────────────────────────────────────────


@case(
    32,
    "Poison event",
    "by SQL: an unknown tag, a broken body, a delta too big, what does not exist; later repaired",
    "only that tournament stops, and says so; repaired, it resumes; I5",
)
async def poisoned(trial: Trial) -> None:
    names = list(POISONS)[: trial.times(len(POISONS), least=2)]
    async with trial.stage(tournaments=2) as stage:
        alarms = []
        for name in names:
            arena = stage.arenas[0]
            desk_arena = DeskArena(
                TournamentId(arena.tournament_id),
                arena.ranking_id,
                arena.unities[0],
                arena.competitors[:2],  # type: ignore[arg-type]
            )
            client = stage.client()
            loop = asyncio.get_running_loop()
            async with stage.cluster.owner() as owner:
                before = stage.services[0].said.count('"tournament_stopped"')
                sequence = await poison(owner, desk_arena, name)
                began = loop.time()
                stopped = await client.attempt(client.draw(Kind.ADD, 0, keyed=False), 0)
                # What adds points is recorded behind the poison; there is nothing right to answer it from.
                trial.look("I10", stopped.status in (500, 503), f"{name}: the tournament was answered {stopped.status}")
                stopped = await client.attempt(client.draw(Kind.ADD, 0, keyed=False), 0)
                trial.look("I10", stopped.status == 503, f"{name}: then it was answered {stopped.status}")
                others = await client.attempt(client.draw(Kind.ADD, 1, keyed=True), 0)
                trial.look(
                    "I11", others.outcome is Outcome.OK, f"{name}: another tournament was answered {others.status}"
                )

                def alarmed(before: int = before) -> bool:
                    return stage.services[0].said.count('"tournament_stopped"') > before

                await until(alarmed, 10)
                alarms.append(loop.time() - began)
                await repair(owner, desk_arena, sequence, 0)

            async def again(client=client) -> bool:  # type: ignore[no-untyped-def]
                return (await client.attempt(client.draw(Kind.ADD, 0, keyed=False), 0)).outcome is Outcome.OK

            await until(again, 40)
            client.close()
        await stage.settled()
        looks = await stage._looks()
        await stage.caught_up(40)
        async with stage.cluster.owner() as owner:
            tables = [await checker.read_log(owner, arena) for arena in stage.arenas]
        for place, log in enumerate(tables):
            last = [shown for t, shown in looks if t == place][-1]
            trial.look("I5", log.tables == last, f"tables {log.tables}, live {last}")
        trial.outcomes.update(stage.history.outcomes())
        trial.tell(f"{len(names)} poisons, each stopped 1 of 2; alarm after {max(alarms):.2f} s at most")


@case(
    34,
    "Clock skew",
    "the clock that stamps the log goes an hour forward and back, repeatedly; then all clocks do (libfaketime)",
    "recorded_at never falls; I1-I10",
    tools=(FAKETIME,),
)
async def clock(trial: Trial) -> None:
    hours = trial.times(10, least=2)
    async with trial.stage() as stage:
        ((door,),) = await stage.cluster.fetch(DOOR)
        async with stage.load():
            for _ in range(hours):
                await asyncio.sleep(0.5)
                await stage.cluster.execute(door.replace("clock_timestamp()", "clock_timestamp() + interval '1 hour'"))
                await asyncio.sleep(0.2)
                await stage.cluster.execute(door)
            await asyncio.sleep(0.5)
        await trial.judge(stage)
    now = trial.folder / "now"
    now.write_text("+0")
    variables = {"LD_PRELOAD": str(faketime()), "FAKETIME_TIMESTAMP_FILE": str(now), "FAKETIME_NO_CACHE": "1"}
    variables |= {"FAKETIME_DONT_FAKE_MONOTONIC": "1", "FAKETIME_DISABLE_SHM": "1"}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)  # which PostgreSQL and all programs of the stage inherit
        async with trial.stage() as stage:
            moved = 0.0
            async with stage.load():
                for _ in range(hours):
                    for hour in ("+3600", "-3600", "+0"):
                        now.write_text(hour)
                        await asyncio.sleep(0.3)
                        told = (await stage.cluster.fetch("SELECT extract(epoch FROM clock_timestamp()) AS s"))[0]["s"]
                        moved = max(moved, abs(float(told) - time.time()))
                await stage.resume()
            trial.show(moved > 3_000, f"the clocks moved by no more than {moved:.0f} s")
            await trial.judge(stage)
    trial.tell(f"{hours} hours forth and back by the function that appends, as many both ways by libfaketime")


absent(
    35,
    "Old log format",
    "there is one format so far; tests/engine/golden has every tag, and each must decode for ever",
)
