"""The docket: what may share a block, what is told of what became of it, and by which state it is answered.

Each of these claims was once broken without any other test noticing.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from api.desk.case import Receipt
from api.desk.conditions import Condition, own_tag
from api.desk.desk import Desk
from engine.database import nodes
from engine.domain.awards import Award, Scoring
from engine.domain.commands import (
    AddCompetition,
    AddPoints,
    AddUnity,
    ChangeCompetition,
    ChangeParticipants,
    ChangeRankingInformation,
    CloseRanking,
    Command,
    DeclareScoring,
    ModifyRanking,
    Previewed,
    RecordResult,
    RecordResults,
    RegisterCompetitor,
    RegisterCompetitors,
    ReopenRanking,
    UnvoidCompetition,
    VoidCompetition,
)
from engine.domain.errors import (
    Conflict,
    DatabaseUnavailable,
    HistoryReplaced,
    OutcomeUnknown,
    Unacceptable,
    Unavailable,
)
from engine.domain.events import (
    CompetitionVoided,
    CompetitorRegistered,
    Delta,
    PointsAdded,
    PointsReversed,
    RankingReopened,
)
from engine.domain.terms import OPERATOR, CompetitionId, CompetitorId, UnityId
from engine.log import appending, heads, tails
from projections.live.tournament import LiveTournament
from projections.tables import wakeup
from tests.bounds import Bounds
from tests.desks import (
    HOLD_HEAD,
    Arena,
    desk_at,
    desks_at,
    holding,
    leave_unconfirmed,
    matched,
    open_arena,
    record,
    recorded,
    submit,
    until,
    waiting_for_locks,
)
from tests.poison import poison
from tests.projections.verified import verified
from tests.proxy import APPEND, HEADS, Fault, nowhere, proxy
from tests.statements import sent
from tests.tampering import tamper


def gain(arena: Arena, amount: int, *, who: int = 0, match: CompetitionId | None = None) -> AddPoints:
    deltas = (Delta(arena.competitors[who], arena.unity_id, amount),)
    return AddPoints(ranking_id=arena.ranking_id, deltas=deltas, competition_id=match)


def as_event(points: AddPoints) -> PointsAdded:
    return PointsAdded(ranking_id=points.ranking_id, deltas=points.deltas, competition_id=points.competition_id)


def total(live: LiveTournament, arena: Arena, who: int = 0) -> int:
    return live.board.rankings[arena.ranking_id].unities[arena.unity_id].totals.get(arena.competitors[who], 0)


async def read_total(desk: Desk, arena: Arena) -> int:
    """The total of the first competitor as of now, as a read would find it."""
    async with desk.live_pool.pinned(arena.tournament_id) as live:
        await desk.live_pool.make_current(live)
        return total(live, arena)


async def amounts(desk: Desk, arena: Arena) -> list[int]:
    events = await recorded(desk.database, arena.tournament_id)
    return [event.deltas[0].amount for event in events if isinstance(event, PointsAdded)]


def waiting_at(desk: Desk, arena: Arena) -> int:
    """How many commands wait for the next block of the tournament."""
    docket = desk.dockets.get(arena.tournament_id)
    return 0 if docket is None else len(docket._waiting)


@asynccontextmanager
async def gathered(
    dsn: str, owner: asyncpg.Connection, desk: Desk, arena: Arena, *commands: Command
) -> AsyncIterator[list[asyncio.Task[Receipt]]]:
    """These commands, in this order, waiting together while the head is held, for which a first one is under way.

    Leaving the context lets the head go.
    """
    async with desk.live_pool.pinned(arena.tournament_id), holding(dsn, HOLD_HEAD, arena.tournament_id):
        first = asyncio.create_task(submit(desk, arena.tournament_id, arena.points(0)))
        await until(lambda: waiting_for_locks(owner, "append_block"))
        waiting = []
        for number, command in enumerate(commands, start=1):
            waiting.append(asyncio.create_task(submit(desk, arena.tournament_id, command)))
            await until(lambda number=number: waiting_at(desk, arena) == number)  # type: ignore[misc]
        yield waiting
    await first


# ── What may share a block ──────────────────────────────────────────────────────────────────────────────


async def test_points_that_wait_behind_a_change_of_the_list_are_judged_by_the_new_list(
    dsn: str, owner: asyncpg.Connection
) -> None:
    """Else there would be points in a ranking for who is not in it."""
    async with desk_at(dsn) as desk:
        arena = await open_arena(desk.database)
        without_bob = ModifyRanking(
            ranking_id=arena.ranking_id, main_unity_name="Points", participants=arena.competitors[:1]
        )
        commands = without_bob, gain(arena, 5, who=1), gain(arena, 7)
        async with gathered(dsn, owner, desk, arena, *commands) as (modified, bobs, anns):
            pass
        with pytest.raises(Unacceptable):
            await bobs
        assert [(await modified).replayed, (await anns).replayed] == [False, False]
        assert await amounts(desk, arena) == [0, 7]


async def test_points_that_wait_behind_a_voiding_of_their_competition_are_refused(
    dsn: str, owner: asyncpg.Connection
) -> None:
    async with desk_at(dsn) as desk:
        arena = await open_arena(desk.database)
        match = await matched(desk, arena)
        await submit(desk, arena.tournament_id, gain(arena, 5, match=match))
        commands = VoidCompetition(competition_id=match), gain(arena, 3, match=match), gain(arena, 1)
        async with gathered(dsn, owner, desk, arena, *commands) as (voided, for_it, free):
            pass
        with pytest.raises(Unacceptable):
            await for_it
        await asyncio.gather(voided, free)
        assert await amounts(desk, arena) == [5, 0, 1]


async def test_new_results_share_a_block_and_a_correction_leaves_with_its_points(
    dsn: str, owner: asyncpg.Connection
) -> None:
    async with desk_at(dsn) as desk:
        arena = await open_arena(desk.database)
        award = Award(unity_id=arena.unity_id, value="outcome", table={"win": 3, "draw": 1, "loss": 0})
        declared = DeclareScoring(ranking_id=arena.ranking_id, scorings=(Scoring(awards=(award,)),))
        await submit(desk, arena.tournament_id, declared)
        match: dict[str, Any] = {"group_id": 1, "participants": arena.competitors}
        first, *ids = [CompetitionId(one) for one in await desk.new_ids(6)]
        await submit(desk, arena.tournament_id, RecordResult(competition_id=first, key="M1", result="0:1", **match))
        new = [RecordResult(competition_id=one, result="2:0", **match) for one in ids]
        new.insert(2, RecordResult(competition_id=CompetitionId(0), key="M1", result="1:0", **match))
        async with gathered(dsn, owner, desk, arena, *new) as asked:
            head = await owner.fetchval(
                "SELECT max(last_sequence) FROM block WHERE tournament_id = $1", arena.tournament_id
            )
        receipts = await asyncio.gather(*asked)
        blocks = await owner.fetchval(
            "SELECT count(*) FROM block WHERE tournament_id = $1 AND last_sequence > $2", arena.tournament_id, head
        )
        assert blocks < len(new)
        assert [len(receipt.events) for receipt in receipts] == [2, 2, 3, 2, 2, 2]
        async with desk.live_pool.pinned(arena.tournament_id) as live:
            assert [total(live, arena, who) for who in (0, 1)] == [18, 0]
        assert (await verified(desk.database)).differences == []


async def test_a_key_that_two_simultaneous_requests_ask_for_is_given_once(dsn: str, owner: asyncpg.Connection) -> None:
    """Also if a request registers several competitors, and only the first of them has a key."""
    async with desk_at(dsn) as desk:
        arena = await open_arena(desk.database)

        async def both() -> RegisterCompetitors:
            keyed, plain = [CompetitorId(await desk.new_id()) for _ in range(2)]
            items = (
                RegisterCompetitor(competitor_id=keyed, name="Ann", key="A7"),
                RegisterCompetitor(competitor_id=plain, name="Bob"),
            )
            return RegisterCompetitors(items=items)

        async with gathered(dsn, owner, desk, arena, await both(), await both()) as (first, second):
            pass
        with pytest.raises(Unacceptable):
            await second
        assert not (await first).replayed


async def test_a_key_is_given_once_whichever_process_gives_it(dsn: str, owner: asyncpg.Connection) -> None:
    async with desk_at(dsn) as desk, desk_at(dsn) as other:
        arena = await open_arena(desk.database)
        matches = [
            AddCompetition(competition_id=CompetitionId(await desk.new_id()), group_id=1, key="M1") for _ in range(2)
        ]
        async with other.live_pool.pinned(arena.tournament_id):
            async with gathered(dsn, owner, desk, arena, matches[0]) as (first,):
                pass
            await first
            with pytest.raises(Unacceptable):
                await submit(other, arena.tournament_id, matches[1])


@pytest.mark.parametrize("kind", [AddPoints, AddCompetition])
async def test_a_block_with_enough_deltas_or_participants_takes_no_further_request(
    dsn: str, owner: asyncpg.Connection, bounds: Bounds, kind: type[Command]
) -> None:
    bounds(BLOCK_LINES_MAX=3)
    async with desk_at(dsn) as desk:
        arena = await open_arena(desk.database)
        commands: list[Command] = []
        for _ in range(5):
            if kind is AddPoints:
                deltas = tuple(Delta(one, arena.unity_id, 1) for one in arena.competitors)
                commands.append(AddPoints(ranking_id=arena.ranking_id, deltas=deltas))
            else:
                match = CompetitionId(await desk.new_id())
                commands.append(AddCompetition(competition_id=match, group_id=1, participants=arena.competitors))
        async with gathered(dsn, owner, desk, arena, *commands) as waiting:
            pass
        await asyncio.gather(*waiting)
    ends = "SELECT last_sequence FROM block WHERE tournament_id = $1 AND last_sequence > 5 ORDER BY last_sequence"
    assert [end for (end,) in await owner.fetch(ends, arena.tournament_id)] == [7, 9, 10]


async def test_a_change_that_must_be_exact_shares_its_block_with_nothing(dsn: str, owner: asyncpg.Connection) -> None:
    """If it is overtaken, only the first request of its block is judged again."""
    async with desk_at(dsn) as desk:
        arena = await open_arena(desk.database)
        match = await matched(desk, arena)
        async with desk.live_pool.pinned(arena.tournament_id) as live, gathered(dsn, owner, desk, arena):
            condition = Condition("competition", (match,), frozenset([own_tag(live.board.competitions[match])]))
            change = ChangeCompetition(competition_id=match, location="Rome")
            changing = desk.submit(live, change, actor=OPERATOR, condition=condition)
            await until(lambda: waiting_at(desk, arena) == 1)
            adding = asyncio.create_task(submit(desk, arena.tournament_id, gain(arena, 1)))
            await until(lambda: waiting_at(desk, arena) == 2)
        changed, added = await asyncio.gather(changing, adding)
    ends = "SELECT last_sequence FROM block WHERE tournament_id = $1 ORDER BY last_sequence DESC LIMIT 2"
    assert [end for (end,) in await owner.fetch(ends, arena.tournament_id)] == [added.sequence, changed.sequence]


@pytest.mark.parametrize("first", ["the result", "the participants"])
async def test_of_a_result_and_other_participants_from_two_processes_the_later_is_judged_by_the_earlier(
    dsn: str, first: str
) -> None:
    """Otherwise the log would have a winner who no longer takes part, which no rule allows."""
    async with desk_at(dsn) as there, proxy(dsn) as between, desk_at(between.dsn) as here:
        arena = await open_arena(there.database)
        ada, ben, *_ = arena.competitors
        match = CompetitionId(await there.new_id())
        add = AddCompetition(competition_id=match, group_id=1, participants=(ada, ben))
        await submit(there, arena.tournament_id, add)
        changes = [
            ChangeCompetition(competition_id=match, winner_id=ada),
            ChangeCompetition(competition_id=match, participants=(ben,)),
        ]
        earlier, later = changes if first == "the result" else changes[::-1]
        async with here.live_pool.pinned(arena.tournament_id) as live:
            await here.live_pool.make_current(live)
            between.strike(Fault.NONE, meanwhile=lambda: submit(there, arena.tournament_id, earlier))
            with pytest.raises(Unacceptable, match="correct the fields") as refused:
                await submit(here, arena.tournament_id, later)
            assert between.faults_left == 0
        assert [fault.field for fault in refused.value.faults] == ["winner"]


@pytest.mark.parametrize("kind", [VoidCompetition, UnvoidCompetition])
async def test_a_voiding_that_waits_behind_points_reverses_also_what_another_process_adds_meanwhile(
    dsn: str, kind: type[VoidCompetition | UnvoidCompetition]
) -> None:
    """The points before it and the voiding come to wait together. Whatever leaves next is overtaken by five more points
    for the competition: it must not be a block that holds the voiding and does not say that it is exact."""
    async with desk_at(dsn) as there, proxy(dsn) as between, desk_at(between.dsn) as here:
        arena = await open_arena(there.database)
        match = await matched(there, arena)
        await submit(there, arena.tournament_id, gain(arena, 2, match=match))
        if kind is UnvoidCompetition:
            await submit(there, arena.tournament_id, VoidCompetition(competition_id=match))
        first_may_leave = asyncio.Event()

        async def meanwhile() -> None:
            foreign = gain(arena, 5, match=match) if kind is VoidCompetition else gain(arena, 5)
            await submit(there, arena.tournament_id, foreign)

        async with here.live_pool.pinned(arena.tournament_id) as live:
            await here.live_pool.make_current(live)
            between.strike(Fault.NONE, meanwhile=first_may_leave.wait)
            between.strike(Fault.NONE, meanwhile=meanwhile)
            asked = [asyncio.create_task(submit(here, arena.tournament_id, gain(arena, 10)))]
            await until(lambda: between.faults_left == 1)  # the first is under way
            for number, command in enumerate((gain(arena, 20), kind(competition_id=match)), start=1):
                asked.append(asyncio.create_task(submit(here, arena.tournament_id, command)))
                await until(lambda number=number: waiting_at(here, arena) == number)  # type: ignore[misc]
            first_may_leave.set()
            await asyncio.gather(*asked)
            assert between.faults_left == 0
            await here.live_pool.make_current(live)
            assert total(live, arena) == (30 if kind is VoidCompetition else 37)
        events = await recorded(there.database, arena.tournament_id)
        for_it = {n: event for n, event in enumerate(events, start=1) if as_gained(event, match)}
        reversed_ = [event.reverses for event in events if isinstance(event, PointsReversed)]
        if kind is VoidCompetition:
            assert reversed_ == list(for_it)


def as_gained(event: object, match: CompetitionId) -> bool:
    return isinstance(event, PointsAdded) and event.competition_id == match


async def test_a_voiding_that_is_overtaken_is_judged_again_where_nothing_can_overtake_it(
    dsn: str, bounds: Bounds
) -> None:
    """Under the lock: a command judged again without it might be overtaken for ever, amid a stream of points."""
    bounds(JUDGED_MAX=1)
    async with desk_at(dsn) as there, proxy(dsn) as between, desk_at(between.dsn) as here:
        arena = await open_arena(there.database)
        match = await matched(there, arena)

        async def meanwhile() -> None:
            await submit(there, arena.tournament_id, gain(arena, 5, match=match))

        async with here.live_pool.pinned(arena.tournament_id) as live:
            await here.live_pool.make_current(live)
            between.strike(Fault.NONE, Fault.NONE, meanwhile=meanwhile)
            await submit(here, arena.tournament_id, VoidCompetition(competition_id=match))
            assert between.faults_left == 0
            assert total(live, arena) == 0
        kinds = [type(event) for event in (await recorded(there.database, arena.tournament_id))[5:]]
        assert kinds == [PointsAdded, PointsAdded, CompetitionVoided, PointsReversed, PointsReversed]


# ── By which state ──────────────────────────────────────────────────────────────────────────────────────


async def test_what_waits_is_not_judged_by_a_live_that_was_dropped(dsn: str, owner: asyncpg.Connection) -> None:
    async with desk_at(dsn) as desk:
        arena = await open_arena(desk.database)
        async with (
            gathered(dsn, owner, desk, arena, gain(arena, 1), gain(arena, 2)) as waiting,
            desk.live_pool.pinned(arena.tournament_id) as live,
        ):
            desk.live_pool.drop(live)
        for task in waiting:
            with pytest.raises(HistoryReplaced):
                await task
        assert await amounts(desk, arena) == [0]
        await submit(desk, arena.tournament_id, gain(arena, 3))
        assert await amounts(desk, arena) == [0, 3]


async def test_a_repeat_is_answered_with_all_that_was_acknowledged_before_it_was_asked(dsn: str) -> None:
    """Also where its own event is long in the live, and nothing is appended that would show what the live lacks."""
    async with desks_at(dsn) as (here, there):
        arena = await open_arena(here.database)
        first = await submit(here, arena.tournament_id, gain(arena, 1), key="k")
        async with here.live_pool.pinned(arena.tournament_id) as live:
            for amount in (10, 100):
                await submit(there, arena.tournament_id, gain(arena, amount))
                again = await submit(here, arena.tournament_id, gain(arena, 1), key="k")
                assert again == Receipt(first.events, first.sequence, replayed=True)
                assert total(live, arena) == sum(await amounts(there, arena))


async def test_requests_of_many_events_are_whole_and_counted_once_by_whichever_process(dsn: str) -> None:
    """Each is sent to both, with its key; beside changes of the list, which overtake what the other process judges."""
    async with desks_at(dsn) as desks:
        arena = await open_arena(desks[0].database)

        async def register(desk: Desk, number: int) -> Receipt:
            ids = await desk.new_ids(5)
            items = [RegisterCompetitor(competitor_id=CompetitorId(n), name=f"{number}") for n in ids]
            many = RegisterCompetitors(items=tuple(items))
            return await submit(desk, arena.tournament_id, many, key=f"many {number}")

        async def rename(desk: Desk, number: int) -> Receipt:
            change = ChangeRankingInformation(ranking_id=arena.ranking_id, name=f"Overall {number}")
            return await submit(desk, arena.tournament_id, change)

        asked = [register(desk, number) for number in range(20) for desk in desks]
        receipts = (await asyncio.gather(*asked, *[rename(desk, n) for n in range(10) for desk in desks]))[:40]
        log = await recorded(desks[0].database, arena.tournament_id)
        for one, other in zip(receipts[::2], receipts[1::2], strict=True):
            assert (one.events, one.sequence) == (other.events, other.sequence)
            assert one.replayed != other.replayed
            assert tuple(log[one.sequence - 1 : one.last_sequence]) == one.events
        assert len([event for event in log if isinstance(event, CompetitorRegistered)]) == 2 + 20 * 5


async def test_a_tournament_that_is_gone_is_not_kept_in_memory(dsn: str, owner: asyncpg.Connection) -> None:
    """As after a restore of what was saved before it was opened."""
    async with desk_at(dsn) as desk:
        arena, other = await open_arena(desk.database), await open_arena(desk.database)
        async with desk.live_pool.pinned(arena.tournament_id) as live:
            for table in ("block", "append_lock", "tournament"):
                await tamper(owner, f"DELETE FROM {table} WHERE tournament_id = $1", arena.tournament_id)
            with pytest.raises(HistoryReplaced):
                await desk.submit(live, gain(arena, 1), actor=OPERATOR)
            assert live.dropped
        await submit(desk, other.tournament_id, gain(other, 1))


# ── What is told ────────────────────────────────────────────────────────────────────────────────────────


async def test_a_repeat_of_what_lies_behind_an_event_that_cannot_be_folded_is_of_unknown_outcome(
    dsn: str, owner: asyncpg.Connection
) -> None:
    """It is in the log: to call it certainly not applied would be untrue. The poison and the first sending are recorded
    between the look at the state, by which the repeat is refused, and the look at the keys."""
    async with desk_at(dsn) as desk:
        arena = await open_arena(desk.database)
        await submit(desk, arena.tournament_id, CloseRanking(ranking_id=arena.ranking_id))
        async with holding(dsn, HOLD_HEAD, arena.tournament_id) as elsewhere:
            asking = asyncio.create_task(submit(desk, arena.tournament_id, gain(arena, 1), key="k"))
            await until(lambda: waiting_for_locks(owner, "refuse_keys"))
            await record(elsewhere, arena.tournament_id, RankingReopened(ranking_id=arena.ranking_id))
            await poison(elsewhere, arena, "unknown tag")
            await record(elsewhere, arena.tournament_id, as_event(gain(arena, 1)), key="k")
            await elsewhere.execute("COMMIT; BEGIN")
        with pytest.raises(OutcomeUnknown):
            await asking


async def test_a_refusal_that_may_be_lost_again_is_of_unknown_outcome(dsn: str, owner: asyncpg.Connection) -> None:
    """The log is told of it, so that no earlier sending of the key is recorded any more: and is not sure of it."""
    await leave_unconfirmed(owner, "refusal", "NEW.idempotency_key = 'doubtful'")
    async with desk_at(dsn) as desk:
        arena = await open_arena(desk.database)
        await submit(desk, arena.tournament_id, CloseRanking(ranking_id=arena.ranking_id))
        with pytest.raises(OutcomeUnknown):
            await submit(desk, arena.tournament_id, gain(arena, 1), key="doubtful")
        with pytest.raises(Conflict):
            await submit(desk, arena.tournament_id, gain(arena, 1), key="sure")


async def test_what_the_log_has_refused_and_is_given_up_was_certainly_not_applied(dsn: str, bounds: Bounds) -> None:
    """It was sent once, and overtaken; its time is over while it waits to be judged again. It is not sent any more."""
    bounds(UNSEEN_BYTES_MAX=0, SUBMIT_SECONDS_MAX=0.5)  # as when more has landed than an append tells
    async with desk_at(dsn) as there, proxy(dsn) as between, desk_at(between.dsn) as here:
        arena = await open_arena(there.database)
        async with here.live_pool.pinned(arena.tournament_id):
            goals = UnityId(await there.new_id())
            await submit(
                there, arena.tournament_id, AddUnity(ranking_id=arena.ranking_id, unity_id=goals, name="Goals")
            )
            async with between.holding_answers(HEADS) as held:
                asking = asyncio.create_task(submit(here, arena.tournament_id, gain(arena, 1)))
                await held.wait()
                with pytest.raises(DatabaseUnavailable):
                    await asking
            await submit(here, arena.tournament_id, gain(arena, 2))
        assert await amounts(there, arena) == [2]


async def test_what_is_appended_to_another_history_is_never_called_certainly_not_applied(
    dsn: str, owner: asyncpg.Connection
) -> None:
    """The log is as long as it was, and another one. It may refuse what was judged against the old; else it is
    unknown."""
    async with desk_at(dsn) as desk:
        arena = await open_arena(desk.database)
        await submit(desk, arena.tournament_id, gain(arena, 1))
        await tamper(owner, "UPDATE block SET digest = sha256(digest) WHERE tournament_id = $1", arena.tournament_id)
        with pytest.raises((OutcomeUnknown, Unavailable)) as told:
            await submit(desk, arena.tournament_id, gain(arena, 2))
        assert (2 in await amounts(desk, arena)) <= (told.type is OutcomeUnknown)


# ── Another process beside ──────────────────────────────────────────────────────────────────────────────


async def beside_each_other(dsn: str) -> set[str]:
    """What two desks send that take turns with points and new unities, both having the live already."""
    async with desks_at(dsn) as (here, there):
        arena = await open_arena(here.database)
        async with here.live_pool.pinned(arena.tournament_id), there.live_pool.pinned(arena.tournament_id):
            unities = [UnityId(await desk.new_id()) for desk in (here, there) for _ in range(2)]
            with sent(here.database) as by_one, sent(there.database) as by_other:
                for n, desk in enumerate((here, there) * 5):
                    await submit(desk, arena.tournament_id, gain(arena, n + 1))
                for n, desk in enumerate((here, there) * 2):
                    command = AddUnity(ranking_id=arena.ranking_id, unity_id=unities.pop(), name=f"Unity {n}")
                    await submit(desk, arena.tournament_id, command)
                    await submit(there if desk is here else here, arena.tournament_id, gain(arena, 100))
                statements = {*by_one, *by_other}
            assert await read_total(here, arena) == await read_total(there, arena) == 55 + 4 * 100
    return statements


async def test_a_writer_among_others_reads_nothing_again(
    dsn: str, monkeypatch: pytest.MonkeyPatch, bounds: Bounds
) -> None:
    """Neither what landed before points of its own, nor what overtook them. Hints may go out at any time."""
    monkeypatch.setattr(nodes, "nodes_of", nowhere)  # what goes straight to a node is not seen
    assert await beside_each_other(dsn) - {wakeup._NOTIFY} == {appending._APPEND_ONE}
    bounds(UNSEEN_BYTES_MAX=0)
    assert {tails._BLOCKS.one, heads._HEAD} <= await beside_each_other(dsn)


async def test_what_an_append_tells_is_not_folded_again_where_it_has_been_read_meanwhile(dsn: str) -> None:
    """While the append is under way, its own process reads what landed before."""
    async with desk_at(dsn) as there, proxy(dsn) as between, desk_at(between.dsn) as here:
        arena = await open_arena(there.database)
        async with here.live_pool.pinned(arena.tournament_id) as live:
            await submit(there, arena.tournament_id, gain(arena, 1))
            async with between.holding_answers(APPEND) as held:
                asking = asyncio.create_task(submit(here, arena.tournament_id, gain(arena, 10)))
                await held.wait()
                await here.live_pool.make_current(live)
                await submit(there, arena.tournament_id, gain(arena, 100))
            await asking
            assert await read_total(here, arena) == await read_total(there, arena) == 111


async def test_a_result_corrected_before_the_first_scoring_is_declared_is_scored_as_corrected(
    dsn: str, owner: asyncpg.Connection
) -> None:
    """Even if the scoring was computed from the earlier result."""
    async with desk_at(dsn) as desk:
        arena = await open_arena(desk.database)
        match = CompetitionId(await desk.new_id())
        add = AddCompetition(competition_id=match, group_id=1, participants=arena.competitors, result="2:1")
        await submit(desk, arena.tournament_id, add)
        award = Award(unity_id=arena.unity_id, value="outcome", table={"win": 3, "draw": 1, "loss": 0})
        declare = DeclareScoring(ranking_id=arena.ranking_id, scorings=(Scoring(awards=(award,)),))
        correct = ChangeCompetition(competition_id=match, result="1:2")
        async with gathered(dsn, owner, desk, arena, correct, declare) as asked:
            pass
        await asyncio.gather(*asked)
        async with desk.live_pool.pinned(arena.tournament_id) as live:
            totals = live.board.rankings[arena.ranking_id].unities[arena.unity_id].totals
            assert [totals.get(one) for one in arena.competitors] == [0, 3]


@pytest.mark.parametrize("processes", [1, 2])
async def test_a_whole_ranking_is_scored_again_while_results_arrive_without_a_pause(
    dsn: str, bounds: Bounds, processes: int
) -> None:
    """At the same process, or at another one while this one is read from. Each result counts once."""
    bounds(JUDGED_MAX=3)
    async with desks_at(dsn, processes) as desks:
        here, there = desks[0], desks[-1]
        arena = await open_arena(here.database)
        third = CompetitorId(await here.new_id())
        await submit(here, arena.tournament_id, RegisterCompetitor(competitor_id=third, name="Cem"))
        table = {"win": 3, "draw": 1, "loss": 0}
        award = Award(unity_id=arena.unity_id, value="outcome", table=table, statuses={"absent": -1})

        async def play(desk: Desk) -> None:
            match = CompetitionId(await desk.new_id())
            add = AddCompetition(competition_id=match, group_id=1, participants=arena.competitors, result="2:1")
            await submit(desk, arena.tournament_id, add)

        async def preview(change: Previewed) -> None:
            async with here.live_pool.pinned(arena.tournament_id) as live:
                assert len(await here.preview(live, change)) > 1

        async def played_during(work: Coroutine[Any, Any, object]) -> int:
            doing = asyncio.create_task(work)

            async def play_on() -> int:
                for played in range(500):
                    if doing.done():
                        return played
                    await play(there)
                    await read_total(here, arena)
                raise AssertionError("it was never done")

            played = await asyncio.gather(*[play_on() for _ in range(4)])
            await doing
            assert min(played) > 0
            return sum(played)

        await asyncio.gather(*[play(here) for _ in range(100)])

        def round_of(result: str) -> RecordResults:
            match = {"group_id": 1, "participants": arena.competitors, "result": result}
            return RecordResults(
                items=tuple([RecordResult(competition_id=one, key=str(one), **match) for one in keyed])  # type: ignore[arg-type]
            )

        keyed = [CompetitionId(one) for one in await here.new_ids(2)]
        await submit(here, arena.tournament_id, round_of("0:0"))
        matches, closed = 102, CloseRanking(ranking_id=arena.ranking_id)
        for change in (
            DeclareScoring(ranking_id=arena.ranking_id, scorings=(Scoring(awards=(award,)),)),
            ChangeParticipants(ranking_id=arena.ranking_id, added=(third,)),
            round_of("3:1"),
            ReopenRanking(ranking_id=arena.ranking_id),
        ):
            if isinstance(change, ReopenRanking):
                matches += await played_during(submit(here, arena.tournament_id, closed))
            if not isinstance(change, RecordResults):
                matches += await played_during(preview(change))
            matches += await played_during(submit(here, arena.tournament_id, change))
        for desk in desks:
            async with desk.live_pool.pinned(arena.tournament_id) as live:
                await desk.live_pool.make_current(live)
                totals = live.board.rankings[arena.ranking_id].unities[arena.unity_id].totals
                assert [totals.get(one) for one in (*arena.competitors, third)] == [3 * matches, 0, -matches]
        assert (await verified(here.database)).differences == []


async def test_results_recorded_at_once_for_one_key_are_judged_one_after_the_other(
    dsn: str, owner: asyncpg.Connection
) -> None:
    async with desk_at(dsn) as desk:
        arena = await open_arena(desk.database)

        async def recorded_as(key: str, **said: Any) -> RecordResult:
            competition_id = CompetitionId(await desk.new_id())
            return RecordResult(competition_id=competition_id, key=key, participants=arena.competitors, **said)

        begun = await recorded_as("M1", group_id=1, result="0:0", location="A")
        await submit(desk, arena.tournament_id, begun)
        one = await recorded_as("M1", group_id=2, result="2:1", location="B")
        two = await recorded_as("M1", group_id=1, result="1:2", location="A")
        async with gathered(dsn, owner, desk, arena, one, two) as asked:
            pass
        await asyncio.gather(*asked)
        async with desk.live_pool.pinned(arena.tournament_id) as live:
            match = live.board.competitions[begun.competition_id]
            assert (match.group_id, match.location, match.result) == (1, "A", "1:2")
        moved = ChangeCompetition(competition_id=begun.competition_id, key="old")
        late = await recorded_as("M1", group_id=1, result="9:0")
        async with gathered(dsn, owner, desk, arena, moved, late) as asked:
            pass
        await asyncio.gather(*asked)
        async with desk.live_pool.pinned(arena.tournament_id) as live:
            results = {one.key: one.result for one in map(live.board.competitions.__getitem__, live.board.competitions)}
            assert results == {"old": "1:2", "M1": "9:0"}


async def test_a_round_whose_key_another_request_gives_first_corrects_its_points(
    dsn: str, owner: asyncpg.Connection
) -> None:
    """However the key is written: here with white space around it."""
    async with desk_at(dsn) as desk:
        arena = await open_arena(desk.database)
        award = Award(unity_id=arena.unity_id, value="outcome", table={"win": 3, "draw": 1, "loss": 0})
        declared = DeclareScoring(ranking_id=arena.ranking_id, scorings=(Scoring(awards=(award,)),))
        await submit(desk, arena.tournament_id, declared)
        first, second = [CompetitionId(one) for one in await desk.new_ids(2)]
        match: dict[str, Any] = {"group_id": 1, "participants": arena.competitors}
        added = AddCompetition(competition_id=first, key="M1", result="0:2", **match)
        round_ = RecordResults(items=(RecordResult(competition_id=second, key=" M1 ", result="2:1", **match),))
        async with gathered(dsn, owner, desk, arena, added, round_) as asked:
            pass
        await asyncio.gather(*asked)
        async with desk.live_pool.pinned(arena.tournament_id) as live:
            assert [total(live, arena, who) for who in (0, 1)] == [3, 0]
        assert (await verified(desk.database)).differences == []
