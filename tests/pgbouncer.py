"""A PgBouncer between the service and PostgreSQL, where one is installed; else the test is skipped."""

import asyncio
import os
import shutil
import socket
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, quote, urlsplit, urlunsplit

import asyncpg
import pytest

from tests.desks import until

DROPPED: Final = (
    "role, search_path, client_min_messages, lock_timeout, statement_timeout, idle_in_transaction_session_timeout, "
    "jit, enable_seqscan, enable_bitmapscan"
)
"""What an operator tells it to ignore who wants to be rid of its `unsupported startup parameter`."""
_PORT: Final = 6432
_STOP_SECONDS_MAX: Final = 60


@asynccontextmanager
async def pgbouncer(dsn: str, mode: str, *, logins: tuple[str, ...] = (), **settings: str) -> AsyncIterator[str]:
    """The address by which the database at `dsn`, which must be reached by a unix socket, is reached through it. It
    lets in the login of that address, who may administer it, and `logins`."""
    program = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        pytest.skip("pgbouncer is not installed")
    with tempfile.TemporaryDirectory(prefix="pgbouncer-") as name:
        directory = Path(name)
        _configure(directory, dsn, logins, {"pool_mode": mode} | settings)
        # It refuses to be root; in a user namespace root is somebody else and keeps its files.
        prefix = ["unshare", "--user", "--map-user=1000", "--map-group=1000"] if os.geteuid() == 0 else []
        with (directory / "said").open("wb") as said:
            process = await asyncio.create_subprocess_exec(
                *prefix, program, str(directory / "ini"), stdout=said, stderr=said
            )
        try:
            await until(lambda: _is_ready(process, directory))
            yield urlunsplit(urlsplit(dsn)._replace(query=f"host={quote(name)}&port={_PORT}"))
        finally:
            process.terminate()
            async with asyncio.timeout(_STOP_SECONDS_MAX):
                await process.wait()


@asynccontextmanager
async def reporting(dsn: str, mode: str) -> AsyncIterator[str]:
    """The address of a pooler that says in which mode it is, as PgBouncer does from 1.26 on, and does no more."""
    (server,), (port,) = map(parse_qs(urlsplit(dsn).query).__getitem__, ("host", "port"))
    said = b"pgbouncer.pool_mode\0" + mode.encode() + b"\0"

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing(writer), suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_server, to_server = await asyncio.open_unix_connection(f"{server}/.s.PGSQL.{port}")
        to_server.write(await reader.read(65536))
        writer.write(await from_server.readexactly(9))  # it is let in
        writer.write(b"S" + (len(said) + 4).to_bytes(4, "big") + said)
        await asyncio.gather(pump(reader, to_server), pump(from_server, writer))

    with tempfile.TemporaryDirectory(prefix="pooler-") as folder:
        async with await asyncio.start_unix_server(serve, Path(folder) / f".s.PGSQL.{_PORT}"):
            yield urlunsplit(urlsplit(dsn)._replace(query=f"host={quote(folder)}&port={_PORT}"))


async def administered(dsn: str, statement: str) -> None:
    """Has the PgBouncer at `dsn` do what its console understands, such as RECONNECT."""
    connection = await asyncpg.connect(
        urlunsplit(urlsplit(dsn)._replace(path="/pgbouncer")), statement_cache_size=0, timeout=5
    )
    try:
        await connection.execute(statement)
    finally:
        connection.terminate()  # the console does not understand what asyncpg says at its end


def _configure(directory: Path, dsn: str, logins: tuple[str, ...], settings: dict[str, str]) -> None:
    parts = urlsplit(dsn)
    query = parse_qs(parts.query)
    (server,) = query["host"]
    (port,) = query["port"]
    administrator = parts.username or ""
    (directory / "users").write_text("".join(f'"{login}" ""\n' for login in (administrator, *logins)))
    chosen = {
        "listen_port": str(_PORT),
        "unix_socket_dir": str(directory),
        "auth_type": "trust",
        "auth_file": str(directory / "users"),
        "admin_users": administrator,
    } | settings
    lines = "".join(f"{name} = {value}\n" for name, value in chosen.items())
    (directory / "ini").write_text(f"[databases]\n* = host={server} port={port}\n[pgbouncer]\n{lines}")


def _is_ready(process: asyncio.subprocess.Process, directory: Path) -> bool:
    assert process.returncode is None, (directory / "said").read_text()
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(directory / f".s.PGSQL.{_PORT}")) == 0
