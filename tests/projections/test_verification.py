"""Verification: whatever was tampered with is found and named, and a clean log raises no alarm.

Somebody with all rights on the database does the tampering, with the triggers off.
"""

import asyncio
import os
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import cycle
from pathlib import Path
from typing import Any, Final

import asyncpg
import msgspec
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from engine.database.pool import Database
from engine.domain.errors import NotFound, Unacceptable
from engine.domain.events import (
    CompetitionAdded,
    CompetitionChanged,
    CompetitionUnvoided,
    CompetitionVoided,
    CompetitorErased,
    CompetitorRegistered,
    CompetitorsStruck,
    CompetitorsUnstruck,
    Delta,
    Event,
    PointsAdded,
    PointsExpired,
    PointsReversed,
    PointsScored,
    RankingCreated,
    UnityAdded,
)
from engine.domain.expiry import ExpiresOn
from engine.domain.terms import (
    OPERATOR,
    ActorId,
    CompetitionId,
    CompetitorId,
    RankingId,
    Sequence,
    TournamentId,
    UnityId,
)
from engine.log import appending, heads, registry, tails
from engine.log.appending import Appended, Block, Request
from projections.board.board import Board
from projections.board.parts import parts_of, take_part
from projections.tables.worker import Worker
from projections.verification import all_tournaments, stored_log, table_checks, witness
from projections.verification.all_tournaments import Plan, Report
from projections.verification.erasures import erase_in_log
from projections.verification.findings import TOURNAMENT_DIFFERENCES_MAX, Finding
from projections.verification.fold_checks import hash_of_points
from projections.verification.progress import Progress, ProgressFile, beginning
from projections.verification.setting_aside import set_aside
from tests.bounds import Bounds, set_bounds
from tests.desks import Arena, open_arena, record
from tests.histories import runs, unhurried
from tests.poison import POISONS, cut_tail, poison
from tests.projections.verified import named, of_no_account, verified
from tests.projections.written import (
    assert_live_shows_the_log,
    assert_tables_show_the_log,
    block_sizes,
    on_the_database,
    rich_histories,
    written,
)
from tests.statements import sent
from tests.tampering import (
    LAST,
    SNAPSHOT,
    Stage,
    forget_what_was_made,
    keep_snapshot,
    line_changed,
    line_removed,
    moved,
    rechain,
    stage,
    tamper,
    unguarded,
)
from tests.tournaments import open_new_tournament

ONE_BY_ONE: Final = "small tournaments are in different shards of a distributed database, so none are read together"
CLEAN_HISTORIES: Final = int(os.environ.get("CLEAN_HISTORIES", "12"))
"""Random histories that must raise no alarm; a campaign takes a thousand."""


async def note(database: Database, path: Path) -> None:
    async with database.connection() as connection:
        witness.append(path, await witness.current_notes(connection))


# ── A clean log ─────────────────────────────────────────────────────────────────────────────────────────


async def test_a_clean_log_has_no_difference_and_its_head_is_named(database: Database, staged: Stage) -> None:
    report = await verified(database)
    assert report.differences == []
    (head,) = report.heads
    async with database.connection() as connection:
        there = (await heads.current(connection, [staged.tournament_id]))[staged.tournament_id]
    assert (head.slug, head.sequence, head.digest) == (staged.slug, there.sequence, there.digest.hex())
    assert (head.events, head.blocks, head.tables_at, head.snapshots) == (LAST, 8, LAST, 1)
    assert report.events == LAST
    assert all_tournaments.WITHOUT_DIGESTS in report.unchecked


async def test_of_an_empty_database_there_is_nothing_to_say(database: Database) -> None:
    report = await verified(database)
    assert (report.heads, report.differences, report.events) == ([], [], 0)


@settings(on_the_database, max_examples=CLEAN_HISTORIES)
@given(history=rich_histories, sizes=block_sizes, data=st.data())
async def test_no_clean_history_raises_an_alarm(
    database: Database, tmp_path_factory: pytest.TempPathFactory, history: list[Event], sizes: list[int], data: Any
) -> None:
    """However it was cut into blocks, whatever had keys, wherever its tables, snapshots and outside digests are."""
    notes = tmp_path_factory.mktemp("notes") / "digests.ndjson"
    tournament_id = await open_new_tournament(database, actor=OPERATOR)
    ends = [Sequence(1)]
    for number, run in enumerate(runs(history, cycle(sizes))):
        ends.append(await appended_with_keys(database, tournament_id, run, f"{number}", data))
        if data.draw(st.integers(0, 4)) == 0:
            await note(database, notes)
    async with database.connection() as connection:
        slug = await connection.fetchval("SELECT slug FROM tournament WHERE tournament_id = $1", tournament_id)
        for end in data.draw(st.sets(st.sampled_from(ends), max_size=3)):
            await keep_snapshot(connection, tournament_id, end)
    if data.draw(st.booleans()):
        await Worker(database).catch_up()
    plan = {"slug": slug, "digests": notes} if notes.exists() else {"slug": slug}
    assert (await verified(database, **plan)).differences == []


async def test_names_that_cannot_be_seen_raise_no_alarm_in_a_log(database: Database) -> None:
    """They were accepted once."""
    blank = CompetitorRegistered(competitor_id=CompetitorId(1), name="\u200b", tags=("\u3164",))
    tournament_id = await written(database, [blank], [1])
    await Worker(database).catch_up()
    await assert_tables_show_the_log(database, tournament_id)
    await assert_live_shows_the_log(database, tournament_id)
    assert (await verified(database)).differences == []


async def appended_with_keys(
    database: Database, tournament_id: TournamentId, run: list[Event], name: str, data: Any
) -> Sequence:
    """Appends one block, in requests of one event or two, of which some have a key that was used before as well; what
    is exact is one request, with its reversals, and so are the points of a request in several rankings."""
    requests: list[Request] = []
    left = [await with_time_of_first(database, tournament_id, event) for event in run]
    while left:
        size = len(left) if left[0].exact else data.draw(st.integers(1, 2))
        parts = [one.part[1] if isinstance(one, PointsAdded) and one.part else 1 for one in left[:2]]
        if max(parts) > 1:
            size = parts[0]
        events, left = tuple(left[:size]), left[size:]
        key = data.draw(st.sampled_from([None, None, f"{name}-{len(requests)}", "é\N{FOX FACE}"]))
        if key == "é\N{FOX FACE}" and (name != "0" or any(r.idempotency_key == key for r in requests)):
            key = None
        fingerprint = None if key is None else key.encode()
        actor = ActorId(data.draw(st.integers(0, 3)))
        requests.append(Request(events=events, actor=actor, idempotency_key=key, fingerprint=fingerprint))
    async with database.connection() as connection:
        judged_at = (await heads.current(connection, [tournament_id]))[tournament_id].sequence
        block = Block(tournament_id=tournament_id, judged_at=judged_at, judged_digest=None, requests=tuple(requests))
        (appended,) = await appending.append(connection, [block], wait=True)
    assert isinstance(appended, Appended)
    assert appended.last_sequence is not None
    return appended.last_sequence


async def with_time_of_first(database: Database, tournament_id: TournamentId, event: Event) -> Event:
    """The event, where it is a correction: with the time at which its first event was recorded in this log. That of a
    drawn history is another one."""
    if not isinstance(event, PointsScored) or event.instead_of is None:
        return event
    recorded_at = "SELECT recorded_at FROM event WHERE tournament_id = $1 AND sequence = $2"
    async with database.connection() as connection:
        since = await connection.fetchval(recorded_at, tournament_id, event.instead_of)
    return reject() if since is None else msgspec.structs.replace(event, since=since)  # None: the first is in this run


async def test_appends_and_folds_meanwhile_make_no_difference(
    database: Database, owner: asyncpg.Connection, staged: Stage
) -> None:
    """One moment for everything, also for tournaments that are looked at late."""
    for _ in range(3):
        await stage(database)
    done = asyncio.Event()

    async def grow() -> None:
        worker = Worker(database)
        while not done.is_set():
            await record(owner, staged.tournament_id, next(events))
            await worker.catch_up()

    async def look() -> None:
        for _ in range(5):
            assert (await verified(database, parallel=3)).differences == []
        done.set()

    async with database.connection() as connection:
        tail = await tails.tail(connection, staged.tournament_id, heads.beginning(staged.tournament_id))
    events = cycle([tail.events[-1].event])
    await asyncio.gather(grow(), look())


async def test_blocks_may_be_larger_than_what_is_read_at_once(
    database: Database, staged: Stage, bounds: Bounds
) -> None:
    bounds(BYTES_MAX=1)
    assert (await verified(database)).differences == []
    bounds(BLOCKS_MAX=1)
    assert (await verified(database)).differences == []


# ── The log, tampered with ──────────────────────────────────────────────────────────────────────────────

EVENT = "WHERE tournament_id = $1 AND sequence = "
BLOCK = "WHERE tournament_id = $1 AND last_sequence = "
LOG_CHANGES: Final = {
    "one delta": (line_changed(7, "replace(line, ',3]]', ',4]]')"), {(7, "block.digest")}),
    "who asked": (line_changed(8, "replace(line, ',0,', ',1,')"), {(7, "block.digest")}),
    "a name": (f"UPDATE personal SET text = replace(text, 'Cy', 'Ce') {EVENT} 10", {(10, "personal.text")}),
    "a name that is gone": (f"DELETE FROM personal {EVENT} 10", {(10, "personal")}),
    "a name in place of points": ("INSERT INTO personal VALUES ($1, 12, 1, 'x')", {(12, "personal")}),
    "whose name it is": (
        f"UPDATE personal SET competitor_id = competitor_id + 1 {EVENT} 10",
        {(10, "personal.competitor_id")},
    ),
    "that a block has a name": (f"UPDATE block SET personal = false {BLOCK} 10", {(10, "personal")}),
    "a tag": (
        line_changed(12, "replace(line, 'PointsAdded', 'RankingClosed')"),
        {(12, "block.digest"), (12, "event.body")},
    ),
    "an unknown tag": (
        line_changed(12, "replace(line, 'PointsAdded', 'Nonsense')"),
        {(12, "block.digest"), (12, "event.body")},
    ),
    "a blank in a body": (
        line_changed(12, """replace(line, '"deltas"', ' "deltas"')"""),
        {(12, "block.digest"), (12, "event.body")},
    ),
    "a blank in a line": (
        line_changed(12, "replace(line, 'null,', 'null, ')"),
        {(12, "block.digest"), (12, "event.body")},
    ),
    "a line that is none": (line_changed(12, "'x'"), {(12, "block.digest"), (12, "event.body")}),
    "a key": (
        line_changed(7, """replace(line, '"match-1"', '"other"')"""),
        {(7, "block.digest"), (7, "idempotency.idempotency_key"), (8, "idempotency.sequence")},
    ),
    "a key taken away": (line_changed(7, """replace(line, '"match-1"', 'null')"""), {(8, "idempotency.sequence")}),
    "an event taken out of its block": (line_removed(8), {(7, "block.text"), (7, "block.digest")}),
    "an event that stands twice": (
        line_changed(8, "line || chr(10) || line"),
        {(7, "block.text"), (7, "block.digest")},
    ),
    "all events of a block taken out": (
        f"UPDATE block SET text = '' {BLOCK} 10",
        {(10, "block.digest"), (10, "event.body")},
    ),
    "a topic that an event does not have": ("INSERT INTO topic VALUES ($1, -4, 5)", {(None, "topic")}),
    "a digest": (
        f"UPDATE block SET digest = sha256(digest) {BLOCK} 10",
        {(10, "block.digest"), (11, "block.digest")},
    ),
    "where a block begins": (f"UPDATE block SET first_sequence = 8 {BLOCK} 9", {(7, "block.first_sequence")}),
    "a block that begins too early": (
        f"UPDATE block SET first_sequence = -9223372036854775808 {BLOCK} 9",
        {(7, "block.first_sequence")},
    ),
    "where a block ends": (
        f"UPDATE block SET last_sequence = 8 {BLOCK} 9",
        {(9, "block.first_sequence"), (7, "block.text")},
    ),
    "the time of a block": (
        f"UPDATE block SET recorded_at = {moved('recorded_at', '1 s')} {BLOCK} 10",
        {(10, "block.digest")},
    ),
    "the time of a block, to before the one before it": (
        f"UPDATE block SET recorded_at = {moved('recorded_at', '-1 day')} {BLOCK} 10",
        {(10, "block.digest"), (10, "block.recorded_at")},
    ),
    "the length of the log": (
        f"UPDATE block SET log_bytes = log_bytes - 1 {BLOCK} 10",
        {(10, "block.log_bytes"), (11, "block.log_bytes")},
    ),
    "a block": (f"DELETE FROM block {BLOCK} 10", {(10, "block.first_sequence"), (11, "block.digest")}),
    "all blocks": ("DELETE FROM block WHERE tournament_id = $1", {(1, "block")}),
    "the last block": (
        f"DELETE FROM block {BLOCK} 12",
        {(12, "checkpoint.sequence")},
    ),
    "where the last block ends": (
        f"UPDATE block SET last_sequence = 13 {BLOCK} 12",
        {(12, "block.text"), (12, "checkpoint.sequence")},
    ),
    "where the last block ends, too early": (
        f"UPDATE block SET last_sequence = 0 {BLOCK} 12",
        {(0, "block.last_sequence"), (12, "checkpoint.sequence")},
    ),
    "the last digest": (
        f"UPDATE block SET digest = sha256(digest) {BLOCK} 12",
        {(12, "block.digest"), (12, "checkpoint.digest")},
    ),
    "the time of the last block": (
        f"UPDATE block SET recorded_at = 'infinity' {BLOCK} 12",
        {(12, "block.text")},
    ),
    "the structure of a block": (
        f"UPDATE block SET structure_sequence = 4 {BLOCK} 9",
        {(7, "block.structure_sequence")},
    ),
    "the structure of the last block": (
        f"UPDATE block SET structure_sequence = 12 {BLOCK} 12",
        {(12, "block.structure_sequence")},
    ),
    "the structure of a block that changed it": (
        f"UPDATE block SET structure_sequence = 4 {BLOCK} 5",
        {(5, "block.structure_sequence")},
    ),
    "an id that was created, taken away": (
        f"UPDATE block SET created = '{{}}' {BLOCK} 10",
        {(10, "block.created")},
    ),
    "an id that was created, changed": (
        f"UPDATE block SET created = ARRAY[created[1] + 1] {BLOCK} 6",
        {(6, "block.created")},
    ),
    "an id that was never created": (
        f"UPDATE block SET created = created || 77::bigint {BLOCK} 4",
        {(2, "block.created")},
    ),
    "the row to lock": ("DELETE FROM append_lock WHERE tournament_id = $1", {(None, "append_lock")}),
    "how many refusals there were": (
        "UPDATE append_lock SET refusals = 5 WHERE tournament_id = $1",
        {(None, "append_lock.refusals")},
    ),
    "a refusal that never was": (
        "INSERT INTO refusal (tournament_id, idempotency_key, number) VALUES ($1, 'never', 3)",
        {(None, "append_lock.refusals")},
    ),
    "what a key was used for": (
        "UPDATE idempotency SET sequence = 8 WHERE tournament_id = $1",
        {(7, "idempotency.sequence")},
    ),
    "a key that was used": (
        "DELETE FROM idempotency WHERE tournament_id = $1",
        {(7, "idempotency.idempotency_key"), (None, "idempotency")},
    ),
    "a key that was never used": (
        "INSERT INTO idempotency VALUES ($1, 'never', '', 5)",
        {(None, "idempotency")},
    ),
    "a tournament's name": ("UPDATE tournament SET name = 'other' WHERE tournament_id = $1", {(1, "tournament.name")}),
    "a tournament's slug": ("UPDATE tournament SET slug = 'other' WHERE tournament_id = $1", {(1, "tournament.slug")}),
}


async def caused(database: Database, staged: Stage) -> None:
    """Appends points that a competition caused, as the event 13."""
    line = Delta(staged.arena.competitors[0], staged.arena.unity_id, 1)
    event = PointsAdded(ranking_id=staged.arena.ranking_id, deltas=(line,), competition_id=staged.competition)
    async with database.connection() as connection:
        await record(connection, staged.tournament_id, event)


@pytest.mark.parametrize(
    "words",
    [
        """replace(line, '"competition_id":', '"competition_id": ')""",
        """replace(line, '"competition_id":', '"competition\\u005fid":')""",
        """replace(line, '{', '{"competition_id":1,')""",
    ],
)
async def test_points_that_name_their_competition_in_other_words_than_the_service_are_named(
    database: Database, owner: asyncpg.Connection, staged: Stage, words: str
) -> None:
    """They decode to the same."""
    await caused(database, staged)
    await tamper(owner, line_changed(13, words), staged.tournament_id)
    assert (13, "event.body") in named(await verified(database))


@pytest.mark.parametrize("change", ["DELETE FROM topic", "UPDATE topic SET sequence = 12"])
async def test_a_topic_that_is_missing_or_of_another_event_is_found(
    database: Database, owner: asyncpg.Connection, staged: Stage, change: str
) -> None:
    await caused(database, staged)
    assert named(await verified(database)) == set()
    await tamper(owner, f"{change} WHERE tournament_id = $1 AND sequence = 13", staged.tournament_id)
    assert named(await verified(database)) == {(None, "topic")}


async def test_a_log_may_have_any_number_of_topics(database: Database, staged: Stage) -> None:
    points = PointsAdded(
        ranking_id=staged.arena.ranking_id,
        competition_id=staged.competition,
        deltas=(Delta(staged.arena.competitors[0], staged.arena.unity_id, 1),),
    )
    async with database.connection() as connection:
        await record(connection, staged.tournament_id, *[points] * 40)
    await Worker(database).catch_up()
    assert named(await verified(database)) == set()


@pytest.mark.one_in(8)
@pytest.mark.parametrize("name", LOG_CHANGES)
async def test_a_change_of_the_log_is_found_and_named(
    database: Database, owner: asyncpg.Connection, crowd: Stage, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    statement, expected = LOG_CHANGES[name]
    await tamper(owner, statement, crowd.tournament_id)
    assert named(await verified_both_ways(database, monkeypatch)) >= expected


AT_15: Final = f"{BLOCK} 15"
OF_RUNS: Final = {
    "a delta": (line_changed(15, "replace(line, ',3]]', ',4]]')"), False),
    "a delta, and all digests": (line_changed(15, "replace(line, ',3]]', ',4]]')"), True),
    "too large a delta": (line_changed(15, "replace(line, ',3]]', ',9000000000000001]]')"), True),
    "no delta": (line_changed(15, "regexp_replace(line, '\\[\\[.*\\]\\]', '[]')"), True),
    "who gets it": (line_changed(15, "regexp_replace(line, '\\[\\[[0-9]+', '[[77')"), True),
    "the unity": (line_changed(15, "regexp_replace(line, '(\\[\\[[0-9]+),[0-9]+', '\\1,77')"), True),
    "the ranking": (line_changed(15, """regexp_replace(line, '"ranking_id":[0-9]+', '"ranking_id":77')"""), True),
    "a blank": (line_changed(15, """replace(line, '"deltas"', ' "deltas"')"""), True),
    "a key": (line_changed(15, "replace(line, 'null', '\"other\"')"), True),
    "one line more": (line_changed(15, "line || chr(10) || line"), True),
    "a digest": (f"UPDATE block SET digest = sha256(digest) {AT_15}", False),
    "the length": (f"UPDATE block SET log_bytes = log_bytes + 1 {AT_15}", False),
    "the rules": (f"UPDATE block SET rules = 77 {AT_15}", False),
    "the structure": (f"UPDATE block SET structure_sequence = 15 {AT_15}", False),
    "what it created": (f"UPDATE block SET created = ARRAY[77] {AT_15}", False),
    "its beginning": (f"UPDATE block SET first_sequence = 14 {AT_15}", False),
    "an earlier time": (f"UPDATE block SET recorded_at = {moved('recorded_at', '-1 day')} {AT_15}", True),
    "a block": (f"DELETE FROM block {AT_15}", False),
    "a personal field": ("INSERT INTO personal VALUES ($1, 15, 1, 'x')", False),
}
"""Changes among points of nothing but a ranking and deltas, and whether all digests are made to fit."""


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", OF_RUNS)
async def test_in_a_run_of_points_is_found_what_is_found_block_by_block(
    database: Database, owner: asyncpg.Connection, staged: Stage, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    statement, fits = OF_RUNS[name]
    other = RankingCreated(
        ranking_id=RankingId(900),
        name="Cup",
        participants=staged.arena.competitors,
        main_unity_id=UnityId(901),
        main_unity_name="Points",
    )
    in_other = PointsAdded(
        ranking_id=other.ranking_id, deltas=(Delta(staged.arena.competitors[1], other.main_unity_id, 5),)
    )
    async with database.connection() as connection:
        await record(connection, staged.tournament_id, other)
        for several in (1, 1, 1, 3):
            await record(connection, staged.tournament_id, *[points(staged, 3)] * several)
        await record(connection, staged.tournament_id, in_other)
        read = await stored_log.blocks(connection, staged.tournament_id, Sequence(13))
        (run,) = stored_log.runs(read, 10_000)
        assert (len(run.blocks), len(run.plain)) == (5, 7)
    await Worker(database).catch_up()
    assert (await verified(database)).differences == []
    await tamper(owner, statement, staged.tournament_id)
    if fits:
        await rechain(owner, staged.tournament_id)
    found = (await verified(database)).differences
    monkeypatch.setattr(stored_log, "are_plain", lambda *_: False)
    assert found == (await verified(database)).differences != []


NULLS: Final = {
    ("text", 12): (12, "block.text"),
    ("first_sequence", 9): (7, "block.first_sequence"),
    ("digest", 9): (7, "block.digest"),
    ("recorded_at", 9): (7, "block.text"),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("place", NULLS)
async def test_what_may_not_be_null_and_is_is_found(
    database: Database, owner: asyncpg.Connection, staged: Stage, place: tuple[str, int]
) -> None:
    column, last_sequence = place
    await owner.execute(f"ALTER TABLE block ALTER {column} DROP NOT NULL")
    await tamper(owner, f"UPDATE block SET {column} = NULL {BLOCK} {last_sequence}", staged.tournament_id)
    report = await verified(database)
    found = {(difference.sequence, difference.field) for difference in report.differences}
    assert {(None, f"column.block.{column}"), NULLS[place]} <= found


async def test_a_changed_delta_shows_in_the_chain_the_tables_and_the_snapshot_and_nowhere_else(
    database: Database, owner: asyncpg.Connection, staged: Stage
) -> None:
    statement, _ = LOG_CHANGES["one delta"]
    await tamper(owner, statement, staged.tournament_id)
    arena = staged.arena
    total = f"rankings[{arena.ranking_id}].unities[{arena.unity_id}].totals[{arena.competitors[0]}]"
    report = await verified(database)
    assert named(report) == {(7, "block.digest"), (LAST, f"tables.{total}"), (SNAPSHOT, f"snapshot.{total}")}
    assert str(report.differences[-1]) == f"{staged.slug} at sequence {LAST}: tables.{total}: is 3, not 4"


@pytest.mark.parametrize(
    ("moment", "found"),
    [
        ("0001-01-01 00:00:00Z", False),
        ("9999-12-31 23:59:59.999999Z", False),
        ("0001-12-31 23:59:59.999999Z BC", True),
        ("10000-01-01 00:00:00Z", True),
    ],
)
async def test_a_time_in_a_year_that_is_none_of_ours_is_found(
    database: Database, owner: asyncpg.Connection, staged: Stage, moment: str, found: bool
) -> None:
    await tamper(owner, f"UPDATE block SET recorded_at = '{moment}' {BLOCK} 12", staged.tournament_id)
    report = await verified(database)
    said = [d.sequence for d in report.differences if d.message == "is outside the years 1 to 9999"]
    assert said == ([12] if found else [])


async def test_two_events_that_were_swapped_are_found(
    database: Database, owner: asyncpg.Connection, staged: Stage
) -> None:
    lines = [f"split_part(text, chr(10), {n})" for n in (2, 1, 3)]
    swapped = " || chr(10) || ".join(lines)
    await tamper(owner, f"UPDATE block SET text = {swapped} {BLOCK} 9", staged.tournament_id)
    assert named(await verified(database)) == {(7, "block.digest")}


async def test_events_deleted_in_the_middle_with_their_block_are_found(
    database: Database, owner: asyncpg.Connection, staged: Stage
) -> None:
    await tamper(owner, f"DELETE FROM block {BLOCK} 10", staged.tournament_id)
    assert named(await verified(database)) >= {(10, "block.first_sequence"), (11, "block.digest")}


async def test_an_event_that_was_inserted_back_dated_is_found(
    database: Database, owner: asyncpg.Connection, staged: Stage
) -> None:
    """By the very function that appends, so that its digest is right."""
    async with owner.transaction():
        await record(owner, staged.tournament_id, points(staged))
        await tamper(owner, f"UPDATE block SET recorded_at = {moved('recorded_at', '-1 day')} WHERE last_sequence = 13")
        await rechain(owner, staged.tournament_id)
    assert named(await verified(database)) == {(13, "block.recorded_at")}


def points(staged: Stage, amount: int = 100) -> Event:
    delta = Delta(staged.arena.competitors[0], staged.arena.unity_id, amount)
    return PointsAdded(ranking_id=staged.arena.ranking_id, deltas=(delta,))


Part = tuple[tuple[int, int] | None, int, str]
"""What points say: which part they are, the number of their ranking, and their reason."""


def part(number: int, count: int, ranking: int = 0, reason: str = "cup") -> Part:
    return (number, count), ranking or number, reason


ALONE: Final[Part] = (None, 1, "cup")
PARTS: Final[dict[str, tuple[list[list[Part]], set[int]]]] = {
    "all of them": ([[part(1, 3), part(2, 3), part(3, 3)], [ALONE, part(1, 2), part(2, 2), ALONE]], set()),
    "the first alone": ([[part(1, 3)]], {0}),
    "the last alone": ([[part(2, 2)]], {0}),
    "the first two": ([[part(1, 3), part(2, 3)]], {1}),
    "without the second": ([[part(1, 3), part(3, 3)]], {1}),
    "in the other order": ([[part(2, 2), part(1, 2)]], {0, 1}),
    "the first twice": ([[part(1, 2), part(1, 2)]], {1}),
    "of two counts": ([[part(1, 2), part(2, 3)]], {1}),
    "in one ranking": ([[part(1, 2), part(2, 2, ranking=1)]], {1}),
    "for two reasons": ([[part(1, 2), part(2, 2, reason="bowl")]], {1}),
    "across blocks": ([[part(1, 2)], [part(2, 2)]], {0, 1}),
    "with other points between": ([[part(1, 2), ALONE, part(2, 2)]], {1, 2}),
}
"""Points, block by block, and those that `verify` names."""


@pytest.mark.parametrize(("blocks", "expected"), PARTS.values(), ids=PARTS.keys())
async def test_parts_of_a_request_that_no_request_has_are_found(
    database: Database, owner: asyncpg.Connection, staged: Stage, blocks: list[list[Part]], expected: set[int]
) -> None:
    rankings = [(staged.arena.ranking_id, staged.arena.unity_id)]
    for _ in range(2):
        ranking_id, unity_id = await registry.next_ids(owner, 2)
        rankings.append((RankingId(ranking_id), UnityId(unity_id)))
        created = RankingCreated(
            ranking_id=rankings[-1][0],
            name="Cup",
            participants=staged.arena.competitors,
            main_unity_id=rankings[-1][1],
            main_unity_name="Points",
        )
        await record(owner, staged.tournament_id, created)

    def added(said: tuple[int, int] | None, ranking: int, reason: str) -> PointsAdded:
        ranking_id, unity_id = rankings[ranking - 1]
        deltas = (Delta(staged.arena.competitors[0], unity_id, 1),)
        return PointsAdded(ranking_id=ranking_id, deltas=deltas, reason=reason, part=said)

    for block in blocks:
        await record(owner, staged.tournament_id, *(added(*one) for one in block), key="k" if len(block) == 3 else None)
    assert named(await verified(database)) == {(LAST + 3 + number, "event.part") for number in expected}


async def test_points_that_expire_at_once_with_too_few_parts_before_them_are_found(
    database: Database, owner: asyncpg.Connection
) -> None:
    arena = await a_duel(database, owner)
    await record(owner, arena.tournament_id, expiring_unity(arena))
    given = given_in_form(arena, part=(2, 2))
    registered = CompetitorRegistered(competitor_id=CompetitorId(902), name="Cy")
    await record(owner, arena.tournament_id, registered, given, expiry_of(given))
    wrong_expiry = {(12, "event.boundary"), (12, "event.deltas"), (None, "event.deltas")}
    assert named(await verified(database)) == {(11, "event.part")} | wrong_expiry


async def test_an_expiry_with_a_change_of_a_competition_that_leaves_its_date_is_found(
    database: Database, owner: asyncpg.Connection
) -> None:
    arena = await open_arena(database)
    added = CompetitionAdded(competition_id=DUEL, group_id=1, started_at=datetime(2020, 1, 1, tzinfo=UTC))
    await record(owner, arena.tournament_id, expiring_unity(arena), added)
    given = given_in_form(arena)
    await record(owner, arena.tournament_id, given, expiry_of(given))
    moved = CompetitionChanged(competition_id=DUEL, location="elsewhere")
    await record(owner, arena.tournament_id, moved, expiry_of(given))
    by_the_wrong_boundary = {(8, "event.boundary"), (10, "event.boundary")}
    assert named(await verified(database)) - by_the_wrong_boundary == {(10, "event.deltas"), (None, "event.deltas")}


def expiring_unity(arena: Arena) -> UnityAdded:
    return UnityAdded(
        ranking_id=arena.ranking_id, unity_id=UnityId(901), name="Form", lasts="P1W", expires_on=ExpiresOn.DAY
    )


def given_in_form(arena: Arena, **fields: Any) -> PointsAdded:
    delta = Delta(arena.competitors[0], UnityId(901), 1)
    return PointsAdded(ranking_id=arena.ranking_id, deltas=(delta,), competition_id=DUEL, **fields)


def expiry_of(given: PointsAdded) -> PointsExpired:
    (delta,) = given.deltas
    deltas = (msgspec.structs.replace(delta, amount=-delta.amount),)
    return PointsExpired(ranking_id=given.ranking_id, boundary=datetime(2026, 1, 1, tzinfo=UTC), deltas=deltas)


async def test_an_event_inserted_in_the_middle_is_found(
    database: Database, owner: asyncpg.Connection, staged: Stage
) -> None:
    """All that follow are moved on by one, blocks, head and key too; but the digests stay."""
    async with unguarded(owner):
        for table, column in (("personal", "sequence"), ("block", "first_sequence"), ("block", "last_sequence")):
            for step, beyond in (("+ 1000", 10), ("- 999", 1000)):  # at once, two would have one number
                await owner.execute(
                    f"UPDATE {table} SET {column} = {column} {step} WHERE tournament_id = $1 AND {column} >= {beyond}",
                    staged.tournament_id,
                )
        another = f"(SELECT split_part(text, chr(10), 3) FROM block {BLOCK} 9) || chr(10) || text"
        await owner.execute(f"UPDATE block SET first_sequence = 10, text = {another} {BLOCK} 11", staged.tournament_id)
    assert (10, "block.digest") in named(await verified(database))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", POISONS)
async def test_an_event_that_cannot_be_folded_is_named_and_the_chain_is_checked_to_the_end(
    database: Database, owner: asyncpg.Connection, staged: Stage, name: str
) -> None:
    sequence = await poison(owner, staged.arena, name)
    await record(owner, staged.tournament_id, points(staged))
    report = await verified(database)
    assert named(report) == {(sequence, "event.body")}
    assert report.heads[0].sequence == sequence + 1
    assert any("cannot be folded" in sentence for sentence in report.unchecked)


async def test_rows_of_a_tournament_that_is_not_registered_are_found(
    database: Database, owner: asyncpg.Connection, staged: Stage
) -> None:
    await tamper(owner, "DELETE FROM tournament")
    assert named(await verified(database)) == {
        (None, table)
        for table in (
            *("append_lock", "block", "personal", "idempotency", "checkpoint", "competitor", "competition"),
            *("participant", "ranking", "enrolment", "unity", "total"),
        )
    }


# ── What may be in a log only if somebody else than the service appended it ─────────────────────────────

DUEL: Final = CompetitionId(900)


async def a_duel(database: Database, owner: asyncpg.Connection) -> Arena:
    """Events 5 to 8: a competition, then +5 and +7 that it gave, and +1 that nobody can take back."""
    arena = await open_arena(database)
    await record(owner, arena.tournament_id, CompetitionAdded(competition_id=DUEL, group_id=1))
    for amount, competition_id in ((5, DUEL), (7, DUEL), (1, None)):
        await record(owner, arena.tournament_id, of_duel(arena, amount, competition_id=competition_id))
    return arena


def of_duel(arena: Arena, *amounts: int, competition_id: CompetitionId | None = DUEL) -> PointsAdded:
    deltas = tuple([Delta(arena.competitors[n], arena.unity_id, amount) for n, amount in enumerate(amounts)])
    return PointsAdded(ranking_id=arena.ranking_id, deltas=deltas, competition_id=competition_id)


def back(arena: Arena, reverses: int, *amounts: int) -> PointsReversed:
    return PointsReversed(
        ranking_id=arena.ranking_id,
        deltas=of_duel(arena, *amounts).deltas,
        competition_id=DUEL,
        reverses=Sequence(reverses),
    )


def undo(arena: Arena, reverses: int, *amounts: int, of: CompetitionId | None = DUEL, redo: bool = False) -> Event:
    return PointsReversed(
        ranking_id=arena.ranking_id,
        deltas=of_duel(arena, *amounts).deltas,
        competition_id=of,
        reverses=Sequence(reverses),
        undone=not redo,
    )


VOIDED: Final = CompetitionVoided(competition_id=DUEL)
UNVOIDED: Final = CompetitionUnvoided(competition_id=DUEL)


def struck(arena: Arena, *places: int, back: bool = False) -> Event:
    kind = CompetitorsUnstruck if back else CompetitorsStruck
    return kind(competition_id=DUEL, competitors=tuple([arena.competitors[n] for n in places]))


def without(arena: Arena, reverses: int, *lines: tuple[int, int], back: bool = False, by: bool = True) -> Event:
    """Reverses lines of place and amount; `by` striking, else by voiding."""
    deltas = tuple([Delta(arena.competitors[place], arena.unity_id, amount) for place, amount in lines])
    taken = not back if by else None
    return PointsReversed(
        ranking_id=arena.ranking_id, deltas=deltas, competition_id=DUEL, reverses=Sequence(reverses), struck=taken
    )


_Blocks = Callable[[Arena], list[tuple[Event, ...]]]
VOIDINGS: Final[dict[str, tuple[_Blocks, dict[tuple[int | None, str], str]]]] = {
    "all that it caused": (lambda a: [(VOIDED, back(a, 6, -5), back(a, 7, -7))], {}),
    "in another order": (lambda a: [(VOIDED, back(a, 7, -7), back(a, 6, -5))], {}),
    "and back again, twice": (
        lambda a: [
            (VOIDED, back(a, 6, -5), back(a, 7, -7)),
            (UNVOIDED, back(a, 6, 5), back(a, 7, 7)),
            (of_duel(a, 2, -1),),
            (VOIDED, back(a, 6, -5), back(a, 7, -7), back(a, 15, -2, 1)),
            (UNVOIDED, back(a, 6, 5), back(a, 7, 7), back(a, 15, 2, -1)),
        ],
        {},
    ),
    "one is left": (
        lambda a: [(VOIDED, back(a, 6, -5))],
        {(9, "event.reverses"): "of competition 900: event 7 is not reversed"},
    ),
    "all are left": (
        lambda a: [(VOIDED,)],
        {(9, "event.reverses"): "of competition 900: event 6 is not reversed; event 7 is not reversed"},
    ),
    "one is left, and is taken back when the voiding is": (
        lambda a: [(VOIDED, back(a, 6, -5)), (UNVOIDED, back(a, 6, 5), back(a, 7, -7))],
        {
            (9, "event.reverses"): "of competition 900: event 7 is not reversed",
            (11, "event.reverses"): "of competition 900: event 7 is reversed by other lines",
        },
    ),
    "one twice": (
        lambda a: [(VOIDED, back(a, 6, -5), back(a, 6, -5), back(a, 7, -7))],
        {(9, "event.reverses"): "of competition 900: event 6 is reversed 2 times"},
    ),
    "one twice instead of the other": (
        lambda a: [(VOIDED, back(a, 6, -5), back(a, 6, -5))],
        {(9, "event.reverses"): "of competition 900: event 7 is not reversed; event 6 is reversed 2 times"},
    ),
    "one that is none of its own": (
        lambda a: [(VOIDED, back(a, 6, -5), back(a, 7, -7), back(a, 8, -1))],
        {(9, "event.reverses"): "of competition 900: event 8 is reversed, which gave no points that count"},
    ),
    "by other amounts": (
        lambda a: [(VOIDED, back(a, 6, -7), back(a, 7, -5))],
        {
            (9, "event.reverses"): "of competition 900: event 6 is reversed by other lines; "
            "event 7 is reversed by other lines"
        },
    ),
    "by one more line": (
        lambda a: [(VOIDED, back(a, 6, -5, 0), back(a, 7, -7))],
        {(9, "event.reverses"): "of competition 900: event 6 is reversed by other lines"},
    ),
    "a reversal, where the points are to be": (
        lambda a: [(VOIDED, back(a, 6, -5), back(a, 7, -7)), (UNVOIDED, back(a, 6, 5), back(a, 11, 7))],
        {
            (12, "event.reverses"): "of competition 900: event 7 is not reversed; event 11 is reversed, "
            "which gave no points that count"
        },
    ),
    "taken back, where they are to be given back": (
        lambda a: [(VOIDED, back(a, 6, -5), back(a, 7, -7)), (UNVOIDED, back(a, 6, -5), back(a, 7, 7))],
        {(12, "event.reverses"): "of competition 900: event 6 is reversed by other lines"},
    ),
    "in a block of their own": (
        lambda a: [(VOIDED,), (back(a, 6, -5), back(a, 7, -7))],
        {
            (9, "event.reverses"): "of competition 900: event 6 is not reversed; event 7 is not reversed",
            (10, "event.body"): "reverses points of competition 900, for which nothing in this block is a reason",
            (11, "event.body"): "reverses points of competition 900, for which nothing in this block is a reason",
        },
    ),
    "points for what is voided": (
        lambda a: [(VOIDED, back(a, 6, -5), back(a, 7, -7)), (of_duel(a, 4),)],
        {(12, "event.body"): "could not be made: competition_id competition 900 is voided"},
    ),
    "points in a ranking that is not there": (
        lambda a: [(msgspec.structs.replace(of_duel(a, 4), ranking_id=RankingId(901)),)],
        {(9, "event.body"): "could not be made: This tournament has no ranking 901"},
    ),
    "what is voided already": (
        lambda a: [(VOIDED, back(a, 6, -5), back(a, 7, -7)), (VOIDED, back(a, 6, -5), back(a, 7, -7))],
        {(12, "event.body"): "could not be made: Competition 900 is already voided"},
    ),
    "what is not voided": (
        lambda a: [(UNVOIDED, back(a, 6, 5), back(a, 7, 7))],
        {(9, "event.body"): "could not be made: Competition 900 is not voided"},
    ),
    "undone, voided, redone and unvoided": (
        lambda a: [
            (undo(a, 8, -1, of=None),),
            (undo(a, 6, -5),),
            (VOIDED, back(a, 7, -7)),
            (undo(a, 7),),
            (undo(a, 6, redo=True),),
            (UNVOIDED, back(a, 6, 5)),
            (undo(a, 7, 7, redo=True),),
            (VOIDED, back(a, 6, -5), back(a, 7, -7)),
        ],
        {},
    ),
    "struck, voided, unstruck and unvoided": (
        lambda a: [
            (of_duel(a, 2, 3),),
            (struck(a, 1), without(a, 9, (1, -3))),
            (VOIDED, back(a, 6, -5), back(a, 7, -7), without(a, 9, (0, -2), by=False)),
            (struck(a, 1, back=True),),
            (UNVOIDED, back(a, 6, 5), back(a, 7, 7), back(a, 9, 2, 3)),
        ],
        {},
    ),
    "struck without taking all back": (
        lambda a: [(struck(a, 0), without(a, 6, (0, -5)))],
        {(9, "event.reverses"): "of competition 900: event 7 is not reversed"},
    ),
    "struck, and taken back as if it were voided": (
        lambda a: [(struck(a, 0), back(a, 6, -5), without(a, 7, (0, -7)))],
        {
            (10, "event.body"): "reverses points of competition 900, for which nothing in this block is a reason",
        },
    ),
    "struck, and taken back again when it is voided": (
        lambda a: [
            (struck(a, 0), without(a, 6, (0, -5)), without(a, 7, (0, -7))),
            (VOIDED, back(a, 6, -5), back(a, 7, -7)),
        ],
        {
            (12, "event.reverses"): "of competition 900: event 6 is reversed, which gave no points that count; event 7 "
            "is reversed, which gave no points that count"
        },
    ),
    "points for who is struck": (
        lambda a: [(struck(a, 1),), (of_duel(a, 1, 1),)],
        {(10, "event.body"): "could not be made: competition_id competitor {ben} is struck from competition 900"},
    ),
    "undone by other lines": (
        lambda a: [(undo(a, 6, -7),), (undo(a, 8, -1, 0, of=None),), (undo(a, 7, -7, of=None),)],
        {
            (9, "event.reverses"): "event 6 is reversed by other lines",
            (10, "event.reverses"): "event 8 is reversed by other lines",
            (11, "event.reverses"): "event 7 is reversed by other lines",
        },
    ),
    "undone twice, and redone before": (
        lambda a: [(undo(a, 6, -5),), (undo(a, 6, -5),), (undo(a, 7, 7, redo=True),)],
        {
            (10, "event.body"): "could not be made: Event 6 is already undone, or not undone",
            (11, "event.body"): "could not be made: Event 7 is already undone, or not undone",
        },
    ),
    "undone and redone, and not taken back with its competition": (
        lambda a: [(undo(a, 6, -5),), (undo(a, 6, 5, redo=True),), (VOIDED, back(a, 7, -7))],
        {(11, "event.reverses"): "of competition 900: event 6 is not reversed"},
    ),
    "undone, and taken back with its competition": (
        lambda a: [(undo(a, 6, -5),), (VOIDED, back(a, 6, -5), back(a, 7, -7))],
        {(10, "event.reverses"): "of competition 900: event 6 is reversed, which gave no points that count"},
    ),
    "undone with lines while it is voided": (
        lambda a: [(VOIDED, back(a, 6, -5), back(a, 7, -7)), (undo(a, 6, -5),)],
        {(12, "event.reverses"): "event 6 is reversed by other lines"},
    ),
    "undone, where there are no points": (
        lambda a: [(undo(a, 5, -5),)],
        {(9, "event.reverses"): "event 5 adds no points"},
    ),
    "a half of a request undone": (
        lambda a: [
            tuple([msgspec.structs.replace(of_duel(a, 1), part=(part, 2)) for part in (1, 2)]),
            (undo(a, 10, -1),),
        ],
        {
            (10, "event.part"): "is 2 of 2, which does not follow what is before it",  # in the same ranking
            (11, "event.reverses"): "event 10 is reversed without event 9 of the same request",
        },
    ),
}
"""What follows event 8, and the differences that are to be found."""


@pytest.mark.one_in(8)
@pytest.mark.parametrize("name", VOIDINGS)
async def test_a_voiding_that_does_not_reverse_exactly_what_its_competition_caused_is_found(
    database: Database, owner: asyncpg.Connection, name: str
) -> None:
    blocks, expected = VOIDINGS[name]
    arena = await a_duel(database, owner)
    for block in blocks(arena):
        await record(owner, arena.tournament_id, *block)
    report = await verified(database)
    found = {(d.sequence, d.field): d.message for d in report.differences}
    assert found == {place: message.format(ben=arena.competitors[1]) for place, message in expected.items()}


@pytest.mark.one_in(3)
@pytest.mark.usefixtures("one_block_at_once")
@pytest.mark.parametrize("name", ["and back again, twice", "one is left"])
@pytest.mark.parametrize("at", [6, 8, 9])
async def test_what_a_competition_caused_is_still_known_after_an_interruption(
    database: Database, owner: asyncpg.Connection, tmp_path: Path, name: str, at: int
) -> None:
    blocks, expected = VOIDINGS[name]
    arena = await a_duel(database, owner)
    for block in blocks(arena):
        await record(owner, arena.tournament_id, *block)
    plan = _plan(tmp_path / "state")
    await interrupted(database, Plan(**plan), at=at)
    report = await verified(database, **plan)
    assert report.resumed
    assert {(d.sequence, d.field): d.message for d in report.differences} == expected


lines_of_points: Final = st.lists(
    st.tuples(st.integers(1, 3), st.integers(1, 2), st.integers(-3, 3)), min_size=1, max_size=2
)
of_events: Final = st.dictionaries(st.integers(1, 4), lines_of_points, max_size=4)


@settings(unhurried, max_examples=150)
@given(salt=st.integers(0, 2**60), some=of_events, others=of_events, exchanged=st.permutations(range(4)))
def test_two_sets_of_points_have_the_same_sum_only_where_they_are_the_same(
    salt: int,
    some: dict[int, list[tuple[int, int, int]]],
    others: dict[int, list[tuple[int, int, int]]],
    exchanged: list[int],
) -> None:
    """Also where events have but exchanged their lines; and the sum of the reversals is that of the points."""
    values = list(some.values())
    swapped = dict(zip(some, [values[n] for n in exchanged if n < len(values)], strict=True))

    def sum_of(points: dict[int, list[tuple[int, int, int]]], sign: int = 1) -> int:
        total = 0
        for sequence, lines in points.items():
            deltas = tuple([Delta(CompetitorId(c), UnityId(u), sign * amount) for c, u, amount in lines])
            event = PointsAdded(ranking_id=RankingId(1), deltas=deltas)
            total += hash_of_points(salt, Sequence(sequence), event, sign)
        return total % 2**63

    assert sum_of(some, -1) == sum_of(some)
    for other in others, swapped:
        assert (sum_of(some) == sum_of(other)) == (some == other)


async def test_an_id_that_is_created_twice_is_found(database: Database, owner: asyncpg.Connection) -> None:
    arena = await a_duel(database, owner)
    ann, ranking, unity = arena.competitors[0], arena.ranking_id, arena.unity_id
    again: list[tuple[Event, str]] = [
        (CompetitorRegistered(competitor_id=ann, name="Eve"), f"competitor {ann}"),
        (CompetitionAdded(competition_id=DUEL, group_id=1), "competition 900"),
        (UnityAdded(ranking_id=ranking, unity_id=unity, name="Goals"), f"unity {unity}"),
        (
            RankingCreated(
                ranking_id=ranking, name="R", participants=(ann,), main_unity_id=UnityId(901), main_unity_name="P"
            ),
            f"ranking {ranking}, main_unity 901",
        ),
    ]
    expected = {}
    for event, what in again:
        sequence = (await record(owner, arena.tournament_id, event)).last_sequence
        expected[sequence] = f"could not be made: {what}: an id that exists"
    said = {d.sequence: d.message for d in (await verified(database)).differences if d.field == "event.body"}
    assert said == expected


async def test_a_repeat_in_a_block_may_leave_its_ids_in_the_list(database: Database, owner: asyncpg.Connection) -> None:
    arena = await open_arena(database)

    def request(competitor_id: int) -> Request:
        event = CompetitorRegistered(competitor_id=CompetitorId(competitor_id), name="Eve")
        return Request(events=(event,), actor=OPERATOR, idempotency_key="same", fingerprint=b"same")

    head = (await heads.current(owner, [arena.tournament_id]))[arena.tournament_id]
    block = Block(
        tournament_id=arena.tournament_id,
        judged_at=head.sequence,
        judged_digest=head.digest,
        requests=(request(901), request(902)),
    )
    (appended,) = await appending.append(owner, [block], wait=True)
    assert isinstance(appended, Appended)
    assert appended.answers == (5, -5)
    assert await owner.fetchval("SELECT created FROM block WHERE last_sequence = 5") == [901, 902]
    assert (await verified(database)).differences == []


async def test_a_refusal_is_no_difference(database: Database, owner: asyncpg.Connection, staged: Stage) -> None:
    for key in ("a", "b", "a"):
        await appending.refuse_keys(owner, staged.tournament_id, [key])
    assert (await verified(database)).differences == []


# ── Tables and snapshots, tampered with ─────────────────────────────────────────────────────────────────

RANKING: Final = "tables.rankings[{ranking}]"
UNITY: Final = RANKING + ".unities[{unity}]"
ROW_CHANGES: Final = {
    "UPDATE checkpoint SET sequence = 8 {of}": "checkpoint.sequence",
    "UPDATE checkpoint SET sequence = 99 {of}": "checkpoint.sequence",
    "UPDATE checkpoint SET digest = sha256(digest) {of}": "checkpoint.digest",
    "DELETE FROM checkpoint {of}": "tables.competitors[{cy}]",
    "INSERT INTO publication VALUES ({id}, true, NULL, 0)": "tables.publication.published",
    "INSERT INTO publication VALUES ({id}, false, 3, 0)": "tables.publication.frozen_at",
    "INSERT INTO publication VALUES ({id}, false, NULL, 3)": "tables.publication.seen_before",
    "INSERT INTO publication VALUES ({id}, false, NULL, 0, '{{}}', 'CET')": "tables.publication.presentation.zone",
    "UPDATE competitor SET name = 'x' {of_cy}": "tables.competitors[{cy}].name",
    "UPDATE competitor SET number = 9 {of_cy}": "tables.competitors[{cy}].number",
    "UPDATE competitor SET tags = '{{}}' {of_cy}": "tables.competitors[{cy}].tags[0]",
    "UPDATE competitor SET color = 'x' {of_cy}": "tables.competitors[{cy}].color",
    "UPDATE competitor SET parent_id = {cy} {of_cy}": "tables.competitors[{cy}].parent_id",
    "UPDATE competitor SET created_at = '-infinity' {of_cy}": ("tables.competitors[{cy}].created_at"),
    "UPDATE competitor SET updated_at = now() {of_cy}": "tables.competitors[{cy}].updated_at",
    "UPDATE competitor SET revised = 2 {of_cy}": "tables.competitors[{cy}].revised",
    "DELETE FROM competitor {of_cy}": "tables.competitors[{cy}]",
    "INSERT INTO competitor VALUES ({id}, 77, 77, NULL, '', '{{}}', '', now(), now())": "tables.competitors[77]",
    "UPDATE competition SET group_id = 7 {of_match}": "tables.competitions[{match}].group_id",
    "UPDATE competition SET result = '9-9' {of_match}": "tables.competitions[{match}].result",
    "UPDATE competition SET result = '9-9' {of_relay}": "tables.competition[{relay}]",
    "UPDATE competition SET winner_id = 5 {of_match}": "tables.competitions[{match}].winner_id",
    "UPDATE competition SET voided_at = now() {of_match}": "tables.competitions[{match}].voided_at",
    "UPDATE competition SET location = 'x' {of_match}": "tables.competitions[{match}].location",
    "UPDATE competition SET date = 'infinity' {of_match}": ("tables.competitions[{match}].date"),
    "UPDATE competition SET revised = 2 {of_match}": "tables.competitions[{match}].revised",
    "DELETE FROM competition {of_match}": "tables.participant[{match}]",
    "UPDATE participant SET result = 'x' {of_match} AND number = 1": "tables.participant[{match}]",
    "UPDATE participant SET result = 'x' {of_relay} AND number = 2": ("tables.competitions[{relay}].result[{bob}]"),
    "UPDATE participant SET number = 9 {of_match} AND number = 2": "tables.participant[{match}]",
    "UPDATE participant SET competitor_id = {cy} {of_match} AND number = 2": (
        "tables.competitions[{match}].participants[1]"
    ),
    "DELETE FROM participant {of_match} AND number = 2": ("tables.competitions[{match}].participants[1]"),
    "UPDATE ranking SET name = 'x' {of}": f"{RANKING}.name",
    "UPDATE ranking SET number = 2 {of}": f"{RANKING}.number",
    "UPDATE ranking SET description = 'x' {of}": f"{RANKING}.description",
    "UPDATE ranking SET closed_at = now() {of}": f"{RANKING}.closed_at",
    "UPDATE ranking SET revised = 2 {of}": f"{RANKING}.revised",
    "UPDATE ranking SET updated_at = now() {of}": f"{RANKING}.updated_at",
    "DELETE FROM ranking {of}": "tables.enrolment[{ranking}]",
    "INSERT INTO ranking VALUES ({id}, 77, 77, 77, 'x', NULL, NULL)": "tables.rankings[77]",
    "DELETE FROM enrolment {of}": RANKING,
    "DELETE FROM enrolment {of} AND number = 1": f"{RANKING}.participants[0]",
    "UPDATE enrolment SET number = 3 {of} AND number = 1": f"{RANKING}.participants[0]",
    "UPDATE enrolment SET number = 3 {of} AND number = 2": f"{RANKING}.participants.places[1]",
    "UPDATE enrolment SET number = 1 {of} AND number = 2": "tables.enrolment[{ranking}]",
    "UPDATE enrolment SET has_left = true {of} AND number = 2": f"{RANKING}.participants[1]",
    "INSERT INTO enrolment VALUES ({id}, {ranking}, 3, {cy})": f"{RANKING}.participants[2]",
    "INSERT INTO enrolment VALUES ({id}, 77, 1, {cy})": "tables.enrolment[77]",
    "UPDATE unity SET version = 9 {of} AND unity_id = {unity}": f"{UNITY}.version",
    "UPDATE unity SET name = 'x' {of} AND unity_id = {unity}": f"{UNITY}.name",
    "UPDATE unity SET sort = 'ASC' {of} AND unity_id = {unity}": f"{UNITY}.sort",
    "UPDATE unity SET number = 9 {of} AND unity_id = {unity}": f"{UNITY}.number",
    "UPDATE unity SET ranking_id = 77 {of} AND unity_id = {unity}": "tables.unity[{unity}]",
    "DELETE FROM unity {of} AND unity_id = {unity}": UNITY,
    "UPDATE total SET total = total + 1 {of} AND competitor_id = {bob}": f"{UNITY}.totals[{{bob}}]",
    "UPDATE total SET total = -9223372036854775808 {of} AND competitor_id = {bob}": f"{UNITY}.totals[{{bob}}]",
    "DELETE FROM total {of} AND competitor_id = {bob}": f"{UNITY}.totals[{{bob}}]",
    "INSERT INTO total VALUES ({id}, 77, {bob}, 0)": "tables.total[77]",
    "INSERT INTO total VALUES ({id}, {unity}, 77, 0)": f"{RANKING}.participants.places[2]",
}


def words_of(staged: Stage) -> dict[str, object]:
    """What stands for the names in ROW_CHANGES."""
    of = f"WHERE tournament_id = {staged.tournament_id}"
    return {
        "id": staged.tournament_id,
        "of": of,
        "of_cy": f"{of} AND competitor_id = {staged.third}",
        "of_match": f"{of} AND competition_id = {staged.competition}",
        "of_relay": f"{of} AND competition_id = {staged.relay}",
        "cy": staged.third,
        "bob": staged.arena.competitors[1],
        "match": staged.competition,
        "relay": staged.relay,
        "ranking": staged.arena.ranking_id,
        "unity": staged.arena.unity_id,
    }


@pytest.mark.one_in(8)
@pytest.mark.parametrize("statement", ROW_CHANGES)
async def test_a_change_of_a_row_of_the_tables_is_found_and_named(
    database: Database, owner: asyncpg.Connection, crowd: Stage, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    words = words_of(crowd)
    await tamper(owner, statement.format(**words))
    report = await verified_both_ways(database, monkeypatch)
    assert ROW_CHANGES[statement].format(**words) in {field for _, field in named(report)}
    assert all(field.startswith(("tables.", "checkpoint.")) for _, field in named(report))


async def test_a_view_of_standings_that_shows_something_else_is_found(
    database: Database, owner: asyncpg.Connection, staged: Stage
) -> None:
    definition = await owner.fetchval("SELECT pg_get_viewdef('standing'::regclass)")
    shown = "shown_total(COALESCE(s.total, "
    assert f"{shown}(0)::bigint)" in definition
    forged = definition.replace(f"{shown}(0)::bigint)", f"{shown}7::bigint)")
    await owner.execute(f"CREATE OR REPLACE VIEW standing AS {forged}")
    bob = staged.arena.competitors[1]
    assert {(found.sequence, found.field) for found in (await verified(database)).differences} == {
        (None, "view.standing"),
        (LAST, f"standing[({staged.second_unity}, {bob})].total"),
    }


async def test_a_view_of_standings_that_shows_lines_twice_and_leaves_others_out_is_found(
    database: Database, owner: asyncpg.Connection, staged: Stage, bounds: Bounds
) -> None:
    """However they are read."""
    definition = (await owner.fetchval("SELECT pg_get_viewdef('standing'::regclass)")).rstrip(";")
    bob = staged.arena.competitors[1]
    twice = f"unity_id = {staged.arena.unity_id} AND competitor_id = {bob}"
    out = f"unity_id = {staged.second_unity} AND competitor_id = {bob}"
    await owner.execute(
        "CREATE OR REPLACE VIEW standing AS "
        f"SELECT v.* FROM ({definition}) AS v JOIN generate_series(1, 2) AS n ON n = 1 OR {twice} WHERE NOT ({out})"
    )
    for rows_max in (1, 2, 500):
        bounds(ROWS_MAX=rows_max)
        found = [(of.field, of.message) for of in (await verified(database)).differences if of.sequence is not None]
        assert found == [
            ("standing", f"shows competitor {bob} twice in unity {staged.arena.unity_id}"),
            (f"standing[({staged.second_unity}, {bob})]", found[1][1]),
        ]
        assert found[1][1].startswith("is nothing, not ")


async def test_a_view_of_standings_that_is_gone_is_found(
    database: Database, owner: asyncpg.Connection, staged: Stage
) -> None:
    await owner.execute("DROP VIEW standing")
    assert {(found.sequence, found.field) for found in (await verified(database)).differences} == {
        (None, "view.standing"),
        (LAST, "standing"),
    }


@pytest.mark.parametrize("rows_max", [1, 500])
async def test_tables_that_cannot_even_be_read_are_a_difference(
    database: Database, owner: asyncpg.Connection, staged: Stage, bounds: Bounds, rows_max: int
) -> None:
    """Also when it turns out while the next rows are being read: the moment goes on."""
    bounds(ROWS_MAX=rows_max)
    for constraint in await owner.fetch(
        "SELECT conname FROM pg_constraint WHERE conrelid = 'unity'::regclass AND contype = 'c'"
    ):
        await owner.execute(f"ALTER TABLE unity DROP CONSTRAINT {constraint['conname']}")
    await tamper(owner, "UPDATE unity SET sort = 'SIDEWAYS'")
    (found,) = (await verified(database)).differences
    assert (found.sequence, found.field) == (LAST, "tables")
    assert found.message.startswith("cannot be read: ")


async def test_tables_of_another_fold_are_not_compared_and_that_is_said(
    database: Database, owner: asyncpg.Connection, staged: Stage
) -> None:
    await tamper(owner, "UPDATE checkpoint SET fold_version = 0")
    await tamper(owner, "UPDATE snapshot SET fold_version = 0")
    await tamper(owner, "UPDATE total SET total = 77")
    report = await verified(database)
    assert report.differences == []
    assert (report.heads[0].tables_at, report.heads[0].snapshots) == (None, 0)
    assert f"{staged.slug}: tables: they are of version 0 of the fold" in report.unchecked
    assert f"{staged.slug}: 1 snapshots: they are of other versions of the fold" in report.unchecked


def _changed(part: bytes, change: Callable[[Board], None]) -> bytes:
    board = Board()
    for _ in take_part(part, board):
        pass
    change(board)
    (part,) = parts_of(board)
    return part


def _reversed_unities(board: Board) -> None:
    for ranking_id, ranking in board.rankings.items():
        unities = dict(reversed(ranking.unities.items()))
        board.rankings[ranking_id] = msgspec.structs.replace(ranking, unities=unities)


def _changed_total(board: Board) -> None:
    for ranking in board.rankings.values():
        for unity in ranking.unities.values():
            for competitor_id in ranking.participants:
                unity.totals.add(competitor_id, 1)


def _renamed(board: Board) -> None:
    for competitor_id, competitor in dict(board.competitors).items():
        board.competitors[competitor_id] = msgspec.structs.replace(competitor, name=f"{competitor.name}!")


@pytest.mark.parametrize("change", [_reversed_unities, _changed_total, _renamed])
async def test_a_changed_snapshot_is_found(
    database: Database, owner: asyncpg.Connection, staged: Stage, change: Callable[[Board], None]
) -> None:
    board = await owner.fetchval("SELECT board FROM snapshot")
    await tamper(owner, "UPDATE snapshot SET board = $1", _changed(board, change))
    found = named(await verified(database))
    assert found
    assert all(sequence == SNAPSHOT and field.startswith("snapshot.") for sequence, field in found)


SNAPSHOT_CHANGES: Final = {
    "UPDATE snapshot SET board = 'x'": {(SNAPSHOT, "snapshot.board")},
    "UPDATE snapshot SET digest = sha256(digest)": {(SNAPSHOT, "snapshot.digest")},
    "UPDATE snapshot SET sequence = 8": {(8, "snapshot.sequence")},
    "UPDATE snapshot SET sequence = 0": {(0, "snapshot.sequence")},
    "UPDATE snapshot SET sequence = 99": {(99, "snapshot.sequence")},
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("statement", SNAPSHOT_CHANGES)
async def test_a_snapshot_of_something_else_is_found(
    database: Database, owner: asyncpg.Connection, staged: Stage, statement: str
) -> None:
    await tamper(owner, statement)
    assert named(await verified(database)) == SNAPSHOT_CHANGES[statement]


async def test_of_very_many_differences_the_first_are_kept_and_the_others_counted(
    database: Database, owner: asyncpg.Connection, staged: Stage
) -> None:
    await owner.execute(
        "INSERT INTO total SELECT $1, $2, 1000000 + n, 0 FROM generate_series(1, $3::int) AS n",
        staged.tournament_id,
        staged.arena.unity_id,
        TOURNAMENT_DIFFERENCES_MAX + 10,
    )
    report = await verified(database)
    assert (len(report.differences), report.differences_count) == (
        TOURNAMENT_DIFFERENCES_MAX,
        TOURNAMENT_DIFFERENCES_MAX + 10,
    )


# ── Outside digests ─────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    return tmp_path / "digests.ndjson"


async def test_a_tail_that_was_cut_off_cleanly_is_found_only_by_an_outside_digest(
    database: Database, owner: asyncpg.Connection, staged: Stage, notes: Path
) -> None:
    await note(database, notes)
    assert (await verified(database, digests=notes)).differences == []
    await cut_tail(owner, staged.tournament_id, Sequence(10))
    await forget_what_was_made(owner, staged.tournament_id)
    assert (await verified(database)).differences == []
    report = await verified(database, digests=notes)
    assert named(report) == {(LAST, "digests")}
    assert "tail was cut" in report.differences[0].message


async def test_the_report_says_how_many_digests_it_was_held_against(
    database: Database, owner: asyncpg.Connection, staged: Stage, notes: Path
) -> None:
    """Whether they are those of the log or not, and also where the log ends before them."""
    await note(database, notes)
    await record(owner, staged.tournament_id, points(staged))
    await note(database, notes)
    assert [head.digests for head in (await verified(database)).heads] == [0]
    assert [head.digests for head in (await verified(database, digests=notes)).heads] == [2]
    await cut_tail(owner, staged.tournament_id, Sequence(LAST))
    await forget_what_was_made(owner, staged.tournament_id)
    report = await verified(database, digests=notes)
    assert ([head.digests for head in report.heads], named(report)) == ([2], {(LAST + 1, "digests")})


async def test_a_chain_that_was_rewritten_as_a_whole_is_found_only_by_an_outside_digest(
    database: Database, owner: asyncpg.Connection, staged: Stage, notes: Path
) -> None:
    await note(database, notes)
    statement, _ = LOG_CHANGES["one delta"]
    await tamper(owner, statement, staged.tournament_id)
    await rechain(owner, staged.tournament_id)
    await forget_what_was_made(owner, staged.tournament_id)
    await Worker(database).catch_up()
    assert (await verified(database)).differences == []
    report = await verified(database, digests=notes)
    assert named(report) == {(LAST, "digests")}
    assert "rewritten" in report.differences[0].message
    await note(database, notes)
    report = await verified(database, digests=notes)
    assert named(report) == {(LAST, "digests")}
    assert "forked" in report.differences[0].message


async def test_other_blocks_than_were_noted_are_found(
    database: Database, owner: asyncpg.Connection, staged: Stage, notes: Path
) -> None:
    """The block that ended where the digest was noted is now one with the next."""
    await note(database, notes)
    await record(owner, staged.tournament_id, points(staged))
    both = f"(SELECT text FROM block {BLOCK} 12) || chr(10) || text"
    await tamper(owner, f"UPDATE block SET first_sequence = 12, text = {both} {BLOCK} 13", staged.tournament_id)
    await tamper(owner, f"DELETE FROM block {BLOCK} 12", staged.tournament_id)
    await rechain(owner, staged.tournament_id)
    await forget_what_was_made(owner, staged.tournament_id)
    assert (await verified(database)).differences == []
    assert named(await verified(database, digests=notes)) == {(LAST, "digests")}


async def test_a_tournament_that_is_gone_is_found_by_an_outside_digest(
    database: Database, owner: asyncpg.Connection, staged: Stage, notes: Path
) -> None:
    await note(database, notes)
    await forget_what_was_made(owner, staged.tournament_id)
    for table in ("tournament", "append_lock", "block", "personal", "idempotency"):
        await tamper(owner, f"DELETE FROM {table} WHERE tournament_id = $1", staged.tournament_id)
    assert (await verified(database)).differences == []
    for plan in ({}, {"slug": staged.slug}):
        report = await verified(database, digests=notes, **plan)
        assert named(report) == {(LAST, "tournament")}
        assert report.differences[0].tournament == staged.slug
    with pytest.raises(NotFound):
        await verified(database, slug=staged.slug)


async def test_what_of_the_file_says_nothing_is_said(database: Database, staged: Stage, notes: Path) -> None:
    await note(database, notes)
    with notes.open("ab") as file:
        file.write(b'nonsense\n\n{"tournament":1,"slu')
    report = await verified(database, digests=notes)
    assert report.differences == []
    assert f"the last line of {notes}: it is incomplete, as after a crash" in report.unchecked
    assert f"1 lines of {notes}: they are not digests (2)" in report.unchecked


async def test_a_file_of_digests_that_is_not_there_is_refused(database: Database, tmp_path: Path) -> None:
    with pytest.raises(Unacceptable, match="cannot be read"):
        await verified(database, digests=tmp_path / "nowhere")


# ── Interrupted and resumed ─────────────────────────────────────────────────────────────────────────────


class Interruption(BaseException):
    """Something stops a verification."""


async def interrupted(database: Database, plan: Plan, *, at: int) -> None:
    """Begins a verification that something stops when that many events are verified."""

    def go_on(events: int, _all: int) -> None:
        if events >= at:
            raise Interruption

    with pytest.raises(Interruption):
        await all_tournaments.verify_all(database, plan, on_difference=of_no_account, on_events=go_on)


@pytest.fixture
def one_block_at_once(bounds: Bounds) -> None:
    bounds(BYTES_MAX=1)


def _plan(state: Path, **more: Any) -> dict[str, Any]:
    return {"state": state, "mark_events": 1, **more}


@pytest.mark.one_in(3)
@pytest.mark.usefixtures("one_block_at_once")
@pytest.mark.parametrize("interrupted_at", [1, 4, 5, 6, 9, 10, 11, 12])
async def test_a_verification_continues_where_it_was_interrupted_and_rereads_nothing(
    database: Database, staged: Stage, tmp_path: Path, notes: Path, interrupted_at: int
) -> None:
    await note(database, notes)
    plan = _plan(tmp_path / "state", digests=notes)
    await interrupted(database, Plan(**plan), at=interrupted_at)
    report = await verified(database, **plan)
    assert report.differences == []
    assert report.resumed
    kept = max(end for end in (0, 1, 4, 5, 6, 9, 10, 11) if end < interrupted_at)
    assert report.events == LAST - kept
    whole = await verified(database, digests=notes)
    assert report.heads == whole.heads


@pytest.mark.usefixtures("one_block_at_once")
@pytest.mark.parametrize("verified_to", [1, 9])
async def test_a_log_that_was_changed_during_an_interruption_is_found(
    database: Database, owner: asyncpg.Connection, staged: Stage, tmp_path: Path, verified_to: int
) -> None:
    plan = _plan(tmp_path / "state")
    await interrupted(database, Plan(**plan), at=verified_to + 1)
    await tamper(owner, f"UPDATE block SET digest = sha256(digest) {BLOCK} {verified_to}", staged.tournament_id)
    report = await verified(database, **plan)
    assert report.resumed
    assert (verified_to, "block.digest") in {(d.sequence, d.field) for d in report.differences}


@pytest.mark.usefixtures("one_block_at_once")
async def test_a_verification_continues_after_an_erasure_that_the_tables_do_not_have_yet(
    database: Database, owner: asyncpg.Connection, tmp_path: Path
) -> None:
    arena = await open_arena(database)
    await record(owner, arena.tournament_id, PointsAdded(ranking_id=arena.ranking_id, deltas=arena.points().deltas))
    await Worker(database).catch_up()
    plan = _plan(tmp_path / "state")
    await interrupted(database, Plan(**plan), at=5)
    await record(owner, arena.tournament_id, CompetitorErased(competitor_id=arena.competitors[0]))
    report = await verified(database, **plan)
    assert (report.resumed, report.differences) == (True, [])


@pytest.mark.usefixtures("one_block_at_once")
async def test_tables_that_were_put_back_during_an_interruption_are_not_compared_and_that_is_said(
    database: Database, owner: asyncpg.Connection, staged: Stage, tmp_path: Path
) -> None:
    plan = _plan(tmp_path / "state")
    await interrupted(database, Plan(**plan), at=6)
    await tamper(owner, "UPDATE checkpoint SET sequence = 4")
    report = await verified(database, **plan)
    assert (report.resumed, report.differences) == (True, [])
    assert f"{staged.slug}: tables: they are at 4, before this was resumed" in report.unchecked


@pytest.mark.usefixtures("one_block_at_once")
async def test_a_verification_continues_after_an_event_that_had_been_set_aside(
    database: Database, owner: asyncpg.Connection, tmp_path: Path
) -> None:
    arena = await open_arena(database)
    sequence = await poison(owner, arena, "unknown unity")
    await set_aside(database, arena.tournament_id, sequence)
    for _ in range(3):
        await record(owner, arena.tournament_id, PointsAdded(ranking_id=arena.ranking_id, deltas=arena.points().deltas))
    plan = _plan(tmp_path / "state")
    await interrupted(database, Plan(**plan), at=sequence + 2)
    report = await verified(database, **plan)
    assert (report.resumed, report.differences) == (True, [])
    assert report.events <= (await verified(database)).events - sequence


@pytest.mark.usefixtures("one_block_at_once")
async def test_progress_is_kept_at_intervals_of_events(
    database: Database, staged: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[int] = []
    keep = ProgressFile.keep

    def note_and_keep(file: ProgressFile, progress: Progress) -> None:
        kept.append(progress.blocks.sequence)
        keep(file, progress)

    monkeypatch.setattr(ProgressFile, "keep", note_and_keep)
    await verified(database, **_plan(tmp_path / "state") | {"mark_events": 5})
    assert kept == [0, 5, 10, LAST]


@pytest.mark.usefixtures("one_block_at_once")
async def test_a_difference_that_was_found_before_an_interruption_is_reported_after_it(
    database: Database, owner: asyncpg.Connection, staged: Stage, tmp_path: Path
) -> None:
    structure = "UPDATE block SET structure_sequence = {} WHERE tournament_id = $1 AND last_sequence = 9"
    await tamper(owner, structure.format(4), staged.tournament_id)
    await owner.execute("ALTER TABLE block DISABLE TRIGGER append_only")
    plan = _plan(tmp_path / "state")
    await interrupted(database, Plan(**plan), at=10)
    await owner.execute("ALTER TABLE block ENABLE TRIGGER append_only")
    await tamper(owner, structure.format(5), staged.tournament_id)
    assert (await verified(database)).differences == []
    report = await verified(database, **plan)
    assert {(d.tournament, d.sequence, d.field) for d in report.differences} == {
        ("", None, "trigger.block.append_only"),
        (staged.slug, 7, "block.structure_sequence"),
    }


@pytest.mark.usefixtures("one_block_at_once")
@pytest.mark.parametrize("interrupted_at", [1, 4, 5, 9, 10, 12])
async def test_an_erasure_during_an_interruption_is_no_difference(
    database: Database, staged: Stage, tmp_path: Path, interrupted_at: int
) -> None:
    plan = _plan(tmp_path / "state")
    await interrupted(database, Plan(**plan), at=interrupted_at)
    await erase_in_log(database, staged.tournament_id, staged.arena.competitors[0])
    await Worker(database).catch_up()
    assert (await verified(database, **plan)).differences == []
    assert (await verified(database)).differences == []


@pytest.mark.usefixtures("one_block_at_once")
async def test_a_log_that_is_another_after_the_pause_is_found(
    database: Database, owner: asyncpg.Connection, staged: Stage, tmp_path: Path
) -> None:
    plan = _plan(tmp_path / "state")
    await interrupted(database, Plan(**plan), at=11)
    await tamper(owner, line_changed(5, "replace(line, ',0,', ',5,')"), staged.tournament_id)
    await rechain(owner, staged.tournament_id)
    await forget_what_was_made(owner, staged.tournament_id)
    assert (await verified(database)).differences == []
    assert (10, "block.digest") in named(await verified(database, **plan))


async def test_tournaments_that_are_done_are_not_read_again(database: Database, staged: Stage, tmp_path: Path) -> None:
    other = await stage(database)
    plan = _plan(tmp_path / "state", parallel=1)
    await interrupted(database, Plan(**plan), at=LAST + 1)
    report = await verified(database, **plan)
    assert report.differences == []
    assert report.events == LAST
    assert [head.slug for head in report.heads] == [staged.slug, other.slug]


async def test_a_run_that_is_over_is_followed_by_one_from_the_beginning(
    database: Database, staged: Stage, tmp_path: Path
) -> None:
    for _ in range(2):
        report = await verified(database, **_plan(tmp_path / "state"))
        assert (report.resumed, report.events) == (False, LAST)


async def test_a_state_of_other_arguments_or_none_of_ours_is_refused(
    database: Database, staged: Stage, tmp_path: Path
) -> None:
    plan = _plan(tmp_path / "state")
    await interrupted(database, Plan(**plan), at=1)
    with pytest.raises(Unacceptable, match="other arguments"):
        await verified(database, **plan, slug=staged.slug)
    (tmp_path / "odd").write_text("this is no database, and long enough to see that it is none at all" * 20)
    with pytest.raises(Unacceptable, match="cannot be used"):
        await verified(database, state=tmp_path / "odd")


def test_a_progress_that_is_kept_comes_back_as_it_was(tmp_path: Path) -> None:
    state = ProgressFile(tmp_path / "state", "some")
    progress = beginning(TournamentId(7), "cup")
    progress.folded.sums = {UnityId(9): {CompetitorId(3): -4}}
    progress.account.take("cup", Finding(Sequence(5), "f", "m"))
    state.keep(progress)
    state.close()
    again = ProgressFile(tmp_path / "state", "some")
    assert again.of(TournamentId(7)) == progress
    assert again.of(TournamentId(8)) is None
    again.close()


# ── Many tournaments at once ────────────────────────────────────────────────────────────────────────────

BROKEN_VIEW: Final = "ALTER VIEW standing RENAME COLUMN version TO version_"


async def verified_both_ways(database: Database, monkeypatch: pytest.MonkeyPatch) -> Report:
    """The report, which must be the same whether tournaments are read one by one or together."""
    set_bounds(monkeypatch, TOGETHER_MAX=1)
    alone = await verified(database)
    monkeypatch.undo()
    together = await verified(database)
    assert (alone.heads, alone.differences, sorted(alone.unchecked)) == (
        together.heads,
        together.differences,
        sorted(together.unchecked),
    )
    return together


@pytest.mark.one_postgresql(ONE_BY_ONE)
async def test_small_tournaments_are_read_together_and_have_no_difference(
    database: Database, crowd: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one with a snapshot."""
    async with database.connection() as connection:
        await keep_snapshot(connection, crowd.tournament_id, Sequence(LAST))
    report = await verified_both_ways(database, monkeypatch)
    assert report.differences == []
    assert [head.tables_at for head in report.heads] == [head.sequence for head in report.heads]
    assert [head.snapshots for head in report.heads if head.tournament == crowd.tournament_id] == [1]


@pytest.mark.one_postgresql(ONE_BY_ONE)
async def test_a_batch_asks_no_more_than_a_few_questions_more_than_one_tournament(
    database: Database, crowd: Stage, bounds: Bounds
) -> None:
    await verified(database)  # connections are made
    with sent(database) as of_three:
        await verified(database)
    for _ in range(20):
        await open_arena(database)
    await Worker(database).catch_up()
    with sent(database) as of_many:
        await verified(database)
    assert len(of_many) == len(of_three)
    bounds(TOGETHER_MAX=1)
    with sent(database) as one_by_one:
        await verified(database)
    assert len(one_by_one) > len(of_many) + 20 * 10


@pytest.mark.one_postgresql(ONE_BY_ONE)
async def test_what_cannot_be_read_in_a_batch_is_read_one_by_one(
    database: Database, owner: asyncpg.Connection, crowd: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A view that lacks a column; and a row that no board can have."""
    await owner.execute(BROKEN_VIEW)
    report = await verified_both_ways(database, monkeypatch)
    assert [found.field for found in report.differences] == ["view.standing", *["standing"] * 3]
    await owner.execute("ALTER VIEW standing RENAME COLUMN version_ TO version")
    await owner.execute("ALTER TABLE unity DROP CONSTRAINT unity_sort_check")
    await tamper(owner, "UPDATE unity SET sort = 'SIDEWAYS' WHERE tournament_id = $1", crowd.tournament_id)
    assert [found.field for found in (await verified_both_ways(database, monkeypatch)).differences] == ["tables"]


@pytest.mark.one_postgresql(ONE_BY_ONE)
async def test_a_batch_takes_as_many_bytes_and_rows_as_it_may_and_no_more(
    database: Database, owner: asyncpg.Connection, crowd: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The blocks beyond are read of their tournament alone; if there are too many rows, so is all of each."""
    before_last = "SELECT sum(octet_length(text))::int FROM block WHERE tournament_id = $1 AND last_sequence < $2"
    bytes_before = await owner.fetchval(before_last, crowd.tournament_id, LAST)
    lines = await owner.fetchval("SELECT count(*)::int FROM standing")
    alone: list[TournamentId] = []

    def noted(read: Callable[..., Any]) -> Callable[..., Any]:
        def note_and_read(connection: asyncpg.Connection, tournament_id: TournamentId, *more: Any) -> Any:
            alone.append(tournament_id)
            return read(connection, tournament_id, *more)

        return note_and_read

    monkeypatch.setattr(stored_log, "blocks", noted(stored_log.blocks))
    monkeypatch.setattr(table_checks, "standing_rows", noted(table_checks.standing_rows))
    for limit, value, times in (
        ("SMALL_BYTES_MAX", bytes_before + 1, 0),
        ("SMALL_BYTES_MAX", bytes_before, 1),
        ("TOGETHER_ROWS_MAX", lines, 0),
        ("TOGETHER_ROWS_MAX", lines - 1, 6),
    ):
        alone.clear()
        with monkeypatch.context() as limited:
            set_bounds(limited, **{limit: value})
            assert (await verified(database)).differences == []
        assert len(alone) == times, limit
