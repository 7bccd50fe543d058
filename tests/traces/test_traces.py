"""The model accepts what real processes did, and not what they did not do."""

from collections.abc import Callable
from random import Random

import pytest

from tests.faults.conftest import prepared, trial
from tests.faults.table import Trial
from tests.traces.changes import changes, is_legal
from tests.traces.conformance import misfit
from tests.traces.lines import Did, Line, without_failed_reads
from tests.traces.playing import Fault, traces

__all__ = ["prepared", "trial"]  # fixtures

CHANGES = 4


async def test_the_model_accepts_what_killed_processes_did_and_refuses_it_with_a_line_changed(
    trial: Callable[[float], Trial],
) -> None:
    for trace in await traces(trial(1), tournaments=2, clients=3, requests=4, faults=[Fault.KILLED]):
        assert sum(line.did is Did.STARTED for line in trace.lines) > 2
        assert misfit(trace) == ""
        changed = [one for one in changes(trace) if not is_legal(trace, one)]
        accepted = [one.told for one in Random(1).sample(changed, CHANGES) if not misfit(one.changed)]
        assert accepted == []


def test_a_read_that_failed_is_passed_over_and_no_other() -> None:
    told = [(0, Did.READ), (1, Did.READ), (0, Did.UNREAD), (1, Did.SHOWN), (0, Did.READ), (0, Did.SHOWN), (1, Did.READ)]
    lines = [Line(at=at, process=process, tournament=1, did=did) for at, (process, did) in enumerate(told)]
    assert [line.at for line in without_failed_reads(lines)] == [1, 3, 4, 5, 6]


@pytest.mark.long
@pytest.mark.timeout(1800)
async def test_every_change_of_a_line_is_found_or_is_legal(trial: Callable[[float], Trial]) -> None:
    for trace in await traces(trial(1), tournaments=2, clients=2, requests=4, faults=[Fault.KILLED]):
        assert misfit(trace) == ""
        accepted = [one for one in changes(trace) if not misfit(one.changed)]
        assert [one.told for one in accepted if not is_legal(trace, one)] == []
