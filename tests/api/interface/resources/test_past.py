"""The past over HTTP: rankings as they were, their history, and why somebody stands where they stand."""

import asyncio
import json
import re
from itertools import product
from typing import Any

import pytest

from projections.answers.history import LINES_MAX
from projections.tables.worker import Worker
from tests.api.asking import NOBODY, refused
from tests.api.cli.conftest import Tallybook
from tests.api.leagues import history
from tests.api.public_boards import Board
from tests.bounds import Bounds
from tests.service import Client, Season, Service, create_ranking, deltas, listed


@pytest.fixture
async def story(season: Season) -> dict[int, Any]:
    """What the ranking looked like after each of some changes, as they were answered, by sequence."""
    ada, ben, pair = season.ids
    fouls = (await season.client.get("rankings.json")).json["rankings"]["ranking"][0]["unities"][1]["id"]
    told: dict[int, Any] = {}

    async def put(path: str, **form: object) -> None:
        answer = await season.client.put(f"{season.path}{path}", form)
        assert answer.status == 200, answer.body
        told[int(answer.headers["Tallybook-Sequence"])] = answer.json["ranking"]

    cause = season.competition_id
    await put("/add.json", participants_delta=deltas((ada, season.unity_id, 3), (ben, season.unity_id, 3)))
    await put("/add.json", participants_delta=deltas((pair, season.unity_id, 5)), competition_id=cause)
    await put("/add.json", participants_delta=deltas((pair, fouls, 1), (pair, fouls, 1), (ben, season.unity_id, 1)))
    await put(".json", main_unity_name="score", participants=listed([ben, ada]), name="Half", description="")
    await put("/add.json", participants_delta=deltas((ada, season.unity_id, 4)), competition_id=cause)
    await put(".json", main_unity_name="points", participants=listed(season.ids))
    await put("/close.json")
    await put("/reopen.json")
    await put("/add.json", participants_delta=deltas((ben, season.unity_id, -9)), reason=" licence ")
    return told


def without(ranking: Any, *names: str) -> Any:
    return {name: value for name, value in ranking.items() if name not in names}


# ── Standings ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("with_snapshots", [False, True])
async def test_every_moment_is_shown_as_it_was_answered_then(
    service: Service,
    season: Season,
    peers_client: Client,
    story: dict[int, Any],
    bounds: Bounds,
    with_snapshots: bool,
) -> None:
    if with_snapshots:
        bounds(INTERVAL_EVENTS_MIN=1, INTERVAL_EVENTS_PER_ROW=0)
    await Worker(service.database).catch_up()
    for client in (season.client, peers_client):
        for sequence, ranking in story.items():
            answer = await client.get(f"{season.path}/standings.json?at_sequence={sequence}")
            assert (answer.status, answer.json["message"]) == (200, "ok")
            assert without(answer.json["ranking"], "sequence", "recorded_at") == ranking
            assert answer.json["ranking"]["sequence"] == sequence
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", answer.json["ranking"]["recorded_at"])


async def test_without_a_moment_it_is_the_current_one_whoever_changed_it(
    season: Season, peers_client: Client, story: dict[int, Any]
) -> None:
    for client in (season.client, peers_client) * 5:
        form = {"participants_delta": deltas((season.ids[0], season.unity_id, 1))}
        added = await client.put(f"{season.path}/add.json", form)
        for asked in (season.client, peers_client):
            ranking = (await asked.get(f"{season.path}/standings.json")).json["ranking"]
            assert ranking["sequence"] == int(added.headers["Tallybook-Sequence"])
            assert without(ranking, "sequence", "recorded_at") == added.json["ranking"]


async def test_the_time_that_an_answer_shows_is_a_time_to_ask_for(season: Season, story: dict[int, Any]) -> None:
    shown = (await season.client.get(f"{season.path}/standings.json")).json["ranking"]
    at = shown["recorded_at"]
    asked = (await season.client.get(f"{season.path}/standings.json?at_time={at}")).json["ranking"]
    assert asked == shown
    for later in ("9999-12-31%2023:59:59", "2999-01-01", "2999-01-01T00:00:00.000001%2B23:59"):
        assert (await season.client.get(f"{season.path}/standings.json?at_time={later}")).json["ranking"] == shown
    refused(await season.client.get(f"{season.path}/standings.json?at_time=1999-12-31%2023:59:59"), 404)


async def test_a_version_is_shown_as_of_the_event_that_made_it(season: Season, story: dict[int, Any]) -> None:
    unities = (await season.client.get("rankings.json")).json["rankings"]["ranking"][0]["unities"]
    for place, unity in enumerate(unities):
        for version in range(2, list(story.values())[-1]["unities"][place]["version"] + 1):
            first = min(s for s, r in story.items() if r["unities"][place]["version"] == version)
            path = f"{season.path}/standings.json?version={unity['id']}:{version}"
            shown = (await season.client.get(path)).json["ranking"]
            assert without(shown, "recorded_at") == story[first] | {"sequence": first}
        refused(await season.client.get(f"{season.path}/standings.json?version={unity['id']}:{version + 1}"), 404)


# ── History ─────────────────────────────────────────────────────────────────────────────────────────────


async def test_history_tells_every_delta_and_what_it_led_to(season: Season, story: dict[int, Any]) -> None:
    lines = await history(season.client, season.path)
    ada, ben, pair = season.ids
    points, cause = season.unity_id, season.competition_id
    fouls = next(line["unity_id"] for line in lines if line["unity_id"] != points)
    told = [
        tuple(
            line[name]
            for name in (
                "competitor_id", "unity_id", "competition_id", "delta", "total", "position_before", "position_after",
            )
        )
        for line in lines
    ]  # fmt: skip
    assert told == [
        (ada, points, None, 3, 3, 1, 1),
        (ben, points, None, 3, 3, 1, 1),
        (pair, points, cause, 5, 5, 3, 1),
        (pair, fouls, None, 1, 1, 1, 3),
        (pair, fouls, None, 1, 2, 1, 3),
        (ben, points, None, 1, 4, 2, 2),
        (ada, points, cause, 4, 7, 2, 1),
        (ben, points, None, -9, -5, 3, 3),
    ]
    assert all(line["reverses"] is None for line in lines)
    assert [line["reason"] for line in lines] == [None] * 7 + ["licence"]
    assert {line["sequence"] for line in lines} <= set(story)
    assert len({line["actor"] for line in lines}) == 1


async def test_a_reversal_is_a_line_that_names_what_it_reverses(season: Season, story: dict[int, Any]) -> None:
    before = await history(season.client, season.path)
    assert (await season.client.put(f"competitions/{season.competition_id}/void.json")).status == 200
    lines = (await history(season.client, season.path))[len(before) :]
    caused = [line for line in before if line["competition_id"] == season.competition_id]
    assert [(line["reverses"], line["competitor_id"], line["delta"]) for line in lines] == [
        (line["sequence"], line["competitor_id"], -line["delta"]) for line in caused
    ]
    assert await history(season.client, season.path, competition=season.competition_id) == caused + lines


@pytest.mark.one_in(6)
async def test_points_of_an_undated_competition_are_dated_by_their_recording_at_every_door(
    season: Season, board: Board, tallybook: Tallybook
) -> None:
    """The competition was added earlier, which is not when it took place."""
    client, who = season.client, season.ids[0]
    await client.put("publication.json", {"published": "true"})
    form = {"participants_delta": deltas((who, season.unity_id, 3)), "competition_id": season.competition_id}
    await client.put(f"{season.path}/add.json", form)
    query = f"explain.json?competitor={who}"
    steps = (await client.get(f"{season.path}/{query}")).json["explanation"]["steps"]
    recorded_at = steps[-1]["recorded_at"]
    assert steps[-1]["took_place"] == recorded_at
    seen = (await board.get(f"{season.path}/{query}")).json["explanation"]["steps"]
    assert [one["took_place"] for one in seen] == [one["took_place"] for one in steps]
    page = (await board.get(f"competitors/{who}?ranking={season.ranking_id}")).body.decode()
    assert f'datetime="{recorded_at[:19]}Z"' in page
    sentences = await tallybook.done("explain", client.tournament, str(season.ranking_id), str(who))
    assert recorded_at[:19].replace("T", " ") + "  event" in sentences


async def test_pages_give_each_line_once(
    season: Season, peers_client: Client, story: dict[int, Any], bounds: Bounds
) -> None:
    whole = (await season.client.get(f"{season.path}/history.json")).json
    assert (len(whole["history"]), whole["next"]) == (8, None)
    bounds(SCANNED_EVENTS_MAX=3)
    filters: list[dict[str, object]] = [
        {},
        {"competitor": season.ids[1]},
        {"unity": season.unity_id},
        {"competition": season.competition_id, "competitor": season.ids[0]},
        {"actor": whole["history"][0]["actor"]},
        {"actor": 0},
        {"from_sequence": whole["history"][2]["sequence"], "to_sequence": whole["history"][5]["sequence"]},
        {"from_sequence": 3, "to_sequence": 2},
        {"from_time": "2000-01-01", "to_time": "9999-12-31"},
        {"from_time": "2999-01-01"},
        {"to_time": "1999-12-31"},
    ]

    def takes(line: Any, query: Any) -> bool:
        if "2999-01-01" in query.values() or "1999-12-31" in query.values():
            return False
        if not query.get("from_sequence", 0) <= line["sequence"] <= query.get("to_sequence", NOBODY):
            return False
        return all(
            line[f"{n}_id"] == query.get(n, line[f"{n}_id"]) for n in ("unity", "competitor", "competition")
        ) and (line["actor"] == query.get("actor", line["actor"]))

    for limit, query in product((1, 2, 3, 7, 8, 9, LINES_MAX + 1), filters):
        for client in (season.client, peers_client):
            lines = await history(client, season.path, limit=limit, **query)
            assert lines == [line for line in whole["history"] if takes(line, query)]


async def test_pages_stay_as_they_are_while_new_events_land(season: Season, peers_client: Client) -> None:
    async def add(n: int) -> None:
        form = {"participants_delta": deltas((season.ids[n % 3], season.unity_id, n))}
        assert (await peers_client.put(f"{season.path}/add.json", form)).status == 200

    for n in range(10):
        await add(n)
    told, after = [], ""
    adding = asyncio.gather(*map(add, range(10, 40)))
    while True:
        page = (await season.client.get(f"{season.path}/history.json?limit=3{after}")).json
        told += page["history"]
        if page["next"] is None and adding.done():
            break
        # At the head, while more is on its way: go on from there.
        after = f"&after={page['next'] or str(told[-1]['sequence'] + 1) + '.0'}"
    await adding
    whole = await history(season.client, season.path)
    told += [line for line in whole if line["sequence"] > told[-1]["sequence"]]
    assert told == whole
    assert sorted(line["delta"] for line in told) == list(range(40))


# ── Explanations ────────────────────────────────────────────────────────────────────────────────────────


async def test_an_explanation_adds_up_and_names_who_passed_whom(season: Season, story: dict[int, Any]) -> None:
    ada, ben, pair = season.ids
    told = (await season.client.get(f"{season.path}/explain.json?competitor={ada}")).json["explanation"]
    assert told["from"] == {"sequence": 0, "recorded_at": None, "position": None, "total": 0}
    assert (told["to"]["position"], told["to"]["total"], told["to"]["sequence"]) == (1, 7, max(story))
    assert (told["competitor_id"], told["unity_id"], told["next"]) == (ada, season.unity_id, None)
    steps = [
        (
            step["cause"],
            step["delta"],
            step["total"],
            step["position_before"],
            step["position_after"],
            [(o["who"], o["whom"], o["level"]) for o in step["overtakings"]],
        )
        for step in told["steps"]
    ]
    assert steps == [
        ("list", None, 0, None, 1, []),
        ("points", 3, 3, 1, 1, [(ada, pair, False)]),
        ("points", None, 3, 1, 2, [(pair, ada, False)]),
        ("points", None, 3, 2, 3, [(ben, ada, False)]),
        ("list", None, 3, 3, 2, []),
        ("points", 4, 7, 2, 1, [(ada, ben, False)]),
    ]
    assert told["steps"][1]["competition_id"] is None
    assert told["steps"][5]["competition_id"] == season.competition_id


async def test_an_explanation_continues_where_its_page_ends(
    season: Season, story: dict[int, Any], subtests: pytest.Subtests
) -> None:
    for limit in [1, 2, 5]:
        with subtests.test(str(limit)):
            path = f"{season.path}/explain.json?competitor={season.ids[1]}"
            whole = (await season.client.get(path)).json["explanation"]
            steps: list[Any] = []
            end, start = whole["from"], 0
            while True:
                page = (await season.client.get(f"{path}&from={start}&limit={limit}")).json["explanation"]
                assert page["from"] == end
                assert len(page["steps"]) <= limit
                steps += page["steps"]
                end = page["to"]
                if page["next"] is None:
                    break
                start = page["next"]
            assert (steps, end) == (whole["steps"], whole["to"])


# ── Refusals ────────────────────────────────────────────────────────────────────────────────────────────

UNREADABLE = [
    ("standings.json?at_sequence=0", ["at_sequence"]),
    ("standings.json?at_sequence=-1", ["at_sequence"]),
    ("standings.json?at_sequence=01", ["at_sequence"]),
    ("standings.json?at_sequence=", ["at_sequence"]),
    ("standings.json?at_sequence=%D9%A1", ["at_sequence"]),
    (f"standings.json?at_sequence={2**63}", ["at_sequence"]),
    ("standings.json?at_sequence=1&at_sequence=1", ["at_sequence"]),
    ("standings.json?at_sequence=1&at_time=2024-01-01", ["at_sequence", "at_time"]),
    ("standings.json?version=1:1&at_time=2024-01-01", ["at_time", "version"]),
    ("standings.json?at_time=yesterday", ["at_time"]),
    ("standings.json?at_time=2024-02-30", ["at_time"]),
    ("standings.json?at_time=2024-01-01%2024:00:00", ["at_time"]),
    ("standings.json?at_time=0000-01-01", ["at_time"]),
    ("standings.json?version=1", ["version"]),
    ("standings.json?version=1:0", ["version"]),
    ("standings.json?version=x:1", ["version"]),
    ("standings.json?when=now", ["when"]),
    ("history.json?unity=0&competitor=x&competition=&actor=-1", ["unity", "competitor", "competition", "actor"]),
    ("history.json?from_sequence=0&to_sequence=x", ["from_sequence", "to_sequence"]),
    ("history.json?from_time=x&to_time=y", ["from_time", "to_time"]),
    ("history.json?after=1", ["after"]),
    ("history.json?after=0.0", ["after"]),
    ("history.json?after=1.-1", ["after"]),
    (f"history.json?after={2**63}.0", ["after"]),
    ("history.json?limit=0", ["limit"]),
    ("history.json?page=1", ["page"]),
    ("explain.json", ["competitor"]),
    ("explain.json?competitor=0", ["competitor"]),
    ("explain.json?competitor=1&from=-1", ["from"]),
    ("explain.json?competitor=1&to=0", ["to"]),
    ("explain.json?competitor=1&from=3&to=2", ["from"]),
    ("explain.json?competitor=1&limit=0", ["limit"]),
]


async def test_what_cannot_be_read_is_400_and_named(season: Season, subtests: pytest.Subtests) -> None:
    for query, fields in UNREADABLE:
        with subtests.test(query):
            refused(await season.client.get(f"{season.path}/{query}"), 400, *fields)


async def test_what_is_not_there_is_404_in_a_sentence(season: Season, subtests: pytest.Subtests) -> None:
    ada = season.ids[0]
    head = (await season.client.get(f"{season.path}/standings.json")).json["ranking"]["sequence"]
    for query in (
        f"standings.json?at_sequence={head + 1}",
        f"standings.json?at_sequence={2**63 - 1}",
        "standings.json?at_sequence=1",
        f"standings.json?version={NOBODY}:1",
        f"standings.json?version={season.unity_id}:{2**62}",
        f"history.json?unity={NOBODY}",
        f"history.json?competitor={NOBODY}",
        f"history.json?competition={NOBODY}",
        f"explain.json?competitor={NOBODY}",
        f"explain.json?competitor={ada}&unity={NOBODY}",
        f"explain.json?competitor={ada}&to={head + 1}",
        f"explain.json?competitor={ada}&from={head + 1}",
    ):
        with subtests.test(query):
            refused(await season.client.get(f"{season.path}/{query}"), 404)
    for name in ("standings", "history", f"explain.json?competitor={ada}"):
        path = name if ".json" in name else f"{name}.json"
        for ranking_id in (NOBODY, "x", "0"):
            refused(await season.client.get(f"rankings/{ranking_id}/{path}"), 404)
    assert (await season.client.get(f"{season.path}/standings.json?at_sequence={head}")).status == 200
    assert (await season.client.get(f"{season.path}/explain.json?competitor={ada}&from={head}")).status == 200


async def test_the_ranking_of_another_tournament_and_the_unity_of_another_ranking_are_404(season: Season) -> None:
    other = await create_ranking(season.client, season.ids, name="Other")
    unity = other["unities"][0]["id"]
    refused(await season.client.get(f"{season.path}/standings.json?version={unity}:1"), 404)
    refused(await season.client.get(f"{season.path}/history.json?unity={unity}"), 404)
    assert (await season.client.get(f"rankings/{other['id']}/standings.json?version={unity}:1")).status == 200


async def test_too_many_at_once_are_503_and_what_is_current_is_not_among_them(
    service: Service, season: Season, bounds: Bounds
) -> None:
    bounds(PAST_WAIT_SECONDS_MAX=-1.0)
    head = json.loads((await season.client.get(f"{season.path}/standings.json")).body)["ranking"]["sequence"]
    for query in (f"standings.json?at_sequence={head}", "history.json", f"explain.json?competitor={season.ids[0]}"):
        answer = await season.client.get(f"{season.path}/{query}")
        refused(answer, 503)
        assert int(answer.headers["Retry-After"]) >= 1
    assert (await season.client.get(f"{season.path}/standings.json")).status == 200
