"""A service whose address leads to a standby all of a sudden: it must not take that for the truth."""

from collections.abc import Callable

from tests.faults.history import Kind, Outcome
from tests.faults.resources import standby, streaming
from tests.faults.table import Trial


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
