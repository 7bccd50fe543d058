"""A tournament with very many competitions: brought into memory from its tables; then points of competitions drawn at
random are judged, with the competitions in memory, and with each asked of the tables before, in batches.

    python -m benchmarks.trials.competitions DIRECTORY [COMPETITIONS]

The first run makes the tournament in a PostgreSQL of its own in DIRECTORY, which later runs find again. Prints, of
loading, what `one_ranking` prints, and the bytes that a competition takes; of points, for 64 clients and for one, the
medians of adds a second and of microseconds of processor time for each add (of the process, and of PostgreSQL), and how
many competitions were asked for at a time.
"""

import asyncio
import gc
import os
import random
from collections.abc import Awaitable, Callable
from statistics import mean, median
from time import perf_counter, process_time
from typing import Final

import asyncpg

from api.desk.desk import Desk, open_desk
from api.service.api_process import GC_THRESHOLDS
from benchmarks.machine import rss_bytes
from benchmarks.trials.beside import postgres_seconds
from benchmarks.trials.one_ranking import SLUG, loaded, run
from engine.database.pool import open_database
from engine.domain.commands import AddPoints
from engine.domain.events import CompetitionAdded, CompetitorRegistered, Delta, Event, RankingCreated
from engine.domain.terms import OPERATOR, CompetitionId, CompetitorId, RankingId, TournamentId, UnityId
from engine.log import log
from projections.live.tournament import LiveTournament

COMPETITIONS: Final = 1_000_000
COMPETITORS: Final = 1_000
FIRST_COMPETITOR: Final = CompetitorId(2**51)
FIRST_COMPETITION: Final = CompetitionId(2**51 + COMPETITORS)
RANKING: Final = RankingId(1)
UNITY: Final = UnityId(2)
BLOCK_EVENTS: Final = 1_000
CLIENTS: Final = 64
SECONDS: Final = 3.0
ROUNDS: Final = 5
_ASKED: Final = """
    SELECT c.competition_id, c.voided_at, p.competitor_id
    FROM competition AS c
    JOIN participant AS p USING (tournament_id, competition_id)
    WHERE c.tournament_id = $1 AND c.competition_id = ANY($2::bigint[])
"""


def history(competitions: int) -> list[list[Event]]:
    """Blocks of events."""
    draw = random.Random(1)
    ids = [CompetitorId(FIRST_COMPETITOR + n) for n in range(COMPETITORS)]
    created = RankingCreated(
        ranking_id=RANKING, name="All", participants=tuple(ids), main_unity_id=UNITY, main_unity_name="points"
    )
    added: list[Event] = [
        CompetitionAdded(
            competition_id=CompetitionId(FIRST_COMPETITION + n),
            group_id=n // 10,
            location="Stadium",
            participants=tuple(draw.sample(ids, 2)),
            result="2-1",
        )
        for n in range(competitions)
    ]
    return [
        [CompetitorRegistered(competitor_id=c, name=f"Competitor {n}") for n, c in enumerate(ids)],
        [created],
        *(added[n : n + BLOCK_EVENTS] for n in range(0, competitions, BLOCK_EVENTS)),
    ]


async def load(dsn: str, _postmaster: int) -> None:
    before = rss_bytes(os.getpid())
    live = await loaded(dsn)
    count = len(live.board.competitions)
    taken, counted = rss_bytes(os.getpid()) - before, live.board.competitions.size_bytes
    print(f"    {taken / count:.0f} bytes a competition, counted as {counted / count:.0f}")


class Asker:
    """Asks the tables for competitions; those that gather while it asks go together. `batches`: how many each time."""

    def __init__(self, connection: asyncpg.Connection, tournament_id: TournamentId) -> None:
        self._connection = connection
        self._tournament_id = tournament_id
        self._waiting: list[CompetitionId] = []
        self._asking = asyncio.Lock()
        self.batches: list[int] = []

    async def ask(self, competition_id: CompetitionId) -> None:
        self._waiting.append(competition_id)
        async with self._asking:
            asked, self._waiting = self._waiting, []
            if asked:  # else the turn before took it along
                self.batches.append(len(asked))
                rows = await self._connection.fetch(_ASKED, self._tournament_id, asked)
                assert {row["competition_id"] for row in rows} == set(asked)


async def points(dsn: str, postmaster: int) -> None:
    async with (
        open_database(dsn, name="trial") as database,
        open_desk(database) as desk,
        database.connection() as connection,
    ):
        tournament_id = await log.tournament_named(connection, SLUG)
        assert tournament_id is not None
        asker = Asker(connection, tournament_id)
        async with desk.live_pool.pinned(tournament_id) as live:
            gc.freeze()
            gc.set_threshold(*GC_THRESHOLDS)
            for clients in (CLIENTS, 1):
                await _compare(desk, live, asker, clients, postmaster)


async def _compare(desk: Desk, live: LiveTournament, asker: Asker, clients: int, postmaster: int) -> None:
    """Prints what an add costs in both ways, which take turns."""
    figures: dict[str, list[tuple[float, float, float]]] = {"in memory": [], "asked": []}
    for _ in range(ROUNDS):
        for way, measures in figures.items():
            measures.append(await _round(desk, live, asker.ask if way == "asked" else _known, clients, postmaster))
    for way, measures in figures.items():
        rate, own, postgres = (median(column) for column in zip(*measures, strict=True))
        print(
            f"{clients:>3} clients, {way:<9}: {rate:7,.0f} adds a second, "
            f"{own:5.0f} µs of the process, {postgres:5.0f} of PostgreSQL",
            flush=True,
        )
    print(f"    {mean(asker.batches):.1f} competitions were asked for at a time")
    asker.batches.clear()


async def _known(_competition_id: CompetitionId) -> None:
    return None


async def _round(
    desk: Desk,
    live: LiveTournament,
    ask: Callable[[CompetitionId], Awaitable[None]],
    clients: int,
    postmaster: int,
) -> tuple[float, float, float]:
    draw, count = random.Random(2), len(live.board.competitions)
    until, added = perf_counter() + SECONDS, 0

    async def client() -> None:
        nonlocal added
        while perf_counter() < until:
            competition_id = CompetitionId(FIRST_COMPETITION + draw.randrange(count))
            await ask(competition_id)
            delta = Delta(CompetitorId(FIRST_COMPETITOR + draw.randrange(COMPETITORS)), UNITY, 1)
            command = AddPoints(ranking_id=RANKING, deltas=(delta,), competition_id=competition_id)
            await desk.submit(live, command, actor=OPERATOR)
            added += 1

    began_at, own_at, postgres_at = perf_counter(), process_time(), postgres_seconds(postmaster)
    await asyncio.gather(*(client() for _ in range(clients)))
    seconds, own = perf_counter() - began_at, process_time() - own_at
    postgres = postgres_seconds(postmaster) - postgres_at
    return added / seconds, own / added * 1e6, postgres / added * 1e6


if __name__ == "__main__":
    run("benchmarks.trials.competitions", COMPETITIONS, history, {"load": load, "points": points})
