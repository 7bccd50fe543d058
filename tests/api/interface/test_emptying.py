"""A field of a change has three values: absent, it leaves what is there; empty, it empties that; given, it replaces it.

The property: what a GET shows after a 200 is what was sent. For each field of each operation that changes something, it
is sent in one of the three ways, in a form or in JSON.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from itertools import count
from typing import Any, Final
from urllib.parse import urlencode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct

from api.interface.declarations import Write
from engine.domain.presentation import LANGUAGES
from tests.api.asking import text_of
from tests.api.rendered import BY_NAME
from tests.histories import LOGO, unhurried
from tests.service import Client, Season

ABSENT: Final = object()
EMPTY: Final = object()

_numbers: Final = count(1)
"""Of names that must be unique."""

Values = dict[str, Any]
"""What is sent of fields, or shown of them, by name: in JSON, as it would be sent."""

names: Final = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=12)
places: Final = st.sampled_from(["Hall 1", "Zürich", "a, b", "0"])
starts: Final = st.datetimes(datetime(1970, 1, 1), datetime(2035, 1, 1)).map(
    lambda start: start.replace(tzinfo=UTC, microsecond=0).strftime("%Y-%m-%d %H:%M:%S")
)
sorts: Final = st.sampled_from(["ASC", "DESC"])
colors: Final = st.sampled_from(["c0ffee", "FFFFFF", "000000"])


class Changing(Struct, frozen=True):
    """How an operation is tried: `path`, as it is sent; `fields`: what each takes; `emptied`: what is shown of a field
    that was emptied, for those that can be; `read`: what is shown now of what the answer is about."""

    path: str
    fields: dict[str, st.SearchStrategy[Any]]
    emptied: Values
    read: Callable[[Client, dict[str, Any] | None], Awaitable[Values]]


# ── What is shown ───────────────────────────────────────────────────────────────────────────────────────


async def competitor(client: Client, competitor_id: int) -> Values:
    shown = (await client.get(f"competitors/{competitor_id}.json")).json["competitor"]
    everybody = (await client.get("competitors.json")).json["competitors"]["competitor"]
    above = []
    for other in [one["id"] for one in everybody]:
        below = (await client.get(f"competitors.json?parent={other}")).json["competitors"]["competitor"]
        above += [other for one in below if one["id"] == competitor_id]
    assert (shown["level"] > 0) == bool(above)
    return {
        "name": shown["name"],
        "tags": [tag["name"] for tag in shown["tags"]],
        "color": shown["color"],
        "parent": above[0] if above else None,
        "key": shown.get("key"),
    }


async def competition(client: Client, competition_id: int) -> Values:
    shown = (await client.get(f"competitions/{competition_id}.json")).json["competition"]
    filtered = await client.get("competitions.json?has_result=true")
    has_result = competition_id in [one["id"] for one in filtered.json["competitions"]["competition"]]
    assert has_result == shown["has_result"] == (shown["result"] is not None)
    winners = [one["competitor_id"] for one in shown["participants"] if one["winner"]]
    return {
        "group_id": shown["group_id"],
        "started_at": None if shown["started_at"] == shown["created_at"] else shown["started_at"],
        "location": shown["location"],
        "participants": [one["competitor_id"] for one in shown["participants"]],
        "result": shown["result"],
        "winner": winners[0] if winners else None,
        **{name: shown.get(name) for name in ("scale", "round", "round_name", "key")},
    }


async def ranking(client: Client, ranking_id: int) -> Values:
    shown = (await client.get(f"rankings/{ranking_id}.json")).json["ranking"]
    return {
        "name": shown["name"],
        "main_unity_name": shown["unities"][0]["name"],
        "participants": [one["id"] for one in shown["competitors"]],
        "description": shown["description"],
        "zones": shown.get("zones"),
        **{f"main_unity_{field}": value for field, value in looks(shown["unities"][0]).items()},
    }


async def unity(client: Client, ranking_id: int, unity_id: int) -> Values:
    shown = (await client.get(f"rankings/{ranking_id}.json")).json["ranking"]["unities"]
    return next({"name": one["name"], **looks(one)} for one in shown if one["id"] == unity_id)


def looks(unity: Any) -> Values:
    """How a unity is shown. What was not declared of its numbers is absent."""
    absent = {"decimals": 0, "time": None, "counts": "sum", "lasts": None, "expires_on": None, "absent": None}
    return {"sort": unity["sort"], **{field: unity.get(field, value) for field, value in absent.items()}}


async def criteria(client: Client, ranking_id: int) -> Values:
    shown = (await client.get(f"rankings/{ranking_id}/classification.json?limit=1")).json["classification"]
    return {"criteria": shown["criteria"] if is_declared(shown) else []}


async def scorings(client: Client, ranking_id: int) -> Values:
    shown = (await client.get(f"rankings/{ranking_id}/scoring.json")).json["scoring"]
    return {"scorings": shown["scorings"]}


def is_declared(shown: Any) -> bool:
    """Without a declaration, the main unity is the one criterion."""
    return len(shown["criteria"]) != 1


async def presentation(client: Client) -> Values:
    """A logo is shown as the event that has it."""
    shown = (await client.get("presentation.json")).json["presentation"]
    return shown | {"logo": shown["logo"] and LOGO}


async def last_points(client: Client, ranking_id: int, unity_id: int) -> Values:
    """What the newest event of the ranking says of points."""
    line = (await client.get(f"rankings/{ranking_id}/history.json?limit=1000")).json["history"][-1]
    deltas = [
        {
            "competitor_id": line["competitor_id"],
            "unities": [{"unity_id": line["unity_id"], "delta": str(line["delta"])}],
        }
    ]
    return {"participants_delta": deltas, "competition_id": line["competition_id"], "reason": line["reason"]}


# ── What is changed ─────────────────────────────────────────────────────────────────────────────────────


def changing(name: str, season: Season) -> Changing:
    """How the operation of this name is tried on the season."""
    ada, ben, pair = season.ids
    tags = st.lists(names, min_size=1, max_size=3, unique=True)
    keys = st.builds(lambda: f"key {next(_numbers)}")
    performances = st.dictionaries(st.sampled_from([str(one) for one in season.ids]), places, min_size=1)
    information = {"name": names, "description": places}
    zones = st.sampled_from(["1 promotion: Up", "1..2 neutral: In\n-1 relegation: Down"])
    of_competition = {
        "started_at": starts,
        "location": places,
        "result": performances,
        "winner": st.sampled_from(season.ids),
        "group_id": st.integers(-9, 9),
        "participants": st.just(season.ids),
        **{"scale": names, "round": st.integers(-9, 9), "round_name": names, "key": keys},
    }
    bare = {**dict.fromkeys(("started_at", "result", "winner", "scale", "round", "round_name", "key")), "location": ""}
    goals = {"name": st.builds(lambda: f"unity {next(_numbers)}"), "sort": sorts}
    notations = {
        "decimals": st.integers(0, 6),
        "time": st.sampled_from(["s", "ms"]),
        "counts": st.sampled_from(["sum", "best", "last"]),
        "lasts": st.sampled_from(["P52W", "PT90M"]),
        "expires_on": st.sampled_from(["minute", "day", "week"]),
        "absent": st.just("none"),
    }
    undeclared = {"sort": "DESC", "decimals": 0, "counts": "sum"}
    undeclared |= dict.fromkeys(("time", "lasts", "expires_on", "absent"))
    of_main = {f"main_unity_{field}": strategy for field, strategy in ({"sort": sorts} | notations).items()}
    new = name.startswith("POST")
    points = st.builds(
        lambda who, delta: [{"competitor_id": who, "unities": [{"unity_id": season.unity_id, "delta": str(delta)}]}],
        st.sampled_from(season.ids),
        st.integers(1, 9),
    )
    cause = {"competition_id": st.just(season.competition_id), "reason": places}
    lists = st.lists(st.sampled_from(season.ids), min_size=1, unique=True)
    match name:
        case "POST competitors.json" | "PUT competitors/{competitor_id}.json":
            return Changing(
                name.split()[1].format(competitor_id=ben),
                {"name": names, "tags": tags, "color": colors, "parent": st.sampled_from([ada, pair]), "key": keys},
                {"tags": [], "color": "000000", "parent": None, "key": None},
                lambda client, made: competitor(client, made["competitor"]["id"] if made else ben),
            )
        case "POST competitions.json":
            return Changing(
                "competitions.json",
                of_competition,
                {"participants": [], **bare},
                lambda client, made: competition(client, made["competition"]["id"]),
            )
        case "PUT competitions/{competition_id}.json":
            return Changing(
                f"competitions/{season.competition_id}.json",
                of_competition,
                {"participants": [], **bare},
                lambda client, _: competition(client, season.competition_id),
            )
        case "POST rankings.json" | "PUT rankings/{ranking_id}.json":
            return Changing(
                name.split()[1].format(ranking_id=season.ranking_id),
                {"main_unity_name": names, "participants": lists, **information, **(of_main if new else {})},
                {"description": None, **{f"main_unity_{field}": value for field, value in undeclared.items()}},
                lambda client, made: ranking(client, made["ranking"]["id"] if made else season.ranking_id),
            )
        case "PUT rankings/{ranking_id}/information.json":
            return Changing(
                f"{season.path}/information.json",
                {**information, "zones": zones},
                {"description": None, "zones": None},
                lambda client, _: ranking(client, season.ranking_id),
            )
        case "POST rankings/{ranking_id}/unities.json":
            return Changing(
                f"{season.path}/unities.json",
                goals | notations,
                undeclared,
                lambda client, made: unity(client, season.ranking_id, made["unity"]["id"]),
            )
        case "PUT rankings/{ranking_id}/unities/{unity_id}.json":
            return Changing(
                f"{season.path}/unities/{season.unity_id}.json",
                goals,
                {"sort": "DESC"},
                lambda client, _: unity(client, season.ranking_id, season.unity_id),
            )
        case "PUT rankings/{ranking_id}/classification.json":
            chain = st.just([{"unity": season.unity_id, "best": 2}, {"unity": season.unity_id}]) | st.just([])
            return Changing(
                f"{season.path}/classification.json",
                {"criteria": chain},
                {},
                lambda client, _: criteria(client, season.ranking_id),
            )
        case "PUT rankings/{ranking_id}/scoring.json":
            awards = [{"unity": season.unity_id, "from": "outcome", "table": {"win": 3, "draw": 1}}]
            return Changing(
                f"{season.path}/scoring.json",
                {"scorings": st.just([{"awards": awards}]) | st.just([])},
                {},
                lambda client, _: scorings(client, season.ranking_id),
            )
        case "PUT rankings/{ranking_id}/add.json":
            return Changing(
                f"{season.path}/add.json",
                {"participants_delta": points, **cause},
                {"competition_id": None, "reason": None},
                lambda client, _: last_points(client, season.ranking_id, season.unity_id),
            )
        case "PUT presentation.json":
            return Changing(
                "presentation.json",
                {
                    "zone": st.sampled_from(["Europe/Berlin", "Asia/Tokyo"]),
                    "language": st.sampled_from(LANGUAGES),
                    "accent": colors.map(str.lower),
                    "logo": st.just(LOGO),
                    "listed": st.booleans(),
                },
                {"zone": "UTC", "language": None, "accent": None, "logo": None},
                lambda client, _: presentation(client),
            )
        case _:
            raise KeyError(name)


INSTRUCTIONS: Final = {
    "PUT rankings/{ranking_id}/participants.json": "who is to come and who to leave",
    "PUT publication.json": "what is to be done; one of three",
    "PUT rankings.json": "an order",
    "PUT rankings/{ranking_id}/visibility.json": "whether it is hidden",
    "PUT tournament.json": "a name, which only the public is shown",
    "PUT delete.json": "which tournament, again",
    "PUT points.json": "as add.json, for several rankings",
    "PUT results.json": "as the POST of a new competition, or the PUT of one with this key",
    "PUT competitions/{competition_id}/strike.json": "who is to be struck",
    "PUT competitions/{competition_id}/unstrike.json": "who is to be unstruck",
    "PUT rankings/{ranking_id}/reverse.json": "which points are to be undone or redone",
}
"""Operations whose fields are not what is shown afterwards, and what they are."""
TRIED: Final = sorted(
    name
    for name, operation in BY_NAME.items()
    if isinstance(operation, Write) and operation.fields and name not in INSTRUCTIONS
)


# ── How it is sent ──────────────────────────────────────────────────────────────────────────────────────


def as_form(sent: Values) -> bytes:
    texts = {name: "" if value is EMPTY else text_of(value) or "[]" for name, value in sent.items()}
    return urlencode(texts).encode()


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", TRIED)
async def test_what_is_shown_after_a_200_is_what_was_sent(season: Season, name: str) -> None:
    operation, tried = BY_NAME[name], changing(name, season)
    assert isinstance(operation, Write)
    assert set(tried.fields) == {field.name for field in operation.fields}
    required = {field.name for field in operation.fields if field.required}
    creates = name.startswith("POST") or name.endswith("add.json")
    send = season.client.post if name.startswith("POST") else season.client.put
    spellings: dict[str, list[Any]] = {"tags": [None, "", []], "participants": [None, "", []], "result": [None, "", {}]}
    loop = asyncio.get_running_loop()

    async def try_it(sent: Values, body: bytes, media_type: str) -> None:
        before = {} if creates else await tried.read(season.client, None)
        answer = await send(tried.path, body, {"Content-Type": media_type})
        missing = {field for field in required if sent.get(field, EMPTY) is EMPTY}
        refused = {field for field, value in sent.items() if value is EMPTY and field not in tried.emptied}
        if name.startswith("POST"):
            refused &= required
        if missing | refused:
            assert answer.status == 422
            assert {fault["field"] for fault in answer.json["errors"]} == missing | refused
            assert creates or await tried.read(season.client, None) == before
            return
        after = before | {field: None if value is EMPTY else value for field, value in sent.items()}
        if "winner" in tried.fields and not after.get("participants") and (after.get("result") or after.get("winner")):
            assert answer.status == 422  # there is nobody who could have won
            return
        decimals, time, lasts, expires_on, counts, absent = (
            next((sent[one] for one in sent if one.endswith(field)), EMPTY)
            for field in ("decimals", "time", "lasts", "expires_on", "counts", "absent")
        )
        if creates and (
            (decimals not in (EMPTY, 0) and time is not EMPTY)  # a time has its own
            or (lasts is EMPTY) != (expires_on is EMPTY)
            or (absent is not EMPTY and counts not in (EMPTY, "sum"))  # others have no total without a result anyway
        ):
            assert answer.status == 422
            return
        assert answer.status == 200, answer.json
        shown = await tried.read(season.client, answer.json if creates else None)
        for field in tried.fields:
            value = sent.get(field, ABSENT)
            if value is ABSENT:
                expected = tried.emptied[field] if creates else before[field]
            else:
                expected = tried.emptied[field] if value is EMPTY else value
            assert shown[field] == expected, field

    @settings(unhurried, max_examples=40)
    @given(st.data())
    def property_holds(data: st.DataObject) -> None:
        drawn = {
            field: data.draw(st.sampled_from([ABSENT, EMPTY]) | strategy, label=field)
            for field, strategy in tried.fields.items()
        }
        sent = {field: value for field, value in drawn.items() if value is not ABSENT}
        if data.draw(st.booleans(), label="as a form"):
            body, media_type = as_form(sent), "application/x-www-form-urlencoded"
        else:
            spelled = {field: data.draw(st.sampled_from(spellings.get(field, [None, ""]))) for field in sent}
            said = {field: spelled[field] if value is EMPTY else value for field, value in sent.items()}
            body, media_type = json.dumps(said).encode(), "application/json"
        asyncio.run_coroutine_threadsafe(try_it(sent, body, media_type), loop).result(60)

    await asyncio.to_thread(property_holds)


def test_every_operation_that_changes_something_is_tried() -> None:
    changing_something = {n for n, o in BY_NAME.items() if isinstance(o, Write) and o.fields}
    assert set(TRIED) | set(INSTRUCTIONS) == changing_something
