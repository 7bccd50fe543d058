"""Cases 16 to 26: what the database lacks, who holds it up, and what takes its place."""

import asyncio
import shutil
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Final

import asyncpg

from assurance.faults.checker import Verdicts, judge
from assurance.faults.clients import MIXED, NotSent
from assurance.faults.cluster import LOST, Cluster
from assurance.faults.history import Kind, Outcome
from assurance.faults.networks import longest
from assurance.faults.replaced import ended_with, look_whole
from assurance.faults.stage import Stage
from assurance.faults.table import CannotBeMade, Trial, case
from assurance.faults.tools import MOUNT
from assurance.faults.wire import Wire, wire
from tests.desks import HOLD_HEAD, until
from tests.poison import append_text

FAILOVERS_OF_A_STAGE: Final = 10
"""Failovers before the log is judged and the next stage begins."""
_SMALL: Final = {"min_wal_size": "32MB", "max_wal_size": "64MB", "shared_buffers": "16MB"}


@contextmanager
def in_memory(folder: Path, megabytes: int) -> Iterator[Path]:
    """A file system of that size. Raises CannotBeMade."""
    place = folder / "memory"
    place.mkdir(parents=True, exist_ok=True)
    try:
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(place)], check=True, capture_output=True
        )
    except (OSError, subprocess.CalledProcessError) as error:
        raise CannotBeMade(f"no file system can be mounted: {error}") from error
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=False)


@contextmanager
def full(place: Path) -> Iterator[None]:
    """Nothing more can be written there for as long as the context lasts."""
    ballast = place / "ballast"
    with suppress(OSError), ballast.open("wb", buffering=0) as file:
        for size in (1 << 20, 4_096):
            with suppress(OSError):
                while True:
                    file.write(b"\0" * size)
    try:
        yield
    finally:
        ballast.unlink(missing_ok=True)


def codes(stage: Stage, since: float) -> dict[str, int]:
    found: dict[str, int] = {}
    for attempt in stage.history.attempts:
        if attempt.began >= since:
            name = str(attempt.status or "cut")
            found[name] = found.get(name, 0) + 1
    return dict(sorted(found.items()))


@asynccontextmanager
async def _stage_on(trial: Trial, *, data: Path, wal: Path) -> AsyncIterator[Stage]:
    """A stage whose database and write-ahead log lie there, and which never has much of the latter."""
    shutil.copytree(trial.prepared, data, ignore=shutil.ignore_patterns("socket*", "lock"))
    shutil.move(data / "postgres" / "pg_wal", wal)
    (data / "postgres" / "pg_wal").symlink_to(wal)
    prepared, trial.prepared = trial.prepared, trial.folder / "nothing"  # what it would be a copy of is there already
    trial.prepared.mkdir()
    try:
        async with trial.stage(data_dir=data, settings=_SMALL) as stage:
            yield stage
    finally:
        trial.prepared = prepared


@case(
    16,
    "Data disk full",
    "PGDATA on a tmpfs that fills up under load, WAL elsewhere; freed",
    "I1-I10, I12",
    tools=(MOUNT,),
)
async def data_disk_full(trial: Trial) -> None:
    with in_memory(trial.folder, 130) as place:
        async with _stage_on(trial, data=place / "data", wal=trial.folder / "wal") as stage:
            for _ in range(trial.times(4)):
                async with stage.load(lines_max=60, pause_seconds=0):
                    since = time.monotonic()
                    with full(place):
                        await until(lambda t=since: codes(stage, t).get("503", 0) > 20, 120)
                        reads = stage.client()
                        read = await reads.attempt(reads.draw(Kind.LIST, 0), 0)
                        trial.look("I12", read.outcome is Outcome.OK, f"a read was answered {read.status} {read.why}")
                        reads.close()
                    await stage.resume()
                    trial.tell(str(codes(stage, since)))
            await trial.judge(stage)


async def _wal_used_up(stage: Stage, since: float) -> bool:
    """Whether many requests were refused. Helps a slow load to fill the disk, by using up segments of the write-ahead
    log: otherwise, checkpoints may recycle them as fast as the load needs new ones."""
    found = codes(stage, since)
    if found.get("200", 0) > 500:
        with suppress(*LOST):
            await stage.cluster.fetch("SELECT pg_switch_wal()")
    return found.get("503", 0) > 20


@case(
    17,
    "WAL disk full",
    "pg_wal on a tmpfs that fills up under load: PostgreSQL panics; freed, started again",
    "I1-I10, I12",
    tools=(MOUNT,),
)
async def wal_disk_full(trial: Trial) -> None:
    with in_memory(trial.folder, 112) as place:
        async with _stage_on(trial, data=trial.folder / "data", wal=place / "wal") as stage:
            for _ in range(trial.times(4)):
                async with stage.load(lines_max=60, pause_seconds=0):
                    since = time.monotonic()
                    with full(place):
                        await until(lambda t=since: _wal_used_up(stage, t), 180)
                    await stage.cluster.kill()
                    await stage.cluster.start()
                    await stage.resume()
                    trial.tell(str(codes(stage, since)))
            await trial.judge(stage)


@case(
    18,
    "Out of connections",
    "max_connections 30, the rest taken; the service's own ended",
    "I1-I10, I12",
)
async def out_of_connections(trial: Trial) -> None:
    async with trial.stage(settings={"max_connections": "30"}) as stage:
        async with stage.load():
            since = time.monotonic()
            hogs: list[asyncpg.Connection] = []
            with suppress(*LOST):
                while True:
                    hogs.append(await asyncpg.connect(stage.cluster.dsn, timeout=5))
            deadline = time.monotonic() + trial.seconds(10, least=3)
            while time.monotonic() < deadline:  # a service may connect again before others do
                await hogs[0].execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> ALL($1) AND backend_type = "
                    "'client backend'",
                    [hog.get_server_pid() for hog in hogs],
                )
                with suppress(*LOST):
                    hogs.append(await asyncpg.connect(stage.cluster.dsn, timeout=5))
                await asyncio.sleep(0.02)
            for hog in hogs:
                hog.terminate()
            await stage.resume()
        found = codes(stage, since)
        await trial.judge(stage)
        trial.show("503" in found, "nobody was refused a connection")
        trial.tell(f"{len(hogs)} held by others; {found}")


@case(
    19,
    "Pool exhausted",
    "a head locked, then the whole log locked exclusively: every session waits",
    "I1-I10, I12",
)
async def pool_exhausted(trial: Trial) -> None:
    async with trial.stage() as stage:
        for statement, arguments in (
            (HOLD_HEAD, (stage.arenas[0].tournament_id,)),
            ("LOCK TABLE block, append_lock IN ACCESS EXCLUSIVE MODE", ()),
        ):
            since = time.monotonic()
            async with stage.load(clients=30):
                async with stage.cluster.owner() as owner, owner.transaction():
                    await owner.execute(statement, *arguments)
                    deadline = time.monotonic() + trial.seconds(12, least=5)
                    slowest = 0.0
                    caller = stage.caller(0)
                    while time.monotonic() < deadline:
                        began = time.monotonic()
                        with suppress(NotSent):
                            health = await caller.ask("GET", "/healthz")
                            trial.look("I10", health.status == 200, f"health answers {health.status}")
                        slowest = max(slowest, time.monotonic() - began)
                        await asyncio.sleep(0.1)
                    caller.close()
                await stage.resume()
            trial.look("I10", slowest < 3, f"health answered after {slowest:.1f} s")
            trial.tell(
                f"longest wait {longest(trial, stage, since):.1f} s, of health {slowest:.2f} s, {codes(stage, since)}"
            )
        await trial.judge(stage)


@case(20, "Sessions ended every second", "pg_terminate_backend of all sessions of the service", "I1-I10, I12")
async def terminated(trial: Trial) -> None:
    async with trial.stage() as stage:
        since = time.monotonic()
        async with stage.load():
            for _ in range(trial.times(30, least=3)):
                await stage.cluster.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'tallybook%'"
                )
                await asyncio.sleep(1)
            await stage.resume()
        await trial.judge(stage)
        trial.tell(str(codes(stage, since)))


@case(
    21,
    "Deadlocks",
    "a foreign transaction locks heads in descending order, against batches of many tournaments",
    "I1-I10, I12",
)
async def deadlocks(trial: Trial) -> None:
    async with trial.stage(tournaments=4) as stage:
        since = time.monotonic()
        async with stage.load(clients=16, pause_seconds=0.002):
            ids = [arena.tournament_id for arena in stage.arenas]
            deadline = time.monotonic() + trial.seconds(20, least=3)
            rounds = 0
            async with stage.cluster.owner(deadlock_timeout="20ms") as owner:
                while time.monotonic() < deadline:
                    rounds += 1
                    with suppress(asyncpg.DeadlockDetectedError):
                        async with owner.transaction():
                            for tournament_id in reversed(ids):
                                await owner.execute(HOLD_HEAD, tournament_id)
                                await asyncio.sleep(0.01)
                    await asyncio.sleep(0.005)
            await stage.resume()
        found = codes(stage, since)
        trial.look("I10", "500" not in found, f"answers were {found}")
        await trial.judge(stage)
        trial.tell(f"{rounds} transactions against it; {found}")


_FOREIGN: Final = '{"competitor_id":%d,"name":"Foreign"}'


@case(
    22,
    "Idle-in-transaction writer",
    "a foreign session appends, waits for 3 s, then commits or rolls back",
    "I1-I10, I12",
)
async def idle_in_transaction(trial: Trial) -> None:
    async with trial.stage() as stage:
        stalls = []
        async with stage.load():
            for n in range(trial.times(8, least=2)):
                async with stage.cluster.owner() as owner:
                    transaction = owner.transaction()
                    await transaction.start()
                    tournament_id = stage.arenas[0].tournament_id
                    await append_text(owner, tournament_id, "CompetitorRegistered", _FOREIGN % (900_000_000 + n))
                    since = time.monotonic()
                    await asyncio.sleep(trial.seconds(3, least=1.5))
                    await (transaction.commit() if n % 2 == 0 else transaction.rollback())
                await stage.resume()
                stalls.append(max(a.ended - a.began for a in stage.history.attempts if a.began >= since and a.ended))
        await trial.judge(stage)
        trial.tell(f"longest wait of a client {max(stalls):.1f} s")


# ── Another database takes its place ────────────────────────────────────────────────────────────────────


@asynccontextmanager
async def standby(trial: Trial, stage: Stage, between: Wire | None = None) -> AsyncIterator[Cluster]:
    """A streaming standby of the stage's database, running; with a wire between them, if one is given."""
    there = await standby_of(trial, stage, between)
    try:
        yield there
    finally:
        there.signal(signal.SIGCONT)
        await there.stop()


async def standby_of(trial: Trial, stage: Stage, between: Wire | None = None) -> Cluster:
    """As `standby`, until somebody stops it."""
    directory = trial.folder / f"standby-{len(list(trial.folder.glob('standby-*')))}"
    return await stage.cluster.standby(directory, f"127.0.0.1 port={between.port}" if between else None)


async def streaming(primary: Cluster, state: str = "async") -> None:
    async def is_streaming() -> bool:
        rows = await primary.fetch("SELECT sync_state FROM pg_stat_replication WHERE state = 'streaming'")
        return any(row["sync_state"] == state for row in rows)

    await until(is_streaming, 30)


async def promoted(stage: Stage, there: Cluster) -> None:
    """The standby is the primary, and what is connected from now on is connected to it."""
    await there.execute("SELECT pg_promote(true, 30)")
    stage.cluster = there


@case(
    23,
    "Failover to an asynchronous standby",
    "kill -9 of the primary under load, while the standby lags; standby promoted",
    "the loss is told and noticed; I3, I5, I7, I8, I10-I12; the others break by the loss",
)
async def asynchronous_failover(trial: Trial) -> None:
    async with trial.stage() as stage, wire(stage.cluster.target) as between, standby(trial, stage, between) as other:
        primary = stage.cluster
        await streaming(primary)
        async with stage.load():
            await asyncio.sleep(1)
            between.clog()
            await asyncio.sleep(0.5)
            between.reset_all()
            killed = time.monotonic()
            await taken_over(stage, other)
            await stage.resume()
            back = time.monotonic() - killed
        stage.history.attempts.sort(key=lambda attempt: attempt.began)
        verdicts, lost = await judged_with_loss(stage)
        noticed = sum(program.said.count('"log_forked"') for program in stage.programs)
        trial.look("I8", lost == 0 or noticed > 0, f"{lost} were lost and nobody noticed")
        trial.show(lost > 0, "nothing was lost")
        stage.resumed[:] = [back]
        trial.take(stage, verdicts)
        trial.tell(
            f"{lost} acknowledged lost (the standby was behind by 0.5 s), noticed {noticed} times; back after "
            f"{back:.1f} s"
        )


async def judged_with_loss(stage: Stage) -> tuple[Verdicts, int]:
    """What holds of a log that another took the place of, and how many acknowledged changes are gone.

    I1, I2, I4, I6 and I9, and the heads seen earlier, are broken by the loss itself: they are not judged where there is
    one.
    """
    evidence = await stage.evidence()
    evidence.heads.clear()
    verdicts = judge(evidence)
    lost = len(verdicts.wrong.get("I1", []))
    if lost:
        for invariant in ("I1", "I2", "I4", "I6", "I9"):
            verdicts.wrong.pop(invariant, None)
            del verdicts.looked_at[invariant]
    return verdicts, lost


@case(
    24,
    "Failover to a synchronous standby",
    "standby stopped: commits wait; continued; primary killed under load, standby promoted. Again at random moments "
    "under a mixed load, each time with a new standby",
    "I1-I12; `verify` clean after each",
)
async def synchronous_failover(trial: Trial) -> None:
    await _silent_standby(trial)
    left = trial.times(50, least=2)
    done = 0
    while left:
        async with (
            AsyncExitStack() as stack,
            trial.stage(seed=trial.seed + done) as stage,
            ended_with(stack, stage),
        ):
            for _ in range(min(left, FAILOVERS_OF_A_STAGE)):
                await failover(trial, stage)
                left, done = left - 1, done + 1
            await trial.judge(stage)
    wrong = {name: len(faults) for name, faults in trial.verdicts.wrong.items()}
    trial.tell(f"{done} failovers at random moments: wrong {wrong or 'nothing'}")


async def failover(trial: Trial, stage: Stage) -> None:
    """A new standby takes the place of the primary, which is killed under load."""
    primary = stage.cluster
    other = await synchronous_standby(trial, stage)
    async with stage.load(clients=6, mix=MIXED, keyless=0.3):
        await asyncio.sleep(trial.random.uniform(0, 2))
        await taken_over(stage, other)
        await stage.resume()
        await asyncio.sleep(trial.random.uniform(0, 0.5))
    shutil.rmtree(primary.data_dir / "postgres", ignore_errors=True)
    await stage.settled()
    await stage.caught_up()
    await look_whole(trial, stage.cluster)


async def synchronous_standby(trial: Trial, stage: Stage) -> Cluster:
    """A new standby, for which each commit waits from now on."""
    primary, other = stage.cluster, await standby_of(trial, stage)
    await streaming(primary)
    await primary.execute("ALTER SYSTEM SET synchronous_standby_names = 'standby'")
    await primary.execute("SELECT pg_reload_conf()")
    await streaming(primary, "sync")
    return other


async def taken_over(stage: Stage, other: Cluster) -> None:
    """The primary is killed, and the standby takes its place."""
    await stage.cluster.kill()
    for one in [*stage.back, *stage.tables]:
        one.reset_all()
    await promoted(stage, other)


async def _silent_standby(trial: Trial) -> None:
    async with AsyncExitStack() as stack, trial.stage() as stage, ended_with(stack, stage):
        other = await synchronous_standby(trial, stage)
        async with stage.load():
            await asyncio.sleep(1)
            other.signal(signal.SIGSTOP)
            await asyncio.sleep(0.5)
            since = time.monotonic()
            await asyncio.sleep(trial.seconds(16, least=13))
            early = [
                a
                for a in stage.history.attempts
                if a.began >= since
                and a.outcome is Outcome.OK
                and a.asked.kind is not Kind.LIST
                and a.ended < time.monotonic()
            ]
            trial.look("I1", not early, f"{len(early)} were acknowledged without the standby: {early[:2]}")
            unconfirmed = sum(service.said.count('"commit_unconfirmed"') for service in stage.services)
            other.signal(signal.SIGCONT)
            await stage.resume()
            await asyncio.sleep(0.5)
            killed = time.monotonic()
            await taken_over(stage, other)
            await stage.resume()
        await trial.judge(stage)
        told = codes(stage, 0)
        trial.tell(
            f"no write acknowledged while the standby was silent ({unconfirmed} told as unconfirmed by the server); "
            f"back {time.monotonic() - killed:.1f} s after the kill; {told}"
        )


@case(
    25,
    "A standby in the primary's place",
    "all connections led to a standby that lags; then back",
    "no write, no stale read, I1-I10, I12; if the old primary runs on: as case 23",
)
async def led_to_a_standby(trial: Trial) -> None:
    async with trial.stage() as stage, standby(trial, stage) as other:
        primary = stage.cluster
        await streaming(primary)
        async with stage.load(), stage.load(clients=2, kind=Kind.LIST):
            await asyncio.sleep(0.5)
            async with other.owner() as owner:
                await owner.execute("SELECT pg_wal_replay_pause()")
            await asyncio.sleep(0.5)
            for _ in range(trial.times(6, least=2)):
                for there in (other, primary):
                    stage.cluster = there
                    for one in [*stage.back, *stage.tables]:
                        one.reset_all()
                    await asyncio.sleep(trial.random.uniform(1, 2) if there is other else 0)
                await stage.resume()
        async with other.owner() as owner:
            await owner.execute("SELECT pg_wal_replay_resume()")
        await trial.judge(stage)
        trial.tell(str(codes(stage, 0)))
    await _unfenced(trial)


async def _unfenced(trial: Trial) -> None:
    """The old primary, paused while a standby takes its place, goes on with those who are still connected to it."""
    async with trial.stage() as stage, standby(trial, stage) as other:
        primary = stage.cluster
        await streaming(primary)
        async with stage.load():
            await asyncio.sleep(0.5)
            primary.signal(signal.SIGSTOP)
            await promoted(stage, other)
            stage.back[0].reset_all()  # one service is led to the new one, the other is still connected to the old
            primary.signal(signal.SIGCONT)
            await asyncio.sleep(trial.seconds(10, least=2))
            await primary.kill()
            for one in [*stage.back, *stage.tables]:
                one.reset_all()
            await stage.resume()
        verdicts, lost = await judged_with_loss(stage)
        noticed = sum(program.said.count('"log_forked"') for program in stage.programs)
        trial.look("I8", lost == 0 or noticed > 0, f"{lost} were lost and nobody noticed")
        trial.show(lost > 0, "the old primary took nothing that is gone with it")
        trial.take(stage, verdicts)
        trial.tell(
            f"an old primary that nobody stopped took {lost} changes that are gone with it, noticed {noticed} times"
        )


_TABLES: Final = (
    *("block", "topic", "personal", "append_lock", "refusal", "idempotency"),
    *("checkpoint", "total", "unity", "competitor"),
)


@case(
    26,
    "DDL during load",
    "columns added to the log's tables, an index built concurrently, a column dropped",
    "I1-I10",
)
async def ddl(trial: Trial) -> None:
    async with trial.stage() as stage:
        since = time.monotonic()
        async with stage.load():
            for n in range(trial.times(8, least=2)):
                for table in _TABLES:
                    await stage.cluster.execute(f"ALTER TABLE {table} ADD COLUMN extra_{n} int")
                await stage.cluster.execute(f"CREATE INDEX CONCURRENTLY extra_{n} ON block (recorded_at)")
                await stage.cluster.execute(f"DROP INDEX CONCURRENTLY extra_{n}")
                for table in _TABLES:
                    await stage.cluster.execute(f"ALTER TABLE {table} DROP COLUMN extra_{n}")
            await stage.resume()
        found = codes(stage, since)
        trial.look("I10", "500" not in found, f"answers were {found}")
        await trial.judge(stage)
        trial.tell(str(found))
