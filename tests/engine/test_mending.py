"""A database that was copied without its rights, or without where its sequences stand, is named and mended."""

import asyncio
import re
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from typing import Final
from urllib.parse import parse_qs, quote, urlsplit, urlunsplit

import asyncpg
import pytest

from engine.database.mending import _RIGHTS
from engine.database.migrator import migrate, repair, status
from engine.database.pool import open_database
from engine.domain.terms import OPERATOR
from tests.api.cli.conftest import Tallybook
from tests.api.visitor import visiting
from tests.bounds import Bounds
from tests.desks import GUARD_SECONDS
from tests.service import make_token, register, serve, slug_of
from tests.tournaments import open_new_tournament

_GOODBYE: Final = b"X\0\0\0\4"


@asynccontextmanager
async def never_closing(dsn: str) -> AsyncIterator[str]:
    """The address of a server that does not close when a client takes its leave, only when it is gone."""
    (server,), (port,) = map(parse_qs(urlsplit(dsn).query).__getitem__, ("host", "port"))

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing(writer), suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data.removesuffix(_GOODBYE))

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_server, to_server = await asyncio.open_unix_connection(f"{server}/.s.PGSQL.{port}")
        await asyncio.gather(pump(reader, to_server), pump(from_server, writer))

    with tempfile.TemporaryDirectory(prefix="deaf-") as folder:
        async with await asyncio.start_unix_server(serve, f"{folder}/.s.PGSQL.{port}"):
            yield urlunsplit(urlsplit(dsn)._replace(query=f"host={quote(folder)}&port={port}"))


async def test_a_finished_command_ends_even_if_the_server_never_closes(dsn: str, bounds: Bounds) -> None:
    bounds(CLOSE_SECONDS_MAX=0.1)
    async with never_closing(dsn) as address, asyncio.timeout(GUARD_SECONDS):
        assert await migrate(address) == []
        assert await repair(address) == []
        assert (await status(address))[0] == []
        async with open_database(address, name="test") as database:
            await open_new_tournament(database, actor=OPERATOR)


# ── Sequences that lag behind, as after a move by logical replication ────────────────────────────────────


_LAGGING: Final = pytest.mark.one_postgresql("Citus lets nobody restart a distributed sequence")


async def lag(owner: asyncpg.Connection) -> None:
    """As in a database that a schema was restored into, and rows were then replicated to."""
    for row in await owner.fetch("SELECT sequencename FROM pg_sequences WHERE schemaname = 'tallybook'"):
        await owner.execute(f"ALTER SEQUENCE {row['sequencename']} RESTART")


@_LAGGING
async def test_ids_that_exist_are_named_with_the_command_that_moves_their_sequences(
    dsn: str, owner: asyncpg.Connection
) -> None:
    async with serve(dsn) as service:
        token = await make_token(service.database)
        client = service.client(
            await slug_of(service.database, await open_new_tournament(service.database, actor=OPERATOR)), token
        )
        ids = await register(client, "Ada", "Grace")
        async with visiting(service) as visitor:
            await visitor.sign_in(token)
            await lag(owner)
            assert (
                "tallybook migrate"
                in (await Tallybook(dsn).refused("token", "create", "second", "--scope", "admin"))[0]
            )
            refused = await visitor.sign_in(token)
            assert (refused.status, b"tallybook migrate" in refused.body) == (503, True)

            assert [line for line in await repair(dsn) if "resource_id" in line] == [
                f"moved resource_id from 0 to {max(ids)}"
            ]
            assert await repair(dsn) == []
            await Tallybook(dsn).done("token", "create", "second", "--scope", "admin")
            assert (await visitor.sign_in(token)).status == 303


@_LAGGING
async def test_the_statement_for_operators_skips_ids_even_of_sequences_never_used(
    dsn: str, owner: asyncpg.Connection, request: pytest.FixtureRequest
) -> None:
    text = (request.config.rootpath / "docs" / "OPERATIONS.md").read_text(encoding="utf-8")
    (statement,) = re.findall(r"^ +SELECT setval\(format.*\n.*$", text, re.MULTILINE)
    await owner.execute("SELECT setval('resource_id', 5000000)")
    async with serve(dsn) as service:
        token = await make_token(service.database)
        client = service.client(
            await slug_of(service.database, await open_new_tournament(service.database, actor=OPERATOR)), token
        )
        last = max(await register(client, "Ada", "Grace"))
    await lag(owner)
    await repair(dsn)
    await owner.execute(statement)
    assert await owner.fetchval("SELECT nextval('resource_id')") > last + 1_000_000 - 1


# ── Rights ──────────────────────────────────────────────────────────────────────────────────────────────

_LOSSES: Final = {
    "REVOKE ALL ON ALL TABLES IN SCHEMA tallybook FROM tallybook_service": "lacks migrations",
    "REVOKE ALL ON ALL SEQUENCES IN SCHEMA tallybook FROM tallybook_service": "rights on resource_id, webhook_id;",
    "REVOKE ALL ON SCHEMA tallybook FROM tallybook_service": "lacks migrations",
    "REVOKE ALL ON ALL FUNCTIONS IN SCHEMA tallybook FROM tallybook_service": "open_tournament, refuse_keys;",
    "REVOKE INSERT ON token FROM tallybook_service; REVOKE SELECT ON topic FROM tallybook_service": "on token, topic;",
    "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA tallybook TO PUBLIC": "",
}
"""What a restore may leave out, and what a command then says is lacking."""


@pytest.mark.parametrize("losses", [[*_LOSSES], *([loss] for loss in _LOSSES)], ids=len)
async def test_rights_that_a_restore_left_out_are_named_by_commands_and_restored_by_migrate(
    dsn: str, owner: asyncpg.Connection, losses: list[str]
) -> None:
    before = sorted(await owner.fetch(_RIGHTS))
    for loss in losses:
        await owner.execute(loss)
    assert sorted(await owner.fetch(_RIGHTS)) != before
    if lacking := _LOSSES[losses[0]]:
        (sentence,) = await Tallybook(dsn).refused("tournament", "list")
        assert lacking in sentence
        assert "run `tallybook migrate`" in sentence
    said = await Tallybook(dsn)("migrate")
    assert {line.split()[0] for line in said.err.splitlines()} <= {"restored", "took"}
    assert sorted(await owner.fetch(_RIGHTS)) == before
    assert await repair(dsn) == []
    async with open_database(dsn, name="test") as database:
        await open_new_tournament(database, actor=OPERATOR)
