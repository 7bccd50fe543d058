"""Faults on a distributed database, whose nodes run on this machine: two services at different nodes, clients at play,
and a node that is killed, the coordinator that is, or a shard that moves. Nothing acknowledged is lost or doubled."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import asyncpg
import pytest
from msgspec import Struct, field

from api.desk.desk import Desk
from assurance.faults.checker import Evidence, judge
from assurance.faults.history import Outcome
from assurance.faults.nodes import Node, Nodes
from assurance.faults.stage import Program, Stage
from assurance.faults.wire import wire
from engine.database.distribution import nodes_of
from engine.database.pool import Database, open_database
from engine.domain.errors import TallybookError
from engine.domain.events import CompetitorRegistered
from engine.domain.terms import OPERATOR, CompetitorId, Sequence, TournamentId
from engine.log.appender import LANES_MAX
from engine.log.appending import Block, NotAppended, Request, append
from engine.process.background import background
from projections.live.tournament import LiveTournament
from projections.tables import tables
from projections.tables.worker import Worker, work_by_nodes
from projections.verification.all_tournaments import Plan, verify_all
from tests.conftest import only_distributed
from tests.desks import Arena, desk_at, open_arena, submit, until

CLIENTS: Final = 6
ANSWERED: Final = 60
"""Changes before the fault, and after it."""
RESUMED_SECONDS_MAX: Final = 60.0
"""Citus looks for lost transactions of several nodes once a minute."""
_PLACE: Final = """
    SELECT shardid, nodename, nodeport
    FROM pg_dist_shard_placement
    WHERE shardid = get_shard_id_for_distribution_column('append_lock', $1::bigint)
"""
_ELSEWHERE: Final = """
    SELECT nodename, nodeport
    FROM pg_dist_node
    WHERE shouldhaveshards AND (nodename, nodeport) <> ($1, $2)
    LIMIT 1
"""
_MOVE: Final = "SELECT citus_move_shard_placement($1, $2, $3, $4, $5, shard_transfer_mode := 'force_logical')"

_HEAD: Final = "SELECT max(last_sequence) FROM block WHERE tournament_id = $1"
_CHECKPOINT: Final = "SELECT sequence FROM checkpoint WHERE tournament_id = $1"
_MOVE_WAITS: Final = "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted)"
_MOVE_BLOCKING: Final = _MOVE.replace("force_logical", "block_writes")

pytestmark = only_distributed


@asynccontextmanager
async def stage_on(addresses: list[str], folder: Path) -> AsyncIterator[Stage]:
    """As `stage`, with a service at the coordinator and one at another node, and a worker at each."""
    async with AsyncExitStack() as stack:
        one = Stage(folder, Nodes(addresses[0]), 1)
        for kind, arguments, programs in (
            ("api", ("serve", "--port", "0", "--no-worker"), one.services),
            ("worker", ("worker",), one.workers),
        ):
            for n, address in enumerate(addresses[:2]):
                own = folder / f"{kind}-{n}"
                own.mkdir()
                programs.append(Program(own, kind, *arguments, TALLYBOOK_DATABASE_URL=address))
                stack.callback(programs[-1].close)
        for program in one.programs:
            program.start()
        for program in one.programs:
            await program.ready()
        for service in one.services:

            async def target(service: Program = service):  # type: ignore[no-untyped-def] # as wire has it
                return await asyncio.open_connection("127.0.0.1", service.port)

            one.front.append(await stack.enter_async_context(wire(target, seed=1)))
        await one.open_arenas(4)
        yield one


def answered(stage: Stage) -> int:
    return sum(attempt.outcome is Outcome.OK for attempt in stage.history.attempts)


async def go_on(stage: Stage) -> None:
    """Returns when many more changes have been acknowledged."""
    before = answered(stage)
    await until(lambda: answered(stage) >= before + ANSWERED, RESUMED_SECONDS_MAX)


async def judged(stage: Stage) -> None:
    """Fails unless all that was acknowledged is there once, and the whole database verifies."""
    stage.resumed_seconds_max = RESUMED_SECONDS_MAX
    evidence: Evidence = await stage.evidence()
    verdicts = judge(evidence)
    assert verdicts.wrong == {}, verdicts.told()
    async with open_database(stage.cluster.dsn, name="test") as database:
        report = await verify_all(database, Plan(), on_difference=lambda _: None, on_events=lambda *_: None)
    assert report.differences == []


@pytest.mark.timeout(300)
@pytest.mark.parametrize("killed", [0, 1, 2], ids=["the coordinator", "a node with a service", "a node without one"])
async def test_a_node_is_killed_under_load_and_comes_back(killed: int, addresses: list[str], tmp_path: Path) -> None:
    async with stage_on(addresses, tmp_path) as stage:
        node = await Node.at(addresses[killed])
        async with stage.load(CLIENTS):
            await go_on(stage)
            await node.kill()
            await node.start()
            await stage.resume(seconds=RESUMED_SECONDS_MAX)
            await go_on(stage)
        await judged(stage)


# ── While a node is away ────────────────────────────────────────────────────────────────────────────────

ARENAS: Final = 40
CLIENTS_OF_NODE: Final = 8
THINKING_SECONDS: Final = 0.02
"""Between two requests of a client. On a full machine changes and reads would take time from each other."""
MEASURED_SECONDS: Final = 6.0
AWAY_SECONDS: Final = 20.0
KEPT_SHARE_MIN: Final = 0.9


class Served(Struct):
    """What the clients of one node's tournaments got: changes acknowledged, reads answered, and what failed."""

    added: Counter[TournamentId] = field(default_factory=Counter)
    reads: int = 0
    failures: Counter[str] = field(default_factory=Counter)

    def figures(self) -> tuple[int, int]:
        return self.added.total(), self.reads


async def change(desk: Desk, arenas: list[Arena], served: Served, number: int) -> None:
    """One client: adds a point to one tournament after the other, each with a key until it is answered, for ever."""
    for n in count(number):
        arena = arenas[n % len(arenas)]
        while True:
            try:
                await submit(desk, arena.tournament_id, arena.points(1), key=f"{id(desk)}-{number}-{n}")
                break
            except TallybookError as error:
                served.failures[type(error).__name__] += 1
                await asyncio.sleep(THINKING_SECONDS)
        served.added[arena.tournament_id] += 1
        await asyncio.sleep(THINKING_SECONDS)


async def look(desk: Desk, arenas: list[Arena], served: Served, number: int) -> None:
    """One client: reads the standing of one tournament after the other, for ever. It shows what was acknowledged."""
    for n in count(number):
        arena = arenas[n % len(arenas)]
        acknowledged = served.added[arena.tournament_id]
        try:
            async with desk.live_pool.pinned(arena.tournament_id) as live:
                await desk.live_pool.make_current(live)
                assert total(live, arena) >= acknowledged
            served.reads += 1
        except TallybookError as error:
            served.failures[type(error).__name__] += 1
        await asyncio.sleep(THINKING_SECONDS)


async def rate(served: Served, seconds: float) -> list[float]:
    """Changes and reads a second, for that long."""
    before, began_at = served.figures(), time.perf_counter()
    await asyncio.sleep(seconds)
    passed = time.perf_counter() - began_at
    return [(after - earlier) / passed for after, earlier in zip(served.figures(), before, strict=True)]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("how", ["killed", "paused"])
async def test_tournaments_of_other_nodes_are_served_as_before_while_a_node_is_away(
    how: str, addresses: list[str], database: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    """Changes and reads, by two processes: at least nine tenths of before, and none fails. When the node is back, its
    tournaments have each acknowledged change once."""
    away = await Node.at(addresses[2])
    async with desk_at(addresses[0]) as one, desk_at(addresses[0]) as two:
        arenas = [await open_arena(database) for _ in range(ARENAS)]
        async with database.connection() as connection:
            places = await nodes_of(connection, [arena.tournament_id for arena in arenas])
        there = [arena for arena in arenas if places[arena.tournament_id].port == away.port]
        here = [arena for arena in arenas if arena not in there]
        assert min(len(there), len(here)) > LANES_MAX + 2
        of_here, of_there = Served(), Served()
        playing = [
            asyncio.create_task(work(desk, among, served, number))
            for of_node, served in ((here, of_here), (there, of_there))
            # So few are changed that both processes often append to the same one: then blocks go alone.
            for work, among in ((change, of_node[: LANES_MAX + 2]), (look, of_node))
            for number in range(CLIENTS_OF_NODE // 2)
            for desk in (one, two)
        ]
        try:
            await rate(of_here, 2)
            before = await rate(of_here, MEASURED_SECONDS)
            await (away.kill() if how == "killed" else asyncio.to_thread(away.pause))
            try:
                during = await rate(of_here, AWAY_SECONDS)
                lost = await rate(of_there, 1)
            finally:
                await (away.start() if how == "killed" else asyncio.to_thread(away.resume))
            back = of_there.figures()[0]
            await until(lambda: of_there.figures()[0] >= back + 100, RESUMED_SECONDS_MAX)
        finally:
            for task in playing:
                task.cancel()
            ended = await asyncio.gather(*playing, return_exceptions=True)
        assert all(isinstance(end, asyncio.CancelledError) for end in ended), ended
        with capsys.disabled():
            told = ", ".join(f"{was:.0f} and {now:.0f}" for was, now in zip(before, during, strict=True))
            print(f"\n{how}: changes and reads a second before and during: {told}; failures {dict(of_there.failures)}")
        assert of_here.failures == {}
        assert lost[0] < 1
        assert all(now >= KEPT_SHARE_MIN * was for was, now in zip(before, during, strict=True))
        for arena in arenas:
            async with one.live_pool.pinned(arena.tournament_id) as live:
                await one.live_pool.make_current(live)
                acknowledged = of_here.added[arena.tournament_id] + of_there.added[arena.tournament_id]
                assert acknowledged <= total(live, arena) <= acknowledged + CLIENTS_OF_NODE  # those that were cancelled


def total(live: LiveTournament, arena: Arena) -> int:
    return live.board.rankings[arena.ranking_id].unities[arena.unity_id].totals.get(arena.competitors[0], 0)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("how", ["killed", "paused"])
async def test_tables_of_other_nodes_follow_while_a_node_is_away(
    how: str, addresses: list[str], database: Database, owner: asyncpg.Connection
) -> None:
    away = await Node.at(addresses[2])
    arenas = [await open_arena(database) for _ in range(12)]
    async with database.connection() as connection:
        places = await nodes_of(connection, [arena.tournament_id for arena in arenas])
    here = [arena for arena in arenas if places[arena.tournament_id].port != away.port]
    assert 0 < len(here) < len(arenas)

    async def follow(among: list[Arena]) -> bool:
        for tournament_id in [arena.tournament_id for arena in among]:
            head = await owner.fetchval(_HEAD, tournament_id)
            if await owner.fetchval(_CHECKPOINT, tournament_id) != head:
                return False
        return True

    async with desk_at(addresses[0]) as desk, background() as tasks:
        working = tasks.create_task(work_by_nodes(database))
        for arena in arenas:
            await submit(desk, arena.tournament_id, arena.points(1))
        await until(lambda: follow(arenas), 30)
        await (away.kill() if how == "killed" else asyncio.to_thread(away.pause))
        try:
            for _ in range(3):
                for arena in here:
                    await submit(desk, arena.tournament_id, arena.points(1))
                await until(lambda: follow(here), 30)
        finally:
            await (away.start() if how == "killed" else asyncio.to_thread(away.resume))
        for arena in arenas:
            await submit(desk, arena.tournament_id, arena.points(1))
        await until(lambda: follow(arenas), RESUMED_SECONDS_MAX)
        working.cancel()


# ── While a shard moves ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.timeout(300)
async def test_a_tournament_moves_to_another_node_under_load(
    addresses: list[str], owner: asyncpg.Connection, tmp_path: Path
) -> None:
    async with stage_on(addresses, tmp_path) as stage:
        async with stage.load(CLIENTS):
            await go_on(stage)
            shard, *place = await owner.fetchrow(_PLACE, stage.arenas[0].tournament_id)
            elsewhere = await owner.fetchrow(_ELSEWHERE, *place)
            await owner.execute(_MOVE, shard, *place, *elsewhere)
            await go_on(stage)
        assert list(await owner.fetchrow(_PLACE, stage.arenas[0].tournament_id)) == [shard, *elsewhere]
        await judged(stage)


async def overtaken(connection: asyncpg.Connection, arena: Arena) -> None:
    """Holds the tournament's lock, and has written nothing."""
    block = Block(
        tournament_id=arena.tournament_id,
        judged_at=Sequence(1_000),
        judged_digest=None,
        requests=(Request(events=(CompetitorRegistered(competitor_id=CompetitorId(1), name="Eve"),), actor=OPERATOR),),
    )
    assert await append(connection, [block], wait=True) == [NotAppended.OVERTAKEN]


async def claimed(connection: asyncpg.Connection, arena: Arena) -> None:
    assert await tables.claim(connection, [arena.tournament_id])


@pytest.mark.parametrize("hold", [overtaken, claimed])
async def test_a_shard_does_not_move_away_under_a_lock(
    hold: Callable[[asyncpg.Connection, Arena], Awaitable[None]], database: Database, owner: asyncpg.Connection
) -> None:
    """Or another could have the same lock on the new node."""
    arena = await open_arena(database)
    await Worker(database).catch_up()
    place = await owner.fetchrow(_PLACE, arena.tournament_id)
    elsewhere = await owner.fetchrow(_ELSEWHERE, *place[1:])
    async with (
        database.connection_for(arena.tournament_id) as session,
        database.connection_for(arena.tournament_id) as looking,
    ):
        async with session.transaction():
            await hold(session, arena)
            moving = asyncio.create_task(owner.execute(_MOVE_BLOCKING, *place, *elsewhere))
            await until(lambda: moving.done() or looking.fetchval(_MOVE_WAITS))
            assert not moving.done()
        await moving


async def test_a_read_waits_where_a_move_has_been_decided_and_is_not_known_yet(
    database: Database, addresses: list[str]
) -> None:
    """The old node has prepared the move, and others may write on the new one already."""
    arena = await open_arena(database)
    async with database.connection() as connection:
        shard, _, port = await connection.fetchrow(_PLACE, arena.tournament_id)
    (address,) = [address for address in addresses if urlsplit(address).port == port]
    node = await asyncpg.connect(address)
    async with desk_at(address) as desk, desk.live_pool.pinned(arena.tournament_id) as live:
        await desk.live_pool.make_current(live)
        await node.execute(f"BEGIN; SELECT lock_shard_metadata(7, ARRAY[{shard}]); PREPARE TRANSACTION 'move'")
        try:
            reading = asyncio.create_task(desk.live_pool.make_current(live))
            await until(lambda: reading.done() or node.fetchval(_MOVE_WAITS))
            assert not reading.done()
        finally:
            await node.execute("COMMIT PREPARED 'move'")
        await reading
    await node.close()


MOVES: Final = 10


@pytest.mark.timeout(300)
async def test_appends_that_wait_while_a_shard_moves_are_never_said_to_be_impossible(
    addresses: list[str], database: Database, owner: asyncpg.Connection
) -> None:
    """A move in the mode `block_writes` holds up all appends to its shard. Those that go on afterwards may still look
    for the head on the old node: nothing is wrong with them, and they may be there already."""
    async with desk_at(addresses[0]) as one, desk_at(addresses[1]) as two:
        arena = await open_arena(database)
        served = Served()
        playing = [
            asyncio.create_task(change(desk, [arena], served, number)) for number in range(6) for desk in (one, two)
        ]
        try:
            for _ in range(MOVES):
                before = served.added.total()
                await until(lambda before=before: served.added.total() >= before + 50, RESUMED_SECONDS_MAX)
                shard, *place = await owner.fetchrow(_PLACE, arena.tournament_id)
                elsewhere = await owner.fetchrow(_ELSEWHERE, *place)
                await owner.execute(_MOVE_BLOCKING, shard, *place, *elsewhere)
            before = served.added.total()
            await until(lambda: served.added.total() >= before + 50, RESUMED_SECONDS_MAX)
        finally:
            for task in playing:
                task.cancel()
            await asyncio.gather(*playing, return_exceptions=True)
        assert served.failures["Rejected"] == 0, served.failures
        async with one.live_pool.pinned(arena.tournament_id) as live:
            await one.live_pool.make_current(live)
            acknowledged = served.added.total()
            assert acknowledged <= total(live, arena) <= acknowledged + len(playing)  # those that were cancelled
