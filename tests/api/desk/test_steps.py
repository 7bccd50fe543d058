"""Requests of several steps, and those that the log does not settle: what they say when only some of it is certain."""

import asyncio
from collections.abc import Awaitable

import pytest

from api.access import auth
from api.access.auth import Scope
from api.access.granting import grant
from api.desk.opening import create_tournament
from api.interface.kinds import create_ranking, kinds
from engine.domain.errors import OutcomeUnknown
from engine.domain.terms import OPERATOR
from tests.desks import desk_at, open_arena
from tests.proxy import APPEND, proxy


@pytest.mark.parametrize("statement", ["open_tournament", "INSERT INTO token"])
async def test_what_was_written_over_a_connection_that_is_lost_is_of_unknown_outcome(dsn: str, statement: str) -> None:
    async with proxy(dsn) as between, desk_at(between.dsn) as desk:
        async with desk.database.connection() as connection:
            mine, _ = await auth.create(
                connection, name="mine", scope=Scope.ADMIN, tournament_ids=None, expires_in_days=None
            )

        async def write() -> object:
            if statement == "open_tournament":
                return await create_tournament(desk, "Cup", zone=None, actor=OPERATOR, key="k")
            return await grant(desk.database, mine, name="club", scope=Scope.READ, slugs=(), expires_in_days=None)

        async with between.holding_answers(statement) as held:
            writing = asyncio.create_task(write())
            await held.wait()
            between.cut_all()
        with pytest.raises(OutcomeUnknown):
            await writing


async def test_a_request_whose_first_step_is_recorded_is_of_unknown_outcome_if_another_is_not(dsn: str) -> None:
    async with proxy(dsn) as between:
        for statement in ("open_tournament", APPEND):
            async with desk_at(between.dsn) as desk:
                arena = await open_arena(desk.database)
                async with desk.live_pool.pinned(arena.tournament_id) as live:
                    async with between.holding_answers(statement) as held:
                        if statement == APPEND:
                            work: Awaitable[object] = create_ranking(
                                desk,
                                live,
                                kinds()["football"],
                                name="League",
                                participants=arena.competitors,
                                actor=OPERATOR,
                            )
                        else:
                            work = create_tournament(desk, "Cup", zone="Europe/Berlin", actor=OPERATOR, key=None)
                        working = asyncio.ensure_future(work)
                        await held.wait()
                        closing = asyncio.create_task(desk.close())
                        await asyncio.sleep(0)
                    with pytest.raises(OutcomeUnknown):
                        await working
                    await closing
