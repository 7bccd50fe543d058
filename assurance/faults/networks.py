"""Cases 9 to 15: what is paused, cut, silent, slow and reset."""

import asyncio
import os
import time
from contextlib import suppress
from typing import Final

from assurance.faults.history import Kind, Outcome
from assurance.faults.stage import Stage, paused
from assurance.faults.table import Trial, case
from assurance.faults.wire import Way, Wire
from tests.desks import until

WRITE_SECONDS_MAX: Final = 17.0
"""The desk's 15, a watch of a tenth, and two for a busy machine."""
READ_SECONDS_MAX: Final = 20.0
"""A statement's 12, and a turn of 3 for a connection before and after it."""


def longest(trial: Trial, stage: Stage, since: float) -> float:
    """The longest wait of a client for an answer, each held against its bound."""
    worst = 0.0
    for attempt in stage.history.attempts:
        if attempt.ended and attempt.began >= since:
            took = attempt.ended - attempt.began
            worst = max(worst, took)
            bound = READ_SECONDS_MAX if attempt.asked.kind is Kind.LIST else WRITE_SECONDS_MAX
            trial.look("I10", took <= bound, f"{took:.1f} s for {attempt.asked.kind}: {attempt.status} {attempt.why}")
    return worst


def whole_pool(trial: Trial, stage: Stage, before: list[int], after: list[int]) -> None:
    for one, other in zip(before, after, strict=True):
        trial.look("I10", other <= one + 8, f"descriptors grew from {one} to {other}")


def descriptors(stage: Stage) -> list[int]:
    return [len(os.listdir(f"/proc/{service.pid}/fd")) for service in stage.services]


@case(
    9,
    "API or PostgreSQL paused",
    "SIGSTOP for 20 s under load: one API process, then all of PostgreSQL",
    "I1-I10, I12",
)
async def stopped(trial: Trial) -> None:
    pause = trial.seconds(20, least=4)
    async with trial.stage() as stage:
        async with stage.load():
            for pids in ([stage.services[0].pid], stage.cluster.pids()):
                with paused(pids):
                    await asyncio.sleep(pause)
                await stage.resume()
        worst = max(a.ended - a.began for a in stage.history.attempts)
        await trial.judge(stage)
        trial.tell(f"paused for {pause:g} s each; longest wait of a client {worst:.1f} s")


_HELD: Final = """
    SELECT pid
    FROM pg_stat_activity
    WHERE application_name = 'tallybook worker' AND state = 'idle in transaction'
        AND state_change < clock_timestamp() - interval '300 ms'
"""
"""Transactions in which nothing has happened for that long: those of a stopped worker, as others continue at once."""


@case(
    10,
    "Zombie worker",
    "SIGSTOP of a worker within its transaction; its session ended; SIGCONT",
    "the other worker goes on, the late one fails and says so; I5-I7",
)
async def zombie_worker(trial: Trial) -> None:
    async with trial.stage() as stage:
        stops = taken_over = refused = 0
        async with stage.load(pause_seconds=0.005):
            deadline = time.monotonic() + trial.seconds(90, least=20)
            while time.monotonic() < deadline and taken_over < trial.times(40, least=2):
                stops += 1
                zombie = trial.random.choice(stage.workers)
                failures = zombie.said.count('"worker_failed"')
                held: list[int] = []
                with paused([zombie.pid]):
                    await asyncio.sleep(0.4)
                    held = [row["pid"] for row in await stage.cluster.fetch(_HELD)]
                    if held:
                        await _others_go_on(stage, held)
                        taken_over += 1
                if held:
                    await until(lambda z=zombie, f=failures: z.said.count('"worker_failed"') > f, 20)
                    refused += 1
                await asyncio.sleep(trial.random.uniform(0, 0.05))
        trial.look("I5", taken_over > 0, "no worker was ever found within a transaction")
        trial.look("I5", refused == taken_over, f"{refused} of {taken_over} late workers were refused")
        await trial.judge(stage)
        trial.tell(
            f"stopped {stops} times, {taken_over} within a transaction and taken over; {refused} said that they failed"
        )


async def _others_go_on(stage: Stage, held: list[int]) -> None:
    """The sessions are ended; returns when checkpoints have moved on since."""
    async with stage.cluster.owner() as owner:
        for pid in held:
            await owner.execute("SELECT pg_terminate_backend($1, 1000)", pid)
        before = await owner.fetchval("SELECT sum(sequence) FROM checkpoint")

        async def moved() -> bool:
            return bool(await owner.fetchval("SELECT sum(sequence) FROM checkpoint") > before)

        await until(moved, 20)


# ── Cut at every byte ───────────────────────────────────────────────────────────────────────────────────


async def _exchange_bytes(stage: Stage, one: Wire, way: Way) -> int:
    """Of one write exchange, by the connection that carries the most."""
    client = stage.client(lines_max=1)
    for _ in range(3):
        await client.attempt(client.draw(Kind.ADD, 0, keyed=True), 0)
    most = 0
    for _ in range(3):
        one.count_from_here()
        await client.attempt(client.draw(Kind.ADD, 0, keyed=True), 0)
        most = max(most, one.most_carried(way))
    client.close()
    return most


@case(
    11,
    "Cut at every byte",
    "one write cut after every byte, each way, client-API and API-PostgreSQL, by FIN and by RST; retried with its key",
    "I1-I10",
)
async def cut_at_every_byte(trial: Trial) -> None:
    async with trial.stage(tournaments=1, services=1, workers=1) as stage:
        points = cut = unknown = 0
        client = stage.client(lines_max=1)
        for name, one in (("client-API", stage.front[0]), ("API-PostgreSQL", stage.back[0])):
            for way in Way:
                size = await _exchange_bytes(stage, one, way)
                stride = max(1, round(1 / trial.scale))
                for k in range(0, size + 1, stride):
                    asked = client.draw(Kind.ADD, 0, keyed=True)
                    one.cut_after(way, k, reset=k % 2 == 0)
                    attempt = await client.attempt(asked, 0)
                    points += 1
                    cut += await one.was_cut(0.02)
                    one.heal()
                    unknown += attempt.outcome is Outcome.UNKNOWN
                    while attempt.outcome is not Outcome.OK:
                        assert attempt.status in (0, 500, 503), attempt
                        attempt = await client.attempt(asked, 0)
                trial.tell(f"{name} {way}: {size} bytes")
        client.close()
        await trial.judge(stage)
        keys = {a.asked.key for a in stage.history.attempts if a.asked.key and a.asked.kind is Kind.ADD}
        rows = await stage.cluster.fetch(
            "SELECT idempotency_key AS key, count(*) AS n FROM event WHERE idempotency_key IS NOT NULL GROUP BY 1"
        )
        once = sum(row["key"] in keys and row["n"] == 1 for row in rows)
        trial.look("I2", once == len(keys), f"of {len(keys)} keys {once} are in the log exactly once")
        trial.tell(
            f"{points} points, {cut} cut, {unknown} unknown to the client; {once} of {len(keys)} keys once in the log"
        )


# ── Silence ─────────────────────────────────────────────────────────────────────────────────────────────


@case(
    12,
    "Black hole",
    "nothing gets through between APIs and PostgreSQL for 60 s; then all does, or all is reset",
    "I1-I10, I12",
)
async def black_hole(trial: Trial) -> None:
    async with trial.stage() as stage:
        async with stage.load(clients=12):
            await asyncio.sleep(1)
        before = descriptors(stage)
        worst, silence = 0.0, trial.seconds(60, least=22)
        for ending in ("carried on", "reset"):
            since = time.monotonic()
            async with stage.load(clients=12):
                for one in stage.back:
                    one.clog()
                await asyncio.sleep(silence)
                if ending == "reset":
                    for one in stage.back:
                        one.reset_all()
                stage.heal()
                await stage.resume()
            worst = max(worst, longest(trial, stage, since))
        await stage.settled()
        async with stage.load(clients=12):
            await asyncio.sleep(1)
        with suppress(AssertionError):
            await until(lambda: all(b <= a + 8 for a, b in zip(before, descriptors(stage), strict=True)), 30)
        after = descriptors(stage)
        whole_pool(trial, stage, before, after)
        await trial.judge(stage)
        trial.tell(
            f"silent for {silence:g} s twice; longest wait of a client {worst:.1f} s; descriptors {before} before, "
            f"{after} after"
        )


@case(
    13,
    "Reset storms, slices, latency",
    "every 0.3 s all connections of a wire reset; then 7 bytes at a time; then pieces 0 to 100 ms late",
    "I1-I10",
)
async def storms(trial: Trial) -> None:
    async with trial.stage() as stage:
        seconds = trial.seconds(20, least=2)
        rates: dict[str, float] = {}

        async def rate(name: str) -> None:
            before = stage.history.outcomes()[Outcome.OK]
            began = time.monotonic()
            async with stage.load():
                while time.monotonic() - began < seconds:
                    await asyncio.sleep(0.3)
                    if name == "resets":
                        trial.random.choice(stage.wires).reset_all()
            rates[name] = (stage.history.outcomes()[Outcome.OK] - before) / (time.monotonic() - began)
            stage.heal()

        await rate("undisturbed")
        await rate("resets")
        for one in stage.wires:
            one.slice_bytes = 7
        await rate("slices")
        for one in stage.wires:
            one.delay_seconds = (0.0, 0.1)
        await rate("latency")
        await trial.judge(stage)
        kept = {name: f"{100 * of / rates['undisturbed']:.0f} %" for name, of in rates.items() if name != "undisturbed"}
        trial.tell(f"goodput kept: {kept}")


@case(
    14,
    "Swizzle-clog",
    "all wires fall silent one by one, and are released in another order, always a new one",
    "I1-I10, I12",
)
async def swizzle(trial: Trial) -> None:
    async with trial.stage() as stage:
        seeds = trial.times(1_000)
        async with stage.load():
            for _ in range(seeds):
                wires = trial.random.sample(stage.wires, len(stage.wires))
                for one in wires:
                    one.clog()
                    await asyncio.sleep(trial.random.uniform(0, 0.03))
                for one in trial.random.sample(wires, len(wires)):
                    await asyncio.sleep(trial.random.uniform(0, 0.03))
                    one.heal()
                await asyncio.sleep(trial.random.uniform(0, 0.1))
            await stage.resume()
        await trial.judge(stage)
        trial.tell(f"{seeds} orders")


_LISTENERS: Final = "SELECT pid FROM pg_stat_activity WHERE query ILIKE 'LISTEN%' AND pid <> pg_backend_pid()"


@case(15, "LISTEN connection lost", "sessions that listen for hints ended, once a second", "I5, I7, I12")
async def deaf_workers(trial: Trial) -> None:
    async with trial.stage() as stage:
        ended = 0
        async with stage.load():
            for _ in range(trial.times(20, least=3)):
                for row in await stage.cluster.fetch(_LISTENERS):
                    await stage.cluster.execute("SELECT pg_terminate_backend($1)", row["pid"])
                    ended += 1
                await asyncio.sleep(1)
        took = await stage.caught_up(20)
        await trial.judge(stage)
        trial.look("I12", ended > 0, "nobody listened")
        trial.tell(f"{ended} sessions ended; tables whole {took:.1f} s later")
