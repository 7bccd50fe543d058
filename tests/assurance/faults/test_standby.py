"""A service whose address leads to a standby all of a sudden: it must not take that for the truth. Nor must those who
listen to it, when the standby has become the primary."""

import asyncio
import json
from collections.abc import Callable

import pytest

from assurance.faults.history import Kind, Outcome
from assurance.faults.resources import promoted, standby, streaming
from assurance.faults.table import Trial
from tests.desks import until
from tests.spectator import SSE, Spectator, follow, shown


@pytest.mark.long
async def test_a_standby_that_lags_is_not_read_as_if_it_were_the_primary(trial: Callable[[float], Trial]) -> None:
    with_one = trial(1)
    async with with_one.stage(tournaments=1, workers=0) as stage, standby(with_one, stage) as other:
        await streaming(stage.cluster)
        client = stage.client()
        assert (await client.attempt(client.draw(Kind.LIST), 0)).outcome is Outcome.OK
        async with other.owner() as reader:
            await reader.execute("SELECT pg_wal_replay_pause()")
        assert (await client.attempt(client.draw(Kind.COMPETITION), 1)).outcome is Outcome.OK

        stage.back[0].target = other.target
        stage.back[0].reset_all()
        for _ in range(5):
            read = await client.attempt(client.draw(Kind.LIST), 0)
            assert read.outcome is not Outcome.OK or read.count == 1, read
        write = await client.attempt(client.draw(Kind.ADD), 0)
        assert write.status == 503

        stage.back[0].target = stage.cluster.target
        stage.back[0].reset_all()
        async with other.owner() as reader:
            await reader.execute("SELECT pg_wal_replay_resume()")


@pytest.mark.long
async def test_a_listener_continues_through_a_failover_and_folds_what_is_true_then(
    trial: Callable[[float], Trial],
) -> None:
    """The standby may lack the last changes; who has heard of them is told to start over."""
    with_one = trial(1)
    async with with_one.stage(tournaments=1, workers=0) as stage, standby(with_one, stage) as other:
        primary, slug = stage.cluster, stage.arenas[0].slug
        await streaming(primary)
        spectators = [Spectator(), Spectator(SSE)]
        last = 0

        def address() -> str:
            return f"http://127.0.0.1:{stage.services[0].port}/tournament/{slug}/events"

        following = [
            asyncio.create_task(follow(address, stage.token, one, lambda one=one: one.sequence >= last > 0))  # type: ignore[misc]
            for one in spectators
        ]
        async with stage.load(clients=4):
            await until(lambda: all(one.count("PointsAdded") > 20 for one in spectators), 30)
            await primary.kill()
            for one in stage.back:
                one.reset_all()
            await promoted(stage, other)
            await stage.resume()
        await stage.settled()
        last = (await other.fetch("SELECT max(sequence) AS last FROM tallybook.event"))[0]["last"]
        async with asyncio.timeout(30):
            await asyncio.gather(*following)
        caller = stage.caller(0)
        path = f"/tournament/{slug}/rankings/{stage.arenas[0].ranking_id}/standings.json"
        expected = shown([json.loads((await caller.ask("GET", path)).body)])
        caller.close()
        for one in spectators:
            assert one.standings() == expected
            assert one.sequences == list(range(1, last + 1))
