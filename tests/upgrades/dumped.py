"""The database of a version, dumped, with what it shows: upgrades from it are tested with that.

    python -m tests.upgrades.dumped     writes that of this version to `dumps/`, for the commit that gets its tag

`<version>.dump` is made by `pg_dump` of random histories; `<version>.json` has the rows of the promised views. Of the
longest history there is an archive, and a proof of its first event; of all, the digests.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import asyncpg
import msgspec
from hypothesis import Phase, given, seed, settings

from api.service.lifecycle import DSN_VARIABLE
from engine.database.embedded import _find_binaries, embedded_postgres
from engine.database.migrator import migrate
from engine.database.pool import open_database
from engine.domain.events import Event
from projections.tables.worker import Worker
from tests.histories import unhurried
from tests.projections.written import block_sizes, rich_histories, written
from tests.running import TALLYBOOK

DUMPS: Final = Path(__file__).parent / "dumps"
HISTORIES: Final = 40
SEED: Final = 1
_VIEWS: Final = {
    "head": "tournament_id",
    "standing": "tournament_id, ranking_id, unity_id, position, competitor_id",
}

Shown = dict[str, list[dict[str, Any]]]
"""The rows of each view."""


async def fill(dsn: str, *, histories: int = HISTORIES) -> None:
    """Writes random histories to the logs of a migrated database, and brings its tables up to date."""
    async with open_database(dsn, name="dumped") as database:
        for history, sizes in await asyncio.to_thread(_drawn, histories):
            await written(database, history, sizes)
        await Worker(database).catch_up()


def _drawn(number: int) -> list[tuple[list[Event], list[int]]]:
    drawn: list[tuple[list[Event], list[int]]] = []

    @seed(SEED)
    @settings(unhurried, max_examples=number, database=None, phases=[Phase.generate])
    @given(rich_histories, block_sizes)
    def draw(history: list[Event], sizes: list[int]) -> None:
        drawn.append((history, sizes))

    draw()
    return drawn


async def shown(dsn: str) -> Shown:
    """What the promised views show, as it is written to JSON."""
    session = await asyncpg.connect(dsn, server_settings={"search_path": "tallybook"})
    try:
        rows = {name: await session.fetch(f"SELECT * FROM {name} ORDER BY {order}") for name, order in _VIEWS.items()}
    finally:
        await session.close()
    plain = {name: [dict(row) for row in of_view] for name, of_view in rows.items()}
    as_written: Shown = msgspec.json.decode(msgspec.json.encode(plain, enc_hook=str))
    return as_written


async def dump(dsn: str, directory: Path, version: str) -> None:
    """Writes the dump of a database and what it shows."""
    _run(_tool("pg_dump"), "--format=custom", f"--file={directory / version}.dump", f"--dbname={dsn}")
    tallybook = partial(_run, TALLYBOOK, database=dsn)
    tournaments = msgspec.json.decode(tallybook("tournament", "list", "--json"))
    longest = max(tournaments, key=lambda one: one["events"])["slug"]
    tallybook("digests", "--output", f"{directory / version}.digests")
    tallybook("tournament", "export", longest, "--output", f"{directory / version}.archive")
    (directory / f"{version}.proof").write_text(tallybook("prove", longest, "1"))
    (directory / f"{version}.json").write_bytes(msgspec.json.format(msgspec.json.encode(await shown(dsn))))


def restore(directory: Path, version: str, dsn: str) -> None:
    """Fills an empty database with a dump."""
    _run(_tool("pg_restore"), "--exit-on-error", f"--dbname={dsn}", str(directory / f"{version}.dump"))


def versions(directory: Path = DUMPS) -> Iterator[str]:
    """Of which there are dumps."""
    yield from sorted(path.stem for path in directory.glob("*.dump"))


def _tool(name: str) -> str:
    return str(_find_binaries(Path(tempfile.gettempdir())) / name)


def _run(program: str, *arguments: str, database: str = "") -> str:
    variables = os.environ | {DSN_VARIABLE: database}
    done = subprocess.run([program, *arguments], check=True, env=variables, capture_output=True, text=True)
    return done.stdout


async def _main() -> None:
    version = metadata.version("tallybook")
    if version in versions():
        sys.exit(f"{DUMPS} has version {version}; it never changes.")
    with tempfile.TemporaryDirectory() as directory:
        async with embedded_postgres(Path(directory)) as cluster:
            await migrate(cluster.dsn)
            await fill(cluster.dsn)
            DUMPS.mkdir(exist_ok=True)
            await dump(cluster.dsn, DUMPS, version)


if __name__ == "__main__":
    asyncio.run(_main())
