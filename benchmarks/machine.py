"""The machine, the versions and the commit that figures belong to, and the resources that processes use.

Costs are read from /proc, so the programs that need them run on Linux only.
"""

import os
import platform
import re
import subprocess
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from msgspec import Struct

ROOT: Final = Path(__file__).resolve().parents[1]
"""The directory of the project."""
PACKAGES: Final = (
    "aiohttp",
    "asyncpg",
    "eventsourcing",
    "hiredis",
    "msgspec",
    "psycopg",
    "redis",
    "structlog",
    "umadb",
    "uvloop",
)
_TICKS_PER_SECOND: Final = os.sysconf("SC_CLK_TCK")
_CPUCLOCK_SCHED: Final = 2
"""How the clock id of a process (see clock_getcpuclockid) says that it counts time on a processor."""
_IN_MEMORY: Final = ("tmpfs", "ramfs")


class Machine(Struct, frozen=True, kw_only=True):
    """The facts that every figure depends on."""

    processor: str
    cores: int
    memory_gib: float
    system: str
    file_system: str
    python: str
    versions: dict[str, str]
    commit: str


def described(data_directory: Path, versions: dict[str, str]) -> Machine:
    """This machine; `versions` are those of programs, to which those of Python packages are added."""
    return Machine(
        processor=_processor(),
        cores=os.cpu_count() or 0,
        memory_gib=round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        system=f"{platform.system()} {platform.release()}",
        file_system=file_system(data_directory),
        python=platform.python_version(),
        versions=versions | _package_versions(),
        commit=_commit(),
    )


def file_system(directory: Path) -> str:
    """The type of the file system that `directory` lies on."""
    found = "unknown"
    longest = -1
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, mounted_at, kind, *_ = line.split(" ")
        if directory.resolve().is_relative_to(mounted_at) and len(mounted_at) > longest:
            found, longest = kind, len(mounted_at)
    return found


def is_durable(directory: Path) -> bool:
    """Whether synced data is on a disk there: in memory, an fsync costs nothing and means nothing."""
    return file_system(directory) not in _IN_MEMORY


def _processor() -> str:
    found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return found[1] if found else platform.machine()


def _package_versions() -> dict[str, str]:
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _commit() -> str:
    commit = _git("rev-parse", "--short=12", "HEAD")
    return f"{commit} with local changes" if _git("status", "--porcelain") else commit


def _git(*arguments: str) -> str:
    result = subprocess.run(["git", *arguments], cwd=ROOT, check=False, capture_output=True, text=True)
    return result.stdout.strip() if result.returncode == 0 else "unknown"


# ── Processes ───────────────────────────────────────────────────────────────────────────────────────────


def cpu_seconds(pid: int) -> float:
    """Processor time that a process has used so far; 0 if it is gone."""
    fields = _stat(Path(f"/proc/{pid}"))
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_SECOND if fields else 0.0  # utime and stime


def processor_seconds(pid: int) -> float:
    """Like `cpu_seconds`, but to the microsecond, from the process's own clock."""
    try:
        return time.clock_gettime(~pid << 3 | _CPUCLOCK_SCHED)
    except OSError:
        return 0.0


def peak_rss_bytes(pid: int) -> int:
    """The peak resident memory of a process, including memory that it shares with others."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) * 1024 if found else 0


def pss_bytes(pid: int) -> int:
    """Resident memory of a process, counting only its share of shared memory. 0 if it is gone."""
    try:
        found = re.search(r"^Pss:\s+(\d+) kB", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE)
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return int(found[1]) * 1024 if found else 0


def rss_bytes(pid: int) -> int:
    """Resident memory of a process, including memory that it shares with others."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) * 1024 if found else 0


def children_of(pid: int) -> list[int]:
    """The processes that `pid` started itself."""
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit() and _parent(entry) == pid]


def command_of(pid: int) -> list[str]:
    """The words that a process was started with."""
    return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]


def _parent(entry: Path) -> int | None:
    fields = _stat(entry)
    return int(fields[1]) if fields else None


def _stat(entry: Path) -> list[str]:
    """The fields of /proc/PID/stat after the name of the command, which may hold blanks. Empty if the process is
    gone."""
    try:
        return (entry / "stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []
