"""Cases 1 to 8: what is killed, and what a crash takes with it."""

import asyncio
import fcntl
import os
import re
import signal
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from api.http.forms import BODY_BYTES_MAX
from assurance.faults.checker import judge
from assurance.faults.history import Kind
from assurance.faults.stage import Stage
from assurance.faults.table import CannotBeMade, Trial, case, control
from assurance.faults.tools import EXT4, MOUNT, PRLIMIT, STRACE
from benchmarks.machine import rss_bytes
from engine.process.failpoints import VARIABLE, Point
from tests.desks import until
from tests.running import TALLYBOOK, environment, lives

_BACKENDS: Final = (
    "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'tallybook%' AND pid <> pg_backend_pid()"
)


@case(
    1,
    "PostgreSQL crash",
    "kill -9 of all of PostgreSQL, every fifth time SIGQUIT; started again",
    "I1-I10, I12",
)
async def postgres_crash(trial: Trial) -> None:
    async with trial.stage() as stage:
        cycles = trial.times(100)
        async with stage.load():
            for n in range(cycles):
                await asyncio.sleep(trial.random.uniform(0.1, 0.6))
                await (stage.cluster.quit() if n % 5 == 4 else stage.cluster.kill())
                await stage.cluster.start()
                await stage.resume()
        await trial.judge(stage)
        trial.tell(f"{cycles} crashes")


@case(2, "One backend killed", "kill -9 of one session: PostgreSQL resets all", "I1-I10, I12")
async def backend_killed(trial: Trial) -> None:
    async with trial.stage() as stage:
        cycles = trial.times(20)
        async with stage.load():
            for _ in range(cycles):
                await asyncio.sleep(trial.random.uniform(0.1, 0.6))
                pids = [row["pid"] for row in await stage.cluster.fetch(_BACKENDS)]
                os.kill(trial.random.choice(pids), signal.SIGKILL)
                await stage.resume()
        await trial.judge(stage)
        trial.tell(f"{cycles} sessions killed")


@case(
    3,
    "API killed",
    "kill -9 before an append, when it is sent, when it is committed",
    "I1-I10, I12",
)
async def api_killed(trial: Trial) -> None:
    deaths = 0
    async with trial.stage() as stage:
        for point in (Point.APPEND, Point.APPEND_SENT, Point.APPEND_COMMITTED):
            before = sum(service.deaths for service in stage.services)
            armed = [{VARIABLE: f"{point}:{trial.random.randint(8, 20)}"} for _ in stage.services]
            await asyncio.gather(*(s.again(**how) for s, how in zip(stage.services, armed, strict=True)))
            cycles = trial.times(34)
            async with stage.load():
                await until(lambda b=before, c=cycles: sum(s.deaths for s in stage.services) >= b + c, 60 + 5 * cycles)
            deaths += sum(service.deaths for service in stage.services) - before
        await asyncio.gather(*(service.again(**{VARIABLE: ""}) for service in stage.services))
        async with stage.load(clients=2):
            pass
        unknown = await stage.settled()
        await trial.judge(stage)
        trial.tell(f"{deaths} deaths, {unknown} left unknown at the end, all settled by their keys")


@case(
    4,
    "Worker killed",
    "kill -9 when a fold is claimed, read, saved, committed",
    "I1-I7, I12",
)
async def worker_killed(trial: Trial) -> None:
    async with trial.stage() as stage:
        points = [Point.FOLD_CLAIMED, Point.FOLD_READ, Point.FOLD_SAVED, Point.FOLD_COMMITTED]
        cycles = trial.times(25)
        async with stage.load():
            for point in points:
                for n in range(cycles):
                    other = stage.workers[1]
                    if n % 2 == 0 and other.running.process.poll() is None:
                        other.kill()
                    worker = stage.workers[0]
                    await worker.again(**{VARIABLE: f"{point}:{trial.random.randint(1, 4)}"})
                    await until(lambda w=worker: w.running.process.poll() is not None, 30)
                    if n % 2 == 1:
                        await other.again()
        for worker in stage.workers:
            await worker.again(**{VARIABLE: ""})
        took = await stage.caught_up()
        trial.look("I12", took <= stage.resumed_seconds_max, f"the tables were whole after {took:.1f} s")
        await trial.judge(stage)
        trial.tell(f"{cycles * len(points)} deaths; tables whole {took:.1f} s after the last")


@case(
    5,
    "Crash in a rebuild",
    "kill -9 of `tallybook rebuild` of damaged tables, under load",
    "I5, I6",
)
async def crash_in_rebuild(trial: Trial) -> None:
    async with trial.stage(workers=1) as stage:
        kills = 0
        variables = environment(TALLYBOOK_DATABASE_URL=stage.cluster.dsn)
        async with stage.load(pause_seconds=0.005):
            await asyncio.sleep(trial.seconds(10, least=2))
            undisturbed = await _rebuilt(trial, variables)
            for _ in range(trial.times(20, least=3)):
                await stage.cluster.execute(
                    "UPDATE total SET total = total + 1 WHERE unity_id = $1", stage.arenas[0].unities[0]
                )
                process = await asyncio.create_subprocess_exec(
                    TALLYBOOK, "rebuild", env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
                )
                with suppress(TimeoutError):
                    async with asyncio.timeout(undisturbed * trial.random.random()):
                        await process.wait()
                if process.returncode is None:
                    process.kill()
                    kills += 1
                await process.wait()
        trial.show(kills > 0, "no rebuild was killed")
        trial.tell(
            f"{kills} killed; the last took {await _rebuilt(trial, variables):.1f} s, the first {undisturbed:.1f}"
        )
        await trial.judge(stage)


async def _rebuilt(trial: Trial, variables: dict[str, str]) -> float:
    """Seconds that a whole rebuild takes."""
    began = time.monotonic()
    done = await asyncio.create_subprocess_exec(
        TALLYBOOK, "rebuild", env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    trial.look("I5", await done.wait() == 0, "a rebuild that nobody disturbed failed")
    return time.monotonic() - began


ROOM_BYTES: Final = 16 << 20
_NO_MEMORY: Final = "MemoryError"
_TRACEBACK: Final = "Traceback (most recent call last):"


@case(
    6,
    "Out of memory",
    f"services with {ROOM_BYTES >> 20} MiB to spare; 40 of the largest bodies at once, repeatedly",
    "I10, but requests without memory get 500 and are logged; I12",
    tools=(PRLIMIT,),
)
async def out_of_memory(trial: Trial) -> None:
    async with trial.stage(services=2) as stage:
        peak = 0
        for service in stage.services:
            limit = _address_space(service.pid) + ROOM_BYTES
            subprocess.run(["prlimit", f"--pid={service.pid}", f"--as={limit}"], check=True)

        async def send(n: int) -> None:
            reader, writer = await asyncio.open_connection("127.0.0.1", stage.front[n % 2].port)
            arena = stage.arenas[n % len(stage.arenas)]
            body = b"participants_delta=" + b"9" * (BODY_BYTES_MAX - 64)
            head = (
                f"PUT /tournament/{arena.slug}/rankings/{arena.ranking_id}/add.json HTTP/1.1\r\nHost: t\r\n"
                f"Authorization: Bearer {stage.token}\r\nContent-Type: application/x-www-form-urlencoded\r\n"
                f"Content-Length: {len(body)}\r\n\r\n"
            )
            with suppress(OSError, EOFError, TimeoutError):
                async with asyncio.timeout(20):
                    writer.write(head.encode() + body)
                    await writer.drain()
                    status = int((await reader.readuntil(b"\r\n"))[9:12])
                    trial.look("I10", status in (400, 413, 422, 500, 503, 408), f"a huge body was answered {status}")
            writer.transport.abort()

        async with stage.load(clients=4):
            for _ in range(trial.times(5)):
                await asyncio.gather(*(send(n) for n in range(40)))
                for service in stage.services:
                    with suppress(OSError):
                        peak = max(peak, rss_bytes(service.pid))
            await stage.resume()
        evidence = await stage.evidence()
        without_memory = evidence.lines.count(_NO_MEMORY)
        trial.look("I10", evidence.lines.count(_TRACEBACK) == without_memory, "there is a traceback of something else")
        evidence.lines = [line for line in evidence.lines if _NO_MEMORY not in line and line != _TRACEBACK]
        trial.take(stage, judge(evidence))
        deaths = sum(service.deaths for service in stage.services)
        refused = sum(service.said.count(_NO_MEMORY) for service in stage.services)
        trial.show(deaths + refused > 0, "the limit was not reached")
        trial.tell(f"peak {peak / 2**20:.0f} MiB resident; {refused} times no memory, {deaths} processes started again")


def _address_space(pid: int) -> int:
    """The bytes that a process has mapped."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[0])
    return pages * os.sysconf("SC_PAGE_SIZE")


# ── Lost writes ─────────────────────────────────────────────────────────────────────────────────────────

_SHUTDOWN: Final = 0x8004587D  # EXT4_IOC_SHUTDOWN
_WITHOUT_FLUSH: Final = 2


@contextmanager
def disk(folder: Path, megabytes: int = 700) -> Iterator[Path]:
    """A file system of its own that can lose what was not synced. Raises CannotBeMade."""
    folder.mkdir(parents=True, exist_ok=True)
    image, place = folder / "disk", folder / "mounted"
    place.mkdir()
    with image.open("wb") as file:
        file.truncate(megabytes << 20)
    try:
        subprocess.run(["mkfs.ext4", "-q", str(image)], check=True, capture_output=True)
        subprocess.run(["mount", "-o", "loop", str(image), str(place)], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise CannotBeMade(f"no file system can be mounted: {error}") from error
    try:
        yield place
    finally:
        _unmount(place)


def _unmount(place: Path) -> None:
    for _ in range(100):
        if subprocess.run(["umount", str(place)], check=False, capture_output=True).returncode == 0:
            return
        time.sleep(0.1)
    subprocess.run(["umount", "-l", str(place)], check=False)


def lose_power(place: Path) -> None:
    """From this moment nothing more reaches the disk, and what was not synced is lost."""
    descriptor = os.open(place, os.O_RDONLY)
    try:
        fcntl.ioctl(descriptor, _SHUTDOWN, struct.pack("I", _WITHOUT_FLUSH))
    finally:
        os.close(descriptor)


def power_returns(place: Path) -> None:
    _unmount(place)
    subprocess.run(["mount", "-o", "loop", str(place.parent / "disk"), str(place)], check=True, capture_output=True)


async def _power_failures(trial: Trial, stage: Stage, place: Path, cycles: int) -> None:
    async with stage.load(clients=6):
        for _ in range(cycles):
            await asyncio.sleep(trial.random.uniform(0.3, 1.0))
            lose_power(place)
            with suppress(OSError):
                await stage.cluster.kill()
            await asyncio.to_thread(power_returns, place)
            await stage.cluster.start()
            await stage.resume()


@case(
    7,
    "Lost un-fsynced data",
    "ext4 shut down under load without a flush (EXT4_IOC_SHUTDOWN), PostgreSQL killed; mounted again",
    "I1-I10, I12",
    tools=(EXT4, MOUNT),
)
async def lost_writes(trial: Trial) -> None:
    with disk(trial.folder / "disk") as place:
        async with trial.stage(data_dir=place / "data") as stage:
            os.sync()  # the copy that the stage is, that is: no PostgreSQL would forget that
            cycles = trial.times(30)
            await _power_failures(trial, stage, place, cycles)
            await trial.judge(stage)
            trial.tell(f"{cycles} power failures")


@control(
    "fsync",
    "fsync = off, behind the service's back: acknowledged changes are lost",
    tools=(EXT4, MOUNT),
)
async def without_fsync(trial: Trial) -> str:
    with disk(trial.folder / "disk") as place:
        async with trial.stage(data_dir=place / "data", workers=0) as stage:
            await stage.cluster.stop()
            stage.cluster.settings["fsync"] = "off"
            await stage.cluster.start()
            os.sync()
            async with stage.load(clients=6):
                await asyncio.sleep(2)
            for service in stage.services:
                await service.end()
            lose_power(place)
            with suppress(OSError):
                await stage.cluster.kill()
            await asyncio.to_thread(power_returns, place)
            try:
                await stage.cluster.start()
            except Exception as error:
                return f"the cluster did not even start: {type(error).__name__}"
            for service in stage.services:
                service.close()
            stage.services.clear()
            verdicts = judge(await stage.evidence(settle=False, tables=False))
            lost = len(verdicts.wrong.get("I1", []))
            return f"{lost} of {verdicts.looked_at['I1']} acknowledged lost" if lost else ""


# ── The sync before the answer ──────────────────────────────────────────────────────────────────────────


@case(
    8,
    "Sync before the answer",
    "strace of all sessions and the WAL writer, one client writing",
    "a WAL sync between each append and its answer",
    tools=(STRACE,),
)
async def sync_before_answer(trial: Trial) -> None:
    async with trial.stage(workers=0, services=1) as stage:
        client = stage.client()
        for _ in range(5):
            await client.attempt(client.draw(Kind.ADD, 0), 0)
        pids = [row["pid"] for row in await stage.cluster.fetch(_BACKENDS)]
        rows = await stage.cluster.fetch("SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'")
        output = stage.folder / "strace"
        names = _true_pids(stage, pids + [row["pid"] for row in rows])
        command = [
            "strace",
            "-f",
            "-ttt",
            "-s",
            "400",
            "-e",
            "trace=fdatasync,fsync,sendto,recvfrom",
            "-o",
            str(output),
        ]
        process = await asyncio.create_subprocess_exec(
            *command, *(word for pid in names for word in ("-p", str(pid))), stderr=subprocess.DEVNULL
        )
        await until(lambda: output.exists() and process.pid and _traced(names), 20)
        for _ in range(trial.times(500, least=50)):
            await client.attempt(client.draw(Kind.ADD, 0), 0)
        process.send_signal(signal.SIGINT)
        await process.wait()
        answers = synced = syncs = 0
        fresh: dict[str, bool] = {}
        for line in output.read_text(errors="replace").splitlines():
            pid, _, call = line.split(maxsplit=2)
            if "recvfrom(" in call or "recvfrom resumed" in call:
                fresh[pid] = False
            elif "sync" in call and call.endswith("= 0"):  # it has returned
                syncs += 1
                fresh = dict.fromkeys({*fresh, pid}, True)
            elif call.startswith("sendto(") and "appended" in call:
                answers += 1
                synced += fresh.get(pid, False)
        trial.look("I1", answers > 0 and synced == answers, f"of {answers} answers {synced} came after a sync")
        trial.tell(f"{answers} answers to appends, {synced} after a sync; {syncs} syncs")
        trial.outcomes.update(stage.history.outcomes())


def _true_pids(stage: Stage, pids: list[int]) -> list[int]:
    """PostgreSQL says what its own name space calls them, which here is the same."""
    return [pid for pid in pids if lives(pid) and pid in stage.cluster.pids()]


def _traced(pids: list[int]) -> bool:
    return all(re.search(r"TracerPid:\s+[1-9]", Path(f"/proc/{pid}/status").read_text()) for pid in pids)
