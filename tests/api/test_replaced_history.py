"""A database that was restored under running services: nothing that they remember of what is lost does any harm."""

import asyncio
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

import asyncpg
import pytest

from api.desk.desk import Desk
from api.desk.remembered import IDS_RESERVED
from api.webhooks.webhooks import add_webhook
from engine.database.pool import Database, open_database
from engine.domain.commands import AddCompetition, CreateRanking, RegisterCompetitor, VoidCompetition
from engine.domain.errors import DatabaseUnavailable, HistoryReplaced, IdTaken, OutcomeUnknown, Unavailable
from engine.domain.events import CompetitionVoided, PointsAdded
from engine.domain.terms import OPERATOR, CompetitionId, CompetitorId, RankingId, TournamentId, UnityId
from engine.log import registry
from projections.live.tournament import LiveTournament
from projections.verification.all_tournaments import Plan, verify_all
from tests.conftest import COMMITTED_BY_ITS_NODE
from tests.desks import Arena, desk_at, desks_at, open_arena, record, recorded, submit
from tests.proxy import APPEND, HEADS, Fault, proxy
from tests.restoring import backup
from tests.service import (
    Answer,
    Client,
    Form,
    Service,
    create_ranking,
    deltas,
    make_token,
    register,
    serve,
    slug_of,
)
from tests.told_clock import told_clock
from tests.tournaments import open_new_tournament

UNAVAILABLE: Final = 503
TRIES_MAX: Final = 1_000


class Patient(Client):
    """Sends what is certainly not applied again, as it is told to."""

    def __init__(self, service: Service, tournament: str, token: str) -> None:
        super().__init__(service.client(tournament, token)._session, service.url, tournament, token)

    async def send(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        for _ in range(TRIES_MAX):
            answer = await super().send(method, path, body, headers)
            if answer.status != UNAVAILABLE:
                return answer
        raise AssertionError("the service does not recover")


async def opened(service: Service, tournament_id: TournamentId | None = None) -> TournamentId:
    """A new tournament; while connections of a database that is gone are still found dead, another attempt."""
    for _ in range(TRIES_MAX):
        try:
            return await open_new_tournament(service.database, actor=OPERATOR, tournament_id=tournament_id)
        except Unavailable:
            continue
    raise AssertionError("the database does not come back")


async def names_of(client: Client) -> dict[int, str]:
    answer = await client.get("competitors.json?per_page=200")
    return {competitor["id"]: competitor["name"] for competitor in answer.json["competitors"]["competitor"]}


async def assert_whole(service: Service) -> None:
    report = await verify_all(service.database, Plan(), on_difference=print, on_events=lambda *_: None)
    assert report.differences == []


async def points(client: Client, ranking_id: int, competitor_id: int, unity_id: int) -> Answer:
    form: Form = {"participants_delta": deltas((competitor_id, unity_id, 1))}
    return await client.put(f"rankings/{ranking_id}/add.json", form)


# ── Expiry ──────────────────────────────────────────────────────────────────────────────────────────────


async def test_what_expired_since_a_backup_counts_again_and_expires_again_once(
    dsn: str, owner: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock goes back with the database, and passes the same boundary a second time."""
    clock = await told_clock(owner, monkeypatch)
    async with serve(dsn) as service, serve(dsn) as other:
        tournament_id = await opened(service)
        token, slug = await make_token(service.database), await slug_of(service.database, tournament_id)
        clients = [Patient(one, slug, token) for one in (service, other)]
        ada, ben = await register(clients[0], "Ada", "Ben")
        rolling = {"main_unity_lasts": "P1D", "main_unity_expires_on": "minute"}
        ranking = await create_ranking(clients[0], [ada, ben], **rolling)
        path, unity = f"rankings/{ranking['id']}/standings.json", ranking["unities"][0]["id"]

        async def shown() -> list[dict[int, int]]:
            answers = [(await client.get(path)).json["ranking"]["unities"][0] for client in clients]
            return [{one["competitor_id"]: one["total"] for one in its["competitors_ranking"]} for its in answers]

        async def pass_boundary() -> None:
            owner = await asyncpg.connect(dsn, server_settings={"search_path": "tallybook"})
            assert await shown() == [{ada: 1, ben: 0}] * 2
            await owner.execute("UPDATE told SET now = now + interval '1 day 1 minute'")
            assert await shown() == [{ada: 0, ben: 0}] * 2
            assert (await points(clients[1], ranking["id"], ben, unity)).status == 200
            assert await shown() == [{ada: 0, ben: 1}] * 2
            kinds = await owner.fetch("SELECT kind FROM event ORDER BY sequence DESC LIMIT 2")
            assert [one["kind"] for one in kinds] == ["PointsAdded", "PointsExpired"]
            await owner.close()

        assert (await points(clients[0], ranking["id"], ada, unity)).status == 200
        async with backup(dsn) as restore:
            await pass_boundary()
            await restore()
            await pass_boundary()
    clock._owner = await asyncpg.connect(dsn, server_settings={"search_path": "tallybook"})
    await clock.give_back()
    await clock._owner.close()
    async with open_database(dsn, name="test") as database:
        report = await verify_all(database, Plan(), on_difference=print, on_events=lambda *_: None)
    assert report.differences == []


# ── Ids ─────────────────────────────────────────────────────────────────────────────────────────────────


async def test_ids_that_a_restored_database_hands_out_again_are_nobodys_twice(dsn: str) -> None:
    async with serve(dsn) as service, serve(dsn) as other:
        tournament_id = await opened(service)
        token, slug = await make_token(service.database), await slug_of(service.database, tournament_id)
        clients = [Patient(one, slug, token) for one in (service, other)]
        await register(clients[0], "Before")
        async with backup(dsn) as restore:
            await register(clients[0], *(f"Lost {n}" for n in range(IDS_RESERVED + 8)))
            await restore()
            expected = await names_of(clients[0])
            assert list(expected.values()) == ["Before"]
            for n in range(IDS_RESERVED * 2):
                answer = await clients[n % 2].post("competitors.json", {"name": f"{n}"})
                assert answer.status == 200, answer.body
                assert answer.json["competitor"]["id"] not in expected
                expected[answer.json["competitor"]["id"]] = f"{n}"
            for client in clients:
                assert await names_of(client) == expected
            await assert_whole(service)


async def test_lost_ids_are_given_to_nobody_once_they_are_skipped_as_operators_read(
    dsn: str, request: pytest.FixtureRequest
) -> None:
    text = (request.config.rootpath / "docs" / "OPERATIONS.md").read_text(encoding="utf-8")
    (statement,) = re.findall(r"^ +SELECT setval\(format.*\n.*$", text, re.MULTILINE)
    async with serve(dsn) as service:
        slugs = [await slug_of(service.database, await opened(service)) for _ in range(2)]
        token = await make_token(service.database)
        clients = [Patient(service, slug, token) for slug in slugs]
        async with backup(dsn) as restore:
            lost = await register(clients[0], *(f"Lost {n}" for n in range(IDS_RESERVED + 8)))
            lost_webhook = await _webhook(service, slugs[0])
            await restore()
            owner = await asyncpg.connect(dsn)
            await owner.execute(statement)
            await owner.close()
            for client in clients:
                given = await register(client, *(f"{n}" for n in range(IDS_RESERVED + 8)))
                assert min(given) > max(lost)
            assert await _webhook(service, slugs[0]) > lost_webhook
            await assert_whole(service)


async def _webhook(service: Service, slug: str) -> int:
    async with service.database.connection() as connection:
        tournament_id = await registry.tournament_named(connection, slug)
        assert tournament_id is not None
        webhook_id, *_ = await add_webhook(
            connection, tournament_id, "https://example.org/", kinds=None, allows_private=False, after=None
        )
    return webhook_id


async def test_an_id_that_exists_is_refused_and_those_drawn_with_it_are_forgotten(desk: Desk) -> None:
    arena = await open_arena(desk.database)

    def ranking(ranking_id: int, unity_id: int) -> CreateRanking:
        return CreateRanking(
            ranking_id=RankingId(ranking_id),
            main_unity_id=UnityId(unity_id),
            name="Again",
            main_unity_name="Points",
            participants=arena.competitors,
        )

    for command in (
        RegisterCompetitor(competitor_id=arena.competitors[0], name="Cid"),
        ranking(arena.ranking_id, await desk.new_id()),
        ranking(await desk.new_id(), arena.unity_id),
    ):
        drawn = await desk.new_id()
        with pytest.raises(IdTaken):
            await submit(desk, arena.tournament_id, command)
        assert await desk.new_id() > drawn + 1


async def test_an_id_that_another_process_has_just_used_is_refused_by_the_log(dsn: str) -> None:
    """This one has not seen it yet: competitors of others do not overtake."""
    async with desks_at(dsn) as desks:
        arena = await open_arena(desks[0].database)
        async with desks[1].live_pool.pinned(arena.tournament_id) as live:
            await desks[1].live_pool.make_current(live)
            drawn = CompetitorId(await desks[0].new_id())
            await submit(desks[0], arena.tournament_id, RegisterCompetitor(competitor_id=drawn, name="Cid"))
            assert drawn not in live.board.competitors
            with pytest.raises(IdTaken):
                await submit(desks[1], arena.tournament_id, RegisterCompetitor(competitor_id=drawn, name="Dot"))


# ── Slugs and tokens ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("written_to", [True, False])
async def test_a_slug_that_is_gone_never_means_another_tournament(dsn: str, written_to: bool) -> None:
    async with serve(dsn) as service:
        token = await make_token(service.database)
        async with backup(dsn) as restore:
            lost_id = await opened(service)
            lost = Patient(service, await slug_of(service.database, lost_id), token)
            assert (await lost.get("competitors.json")).status == 200
            if written_to:
                await register(lost, "Ada")
            await restore()
            others = [await opened(service, tournament_id) for tournament_id in (lost_id, None)]
            assert (await lost.post("competitors.json", {"name": "Ben"})).status == 404
            assert (await lost.get("competitors.json")).status == 404
            for tournament_id in others:
                assert await names_of(Patient(service, await slug_of(service.database, tournament_id), token)) == {}


async def test_a_slug_is_looked_up_again_where_the_live_has_another(dsn: str) -> None:
    """What a process remembers of slugs is wrong although no connection was lost: as after a restore in place."""
    async with serve(dsn) as service:
        token = await make_token(service.database)
        one, two = [await opened(service) for _ in range(2)]
        client = Patient(service, await slug_of(service.database, one), token)
        assert (await client.get("competitors.json")).status == 200
        await register(Patient(service, await slug_of(service.database, two), token), "Of the other")
        async with service.desk.live_pool.pinned(one) as live:
            live.slug = "what-it-was-called"
            assert (await client.get("competitors.json")).status == 404
            assert (await client.post("competitors.json", {"name": "Ada"})).status == 404


async def test_a_token_that_is_gone_opens_nothing_after_the_restore(dsn: str) -> None:
    async with serve(dsn) as service, backup(dsn) as restore:
        lost_id = await opened(service)
        token = await make_token(service.database, tournament_ids=[lost_id])
        client = Patient(service, await slug_of(service.database, lost_id), token)
        assert (await client.get("competitors.json")).status == 200
        await restore()
        await opened(service, lost_id)
        client.tournament = await slug_of(service.database, lost_id)
        assert (await client.get("competitors.json")).status == 401


# ── Judgements ──────────────────────────────────────────────────────────────────────────────────────────


async def test_what_was_judged_by_a_lost_history_is_not_appended_to_the_one_that_took_its_place(dsn: str) -> None:
    """One service knows a ranking that is lost, and the log has grown past that place without it."""
    async with serve(dsn) as service, serve(dsn) as other:
        tournament_id = await opened(service)
        token, slug = await make_token(service.database), await slug_of(service.database, tournament_id)
        warm, growing = (Patient(one, slug, token) for one in (service, other))
        ada, ben = await register(growing, "Ada", "Ben")
        kept = await create_ranking(growing, [ada, ben])
        async with backup(dsn) as restore:
            lost = await create_ranking(warm, [ada, ben], name="Lost")
            await restore()
            for _ in range(8):
                assert (await points(growing, kept["id"], ada, kept["unities"][0]["id"])).status == 200
            assert (await points(warm, lost["id"], ada, lost["unities"][0]["id"])).status == 404
            for client in (warm, growing):
                shown = await client.get("rankings.json")
                assert [ranking["name"] for ranking in shown.json["rankings"]["ranking"]] == ["Season"]
            await assert_whole(service)


async def test_a_desk_that_is_warm_beyond_the_backup_says_that_its_history_is_gone_and_continues(dsn: str) -> None:
    async with desk_at(dsn) as warm, desk_at(dsn) as growing:
        arena = await open_arena(warm.database)
        async with backup(dsn) as restore:
            await submitted(warm, arena)
            async with warm.live_pool.pinned(arena.tournament_id) as live:
                await restore()
                for sequence in range(5, 10):
                    assert await submitted(growing, arena) == sequence
                with pytest.raises(HistoryReplaced):
                    await warm.submit(live, arena.points(), actor=OPERATOR)
            assert await submitted(warm, arena) == 10


async def test_a_voiding_that_is_judged_again_under_the_lock_is_judged_by_the_history_that_is_there(dsn: str) -> None:
    """What is exact is judged again at once where it was overtaken; the live that it is judged against is beyond the
    log."""
    async with desk_at(dsn) as warm, desk_at(dsn) as growing:
        arena = await open_arena(warm.database)
        await submitted(growing, arena)
        async with backup(dsn) as restore:
            lost = CompetitionId(await warm.new_id())
            await submit(warm, arena.tournament_id, AddCompetition(competition_id=lost, group_id=1))
            await submitted(warm, arena)
            async with warm.live_pool.pinned(arena.tournament_id) as live:
                await restore()
                assert await submitted(growing, arena) == live.head.sequence - 1
                with pytest.raises(HistoryReplaced):
                    await warm.submit(live, VoidCompetition(competition_id=lost), actor=OPERATOR)
            kinds = [type(event) for event in await recorded(growing.database, arena.tournament_id)]
            assert CompetitionVoided not in kinds
            assert await submitted(warm, arena) == len(kinds) + 1


async def submitted(desk: Desk, arena: Arena) -> int:
    """The sequence of points; submitted again where the connections of a database that is gone are found dead."""
    for _ in range(TRIES_MAX):
        try:
            return (await submit(desk, arena.tournament_id, arena.points())).sequence
        except Unavailable:
            await asyncio.sleep(0)
    raise AssertionError("the desk does not recover")


# ── Answers ─────────────────────────────────────────────────────────────────────────────────────────────
# The search of assurance/model found the ways to these.


@pytest.mark.one_postgresql(COMMITTED_BY_ITS_NODE)
async def test_a_repeat_is_not_answered_by_what_a_restored_log_has_in_the_place_of_its_event(dsn: str) -> None:
    """Restored after the log has said that it knows the key, and before the event is read."""
    async with proxy(dsn) as between, open_database(dsn, name="other") as other, desk_at(between.dsn) as desk:
        arena = await open_arena(other)
        async with backup(dsn) as restore:
            first = await submit(desk, arena.tournament_id, arena.points(1), key="k")
            async with between.holding_answers(HEADS) as held:
                repeat = asyncio.create_task(submit(desk, arena.tournament_id, arena.points(1), key="k"))
                await held.wait()
                await restore()
                assert await appended_elsewhere(other, arena) == first.sequence
            with pytest.raises(OutcomeUnknown):
                await repeat
            await settled(desk, arena, key="k")
        amounts = [
            event.deltas[0].amount
            for event in await recorded(other, arena.tournament_id)
            if isinstance(event, PointsAdded)
        ]
        assert amounts == [7, 1]


@pytest.mark.one_postgresql(COMMITTED_BY_ITS_NODE)
async def test_what_landed_is_not_acknowledged_by_a_restored_log_that_lacks_it(dsn: str) -> None:
    """Restored after the log has said that the block is there, and before what precedes it is read."""
    async with proxy(dsn) as between, open_database(dsn, name="other") as other, desk_at(between.dsn) as desk:
        arena = await open_arena(other)
        await submit(desk, arena.tournament_id, arena.points(1))
        async with backup(dsn) as restore:
            between.strike(Fault.AFTER)
            async with between.holding_answers(APPEND) as held:
                add = asyncio.create_task(submit(desk, arena.tournament_id, arena.points(1), key="k"))
                await held.wait()
                await restore()
                await appended_elsewhere(other, arena)
            with pytest.raises(OutcomeUnknown):
                await add
            await settled(desk, arena, key="k")
        amounts = [
            event.deltas[0].amount
            for event in await recorded(other, arena.tournament_id)
            if isinstance(event, PointsAdded)
        ]
        assert amounts == [1, 7, 1]


@pytest.mark.one_postgresql(COMMITTED_BY_ITS_NODE)
async def test_a_live_that_went_on_in_the_lost_history_is_not_current_by_its_sequence(dsn: str) -> None:
    """A barrier asks the restored log; before it has its answer, one of the lost log comes, of a change of our own."""
    async with proxy(dsn) as between, open_database(dsn, name="other") as other, desk_at(between.dsn) as desk:
        arena = await open_arena(other)
        async with backup(dsn) as restore, desk.live_pool.pinned(arena.tournament_id) as live:
            async with between.holding_answers(HEADS) as asked:
                async with between.holding_answers(APPEND) as landed:
                    add = asyncio.create_task(submit(desk, arena.tournament_id, arena.points(1)))
                    await landed.wait()
                    await restore()
                    sequence = await appended_elsewhere(other, arena)
                    read = asyncio.create_task(current(desk, live))
                    await asked.wait()
                assert (await add).sequence == sequence
            with pytest.raises(HistoryReplaced):
                await read


async def current(desk: Desk, live: LiveTournament) -> None:
    """As `make_current`, once it is not told any more that the connections of the database that is gone are dead."""
    while True:
        with suppress(DatabaseUnavailable):
            return await desk.live_pool.make_current(live)


async def appended_elsewhere(database: Database, arena: Arena) -> int:
    """Has the log record seven points, and returns their sequence."""
    points = PointsAdded(ranking_id=arena.ranking_id, deltas=arena.points(7).deltas)
    while True:
        with suppress(DatabaseUnavailable):  # its connections were to the database that is gone
            async with database.connection() as connection:
                appended = await record(connection, arena.tournament_id, points)
                assert appended.last_sequence is not None
                return appended.last_sequence


async def settled(desk: Desk, arena: Arena, *, key: str) -> None:
    """Sends a point again with its key until it is definite what became of it."""
    while True:
        with suppress(Unavailable, OutcomeUnknown):
            await submit(desk, arena.tournament_id, arena.points(1), key=key)
            return
