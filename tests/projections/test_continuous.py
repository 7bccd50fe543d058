"""Continuous verification: round and round, the longest unverified first, at a share of the time, until stopped."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from structlog.testing import capture_logs

from engine.database.pool import Database, open_database
from engine.domain.terms import OPERATOR, TournamentId
from engine.process.telemetry import DIFFERENCES, DIFFERING, VERIFIED_EVENTS, VERIFIED_TOURNAMENTS
from projections.verification import continuous, stored_log, witness
from projections.verification.all_tournaments import Plan
from projections.verification.continuous import verify_continuously
from projections.verification.noted import last_verified
from projections.verification.progress import ProgressFile
from tests.bounds import Bounds
from tests.calls import Calls
from tests.desks import until
from tests.tampering import LAST, stage, tamper
from tests.tournaments import open_new_tournament

ALL_THE_TIME = 0.9


@asynccontextmanager
async def going_round(database: Database, *, share: float = ALL_THE_TIME, **plan: Any) -> AsyncIterator[list[Any]]:
    """What it logs, while it goes round; last, how many differences it found."""
    stop = asyncio.Event()
    with capture_logs() as lines:
        going = asyncio.create_task(verify_continuously(database, Plan(**plan), share=share, stop=stop))
        try:
            yield lines
        finally:
            stop.set()
            lines.append({"event": "over", "count": await going})


def of(lines: list[Any], event: str) -> list[Any]:
    return [line for line in lines if line["event"] == event]


def rounds(lines: list[Any], number: int) -> Callable[[], bool]:
    return lambda: len(of(lines, "tournament_verified")) >= number


@pytest.fixture(autouse=True)
def _no_pause(bounds: Bounds) -> None:
    bounds(VERIFICATION_ROUND_SECONDS_MIN=0.0, RETRY_SECONDS=0.01)


async def test_it_goes_round_all_tournaments_and_counts_them(database: Database) -> None:
    slugs = [(await stage(database)).slug for _ in range(3)]
    events, tournaments = VERIFIED_EVENTS._value.get(), VERIFIED_TOURNAMENTS._value.get()
    async with going_round(database) as lines:
        await until(rounds(lines, 7))
    told = [line["tournament"] for line in of(lines, "tournament_verified")]
    assert told[:6] == slugs * 2
    assert (lines[-1]["count"], of(lines, "difference_found")) == (0, [])
    assert VERIFIED_TOURNAMENTS._value.get() - tournaments == len(told)
    assert VERIFIED_EVENTS._value.get() - events >= LAST * len(told)
    assert DIFFERING._value.get() == 0


async def test_the_longest_unverified_comes_first_also_of_runs_before(database: Database, tmp_path: Path) -> None:
    staged = [await stage(database) for _ in range(3)]
    state = ProgressFile(tmp_path / "state", Plan(state=tmp_path / "state").arguments("verify --forever"))
    for number in (2, 0):
        state.keep_verified(staged[number].tournament_id)
    state.close()
    async with going_round(database, state=tmp_path / "state") as lines:
        await until(rounds(lines, 4))
    told = [line["tournament"] for line in of(lines, "tournament_verified")]
    assert told[:4] == [staged[number].slug for number in (1, 2, 0, 1)]


async def test_findings_are_logged_and_counted_and_it_continues(database: Database, owner: asyncpg.Connection) -> None:
    staged, sound = await stage(database), await stage(database)
    await tamper(owner, "UPDATE total SET total = 77 WHERE tournament_id = $1", staged.tournament_id)
    await owner.execute("ALTER TABLE block DISABLE TRIGGER append_only")
    counted = DIFFERENCES._value.get()
    async with going_round(database) as lines:
        await until(rounds(lines, 3))
        assert DIFFERING._value.get() == 1
        await owner.execute("ALTER TABLE block ENABLE TRIGGER append_only")
    async with database.connection() as connection:
        noted = await last_verified(connection, [staged.tournament_id, sound.tournament_id, TournamentId(10**9)])
    assert {one: bool(last.differences) for one, last in noted.items()} == {
        staged.tournament_id: True,
        sound.tournament_id: False,
    }
    assert {last.sequence for last in noted.values()} == {LAST}
    found = of(lines, "difference_found")
    assert {(line["tournament"], line["sequence"]) for line in found} == {("", None), (staged.slug, LAST)}
    assert {line["log_level"] for line in found} == {"error"}
    assert lines[-1]["count"] == len(found) == DIFFERENCES._value.get() - counted
    assert {line["tournament"]: bool(line["differences"]) for line in of(lines, "tournament_verified")} == {
        staged.slug: True,
        sound.slug: False,
    }


async def test_a_tampering_is_found_in_the_next_round_and_its_end_too(
    database: Database, owner: asyncpg.Connection
) -> None:
    staged = await stage(database)
    async with going_round(database) as lines:
        await until(rounds(lines, 1))
        await tamper(owner, "UPDATE unity SET version = version + 1 WHERE tournament_id = $1", staged.tournament_id)
        await until(lambda: of(lines, "difference_found"))
        await tamper(owner, "UPDATE unity SET version = version - 1 WHERE tournament_id = $1", staged.tournament_id)
        await until(lambda: len(of(lines, "tournament_verified")) > 2 and DIFFERING._value.get() == 0)
    assert lines[-1]["count"] > 0


async def test_outside_digests_that_are_noted_meanwhile_are_heeded(
    database: Database, owner: asyncpg.Connection, tmp_path: Path
) -> None:
    staged = await stage(database)
    notes = tmp_path / "digests.ndjson"
    async with database.connection() as connection:
        taken = await witness.current_notes(connection)
        witness.append(notes, taken)
        async with going_round(database, digests=notes) as lines:
            await until(rounds(lines, 2))
            assert of(lines, "difference_found") == []
            forged = [type(note)(**{**_fields(note), "digest": "00" * 32}) for note in taken]
            witness.append(notes, forged)
            await until(lambda: of(lines, "difference_found"))
    assert of(lines, "difference_found")[0]["tournament"] == staged.slug


def _fields(note: witness.Note) -> dict[str, Any]:
    return {name: getattr(note, name) for name in note.__struct_fields__}


async def test_a_long_tournament_is_verified_in_parts_each_of_a_moment_of_its_own(
    database: Database, tmp_path: Path, calls: Calls, bounds: Bounds
) -> None:
    bounds(BYTES_MAX=1)
    await stage(database)
    moments = calls(stored_log, "one_moment")
    async with going_round(database, mark_events=3, state=tmp_path / "state") as lines:
        await until(rounds(lines, 1))
    (line, *_) = of(lines, "tournament_verified")
    assert (line["events"], line["differences"], lines[-1]["count"]) == (LAST, 0, 0)
    assert len(moments) >= 4


async def test_what_was_found_counts_although_it_is_stopped_within_the_tournament(
    database: Database, owner: asyncpg.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bounds: Bounds
) -> None:
    bounds(BYTES_MAX=1)
    staged = await stage(database)
    await tamper(
        owner,
        "UPDATE block SET structure_sequence = 5 WHERE tournament_id = $1 AND last_sequence = 1",
        staged.tournament_id,
    )
    stop, keep = asyncio.Event(), ProgressFile.keep

    def keeping(file: ProgressFile, progress: Any) -> None:
        keep(file, progress)
        if progress.account.count:
            stop.set()

    monkeypatch.setattr(ProgressFile, "keep", keeping)
    plan = Plan(mark_events=1, state=tmp_path / "state")
    with capture_logs() as lines:
        assert await verify_continuously(database, plan, share=ALL_THE_TIME, stop=stop) > 0
    assert of(lines, "tournament_verified") == []


async def test_what_was_begun_continues_after_a_restart(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bounds: Bounds
) -> None:
    bounds(BYTES_MAX=1)
    staged = await stage(database)
    plan = Plan(state=tmp_path / "state", mark_events=3)
    stop = asyncio.Event()
    blocks = stored_log.blocks

    async def last_before_the_stop(connection: Any, tournament_id: Any, after: Any) -> Any:
        if after >= 6:
            stop.set()
        return await blocks(connection, tournament_id, after)

    monkeypatch.setattr(stored_log, "blocks", last_before_the_stop)
    assert await verify_continuously(database, plan, share=ALL_THE_TIME, stop=stop) == 0
    monkeypatch.setattr(stored_log, "blocks", blocks)
    state = ProgressFile(plan.state, plan.arguments("verify --forever"))
    kept = state.of(staged.tournament_id)
    state.close()
    assert kept is not None
    assert (kept.blocks.sequence, kept.done) == (9, False)
    read = VERIFIED_EVENTS._value.get()
    async with going_round(database, state=plan.state, mark_events=3) as lines:
        await until(rounds(lines, 1))
        assert VERIFIED_EVENTS._value.get() - read >= LAST - kept.blocks.sequence
    assert of(lines, "tournament_verified")[0]["events"] == LAST


async def test_it_takes_no_more_than_its_share(database: Database) -> None:
    """Of ten parts of the time, nine are rest: the rests that it takes are added up."""
    for _ in range(3):
        await stage(database)
    stop = asyncio.Event()
    rests: list[float] = []

    async def counted(seconds: float) -> None:
        rests.append(seconds)

    with closing(ProgressFile(None, "")) as nothing_kept:
        running = continuous._Rounds(database, Plan(), None, nothing_kept, 0.1, stop)
        running.pause = counted  # type: ignore[method-assign]
        began = running._rested_at
        await running.go_round()
    worked = running._rested_at - began
    *after_work, _of_the_round = rests
    assert len(after_work) > 2 * 3
    assert sum(after_work) == pytest.approx(9 * worked, rel=0.1)


async def test_without_a_database_it_says_so_and_continues_when_it_is_back(dsn: str, owner: asyncpg.Connection) -> None:
    async with open_database(dsn, name="rounds") as database:
        await open_new_tournament(database, actor=OPERATOR)
        async with going_round(database) as lines:
            await until(rounds(lines, 1))
            while not of(lines, "verify_failed"):
                await owner.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'rounds'"
                )
                await asyncio.sleep(0)
            before = len(of(lines, "tournament_verified"))
            await until(rounds(lines, before + 2))
    assert lines[-1]["count"] == 0
