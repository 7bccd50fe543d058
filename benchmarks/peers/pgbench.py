"""pgbench with the product's append function: the rate of PostgreSQL without Python on the other side.

One client repeatedly calls `append_block` for one tournament, with the same number of one-delta events in a block as in
the product. Their text is built in the statement, because pgbench cannot send it; the figure includes that.
"""

import asyncio
import re
from pathlib import Path
from typing import Final

from benchmarks.processes import ProgramFailed
from benchmarks.world import Tournament

_STATEMENT: Final = """
SELECT status
FROM (
    SELECT string_agg(format(
        '["PointsAdded",0,null,{{"ranking_id":%s,"deltas":[[%s,%s,%s]]}}]', {ranking_id}, {competitor_id}, {unity_id}, n
    ), chr(10)) AS text
    FROM generate_series(1, {size}) AS n
) AS new,
head,
LATERAL append_block({tournament_id}, gen_random_uuid(), false, head.sequence, head.digest, false, false, false, NULL,
    0, 0, NULL, NULL, NULL, new.text, NULL, NULL, NULL)
WHERE head.tournament_id = {tournament_id};
"""


async def measured(
    pgbench: str, dsn: str, tournament: Tournament, *, size: int, seconds: int, directory: Path
) -> float:
    """Events a second. Raises ProgramFailed, also if the function has another signature now."""
    script = directory / "append.sql"
    script.write_text(
        _STATEMENT.format(
            size=size,
            tournament_id=tournament.tournament_id,
            ranking_id=tournament.ranking_id,
            competitor_id=tournament.competitor_ids[0],
            unity_id=tournament.unity_ids[0],
        )
    )
    process = await asyncio.create_subprocess_exec(
        *(pgbench, "--no-vacuum", "--client", "1", "--time", str(seconds), "--protocol", "prepared"),
        *("--file", str(script), dsn),
        env={"PGOPTIONS": "-c search_path=tallybook"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said = (await process.communicate())[0].decode()
    found = re.search(r"tps = ([\d.]+)", said)
    if process.returncode != 0 or found is None:
        raise ProgramFailed(f"pgbench failed:\n{said}")
    return float(found[1]) * size
