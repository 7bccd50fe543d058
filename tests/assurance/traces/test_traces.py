"""The model accepts what real processes did, and not what they did not do."""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from assurance.faults.table import Trial
from assurance.model.state import Kind
from assurance.traces.changes import (
    CLOSE_BY,
    DROPPED,
    ELSE,
    ELSEWHERE,
    OTHER_CHECKPOINT,
    OTHER_LIVE,
    TWICE,
    changes,
)
from assurance.traces.conformance import PATIENT_STATES_MAX, misfit
from assurance.traces.facts import untruth
from assurance.traces.lines import DATABASE, Did, Entry, Line, Log, Lost, Said, Trace, without_failed_reads
from assurance.traces.playing import LOSING, Fault, some_faults, traces
from tests.assurance.conftest import prepared, trial

__all__ = ["prepared", "trial"]  # fixtures

FEWER = CLOSE_BY[1]
A_START = (DROPPED, TWICE, ELSEWHERE)
FEW_OR_MANY = [(2, 1), pytest.param(3, 4, marks=pytest.mark.long)]
"""How many clients ask at the same time, which makes the search longer, and how many lines are changed."""


def _trace(log: Log, *lines: tuple[int, Did, dict[str, Any]]) -> Trace:
    numbered = enumerate(lines)
    return Trace(
        tuple([Line(at=at, process=process, tournament=1, did=did, **facts) for at, (process, did, facts) in numbered]),
        log,
    )


TOGETHER = _trace(
    Log(
        1,
        (Entry("close", 2, 2), Entry("reopen", 3, 3), Entry("close again", 4, 4)),
        {1: "1", 2: "2", 3: "3", 4: "4"},
        {"a": 1, "b": 2},
    ),
    (0, Did.STARTED, {}),
    (1, Did.STARTED, {}),
    (0, Did.ASKED, {"case": 0, "request": "close", "kind": Kind.CLOSE, "keyed": True}),
    (0, Did.JUDGED, {"taken": (0,), "sequence": 1, "digest": "1"}),
    (0, Did.COMMITTED, {"answers": (2,), "sequence": 2, "digest": "2"}),
    (0, Did.ANSWERED, {"case": 0, "sequence": 2}),
    (1, Did.ASKED, {"case": 0, "request": "reopen", "kind": Kind.REOPEN, "keyed": True}),
    (1, Did.JUDGED, {"refused": (0,), "sequence": 1, "digest": "1"}),
    (0, Did.ASKED, {"case": 1, "request": "a", "keyed": True}),
    (0, Did.ASKED, {"case": 2, "request": "b", "keyed": True}),
    (0, Did.JUDGED, {"refused": (1, 2), "sequence": 2, "digest": "2"}),
    (1, Did.JUDGED, {"taken": (0,), "sequence": 2, "digest": "2"}),
    (1, Did.ASKED, {"case": 1, "request": "b", "keyed": True}),
    (1, Did.COMMITTED, {"answers": (3,), "sequence": 3, "digest": "3"}),
    (1, Did.ANSWERED, {"case": 0, "sequence": 3}),
    (0, Did.STARTED, {}),
    (1, Did.JUDGED, {"taken": (1,), "sequence": 3, "digest": "3"}),
    (1, Did.COMMITTED, {"answers": (None,)}),
    (1, Did.ANSWERED, {"case": 1, "said": Said.UNAVAILABLE}),
    (1, Did.ASKED, {"case": 2, "request": "close again", "kind": Kind.CLOSE, "keyed": True, "refusals": 1}),
    (1, Did.JUDGED, {"taken": (2,), "sequence": 3, "digest": "3", "refusals": 1}),
    (1, Did.COMMITTED, {"answers": (4,), "sequence": 4, "digest": "4"}),
    (1, Did.ANSWERED, {"case": 2, "sequence": 4}),
    (1, Did.ASKED, {"case": 3, "request": "b", "keyed": True, "refusals": 1}),
    (1, Did.JUDGED, {"refused": (3,), "sequence": 4, "digest": "4"}),
    (1, Did.NOTED, {"request": "b", "refusals": 2}),
    (1, Did.ANSWERED, {"case": 3, "said": Said.REFUSED}),
)
"""While the ranking is closed, process 0 refuses two keys together, and dies before it notes that. Process 1 has taken
one of them before; it hears of the refusal (None), and refuses this key again later."""
RESENT = _trace(
    Log(
        1,
        (Entry("close", 2, 2), Entry("reopen", 3, 3), Entry("a", 4, 4)),
        {1: "1", 2: "2", 3: "3", 4: "4"},
        {"a": 1},
    ),
    (0, Did.STARTED, {}),
    (0, Did.ASKED, {"case": 0, "request": "close", "kind": Kind.CLOSE, "keyed": True}),
    (0, Did.JUDGED, {"taken": (0,), "sequence": 1, "digest": "1"}),
    (0, Did.COMMITTED, {"answers": (2,), "sequence": 2, "digest": "2"}),
    (0, Did.ANSWERED, {"case": 0, "sequence": 2}),
    (0, Did.ASKED, {"case": 1, "request": "a", "keyed": True}),
    (0, Did.JUDGED, {"refused": (1,), "sequence": 2, "digest": "2"}),
    (0, Did.NOTED, {"request": "a", "refusals": 1}),
    (0, Did.ANSWERED, {"case": 1, "said": Said.REFUSED}),
    (0, Did.ASKED, {"case": 2, "request": "reopen", "kind": Kind.REOPEN, "keyed": True, "refusals": 1}),
    (0, Did.JUDGED, {"taken": (2,), "sequence": 2, "digest": "2", "refusals": 1}),
    (0, Did.COMMITTED, {"answers": (3,), "sequence": 3, "digest": "3"}),
    (0, Did.ANSWERED, {"case": 2, "sequence": 3}),
    (0, Did.ASKED, {"case": 3, "request": "a", "keyed": True, "refusals": 1}),
    (0, Did.JUDGED, {"taken": (3,), "sequence": 3, "digest": "3", "refusals": 1}),
    (0, Did.COMMITTED, {"answers": (4,), "sequence": 4, "digest": "4"}),
    (0, Did.ANSWERED, {"case": 3, "sequence": 4}),
)
"""A client does not hear that its request is refused, and sends it again when the ranking has been reopened."""
UNSAVED = _trace(
    Log(1, (Entry("+1", 2, 2), Entry("+2", 3, 3)), {1: "1", 2: "2", 3: "3"}, {}),
    (0, Did.STARTED, {}),
    (2, Did.STARTED, {}),
    (3, Did.STARTED, {}),
    (0, Did.ASKED, {"case": 0, "request": "+1"}),
    (0, Did.JUDGED, {"taken": (0,), "sequence": 1, "digest": "1"}),
    (0, Did.COMMITTED, {"answers": (2,), "sequence": 2, "digest": "2"}),
    (0, Did.ANSWERED, {"case": 0, "sequence": 2}),
    (2, Did.CLAIMED, {"after": 1, "sequence": 2, "digest": "2"}),
    (0, Did.ASKED, {"case": 1, "request": "+2"}),
    (0, Did.JUDGED, {"taken": (1,), "sequence": 2, "digest": "2"}),
    (0, Did.COMMITTED, {"answers": (3,), "sequence": 3, "digest": "3"}),
    (0, Did.ANSWERED, {"case": 1, "sequence": 3}),
    (2, Did.STARTED, {}),
    (3, Did.CLAIMED, {"after": 2, "sequence": 3, "digest": "3"}),
    (3, Did.SAVED, {"sequence": 3, "digest": "3"}),
)
"""A worker dies before it can say that it has saved what it read; another goes on from there."""
SAVED_MEANWHILE = replace(
    UNSAVED,
    lines=(
        *UNSAVED.lines[:10],
        Line(at=10, process=2, tournament=1, did=Did.SAVED, sequence=2, digest="2"),
        *UNSAVED.lines[10:12],
        *UNSAVED.lines[13:],
    ),
)
"""The worker saves while an append is under way."""
LACKING = _trace(
    Log(1, (Entry("+1", 2, 2),), {1: "1", 2: "2"}, {}),
    (0, Did.STARTED, {}),
    (0, Did.ASKED, {"case": 0, "request": "+1"}),
    (0, Did.JUDGED, {"taken": (0,), "sequence": 1, "digest": "1"}),
    (0, Did.COMMITTED, {"answers": (2,), "sequence": 2, "digest": "2"}),
    (0, Did.ANSWERED, {"case": 0, "sequence": 2}),
    (2, Did.CLAIMED, {"after": 1, "sequence": 2, "digest": "2"}),
    (2, Did.SAVED, {"sequence": 2, "digest": "2"}),
    (DATABASE, Did.CRASHED, {}),
    (3, Did.CLAIMED, {"after": 1, "sequence": 2, "digest": "2"}),
    (3, Did.SAVED, {"sequence": 2, "digest": "2"}),
)
"""PostgreSQL is killed before what a worker has saved is on disk."""
UNSHOWN = _trace(
    Log(1, (Entry("+1", 2, 2),), {1: "1", 2: "2"}, {}),
    (0, Did.STARTED, {}),
    (1, Did.STARTED, {}),
    (0, Did.READ, {}),
    (0, Did.STARTED, {}),
    (1, Did.ASKED, {"case": 0, "request": "+1"}),
    (1, Did.JUDGED, {"taken": (0,), "sequence": 1, "digest": "1"}),
    (1, Did.COMMITTED, {"answers": (2,), "sequence": 2, "digest": "2"}),
    (1, Did.ANSWERED, {"case": 0, "sequence": 2}),
    (0, Did.READ, {}),
    (0, Did.SHOWN, {"sequence": 2, "digest": "2"}),
)
"""A process dies after it was asked for a list, which it does not show."""
REPLACED = replace(
    _trace(
        Log(1, (Entry("a", 2, 2), Entry("c", 3, 3), Entry("d", 4, 4)), {1: "1", 2: "2", 3: "3 again", 4: "4"}, {}),
        (0, Did.STARTED, {}),
        (1, Did.STARTED, {}),
        (0, Did.ASKED, {"case": 0, "request": "a", "keyed": True}),
        (0, Did.JUDGED, {"taken": (0,), "sequence": 1, "digest": "1"}),
        (0, Did.COMMITTED, {"answers": (2,), "sequence": 2, "digest": "2"}),
        (0, Did.ANSWERED, {"case": 0, "sequence": 2}),
        (0, Did.ASKED, {"case": 1, "request": "b", "keyed": True}),
        (0, Did.JUDGED, {"taken": (1,), "sequence": 2, "digest": "2"}),
        (0, Did.COMMITTED, {"answers": (3,), "sequence": 3, "digest": "3"}),
        (0, Did.ANSWERED, {"case": 1, "sequence": 3}),
        (0, Did.ASKED, {"case": 2, "request": "c", "keyed": True}),
        (0, Did.JUDGED, {"taken": (2,), "sequence": 3, "digest": "3"}),
        (DATABASE, Did.RESTORED, {"sequence": 2, "digest": "2"}),
        (0, Did.LOST, {}),
        (0, Did.FORGOT, {}),
        (0, Did.FORKED, {}),
        (0, Did.ASKED, {"live": 1, "case": 3, "request": "c", "keyed": True}),
        (0, Did.JUDGED, {"live": 1, "taken": (3,), "sequence": 2, "digest": "2"}),
        (0, Did.COMMITTED, {}),
        (0, Did.ANSWERED, {"case": 2, "said": Said.UNAVAILABLE}),
        (0, Did.COMMITTED, {"live": 1, "answers": (3,), "sequence": 3, "digest": "3 again"}),
        (0, Did.ANSWERED, {"live": 1, "case": 3, "sequence": 3}),
        (1, Did.ASKED, {"case": 0, "request": "d", "keyed": True}),
        (1, Did.JUDGED, {"taken": (0,), "sequence": 1, "digest": "1"}),
        (1, Did.COMMITTED, {"answers": (4,), "sequence": 4, "digest": "4"}),
        (1, Did.ANSWERED, {"case": 0, "sequence": 4}),
    ),
    lost=Lost(Log(1, (Entry("a", 2, 2), Entry("b", 3, 3)), {1: "1", 2: "2", 3: "3"}, {}), {}, 0, 1),
)
"""A backup that lacks b takes the place of the database. A block of process 0 is under way, which is judged by b; it is
overtaken while the next one is under way, which the process has judged by the log as it is now. Process 1 has read
nothing that is lost, and goes on."""


def untruths_accepted(trace: Trace, count: int) -> list[str]:
    """Of that many traces with a line that cannot be true, those that the model accepts."""
    untrue = [one for one in changes(trace) if untruth(one.changed)]
    return [one.told for one in Random(1).sample(untrue, count) if not misfit(one.changed)]


@pytest.mark.parametrize(("clients", "changes"), FEW_OR_MANY)
async def test_the_model_accepts_what_killed_processes_did_and_refuses_it_with_an_untrue_line(
    trial: Callable[[float], Trial], clients: int, changes: int
) -> None:
    faults = [Fault.KILLED, Fault.CUT_OFF]
    for trace in await traces(trial(1), tournaments=2, clients=clients, requests=4, faults=faults):
        assert sum(line.did is Did.STARTED for line in trace.lines) > 2
        assert any(line.did is Did.FORGOT for line in trace.lines)
        assert misfit(trace, PATIENT_STATES_MAX) == untruth(trace) == ""
        assert untruths_accepted(trace, changes) == []


def test_keys_that_a_process_refused_together_before_it_died_are_all_refused() -> None:
    assert misfit(TOGETHER) == ""
    alive = tuple([line for line in TOGETHER.lines if line.did is not Did.STARTED or line.at < 2])
    assert "answers=(None,)" in misfit(replace(TOGETHER, lines=alive))


def test_what_was_refused_is_recorded_only_when_it_is_sent_again_knowing_of_the_refusal() -> None:
    assert misfit(RESENT) == untruth(RESENT) == ""
    sent_before = tuple([replace(line, refusals=0) if line.at > 12 else line for line in RESENT.lines])
    assert misfit(replace(RESENT, lines=sent_before)) != ""
    assert "what is refused" in untruth(replace(RESENT, lines=sent_before))
    unkeyed = tuple([replace(line, keyed=False) if line.request == "a" else line for line in RESENT.lines])
    assert "what is refused" in untruth(replace(RESENT, lines=unkeyed))


@pytest.mark.parametrize("fault", [Fault.RESTORED, pytest.param(Fault.LAGGED, marks=pytest.mark.long)])
@pytest.mark.parametrize(("clients", "changes"), FEW_OR_MANY)
async def test_the_model_accepts_what_processes_with_a_replaced_log_did_and_refuses_an_untrue_line(
    trial: Callable[[float], Trial], fault: Fault, clients: int, changes: int
) -> None:
    for trace in await traces(trial(1), tournaments=2, clients=clients, requests=4, faults=[fault]):
        assert misfit(trace, PATIENT_STATES_MAX) == untruth(trace) == ""
        assert untruths_accepted(trace, changes) == []


def test_a_process_takes_the_log_for_another_one_if_and_only_if_it_is_another_one() -> None:
    assert misfit(REPLACED) == ""
    (forked,) = [line for line in REPLACED.lines if line.did is Did.FORKED]
    assert "live=1" in misfit(replace(REPLACED, lines=tuple([line for line in REPLACED.lines if line != forked])))
    for place in range(2, len(UNSAVED.lines)):
        lines = (*UNSAVED.lines[:place], forked, *UNSAVED.lines[place:])
        assert "forked" in misfit(replace(UNSAVED, lines=lines))


def test_what_a_restore_lost_is_not_asked_of_the_log_but_all_else_is() -> None:
    lost = REPLACED.lost
    assert lost is not None
    unrestored = tuple([line for line in REPLACED.lines if line.did is not Did.RESTORED])
    assert misfit(replace(REPLACED, lines=unrestored)) != ""
    assert misfit(replace(REPLACED, lines=unrestored, lost=None)) != ""
    whole = replace(lost.log, entries=lost.log.entries[:1], digests={1: "1", 2: "2"})
    assert "taken=(1,)" in misfit(replace(REPLACED, lost=replace(lost, log=whole)))


def test_one_of_the_faults_at_most_loses_something() -> None:
    drawn = [some_faults(Random(seed), 4) for seed in range(100)]
    assert {sum(fault in LOSING for fault in faults) for faults in drawn} == {0, 1}


@pytest.mark.parametrize(
    ("trace", "legal"),
    [
        pytest.param(
            TOGETHER,
            {0: A_START, 1: A_START, 7: (DROPPED,), 15: (TWICE,), 25: (TWICE,)},
            marks=pytest.mark.long,
            id="together",
        ),
        pytest.param(
            UNSAVED,
            {
                **dict.fromkeys((0, 1, 2, 12), A_START),
                7: (TWICE, ELSEWHERE, OTHER_CHECKPOINT),
                13: (TWICE, OTHER_CHECKPOINT),
                14: (DROPPED,),
            },
            id="unsaved",
        ),
        pytest.param(
            SAVED_MEANWHILE,
            {
                **dict.fromkeys((0, 1, 2), A_START),
                7: (TWICE, OTHER_CHECKPOINT),
                10: (DROPPED, FEWER),
                13: (TWICE,),
                14: (DROPPED,),
            },
            id="saved meanwhile",
        ),
        pytest.param(
            LACKING,
            {
                0: A_START,
                **dict.fromkeys((5, 8), (TWICE, OTHER_CHECKPOINT)),
                **dict.fromkeys((6, 9), (DROPPED, FEWER)),
                7: (TWICE,),
            },
            id="lacking",
        ),
        pytest.param(RESENT, {0: A_START, 7: (TWICE,)}, id="resent"),
        pytest.param(UNSHOWN, {0: A_START, 1: A_START, 2: (DROPPED,), 3: (TWICE,)}, id="unshown"),
        pytest.param(
            REPLACED,
            {
                **dict.fromkeys((0, 1, 14), A_START),
                10: (ELSE,),
                13: (*A_START, OTHER_LIVE),
            },
            id="replaced",
        ),
    ],
)
def test_the_model_accepts_only_the_legal_changes_of_a_rare_trace(
    trace: Trace, legal: dict[int, tuple[str, ...]]
) -> None:
    """By line, the changes that leave a trace which processes could have left as well:

    - A process may start twice. Nobody sees the start of a process that has nothing to do, or that is only read from;
      nor whether one that died had been asked for a list.
    - A judging that takes nothing may be left out: the next one refuses the same. A key may be noted once more by a
      process that was asked twice. What nobody heard of may have been another request.
    - A worker may read again what it does not save. One that dies may have saved what it does not say it has.
    - What workers did about events before the play does not matter. They may begin before the play, or, when PostgreSQL
      was killed, before what they had saved.
    - Lines about lost connections say what may have happened meanwhile, and need not have.
    """
    assert misfit(trace) == untruth(trace) == ""
    accepted: dict[int, tuple[str, ...]] = {}
    for one in changes(trace):
        if not misfit(one.changed):
            accepted[one.place] = (*accepted.get(one.place, ()), one.what)
    assert accepted == dict(sorted(legal.items()))


def test_workers_save_twice_only_if_postgresql_was_killed() -> None:
    assert misfit(LACKING) == ""
    alive = tuple([line for line in LACKING.lines if line.did is not Did.CRASHED])
    assert "after=1" in misfit(replace(LACKING, lines=alive))


def test_a_read_that_failed_is_passed_over_and_no_other() -> None:
    told = [(0, Did.READ), (1, Did.READ), (0, Did.UNREAD), (1, Did.SHOWN), (0, Did.READ), (0, Did.SHOWN), (1, Did.READ)]
    lines = [Line(at=at, process=process, tournament=1, did=did) for at, (process, did) in enumerate(told)]
    assert [line.at for line in without_failed_reads(lines)] == [1, 3, 4, 5, 6]


@pytest.mark.long
@pytest.mark.timeout(1800)
async def test_the_model_refuses_every_change_of_a_line_that_cannot_be_true(trial: Callable[[float], Trial]) -> None:
    for trace in await traces(trial(1), tournaments=2, clients=2, requests=4, faults=[Fault.KILLED]):
        assert misfit(trace, PATIENT_STATES_MAX) == ""
        accepted = [one for one in changes(trace) if not misfit(one.changed)]
        assert [(one.told, why) for one in accepted if (why := untruth(one.changed))] == []
