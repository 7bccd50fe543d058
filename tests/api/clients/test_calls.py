"""The Python client: what it asks and reads is what the service takes and answers; a change counts once."""

import asyncio
import inspect
import itertools
import re
import time
from collections.abc import AsyncIterator
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any, get_args
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tallybook_client
from tallybook_client import (
    Around,
    AtVersion,
    CallFailed,
    Client,
    Conflict,
    Criterion,
    Delta,
    Done,
    NewCompetition,
    NewCompetitor,
    NotFound,
    Only,
    OutcomeUnknown,
    Patience,
    PreconditionFailed,
    Slice,
    SyncClient,
    Top,
    Unacceptable,
    Unauthenticated,
    Unavailable,
    new_key,
    shapes,
)
from tests.api.clients.conftest import AT_ONCE
from tests.api.clients.gateway import BUSY_RETRY_AFTER_SECONDS, Fate, Gateway, gateway
from tests.api.rendered import openapi_document
from tests.service import Client as PlainClient
from tests.service import Season, Service, serve, totals

ROOT = Path(__file__).parents[3]
LOST = {Fate.CUT_AFTER, Fate.BAD_GATEWAY_AFTER}
"""The service has answered, and the client does not know."""
IN_DOUBT = LOST | {Fate.CUT_BEFORE}


async def every(items: AsyncIterator[Any]) -> list[Any]:
    return [item async for item in items]


# ── What it asks and reads ──────────────────────────────────────────────────────────────────────────────


async def test_a_tournament_from_its_first_competitor_to_its_explanation(  # noqa: PLR0915 - a story
    tallybook: Client, client: PlainClient
) -> None:
    slug = client.tournament
    ada = (await tallybook.register_competitor(slug, NewCompetitor("Ada", tags=["junior"], color="c0ffee"))).id
    ben, cleo = (
        await tallybook.register_competitors(slug, [NewCompetitor("Ben"), NewCompetitor("Cleo", parent=ada)])
    ).ids
    await tallybook.change_competitor(slug, ben, name="Benno")
    made = await tallybook.create_ranking(slug, "Ladder", "points", [ada, ben], description="of the spring")
    ranking, points = made.id, made.unity_id
    fouls = (await tallybook.add_unity(slug, ranking, "fouls", sort="ASC")).id
    await tallybook.change_unity(slug, ranking, fouls, name="cards")
    await tallybook.change_participants(slug, ranking, add=[cleo])
    await tallybook.change_ranking_information(slug, ranking, name="Spring ladder")
    kick_off = datetime(2026, 5, 2, 17, tzinfo=timezone(timedelta(hours=2)))
    duel = NewCompetition(1, [ada, ben], started_at=kick_off, location="Cork", result="1:0", winner=ada)
    duel_id = (await tallybook.add_competition(slug, duel)).id
    (sprint_id,) = (await tallybook.add_competitions(slug, [NewCompetition(2, [ada, ben, cleo])])).ids
    await tallybook.change_competition(slug, sprint_id, result={ada: "9.8 s"}, started_at=kick_off)
    done = await tallybook.add_points(
        slug, ranking, [Delta(ada, points, 3), Delta(ada, fouls, 1)], competition_id=duel_id
    )
    await tallybook.add_points_to_rankings(slug, {ranking: [Delta(ben, points, 2)]}, reason="fair play")
    await tallybook.declare_classification(slug, ranking, [Criterion(points), Criterion(fouls)])

    assert [one.name for one in await every(tallybook.list_competitors(slug))] == ["Ada", "Benno", "Cleo"]
    assert [one.id for one in await every(tallybook.list_competitors(slug, tag="junior"))] == [ada]
    assert (await tallybook.show_competitor(slug, cleo)).level == 1
    await tallybook.change_competitor(slug, cleo, parent=None)
    assert (await tallybook.show_competitor(slug, cleo)).level == 0
    await tallybook.change_competitor(slug, ada, tags=[], name="Ada")
    assert not await every(tallybook.list_competitors(slug, tag="junior"))
    await tallybook.change_competitor(slug, ada, tags=["junior"])
    await tallybook.change_competitor(slug, cleo, parent=ada)
    competition = await tallybook.show_competition(slug, duel_id)
    assert competition.started_at == kick_off
    assert competition.started_at.tzinfo is UTC
    assert competition.participants[0].winner
    timed = await every(tallybook.list_competitions(slug, since=kick_off, until=kick_off, has_result=True))
    assert [one.result for one in timed] == ["1:0", {ada: "9.8 s"}]
    assert [one.result for one in await tallybook.list_results(slug, sprint_id)] == [None, {ada: "9.8 s"}]
    (brief,) = await tallybook.list_rankings(slug)
    assert (brief.name, brief.competitors) == ("Spring ladder", None)
    football = (await tallybook.list_kinds(slug))["football"]
    assert football.criteria[0] == {"unity": football.unities[0]["name"]} == {"unity": "points"}
    whole = await tallybook.show_ranking(slug, ranking, with_competitors=True)
    assert [one.id for one in whole.competitors or ()] == [ada, ben, cleo]
    assert [unity.name for unity in whole.unities] == ["points", "cards"]

    standings = await tallybook.show_standings(slug, ranking, unity_id=points)
    assert [(line.competitor_id, line.total) for line in standings.unities[0].competitors_ranking] == [
        (ada, 3), (ben, 2), (cleo, 0)
    ]  # fmt: skip
    windows = [Top(1), Around(ada, 0), Only((ada,)), Slice(0, 1)]
    assert len({(await tallybook.show_standings(slug, ranking, one)).unities for one in windows}) == 1
    then = await tallybook.show_standings(slug, ranking, Only((ben,)), at=done.sequence, since=done.sequence - 1)
    assert then.unities[0].competitors_ranking[0].total == 0
    assert then.unities[0].competitors_ranking[0].moved == -1
    then = await tallybook.show_standings(slug, ranking, Only((ben,)), since_on=date(2024, 3, 1))
    assert then.unities[0].competitors_ranking[0].moved == -1
    assert (await tallybook.show_standings(slug, ranking, at=AtVersion(points, 1))).unities[0].version == 1
    assert (await tallybook.show_standings(slug, ranking, at=standings.recorded_at)).sequence >= standings.sequence
    assert [line.total for line in await every(tallybook.iterate_standings(slug, ranking))] == [3, 2, 0]
    classification = await tallybook.show_classification(slug, ranking, Top(2))
    assert [line.values for line in classification.standings] == [(3, None), (2, None)]
    form = await tallybook.show_form(slug, ranking, Only((ada,)), last=1)
    assert form.form[0].competitions[0].sum == 3
    leaders = await tallybook.show_leaders(slug, ranking, clock="world", at=done.sequence, until=date(2999, 1, 1))
    assert [(one.competitors, one.until) for one in leaders.reigns] == [((ada,), None)]
    assert leaders.times[0].runs == 1
    (of_ada,) = await every(tallybook.show_competitor_standings(slug, ada))
    assert [unity.total for unity in of_ada.unities] == [3, 1]
    exported = await every(tallybook.export_competitor(slug, ada))
    assert exported[0].event["name"] == "Ada"
    history = await every(tallybook.list_history(slug, ranking, unity=points, first=done.sequence))
    assert [(line.competitor_id, line.delta, line.reason) for line in history] == [
        (ada, 3, None),
        (ben, 2, "fair play"),
    ]
    explanation = await tallybook.explain(slug, ranking, ada)
    assert explanation.end.total == 3
    by_date = await tallybook.explain(slug, ranking, ada, on=kick_off.date())
    assert (by_date.end.total, by_date.steps[-1].took_place) == (3, kick_off)
    assert explanation.classification is not None
    (undone,) = await tallybook.preview_reverse_points(slug, ranking, done.sequence)
    assert {move.total_after for move in undone.unities[0].moves} <= {0, 2}
    undo = await tallybook.reverse_points(slug, ranking, done.sequence)
    await tallybook.reverse_points(slug, ranking, undo.sequence)
    (preview,) = await tallybook.preview_strike_competitors(slug, duel_id, [ada])
    assert {move.total_after for move in preview.unities[0].moves if move.competitor_id == ada} == {0}
    await tallybook.strike_competitors(slug, duel_id, [ada])
    assert (await tallybook.show_competition(slug, duel_id)).struck == (ada,)
    assert await tallybook.preview_unstrike_competitors(slug, duel_id, [ada])
    await tallybook.unstrike_competitors(slug, duel_id, [ada])
    (preview,) = await tallybook.preview_void_competition(slug, duel_id)
    assert {move.total_after for move in preview.unities[0].moves if move.competitor_id == ada} == {0}
    await tallybook.void_competition(slug, duel_id)
    assert (await tallybook.show_competition(slug, duel_id)).voided_at is not None
    assert await tallybook.preview_unvoid_competition(slug, duel_id)
    await tallybook.unvoid_competition(slug, duel_id)
    scorings = [{"awards": [{"unity": points, "from": "outcome", "table": {"win": 5, "draw": 2, "loss": 0}}]}]
    (preview,) = await tallybook.preview_declare_scoring(slug, ranking, scorings)
    assert {move.total_after for move in preview.unities[0].moves if move.competitor_id == ada} == {8}
    await tallybook.declare_scoring(slug, ranking, scorings)
    declared = await tallybook.show_scoring(slug, ranking)
    assert declared.scorings == tuple(scorings)
    assert len(declared.unscored) == 1
    (preview,) = await tallybook.preview_change_competition(slug, duel_id, result="1:1", winner=None)
    assert {move.total_after for move in preview.unities[0].moves if move.competitor_id == ada} == {5}
    assert await tallybook.preview_change_participants(slug, ranking, remove=[ada])
    played = NewCompetition(1, [ben, cleo], result="1:1", key="M7")
    recorded = await tallybook.record_result(slug, played, ranking=ranking)
    again = await tallybook.record_result(slug, NewCompetition(1, result="0:1", key="M7"))
    assert (recorded.id, again.ranking) == (again.id, None)
    assert recorded.ranking is not None
    assert recorded.ranking["id"] == ranking
    await tallybook.declare_scoring(slug, ranking, [])
    await tallybook.modify_ranking(slug, ranking, "score", [ben, ada])
    await tallybook.close_ranking(slug, ranking)
    assert await tallybook.preview_reopen_ranking(slug, ranking) == ()
    await tallybook.reopen_ranking(slug, ranking)
    await tallybook.order_rankings(slug, [ranking])
    await tallybook.change_visibility(slug, ranking, hidden=True)
    await tallybook.change_visibility(slug, ranking, hidden=False)
    await tallybook.rename_tournament(slug, name="Cup 2026")
    await tallybook.change_presentation(slug, zone="Europe/Berlin", listed=True)
    await tallybook.change_presentation(slug, zone="")
    shown = await tallybook.show_presentation(slug)
    assert (shown.zone, shown.listed, shown.accent) == ("UTC", True, None)
    await tallybook.change_publication(slug, published=True)
    assert (await tallybook.show_publication(slug)).published
    await tallybook.archive_tournament(slug)
    assert (await tallybook.show_tournament(slug)).stage == "archived"
    await tallybook.restore_tournament(slug)
    assert (await tallybook.create_ticket(slug)).expires_at > datetime.now(UTC)
    with pytest.raises(NotFound, match="webhook"):
        await tallybook.test_webhook(slug, 1)
    await tallybook.delete_tournament(slug)
    with pytest.raises(NotFound):
        await tallybook.show_tournament(slug)


def _snake(operation_id: str) -> str:
    return re.sub("([A-Z])", r"_\1", operation_id).lower()


def test_every_operation_of_a_tournament_is_a_method_of_its_name() -> None:
    described = openapi_document()["paths"]
    of_tournaments = {path: operations for path, operations in described.items() if path.startswith("/tournament/")}
    names = {_snake(one["operationId"]) for operations in of_tournaments.values() for one in operations.values()}
    assert names - {"follow_events"} <= {*vars(Client)}
    assert {"follow", "add_competitions", "register_competitors", "iterate_standings"} <= {*vars(Client)}


def test_the_synchronous_face_has_every_method() -> None:
    methods = {name for name, it in vars(Client).items() if name[0] != "_" and callable(it)}
    assert methods == {name for name, it in vars(SyncClient).items() if name[0] != "_" and callable(it)}


RENAMED = {
    "Unity": "ListedUnity",
    "UnityStandings": "Unity",
    "Standing": "StandingLine",
    "Standings": "PastRanking",
    "Ranking": "ListedRanking",
}
"""What the client calls otherwise than the document: there, the shortest names are of the documented shapes."""
OURS = {Delta, NewCompetitor, NewCompetition, AtVersion, *get_args(shapes.Window), *[Done, *Done.__subclasses__()]}
OF_ANSWERS = [
    name
    for name in tallybook_client.__all__
    if inspect.isclass(kind := getattr(shapes, name, None)) and not issubclass(kind, tuple(OURS))
]


@pytest.mark.parametrize("name", OF_ANSWERS)
def test_the_shapes_are_those_of_the_document(name: str) -> None:
    """A field that the document does not require may be absent here."""
    schema = openapi_document()["components"]["schemas"][RENAMED.get(name, name)]
    fields = {
        field.encode_name: field for field in msgspec.structs.fields(getattr(shapes, name)) if field.name != "etag"
    }
    assert fields.keys() == schema["properties"].keys()
    assert {name for name, field in fields.items() if field.required} <= {*schema["required"]}


async def test_pages_are_walked_to_their_end(tallybook: Client, client: PlainClient) -> None:
    slug = client.tournament
    names = [f"Competitor {number}" for number in range(401)]
    await tallybook.register_competitors(slug, [NewCompetitor(name) for name in names])
    assert [one.name for one in await every(tallybook.list_competitors(slug))] == names


async def test_all_windows_of_a_walk_show_the_moment_of_the_first(tallybook: Client, client: PlainClient) -> None:
    slug = client.tournament
    ids: list[int] = []
    for _ in range(3):
        ids += (await tallybook.register_competitors(slug, [NewCompetitor("N") for _ in range(700)])).ids
    made = await tallybook.create_ranking(slug, "Ladder", "points", ids)
    seen = []
    async for standing in tallybook.iterate_standings(slug, made.id):
        if not seen:  # the last one comes to the top, and all others move down by one
            await tallybook.add_points(slug, made.id, [Delta(ids[-1], made.unity_id, 1)])
        seen.append(standing.competitor_id)
    assert seen == ids


def test_a_time_without_its_zone_is_not_sent() -> None:
    with pytest.raises(ValueError, match="time zone"):
        NewCompetition(1, started_at=datetime(2026, 5, 2))
    with pytest.raises(ValueError, match="address"):
        Client("example.org", "tb_")


# ── Refusals ────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_refusal_says_what_is_wrong_with_which_field(tallybook: Client, season: Season) -> None:
    slug = season.client.tournament
    with pytest.raises(Unacceptable) as caught:
        await tallybook.register_competitor(slug, NewCompetitor("", color="red"))
    assert {fault.field for fault in caught.value.errors} == {"name"}
    with pytest.raises(NotFound):
        await tallybook.show_competitor(slug, 999)
    with pytest.raises(Conflict):
        await tallybook.close_ranking(slug, season.closed_ranking_id)
    async with Client(service_of(tallybook), "tb_nobody") as stranger:
        with pytest.raises(Unauthenticated):
            await stranger.list_rankings(slug)


def service_of(tallybook: Client) -> str:
    return str(tallybook._address)


async def test_what_somebody_else_has_changed_is_not_overwritten(tallybook: Client, season: Season) -> None:
    slug, ranking = season.client.tournament, season.ranking_id
    etag = (await tallybook.show_ranking(slug, ranking)).etag
    await tallybook.change_ranking_information(slug, ranking, name="Mine", if_match=etag)
    with pytest.raises(PreconditionFailed):
        await tallybook.change_ranking_information(slug, ranking, name="Theirs", if_match=etag)


# ── Once ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
async def between(service: Service) -> AsyncIterator[Gateway]:
    async with gateway(service.url) as between:
        yield between


async def test_a_change_counts_once_and_its_failure_says_what_is_known_whatever_is_lost(
    between: Gateway, token: str, season: Season
) -> None:
    """Every script of three attempts."""
    slug, deltas = season.client.tournament, [Delta(season.ids[0], season.unity_id, 1)]
    total = 0
    async with Client(between.address, token, patience=Patience(pause_seconds=0.0, attempts_max=3)) as client:
        for fates in itertools.product(set(Fate) - {Fate.BUSY}, repeat=3):
            between.expect(*fates)
            failure = None
            try:
                await client.add_points(slug, season.ranking_id, deltas)
            except CallFailed as error:
                failure = error
            met, keys = {*between.met}, {*between.keys}
            assert len(keys) == 1
            match failure:
                case None:
                    assert between.met[-1] is Fate.PASSED
                    total += 1
                case OutcomeUnknown():
                    assert met & IN_DOUBT
                    (key,) = keys
                    assert failure.idempotency_key == key
                    between.expect()
                    done = await client.add_points(slug, season.ranking_id, deltas, idempotency_key=key)
                    assert done.is_replay == bool(met & LOST)
                    total += 1
                case Unavailable():
                    assert met == {Fate.TURNED_AWAY}
                case _:
                    assert between.met[-1] in (Fate.FORBIDDEN, Fate.LOST_ITS_WAY)
                    assert not met & IN_DOUBT
            answer = await season.client.get(f"{season.path}/standings.json")
            assert totals(answer)[season.ids[0]] == total


async def test_each_call_has_a_key_of_its_own_and_a_read_has_none(between: Gateway, token: str, season: Season) -> None:
    slug, deltas = season.client.tournament, [Delta(season.ids[0], season.unity_id, 1)]
    async with Client(between.address, token) as client:
        await client.list_rankings(slug)
        for _ in range(2):
            await client.add_points(slug, season.ranking_id, deltas)
    none, *keys = between.keys
    assert none is None
    assert len({*keys}) == 2


async def test_it_waits_as_long_as_it_is_asked_to(between: Gateway, token: str, season: Season) -> None:
    between.expect(Fate.BUSY)
    began = time.monotonic()
    async with Client(between.address, token, patience=AT_ONCE) as client:
        await client.list_rankings(season.client.tournament)
    assert time.monotonic() - began >= BUSY_RETRY_AFTER_SECONDS


async def test_it_does_not_begin_a_wait_for_which_there_is_no_time(
    between: Gateway, token: str, season: Season
) -> None:
    between.expect(Fate.BUSY)
    async with Client(between.address, token, patience=Patience(seconds_max=0.5)) as client:
        with pytest.raises(Unavailable) as caught:
            await client.list_rankings(season.client.tournament)
    assert caught.value.retry_after_seconds == BUSY_RETRY_AFTER_SECONDS


async def test_a_client_that_asks_too_often_is_answered_all_the_same(dsn: str, season: Season) -> None:
    async with serve(dsn, requests_per_second=2) as slow, Client(slow.url, season.client.token or "") as client:
        answers = await asyncio.gather(*(client.list_rankings(season.client.tournament) for _ in range(4)))
    assert len(answers) == 4


async def test_a_service_that_is_not_there_is_unavailable(token: str) -> None:
    patience = Patience(pause_seconds=0.0, attempts_max=2)
    async with Client("http://127.0.0.1:1", token, patience=patience) as client:
        with pytest.raises(Unavailable, match=r"^no answer: (?!no answer).* 127\.0\.0\.1:1 ") as caught:
            await client.register_competitor("any", NewCompetitor("Ada"))
        assert caught.value.status is None


async def test_it_is_patient_only_with_a_service_that_has_answered(
    between: Gateway, token: str, season: Season
) -> None:
    patience = Patience(pause_seconds=0.0, attempts_max=3, unreached_seconds_max=0.0)
    async with Client(between.address, token, patience=patience) as client:
        for attempts in 1, 3:
            between.expect(*[Fate.CUT_BEFORE] * 3)
            with pytest.raises(Unavailable):
                await client.list_rankings(season.client.tournament)
            assert len(between.met) == attempts
            between.expect()
            await client.list_rankings(season.client.tournament)


@given(st.lists(st.just(0), min_size=2, max_size=5))
def test_keys_are_uuids_of_version_7_that_grow_with_time(of: list[int]) -> None:
    before = time.time_ns() // 1_000_000
    keys = [UUID(new_key()) for _ in of]
    after = time.time_ns() // 1_000_000
    assert all((key.version, key.variant) == (7, "specified in RFC 4122") for key in keys)
    assert all(before <= key.int >> 80 <= after for key in keys)
    assert len({*keys}) == len(keys)


# ── The synchronous face ────────────────────────────────────────────────────────────────────────────────


async def test_the_synchronous_face_does_the_same_and_iterates(service: Service, season: Season) -> None:
    slug = season.client.tournament

    def play() -> tuple[Done, list[str], list[object]]:
        with SyncClient(service.url, season.client.token or "") as client:
            done = client.add_points(slug, season.ranking_id, [Delta(season.ids[0], season.unity_id, 7)])
            names = [one.name for one in client.list_competitors(slug)]
            events = client.follow(slug, after=done.sequence - 1)
            return done, names, [next(events), next(events)]

    done, names, (event, end) = await asyncio.to_thread(play)
    assert names == ["Ada", "Ben", "Pair"]
    assert isinstance(event, tallybook_client.Recorded)
    assert (event.sequence, event.kind) == (done.sequence, "PointsAdded")
    assert isinstance(end, tallybook_client.CaughtUp)
