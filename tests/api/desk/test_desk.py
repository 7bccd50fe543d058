"""The desk: what was acknowledged is in the log exactly once, refusals are of the present, and nobody waits for others.

Nothing stands in for anything: the commits are lost by a proxy that cuts connections to the real database, and what
holds a tournament up is a real lock of a foreign transaction.
"""

import asyncio
import math
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, suppress
from typing import Any, Final

import asyncpg
import pytest

from api.desk import desk as desk_module
from api.desk.case import Receipt
from api.desk.desk import Desk, open_desk
from api.interface.rendering import whole
from engine.database import pool as database_module
from engine.database.pool import Database, open_database
from engine.domain.commands import (
    AddCompetition,
    AddPoints,
    AddUnity,
    CloseRanking,
    Command,
    CreateRanking,
    ReopenRanking,
)
from engine.domain.errors import (
    Conflict,
    DatabaseUnavailable,
    HistoryReplaced,
    KeyRefused,
    KeyReused,
    OutcomeUnknown,
    Overtaken,
    QueueFull,
    Refusal,
    Rejected,
    ShuttingDown,
    TallybookError,
    Unacceptable,
)
from engine.domain.events import PointsAdded, RankingReopened
from engine.domain.terms import DELTAS_MAX, OPERATOR, CompetitionId, RankingId, Sequence, TournamentId, UnityId
from engine.log import appender, appending, heads
from projections.live.pool import LivePool
from tests.api.rendered import ADD, answered
from tests.bounds import Bounds
from tests.conftest import COMMITTED_BY_ITS_NODE
from tests.desks import (
    HOLD_HEAD,
    Arena,
    desk_at,
    desks_at,
    fingerprint,
    holding,
    holding_heads,
    leave_unconfirmed,
    open_arena,
    record,
    recorded,
    submit,
    until,
    waiting_for_locks,
)
from tests.poison import cut_tail
from tests.proxy import Fault, proxy
from tests.tampering import tamper

# ── A commit whose answer is lost ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("fault", [Fault.BEFORE, Fault.UNFINISHED, Fault.AFTER])
async def test_an_append_whose_connection_is_lost_is_recorded_exactly_once_and_acknowledged(
    dsn: str, fault: Fault
) -> None:
    async with proxy(dsn) as between, desk_at(between.dsn) as desk:
        arena = await open_arena(desk.database)
        between.strike(fault)
        first = await submit(desk, arena.tournament_id, arena.points(1))
        second = await submit(desk, arena.tournament_id, arena.points(2))
        assert [first.sequence, second.sequence] == [5, 6]
        assert (await recorded(desk.database, arena.tournament_id))[4:] == [first.event, second.event]


async def test_every_command_is_recorded_once_however_often_connections_are_lost(dsn: str) -> None:
    async with proxy(dsn) as between, desk_at(between.dsn) as desk:
        arenas = [await open_arena(desk.database) for _ in range(5)]
        chance = random.Random(5)
        between.strike(*(chance.choice([Fault.BEFORE, Fault.UNFINISHED, Fault.AFTER]) for _ in range(40)))

        async def ask_in_turn(arena: Arena, amounts: Iterable[int]) -> None:
            for amount in amounts:
                await submit(desk, arena.tournament_id, arena.points(amount))

        await asyncio.gather(*(ask_in_turn(arena, range(n, 100, 4)) for arena in arenas for n in range(4)))
        assert between.faults_left == 0
        for arena in arenas:
            assert sorted(await amounts_of(desk, arena)) == list(range(100))


async def test_a_statement_that_arrives_long_after_it_was_given_up_is_not_applied_again(dsn: str) -> None:
    async with proxy(dsn) as between, desk_at(between.dsn) as desk:
        arena = await open_arena(desk.database)
        between.strike(Fault.LATE)
        receipt = await submit(desk, arena.tournament_id, arena.points())
        forwarded = between.forwarded
        between.release()
        await until(lambda: between.forwarded > forwarded)
        assert (await submit(desk, arena.tournament_id, arena.points())).sequence == receipt.sequence + 1
        assert len(await recorded(desk.database, arena.tournament_id)) == 6


@pytest.mark.one_postgresql(COMMITTED_BY_ITS_NODE)
async def test_a_forgotten_session_that_commits_late_is_waited_for_and_not_repeated(
    dsn: str, owner: asyncpg.Connection
) -> None:
    async with proxy(dsn) as between, desk_at(between.dsn) as desk:
        arena, other = await open_arena(desk.database), await open_arena(desk.database)
        between.strike(Fault.LATE_COMMIT)
        asking = asyncio.create_task(submit(desk, arena.tournament_id, arena.points()))
        await between.struck()
        await until(lambda: waiting_for_locks(owner, "append_block"))
        assert (await submit(desk, other.tournament_id, other.points())).sequence == 5
        assert not asking.done()
        between.release()
        assert (await asking).sequence == 5
        assert len(await recorded(desk.database, arena.tournament_id)) == 5


@pytest.mark.parametrize("answers_only", [True, False])
async def test_connections_that_fall_silent_are_given_up_and_what_was_on_them_is_recorded_once(
    dsn: str, bounds: Bounds, answers_only: bool
) -> None:
    bounds(STATEMENT_SECONDS_MAX=-1.7)  # the driver gives up 2 seconds later
    async with proxy(dsn) as between, desk_at(between.dsn) as desk:
        arenas = [await open_arena(desk.database) for _ in range(3)]
        await asyncio.gather(*(submit(desk, arena.tournament_id, arena.points(1)) for arena in arenas))
        between.fall_silent(answers_only=answers_only)
        await asyncio.gather(*(submit(desk, arena.tournament_id, arena.points(2)) for arena in arenas))
        await asyncio.gather(*(submit(desk, arena.tournament_id, arena.points(3)) for arena in arenas))
        assert [await amounts_of(desk, arena) for arena in arenas] == [[1, 2, 3]] * 3


async def test_what_may_have_been_applied_is_neither_refused_nor_sent_as_something_new(
    dsn: str, owner: asyncpg.Connection
) -> None:
    """The commit is lost, and the next attempt fails for another reason than a lost connection, for a while."""

    async def revoke() -> None:
        await owner.execute("REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA tallybook FROM tallybook_service")

    async def grant() -> None:
        await owner.execute("GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA tallybook TO tallybook_service")

    async with proxy(dsn) as between, desk_at(between.dsn) as desk:
        arena = await open_arena(desk.database)
        await submit(desk, arena.tournament_id, arena.points(1))
        between.strike(Fault.AFTER, meanwhile=revoke)
        between.strike(Fault.NONE)
        between.strike(Fault.NONE, meanwhile=grant)
        outcomes = await asyncio.gather(
            *(submit(desk, arena.tournament_id, arena.points(amount)) for amount in (2, 3, 4)), return_exceptions=True
        )
        await grant()
        assert await amounts_of(desk, arena) == [1, 2, 3, 4]
        assert [type(outcome) for outcome in outcomes] == [OutcomeUnknown] * 3
        await submit(desk, arena.tournament_id, arena.points(5))
        assert await amounts_of(desk, arena) == [1, 2, 3, 4, 5]


async def test_what_cannot_even_be_put_on_the_wire_is_rejected_alone(dsn: str) -> None:
    async with desk_at(dsn) as desk:
        arena, other = await open_arena(desk.database), await open_arena(desk.database)
        unsendable = [submit(desk, arena.tournament_id, arena.points(13), key="\ud800") for _ in range(2)]
        good = [submit(desk, a.tournament_id, a.points(n)) for n in range(5) for a in (arena, other)]
        outcomes = await asyncio.gather(*unsendable, *good, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [Rejected] * 2 + [Receipt] * 10


# ── Idempotency keys ────────────────────────────────────────────────────────────────────────────────────


async def add_points(desk: Desk, arena: Arena) -> Command:
    return arena.points(7)


async def create_ranking(desk: Desk, arena: Arena) -> Command:
    return CreateRanking(
        ranking_id=RankingId(await desk.new_id()),
        main_unity_id=UnityId(await desk.new_id()),
        name="Away",
        main_unity_name="Points",
        participants=arena.competitors,
    )


async def add_competition(desk: Desk, arena: Arena) -> Command:
    competition_id = CompetitionId(await desk.new_id())
    return AddCompetition(competition_id=competition_id, group_id=1, participants=arena.competitors)


async def add_unity(desk: Desk, arena: Arena) -> Command:
    return AddUnity(ranking_id=arena.ranking_id, unity_id=UnityId(await desk.new_id()), name="Goals")


async def close_ranking(desk: Desk, arena: Arena) -> Command:
    return CloseRanking(ranking_id=arena.ranking_id)


ASKED: Final = {
    add_points: ADD,
    create_ranking: "POST rankings.json",
    add_competition: "POST competitions.json",
    add_unity: "POST rankings/{ranking_id}/unities.json",
    close_ranking: "PUT rankings/{ranking_id}/close.json",
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("command", ASKED)
async def test_a_key_sent_twenty_times_in_parallel_to_two_desks_makes_one_event_and_twenty_equal_answers(
    dsn: str, command: Callable[[Desk, Arena], Awaitable[Command]]
) -> None:
    async def ask(desk: Desk, arena: Arena) -> tuple[Receipt, bytes]:
        async with desk.live_pool.pinned(arena.tournament_id) as live:
            receipt = await desk.submit(
                live,
                await command(desk, arena),
                actor=OPERATOR,
                idempotency_key="once",
                fingerprint=fingerprint("once"),
            )
            return receipt, whole(answered(live, ASKED[command], receipt.event))

    async with desks_at(dsn) as desks:
        for _ in range(5):
            arena = await open_arena(desks[0].database)
            told = await asyncio.gather(*(ask(desk, arena) for _ in range(10) for desk in desks))
            receipts = [receipt for receipt, _ in told]
            assert len({body for _, body in told}) == 1
            assert {receipt.sequence for receipt in receipts} == {5}
            assert Counter(receipt.replayed for receipt in receipts) == {True: 19, False: 1}
            assert await recorded(desks[0].database, arena.tournament_id) == [
                *(await recorded(desks[1].database, arena.tournament_id))[:4],
                receipts[0].event,
            ]


async def test_a_keyed_request_that_was_accepted_is_answered_as_accepted_after_the_ranking_was_closed(
    dsn: str,
) -> None:
    async with desks_at(dsn) as desks:
        arena = await open_arena(desks[0].database)
        first = await submit(desks[0], arena.tournament_id, arena.points(), key="k")
        await submit(desks[0], arena.tournament_id, CloseRanking(ranking_id=arena.ranking_id))
        for desk in desks:
            repeat = await submit(desk, arena.tournament_id, arena.points(), key="k")
            assert repeat == Receipt(first.events, first.sequence, replayed=True)
            with pytest.raises(Conflict):
                await submit(desk, arena.tournament_id, arena.points())
            with pytest.raises(Conflict):
                await submit(desk, arena.tournament_id, arena.points(), key="new")
            with pytest.raises(KeyReused):
                await submit(desk, arena.tournament_id, arena.points(), key="k", request="other")
        await submit(desks[1], arena.tournament_id, ReopenRanking(ranking_id=arena.ranking_id))
        with pytest.raises(KeyRefused):  # this desk cannot know that it was sent after the other desk's refusal
            await submit(desks[0], arena.tournament_id, arena.points(), key="new")
        assert not (await submit(desks[0], arena.tournament_id, arena.points(), key="new")).replayed  # not used up
        assert len(await recorded(desks[0].database, arena.tournament_id)) == 8


async def test_a_key_that_is_refused_while_the_database_cannot_be_asked_why_is_a_503(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unavailable(*_: object) -> int:
        raise DatabaseUnavailable

    async with desks_at(dsn) as desks:
        arena = await open_arena(desks[0].database)
        await submit(desks[0], arena.tournament_id, CloseRanking(ranking_id=arena.ranking_id))
        with pytest.raises(Conflict):
            await submit(desks[1], arena.tournament_id, arena.points(), key="new")
        await submit(desks[1], arena.tournament_id, ReopenRanking(ranking_id=arena.ranking_id))
        monkeypatch.setattr(appending, "refusals", unavailable)
        with pytest.raises(DatabaseUnavailable):
            await submit(desks[0], arena.tournament_id, arena.points(), key="new")


async def test_a_key_belongs_to_the_request_that_used_it_first_and_to_its_tournament(dsn: str) -> None:
    async with desks_at(dsn) as (one, other):
        arena, elsewhere = await open_arena(one.database), await open_arena(one.database)
        await submit(one, arena.tournament_id, arena.points(1), key="k")
        for desk in (one, other):
            with pytest.raises(KeyReused):
                await submit(desk, arena.tournament_id, arena.points(2), key="k", request="other")
        assert not (await submit(other, elsewhere.tournament_id, elsewhere.points(3), key="k")).replayed
        assert [await amounts_of(one, a) for a in (arena, elsewhere)] == [[1], [3]]


async def test_of_two_requests_with_one_key_at_once_one_is_recorded_and_the_other_gets_its_answer(dsn: str) -> None:
    async with desks_at(dsn) as desks:
        arena = await open_arena(desks[0].database)
        for n in range(20):
            asked = [
                submit(desk, arena.tournament_id, arena.points(), key=f"k{n}", request=request)
                for desk in desks
                for request in ("a", "b")
            ]
            outcomes = Counter(map(type, await asyncio.gather(*asked, return_exceptions=True)))
            assert outcomes == {Receipt: 2, KeyReused: 2}
        assert len(await amounts_of(desks[0], arena)) == 20


async def test_what_is_answered_to_a_repeat_is_shown_by_the_live_it_is_answered_from(
    dsn: str, owner: asyncpg.Connection
) -> None:
    """The ranking is reopened, and the twin recorded, between the look at the state and the look at the keys."""
    async with desk_at(dsn) as desk:
        arena = await open_arena(desk.database)
        await submit(desk, arena.tournament_id, CloseRanking(ranking_id=arena.ranking_id))
        async with holding(dsn, HOLD_HEAD, arena.tournament_id) as elsewhere:
            asking = asyncio.create_task(submit(desk, arena.tournament_id, arena.points(), key="k"))
            await until(lambda: waiting_for_locks(owner, "refuse_keys"))
            await record(elsewhere, arena.tournament_id, RankingReopened(ranking_id=arena.ranking_id))
            points = PointsAdded(ranking_id=arena.ranking_id, deltas=arena.points().deltas)
            await record(elsewhere, arena.tournament_id, points, key="k")
            await elsewhere.execute("COMMIT; BEGIN")
        assert await asking == Receipt((points,), Sequence(7), replayed=True)


# ── Refusals are of the present ─────────────────────────────────────────────────────────────────────────


async def test_a_refusal_or_an_acceptance_is_never_of_a_state_that_another_desk_has_changed(dsn: str) -> None:
    """After every receipt of one desk, the other, whose live still shows what was before, is asked."""
    chance = random.Random(11)
    async with desks_at(dsn) as desks:
        arena = await open_arena(desks[0].database)
        closed, names = False, {"Points"}
        counts: Counter[str] = Counter()

        async def ask(desk: Desk, command: Command, refused: type[Refusal] | None) -> None:
            counts["refused" if refused else "accepted"] += 1
            if refused is None:
                await submit(desk, arena.tournament_id, command)
            else:
                with pytest.raises(refused):
                    await submit(desk, arena.tournament_id, command)

        for n in range(250):
            changing, asked = chance.sample(desks, 2)
            name = f"unity {chance.randrange(n + 2)}"
            unity = AddUnity(ranking_id=arena.ranking_id, unity_id=UnityId(await changing.new_id()), name=name)
            if closed or chance.random() < 0.5:
                toggle = ReopenRanking if closed else CloseRanking
                await ask(changing, toggle(ranking_id=arena.ranking_id), None)
                closed = not closed
            else:
                await ask(changing, unity, Unacceptable if name in names else None)
                names.add(name)
            again = AddUnity(ranking_id=arena.ranking_id, unity_id=UnityId(await asked.new_id()), name=name)
            match chance.randrange(3):
                case 0:
                    await ask(asked, arena.points(), Conflict if closed else None)
                case 1 if closed or name in names:
                    await ask(asked, again, Conflict if closed else Unacceptable)
                case 1:
                    await ask(asked, again, None)
                    names.add(name)
                case 2:
                    already = ReopenRanking if not closed else CloseRanking
                    await ask(asked, already(ranking_id=arena.ranking_id), Conflict)
        assert min(counts.values()) > 100


async def test_a_command_that_is_overtaken_too_often_is_given_up_and_not_applied(dsn: str, bounds: Bounds) -> None:
    bounds(JUDGED_MAX=1)
    async with desks_at(dsn) as (ahead, behind):
        arena = await open_arena(ahead.database)
        async with behind.live_pool.pinned(arena.tournament_id):
            await submit(ahead, arena.tournament_id, await add_unity(ahead, arena))
            with pytest.raises(Overtaken):
                await submit(behind, arena.tournament_id, arena.points(1))
            await submit(behind, arena.tournament_id, arena.points(2))
        assert await amounts_of(ahead, arena) == [2]


async def test_of_colliding_structural_commands_from_two_desks_exactly_one_wins_per_name(dsn: str) -> None:
    async with desks_at(dsn) as desks:
        arena = await open_arena(desks[0].database)

        async def ask(desk: Desk, name: str) -> str:
            command = AddUnity(ranking_id=arena.ranking_id, unity_id=UnityId(await desk.new_id()), name=name)
            try:
                await submit(desk, arena.tournament_id, command)
            except Unacceptable:
                return "taken"
            return name

        names = [f"unity {n}" for n in range(50)]
        outcomes = await asyncio.gather(*(ask(desk, name) for name in names for desk in desks))
        assert Counter(outcomes) == {"taken": 50} | dict.fromkeys(names, 1)
        added = [event.name for event in (await recorded(desks[0].database, arena.tournament_id))[4:]]
        assert sorted(added) == sorted(names)


async def test_points_flow_while_another_desk_changes_the_structure(dsn: str) -> None:
    """Points of one desk, unities of the other, at the same time: none is lost, none refused, none given up."""
    async with desks_at(dsn) as (pointing, building):
        arena = await open_arena(pointing.database)

        async def point(n: int) -> None:
            for m in range(20):
                await submit(pointing, arena.tournament_id, arena.points(20 * n + m))

        async def build() -> None:
            for n in range(40):
                unity_id = UnityId(await building.new_id())
                name = f"unity {n}"
                await submit(
                    building,
                    arena.tournament_id,
                    AddUnity(ranking_id=arena.ranking_id, unity_id=unity_id, name=name),
                )

        await asyncio.gather(build(), *(point(n) for n in range(10)))
        assert sorted(await amounts_of(pointing, arena)) == list(range(200))


# ── One tournament that is held up, one request that is bad ─────────────────────────────────────────────

LOCK_TIMEOUT: Final = "20s"
"""Longer than a command may take: one that waited for the lock of another tournament fails."""


@pytest.mark.parametrize("number_held", [1, appender.LANES_MAX + 2])
async def test_tournaments_whose_heads_are_held_delay_nobody_else(
    dsn: str, number_held: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(database_module._SERVICE_SETTINGS, "lock_timeout", LOCK_TIMEOUT)
    async with desk_at(dsn) as desk:
        held = [await open_arena(desk.database) for _ in range(number_held)]
        others = [await open_arena(desk.database) for _ in range(10)]

        async def ask(arena: Arena) -> None:
            for amount in range(20):
                await submit(desk, arena.tournament_id, arena.points(amount))

        async with holding_heads(dsn, [arena.tournament_id for arena in held]):
            asked = [asyncio.create_task(submit(desk, a.tournament_id, a.points(n))) for a in held for n in range(3)]
            await asyncio.gather(*(ask(arena) for arena in others))
            assert not any(task.done() for task in asked)
        await asyncio.gather(*asked)
        assert [await amounts_of(desk, arena) for arena in held] == [[0, 1, 2]] * number_held
        assert [await amounts_of(desk, arena) for arena in others] == [list(range(20))] * 10


async def test_a_request_that_waits_too_long_for_a_held_head_is_refused_and_the_tournament_works_again_afterwards(
    dsn: str, bounds: Bounds
) -> None:
    bounds(APPEND_ATTEMPTS_MAX=2)
    async with desk_at(dsn) as desk:
        held, other = await open_arena(desk.database), await open_arena(desk.database)
        async with holding(dsn, HOLD_HEAD, held.tournament_id):
            outcomes = await asyncio.gather(
                *(submit(desk, held.tournament_id, held.points(n)) for n in range(3)), return_exceptions=True
            )
            assert [type(outcome) for outcome in outcomes] == [DatabaseUnavailable] * 3
            await submit(desk, other.tournament_id, other.points())
        await submit(desk, held.tournament_id, held.points(3))
        assert await amounts_of(desk, held) == [3]


async def test_a_caller_out_of_time_learns_what_is_certain(dsn: str, owner: asyncpg.Connection, bounds: Bounds) -> None:
    """What was on its way may be applied, and is; what was not yet judged certainly is not, and never will be."""
    bounds(SUBMIT_SECONDS_MAX=0.3)
    async with desk_at(dsn) as desk:
        arena = await open_arena(desk.database)
        async with holding(dsn, HOLD_HEAD, arena.tournament_id):
            sent = asyncio.create_task(submit(desk, arena.tournament_id, arena.points(1)))
            await until(lambda: waiting_for_locks(owner, "append_block"))
            waiting = [asyncio.create_task(submit(desk, arena.tournament_id, arena.points(n))) for n in (2, 3)]
            with pytest.raises(OutcomeUnknown):
                await sent
            for task in waiting:
                with pytest.raises(DatabaseUnavailable):
                    await task
        await submit(desk, arena.tournament_id, arena.points(4))
        assert await amounts_of(desk, arena) == [1, 4]


async def test_a_process_that_wakes_when_the_time_of_a_command_is_over_accepts_it_no_longer(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was held while the database answered. It finds the answer before its watch has looked at the clock. What is in
    the log by then is told to whoever sends the key again."""
    fold_appended = LivePool.fold_appended

    def folded_late(*args: Any) -> bool:
        hold(desk)
        return fold_appended(*args)

    async with desk_at(dsn) as desk:
        arena = await open_arena(desk.database)
        with monkeypatch.context() as held:
            held.setattr(LivePool, "fold_appended", folded_late)
            with pytest.raises(OutcomeUnknown):
                await submit(desk, arena.tournament_id, arena.points(1), key="k")
        assert (await submit(desk, arena.tournament_id, arena.points(1), key="k")).replayed
        assert await amounts_of(desk, arena) == [1]


async def test_a_process_that_wakes_when_the_time_of_a_command_is_over_refuses_it_no_longer(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_current = LivePool.make_current

    async def current_late(*args: Any) -> None:
        await make_current(*args)
        hold(desk)

    async with desk_at(dsn) as desk:
        arena = await open_arena(desk.database)
        async with desk.live_pool.pinned(arena.tournament_id):
            monkeypatch.setattr(LivePool, "make_current", current_late)
            with pytest.raises(DatabaseUnavailable):
                await submit(desk, arena.tournament_id, ReopenRanking(ranking_id=arena.ranking_id))


def hold(desk: Desk) -> None:
    """As when the process has been held until the time of what it has taken is over."""
    for case in desk._under_way:
        case.until = time.monotonic()


async def test_what_a_command_was_kept_from_the_desk_counts_as_its_time(dsn: str) -> None:
    async with desk_at(dsn) as desk:
        arena = await open_arena(desk.database)
        async with desk.live_pool.pinned(arena.tournament_id) as live:
            for _ in range(20):
                taken_at = time.monotonic() - desk_module.SUBMIT_SECONDS_MAX
                with pytest.raises((OutcomeUnknown, DatabaseUnavailable)):
                    await desk.submit(live, arena.points(1), actor=OPERATOR, taken_at=taken_at)
            waiting = [
                desk.submit(live, arena.points(2), actor=OPERATOR),
                desk.submit(live, arena.points(3), actor=OPERATOR, taken_at=time.monotonic()),
            ]
            assert len(await asyncio.gather(*waiting)) == 2


async def test_waiting_for_ids_that_others_draw_takes_no_longer_than_drawing_them(dsn: str, bounds: Bounds) -> None:
    async with proxy(dsn) as between, desk_at(between.dsn) as desk:
        async with between.holding_answers("nextval(") as held:
            drawing = asyncio.create_task(desk.new_id())
            await held.wait()
            bounds(DRAW_SECONDS_MAX=0.1)
            with pytest.raises(DatabaseUnavailable):
                await desk.new_id()
        assert await drawing > 0


async def test_much_from_one_sender_is_not_all_committed_at_once(dsn: str, owner: asyncpg.Connection) -> None:
    """Other tournaments wait for the same commit."""
    async with desk_at(dsn) as desk:
        arena = await open_arena(desk.database)
        much = AddPoints(ranking_id=arena.ranking_id, deltas=arena.points().deltas * DELTAS_MAX)
        async with holding(dsn, HOLD_HEAD, arena.tournament_id):
            asked = [asyncio.create_task(submit(desk, arena.tournament_id, arena.points()))]
            await until(lambda: waiting_for_locks(owner, "append_block"))
            asked += [asyncio.create_task(submit(desk, arena.tournament_id, much)) for _ in range(5)]
            asked += [asyncio.create_task(submit(desk, arena.tournament_id, arena.points())) for _ in range(30)]
            await until(lambda: len(desk._under_way) == 36)
        await asyncio.gather(*asked)
        blocks = await owner.fetch("SELECT last_sequence - first_sequence + 1 AS size FROM block OFFSET 2")
        assert [row["size"] for row in blocks] == [1, 2, 2, 17, 14]  # of 31 and the 2 before them, the half


async def test_a_request_that_the_database_refuses_is_rejected_alone(dsn: str, owner: asyncpg.Connection) -> None:
    await owner.execute("ALTER TABLE block ADD CHECK (strpos(text, ',1313]') = 0)")
    async with desk_at(dsn) as desk:
        arenas = [await open_arena(desk.database) for _ in range(3)]
        amounts = [1, 2, 1313, 4, 1313, 6]
        outcomes = await asyncio.gather(
            *(submit(desk, arena.tournament_id, arena.points(amount)) for arena in arenas for amount in amounts),
            return_exceptions=True,
        )
        assert [type(outcome) for outcome in outcomes] == [
            Rejected if amount == 1313 else Receipt for _ in arenas for amount in amounts
        ]
        for arena in arenas:
            assert sorted(await amounts_of(desk, arena)) == [1, 2, 4, 6]


# ── Commits that are not what they should be ────────────────────────────────────────────────────────────


async def test_a_commit_that_was_not_confirmed_is_of_unknown_outcome_and_not_sent_again(
    dsn: str, owner: asyncpg.Connection
) -> None:
    await leave_unconfirmed(owner, "block", "strpos(NEW.text, ',1313]') > 0")
    async with desk_at(dsn) as desk:
        arena = await open_arena(desk.database)
        await submit(desk, arena.tournament_id, arena.points(1))
        with pytest.raises(OutcomeUnknown):
            await submit(desk, arena.tournament_id, arena.points(1313), key="k")
        assert await amounts_of(desk, arena) == [1, 1313]
        repeat = await submit(desk, arena.tournament_id, arena.points(1313), key="k")
        assert (repeat.sequence, repeat.replayed) == (6, True)
        assert (await submit(desk, arena.tournament_id, arena.points(2))).sequence == 7


# ── Bounds, leaving, closing ────────────────────────────────────────────────────────────────────────────


async def test_however_many_come_at_once_all_are_taken_and_served_in_their_order(dsn: str, bounds: Bounds) -> None:
    bounds(WAITED_SECONDS_MAX=math.inf)  # on a machine of any speed
    async with desk_at(dsn) as desk:
        arena = await open_arena(desk.database)
        await asyncio.gather(*(submit(desk, arena.tournament_id, arena.points(n)) for n in range(2_500)))
        assert await amounts_of(desk, arena) == list(range(2_500))


async def test_a_block_of_hundreds_is_answered_over_several_rounds_of_the_event_loop(dsn: str) -> None:
    async with desk_at(dsn) as desk:
        arena = await open_arena(desk.database)
        asked = [asyncio.create_task(submit(desk, arena.tournament_id, arena.points(n))) for n in range(200)]
        most = done = 0
        while done < len(asked):
            await asyncio.sleep(0)
            before, done = done, sum(task.done() for task in asked)
            most = max(most, done - before)
        assert most < 100  # they are of one block, or two
        assert len(await amounts_of(desk, arena)) == 200


async def test_a_request_that_would_wait_too_long_by_the_pace_of_recent_blocks_is_refused_until_fewer_wait(
    dsn: str, bounds: Bounds
) -> None:
    bounds(BLOCK_REQUESTS_MAX=1, EXPECTED_SECONDS_MAX=1e-9)
    async with desk_at(dsn) as desk:
        arena, other = await open_arena(desk.database), await open_arena(desk.database)
        taken = [asyncio.create_task(submit(desk, arena.tournament_id, arena.points(n))) for n in range(10)]
        await taken[2]  # the pace of two blocks is known, and others wait
        with pytest.raises(QueueFull) as refused:
            desk.refuse_late(arena.tournament_id)
        assert refused.value.expected_seconds > 1e-9
        desk.refuse_late(other.tournament_id)
        await asyncio.gather(*taken)
        desk.refuse_late(arena.tournament_id)
        await submit(desk, arena.tournament_id, arena.points(10))
        assert await amounts_of(desk, arena) == list(range(11))


async def test_a_tournament_that_is_held_up_refuses_beyond_a_block_and_serves_what_one_block_takes(
    dsn: str, owner: asyncpg.Connection, bounds: Bounds
) -> None:
    """Those who have waited too long are refused unjudged while others wait behind them; they are not in the log."""
    bounds(BLOCK_REQUESTS_MAX=2, WAITED_SECONDS_MAX=0.0, EXPECTED_SECONDS_MAX=0.0)
    async with desk_at(dsn) as desk:
        arena, other = await open_arena(desk.database), await open_arena(desk.database)
        async with holding(dsn, HOLD_HEAD, arena.tournament_id):
            taken = [asyncio.create_task(submit(desk, arena.tournament_id, arena.points(0)))]
            await until(lambda: waiting_for_locks(owner, "append_block"))
            taken += [asyncio.create_task(submit(desk, arena.tournament_id, arena.points(n))) for n in (1, 2, 3)]
            await until(lambda: len(desk._under_way) == 4)
            with pytest.raises(QueueFull):
                desk.refuse_late(arena.tournament_id)
            desk.refuse_late(other.tournament_id)
        outcomes = [type(outcome) for outcome in await asyncio.gather(*taken, return_exceptions=True)]
        assert outcomes == [Receipt, Receipt, Receipt, Receipt]
        async with holding(dsn, HOLD_HEAD, arena.tournament_id):
            taken = [asyncio.create_task(submit(desk, arena.tournament_id, arena.points(4)))]
            await until(lambda: waiting_for_locks(owner, "append_block"))
            taken += [asyncio.create_task(submit(desk, arena.tournament_id, arena.points(n))) for n in range(5, 10)]
            await until(lambda: len(desk._under_way) == 6)
        outcomes = [type(outcome) for outcome in await asyncio.gather(*taken, return_exceptions=True)]
        assert outcomes == [Receipt, QueueFull, QueueFull, Receipt, Receipt, Receipt]
        assert await amounts_of(desk, arena) == [0, 1, 2, 3, 4, 7, 8, 9]


async def test_what_waits_is_bounded_in_bytes_and_nothing_is_kept_of_what_was_turned_away(
    dsn: str, bounds: Bounds
) -> None:
    bounds(WAITING_BYTES_MAX=10)
    async with desk_at(dsn) as desk:
        arena, other = await open_arena(desk.database), await open_arena(desk.database)
        async with desk.live_pool.pinned(arena.tournament_id) as live, desk.live_pool.pinned(other.tournament_id) as of:

            async def ask(n: int) -> Receipt:
                return await desk.submit(live, arena.points(n), actor=OPERATOR, size_bytes=5)

            async with holding(dsn, HOLD_HEAD, arena.tournament_id):
                taken = [asyncio.create_task(ask(n)) for n in (1, 2)]
                await until(lambda: len(desk._under_way) == 2)
                with pytest.raises(QueueFull):
                    await desk.submit(of, other.points(), actor=OPERATOR, size_bytes=1)
            await asyncio.gather(*taken)
            await ask(3)
        assert await amounts_of(desk, arena) == [1, 2, 3]
        await until(lambda: not desk._working)


async def test_a_closing_desk_settles_what_it_took_and_takes_no_more(dsn: str, owner: asyncpg.Connection) -> None:
    async with desk_at(dsn) as desk:
        arena = await open_arena(desk.database)
        async with holding(dsn, HOLD_HEAD, arena.tournament_id):
            taken = [asyncio.create_task(submit(desk, arena.tournament_id, arena.points(1)))]
            await until(lambda: waiting_for_locks(owner, "append_block"))
            taken += [asyncio.create_task(submit(desk, arena.tournament_id, arena.points(n))) for n in (2, 3)]
            await until(lambda: len(desk._under_way) == 3)
            refused = asyncio.create_task(submit(desk, arena.tournament_id, ReopenRanking(ranking_id=arena.ranking_id)))
            await until(lambda: len(desk._under_way) == 4)
            closing = asyncio.create_task(desk.close())
            await until(lambda: desk._closing)
            with pytest.raises(ShuttingDown):
                await submit(desk, arena.tournament_id, arena.points(4))
            assert not closing.done()
        await closing
        assert [(await receipt).sequence for receipt in taken] == [5, 6, 7]
        with pytest.raises(Conflict):
            await refused


async def test_a_desk_that_has_closed_has_answered_all_though_the_database_has_not(
    dsn: str, owner: asyncpg.Connection, bounds: Bounds
) -> None:
    async with desk_at(dsn) as desk:
        arena = await open_arena(desk.database)
        async with holding(dsn, HOLD_HEAD, arena.tournament_id):
            taken = asyncio.create_task(submit(desk, arena.tournament_id, arena.points()))
            await until(lambda: waiting_for_locks(owner, "append_block"))
            (case,) = desk._under_way
            bounds(SUBMIT_SECONDS_MAX=0.0)
            await desk.close()
            assert case.receipt.done()
            with pytest.raises(OutcomeUnknown):
                await taken


async def test_a_closing_desk_settles_what_was_taken_for_a_live_that_is_no_longer_used(
    dsn: str, owner: asyncpg.Connection
) -> None:
    async with desk_at(dsn) as desk:
        arena = await open_arena(desk.database)
        async with holding(dsn, HOLD_HEAD, arena.tournament_id):
            taken = asyncio.create_task(submit(desk, arena.tournament_id, arena.points()))
            await until(lambda: waiting_for_locks(owner, "append_block"))
            async with desk.live_pool.pinned(arena.tournament_id) as live:
                desk.live_pool.drop(live)
            with pytest.raises(Conflict):  # by another live, and thus on another docket
                await submit(desk, arena.tournament_id, ReopenRanking(ranking_id=arena.ranking_id))
            closing = asyncio.create_task(desk.close())
            await until(lambda: desk._closing)
            await let_the_rest_go_on(desk, arena)
            assert not closing.done()
        await closing
        assert (await taken).sequence == 5


async def let_the_rest_go_on(desk: Desk, arena: Arena) -> None:
    """Lets everything else go on until it can go no further without the database."""
    async with desk.database.connection() as connection:
        await heads.current(connection, [arena.tournament_id])


async def test_leaving_the_desk_settles_what_was_taken(dsn: str) -> None:
    async with open_database(dsn, name="desk") as database:
        arena = await open_arena(database)
        # In memory, so that nobody waits for it.
        async with open_desk(database) as desk, desk.live_pool.pinned(arena.tournament_id):
            taken = [asyncio.create_task(submit(desk, arena.tournament_id, arena.points(n))) for n in range(50)]
            await asyncio.sleep(0)
            assert len(desk._under_way) == 50
        assert sorted(receipt.sequence for receipt in await asyncio.gather(*taken)) == list(range(5, 55))


@pytest.mark.parametrize("cancelled_too", ["what was sent", "what waits"])
async def test_a_caller_who_goes_away_takes_nothing_back(
    dsn: str, owner: asyncpg.Connection, cancelled_too: str
) -> None:
    async with desk_at(dsn) as desk:
        arena = await open_arena(desk.database)
        async with holding(dsn, HOLD_HEAD, arena.tournament_id):
            sent = asyncio.create_task(submit(desk, arena.tournament_id, arena.points(1)))
            await until(lambda: waiting_for_locks(owner, "append_block"))
            waiting = [asyncio.create_task(submit(desk, arena.tournament_id, arena.points(n))) for n in (2, 3)]
            await until(lambda: len(desk._under_way) == 3)
            gone = sent if cancelled_too == "what was sent" else waiting[0]
            gone.cancel()
            with pytest.raises(asyncio.CancelledError):
                await gone
        await asyncio.gather(*({sent, *waiting} - {gone}))
        await submit(desk, arena.tournament_id, arena.points(4))
        assert await amounts_of(desk, arena) == [1, 2, 3, 4]


async def test_callers_who_come_and_go_at_random_leave_the_desk_whole(dsn: str) -> None:
    """Cancelled at any moment, with keys, refusals, structure and another desk in between: what a caller was told
    is in the log, and nothing stays pinned or pending (which every test checks at its end)."""
    chance = random.Random(3)
    async with desks_at(dsn) as desks:
        arenas = [await open_arena(desks[0].database) for _ in range(3)]
        told: list[tuple[TournamentId, Receipt]] = []

        async def ask(n: int) -> None:
            arena, desk = chance.choice(arenas), chance.choice(desks)
            commands: list[Command] = [
                arena.points(n),
                AddUnity(ranking_id=arena.ranking_id, unity_id=UnityId(await desk.new_id()), name=f"{n % 20}"),
                CloseRanking(ranking_id=arena.ranking_id),
                ReopenRanking(ranking_id=arena.ranking_id),
            ]
            key = chance.choice([None, f"key {n % 50}"])
            with suppress(Refusal, Overtaken, KeyRefused):
                receipt = await submit(desk, arena.tournament_id, chance.choice(commands), key=key)
                told.append((arena.tournament_id, receipt))

        tasks = []
        for n in range(400):
            tasks.append(asyncio.create_task(ask(n)))
            if chance.random() < 0.3:
                chance.choice(tasks).cancel()
            if chance.random() < 0.3:
                await let_the_rest_go_on(desks[0], arenas[0])
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert {type(outcome) for outcome in outcomes} == {type(None), asyncio.CancelledError}
        logs = {arena.tournament_id: await recorded(desks[0].database, arena.tournament_id) for arena in arenas}
        assert len(told) > 50
        for tournament_id, receipt in told:
            assert logs[tournament_id][receipt.sequence - 1] == receipt.event


# ── What else goes on in the database ───────────────────────────────────────────────────────────────────


async def test_a_database_that_takes_no_hints_is_written_to_all_the_same(dsn: str, owner: asyncpg.Connection) -> None:
    async with desk_at(dsn) as desk:
        arena = await open_arena(desk.database)
        await owner.execute("REVOKE EXECUTE ON FUNCTION pg_notify FROM PUBLIC")
        for amount in range(3):
            await submit(desk, arena.tournament_id, arena.points(amount))
            await until(lambda: not desk._means.waker._appended_to)  # the hint was tried
        assert await amounts_of(desk, arena) == [0, 1, 2]


async def test_columns_that_a_newer_version_adds_disturb_nobody(dsn: str, owner: asyncpg.Connection) -> None:
    async with desks_at(dsn) as desks:
        arena = await open_arena(desks[0].database)

        async def work(desk: Desk, n: int) -> None:
            for m in range(20):
                await submit(desk, arena.tournament_id, arena.points(20 * n + m), key=f"{n}/{m}")
                async with desk.live_pool.pinned(arena.tournament_id) as live:
                    await desk.live_pool.make_current(live)

        working = [asyncio.create_task(work(desk, n)) for n, desk in enumerate(desks * 3)]
        for table in ("tournament", "append_lock", "block", "topic", "personal", "idempotency", "checkpoint", "total"):
            await owner.execute(f"ALTER TABLE {table} ADD COLUMN added text NOT NULL DEFAULT 'new'")
            await let_the_rest_go_on(desks[0], arena)
        await asyncio.gather(*working)
        assert sorted(await amounts_of(desks[0], arena)) == list(range(120))


async def test_what_is_in_the_log_is_answered_when_the_answer_can_be_read_and_not_as_unknown_before(
    database: Database, dsn: str, bounds: Bounds
) -> None:
    """No connection is to be had for a while, but for the one that appends."""
    bounds(UNSEEN_BYTES_MAX=0, ACQUIRE_SECONDS_MAX=0.5)  # as when more has landed than an append tells
    async with desk_at(dsn) as desk:
        arena = await open_arena(desk.database)
        await submit(desk, arena.tournament_id, arena.points(1), key="first")
        async with database.connection() as connection:  # as another process would, so that the desk must read
            await record(
                connection, arena.tournament_id, PointsAdded(ranking_id=arena.ranking_id, deltas=arena.points(7).deltas)
            )
        async with AsyncExitStack() as held:
            for _ in range(database_module.POOL_CONNECTIONS_MAX):
                with suppress(DatabaseUnavailable):
                    await held.enter_async_context(desk.database.connection())
            asked = [
                asyncio.create_task(submit(desk, arena.tournament_id, arena.points(2))),
                asyncio.create_task(submit(desk, arena.tournament_id, arena.points(1), key="first")),
            ]
            done, _ = await asyncio.wait(asked, timeout=2 * database_module.ACQUIRE_SECONDS_MAX)
            assert not done, [task.exception() for task in done]
        new, repeated = await asyncio.gather(*asked)
        assert (new.replayed, repeated.replayed) == (False, True)
        assert await amounts_of(desk, arena) == [1, 7, 2]


# ── A log that was replaced ─────────────────────────────────────────────────────────────────────────────


async def test_a_write_that_was_judged_by_a_tail_that_is_lost_is_not_applied(
    dsn: str, owner: asyncpg.Connection
) -> None:
    """As after a fail-over to a standby that was behind; nobody has read since."""
    async with desk_at(dsn) as desk:
        arena = await open_arena(desk.database)
        for amount in (1, 2, 3):
            await submit(desk, arena.tournament_id, arena.points(amount))
        await cut_tail(owner, arena.tournament_id, Sequence(5))
        with pytest.raises(HistoryReplaced):
            await submit(desk, arena.tournament_id, arena.points(4))
        assert await amounts_of(desk, arena) == [1]
        receipt = await submit(desk, arena.tournament_id, arena.points(5))
        assert receipt.sequence == 6
        async with desk.live_pool.pinned(arena.tournament_id) as live:
            assert live.board.rankings[arena.ranking_id].unities[arena.unity_id].totals == {arena.competitors[0]: 6}


async def test_a_repeat_of_what_the_log_has_lost_fails_alone(dsn: str, owner: asyncpg.Connection) -> None:
    async with desk_at(dsn) as desk:
        arena, other = await open_arena(desk.database), await open_arena(desk.database)
        first = await submit(desk, arena.tournament_id, arena.points(1), key="k")
        await submit(desk, arena.tournament_id, arena.points(2))
        await tamper(owner, "DELETE FROM block WHERE last_sequence = $1", first.sequence)
        with pytest.raises(TallybookError):
            await submit(desk, arena.tournament_id, arena.points(1), key="k")
        await submit(desk, arena.tournament_id, arena.points(3))
        await submit(desk, other.tournament_id, other.points())


async def amounts_of(desk: Desk, arena: Arena) -> list[int]:
    """The deltas in the log, each event's first, in order."""
    events = await recorded(desk.database, arena.tournament_id)
    return [event.deltas[0].amount for event in events if isinstance(event, PointsAdded)]
