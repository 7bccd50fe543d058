"""Faults on a distributed database, whose nodes run on this machine: two services at different nodes, clients at play,
and a node that is killed, the coordinator that is, or a shard that moves. Nothing acknowledged is lost or doubled."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

import asyncpg
import pytest

from engine.database.pool import open_database
from projections.verification.all_tournaments import Plan, verify_all
from tests.conftest import only_distributed
from tests.desks import until
from tests.faults.checker import Evidence, judge
from tests.faults.history import Outcome
from tests.faults.nodes import Node, Nodes
from tests.faults.stage import Program, Stage
from tests.faults.wire import wire

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
