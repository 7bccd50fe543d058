"""Conditional changes: what was changed by somebody else meanwhile is not overwritten, whichever process is asked."""

import asyncio
import re
from random import Random
from typing import Final

import asyncpg
import pytest
from hypothesis import Phase, given, settings

from api.desk.case import Receipt
from api.desk.conditions import IF_MATCH_TAGS_MAX, Condition, own_tag
from api.desk.desk import Desk
from api.interface.declarations import Read, name_of
from api.interface.operations import OPERATIONS
from api.interface.rendering import TaggedBody
from api.interface.resources.competitions import CompetitionQuestion
from api.interface.resources.competitors import CompetitorQuestion
from api.interface.resources.rankings import RankingQuestion
from engine.database.pool import Database
from engine.domain import events
from engine.domain.commands import ChangeCompetition, Command, UnvoidCompetition, VoidCompetition
from engine.domain.errors import PreconditionFailed
from engine.domain.events import CompetitionAdded, CompetitionChanged, CompetitionVoided, Event, PointsAdded, Recorded
from engine.domain.terms import OPERATOR, CompetitionId, CompetitorId, TournamentId
from engine.log.heads import Head
from projections.board.board import Board
from projections.live.tournament import LiveTournament
from projections.tables.worker import Worker
from tests.api.asking import WRITES, Log, ask, example_of, keyed, path_of, refused, with_points
from tests.api.rendered import BY_NAME, answered
from tests.desks import (
    HOLD_HEAD,
    Arena,
    desk_at,
    matched,
    open_arena,
    record,
    recorded,
    submit,
    until,
    waiting_for_locks,
)
from tests.histories import logs, unhurried
from tests.proxy import Fault, proxy
from tests.restoring import copied
from tests.service import (
    FORM,
    Client,
    Season,
    Service,
    create_ranking,
    listed,
    make_token,
    register,
    sent_raw,
    serve,
    slug_of,
)
from tests.tournaments import open_new_tournament

CHANGES: Final = [name for name in WRITES if "{" in name]
CREATIONS: Final = [name for name in WRITES if "{" not in name]
SHOWS: Final = [name for name in map(name_of, OPERATIONS) if isinstance(BY_NAME[name], Read) and "{" in name]
every_change = pytest.mark.parametrize("name", CHANGES)


@pytest.fixture
async def season(season: Season) -> Season:
    return await with_points(season)


def if_match(*tags: str, key: str | None = None) -> dict[str, str]:
    return {"If-Match": ", ".join(tags)} | ({} if key is None else {"Idempotency-Key": key})


def addressed(name: str, season: Season) -> str:
    """The path of the resource that an operation changes."""
    kind, number = path_of(name, season).removesuffix(".json").split("/")[:2]
    return f"{kind}/{number}.json"


async def tag_of(client: Client, path: str) -> str:
    """The ETag of the resource, as it is given."""
    answer = await client.get(path)
    assert answer.status == 200
    return answer.headers["ETag"]


async def touch(season: Season, client: Client, name: str) -> None:
    """Has the client change what the operation addresses, and leave it so that the operation is accepted."""
    path = addressed(name, season)
    if path.startswith("rankings") and "reopen" in name:
        answers = [await client.put(path.replace(".json", f"/{how}.json")) for how in ("reopen", "close")]
    elif path.startswith("rankings"):
        answers = [await client.post(path.replace(".json", "/unities.json"), {"name": "meanwhile"})]
    else:
        answers = [await client.put(path, {"location" if "competitions" in path else "name": "Meanwhile"})]
    assert {answer.status for answer in answers} == {200}


# ── A change that somebody else's would have been lost by ───────────────────────────────────────────────


async def test_two_who_each_add_one_by_sending_the_whole_list_lose_nobody(season: Season, peers_client: Client) -> None:
    fourth, fifth = await register(season.client, "Dee", "Eve")
    path = f"{season.path}.json"

    async def add(client: Client, competitor_id: int) -> int:
        """Until it is done; returns how often it was refused."""
        for refusals in range(10):
            seen = await client.get(path)
            ids = [competitor["id"] for competitor in seen.json["ranking"]["competitors"]]
            both_have_seen.append(competitor_id)
            await until(lambda: len(set(both_have_seen)) == 2)
            answer = await client.put(
                path,
                {"main_unity_name": "points", "participants": listed([*ids, competitor_id])},
                if_match(seen.headers["ETag"]),
            )
            if answer.status == 200:
                return refusals
            refused(answer, 412)
        raise AssertionError("it was never done")

    both_have_seen: list[int] = []
    refusals = await asyncio.gather(add(season.client, fourth), add(peers_client, fifth))
    assert sorted(refusals) == [0, 1]
    ranking = (await season.client.get(path)).json["ranking"]
    assert {competitor["id"] for competitor in ranking["competitors"]} == {*season.ids, fourth, fifth}


@pytest.mark.one_in(4)
@every_change
async def test_what_is_as_it_was_seen_is_changed_by_whichever_service(
    season: Season, peers_client: Client, name: str
) -> None:
    tag = await tag_of(season.client, addressed(name, season))
    assert await tag_of(peers_client, addressed(name, season)) == tag
    assert (await ask(name, season, peers_client, if_match(tag))).status == 200


@pytest.mark.one_in(4)
@every_change
async def test_what_somebody_else_has_changed_is_not(season: Season, peers_client: Client, log: Log, name: str) -> None:
    """The service that is asked has not seen the other change: it judges by what it has, and is overtaken."""
    path = addressed(name, season)
    seen = await tag_of(season.client, path)
    await touch(season, peers_client, name)
    before = await log.length()
    for headers in (if_match(seen), if_match(seen, key="k")):
        answer = await ask(name, season, season.client, headers)
        assert refused(answer, 412) == []
        assert "read it again" in answer.json["message"]
        assert await log.length() == before
    now = await tag_of(season.client, path)
    assert now != seen
    done = await ask(name, season, season.client, if_match(now, key="k"))  # which the refusal has not used up
    assert (done.status, "Idempotency-Replayed" in done.headers) == (200, False)


@pytest.mark.one_in(4)
@every_change
async def test_without_the_header_everything_is_as_before(season: Season, peers_client: Client, name: str) -> None:
    await touch(season, peers_client, name)
    assert (await ask(name, season, season.client)).status == 200


# ── Tags ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.one_in(4)
@every_change
async def test_of_a_tag_the_part_before_the_dash_counts_and_one_of_several_is_enough(
    season: Season, log: Log, subtests: pytest.Subtests, name: str
) -> None:
    tag = await tag_of(season.client, addressed(name, season))
    assert re.fullmatch(r'"[0-9]+\.[0-9a-f]+-[0-9a-f]{16}"', tag)
    own = tag[1:-1].partition("-")[0]
    before = await log.length()
    for wrong in (
        *(f"W/{tag}", f'"{own}x"', f'"{own[:-1]}"', f'"x{own}"', '""', '"*"', '"-"', '"1"'),
        *(f'"x", "y",W/{tag}', f'"{own}.{own}"', f'"-{own}"', f'"{own[1:]}"'),
    ):
        with subtests.test(wrong):
            answer = await ask(name, season, season.client, if_match(wrong))
            refused(answer, 412)
            assert ("A weak ETag" in answer.json["message"]) == (wrong == f"W/{tag}")
            assert await log.length() == before
    right = Random(name).choice([f'"{own}"', f'"{own}-gzip"', f'"x",{tag}', f'{tag} , W/"y"', f'W/{tag},"{own}-"', "*"])
    assert (await ask(name, season, season.client, if_match(right))).status == 200


async def test_what_is_no_list_of_tags_is_400(season: Season, log: Log, subtests: pytest.Subtests) -> None:
    for name in CHANGES:
        with subtests.test(name):
            before, tag = await log.length(), await tag_of(season.client, addressed(name, season))
            for wrong in (
                "",
                tag[1:-1],
                tag[:-1],
                f"{tag} {tag}",
                f"{tag},",
                f",{tag}",
                f"*, {tag}",
                "w/" + tag,
                '"a b"',
                "**",
            ):
                with subtests.test(wrong):
                    refused(await ask(name, season, season.client, if_match(wrong)), 400, "If-Match")
                    assert await log.length() == before


async def test_the_tags_named_are_limited(season: Season) -> None:
    path = addressed(CHANGES[0], season)
    others = [f'"{n}"' for n in range(IF_MATCH_TAGS_MAX - 1)]
    tag = await tag_of(season.client, path)
    assert (await ask(CHANGES[0], season, season.client, if_match(*others, tag))).status == 200
    refused(await ask(CHANGES[0], season, season.client, if_match(*others, tag, '"x"')), 400, "If-Match")


async def test_a_list_may_come_in_several_lines(service: Service, season: Season) -> None:
    tag = await tag_of(season.client, f"competitors/{season.ids[0]}.json")
    for lines, expected in (
        (["*", tag], 400),
        (['"a"', '"b"'], 412),
        (['"a"', tag], 200),
    ):
        request = (
            f"PUT /tournament/{season.client.tournament}/competitors/{season.ids[0]}.json HTTP/1.1\r\nHost: a\r\n"
            f"Content-Type: {FORM}\r\nAuthorization: Bearer {season.client.token}\r\nContent-Length: 8\r\n"
            + "".join(f"If-Match: {line}\r\n" for line in lines)
            + "\r\nname=Ada"
        )
        status, _ = await sent_raw(service, request.encode()) or (0, b"")
        assert status == expected


async def test_a_creation_has_nothing_to_be_compared_with(season: Season, log: Log, subtests: pytest.Subtests) -> None:
    for name in CREATIONS:
        with subtests.test(name):
            before = await log.length()
            for tag in ("*", '"x"', "x"):
                (message,) = refused(await ask(name, season, season.client, if_match(tag)), 400, "If-Match")
                assert message.endswith("leave it out")
            assert await log.length() == before


@pytest.mark.one_in(4)
@every_change
async def test_what_does_not_exist_is_404_whatever_is_demanded_of_it(season: Season, name: str) -> None:
    tag = await tag_of(season.client, addressed(name, season))
    path = re.sub(r"{\w+}", str(2**62), name.split()[1])
    send = season.client.post if name.startswith("POST") else season.client.put
    for headers in (if_match(tag), if_match("*"), if_match('"x"')):
        refused(await send(path, example_of(name), headers), 404)


async def test_a_condition_that_does_not_hold_is_reported_before_anything_else(season: Season) -> None:
    """Whatever else is wrong would be said of another state than its sender has seen."""
    add = f"rankings/{season.closed_ranking_id}/unities.json"
    refused(await season.client.post(add, {"name": "goals"}, if_match('"x"')), 412)
    refused(await season.client.post(add, {"name": "goals"}, if_match("*")), 409)
    form = {"main_unity_name": "fouls", "participants": listed(season.ids)}
    refused(await season.client.put(f"{season.path}.json", form, if_match('"x"')), 412)
    refused(await season.client.put(f"{season.path}.json", form, if_match("*")), 422, "main_unity_name")


# ── What changes a tag ──────────────────────────────────────────────────────────────────────────────────


async def own(client: Client, path: str) -> str:
    return (await tag_of(client, path))[1:-1].partition("-")[0]


async def test_points_change_no_tag(season: Season) -> None:
    paths = [addressed(name, season) for name in SHOWS]
    before = [await tag_of(season.client, path) for path in paths]
    await ask("PUT rankings/{ranking_id}/add.json", season, season.client, competition_id=season.competition_id)
    assert [await tag_of(season.client, path) for path in paths] == before


async def test_what_is_embedded_changes_the_answers_tag_and_no_condition(season: Season) -> None:
    """A new name of Ada is to be seen in her rankings and competitions; a new competitor below her moves bounds."""
    ada, ben, _ = season.ids
    paths = [f"{season.path}.json", f"competitions/{season.competition_id}.json", f"competitors/{ben}.json"]
    for change in ("name", "bounds"):
        before = [await season.client.get(path) for path in paths]
        if change == "name":
            await season.client.put(f"competitors/{ada}.json", {"name": "Adelaide"})
        else:
            await season.client.post("competitors.json", {"name": "Below", "parent": ada})
        after = [
            await season.client.get(path, {"If-None-Match": b.headers["ETag"]})
            for path, b in zip(paths, before, strict=True)
        ]
        for path, was, now in zip(paths, before, after, strict=True):
            if change == "name" and path == paths[2]:
                assert now.status == 304
                continue
            assert (now.status, now.body != was.body) == (200, True)
            assert now.headers["ETag"] != was.headers["ETag"]
            assert now.headers["ETag"].partition("-")[0] == was.headers["ETag"].partition("-")[0]
    for path, was in zip(paths, before, strict=True):
        form = {"main_unity_name": "points", "participants": listed(season.ids)} if "rankings" in path else {}
        assert (await season.client.put(path, form, if_match(was.headers["ETag"]))).status == 200


def changed_by(event: Event) -> tuple[str, int] | None:
    """The resource whose own fields, list or unities the event may have changed."""
    match event:
        case events.CompetitorRegistered() | events.CompetitorChanged() | events.CompetitorErased():
            return "competitor", event.competitor_id
        case (
            CompetitionAdded()
            | CompetitionChanged()
            | CompetitionVoided()
            | events.CompetitionUnvoided()
            | events.CompetitorsStruck()
            | events.CompetitorsUnstruck()
        ):
            return "competition", event.competition_id
        case (
            events.RankingCreated()
            | events.RankingModified()
            | events.RankingInformationChanged()
            | events.ParticipantsChanged()
            | events.UnityAdded()
            | events.UnityChanged()
            | events.ClassificationDeclared()
            | events.ScoringDeclared()
            | events.RankingClosed()
            | events.RankingReopened()
            | events.RankingHidden()
            | events.RankingShown()
        ):
            return "ranking", event.ranking_id
    return None


def shown(live: LiveTournament) -> dict[tuple[str, int], tuple[str, bytes]]:
    """ETag and body of every resource."""
    board = live.board
    all_of = {
        "competitor": (board.competitors, CompetitorQuestion),
        "competition": (board.competitions, CompetitionQuestion),
        "ranking": (board.rankings, RankingQuestion),
    }
    found = {}
    for kind, (those, question) in all_of.items():
        for resource_id in those:
            listing = answered(live, f"GET {kind}s/{{{kind}_id}}.json", question(resource_id))
            assert isinstance(listing, TaggedBody)
            found[kind, resource_id] = (listing.etag, listing.body)
    return found


def is_forgotten(live: LiveTournament, competitor_id: int) -> bool:
    """Whether a later event erases the competitor, so that nothing changes it before."""
    return live.board.competitors[CompetitorId(competitor_id)].erased == 0


@settings(unhurried, max_examples=25, phases=[p for p in Phase if p not in (Phase.shrink, Phase.explain)])
@given(logs())
def test_own_tags_are_equal_just_where_no_event_that_changes_the_resource_lies_between(log: list[Recorded]) -> None:
    """And a whole ETag stands for one body."""
    live = LiveTournament(TournamentId(1), Head(log[0].sequence, b""), Board())
    own_tags: dict[tuple[str, int], list[str]] = {}
    bodies: dict[tuple[tuple[str, int], str], bytes] = {}
    for fresh in log[1:]:
        live.fold([fresh], Head(fresh.sequence, b""))
        for which, (etag, body) in shown(live).items():
            assert bodies.setdefault((which, etag), body) == body
            tag, earlier = etag.partition("-")[0], own_tags.setdefault(which, [])
            if isinstance(fresh.event, events.CompetitorChanged) and is_forgotten(live, fresh.event.competitor_id):
                assert tag == earlier[-1]
                continue
            is_ordered = isinstance(fresh.event, events.RankingsOrdered) and which[0] == "ranking"
            if which == changed_by(fresh.event) or is_ordered:
                assert tag not in earlier
                earlier.append(tag)
            assert tag == earlier[-1]


@pytest.mark.parametrize("name", SHOWS)
async def test_a_tag_is_the_same_when_it_is_read_from_the_tables(
    season: Season, dsn: str, database: Database, name: str
) -> None:
    """Also where the worker has only the last event to fold."""
    path = addressed(name, season)
    assert await Worker(database).catch_up() > 0
    await touch(season, season.client, name)
    tag = await tag_of(season.client, path)
    assert await Worker(database).catch_up() > 0
    async with serve(dsn) as cold:
        assert await tag_of(cold.client(season.client.tournament, season.client.token), path) == tag


async def test_after_a_restore_no_tag_stands_for_another_state(cluster: str, dsn: str) -> None:
    """The same sequence is given again then, to another change."""
    async with serve(dsn) as service:
        token = await make_token(service.database)
        slug = await slug_of(service.database, await open_new_tournament(service.database, actor=OPERATOR))
        client = service.client(slug, token)
        (ada,) = await register(client, "Ada")
        ranking = (await create_ranking(client, [ada]))["id"]
        match = (await client.post("competitions.json", {"group_id": 1})).json["competition"]["id"]
    paths = [f"rankings/{ranking}.json", f"competitors/{ada}.json", f"competitions/{match}.json"]

    async def change(dsn: str, word: str) -> tuple[list[int], list[str]]:
        """Changes each; returns sequences and tags."""
        async with serve(dsn) as service:
            client = service.client(slug, token)
            changes = [
                await client.put(paths[0], {"name": word, "main_unity_name": "points", "participants": ada}),
                await client.put(paths[1], {"name": word}),
                await client.put(paths[2], {"location": word}),
            ]
            sequences = [int(answer.headers["Tallybook-Sequence"]) for answer in changes]
            return sequences, [await tag_of(client, path) for path in paths]

    async with copied(dsn) as backup:
        lost_sequences, lost_tags = await change(dsn, "Lost")
        sequences, tags = await change(backup, "Kept")
        assert sequences == lost_sequences
        async with serve(backup) as service:
            client = service.client(slug, token)
            for path, lost in zip(paths, lost_tags, strict=True):
                form = {"main_unity_name": "points", "participants": ada} if path == paths[0] else {}
                refused(await client.put(path, form, if_match(lost)), 412)
            assert [await tag_of(client, path) for path in paths] == tags


# ── Keys ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.one_in(4)
@every_change
async def test_a_repeat_is_answered_as_accepted_though_its_own_effect_has_changed_the_tag(
    season: Season, peers_client: Client, log: Log, name: str
) -> None:
    """Whatever it demands by now: the condition is no part of the request that the key stands for."""
    tag = await tag_of(season.client, addressed(name, season))
    first = await ask(name, season, season.client, if_match(tag, key="k"))
    assert first.status == 200
    before = await log.length()
    for client in (season.client, peers_client):
        for headers in (if_match(tag, key="k"), if_match('"x"', key="k"), if_match("*", key="k"), keyed("k")):
            repeat = await ask(name, season, client, headers)
            assert (repeat.status, repeat.body) == (200, first.body)
            assert repeat.headers["Idempotency-Replayed"] == "true"
    assert await log.length() == before


# ── Races ───────────────────────────────────────────────────────────────────────────────────────────────

ROUNDS: Final = 40
RIVALS: Final = 8
OFTEN: Final = [
    name
    for name in CHANGES
    if not re.search(r"/(close|reopen|void|unvoid|strike|unstrike|add|visibility|reverse|erase)\.json", name)
]
"""Changes that can be repeated, and change their resource each time."""


@pytest.mark.one_in(6)
@pytest.mark.parametrize("name", OFTEN)
async def test_of_many_with_the_same_tag_one_makes_its_change(
    season: Season, peers_client: Client, log: Log, name: str
) -> None:
    """By two services, while others add points, so that what must be exact is overtaken by them."""
    path = addressed(name, season)
    add = "PUT rankings/{ranking_id}/add.json"
    for number in range(ROUNDS):
        tag, before = await tag_of(season.client, path), await log.length()
        more: dict[str, object] = {"name": f"u{number}"} if "unities" in name else {}
        if name.endswith("{ranking_id}.json"):
            more = {"participants": listed(season.ids)}  # or the points would be for nobody
        answers = await asyncio.gather(
            *(
                ask(name, season, client, if_match(tag), **more)
                for client in [season.client, peers_client] * (RIVALS // 2)
            ),
            *(ask(add, season, client) for client in [season.client, peers_client] * 2),
        )
        assert sorted(answer.status for answer in answers[:RIVALS]) == [200] + [412] * (RIVALS - 1)
        assert [answer.status for answer in answers[RIVALS:]] == [200] * 4
        assert await log.length() == before + 5


async def condition_of(desk: Desk, arena: Arena, match: CompetitionId) -> Condition:
    """That the competition stays as it is now."""
    async with desk.live_pool.pinned(arena.tournament_id) as live:
        await desk.live_pool.make_current(live)
        return Condition("competition", (match,), frozenset([own_tag(live.board.competitions[match])]))


async def submit_if(desk: Desk, arena: Arena, command: Command, condition: Condition) -> Receipt:
    async with desk.live_pool.pinned(arena.tournament_id) as live:
        return await desk.submit(live, command, actor=OPERATOR, condition=condition)


@pytest.mark.parametrize("kind", [ChangeCompetition, VoidCompetition])
async def test_what_lands_while_the_change_waits_for_the_lock_is_seen(
    dsn: str, owner: asyncpg.Connection, kind: type[ChangeCompetition | VoidCompetition]
) -> None:
    async with desk_at(dsn) as desk:
        arena = await open_arena(desk.database)
        match = await matched(desk, arena)
        condition = await condition_of(desk, arena, match)
        foreign = await asyncpg.connect(dsn, server_settings={"search_path": "tallybook"})
        try:
            for event, lost in ((points_of(arena), False), (moved(match), True)):
                transaction = foreign.transaction()
                await transaction.start()
                await foreign.execute(HOLD_HEAD, arena.tournament_id)
                asking = asyncio.create_task(submit_if(desk, arena, kind(competition_id=match), condition))
                await until(lambda: waiting_for_locks(owner, "append_block"))
                await record(foreign, arena.tournament_id, event)
                await transaction.commit()
                if lost:
                    with pytest.raises(PreconditionFailed):
                        await asking
                else:
                    await asking
                    condition = await condition_of(desk, arena, match)
                    if kind is VoidCompetition:
                        await submit(desk, arena.tournament_id, UnvoidCompetition(competition_id=match))
                        condition = await condition_of(desk, arena, match)
        finally:
            await foreign.close()
        kinds = [type(event) for event in await recorded(desk.database, arena.tournament_id)]
        assert kinds[-1] is CompetitionChanged
        assert kinds.count(CompetitionVoided) == (kind is VoidCompetition)


def points_of(arena: Arena) -> Event:
    return PointsAdded(ranking_id=arena.ranking_id, deltas=arena.points().deltas)


def moved(match: CompetitionId) -> Event:
    return CompetitionChanged(competition_id=match, location="elsewhere")


@pytest.mark.one_in(2)
@pytest.mark.parametrize("overtaken", [False, True])
@pytest.mark.parametrize(
    "faults", [[Fault.BEFORE], [Fault.AFTER], [Fault.NONE, Fault.AFTER], [Fault.NONE] * 2 + [Fault.AFTER]]
)
async def test_a_change_whose_answer_is_lost_is_not_refused_for_its_own_effect(
    dsn: str, faults: list[Fault], overtaken: bool
) -> None:
    async with desk_at(dsn) as there, proxy(dsn) as between, desk_at(between.dsn) as here:
        arena = await open_arena(there.database)
        match = await matched(there, arena)
        async with here.live_pool.pinned(arena.tournament_id):
            condition = await condition_of(here, arena, match)
            if overtaken:
                await submit(there, arena.tournament_id, arena.points())
            between.strike(*faults)
            await submit_if(here, arena, ChangeCompetition(competition_id=match, location="Hall"), condition)
            with pytest.raises(PreconditionFailed):
                await submit_if(here, arena, ChangeCompetition(competition_id=match), condition)
        kinds = [type(event) for event in await recorded(there.database, arena.tournament_id)]
        assert kinds.count(CompetitionChanged) == 1
