"""Cases 33, 40 and 41: all at one place, too slow, and stopped in the middle of it; and the soak."""

import asyncio
import os
import signal
import time
from typing import Any, Final

from assurance.faults.clients import MIXED
from assurance.faults.history import Attempt, Outcome, percentile
from assurance.faults.stage import Stage
from assurance.faults.table import Trial, case
from benchmarks.machine import rss_bytes
from tests.desks import until

_CONNECTIONS: Final = "SELECT count(*) AS n FROM pg_stat_activity WHERE application_name LIKE 'tallybook%'"


@case(
    33, "Hot tournament", "30 clients without a pause on one tournament, 4 on others", "the others are served; I1-I10"
)
async def hot(trial: Trial) -> None:
    async with trial.stage() as stage:
        before = len(stage.history.attempts)
        async with stage.load(clients=4):
            await asyncio.sleep(trial.seconds(10, least=2))
        quiet = percentile(stage.history.attempts[before:], 0.99)
        arenas, before = list(stage.arenas), len(stage.history.attempts)
        players = stage.load(clients=4)
        async with players:
            hot_clients = stage.load(clients=30, pause_seconds=0.0, arenas=arenas[:1])
            async with hot_clients:
                await asyncio.sleep(trial.seconds(20, least=3))
        attempts = stage.history.attempts[before:]
        busy = percentile([a for a in attempts if a.asked.tournament != 0], 0.99)
        await trial.judge(stage)
        trial.tell(f"p99 of the others {1000 * quiet:.0f} ms alone, {1000 * busy:.0f} ms alongside it")


@case(
    40,
    "Slow projection",
    "100 ms at each piece between workers and PostgreSQL",
    "writes and live answers are not held up; tables follow; I1-I10",
)
async def slow_projection(trial: Trial) -> None:
    async with trial.stage() as stage:
        quiet = []
        for delay in ((0.0, 0.0), (0.1, 0.1)):
            for one in stage.tables:
                one.delay_seconds = delay
            before = len(stage.history.attempts)
            async with stage.load(pause_seconds=0.005):
                await asyncio.sleep(trial.seconds(15, least=3))
                lag = (
                    await stage.cluster.fetch(
                        "SELECT (SELECT sum(sequence) FROM head) - (SELECT sum(sequence) FROM checkpoint) AS n"
                    )
                )[0]["n"]
            quiet.append(percentile(stage.history.attempts[before:], 0.99))
        stage.heal()
        took = await stage.caught_up()
        await trial.judge(stage)
        trial.tell(
            f"p99 {1000 * quiet[0]:.0f} ms, alongside slow workers {1000 * quiet[1]:.0f} ms; {lag} events behind, "
            f"whole {took:.1f} s later"
        )


@case(
    41,
    "SIGTERM under load",
    "each program in turn stopped and started again under load",
    "no ok lost; one retry at the other service cures every failure; exit within 30 s; I1-I10",
)
async def rolling_restart(trial: Trial) -> None:
    async with trial.stage() as stage:
        slowest = 0.0
        cured = failed = 0
        async with stage.load(pause_seconds=0.01, direct=True):
            for _ in range(trial.times(10)):
                for program in stage.programs:
                    began = time.monotonic()
                    code = await program.end()
                    slowest = max(slowest, time.monotonic() - began)
                    trial.look("I10", code == 0, f"{program.kind} ended with {code}")
                    program.start()
                    await program.ready()
                    await asyncio.sleep(0.2)
        attempts: dict[int, list[Attempt]] = {}
        for attempt in stage.history.attempts:
            attempts.setdefault(attempt.asked.number, []).append(attempt)
        for of_one in attempts.values():
            failed += of_one[0].outcome is not Outcome.OK
            other = next((a for a in of_one[1:] if a.service != of_one[0].service), None)
            if of_one[0].outcome is not Outcome.OK and other is not None:
                cured += other.outcome is Outcome.OK
                trial.look("I12", other.outcome is Outcome.OK, f"a retry by the other service failed: {other}")
        unknown = sum(a.outcome is Outcome.UNKNOWN for a in stage.history.attempts)
        answered = sum(a.status == 500 for a in stage.history.attempts)
        trial.look("I10", answered == 0, f"{answered} were answered 500 while a service stopped")
        trial.look("I10", slowest <= 30, f"a program took {slowest:.1f} s to end")
        await trial.judge(stage)
        trial.tell(
            f"slowest end {slowest:.1f} s; {failed} first attempts failed, {unknown} of unknown outcome; {cured} "
            f"tried by the other service next, all ok"
        )


# ── The soak ────────────────────────────────────────────────────────────────────────────────────────────


def resources(stage: Stage) -> dict[str, list[int]]:
    """What the processes hold: descriptors, threads, resident memory in MiB."""
    pids = [program.pid for program in stage.programs]
    return {
        "descriptors": [len(os.listdir(f"/proc/{pid}/fd")) for pid in pids],
        "threads": [len(os.listdir(f"/proc/{pid}/task")) for pid in pids],
        "MiB": [rss_bytes(pid) >> 20 for pid in pids],
    }


async def soak(trial: Trial, minutes: float) -> None:
    """A random fault every 10 seconds, then a quiet phase in which all becomes whole by itself."""
    async with trial.stage() as stage:
        async with stage.load(clients=12):
            await asyncio.sleep(trial.seconds(5))
        base = resources(stage)
        faults: list[Any] = [_reset, _clog, _end_sessions, _crash, _pause]
        deadline = time.monotonic() + 60 * minutes
        count = 0
        async with stage.load(lines_max=30, mix=MIXED):
            while time.monotonic() < deadline:
                await asyncio.sleep(min(10, 10 * trial.scale) * trial.random.uniform(0.8, 1.2))
                await trial.random.choice(faults)(stage, trial)
                stage.heal()
                await stage.resume()
                count += 1
        async with stage.load(clients=12):
            await asyncio.sleep(trial.seconds(5))

        async def whole() -> bool:
            now = resources(stage)
            waiting = [(await stage.figures(n))["tallybook_waiting_requests"] for n in range(len(stage.services))]
            return not any(waiting) and all(
                b <= a + 8 for a, b in zip(base["descriptors"], now["descriptors"], strict=True)
            )

        await until(whole, 60)
        after = resources(stage)
        for name, slack in (("descriptors", 8), ("threads", 4), ("MiB", 64)):
            for one, other in zip(base[name], after[name], strict=True):
                trial.look("I10", other <= one + slack, f"{name} grew from {one} to {other}")
        connections = (await stage.cluster.fetch(_CONNECTIONS))[0]["n"]
        trial.look("I10", connections <= 2 * 12 + 2 * 4 + 2, f"{connections} sessions")
        await trial.judge(stage)
        trial.tell(f"{count} faults in {minutes:g} min; before {base}, after {after}, {connections} sessions")


async def _reset(stage: Stage, trial: Trial) -> None:
    for _ in range(5):
        trial.random.choice(stage.wires).reset_all()
        await asyncio.sleep(0.1)


async def _clog(stage: Stage, trial: Trial) -> None:
    for one in trial.random.sample(stage.wires, 3):
        one.clog()
    await asyncio.sleep(trial.random.uniform(0.5, 4))


async def _end_sessions(stage: Stage, _: Trial) -> None:
    await stage.cluster.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'tallybook%'"
    )


async def _crash(stage: Stage, _: Trial) -> None:
    await stage.cluster.kill()
    await stage.cluster.start()


async def _pause(stage: Stage, trial: Trial) -> None:
    pid = trial.random.choice(stage.programs).pid
    os.kill(pid, signal.SIGSTOP)
    await asyncio.sleep(2)
    os.kill(pid, signal.SIGCONT)
