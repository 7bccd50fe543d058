"""What cases need of the machine: the package that each tool comes in, and whether it is here."""

import os
import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Final

from msgspec import Struct

FAKETIME_VARIABLE: Final = "TALLYBOOK_TEST_LIBFAKETIME"
DISTRIBUTED_VARIABLE: Final = "TALLYBOOK_TEST_DISTRIBUTED"


class Tool(Struct, frozen=True, kw_only=True):
    """`package`: the name that Debian gives it, and what else it needs."""

    name: str
    package: str
    is_here: Callable[[], bool]


def _program(name: str) -> Callable[[], bool]:
    return lambda: shutil.which(name) is not None


def _server(name: str) -> Callable[[], bool]:
    return lambda: shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin") is not None


def _mounts() -> bool:
    return os.geteuid() == 0 and shutil.which("mount") is not None


@cache
def _has_time_namespaces() -> bool:
    if shutil.which("unshare") is None:
        return False
    return subprocess.run(["unshare", "--time", "true"], check=False, capture_output=True).returncode == 0


def faketime() -> Path | None:
    """The library that gives a program another time, if it is here or the environment names it."""
    named = os.environ.get(FAKETIME_VARIABLE)
    places = [Path(named)] if named else sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
    return next((place for place in places if place.exists()), None)


STRACE: Final = Tool(name="strace", package="strace", is_here=_program("strace"))
WRK: Final = Tool(name="wrk", package="wrk", is_here=_program("wrk"))
PRLIMIT: Final = Tool(name="prlimit", package="util-linux", is_here=_program("prlimit"))
MOUNT: Final = Tool(name="mount", package="mount, and root", is_here=_mounts)
EXT4: Final = Tool(name="mkfs.ext4", package="e2fsprogs", is_here=_program("mkfs.ext4"))
FAKETIME: Final = Tool(
    name="libfaketime", package=f"libfaketime, or a path in {FAKETIME_VARIABLE}", is_here=lambda: faketime() is not None
)
TIME_NAMESPACE: Final = Tool(name="unshare --time", package="util-linux, and root", is_here=_has_time_namespaces)
PGPOOL: Final = Tool(name="pgpool", package="pgpool2", is_here=_server("pgpool"))
CITUS: Final = Tool(
    name="a Citus cluster on this machine",
    package=f"postgresql-15-citus-13.0, and its address in {DISTRIBUTED_VARIABLE}",
    is_here=lambda: DISTRIBUTED_VARIABLE in os.environ,
)
