"""Whether a run was right: acknowledged changes are in the log, totals are exact, the tables have caught up.

A ledger is opened before a run and closed after it. A fast wrong answer is a failed run: WrongAnswer.
"""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

import asyncpg
import msgspec

from benchmarks import machine
from benchmarks.asking import Asker, standings
from benchmarks.peers.serving import Ledger as PeerLedger
from benchmarks.service import Service, owner
from benchmarks.world import Tournament

CATCH_UP_SECONDS_MAX: Final = 60.0
POLL_SECONDS: Final = 0.01
QUIET_SECONDS: Final = 0.3
RESTING_SHARE: Final = 0.2
"""The share of a core that the API process of a quiet service uses at most."""
SEED: Final = 1
ANSWERS_COMPARED: Final = 8
"""The number of tournaments whose answers are compared with the log; the sums of all tournaments are compared."""

_HEADS: Final = "SELECT tournament_id, sequence FROM head WHERE tournament_id = ANY($1::bigint[])"
_LAG: Final = """
    SELECT coalesce(sum(h.sequence - coalesce(c.sequence, 0)), 0)::bigint
    FROM head AS h
    LEFT JOIN checkpoint AS c ON c.tournament_id = h.tournament_id
    WHERE h.tournament_id = ANY($1::bigint[])
"""
# The lines that add points of the blocks after a head, which is the end of one.
_ADDED: Final = """
    SELECT e.line
    FROM unnest($1::bigint[], $2::bigint[]) AS since (tournament_id, sequence)
    JOIN block AS b ON b.tournament_id = since.tournament_id AND b.last_sequence > since.sequence
    CROSS JOIN LATERAL string_to_table(b.text, chr(10)) AS e (line)
    WHERE e.line LIKE '["PointsAdded",%'
"""
_ADDS: Final = f"SELECT count(*) FROM ({_ADDED}) AS e"
_SUMS: Final = f"""
    SELECT (d.delta ->> 1)::bigint AS unity_id, (d.delta ->> 0)::bigint AS competitor_id,
        sum((d.delta ->> 2)::bigint)::bigint AS total
    FROM ({_ADDED}) AS e
    CROSS JOIN LATERAL json_array_elements(e.line::json -> 3 -> 'deltas') AS d (delta)
    GROUP BY 1, 2
"""
_BESTS: Final = f"""
    SELECT (d.result ->> 1)::bigint AS unity_id, (d.result ->> 0)::bigint AS competitor_id,
        max((d.result ->> 2)::bigint) AS total
    FROM ({_ADDED}) AS e
    CROSS JOIN LATERAL json_array_elements(e.line::json -> 3 -> 'results') AS d (result)
    GROUP BY 1, 2
"""
_TOTALS: Final = """
    SELECT unity_id, competitor_id, total
    FROM total
    WHERE tournament_id = ANY($1::bigint[])
"""

Totals = Counter[tuple[int, int]]
"""By unity and competitor."""


class WrongAnswer(Exception):
    """A run whose figures do not count; says what was wrong."""


class Ledger:
    """The state of the log and of the tables of some tournaments before a run."""

    def __init__(
        self, service: Service, tournaments: list[Tournament], heads: Mapping[int, int], totals: Totals
    ) -> None:
        self._service = service
        self._tournaments = tournaments
        self._heads = heads
        self._totals = totals

    async def close(self, *, acknowledged: int, sent: int) -> None:
        """Checks that each acknowledged add is one event, and that the only other events are requests cut off at the
        end; then checks the totals. Raises WrongAnswer."""
        drawn = random.Random(SEED).sample(self._tournaments, min(ANSWERS_COMPARED, len(self._tournaments)))
        async with owner(self._service.dsn) as connection:
            await _quiet(self._service, connection, self._tournaments)
            await standings(self._service, drawn)  # after these, no earlier add still waits for its commit
            await caught_up(connection, self._tournaments)
            async with connection.transaction(isolation="repeatable_read", readonly=True):
                events = await connection.fetchval(_ADDS, *self._since()) - len(drawn)
                expected = await self._expected(connection)
                in_tables = await _totals(connection, self._tournaments)
        if not acknowledged <= events <= sent:
            raise WrongAnswer(f"{sent} adds were sent and {acknowledged} acknowledged, but {events} are in the log")
        if _nonzero(in_tables) != _nonzero(expected):
            raise WrongAnswer("the totals in the tables are not the sums of the deltas in the log")
        for tournament, shown in zip(drawn, await standings(self._service, drawn), strict=True):
            for unity_id, unity in zip(tournament.unity_ids, shown["unities"], strict=True):
                _compare(unity, unity_id, expected)

    async def _expected(self, connection: asyncpg.Connection) -> Totals:
        """The totals before, and the deltas that the log holds since."""
        expected = self._totals.copy()
        for unity_id, competitor_id, total in await connection.fetch(_SUMS, *self._since()):
            expected[unity_id, competitor_id] += total
        return expected

    def _since(self) -> tuple[list[int], list[int]]:
        return list(self._heads), list(self._heads.values())


async def opened(service: Service, tournaments: list[Tournament]) -> Ledger:
    """A ledger of the current state of the tournaments, once their tables have caught up."""
    async with owner(service.dsn) as connection:
        await caught_up(connection, tournaments)
        heads = {row["tournament_id"]: row["sequence"] for row in await connection.fetch(_HEADS, _ids(tournaments))}
        return Ledger(service, tournaments, heads, await _totals(connection, tournaments))


async def check_tables(dsn: str, tournaments: list[Tournament]) -> None:
    """Checks that the tables lack nothing and hold the sums of all deltas in the log. Raises WrongAnswer."""
    async with owner(dsn) as connection:
        lag = await lag_events(connection, tournaments)
        expected = await log_totals(connection, tournaments)
        in_tables = await _totals(connection, tournaments)
    if lag or _nonzero(in_tables) != _nonzero(expected):
        raise WrongAnswer(f"the tables lack {lag} events, or their totals are not the sums of the deltas in the log")


async def log_totals(connection: asyncpg.Connection, tournaments: list[Tournament]) -> Totals:
    """The sums of all deltas in the log."""
    ids = _ids(tournaments)
    rows = await connection.fetch(_SUMS, ids, [0] * len(ids))
    return Counter({(row["unity_id"], row["competitor_id"]): row["total"] for row in rows})


async def log_bests(connection: asyncpg.Connection, tournaments: list[Tournament]) -> Totals:
    """The highest of all results in the log."""
    ids = _ids(tournaments)
    rows = await connection.fetch(_BESTS, ids, [0] * len(ids))
    return Counter({(row["unity_id"], row["competitor_id"]): row["total"] for row in rows})


async def adds_recorded(service: Service, tournaments: list[Tournament]) -> int:
    """How many events of the log add points, once nothing more is appended."""
    ids = _ids(tournaments)
    async with owner(service.dsn) as connection:
        await _quiet(service, connection, tournaments)
        recorded: int = await connection.fetchval(_ADDS, ids, [0] * len(ids))
    return recorded


async def lag_events(connection: asyncpg.Connection, tournaments: list[Tournament]) -> int:
    """How many events the tables of the tournaments lack."""
    lag: int = await connection.fetchval(_LAG, _ids(tournaments))
    return lag


async def caught_up(connection: asyncpg.Connection, tournaments: list[Tournament]) -> float:
    """Waits until the tables lack nothing; returns how many seconds that took. Raises WrongAnswer if it takes too
    long."""
    started_at = time.perf_counter()
    while lag := await lag_events(connection, tournaments):
        if time.perf_counter() - started_at > CATCH_UP_SECONDS_MAX:
            raise WrongAnswer(f"after {CATCH_UP_SECONDS_MAX:.0f} seconds the tables still lack {lag} events")
        await asyncio.sleep(POLL_SECONDS)
    return time.perf_counter() - started_at


async def _quiet(service: Service, connection: asyncpg.Connection, tournaments: list[Tournament]) -> None:
    """Waits until nothing more is appended: requests that wrk left without an answer may still be on their way. A
    process that was overloaded reads them for so long that it must rest as well."""
    before: list[asyncpg.Record] = []
    worked_before = 0.0
    while True:
        heads, worked = await connection.fetch(_HEADS, _ids(tournaments)), machine.cpu_seconds(service.api)
        if heads == before and worked - worked_before <= RESTING_SHARE * QUIET_SECONDS:
            return
        before, worked_before = heads, worked
        await asyncio.sleep(QUIET_SECONDS)


async def peer_recorded(url: str, token: str) -> int:
    """How many changes a peer has recorded, once no request is on its way any more. Raises WrongAnswer if its totals
    are not their sums.
    """
    async with Asker(url, token) as asker:
        before = b""
        while (recorded := await asker.get("/recorded")) != before:
            before = recorded
            await asyncio.sleep(QUIET_SECONDS)
        found = msgspec.json.decode(await asker.get("/ledger"), type=PeerLedger)
    if not found.exact:
        raise WrongAnswer("the totals of the peer are not the sums of the deltas it has recorded")
    return found.recorded


def check_peer(before: int, after: int, *, acknowledged: int, sent: int) -> None:
    """Compares the changes that a peer acknowledged with those that it has recorded since. Raises WrongAnswer."""
    if not acknowledged <= after - before <= sent:
        raise WrongAnswer(f"the peer was sent {sent} adds, acknowledged {acknowledged} and recorded {after - before}")


async def _totals(connection: asyncpg.Connection, tournaments: list[Tournament]) -> Totals:
    rows = await connection.fetch(_TOTALS, _ids(tournaments))
    return Counter({(row["unity_id"], row["competitor_id"]): row["total"] for row in rows})


def _compare(unity: dict[str, Any], unity_id: int, expected: Totals) -> None:
    for line in unity["competitors_ranking"]:
        if line["total"] != expected[unity_id, line["competitor_id"]]:
            raise WrongAnswer(f"an answer shows {line}, but the log says {expected[unity_id, line['competitor_id']]}")


def _nonzero(totals: Totals) -> dict[tuple[int, int], int]:
    return {line: total for line, total in totals.items() if total}


def _ids(tournaments: Iterable[Tournament]) -> list[int]:
    return [tournament.tournament_id for tournament in tournaments]
