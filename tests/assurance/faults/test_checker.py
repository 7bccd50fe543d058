"""The checker finds what it is for: of the evidence of a clean run one thing is changed, and it must tell."""

import asyncio
import copy
import re
from collections.abc import Callable

import msgspec
import pytest

from assurance.faults.checker import ACCEPTED_SECONDS_MAX, Evidence, Head, Stored, judge, lost
from assurance.faults.clients import MIXED
from assurance.faults.history import Attempt, Kind, Outcome, Shown
from assurance.faults.table import Trial


def _last_add(evidence: Evidence) -> Stored:
    return next(e for e in reversed(evidence.logs[0].events) if e.kind == "PointsAdded" and e.key)


def _answers(evidence: Evidence) -> list[Attempt]:
    return [a for a in evidence.history.ok() if a.asked.kind is Kind.ADD and a.asked.tournament == 0]


def lose(evidence: Evidence) -> None:
    evidence.logs[0].events.remove(_last_add(evidence))


def double(evidence: Evidence) -> None:
    events = evidence.logs[0].events
    events.append(msgspec.structs.replace(_last_add(evidence), sequence=len(events) + 1))


def invent(evidence: Evidence) -> None:
    events = evidence.logs[0].events
    competitor, unity = evidence.logs[0].arena.competitors[0], evidence.logs[0].arena.unities[0]
    forged = {"deltas": [[competitor, unity, 1]]}
    events.append(msgspec.structs.replace(_last_add(evidence), sequence=len(events) + 1, key=None, body=forged))


def record_what_was_refused(evidence: Evidence) -> None:
    wanted = _answers(evidence)[-1]
    for attempt in evidence.history.attempts:
        if attempt.asked is wanted.asked:
            attempt.outcome, attempt.status = Outcome.NO, 422


def add_more_than_was_asked(evidence: Evidence) -> None:
    (competitor, unity, amount), *others = _last_add(evidence).body["deltas"]
    _last_add(evidence).body["deltas"][:] = [[competitor, unity, amount], *others, [competitor, unity, 1]]


def change_the_tables(evidence: Evidence) -> None:
    tables = evidence.logs[0].tables
    assert tables is not None
    evidence.logs[0] = msgspec.structs.replace(evidence.logs[0], tables=_raised(tables))


def show_something_else_in_the_end(evidence: Evidence) -> None:
    place, shown = evidence.looks[0]
    evidence.looks[0] = place, _raised(shown)


def show_another_total(evidence: Evidence) -> None:
    answer = _answers(evidence)[-1]
    assert answer.shown is not None
    answer.shown = _raised(answer.shown)


def show_what_was_before(evidence: Evidence) -> None:
    answers = sorted(_answers(evidence), key=lambda answer: answer.began)
    answers[-1].shown = answers[0].shown


def show_fewer_competitions(evidence: Evidence) -> None:
    next(a for a in reversed(evidence.history.attempts) if a.count > 0).count = 0


def leave_a_gap(evidence: Evidence) -> None:
    events = evidence.logs[0].events
    events[-1] = msgspec.structs.replace(events[-1], sequence=len(events) + 1)


def change_a_byte(evidence: Evidence) -> None:
    evidence.logs[0].blocks[1]["text"] += " "


def have_seen_another_head(evidence: Evidence) -> None:
    evidence.heads.append(Head(0, 3, b"another"))


def answer_with_an_odd_status(evidence: Evidence) -> None:
    evidence.history.attempts[-1].status = 418


def say_that_it_is_a_defect(evidence: Evidence) -> None:
    evidence.lines.append('{"event":"request_failed"}')


def accept_a_write_late(evidence: Evidence) -> None:
    line = next(said for said in evidence.lines if '"method":"PUT"' in said and '"status":200' in said)
    evidence.lines.append(re.sub('(?<="milliseconds":)[0-9.]+', str(1000 * ACCEPTED_SECONDS_MAX + 1), line))


def cross_tournaments(evidence: Evidence) -> None:
    evidence.logs[1].events.append(_last_add(evidence))


def use_an_id_again(evidence: Evidence) -> None:
    one, other = [e for e in evidence.logs[1].events if e.kind == "CompetitorRegistered"][:2]
    other.body["competitor_id"] = one.body["competitor_id"]


def use_an_id_of_another_tournament(evidence: Evidence) -> None:
    event = next(e for e in evidence.logs[1].events if e.kind == "CompetitorRegistered")
    event.body["competitor_id"] = evidence.logs[0].arena.competitors[0]


def be_about_what_is_not_there(evidence: Evidence) -> None:
    _last_add(evidence).body["ranking_id"] = evidence.logs[1].arena.ranking_id


def reverse_too_little(evidence: Evidence) -> None:
    event = next(e for e in evidence.logs[0].events if e.kind == "PointsReversed")
    event.body["deltas"][0][2] += 1


def void_without_a_reversal(evidence: Evidence) -> None:
    events = evidence.logs[0].events
    events.remove(next(e for e in events if e.kind == "PointsReversed"))


def record_a_void_that_nobody_asked_for(evidence: Evidence) -> None:
    event = next(e for e in evidence.logs[0].events if e.kind == "CompetitionVoided")
    event.body["competition_id"] += 1


def record_what_was_unknown_and_then_refused(evidence: Evidence) -> None:
    wanted = _answers(evidence)[-1]
    for attempt in evidence.history.attempts:
        if attempt.asked is wanted.asked:
            attempt.outcome, attempt.status = Outcome.UNKNOWN, 500
    later = copy.copy(wanted)
    later.outcome, later.status, later.began = Outcome.NO, 409, wanted.ended
    evidence.history.attempts.append(later)


def make_something_else_than_was_answered(evidence: Evidence) -> None:
    next(a for a in evidence.history.ok() if a.made and a.asked.kind is Kind.COMPETITION).made += 1


def resume_late(evidence: Evidence) -> None:
    evidence.resumed.append(evidence.resumed_seconds_max + 1)


def _raised(shown: Shown) -> Shown:
    (who, total), *others = shown.totals[0]
    return Shown(shown.versions, (((who, total + 1), *others), *shown.totals[1:]))


CHANGES: list[tuple[str, Callable[[Evidence], None]]] = [
    ("I1", lose),
    ("I2", double),
    ("I3", invent),
    ("I3", record_what_was_refused),
    ("I4", add_more_than_was_asked),
    ("I5", change_the_tables),
    ("I5", show_something_else_in_the_end),
    ("I6", show_another_total),
    ("I7", leave_a_gap),
    ("I8", change_a_byte),
    ("I8", have_seen_another_head),
    ("I9", show_what_was_before),
    ("I9", show_fewer_competitions),
    ("I10", answer_with_an_odd_status),
    ("I10", say_that_it_is_a_defect),
    ("I10", accept_a_write_late),
    ("I11", cross_tournaments),
    ("I3", use_an_id_again),
    ("I3", use_an_id_of_another_tournament),
    ("I5", be_about_what_is_not_there),
    ("I4", reverse_too_little),
    ("I4", void_without_a_reversal),
    ("I3", record_a_void_that_nobody_asked_for),
    ("I3", record_what_was_unknown_and_then_refused),
    ("I2", make_something_else_than_was_answered),
    ("I12", resume_late),
]


@pytest.mark.long
async def test_the_checker_finds_each_change(trial: Callable[[float], Trial]) -> None:
    async with trial(1).stage(tournaments=2, services=2, workers=1) as stage:
        async with stage.load(clients=4, pause_seconds=0.005, mix=MIXED):
            await asyncio.sleep(1)
            for kind in (Kind.COMPETITION, Kind.LIST):
                client = stage.client()
                attempt = await client.attempt(client.draw(kind, 0), 0)
                assert attempt.outcome is Outcome.OK
                if kind is Kind.COMPETITION:
                    match = attempt.made
        client = stage.client()
        await stage.settled()
        for kind in (Kind.ADD, Kind.VOID):
            asked = client.draw(Kind.ADD if kind is Kind.ADD else Kind.REGISTER, 0, keyed=True)
            attempt = await client.attempt(msgspec.structs.replace(asked, kind=kind, target=match), 0)
            assert attempt.outcome is Outcome.OK
        assert (await client.attempt(client.draw(Kind.ADD, 0, keyed=True), 0)).outcome is Outcome.OK
        evidence = await stage.evidence()
    assert judge(evidence).wrong == {}
    missed = []
    for invariant, change in CHANGES:
        changed = copy.deepcopy(evidence)
        try:
            change(changed)
        except StopIteration:
            pytest.fail(f"there is nothing to try {change.__name__} on")
        if invariant not in judge(changed).wrong:
            missed.append((invariant, change.__name__))
    assert missed == []
    _assert_a_replacement_excuses_what_it_lost(evidence)
    for change, excused in (use_an_id_again, False), (use_an_id_of_another_tournament, True):
        changed = copy.deepcopy(evidence)
        change(changed)
        changed.history.replaced(0, 0)
        assert any("overwrites" in fault for fault in judge(changed).wrong.get("I3", ())) != excused


def _assert_a_replacement_excuses_what_it_lost(evidence: Evidence) -> None:
    """And nothing that was acknowledged before the backup, or after the restore."""
    wanted = _answers(evidence)[-1]
    for began, done, excused in (
        (wanted.began, wanted.ended + 1, True),
        (wanted.began - 2, wanted.began - 1, False),
        (wanted.ended + 1, wanted.ended + 2, False),
    ):
        changed = copy.deepcopy(evidence)
        lose(changed)
        changed.history.replaced(began, done)
        assert ("I1" not in judge(changed).wrong) == excused
        assert lost(changed) == excused
