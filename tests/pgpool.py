"""A pgpool-II in front of a primary and its standby, where one is installed; else the test is skipped."""

import asyncio
import os
import shutil
import socket
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlsplit, urlunsplit

import pytest

from assurance.faults.cluster import Cluster
from tests.desks import until

_PORT: Final = 9999
_FILES: Final = ("pcp.conf", "pool_hba.conf", "pool_passwd")
_STOP_SECONDS_MAX: Final = 60


@asynccontextmanager
async def pgpool(primary: Cluster, standby: Cluster, **settings: str) -> AsyncIterator[str]:
    """The address by which both are reached through it. Unless `settings` say otherwise, it is as its makers set it,
    and all reads that it would share out among the servers go to the standby."""
    program = shutil.which("pgpool", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        pytest.skip("pgpool is not installed")
    with tempfile.TemporaryDirectory(prefix="pgpool-") as name:
        directory = Path(name)
        _configure(directory, primary, standby, settings)
        with (directory / "said").open("wb") as said:
            process = await asyncio.create_subprocess_exec(
                program, "-n", "-f", "conf", "-F", "pcp.conf", "-a", "pool_hba.conf",
                cwd=directory, stdout=said, stderr=said,
            )  # fmt: skip
        try:
            await until(lambda: _is_ready(process, directory))
            yield urlunsplit(urlsplit(primary.dsn)._replace(query=f"host={quote(name)}&port={_PORT}"))
        finally:
            process.terminate()
            async with asyncio.timeout(_STOP_SECONDS_MAX):
                await process.wait()


def _configure(directory: Path, primary: Cluster, standby: Cluster, settings: dict[str, str]) -> None:
    for file in _FILES:
        (directory / file).touch()
    chosen = {
        "listen_addresses": "",
        "port": str(_PORT),
        "socket_dir": str(directory),
        "pcp_listen_addresses": "",
        "pcp_socket_dir": str(directory),
        "wd_ipc_socket_dir": str(directory),
        "work_dir": str(directory),
        "logdir": str(directory),
        "pid_file_name": str(directory / "pid"),
        "sr_check_user": urlsplit(primary.dsn).username or "",
        "backend_hostname0": str(Path(primary.socket_path).parent),
        "backend_port0": "5432",
        "backend_weight0": "0",
        "backend_hostname1": str(Path(standby.socket_path).parent),
        "backend_port1": "5432",
        "backend_weight1": "1",
    } | settings
    (directory / "conf").write_text("".join(f"{name} = '{value}'\n" for name, value in chosen.items()))


def _is_ready(process: asyncio.subprocess.Process, directory: Path) -> bool:
    assert process.returncode is None, (directory / "said").read_text()
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(directory / f".s.PGSQL.{_PORT}")) == 0
