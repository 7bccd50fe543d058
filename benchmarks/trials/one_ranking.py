"""One ranking with very many members, each with points: brought into memory from its tables, and verified.

    python -m benchmarks.trials.one_ranking DIRECTORY [MEMBERS]

The first run makes the tournament in a PostgreSQL of its own in DIRECTORY, which later runs find again: so two versions
of the program can be compared over the same rows. Prints seconds, the longest turns of the event loop in milliseconds
of processor time (so long everybody else in the process waits), and the most memory that each of the two took: each is
measured in a process of its own.
"""

import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from pathlib import Path
from typing import Final

import asyncpg
import uvloop

from api.service.api_process import GC_THRESHOLDS
from benchmarks.machine import peak_rss_bytes
from benchmarks.trials.large import measured
from engine.database.embedded import embedded_postgres
from engine.database.migrator import migrate
from engine.database.pool import Database, open_database
from engine.domain.events import (
    CompetitorRegistered,
    Delta,
    Event,
    ParticipantsChanged,
    PointsAdded,
    RankingCreated,
)
from engine.domain.terms import OPERATOR, PARTICIPANTS_MAX, CompetitorId, RankingId, TournamentId, UnityId
from engine.log import log
from engine.log.log import Appended, Block, Head, Request
from projections.live import tournament
from projections.live.tournament import LiveTournament
from projections.tables.worker import Worker
from projections.verification.all_tournaments import Plan, verify_all
from projections.verification.progress import Difference

MEMBERS: Final = 200_000
SLUG: Final = "large"
FIRST_ID: Final = 2**51
RANKING: Final = RankingId(1)
UNITY: Final = UnityId(2)
BLOCK_EVENTS: Final = 1_000
History = Callable[[int], list[list[Event]]]
"""Blocks of events, for a size."""
Measure = Callable[[str, int], Coroutine[None, None, None]]
"""It is told the address of the database, and the process of its server."""


def history(members: int) -> list[list[Event]]:
    """Blocks of events."""
    ids = [CompetitorId(FIRST_ID + n) for n in range(members)]
    registered: list[Event] = [CompetitorRegistered(competitor_id=c, name=f"Member {n}") for n, c in enumerate(ids)]
    created = RankingCreated(
        ranking_id=RANKING, name="All", participants=(ids[0],), main_unity_id=UNITY, main_unity_name="points"
    )
    enrolled: list[Event] = [
        ParticipantsChanged(ranking_id=RANKING, added=tuple(ids[n : n + PARTICIPANTS_MAX]))
        for n in range(0, members, PARTICIPANTS_MAX)
    ]
    points: list[Event] = [
        PointsAdded(ranking_id=RANKING, deltas=(Delta(c, UNITY, n % 1_000 + 1),)) for n, c in enumerate(ids)
    ]
    return [
        *(registered[n : n + BLOCK_EVENTS] for n in range(0, members, BLOCK_EVENTS)),
        [created],
        *([event] for event in enrolled),
        *(points[n : n + BLOCK_EVENTS] for n in range(0, members, BLOCK_EVENTS)),
    ]


async def write(database: Database, history: list[list[Event]]) -> None:
    """Appends blocks of events to a tournament that is new, and brings its tables up to date."""
    async with database.connection() as connection:
        tournament_id = TournamentId((await log.next_ids(connection, 1))[0])
        assert await log.open_tournament(connection, tournament_id, name="Large", slug=SLUG, actor=OPERATOR)
        head = (await log.heads(connection, [tournament_id]))[tournament_id]
        for events in history:
            block = Block(
                tournament_id=tournament_id,
                judged_at=head.sequence,
                judged_digest=head.digest,
                requests=tuple(Request(events=(event,), actor=OPERATOR) for event in events),
            )
            (appended,) = await log.append(connection, [block], wait=True)
            assert isinstance(appended, Appended)
            assert appended.last_sequence is not None
            assert appended.digest is not None
            head = Head(appended.last_sequence, appended.digest)
    await Worker(database).catch_up()


async def made(dsn: str, history: Callable[[], list[list[Event]]]) -> None:
    """Makes the tournament, if the database does not have it."""
    await migrate(dsn)
    owner = await asyncpg.connect(dsn, server_settings={"search_path": "tallybook"})
    if not await owner.fetchval("SELECT EXISTS (SELECT FROM tournament)"):
        async with open_database(dsn, name="trial") as database:
            await write(database, history())
        await owner.execute("VACUUM (ANALYZE)")
    await owner.close()


async def loaded(dsn: str) -> LiveTournament:
    """The tournament, and prints what it takes to bring it into memory."""
    async with open_database(dsn, name="trial") as database, database.connection() as connection:
        tournament_id = await log.tournament_named(connection, SLUG)
        assert tournament_id is not None
        gc.freeze()
        gc.set_threshold(*GC_THRESHOLDS)
        async with measured("brought into memory"):
            return await tournament.load(connection, tournament_id)


async def load(dsn: str, _postmaster: int) -> None:
    await loaded(dsn)


async def verify(dsn: str, _postmaster: int) -> None:
    async with open_database(dsn, name="trial", connections_max=2) as database:
        began_at = time.perf_counter()
        report = await verify_all(database, Plan(), on_difference=_refuse, on_events=lambda _done, _all: None)
        print(f"verified: {time.perf_counter() - began_at:.2f} s for {report.events} events")


def _refuse(difference: Difference) -> None:
    raise AssertionError(str(difference))


def run(module: str, size: int, history: History, measures: Mapping[str, Measure]) -> None:
    """The command line of a trial. It makes the tournament of a `history` of `size`, or the size that is given, and has
    each of the measures taken in a process of its own, which prints the most memory that it had."""
    if sys.argv[1].startswith("["):
        measure, dsn, postmaster = json.loads(sys.argv[1])
        uvloop.run(measures[measure](dsn, postmaster))
        print(f"    at most {peak_rss_bytes(os.getpid()) / 2**20:,.0f} MiB", flush=True)
    else:
        given = int(sys.argv[2]) if len(sys.argv) > 2 else size
        uvloop.run(_run_each(module, Path(sys.argv[1]), lambda: history(given), measures))


async def _run_each(
    module: str, directory: Path, history: Callable[[], list[list[Event]]], measures: Iterable[str]
) -> None:
    async with embedded_postgres(directory, settings={"max_wal_size": "4GB"}) as cluster:
        await made(cluster.dsn, history)
        for measure in measures:
            arguments = json.dumps([measure, cluster.dsn, cluster.pid])
            subprocess.run([sys.executable, "-m", module, arguments], check=True)  # noqa: ASYNC221 - nothing else is done meanwhile


if __name__ == "__main__":
    run("benchmarks.trials.one_ranking", MEMBERS, history, {"load": load, "verify": verify})
