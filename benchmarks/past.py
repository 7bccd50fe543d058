"""How fast is the past of a long log, and what does it take in memory?

    python -m benchmarks.past [--events N] [--rounds N]

One tournament of 20 competitors with five million one-delta events, tables and snapshots as the worker leaves them. It
measures `tallybook history` into a file, and `tallybook standings --at-sequence` somewhere in the log, as users run
them: whole processes from start to end. For comparison it measures a plain `SELECT` of the same events in rows, through
asyncpg (`peers/raw_select.py`), and moments as a service answers them (`trials/moments.py`). Prints JSON.
"""

import argparse
import asyncio
import os
import random
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any, Final

import msgspec
from msgspec import Struct

from benchmarks import machine
from benchmarks.cluster import open_cluster
from benchmarks.processes import figures_of
from benchmarks.service import DSN_VARIABLE, Product, installed
from benchmarks.world import Field, Tournament, add_points, open_tournaments, seeding, settle

EVENTS: Final = 5_000_000
ROUNDS: Final = 3
BLOCK_EVENTS: Final = 64
SEED: Final = 4_711
WORK_DIRECTORY: Final = "/var/tmp"


class Ran(Struct, frozen=True):
    """The costs of a command: seconds from its start to its end, seconds of processor time, and peak memory."""

    seconds: float
    processor_seconds: float
    memory_megabytes: float


def ran(product: Product, dsn: str, *arguments: str) -> Ran:
    """Runs a command of the product to its end, and discards its output."""
    environment = {DSN_VARIABLE: dsn, "PATH": "/usr/bin:/bin"}
    nowhere = os.open(os.devnull, os.O_RDWR)
    began_at = time.perf_counter()
    pid = os.posix_spawn(
        product.command,
        [product.command, *arguments],
        environment,
        file_actions=[(os.POSIX_SPAWN_DUP2, nowhere, n) for n in (0, 1)],
    )
    _, status, usage = os.wait4(pid, 0)
    seconds = time.perf_counter() - began_at
    os.close(nowhere)
    assert os.waitstatus_to_exitcode(status) == 0, arguments
    return Ran(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


async def measured(options: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="tallybook-past-", dir=os.environ.get("TMPDIR", WORK_DIRECTORY)) as name:
        directory = Path(name)
        async with open_cluster(directory / "postgres") as cluster:
            product = installed()
            dsn = await cluster.database("past")
            product.run("migrate", dsn=dsn)
            async with seeding(dsn) as connection:
                (tournament,) = await open_tournaments(connection, "past", 1, Field())
                await add_points(connection, tournament, events=options.events, block_events=BLOCK_EVENTS, seed=SEED)
            caught_up = await figures_of(product.trial("catch_up"), {"database": dsn}, log=directory / "log")
            await settle(dsn)
            await cluster.checkpoint()
            rounds = [await _round(product, dsn, tournament, options.events, directory) for _ in range(options.rounds)]
            facts = machine.described(directory, {"PostgreSQL": cluster.settings["server_version"]})
    figures: dict[str, Any] = {key: median(r[key] for r in rounds) for key in rounds[0]}
    figures |= {"events": options.events, "rounds": options.rounds, "folded into tables a second": caught_up}
    return figures | {"machine": msgspec.to_builtins(facts)}


async def _round(product: Product, dsn: str, tournament: Tournament, events: int, directory: Path) -> dict[str, float]:
    select = {"database": dsn, "tournament_id": tournament.tournament_id}
    command = [sys.executable, "-m", "benchmarks.peers.raw_select"]
    rows = float((await figures_of(command, select, log=directory / "log"))["events_per_second"])
    of = (tournament.slug, str(tournament.ranking_id))
    figures = {"plain SELECT, rows a second": rows}
    for way in ("ndjson", "csv", "table"):
        told = ran(product, dsn, "history", *of, "--format", way, "--output", str(directory / "history"))
        figures |= {
            f"history {way}, lines a second": events / told.seconds,
            f"history {way}, of a plain SELECT": events / told.seconds / rows,
            f"history {way}, microseconds of a processor a line": told.processor_seconds / events * 1e6,
            f"history {way}, memory in MB": told.memory_megabytes,
        }
    then = ran(product, dsn, "standings", *of, "--at-sequence", str(random.Random(SEED).randrange(events)), "--json")
    now = ran(product, dsn, "standings", *of, "--json")
    figures |= {
        "standings at a sequence, seconds": then.seconds,
        "standings now, seconds": now.seconds,
        "standings at a sequence, of a plain SELECT of all rows": then.seconds / (events / rows),
        "standings at a sequence, memory in MB": then.memory_megabytes,
    }
    settings = {"database": dsn, "tournament": tournament, "seed": SEED}
    moments = await figures_of(product.trial("moments"), settings, log=directory / "log")
    return figures | {f"moments, {name}": value for name, value in moments.items()}


def main() -> None:
    parser = argparse.ArgumentParser(prog="past", description="Measures the past of a long log.")
    parser.add_argument("--events", type=int, default=EVENTS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    figures = asyncio.run(measured(parser.parse_args()))
    sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(figures), indent=2) + b"\n")


if __name__ == "__main__":
    main()
