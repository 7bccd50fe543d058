"""Competitions that do not count: whatever they caused is reversed, all of it, at once, and can be had back."""

import asyncio
import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from typing import Any

import asyncpg
import pytest

from api.desk.desk import Desk
from api.interface.rendering import whole
from engine.domain.commands import AddPoints, UnvoidCompetition, VoidCompetition
from engine.domain.errors import Conflict, Unacceptable
from engine.domain.events import (
    CompetitionAdded,
    CompetitionUnvoided,
    CompetitionVoided,
    Delta,
    Event,
    Points,
    PointsAdded,
    PointsReversed,
    Recorded,
    TournamentOpened,
)
from engine.domain.terms import OPERATOR, CompetitionId, Sequence, TournamentId
from engine.log import reading
from engine.log.heads import Head
from projections.board.board import Board
from projections.live.tournament import LiveTournament
from tests.api.rendered import answered
from tests.bounds import Bounds
from tests.desks import (
    HOLD_HEAD,
    Arena,
    desk_at,
    desks_at,
    end_session,
    holding,
    matched,
    open_arena,
    record,
    recorded,
    submit,
    until,
    waiting_for_locks,
)
from tests.histories import caused_of
from tests.proxy import Fault, proxy
from tests.service import Answer, Client, Season, create_ranking, deltas, listed, totals

# ── Over HTTP ───────────────────────────────────────────────────────────────────────────────────────────


async def add(season: Season, *lines: tuple[int, int, int], ranking_id: int | None = None, **fields: object) -> Answer:
    path = f"rankings/{ranking_id or season.ranking_id}/add.json"
    return await season.client.put(path, {"participants_delta": deltas(*lines)} | fields)


async def shown(season: Season, ranking_id: int | None = None) -> Any:
    """The ranking as it is, without the versions of its unities."""
    answer = await add(season, (season.ids[0], season.unity_id, 0)) if ranking_id is None else None
    assert answer is not None
    ranking = answer.json["ranking"]
    for unity in ranking["unities"]:
        del unity["version"]
    return ranking


async def test_a_voided_competitions_points_are_gone_from_every_ranking_and_come_back(season: Season) -> None:
    ada, ben, pair = season.ids
    match = season.competition_id
    cup = await create_ranking(season.client, [ada, ben], name="Cup")
    await add(season, (ada, season.unity_id, 3), (ben, season.unity_id, 1), competition_id=match)
    await add(season, (pair, season.unity_id, 2))
    await add(season, (ada, cup["unities"][0]["id"], 7), ranking_id=cup["id"], competition_id=match)
    before = await shown(season)

    voided = await season.client.put(f"competitions/{match}/void.json")
    assert (voided.status, voided.json["competition"]["id"]) == (200, match)
    assert totals(await add(season, (ada, season.unity_id, 0))) == {ada: 0, ben: 0, pair: 2}
    assert totals(await add(season, (ada, cup["unities"][0]["id"], 0), ranking_id=cup["id"])) == {ada: 0, ben: 0}

    assert (await season.client.put(f"competitions/{match}/unvoid.json")).status == 200
    assert await shown(season) == before
    assert totals(await add(season, (ada, cup["unities"][0]["id"], 0), ranking_id=cup["id"])) == {ada: 7, ben: 0}


async def test_a_competition_shows_since_when_it_is_voided(season: Season, peers_client: Client) -> None:
    path = f"competitions/{season.competition_id}"

    async def listed_by(client: Client) -> Any:
        competitions = (await client.get("competitions.json")).json["competitions"]["competition"]
        (found,) = [one for one in competitions if one["id"] == season.competition_id]
        return found

    before = await listed_by(season.client)
    assert before["voided_at"] is None
    voided = (await season.client.put(f"{path}/void.json")).json["competition"]
    assert voided["voided_at"] == voided["updated_at"] >= before["updated_at"]
    assert voided == await listed_by(season.client) == await listed_by(peers_client)
    changed = (await season.client.put(f"{path}.json", {"location": "Rome"})).json["competition"]
    assert changed["voided_at"] == voided["voided_at"]
    unvoided = (await season.client.put(f"{path}/unvoid.json")).json["competition"]
    assert unvoided["voided_at"] is None
    assert unvoided == await listed_by(season.client) == await listed_by(peers_client)


def test_voiding_and_unvoiding_are_changes_of_the_competition() -> None:
    dawn = datetime(2030, 1, 1, tzinfo=UTC)
    match = CompetitionId(2)
    facts: list[Event] = [
        TournamentOpened(name="T", slug="t"),
        CompetitionAdded(competition_id=match, group_id=1),
        CompetitionVoided(competition_id=match),
        CompetitionUnvoided(competition_id=match),
    ]
    live = LiveTournament(TournamentId(1), Head(Sequence(0), b""), Board())
    shown = []
    for n, fact in enumerate(facts, start=1):
        recorded = Recorded(
            sequence=Sequence(n),
            recorded_at=dawn + timedelta(hours=n),
            actor=OPERATOR,
            idempotency_key=None,
            event=fact,
        )
        live.fold([recorded], Head(Sequence(n), b"%d" % n))
        if n > 1:
            answer = json.loads(whole(answered(live, "PUT competitions/{competition_id}/void.json", fact)))[
                "competition"
            ]
            shown.append((answer["created_at"][11:13], answer["updated_at"][11:13], answer["voided_at"]))
    assert shown == [("02", "02", None), ("02", "03", "2030-01-01 03:00:00"), ("02", "04", None)]


async def test_a_preview_says_what_voiding_then_does_and_records_nothing(season: Season) -> None:
    ada, ben, pair = season.ids
    match = season.competition_id
    await add(season, (ada, season.unity_id, 3), competition_id=match)
    await add(season, (ben, season.unity_id, 2), (pair, season.unity_id, 2))
    sequence = (await season.client.get("rankings.json")).headers["ETag"]
    foreseen = await season.client.get(f"competitions/{match}/void.json")
    assert foreseen.json["message"] == "preview"
    assert (await season.client.get("rankings.json")).headers["ETag"] == sequence
    (ranking,) = foreseen.json["rankings"]
    points = ranking["unities"][0]
    assert (ranking["id"], points["id"], points["name"]) == (season.ranking_id, season.unity_id, "points")
    line = ("name", "position_before", "total_before", "position_after", "total_after")
    assert [tuple(move[field] for field in line) for move in points["moves"]] == [
        ("Ben", 2, 2, 1, 2),
        ("Pair", 2, 2, 1, 2),
        ("Ada", 1, 3, 3, 0),
    ]
    await season.client.put(f"competitions/{match}/void.json")
    after = await add(season, (ada, season.unity_id, 0))
    assert after.json["ranking"]["unities"][0]["competitors_ranking"] == [
        {"competitor_id": m["competitor_id"], "position": m["position_after"], "total": m["total_after"]}
        for m in points["moves"]
    ]
    back = (await season.client.get(f"competitions/{match}/unvoid.json")).json["rankings"][0]["unities"][0]["moves"]
    assert [(m["name"], m["position_before"], m["position_after"]) for m in back] == [
        ("Ada", 3, 1),
        ("Ben", 1, 2),
        ("Pair", 1, 2),
    ]


async def test_voiding_twice_or_what_is_not_voided_or_not_there_is_refused(season: Season) -> None:
    match = season.competition_id
    for ask in (season.client.get, season.client.put):
        assert (await ask(f"competitions/{match}/unvoid.json")).status == 409
        assert (await ask(f"competitions/{season.ids[0]}/void.json")).status == 404
    assert (await season.client.put(f"competitions/{match}/void.json")).status == 200
    for ask in (season.client.get, season.client.put):
        assert (await ask(f"competitions/{match}/void.json")).status == 409
    assert (await season.client.put(f"competitions/{match}/unvoid.json")).status == 200
    assert (await season.client.put(f"competitions/{match}/void.json")).status == 200


async def test_points_for_a_voided_competition_are_422(season: Season) -> None:
    answer = await add(season, (season.ids[0], season.unity_id, 1), competition_id=season.voided_competition_id)
    assert answer.status == 422
    assert [fault["field"] for fault in answer.json["errors"]] == ["competition_id"]


async def test_voiding_is_409_while_a_ranking_it_touches_is_closed_and_names_each(season: Season) -> None:
    ada, ben, _ = season.ids
    match = season.competition_id
    cups = [await create_ranking(season.client, [ada, ben], name=name) for name in ("A", "B", "C")]
    for cup in cups:
        await add(season, (ada, cup["unities"][0]["id"], 1), ranking_id=cup["id"], competition_id=match)
    for cup in cups[:2]:
        await season.client.put(f"rankings/{cup['id']}/close.json")
    for ask in (season.client.get, season.client.put):
        answer = await ask(f"competitions/{match}/void.json")
        assert answer.status == 409
        assert [f"'{cup['name']}'" in answer.json["message"] for cup in cups] == [True, True, False]
    for cup in cups[:2]:
        await season.client.put(f"rankings/{cup['id']}/reopen.json")
    assert (await season.client.put(f"competitions/{match}/void.json")).status == 200


async def test_a_competitor_that_has_left_is_compensated_too(season: Season) -> None:
    ada, ben, pair = season.ids
    await add(season, (pair, season.unity_id, 5), competition_id=season.competition_id)
    form = {"main_unity_name": "points"}
    await season.client.put(season.path + ".json", form | {"participants": listed([ada, ben])})
    await season.client.put(f"competitions/{season.competition_id}/void.json")
    back = await season.client.put(season.path + ".json", form | {"participants": listed(season.ids)})
    assert totals(back)[pair] == 0


async def test_a_repeated_request_to_void_is_answered_as_the_first(season: Season, peers_client: Client) -> None:
    path, key = f"competitions/{season.competition_id}/void.json", {"Idempotency-Key": "void-it"}
    await add(season, (season.ids[0], season.unity_id, 5), competition_id=season.competition_id)
    first = await season.client.put(path, {}, key)
    repeats = [await client.put(path, {}, key) for client in (season.client, peers_client)]
    assert [r.status for r in (first, *repeats)] == [200, 200, 200]
    assert {r.headers["Tallybook-Sequence"] for r in (first, *repeats)} == {first.headers["Tallybook-Sequence"]}
    assert all(r.headers["Idempotency-Replayed"] == "true" for r in repeats)
    assert (await season.client.put(path, {}, {"Idempotency-Key": "again"})).status == 409


# ── While other points land ─────────────────────────────────────────────────────────────────────────────


def gain(arena: Arena, amount: int, match: CompetitionId | None = None) -> AddPoints:
    deltas = (Delta(arena.competitors[0], arena.unity_id, amount),)
    return AddPoints(ranking_id=arena.ranking_id, deltas=deltas, competition_id=match)


async def total_of(desk: Desk, arena: Arena) -> int:
    async with desk.live_pool.pinned(arena.tournament_id) as live:
        await desk.live_pool.make_current(live)
        return live.board.rankings[arena.ranking_id].unities[arena.unity_id].totals[arena.competitors[0]]


async def test_points_that_land_at_another_process_are_reversed_too(dsn: str) -> None:
    async with desks_at(dsn) as (here, there):
        arena = await open_arena(here.database)
        match = await matched(here, arena)
        async with here.live_pool.pinned(arena.tournament_id) as live:  # and now it lags behind
            await submit(there, arena.tournament_id, gain(arena, 5, match))
            await submit(there, arena.tournament_id, gain(arena, 7))
            await submit(here, arena.tournament_id, VoidCompetition(competition_id=match))
            assert live.followers == []
        assert await total_of(there, arena) == 7


async def test_without_the_check_they_would_not_be(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control of the claim above."""
    monkeypatch.setattr(CompetitionVoided, "exact", False)
    async with desks_at(dsn) as (here, there):
        arena = await open_arena(here.database)
        match = await matched(here, arena)
        async with here.live_pool.pinned(arena.tournament_id):
            await submit(there, arena.tournament_id, gain(arena, 5, match))
            await submit(here, arena.tournament_id, VoidCompetition(competition_id=match))
        assert await total_of(there, arena) == 5


async def test_voiding_amid_a_stream_of_points_leaves_nothing_of_the_competition(dsn: str) -> None:
    async with desks_at(dsn) as desks:
        arena = await open_arena(desks[0].database)
        match = await matched(desks[0], arena)
        free = refused = 0
        done = asyncio.Event()

        async def point(desk: Desk) -> None:
            nonlocal free, refused
            while not done.is_set():
                await submit(desk, arena.tournament_id, gain(arena, 1))
                free += 1
                try:
                    await submit(desk, arena.tournament_id, gain(arena, 1000, match))
                except Unacceptable:
                    refused += 1

        async def void() -> None:
            for n in range(10):
                desk = desks[n % 2]
                seen = free
                await until(lambda seen=seen: free > seen + 10)  # type: ignore[misc]
                await submit(desk, arena.tournament_id, VoidCompetition(competition_id=match))
                with pytest.raises(Conflict):
                    await submit(desk, arena.tournament_id, VoidCompetition(competition_id=match))
                if n < 9:
                    await submit(desk, arena.tournament_id, UnvoidCompetition(competition_id=match))
            done.set()

        await asyncio.gather(void(), *(point(desk) for desk in desks for _ in range(3)))
        assert await total_of(desks[0], arena) == await total_of(desks[1], arena) == free
        assert refused
        history = (await recorded(desks[0].database, arena.tournament_id))[1:]
        assert_each_voiding_reverses_all_there_was(history, match)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "faults", [[Fault.BEFORE], [Fault.AFTER], [Fault.NONE, Fault.AFTER], [Fault.NONE] * 2 + [Fault.AFTER]]
)
async def test_a_voiding_whose_answer_is_lost_is_recorded_once(dsn: str, faults: list[Fault]) -> None:
    """At its first sending, at the one that is overtaken under the lock, and at the one after that."""
    async with desk_at(dsn) as there, proxy(dsn) as between, desk_at(between.dsn) as here:
        arena = await open_arena(there.database)
        match = await matched(there, arena)
        async with here.live_pool.pinned(arena.tournament_id):
            await submit(there, arena.tournament_id, gain(arena, 5, match))
            between.strike(*faults)
            await submit(here, arena.tournament_id, VoidCompetition(competition_id=match))
        assert between.faults_left == 0
        assert await total_of(there, arena) == 0
        kinds = [type(event) for event in (await recorded(there.database, arena.tournament_id))[5:]]
        assert kinds == [PointsAdded, CompetitionVoided, PointsReversed]


async def test_a_voiding_under_the_lock_whose_commit_is_lost_is_recorded_once(dsn: str) -> None:
    async with desk_at(dsn) as there, proxy(dsn) as between, desk_at(between.dsn) as here:
        arena = await open_arena(there.database)
        match = await matched(there, arena)
        async with here.live_pool.pinned(arena.tournament_id):
            await submit(there, arena.tournament_id, gain(arena, 5, match))
            between.lose_commits(1)
            await submit(here, arena.tournament_id, VoidCompetition(competition_id=match))
        assert not between.loses_commit()
        assert await total_of(there, arena) == 0
        kinds = [type(event) for event in (await recorded(there.database, arena.tournament_id))[5:]]
        assert kinds == [PointsAdded, CompetitionVoided, PointsReversed]


async def test_a_voiding_whose_client_has_gone_still_reverses_what_came_meanwhile(
    dsn: str, owner: asyncpg.Connection
) -> None:
    """A foreign transaction holds the lock and adds points; the voiding's session is ended, its client goes away."""
    async with desk_at(dsn) as desk:
        arena = await open_arena(desk.database)
        match = await matched(desk, arena)
        await submit(desk, arena.tournament_id, gain(arena, 5, match))
        async with holding(dsn, HOLD_HEAD, arena.tournament_id) as elsewhere:
            voiding = asyncio.create_task(
                submit(desk, arena.tournament_id, VoidCompetition(competition_id=match), key="void")
            )
            (pid, *_) = await until(lambda: waiting_for_locks(owner, "append_block"))
            await end_session(owner, pid)
            await until(lambda: sent_again(owner, pid))
            voiding.cancel()
            await asyncio.wait([voiding])
            points = PointsAdded(ranking_id=arena.ranking_id, deltas=gain(arena, 7, match).deltas, competition_id=match)
            await record(elsewhere, arena.tournament_id, points)
            await elsewhere.execute("COMMIT; BEGIN")
        await until(lambda: is_voided(desk, arena, match))
        assert await total_of(desk, arena) == 0
        await submit(desk, arena.tournament_id, UnvoidCompetition(competition_id=match))
        assert await total_of(desk, arena) == 12


async def sent_again(owner: asyncpg.Connection, pid: int) -> bool:
    return bool(set(await waiting_for_locks(owner, "append_block")) - {pid})


async def is_voided(desk: Desk, arena: Arena, match: CompetitionId) -> bool:
    async with desk.live_pool.pinned(arena.tournament_id) as live:
        await desk.live_pool.make_current(live)
        return live.board.competitions[match].voided_at is not None


def assert_each_voiding_reverses_all_there_was(history: list[Event], match: CompetitionId) -> None:
    """`history` begins at sequence 2."""
    turns = [n for n, event in enumerate(history) if isinstance(event, CompetitionVoided | CompetitionUnvoided)]
    assert len(turns) == 19
    for n in turns:
        expected = caused_of(history[:n], match)
        found = list(takewhile(lambda event: isinstance(event, PointsReversed), history[n + 1 :]))
        assert [event.reverses for event in reversals(found)] == list(expected)
        sign = -1 if isinstance(history[n], CompetitionVoided) else 1
        for reversal in reversals(found):
            original = expected[reversal.reverses]
            assert [(d.competitor_id, d.unity_id, sign * d.amount) for d in original.deltas] == [
                (d.competitor_id, d.unity_id, d.amount) for d in reversal.deltas
            ]


def reversals(found: Iterable[Event]) -> list[PointsReversed]:
    return [event for event in found if isinstance(event, PointsReversed)]


async def test_the_points_of_a_competition_are_found_however_many_are_read_at_once(dsn: str, bounds: Bounds) -> None:
    async with desk_at(dsn) as desk:
        arena = await open_arena(desk.database)
        match = await matched(desk, arena)
        other = await matched(desk, arena)
        for amount in range(1, 8):
            await submit(desk, arena.tournament_id, gain(arena, amount, match if amount % 2 else other))
        history = (await recorded(desk.database, arena.tournament_id))[1:]
        for at_once in (1, 3, 100):
            bounds(CHUNK_EVENTS_MAX=at_once, CHUNK_BYTES_MAX=1 if at_once == 3 else 10_000)
            async with desk.database.connection() as connection:
                found = [
                    recorded.sequence
                    async for recorded in reading.points_of(connection, arena.tournament_id, match, len(history) + 1)
                ]
            assert found == list(caused_of(history, match))
            assert len(found) == 4


async def test_a_competition_whose_id_begins_like_anothers_is_not_taken_for_it(dsn: str) -> None:
    async with desk_at(dsn) as desk:
        arena = await open_arena(desk.database)
        short, long = CompetitionId(10**12), CompetitionId(10**13)
        async with desk.database.connection() as connection:
            for match in (short, long):
                await record(connection, arena.tournament_id, CompetitionAdded(competition_id=match, group_id=1))
        await submit(desk, arena.tournament_id, gain(arena, 1, short))
        await submit(desk, arena.tournament_id, gain(arena, 10, long))
        await submit(desk, arena.tournament_id, VoidCompetition(competition_id=short))
        assert await total_of(desk, arena) == 10
        points = [e for e in await recorded(desk.database, arena.tournament_id) if isinstance(e, Points)]
        assert len(points) == 3
