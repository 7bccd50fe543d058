"""Setting aside: one event has no effect any more, at no moment and for no reader; everything else is as it was."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import cycle

import asyncpg
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from api.desk.desk import Desk
from engine.database.pool import Database
from engine.domain.commands import VoidCompetition
from engine.domain.errors import Conflict, HistoryReplaced, LogDisproved, LogUnreadable, NotFound, TournamentStopped
from engine.domain.events import (
    CompetitionAdded,
    Delta,
    Event,
    EventSetAside,
    Ignored,
    PointsAdded,
    PointsReversed,
    PointsScored,
    PublicationFrozen,
    PublicationRevealed,
    Recorded,
)
from engine.domain.notation import Notation
from engine.domain.terms import OPERATOR, CompetitionId, CompetitorId, Sequence, TournamentId
from engine.log import heads, reading, registry, tails
from projections.answers import explaining
from projections.board.board import Board, Revisions, fold
from projections.live import tournament
from projections.live.pool import open_live_pool
from projections.past import moments, pages
from projections.past.history import DeltaLine
from projections.past.moments import AtSequence, Span
from projections.past.past import Past
from projections.tables import tables
from projections.tables.rebuild import rebuild
from projections.tables.worker import Worker
from projections.verification import proof, stored_log
from projections.verification.setting_aside import find_unfoldable, set_aside
from tests.bounds import Bounds
from tests.desks import Arena, desk_at, head_of, open_arena, record, submit, until
from tests.histories import NOBODY, board_of, judged_by, runs
from tests.poison import POISONS, append_text, poison
from tests.projections.verified import named, verified
from tests.projections.written import block_sizes, on_the_database, rich_histories
from tests.tampering import line_changed, tamper
from tests.tournaments import open_new_tournament


async def replayed(database: Database, tournament_id: TournamentId, upto: Sequence | None = None) -> Board:
    """The board as the log gives it, read from the beginning."""
    board, revisions, head = Board(), Revisions(), heads.beginning(tournament_id)
    async with database.connection() as connection:
        while (tail := await tails.tail(connection, tournament_id, head)).events:
            for recorded in tail.events:
                if upto is None or recorded.sequence <= upto:
                    fold(board, revisions, recorded)
            head = tail.head
    return board


async def agreed(database: Database, arena: Arena) -> int:
    """The total of the arena's first competitor, on which everybody who reads agrees: live, tables, replay, past."""
    tournament_id = arena.tournament_id
    await Worker(database).catch_up()
    head = await head_of(database, tournament_id)
    board = await replayed(database, tournament_id)
    async with database.connection() as connection:
        assert await tables.load_board(connection, tournament_id) == board
        checkpoint = await tables.checkpoint(connection, tournament_id)
        assert checkpoint is not None
        assert checkpoint.head == head
        assert (await tournament.load(connection, tournament_id)).board == board
    async with open_live_pool(database) as of_process, of_process.pinned(tournament_id) as one:
        await of_process.make_current(one)
        assert one.board == board
    then = await moments.at(Past(database), tournament_id, arena.ranking_id, AtSequence(head.sequence), head.sequence)
    assert then.board == board
    return board.rankings[arena.ranking_id].unities[arena.unity_id].totals.get(arena.competitors[0], 0)


async def add(owner: asyncpg.Connection, arena: Arena, amount: int) -> Sequence:
    delta = Delta(arena.competitors[0], arena.unity_id, amount)
    appended = await record(owner, arena.tournament_id, PointsAdded(ranking_id=arena.ranking_id, deltas=(delta,)))
    assert appended.last_sequence is not None
    return appended.last_sequence


async def history(database: Database, arena: Arena) -> list[DeltaLine]:
    head = await head_of(database, arena.tournament_id)
    span = Span(Sequence(1), head.sequence)
    of_span = pages.lines(Past(database), arena.tournament_id, arena.ranking_id, span)
    return [line async for _, of_slice in of_span for line in of_slice if isinstance(line, DeltaLine)]


# ── One event ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", POISONS)
async def test_an_event_that_is_set_aside_has_no_effect_for_any_reader_and_all_others_have(
    database: Database, owner: asyncpg.Connection, name: str
) -> None:
    """The unknown ranking and the unknown unity are what an append judged against a lost history leaves."""
    arena = await open_arena(database)
    await add(owner, arena, 1)
    sequence = await poison(owner, arena, name)
    await add(owner, arena, 2)
    before = await head_of(database, arena.tournament_id)
    assert named(await verified(database)) == {(sequence, "event.body")}
    found = await set_aside(database, arena.tournament_id, sequence)
    assert found.first is not None
    assert (found.first.event.sequence, found.first.event.kind) == (sequence, POISONS[name][0])
    assert (found.head, found.second, found.count) == (before, None, 1)
    await add(owner, arena, 4)
    assert await agreed(database, arena) == 7
    assert [line.delta for line in await history(database, arena)] == [1, 2, 4]
    async with database.connection() as connection:
        recorded = await reading.event_at(connection, arena.tournament_id, sequence)
        assert recorded.event == Ignored()
    explained = await explaining.explanation(
        Past(database),
        arena.tournament_id,
        arena.ranking_id,
        arena.unity_id,
        arena.competitors[0],
        notation=Notation(),
        start=Sequence(0),
        end=Sequence(sequence + 1),
        head=Sequence(sequence + 1),
    )
    assert sequence not in {step.sequence for step in explained.steps}
    rebuilt = await rebuild(database, arena.tournament_id)
    assert (rebuilt.differences, rebuilt.replaced) == ([], False)
    report = await verified(database)
    assert report.differences == []
    (aside,) = report.heads[0].set_aside
    assert (aside.sequence, aside.kind, aside.by, aside.actor) == (sequence, POISONS[name][0], sequence + 2, 0)


async def test_tails_that_are_read_together_have_their_names_where_something_was_set_aside(
    database: Database, owner: asyncpg.Connection
) -> None:
    arenas = [await open_arena(database) for _ in range(2)]
    await set_aside(database, arenas[0].tournament_id, await poison(owner, arenas[0], "unknown tag"))
    beginnings = {arena.tournament_id: heads.beginning(arena.tournament_id) for arena in arenas}
    async with database.connection() as connection:
        together = await tails.tails(connection, beginnings)
        for tournament_id, beginning in beginnings.items():
            assert together.tails[tournament_id] == await tails.tail(connection, tournament_id, beginning)


async def test_the_board_of_every_moment_is_the_one_without_it(database: Database, owner: asyncpg.Connection) -> None:
    arena = await open_arena(database)
    await add(owner, arena, 1)
    sequence = await poison(owner, arena, "unknown unity")
    await add(owner, arena, 2)
    await set_aside(database, arena.tournament_id, sequence)
    head = await head_of(database, arena.tournament_id)
    for moment in range(4, head.sequence + 1):
        then = await moments.at(
            Past(database), arena.tournament_id, arena.ranking_id, AtSequence(Sequence(moment)), head.sequence
        )
        assert then.board == await replayed(database, arena.tournament_id, Sequence(moment))


@settings(on_the_database, max_examples=6)
@given(history=rich_histories, sizes=block_sizes, data=st.data())
async def test_wherever_it_lies_the_others_lead_to_what_they_led_to_without_it(
    database: Database, owner: asyncpg.Connection, history: list[Event], sizes: list[int], data: st.DataObject
) -> None:
    """A log with poisons between its blocks, set aside one after the other, folds to what its other events lead to."""
    tournament_id = await open_new_tournament(database, actor=OPERATOR)
    bad: list[Sequence] = []
    moved: dict[Sequence, Sequence] = {}  # from where each event is in the history to where it is in this log
    times: dict[Sequence, datetime] = {}  # of the events of this log
    for run in runs(history, cycle(sizes)):
        first = Sequence(2 + len(moved) + len(bad))
        moved |= {Sequence(2 + len(moved) + n): Sequence(first + n) for n in range(len(run))}
        recorded = await record(owner, tournament_id, *[_moved(event, moved, times) for event in run])
        times |= {Sequence(first + n): recorded.recorded_at for n in range(len(run))}
        if data.draw(st.integers(0, 3)) == 0:
            kind, body = POISONS[data.draw(st.sampled_from(sorted(POISONS)))]
            bad.append(
                await append_text(
                    owner, tournament_id, kind, body % {"ranking": NOBODY, "unity": NOBODY, "competitor": NOBODY}
                )
            )
    for n, sequence in enumerate(bad):
        found = await set_aside(database, tournament_id, sequence)
        assert found.count == len(bad) - n
        assert (found.second is None) == (n + 1 == len(bad))
    assert (await find_unfoldable(database, tournament_id)).count == 0
    async with database.connection() as connection:
        loaded = await tournament.load(connection, tournament_id)
        slug = await registry.slug_of(connection, tournament_id)
    expected = board_of(
        [
            Recorded(moved[Sequence(n)], NOW, OPERATOR, None, _moved(event, moved, times))
            for n, event in enumerate(history, start=2)
        ]
    )
    assert judged_by(loaded.board) == judged_by(expected)
    assert totals_of(loaded.board) == totals_of(expected)
    await Worker(database).catch_up()
    assert (await verified(database, slug=slug)).differences == []


def _moved(event: Event, moved: dict[Sequence, Sequence], times: dict[Sequence, datetime]) -> Event:
    """The event with the sequences and times that it names as they are in this log. The public saw the poisons too that
    lie between an event and the next one."""
    match event:
        case PublicationFrozen():
            return msgspec.structs.replace(event, at=moved[Sequence(event.at + 1)] - 1)
        case PublicationRevealed() if event.to is not None:
            return msgspec.structs.replace(event, to=moved[Sequence(event.to + 1)] - 1)
        case PointsReversed():
            event = msgspec.structs.replace(event, reverses=moved[event.reverses])
    if isinstance(event, PointsScored | PointsReversed) and event.instead_of is not None:
        event = msgspec.structs.replace(event, instead_of=moved[event.instead_of])
    if isinstance(event, PointsScored) and event.since is not None and event.instead_of is not None:
        event = msgspec.structs.replace(event, since=times[event.instead_of])
    return event


NOW = datetime(2024, 2, 29, tzinfo=UTC)


def totals_of(board: Board) -> dict[int, dict[CompetitorId, int]]:
    return {u: unity.totals for ranking in board.rankings.values() for u, unity in ranking.unities.items()}


async def test_of_several_only_the_first_may_be_set_aside_and_the_next_is_named(
    database: Database, owner: asyncpg.Connection
) -> None:
    arena = await open_arena(database)
    first = await poison(owner, arena, "unknown tag")
    second = await poison(owner, arena, "unknown ranking")
    for wrong in (1, second, second + 1):
        with pytest.raises(Conflict, match=f"The first event that cannot be folded is {first} "):
            await set_aside(database, arena.tournament_id, Sequence(wrong))
    found = await set_aside(database, arena.tournament_id, first)
    assert found.second is not None
    assert (found.second.event.sequence, found.count) == (second, 2)
    with pytest.raises(Conflict, match=f"The first event that cannot be folded is {second} "):
        await set_aside(database, arena.tournament_id, first)
    await set_aside(database, arena.tournament_id, second)
    with pytest.raises(Conflict, match="nothing to set aside"):
        await set_aside(database, arena.tournament_id, second)
    assert await agreed(database, arena) == 0


async def test_what_can_only_be_folded_with_it_must_be_set_aside_too(
    database: Database, owner: asyncpg.Connection
) -> None:
    arena = await open_arena(database)
    ranking = (
        "{" + f'"ranking_id":900,"name":"R","participants":[{arena.competitors[0]}],"main_unity_id":901,"why":1' + "}"
    )
    first = await append_text(owner, arena.tournament_id, "RankingCreated", ranking)
    body = f'{{"ranking_id":900,"deltas":[[{arena.competitors[0]},901,5]]}}'
    second = await append_text(owner, arena.tournament_id, "PointsAdded", body)
    found = await set_aside(database, arena.tournament_id, first)
    assert found.second is not None
    assert (found.second.event.sequence, found.second.reason) == (second, "it names 900, which does not exist")
    await set_aside(database, arena.tournament_id, second)
    assert await agreed(database, arena) == 0


async def test_a_dry_run_changes_nothing(database: Database, owner: asyncpg.Connection) -> None:
    arena = await open_arena(database)
    sequence = await poison(owner, arena, "missing field")
    before = await head_of(database, arena.tournament_id)
    found = await set_aside(database, arena.tournament_id, sequence, dry_run=True)
    assert found.first is not None
    assert (found.first.event.kind, found.first.event.body) == ("RankingClosed", "{}")
    assert await head_of(database, arena.tournament_id) == before


async def test_a_log_whose_chain_does_not_hold_is_not_appended_to(
    database: Database, owner: asyncpg.Connection
) -> None:
    arena = await open_arena(database)
    sequence = await poison(owner, arena, "unknown tag")
    await add(owner, arena, 1)
    head = await head_of(database, arena.tournament_id)
    for statement in (
        line_changed(2, "replace(line, ',0,', ',5,')"),
        "UPDATE block SET first_sequence = 3 WHERE tournament_id = $1 AND last_sequence = 4",
    ):
        await tamper(owner, statement, arena.tournament_id)
        with pytest.raises(LogDisproved, match="run `tallybook verify`"):
            await set_aside(database, arena.tournament_id, sequence)
    assert await head_of(database, arena.tournament_id) == head


async def test_an_event_whose_effect_is_in_the_tables_is_not_set_aside(
    database: Database, owner: asyncpg.Connection
) -> None:
    """Another version could fold it."""
    arena = await open_arena(database)
    await Worker(database).catch_up()
    sequence = await poison(owner, arena, "unknown tag")
    await owner.execute("UPDATE checkpoint SET sequence = $1", sequence)
    with pytest.raises(Conflict, match="a newer version"):
        await set_aside(database, arena.tournament_id, sequence)


async def test_a_tournament_that_does_not_exist_is_not_found(database: Database) -> None:
    with pytest.raises(NotFound):
        await find_unfoldable(database, TournamentId(999_999))


# ── What is no setting aside ────────────────────────────────────────────────────────────────────────────

DIGEST = "0" * 64


async def block_digest(database: Database, arena: Arena, sequence: int) -> str:
    async with database.connection() as connection:
        text = await stored_log.stored_event(connection, arena.tournament_id, Sequence(sequence))
    assert text is not None
    return text.digest.hex()


WRONG: dict[str, Callable[[int, str], str]] = {
    "another digest": lambda n, _: f'{{"sequence":{n},"digest":"{DIGEST}"}}',
    "a later event": lambda n, digest: f'{{"sequence":{n + 5},"digest":"{digest}"}}',
    "other words": lambda n, digest: f'{{"sequence": {n},"digest":"{digest}"}}',
}


@pytest.mark.parametrize("wrong", WRONG)
async def test_one_that_names_an_event_wrongly_sets_nothing_aside_and_is_found(
    database: Database, owner: asyncpg.Connection, wrong: str
) -> None:
    arena = await open_arena(database)
    sequence = await add(owner, arena, 1)
    body = WRONG[wrong](sequence, await block_digest(database, arena, sequence))
    by = await append_text(owner, arena.tournament_id, "EventSetAside", body, structural=True)
    assert await agreed(database, arena) == 1
    report = await verified(database)
    assert named(report) == {(by, "event.body")}
    assert report.heads[0].set_aside == []


@pytest.mark.parametrize("body", ["{}", '{"sequence":0,"digest":"x"}', '{"sequence":9999999999999999999}', "nonsense"])
async def test_one_that_cannot_be_decoded_stops_its_tournament_and_can_be_set_aside(
    database: Database, owner: asyncpg.Connection, body: str
) -> None:
    arena = await open_arena(database)
    sequence = await append_text(owner, arena.tournament_id, "EventSetAside", body, structural=True)
    async with database.connection() as connection:
        with pytest.raises(LogUnreadable):
            await tournament.load(connection, arena.tournament_id)
    await set_aside(database, arena.tournament_id, sequence)
    assert await agreed(database, arena) == 0


async def test_a_second_one_of_the_same_event_is_found(database: Database, owner: asyncpg.Connection) -> None:
    arena = await open_arena(database)
    sequence = await poison(owner, arena, "unknown tag")
    await set_aside(database, arena.tournament_id, sequence)
    digest = await block_digest(database, arena, sequence)
    event = EventSetAside(sequence=sequence, digest=digest)
    again = (await record(owner, arena.tournament_id, event)).last_sequence
    assert await agreed(database, arena) == 0
    assert named(await verified(database)) == {(again, "event.body")}


# ── What was folded, by whoever could ───────────────────────────────────────────────────────────────────


async def by_hand(database: Database, owner: asyncpg.Connection, arena: Arena, sequence: Sequence) -> None:
    """As an older version would set aside what this one can fold."""
    digest = await block_digest(database, arena, sequence)
    await record(owner, arena.tournament_id, EventSetAside(sequence=sequence, digest=digest))


async def test_a_live_that_folded_an_event_set_aside_later_reads_the_log_again(
    database: Database, owner: asyncpg.Connection
) -> None:
    arena = await open_arena(database)
    sequence = await add(owner, arena, 1)
    await add(owner, arena, 2)
    keeping = Worker(database)
    await keeping.catch_up()
    async with open_live_pool(database) as of_process:
        async with of_process.pinned(arena.tournament_id) as one:
            await of_process.make_current(one)
            assert total(one.board, arena) == 3
            await by_hand(database, owner, arena, sequence)
            with pytest.raises(HistoryReplaced):
                await of_process.make_current(one)
        async with of_process.pinned(arena.tournament_id) as loaded_again:
            await of_process.make_current(loaded_again)
            assert total(loaded_again.board, arena) == 2
            await add(owner, arena, 4)
            await of_process.make_current(loaded_again)
            assert total(loaded_again.board, arena) == 6
    await keeping.catch_up()
    assert await agreed(database, arena) == 6
    assert (await verified(database)).differences == []


def total(board: Board, arena: Arena) -> int:
    return board.rankings[arena.ranking_id].unities[arena.unity_id].totals[arena.competitors[0]]


# ── A service ───────────────────────────────────────────────────────────────────────────────────────────


async def test_a_running_service_continues_automatically_after_each_of_two(
    dsn: str, database: Database, owner: asyncpg.Connection, bounds: Bounds
) -> None:
    bounds(STOPPED_SECONDS=0.05, STOPPED_RETRY_SECONDS=0.1)
    arena = await open_arena(database)
    keeping = asyncio.create_task(Worker(database).run())
    amount = 0
    async with desk_at(dsn) as desk:
        for name in ("unknown unity", "unknown tag"):
            await submit(desk, arena.tournament_id, arena.points(1))
            amount += 1
            sequence = await poison(owner, arena, name)
            await until(lambda: is_stopped(desk, arena))
            await until(lambda stopped_at=sequence: noted(owner, stopped_at))  # type: ignore[misc]
            await set_aside(database, arena.tournament_id, sequence)
            await until(lambda: goes_on(desk, arena))
            amount += 1
            await until(lambda: followed(owner, arena))
            assert await owner.fetchval("SELECT count(*) FROM stopped") == 0
            async with desk.live_pool.pinned(arena.tournament_id) as one:
                await desk.live_pool.make_current(one)
                assert total(one.board, arena) == amount
        with pytest.raises(Conflict, match="nothing to set aside"):
            await set_aside(database, arena.tournament_id, Sequence(5))
    keeping.cancel()
    await asyncio.gather(keeping, return_exceptions=True)
    assert await agreed(database, arena) == amount
    assert (await verified(database)).differences == []


async def is_stopped(desk: Desk, arena: Arena) -> bool:
    try:
        async with desk.live_pool.pinned(arena.tournament_id) as one:
            await desk.live_pool.make_current(one)
    except TournamentStopped:
        return True
    return False


async def goes_on(desk: Desk, arena: Arena) -> bool:
    try:
        await submit(desk, arena.tournament_id, arena.points(1))
    except TournamentStopped:
        return False
    return True


async def noted(owner: asyncpg.Connection, sequence: Sequence) -> bool:
    return [row[0] for row in await owner.fetch("SELECT sequence FROM stopped")] == [sequence]


async def followed(owner: asyncpg.Connection, arena: Arena) -> bool:
    behind = "SELECT h.sequence - c.sequence FROM head AS h JOIN checkpoint AS c USING (tournament_id)"
    return await owner.fetchval(f"{behind} WHERE tournament_id = $1", arena.tournament_id) == 0


async def test_points_that_were_set_aside_are_no_effect_of_their_competition(
    database: Database, owner: asyncpg.Connection, desk: Desk
) -> None:
    arena = await open_arena(database)
    await record(owner, arena.tournament_id, CompetitionAdded(competition_id=CompetitionId(77), group_id=1))
    body = '{"ranking_id":999999,"competition_id":77,"deltas":[[1,2,3]]}'
    sequence = await append_text(owner, arena.tournament_id, "PointsAdded", body)
    await set_aside(database, arena.tournament_id, sequence)
    receipt = await submit(desk, arena.tournament_id, VoidCompetition(competition_id=CompetitionId(77)))
    assert (await head_of(database, arena.tournament_id)).sequence == receipt.sequence
    assert (await verified(database)).differences == []


async def test_a_repeat_of_a_request_learns_that_its_event_was_set_aside(
    database: Database, owner: asyncpg.Connection, desk: Desk
) -> None:
    arena = await open_arena(database)
    receipt = await submit(desk, arena.tournament_id, arena.points(3), key="mine")
    await by_hand(database, owner, arena, receipt.sequence)
    await until(lambda: repeated(desk, arena, receipt.sequence))


async def repeated(desk: Desk, arena: Arena, sequence: Sequence) -> bool:
    try:
        await submit(desk, arena.tournament_id, arena.points(3), key="mine")
    except HistoryReplaced:
        return False
    except Conflict as error:
        return f"event {sequence}, which the operator has set aside" in error.message
    raise AssertionError("it was answered as if it counted")


async def test_an_event_that_was_set_aside_can_be_proved_as_before(
    database: Database, owner: asyncpg.Connection
) -> None:
    arena = await open_arena(database)
    sequence = await poison(owner, arena, "unknown tag")
    await set_aside(database, arena.tournament_id, sequence)
    async with database.connection() as connection, stored_log.one_moment(connection):
        proven = await proof.prove(connection, arena.tournament_id, "cup", sequence)
    assert "Nonsense" in proven.block
