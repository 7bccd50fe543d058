"""PostgreSQL as others run it: a login without rights, TLS, passwords that change, several hosts, an address in IPv6.

The embedded server has no TLS, so a front in this process does for it what the proxies of providers do.
"""

import asyncio
import shutil
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

import asyncpg
import pytest

from assurance.faults.cluster import Cluster, cluster
from assurance.faults.resources import streaming
from engine.database.migrator import as_owner, migrate, shipped
from engine.database.pool import DATABASE_TROUBLE, Database, open_database
from engine.domain.errors import DatabaseUnavailable, StartupRefused
from engine.domain.terms import OPERATOR
from projections.verification.all_tournaments import Plan, verify_all
from tests.desks import GUARD_SECONDS
from tests.service import serve
from tests.tournaments import open_new_tournament

_SSL_REQUEST: Final = bytes.fromhex("0000000804d2162f")
_openssl: Final = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")


def certificate(folder: Path) -> Path:
    """A certificate for ::1 that is its own authority; its key lies in the folder, too."""
    folder.mkdir()
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=provider", "-addext", "subjectAltName=IP:::1", "-keyout", "key", "-out", "certificate"],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip
    return folder / "certificate"


@asynccontextmanager
async def with_tls(server: Cluster, certificate: Path) -> AsyncIterator[int]:
    """The port at ::1 that leads to the server, for clients that ask for TLS; others are hung up on."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, certificate.with_name("key"))

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError), closing(writer):
            while data := await reader.read(65536):
                writer.write(data)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError), closing(writer):
            if await reader.readexactly(len(_SSL_REQUEST)) == _SSL_REQUEST:
                writer.write(b"S")
                await writer.start_tls(context)
                to_server = await asyncio.open_unix_connection(server.socket_path)
                await asyncio.gather(pump(reader, to_server[1]), pump(to_server[0], writer))

    async with await asyncio.start_server(serve, "::1", 0, family=socket.AF_INET6) as front:
        yield front.sockets[0].getsockname()[1]


@asynccontextmanager
async def rented(folder: Path) -> AsyncIterator[Cluster]:
    """A server with a database `rented`, in which the login `tenant` may create schemas, and nothing else."""
    async with cluster(folder / "server") as server:
        for statement in (
            "CREATE ROLE tallybook_service NOLOGIN",
            "CREATE ROLE tenant LOGIN PASSWORD 'first' IN ROLE tallybook_service",
            "ALTER ROLE tenant SET statement_timeout = '5s'",
            "CREATE DATABASE rented",
            "REVOKE ALL ON DATABASE rented FROM PUBLIC",
            "GRANT CONNECT, CREATE ON DATABASE rented TO tenant",
        ):
            await server.execute(statement)
        there = await asyncpg.connect(server.dsn.replace("/tallybook?", "/rented?"))
        await there.execute("REVOKE ALL ON SCHEMA public FROM PUBLIC")
        await there.close()
        settings = folder / "server" / "postgres" / "pg_hba.conf"
        settings.write_text("local all tenant scram-sha-256\nlocal all all trust\n")
        await server.execute("SELECT pg_reload_conf()")
        yield server


async def refused(dsn: str) -> str:
    with pytest.raises(StartupRefused) as refusal:
        await migrate(dsn)
    return refusal.value.message


async def opens_again(database: Database) -> None:
    """Returns when a tournament can be opened."""
    async with asyncio.timeout(GUARD_SECONDS):
        while True:
            with suppress(*DATABASE_TROUBLE, DatabaseUnavailable):
                await open_new_tournament(database, actor=OPERATOR)
                return


@_openssl
async def test_a_tenant_without_rights_behind_tls_continues_with_a_new_password(tmp_path: Path) -> None:
    own, foreign = certificate(tmp_path / "own"), certificate(tmp_path / "foreign")
    passwords = tmp_path / "passwords"
    passwords.write_text("*:*:*:*:first\n")
    passwords.chmod(0o600)
    async with rented(tmp_path) as server, with_tls(server, own) as port:

        def address(**options: object) -> str:
            return f"postgresql://tenant@[::1]:{port}/rented?" + urlencode({"passfile": passwords, **options})

        assert (await refused(address(sslmode="disable"))).startswith("Cannot connect to the database: ")
        strange = await refused(address(sslmode="verify-full", sslrootcert=foreign))
        assert "certificate verify failed" in strange
        verified = address(sslmode="verify-full", sslrootcert=own)
        assert len(await migrate(verified)) == len(shipped())
        async with as_owner(verified) as connection:
            assert await connection.fetchval("SELECT current_setting('statement_timeout')") == "10min"
        async with open_database(verified, name="test") as database:
            await open_new_tournament(database, actor=OPERATOR)
            await server.execute("ALTER ROLE tenant PASSWORD 'second'")
            await server.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'tenant'")
            with pytest.raises(asyncpg.InvalidPasswordError):
                await asyncpg.connect(verified)
            passwords.write_text("*:*:*:*:second\n")
            await opens_again(database)


async def test_of_several_hosts_the_primary_is_found_also_after_a_failover(tmp_path: Path) -> None:
    async with cluster(tmp_path / "one") as one:
        two = await one.standby(tmp_path / "two")
        await streaming(one)
        hosts = ",".join(str(Path(server.socket_path).parent) for server in (two, one))
        address = f"postgresql://tallybook@/tallybook?host={hosts}&port=5432,5432"
        try:
            assert len(await migrate(address)) == len(shipped())
            async with open_database(address, name="test") as database:
                await open_new_tournament(database, actor=OPERATOR)
                await one.kill()
                await two.execute("SELECT pg_promote(true, 30)")
                await opens_again(database)
        finally:
            await two.stop()


async def test_a_server_without_fsync_is_used_only_where_its_owner_says_what_keeps_commits(tmp_path: Path) -> None:
    async with cluster(tmp_path, fsync="off", full_page_writes="off") as server:
        await migrate(server.dsn)
        with pytest.raises(StartupRefused, match="fsync = off"):
            async with open_database(server.dsn, name="test"):
                pass
        await server.execute("ALTER DATABASE tallybook SET tallybook.durable_elsewhere = 'replicated page servers'")
        async with serve(server.dsn) as service:
            ready = await service.client("", None).send("GET", "/readyz")
            assert ready.json["durable_elsewhere"] == "replicated page servers"
            report = await verify_all(service.database, Plan(), on_difference=print, on_events=lambda *_: None)
            assert [said for said in report.unchecked if "page servers" in said] == [
                "that the database keeps what it confirmed: replicated page servers is trusted to, not the server"
            ]
        await server.execute("ALTER DATABASE tallybook SET synchronous_commit = off")
        with pytest.raises(StartupRefused, match="synchronous_commit = off"):
            async with open_database(server.dsn, name="test"):
                pass
