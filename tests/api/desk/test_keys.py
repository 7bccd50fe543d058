"""Refusals of requests with idempotency keys: final for all that was sent with the key, and confirmed like the rest."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import asyncpg
import pytest

from api.desk.case import Receipt
from api.desk.desk import Desk
from engine.domain.commands import CloseRanking, ReopenRanking
from engine.domain.errors import Conflict, KeyRefused, OutcomeUnknown
from engine.domain.terms import Sequence
from tests.desks import Arena, desk_at, desks_at, open_arena, recorded, submit, until, until_commits_wait
from tests.proxy import Fault, proxy

# ── A refusal settles every earlier sending ─────────────────────────────────────────────────────────────


async def test_a_request_sent_before_its_repeat_was_refused_is_no_longer_recorded(dsn: str) -> None:
    """The first sending is on its way while the ranking is closed, its repeat refused, and the ranking reopened."""
    async with desk_at(dsn) as there, proxy(dsn) as between, desk_at(between.dsn) as here:
        arena = await open_arena(there.database)

        async def meanwhile() -> None:
            await submit(there, arena.tournament_id, CloseRanking(ranking_id=arena.ranking_id))
            with pytest.raises(Conflict):
                await submit(there, arena.tournament_id, arena.points(), key="k")
            await submit(there, arena.tournament_id, ReopenRanking(ranking_id=arena.ranking_id))

        async with here.live_pool.pinned(arena.tournament_id):
            between.strike(Fault.NONE, meanwhile=meanwhile)
            with pytest.raises(KeyRefused):
                await submit(here, arena.tournament_id, arena.points(), key="k")
            assert between.faults_left == 0
            # What is sent from now on is another matter.
            receipt = await submit(here, arena.tournament_id, arena.points(), key="k")
        assert receipt == Receipt(receipt.events, Sequence(7), replayed=False)
        assert len(await recorded(there.database, arena.tournament_id)) == 7


async def test_a_refusal_concerns_its_own_key_only(dsn: str) -> None:
    async with desk_at(dsn) as there, proxy(dsn) as between, desk_at(between.dsn) as here:
        arena = await open_arena(there.database)

        async def meanwhile() -> None:
            await submit(there, arena.tournament_id, CloseRanking(ranking_id=arena.ranking_id))
            with pytest.raises(Conflict):
                await submit(there, arena.tournament_id, arena.points(), key="other")
            await submit(there, arena.tournament_id, ReopenRanking(ranking_id=arena.ranking_id))

        async with here.live_pool.pinned(arena.tournament_id):
            between.strike(Fault.NONE, meanwhile=meanwhile)
            assert not (await submit(here, arena.tournament_id, arena.points(), key="k")).replayed


async def test_many_refusals_at_once_are_entered_in_the_log_together_and_each_is_answered(dsn: str) -> None:
    async with desks_at(dsn) as desks:
        arena = await open_arena(desks[0].database)
        first = await submit(desks[0], arena.tournament_id, arena.points(), key="used")
        await submit(desks[0], arena.tournament_id, CloseRanking(ranking_id=arena.ranking_id))
        keys = [f"key {n}" for n in range(200)] + ["used", "used"]
        for desk in desks:
            outcomes = await asyncio.gather(
                *(submit(desk, arena.tournament_id, arena.points(), key=key) for key in keys), return_exceptions=True
            )
            assert [type(outcome) for outcome in outcomes] == [Conflict] * 200 + [Receipt] * 2
            assert outcomes[-1] == Receipt(first.events, first.sequence, replayed=True)
        async with desks[0].database.connection() as connection:
            refusals = await connection.fetchval(
                "SELECT refusals FROM append_lock WHERE tournament_id = $1", arena.tournament_id
            )
        assert 2 <= refusals < 100


# ── An answer from the log is confirmed as the log's commits are ────────────────────────────────────────


@asynccontextmanager
async def standby_that_never_answers(dsn: str, owner: asyncpg.Connection) -> AsyncIterator[None]:
    probe = await asyncpg.connect(dsn)
    await owner.execute("ALTER SYSTEM SET synchronous_standby_names = 'gone'")
    await owner.execute("SELECT pg_reload_conf()")
    try:
        await until_commits_wait(owner, probe)
        yield
    finally:
        await probe.close()
        await owner.execute("ALTER SYSTEM RESET synchronous_standby_names")
        await owner.execute("SELECT pg_reload_conf()")


async def waiting_for_standby(owner: asyncpg.Connection) -> list[int]:
    rows = await owner.fetch(
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'SyncRep'"
    )
    return [row["pid"] for row in rows]


HELD_UP: Final = "it holds up every commit of a server, and the nodes are those of other tests, too"


@pytest.mark.one_postgresql(HELD_UP)
@pytest.mark.parametrize("kind", ["structural", "points"])
async def test_a_repeat_is_not_answered_from_a_commit_that_no_standby_has_confirmed(
    dsn: str, owner: asyncpg.Connection, kind: str
) -> None:
    await owner.execute("SET synchronous_commit = local")
    async with desks_at(dsn) as desks:
        arena = await open_arena(desks[0].database)
        command = CloseRanking(ranking_id=arena.ranking_id) if kind == "structural" else arena.points()

        async def ask(desk: Desk) -> Receipt:
            return await submit(desk, arena.tournament_id, command, key="k")

        async with standby_that_never_answers(dsn, owner):
            for n in range(3):
                asking = asyncio.create_task(ask(desks[n % 2]))
                (pid, *_) = await until(lambda: waiting_for_standby(owner))
                assert not asking.done()
                await owner.execute("SELECT pg_cancel_backend($1)", pid)
                with pytest.raises(OutcomeUnknown):
                    await asking
        assert (await ask(desks[0])).replayed
        assert len(await recorded(desks[0].database, arena.tournament_id)) == 5


async def shown(desk: Desk, arena: Arena) -> int:
    async with desk.live_pool.pinned(arena.tournament_id) as live:
        await desk.live_pool.make_current(live)
        return live.head.sequence


@pytest.mark.one_postgresql(HELD_UP)
async def test_a_read_may_show_what_no_standby_has_confirmed(dsn: str, owner: asyncpg.Connection) -> None:
    """As PostgreSQL shows it once the wait was given up: a read confirms nothing."""
    await owner.execute("SET synchronous_commit = local")
    async with desk_at(dsn) as desk:
        arena = await open_arena(desk.database)
        async with standby_that_never_answers(dsn, owner):
            asking = asyncio.create_task(submit(desk, arena.tournament_id, arena.points(), key="k"))
            (pid, *_) = await until(lambda: waiting_for_standby(owner))
            assert await shown(desk, arena) == 4
            await owner.execute("SELECT pg_cancel_backend($1)", pid)
            with pytest.raises(OutcomeUnknown):
                await asking
            assert await shown(desk, arena) == 5
