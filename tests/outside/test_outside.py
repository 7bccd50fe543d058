"""Real services, with what their clients saw and nothing else: is it what one list, or one table, would have shown?"""

import asyncio
import json
from collections.abc import Callable
from itertools import count
from pathlib import Path

import msgspec
import pytest

from assurance.faults import crashes
from assurance.faults.history import Kind
from assurance.faults.table import Trial
from tests.assurance.conftest import prepared, trial
from tests.desks import until
from tests.outside import operations as histories
from tests.outside.exports import elle, porcupine
from tests.outside.linearizability import misfit
from tests.outside.operations import Operation
from tests.outside.recording import Recorder
from tests.outside.sequential import NO_POINTS, of_list, of_number, of_points

__all__ = ["prepared", "trial"]  # fixtures

CLIENTS = 5
ROUNDS = 3


async def recorded(trial: Trial) -> list[Operation]:
    """The history of two lists, while the API processes of two services are killed in turn."""
    async with trial.stage(tournaments=2, workers=0) as stage:
        numbers, stopped = count(1), asyncio.Event()
        recorders = [Recorder(n, [stage.caller(0), stage.caller(1)], stage.arenas, numbers) for n in range(CLIENTS)]
        async with asyncio.TaskGroup() as playing:
            for recorder in recorders:
                playing.create_task(recorder.play(stopped))
            for n in range(ROUNDS):
                await _answered(recorders, 20)
                stage.services[n % 2].kill()
            await _answered(recorders, 20)
            stopped.set()
        await recorders[0].read_all()
        for recorder in recorders:
            recorder.close()
        return [one for recorder in recorders for one in recorder.operations]


async def _answered(recorders: list[Recorder], number: int) -> None:
    """Returns when that many more operations have ended."""
    before = sum(len(one.operations) for one in recorders)
    await until(lambda: sum(len(one.operations) for one in recorders) >= before + number, 60)


@pytest.mark.long
async def test_lists_that_services_keep_while_they_are_killed_are_linearizable(
    trial: Callable[[float], Trial], tmp_path: Path
) -> None:
    history = await recorded(trial(1))
    histories.write(tmp_path / "history.ndjson", history)
    found = histories.by_object(histories.read(tmp_path / "history.ndjson"))
    assert sum(map(len, found.values())) == len(history)
    for one in found.values():
        assert misfit(one, (), of_list) is None
        assert len(json.loads(porcupine(one))) == len(one)
    assert elle(history).count(":invoke") == len(history)

    longest = max(found.values(), key=len)
    last = max((one for one in longest if one.shown), key=lambda one: one.call)
    lacking = msgspec.structs.replace(last, shown=last.shown[1:])
    assert misfit([lacking if one is last else one for one in longest], (), of_list) is not None


@pytest.mark.long
async def test_points_and_lists_of_the_fault_campaign_are_linearizable(trial: Callable[[float], Trial]) -> None:
    """Of the case that kills the services at each fail point."""
    one = trial(0.03)
    await crashes.api_killed(one)
    (stage,) = one.stages
    found = histories.by_object(histories.of_campaign(stage.history))
    assert len(found) == 2 * len(stage.arenas)
    for place, arena in enumerate(stage.arenas):
        unities = {unity: n for n, unity in enumerate(arena.unities)}
        assert misfit(found[f"points {place}"], NO_POINTS, of_points(unities)) is None
        assert misfit(found[f"competitions {place}"], 0, of_number) is None
    assert any(attempt.replayed for attempt in stage.history.attempts if attempt.asked.kind is Kind.ADD)
