"""The past is told from the log alone: snapshots make it quick, and change nothing that is told."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from engine.database.pool import Database
from engine.domain.errors import HistoryReplaced, NotFound, QueueFull, TournamentStopped
from engine.domain.events import (
    CompetitionAdded,
    Delta,
    Event,
    PointsAdded,
    RankingModified,
    Recorded,
    TournamentRenamed,
)
from engine.domain.notation import Notation
from engine.domain.steps import finished
from engine.domain.terms import CompetitionId, RankingId, Sequence, TournamentId, UnityId
from engine.log import heads, reading, tails
from engine.log.appending import Appended
from engine.log.heads import Head
from projections.answers import explaining
from projections.answers.explainer import Explainer, Place
from projections.answers.explaining import ExplanationPlace
from projections.board.board import FOLD_VERSION, Board
from projections.live.tournament import load
from projections.past import moments, pages
from projections.past.history import EVERYTHING, AnyLine, DeltaLine, Filter, Historian
from projections.past.moments import AtSequence, AtTime, AtVersion, Range, Span
from projections.past.pages import Cursor
from projections.past.past import Past
from projections.past.searches import LastCompetition, last_competition
from projections.tables import snapshots, worker
from projections.tables.snapshots import Snapshot
from projections.tables.worker import Worker
from tests.bounds import Bounds, set_bounds
from tests.calls import noted_calls
from tests.desks import Arena, open_arena, record, until
from tests.histories import board_of
from tests.poison import append_text, cut_tail
from tests.projections.boards import laid_out
from tests.projections.written import (
    a_few_times,
    block_sizes,
    drop_some,
    in_small_steps,
    kept,
    rich_histories,
    whole_log,
    written,
)

assert in_small_steps  # a fixture


@pytest.fixture
def past(database: Database) -> Past:
    return Past(database)


def lines_of(events: list[Recorded], ranking_id: RankingId) -> list[AnyLine]:
    historian = Historian(Board(), ranking_id)
    return [line for recorded in events for line in finished(historian.lines(recorded))]


def amounts(lines: list[AnyLine]) -> list[int]:
    return [line.delta for line in lines if isinstance(line, DeltaLine)]


async def all_pages(
    past: Past, tournament_id: TournamentId, ranking_id: RankingId, span: Span, **more: Any
) -> list[AnyLine]:
    """All pages, one after the other."""
    lines: list[AnyLine] = []
    cursor = None
    while True:
        page = await pages.page(past, tournament_id, ranking_id, span, after=cursor, **more)
        assert len(page.lines) <= more["limit"]
        lines += page.lines
        if page.next is None:
            return lines
        assert cursor is None or (cursor.sequence, cursor.lines) < (page.next.sequence, page.next.lines)
        cursor = page.next


# ── Whatever the history ────────────────────────────────────────────────────────────────────────────────


@a_few_times
@given(history=rich_histories, sizes=block_sizes, dropped=st.integers(0, 3))
async def test_a_board_at_every_moment_is_what_a_replay_up_to_it_gives(
    database: Database, in_small_steps: None, history: list[Event], sizes: list[int], dropped: int
) -> None:
    tournament_id = await written(database, history, sizes)
    await Worker(database).catch_up()
    await drop_some(database, tournament_id, dropped)
    past, events = Past(database), await whole_log(database, tournament_id)
    head = Sequence(len(events))
    seen: dict[UnityId, int] = {}
    for n in range(1, len(events) + 1):
        board = board_of(events[:n])
        assert laid_out(await past.board_at(tournament_id, Sequence(n))) == laid_out(board)
        for ranking_id, ranking in board.rankings.items():
            then = await moments.at(past, tournament_id, ranking_id, AtSequence(Sequence(n)), head)
            assert (then.sequence, then.recorded_at) == (n, events[n - 1].recorded_at)
            assert laid_out(then.board) == laid_out(board)
            for unity_id, unity in ranking.unities.items():
                if seen.get(unity_id) != unity.version:
                    seen[unity_id] = unity.version
                    then = await moments.at(past, tournament_id, ranking_id, AtVersion(unity_id, unity.version), head)
                    assert then.sequence == n
                    assert laid_out(then.board) == laid_out(board)


@a_few_times
@given(history=rich_histories, sizes=block_sizes, dropped=st.integers(0, 3), data=st.data())
async def test_pages_give_each_line_once_whatever_their_size_and_the_filter(
    database: Database, in_small_steps: None, history: list[Event], sizes: list[int], dropped: int, data: st.DataObject
) -> None:
    tournament_id = await written(database, history, sizes)
    await Worker(database).catch_up()
    await drop_some(database, tournament_id, dropped)
    past, events = Past(database), await whole_log(database, tournament_id)
    for ranking_id in board_of(events).rankings:
        expected = lines_of(events, ranking_id)
        asked = EVERYTHING
        if (deltas := [line for line in expected if isinstance(line, DeltaLine)]) and data.draw(st.booleans()):
            one = data.draw(st.sampled_from(deltas))
            asked = Filter(unity_id=one.unity_id, competitor_id=data.draw(st.sampled_from([None, one.competitor_id])))
        first, last = sorted(data.draw(st.tuples(*[st.integers(1, len(events))] * 2)))
        span = Span(Sequence(first), Sequence(last))
        told = await all_pages(past, tournament_id, ranking_id, span, asked=asked, limit=data.draw(st.integers(1, 7)))
        assert told == [line for line in expected if first <= line.sequence <= last and asked.takes(line)]
        streamed = [
            line async for _, lines in pages.lines(past, tournament_id, ranking_id, span, asked) for line in lines
        ]
        assert streamed == told


def _place(shown: ExplanationPlace) -> Place:
    return Place(shown.position, shown.total)


@a_few_times
@given(history=rich_histories, sizes=block_sizes, data=st.data())
async def test_pages_of_an_explanation_are_the_whole_of_it(
    database: Database, in_small_steps: None, history: list[Event], sizes: list[int], data: st.DataObject
) -> None:
    tournament_id = await written(database, history, sizes)
    await Worker(database).catch_up()
    past, events = Past(database), await whole_log(database, tournament_id)
    head, end = Sequence(len(events)), board_of(events)
    for ranking_id, ranking in end.rankings.items():
        unity_id = data.draw(st.sampled_from(list(ranking.unities)))
        her = data.draw(st.sampled_from(list(end.competitors)))
        start, last = sorted(data.draw(st.tuples(*[st.integers(0, len(events))] * 2)))
        notation = ranking.unities[unity_id].notation
        explainer = Explainer(board_of(events[:start]), ranking_id, unity_id, her, notation)
        before = explainer.place
        steps = [step for recorded in events[start:last] if (step := finished(explainer.step(recorded)))]
        told, reached, limit = [], Sequence(start), data.draw(st.integers(1, 3))
        while True:
            page = await explaining.explanation(
                past,
                tournament_id,
                ranking_id,
                unity_id,
                her,
                notation=notation,
                start=reached,
                end=Sequence(last),
                head=head,
                limit=limit,
            )
            assert (page.start.sequence, _place(page.start)) == (reached, before)
            told += page.steps
            before = _place(page.end)
            if page.next is None:
                break
            assert page.next == page.end.sequence > reached
            reached = page.next
        assert told == steps
        assert (page.end.sequence, _place(page.end)) == (last, explainer.place)
        assert reached == 0 or page.start.recorded_at == events[reached - 1].recorded_at


# ── Given a small arena ─────────────────────────────────────────────────────────────────────────────────


async def add(database: Database, arena: Arena, *amounts: int) -> None:
    async with database.connection() as connection:
        for amount in amounts:
            points = PointsAdded(ranking_id=arena.ranking_id, deltas=arena.points(amount).deltas)
            await record(connection, arena.tournament_id, points)


async def head_of(database: Database, arena: Arena) -> Sequence:
    async with database.connection() as connection:
        return (await heads.current(connection, [arena.tournament_id]))[arena.tournament_id].sequence


@pytest.fixture
async def arena(database: Database) -> Arena:
    return await open_arena(database)


def total(board: Board, arena: Arena) -> int:
    return board.rankings[arena.ranking_id].unities[arena.unity_id].totals[arena.competitors[0]]


async def test_a_time_is_that_of_the_last_event_recorded_then_or_before(
    database: Database, past: Past, arena: Arena
) -> None:
    await add(database, arena, *range(20))
    events = await whole_log(database, arena.tournament_id)
    head = Sequence(len(events))
    times = [recorded.recorded_at for recorded in events]
    tick = timedelta(microseconds=1)
    for moment in {edge for time in times for edge in (time - tick, time, time + tick)}:
        last = sum(time <= moment for time in times)
        async with database.connection() as connection:
            assert await heads.last_at(connection, arena.tournament_id, moment, head) == last
        if last >= 4:  # the ranking is there
            assert (
                await moments.at(past, arena.tournament_id, arena.ranking_id, AtTime(moment), head)
            ).sequence == last
    span = await moments.span(past, arena.tournament_id, head, Range(since=times[5], until=times[8]))
    assert (span.first, span.last) == (1 + times.index(times[5]), sum(time <= times[8] for time in times))


@pytest.mark.parametrize(
    "moment", [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)]
)
async def test_the_ends_of_time_are_times(database: Database, past: Past, arena: Arena, moment: datetime) -> None:
    head = await head_of(database, arena)
    future = moment.year > 2000
    span = await moments.span(past, arena.tournament_id, head, Range(since=moment, until=moment))
    assert span == (Span(Sequence(head + 1), head) if future else Span(Sequence(1), Sequence(0)))
    if future:
        assert (await moments.at(past, arena.tournament_id, arena.ranking_id, AtTime(moment), head)).sequence == head
    else:
        with pytest.raises(NotFound, match="did not exist yet"):
            await moments.at(past, arena.tournament_id, arena.ranking_id, AtTime(moment), head)


async def test_what_is_not_there_then_is_not_found(database: Database, past: Past, arena: Arena) -> None:
    head = await head_of(database, arena)
    of = arena.tournament_id, arena.ranking_id
    with pytest.raises(NotFound, match=f"ends at sequence {head}"):
        await moments.at(past, *of, AtSequence(Sequence(head + 1)), head)
    with pytest.raises(NotFound, match="had no ranking"):
        await moments.at(past, *of, AtSequence(Sequence(head - 1)), head)
    assert (await moments.at(past, *of, AtSequence(head), head)).sequence == head
    with pytest.raises(NotFound, match="reached version 1"):
        await moments.at(past, *of, AtVersion(arena.unity_id, 2), head)
    assert (await moments.at(past, *of, AtVersion(arena.unity_id, 1), head)).sequence == head


async def test_new_events_come_on_later_pages(database: Database, past: Past, arena: Arena) -> None:
    await add(database, arena, *range(1, 11))
    told: list[AnyLine] = []
    cursor = None
    for amount in range(11, 16):  # one more after each page
        span = Span(Sequence(1), await head_of(database, arena))
        page = await pages.page(past, arena.tournament_id, arena.ranking_id, span, after=cursor, limit=2)
        told += page.lines
        cursor = page.next
        await add(database, arena, amount)
    told += await pages_after(past, arena, cursor, await head_of(database, arena))
    assert amounts(told) == list(range(1, 16))


async def pages_after(past: Past, arena: Arena, cursor: Cursor | None, head: Sequence) -> list[AnyLine]:
    told: list[AnyLine] = []
    while cursor is not None:
        page = await pages.page(
            past, arena.tournament_id, arena.ranking_id, Span(Sequence(1), head), after=cursor, limit=2
        )
        told += page.lines
        cursor = page.next
    return told


async def test_a_page_may_end_within_an_event(database: Database, past: Past, arena: Arena) -> None:
    one, other = arena.competitors
    deltas = tuple(Delta((one, other)[n % 2], arena.unity_id, n) for n in range(7))
    async with database.connection() as connection:
        await record(connection, arena.tournament_id, PointsAdded(ranking_id=arena.ranking_id, deltas=deltas))
    head = await head_of(database, arena)
    for first in (Sequence(1), head):
        for limit in range(1, 9):
            told = await all_pages(past, arena.tournament_id, arena.ranking_id, Span(first, head), limit=limit)
            assert amounts(told) == list(range(7))


async def test_the_events_that_a_page_scans_are_limited(
    database: Database, past: Past, arena: Arena, bounds: Bounds
) -> None:
    await add(database, arena, *range(10))
    bounds(SCANNED_EVENTS_MAX=4)
    head = await head_of(database, arena)
    nobody = Filter(competitor_id=arena.competitors[1])
    page = await pages.page(past, arena.tournament_id, arena.ranking_id, Span(Sequence(1), head), asked=nobody, limit=5)
    assert (page.lines, page.next) == ([], Cursor(Sequence(5)))
    told = await explaining.explanation(
        past,
        arena.tournament_id,
        arena.ranking_id,
        arena.unity_id,
        arena.competitors[1],
        notation=Notation(),
        start=head,
        end=head,
        head=head,
    )
    assert (told.steps, told.next) == ([], None)
    told = await explaining.explanation(
        past,
        arena.tournament_id,
        arena.ranking_id,
        arena.unity_id,
        arena.competitors[1],
        notation=Notation(),
        start=Sequence(4),
        end=head,
        head=head,
        limit=5,
    )
    assert told.end.sequence == told.next == 8


async def test_the_last_page_says_that_it_is(database: Database, past: Past, arena: Arena) -> None:
    await add(database, arena, 1, 2)
    span = Span(Sequence(1), await head_of(database, arena))
    assert (await pages.page(past, arena.tournament_id, arena.ranking_id, span, limit=2)).next is None
    assert (await pages.page(past, arena.tournament_id, arena.ranking_id, span, limit=1)).next is not None
    beyond = Cursor(Sequence(2**62), 3)
    page = await pages.page(past, arena.tournament_id, arena.ranking_id, span, after=beyond, limit=2)
    assert (page.lines, page.next) == ([], None)


# ── Slices ──────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_slice_is_bounded_in_events_and_in_bytes_and_never_empty(
    database: Database, tournament_id: TournamentId, bounds: Bounds
) -> None:
    async with database.connection() as connection:
        for size in (10, 10, 10, 255, 255, 10):
            name = "x" * size
            await record(connection, tournament_id, TournamentRenamed(name=name))

        async def sizes() -> list[int]:
            found, after = [], Sequence(0)
            while after < 7:
                events = await reading.chunk_of(connection, tournament_id, after, Sequence(7))
                assert events[0].sequence == after + 1
                found.append(len(events))
                after = events[-1].sequence
            return found

        assert await sizes() == [7]
        bounds(CHUNK_EVENTS_MAX=3)
        assert await sizes() == [3, 3, 1]
        bounds(CHUNK_BYTES_MAX=250)
        assert await sizes() == [3, 1, 1, 1, 1]
        bounds(CHUNK_BYTES_MAX=1)
        assert await sizes() == [1] * 7
        assert await reading.chunk_of(connection, tournament_id, Sequence(2), Sequence(2)) == []


# ── Limits ──────────────────────────────────────────────────────────────────────────────────────────────


async def test_those_that_work_at_once_are_limited_and_those_that_wait_are_not(
    database: Database, arena: Arena, bounds: Bounds
) -> None:
    bounds(PAST_REQUESTS_MAX=2)
    past, working, most, go_on = Past(database), 0, 0, asyncio.Event()

    async def work() -> None:
        nonlocal working, most
        async with past.admitted():
            working += 1
            most = max(most, working)
            await go_on.wait()
            working -= 1

    async with asyncio.TaskGroup() as tasks:
        for _ in range(100):
            tasks.create_task(work())
        await until(lambda: (working, past._waiting) == (2, 98))
        go_on.set()
    assert (working, most) == (0, 2)
    head = await head_of(database, arena)
    assert (await moments.at(past, arena.tournament_id, arena.ranking_id, AtSequence(head), head)).sequence == head


async def test_a_request_that_would_wait_too_long_by_the_recent_pace_is_refused(
    database: Database, arena: Arena, monkeypatch: pytest.MonkeyPatch, bounds: Bounds
) -> None:
    bounds(PAST_REQUESTS_MAX=1)
    past, head = Past(database), await head_of(database, arena)

    async def ask() -> Sequence:
        return (await moments.at(past, arena.tournament_id, arena.ranking_id, AtSequence(head), head)).sequence

    await ask()  # now a pace is known
    async with past.admitted():
        waiting = asyncio.create_task(ask())
        await until(lambda: past._waiting == 1)
        with monkeypatch.context() as impatient:
            set_bounds(impatient, PAST_WAIT_SECONDS_MAX=0.0)
            with pytest.raises(QueueFull):
                await ask()
    assert await waiting == await ask() == head


async def test_nobody_waits_for_ever(database: Database, arena: Arena, bounds: Bounds) -> None:
    bounds(PAST_REQUESTS_MAX=1, PAST_WAIT_SECONDS_MAX=0.01)
    past, head = Past(database), await head_of(database, arena)
    async with past.admitted():
        with pytest.raises(QueueFull):
            await moments.at(past, arena.tournament_id, arena.ranking_id, AtSequence(head), head)
    assert (await moments.at(past, arena.tournament_id, arena.ranking_id, AtSequence(head), head)).sequence == head


# ── Logs that are not as they should be ─────────────────────────────────────────────────────────────────


async def test_an_event_that_cannot_be_folded_stops_what_lies_behind_it_and_nothing_before(
    database: Database, past: Past, owner: asyncpg.Connection, arena: Arena
) -> None:
    await add(database, arena, 1)
    good = await head_of(database, arena)
    for kind, body in (("Nonsense", "{}"), ("RankingClosed", '{"ranking_id":999999}')):
        bad = await append_text(owner, arena.tournament_id, kind, body)
        assert (
            total((await moments.at(past, arena.tournament_id, arena.ranking_id, AtSequence(good), bad)).board, arena)
            == 1
        )
        with pytest.raises(TournamentStopped):
            await moments.at(past, arena.tournament_id, arena.ranking_id, AtSequence(bad), bad)
        with pytest.raises(TournamentStopped):
            await pages.page(past, arena.tournament_id, arena.ranking_id, Span(good, bad), limit=5)


async def test_a_log_that_lost_its_tail_is_another_one(
    database: Database, past: Past, owner: asyncpg.Connection, arena: Arena
) -> None:
    await add(database, arena, 1, 2)
    head = await head_of(database, arena)
    await cut_tail(owner, arena.tournament_id, Sequence(head - 1))
    for moment in (AtSequence(head), AtTime(datetime.now(UTC))):
        with pytest.raises(HistoryReplaced):
            await moments.at(past, arena.tournament_id, arena.ranking_id, moment, head)


# ── Snapshots ───────────────────────────────────────────────────────────────────────────────────────────


async def test_the_worker_keeps_a_snapshot_whenever_enough_events_lie_behind(
    database: Database, owner: asyncpg.Connection, arena: Arena, bounds: Bounds
) -> None:
    bounds(INTERVAL_EVENTS_MIN=5, INTERVAL_EVENTS_PER_ROW=0)
    worker_ = Worker(database)
    at = "SELECT snapshot_sequence FROM checkpoint WHERE tournament_id = $1"
    seen = []
    for _ in range(12):
        await worker_.catch_up()
        seen.append((await head_of(database, arena), await owner.fetchval(at, arena.tournament_id)))
        await add(database, arena, 1)
    assert seen == [(n, 0 if n < 5 else 5 if n < 10 else 10 if n < 15 else 15) for n in range(4, 16)]
    assert await kept(database, arena.tournament_id) == [5, 10, 15]
    events = await whole_log(database, arena.tournament_id)
    async with database.connection() as connection:
        for sequence in (5, 10, 15):
            snapshot = await snapshots.nearest(connection, arena.tournament_id, Sequence(sequence + 4))
            assert snapshot is not None
            assert snapshot.head.sequence == sequence
            assert await heads.has(connection, arena.tournament_id, snapshot.head)
            assert laid_out(snapshot.board) == laid_out(board_of(events[:sequence]))


async def test_the_interval_grows_with_the_board(database: Database, arena: Arena, bounds: Bounds) -> None:
    bounds(INTERVAL_EVENTS_MIN=1, INTERVAL_EVENTS_PER_ROW=2)
    board = await Past(database).board_at(arena.tournament_id, await head_of(database, arena))
    assert snapshots.interval_events(board) == 2 * (2 + 2)  # two competitors, both in the list, without a total yet
    board.rankings[arena.ranking_id].unities[arena.unity_id].totals.add(arena.competitors[0], 1)
    assert snapshots.interval_events(board) == 2 * (2 + 2 + 1)


async def test_how_large_a_board_is_is_not_asked_before_the_least_interval(
    database: Database, arena: Arena, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Board] = []
    monkeypatch.setattr(worker.snapshots, "interval_events", asked.append)
    await add(database, arena, 1, 2, 3)
    await Worker(database).catch_up()
    assert asked == []


async def test_tables_made_again_have_snapshots_of_their_own_next_to_those_of_the_previous_fold(
    database: Database, owner: asyncpg.Connection, arena: Arena, in_small_steps: None
) -> None:
    await add(database, arena, *range(20))
    await Worker(database).catch_up()
    before = await kept(database, arena.tournament_id)
    assert before
    await owner.execute("UPDATE snapshot SET fold_version = fold_version - 1, board = 'old'")
    await owner.execute("UPDATE checkpoint SET fold_version = fold_version - 1")
    await Worker(database).catch_up()
    assert await kept(database, arena.tournament_id) == before
    versions = await owner.fetch("SELECT DISTINCT fold_version FROM snapshot ORDER BY fold_version")
    assert [row["fold_version"] for row in versions] == [FOLD_VERSION - 1, FOLD_VERSION]


async def test_a_tournament_with_outdated_tables_is_loaded_from_its_last_snapshot(
    database: Database, owner: asyncpg.Connection, arena: Arena, in_small_steps: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add(database, arena, *range(20))
    await Worker(database).catch_up()
    *_, last = await kept(database, arena.tournament_id)
    await owner.execute("UPDATE checkpoint SET fold_version = fold_version - 1")
    begun = noted_calls(monkeypatch, tails, "tails_to_head")
    async with database.connection() as connection:
        live = await load(connection, arena.tournament_id)
    assert [head.sequence for _, _, head, *_ in begun] == [last]
    assert total(live.board, arena) == sum(range(20))


@pytest.mark.parametrize("spoilt", ["board = 'x'", "board = ''", "digest = 'other'"])
async def test_a_snapshot_that_cannot_be_used_is_ignored_with_a_line_in_the_log(
    database: Database, owner: asyncpg.Connection, arena: Arena, in_small_steps: None, spoilt: str
) -> None:
    await add(database, arena, *range(1, 21))
    await Worker(database).catch_up()
    *_, last = await kept(database, arena.tournament_id)
    await owner.execute(f"UPDATE snapshot SET {spoilt} WHERE sequence = {last}")
    past, head = Past(database), await head_of(database, arena)
    with capture_logs() as lines:
        then = await moments.at(past, arena.tournament_id, arena.ranking_id, AtSequence(head), head)
    assert total(then.board, arena) == sum(range(1, 21))
    assert [(line["event"], line["sequence"]) for line in lines] == [("snapshot_ignored", last)]
    await owner.execute(f"UPDATE snapshot SET {spoilt}")
    version = AtVersion(arena.unity_id, 15)
    assert total((await moments.at(past, arena.tournament_id, arena.ranking_id, version, head)).board, arena) == sum(
        range(1, 15)
    )


async def test_an_answer_reads_no_more_than_lies_between_a_snapshot_and_its_moment(
    database: Database, arena: Arena, in_small_steps: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add(database, arena, *range(40))
    await Worker(database).catch_up()
    read: list[tuple[int, int]] = []
    chunk_of = reading.chunk_of

    async def noted(connection: Any, tournament_id: TournamentId, after: Sequence, upto: Sequence) -> list[Recorded]:
        events = await chunk_of(connection, tournament_id, after, upto)
        read.extend((upto, recorded.sequence) for recorded in events)
        return events

    monkeypatch.setattr(reading, "chunk_of", noted)
    past, head = Past(database), await head_of(database, arena)
    for n in range(20, head + 1):
        await moments.at(past, arena.tournament_id, arena.ranking_id, AtSequence(Sequence(n)), head)
    assert all(upto - 7 < sequence <= upto for upto, sequence in read)


async def test_a_snapshot_holds_whatever_a_board_can(database: Database, arena: Arena) -> None:
    async with database.connection() as connection:
        await record(
            connection,
            arena.tournament_id,
            RankingModified(ranking_id=arena.ranking_id, participants=arena.competitors[::-1], main_unity_name="點"),
        )
        head = (await heads.current(connection, [arena.tournament_id]))[arena.tournament_id]
        board = board_of(await whole_log(database, arena.tournament_id))
        await snapshots.save(connection, {arena.tournament_id: Snapshot(head, board)})
        found = await snapshots.nearest(connection, arena.tournament_id, head.sequence)
        assert found is not None
        assert (found.head, laid_out(found.board)) == (head, laid_out(board))
        assert await snapshots.nearest(connection, arena.tournament_id, Sequence(head.sequence - 1)) is None
        assert not await heads.has(connection, arena.tournament_id, Head(head.sequence, b"other"))


@pytest.mark.parametrize("between", [1, 1_200])
async def test_the_first_points_of_the_last_competition_are_found_however_many_follow(
    database: Database, owner: asyncpg.Connection, past: Past, between: int
) -> None:
    arena = await open_arena(database)
    tournament_id, ranking_id, competitor_id = arena.tournament_id, arena.ranking_id, arena.competitors[0]
    last = CompetitionId(1_000_000)

    async def points(competition_id: CompetitionId | None, count: int = 1) -> Appended:
        deltas = (Delta(competitor_id, arena.unity_id, 1),)
        event = PointsAdded(ranking_id=ranking_id, deltas=deltas, competition_id=competition_id)
        return await record(owner, tournament_id, *[event] * count)

    await record(
        owner, tournament_id, CompetitionAdded(competition_id=last, group_id=1, participants=arena.competitors)
    )
    first = (await points(last)).first_sequence
    await points(None, between)
    upto = (await points(last)).last_sequence
    assert first is not None
    assert upto is not None
    board = await past.board_at(tournament_id, upto)
    found = await last_competition(past, tournament_id, ranking_id, upto, board)
    assert found == LastCompetition(last, first)
