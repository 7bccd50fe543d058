"""Processes of a Tallybook with another version of the fold, as there are in the middle of an upgrade."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from api.service.lifecycle import DSN_VARIABLE, READY
from projections.tables.sizes import MEMORY_BYTES
from tests.running import environment

_ROOT: Final = Path(__file__).parents[1]
# Before anybody else takes it from there.
_OTHERWISE: Final = "import sys; import projections.board.board as board; board.FOLD_VERSION = int(sys.argv.pop(1)); "
_PROCESS: Final = _OTHERWISE + "from api.service import worker_process; sys.exit(worker_process.main())"
_LOAD: Final = _OTHERWISE + "from tests import second_fold; second_fold.tell_load(int(sys.argv[1]))"


@asynccontextmanager
async def worker_of_fold(version: int, dsn: str) -> AsyncIterator[None]:
    """A worker process at work, for as long as the context lasts."""
    with subprocess.Popen(  # noqa: ASYNC220 - it takes a moment
        [sys.executable, "-c", _PROCESS, str(version), "worker", str(MEMORY_BYTES)],
        cwd=_ROOT,
        env=environment(**{DSN_VARIABLE: dsn}),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            assert process.stdout is not None
            assert await asyncio.to_thread(process.stdout.readline) == READY
            yield
        finally:
            process.terminate()


async def load_of_fold(version: int, dsn: str, tournament_id: int) -> dict[str, Any]:
    """How a process of that version brings the tournament into memory: `from` which sequence it folds the log, `to`
    which, and what it then `shows`."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        _LOAD,
        str(version),
        str(tournament_id),
        cwd=_ROOT,
        env=environment(**{DSN_VARIABLE: dsn}),
        stdout=subprocess.PIPE,
    )
    out, _ = await process.communicate()
    assert process.returncode == 0
    told: dict[str, Any] = json.loads(out)
    return told


def tell_load(tournament_id: int) -> None:
    """In such a process: prints what `load_of_fold` returns."""
    asyncio.run(_tell_load(tournament_id))


async def _tell_load(tournament_id: int) -> None:
    import os  # noqa: PLC0415 - of the other process alone, as all of these, which know its version

    from engine.database.pool import open_database  # noqa: PLC0415
    from engine.domain.terms import TournamentId  # noqa: PLC0415
    from projections.live import tournament  # noqa: PLC0415

    async with open_database(os.environ[DSN_VARIABLE], name="load") as database, database.connection() as connection:
        loaded = await tournament.load(connection, TournamentId(tournament_id))
        async with connection.transaction():
            start = await tournament._nearest_start(connection, TournamentId(tournament_id))
    shows = [
        [dict(unity.totals), unity.version] for r in loaded.board.rankings.values() for unity in r.unities.values()
    ]
    told = {"from": start.head.sequence, "to": loaded.head.sequence, "shows": shows}
    sys.stdout.write(json.dumps(told))
