"""Says how long each operation and page holds up the others, at the documented limits and at a tenth of them.

    make stalls          # some ten minutes; ONLY=import: what has this in its name; SCALE=tenth: only that

It ends with 1 if anything takes longer than it may and is not in NOT_MET.
"""

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import Final

import asyncpg

from assurance.stalls.measuring import beyond, measured
from assurance.stalls.worlds import LIMITS, RACE, TENTH, Scale
from engine.database.embedded import embedded_postgres
from engine.database.migrator import migrate

SCALES: Final[dict[str, tuple[Scale, float]]] = {"tenth": (TENTH, 20.0), "limits": (LIMITS, 50.0)}
"""With the milliseconds that a request may hold up the others."""
NOT_MET: Final = (f"PUT competitions/{RACE}/", "/console/tournament/{tournament}/rankings/{ranking_id}/history")
"""Parts of the names of what may take longer, as RELIABILITY says."""


async def run(chosen: Collection[str], only: str) -> int:
    """The exit code."""
    failed = False
    for name, (scale, bound_ms) in SCALES.items():
        if name not in chosen:
            continue
        with tempfile.TemporaryDirectory() as directory:
            async with embedded_postgres(Path(directory) / "pg") as cluster:
                await migrate(cluster.dsn)
                owner = await asyncpg.connect(cluster.dsn)
                await owner.execute("SELECT setval('tallybook.resource_id', 100000000)")  # beyond those of the worlds
                await owner.close()
                found = await asyncio.to_thread(measured, cluster.dsn, scale, bound_ms, only)
        sys.stdout.write(f"\nAt the {name}, above {bound_ms:.0f} ms:\n")
        for one in beyond(found, bound_ms):
            is_known = any(part in one.name for part in NOT_MET)
            failed |= not is_known
            sys.stdout.write(f"{one.stall_ms:8.1f} ms  {one.name}{'  (not met)' if is_known else ''}\n")
    return int(failed)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--scale", choices=[*SCALES], action="append")
    arguments = parser.parse_args()
    sys.exit(asyncio.run(run(arguments.scale or [*SCALES], arguments.only)))
