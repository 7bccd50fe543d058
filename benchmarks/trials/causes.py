"""The points that one competition caused, found in logs of growing length: by searching the whole log, as before the
index `event_competition`, and by that index. And what the index costs an append. To be run by itself:

    python -m benchmarks.trials.causes

It starts a PostgreSQL of its own. Prints milliseconds for a lookup of 20 events, the median of five, as two columns;
then the microseconds that an append of 32 one-delta requests takes without and with the index, medians of commits that
take turns, for points that name no competition, one competition, and a competition each.
"""

import asyncio
import random
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

import asyncpg

from engine.database.embedded import embedded_postgres
from engine.database.migrator import migrate
from engine.database.pool import open_database
from engine.domain.events import Delta, PointsAdded
from engine.domain.terms import OPERATOR, CompetitionId, CompetitorId, RankingId, Sequence, TournamentId, UnityId
from engine.log import log
from engine.log.log import Appended, Block, Request

LENGTHS: Final = (10_000, 100_000, 1_000_000)
EVENTS_OF_ONE: Final = 20
COMMITS: Final = 400
REQUESTS: Final = 32
_FILL: Final = """
    INSERT INTO event (tournament_id, sequence, recorded_at, actor, kind, body)
    SELECT
        $1, n, now(), 0, 'PointsAdded',
        '{"ranking_id":1,"deltas":[[' || n % 1000 || ',2,3]],"competition_id":'
            || 1000000 + n % ($2::int / $3::int) || '}'
    FROM generate_series(2, $2 + 1) AS n
"""
_SEARCH: Final = """
    SELECT sequence, body
    FROM event
    WHERE tournament_id = $1 AND sequence > $2 AND sequence <= $3
        AND kind IN ('PointsAdded', 'PointsReversed') AND strpos(body, $4) > 0
        AND sequence NOT IN (SELECT sequence FROM set_aside WHERE tournament_id = $1)
    ORDER BY sequence
"""
_DEFINITION: Final = "SELECT pg_get_indexdef('tallybook.event_competition'::regclass)"


async def look_up(connection: asyncpg.Connection, tournament_id: TournamentId, length: int) -> None:
    """Prints what both ways take, and makes sure that they find the same."""
    competition_id = CompetitionId(1_000_000 + length // EVENTS_OF_ONE // 2)

    async def by_search() -> list[Any]:
        found = []
        for after in range(0, length + 1, 200_000):
            found += await connection.fetch(
                _SEARCH, tournament_id, after, after + 200_000, f'"competition_id":{competition_id}'
            )
        return [row["sequence"] for row in found]

    async def by_index() -> list[Any]:
        upto = Sequence(length + 1)
        return [r.sequence async for r in log.points_of(connection, tournament_id, competition_id, upto)]

    assert len(await by_search()) == EVENTS_OF_ONE
    assert await by_search() == await by_index()
    before, after = await timed(by_search), await timed(by_index)
    times = f"{before * 1000:8.2f} ms by search, {after * 1000:6.2f} ms by index"
    print(f"{length:>9} events: {times}, {before / after:6.0f} times")


async def timed(work: Callable[[], Awaitable[Any]]) -> float:
    took = []
    for _ in range(5):
        began_at = perf_counter()
        await work()
        took.append(perf_counter() - began_at)
    return median(took)


def request(competition_id: CompetitionId | None) -> Request:
    line = Delta(CompetitorId(random.randrange(10_000)), UnityId(2), 1)
    event = PointsAdded(ranking_id=RankingId(1), deltas=(line,), competition_id=competition_id)
    return Request(events=(event,), actor=OPERATOR)


async def opened(connection: asyncpg.Connection) -> TournamentId:
    tournament_id = TournamentId((await log.next_ids(connection, 1))[0])
    await log.open_tournament(connection, tournament_id, name="T", slug=f"t-{tournament_id}", actor=OPERATOR)
    return tournament_id


async def append(
    connections: dict[str, asyncpg.Connection], what: str, causes: Callable[[int], CompetitionId | None]
) -> None:
    """Prints what a commit takes in each of two databases."""
    tournaments = {name: await opened(connection) for name, connection in connections.items()}
    took: dict[str, list[float]] = {name: [] for name in connections}
    heads = dict.fromkeys(connections, 1)
    for _ in range(COMMITS):
        requests = tuple([request(causes(n)) for n in range(REQUESTS)])
        for name, connection in connections.items():
            block = Block(
                tournament_id=tournaments[name],
                judged_at=Sequence(heads[name]),
                judged_digest=None,
                requests=requests,
            )
            began_at = perf_counter()
            (outcome,) = await log.append(connection, [block], wait=False)
            took[name].append(perf_counter() - began_at)
            assert isinstance(outcome, Appended)
            assert outcome.last_sequence is not None
            heads[name] = outcome.last_sequence
    without, with_ = (median(took[name]) * 1e6 for name in ("without", "with"))
    print(f"append, {what:<22}: {without:6.0f} µs without the index, {with_:6.0f} with it, {with_ / without:.3f} times")


async def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        async with embedded_postgres(Path(directory) / "pg", settings={"max_wal_size": "4GB"}) as cluster:
            dsns = {name: urlunsplit(urlsplit(cluster.dsn)._replace(path=f"/{name}")) for name in ("with", "without")}
            for name, dsn in dsns.items():
                await execute(cluster.dsn, f'CREATE DATABASE "{name}"')
                await migrate(dsn)
            owner = await asyncpg.connect(dsns["without"], server_settings={"search_path": "tallybook"})
            await owner.execute("DROP INDEX event_competition")
            await owner.close()
            async with (
                open_database(dsns["with"], name="with") as with_,
                open_database(dsns["without"], name="without") as without,
                with_.connection() as one,
                without.connection() as other,
            ):
                random.seed(1)
                connections = {"without": other, "with": one}
                await append(connections, "no competition", lambda _n: None)
                await append(connections, "one competition", lambda _n: CompetitionId(77))
                await append(
                    connections, "a competition each", lambda n: CompetitionId(1_000 + random.randrange(10**6))
                )
                owner = await asyncpg.connect(dsns["with"], server_settings={"search_path": "tallybook"})
                for length in LENGTHS:
                    tournament_id = await opened(one)
                    await owner.execute(_FILL, tournament_id, length, EVENTS_OF_ONE)
                    await owner.execute("VACUUM ANALYZE event")
                    await look_up(one, tournament_id, length)
                definition = await owner.fetchval(_DEFINITION)
                await owner.execute("DROP INDEX event_competition")
                began_at = perf_counter()
                await owner.execute(definition)
                print(f"the index of {sum(LENGTHS)} events is made in {perf_counter() - began_at:.1f} s")
                await owner.close()


async def execute(dsn: str, statement: str) -> None:
    connection = await asyncpg.connect(dsn)
    await connection.execute(statement)
    await connection.close()


if __name__ == "__main__":
    asyncio.run(main())
