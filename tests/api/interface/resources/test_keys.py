"""Keys of the organiser where an id is expected, over HTTP. Without keys, answers are as documented, which other tests
look at."""

import json
from typing import Any, Final
from urllib.parse import quote, urlencode

import pytest

from api.interface.declarations import Preview, Write
from api.interface.fields import fields_of
from tests.api.asking import READS, example_of, keyed, path_of, with_points
from tests.api.rendered import BY_NAME
from tests.service import Client, Season, listed

A7 = "A 7/\N{LATIN SMALL LETTER E WITH ACUTE}"


@pytest.fixture
async def with_keys(season: Season) -> Season:
    """The first competitor has the key A7, the second the id of the first as a key, a new competition M1."""
    ada, ben, _ = season.ids
    for who, key in ((ada, A7), (ben, str(ada))):
        assert (await season.client.put(f"competitors/{who}.json", {"key": key})).json["competitor"]["key"] == key
    added = {"group_id": 1, "participants": listed([ada, ben]), "key": "M1"}
    assert (await season.client.post("competitions.json", added)).json["competition"]["key"] == "M1"
    return season


@pytest.fixture
def of_ada() -> str:
    """In a path."""
    return f"key:{quote(A7, safe='')}"


async def test_a_key_names_a_competitor_or_competition_in_a_path(with_keys: Season, of_ada: str) -> None:
    client, (ada, ben, _) = with_keys.client, with_keys.ids
    for key, its_id in ((of_ada, ada), (of_ada.replace("%C3%A9", "e%CC%81"), ada), (f"key:{ada}", ben)):
        shown = await client.get(f"competitors/{key}.json")
        assert (shown.status, shown.json["competitor"]["id"]) == (200, its_id)
    changed = await client.put("competitions/key:M1.json", {"result": "2:1"})
    assert changed.json["competition"]["result"] == "2:1"
    for path in (
        f"competitors/{of_ada}/standings.json",
        "competitions/key:M1/void.json",
        f"competitors/{of_ada}/erase.json",
    ):
        assert (await client.get(path)).status == 200
    etag = (await client.get(f"competitors/{of_ada}.json")).headers["ETag"]
    renamed = await client.put(f"competitors/{of_ada}.json", {"name": "Ada L."}, {"If-Match": etag})
    assert (renamed.status, renamed.json["competitor"]["name"]) == (200, "Ada L.")
    explained = await client.get(f"{with_keys.path}/competitors/{of_ada}/explanation.json")
    assert explained.json == (await client.get(f"{with_keys.path}/competitors/{ada}/explanation.json")).json


async def test_a_key_of_nothing_is_not_found(with_keys: Season, subtests: pytest.Subtests) -> None:
    for path in ["competitors/key:M1.json", "competitors/key:.json", "competitions/M1.json", "rankings/key:1.json"]:
        with subtests.test(path):
            assert (await with_keys.client.get(path)).status == 404


async def test_fields_that_name_competitors_or_competitions_take_keys(with_keys: Season) -> None:
    client, (ada, ben, _) = with_keys.client, with_keys.ids
    duel = {"group_id": 1, "participants": f"key:{ada}, key:{A7}", "winner": f"key:{A7}", "result": "1:2"}
    for sent in (duel, json.dumps(duel | {"participants": [f"key:{ada}", f"key:{A7}"]})):
        headers = {} if isinstance(sent, dict) else {"Content-Type": "application/json"}
        body = sent if isinstance(sent, dict) else sent.encode()
        shown = (await client.post("competitions.json", body, headers)).json["competition"]
        assert [(one["competitor_id"], one["winner"]) for one in shown["participants"]] == [(ben, False), (ada, True)]
    child = await client.post("competitors.json", {"name": "Child: key:no", "parent": f"key:{A7}", "key": "C3"})
    assert child.json["competitor"]["level"] == 1
    three = f"key:{A7},key:{ada},key:C3"
    for form in (
        {"result": json.dumps({f"key:{A7}": "9.8", str(ben): "key:x"})},
        {f"result[key:{A7}]": "9.8", f"result[{ben}]": "key:x"},
    ):
        race = await client.post("competitions.json", {"group_id": 1, "participants": three, **form})
        assert race.json["competition"]["result"] == {str(ada): "9.8", str(ben): "key:x"}
    items = json.dumps([{"group_id": 1, "participants": ["key:C3"]}, {"group_id": 1, "winner": None}])
    several = await client.post("competitions.json", {"items": items})
    assert several.json["competitions"]["competition"][0]["participants"][0]["competitor"]["key"] == "C3"


async def test_lists_are_filtered_by_keys(with_keys: Season) -> None:
    client, (ada, ben, _) = with_keys.client, with_keys.ids
    child = (await client.post("competitors.json", {"name": "Child", "parent": ben})).json["competitor"]["id"]
    for path, key, expected in (
        ("competitions.json?competitor={}", f"key:{quote(A7)}", ada),
        ("competitors.json?parent={}", f"key:{ada}", ben),
    ):
        by_key, by_id = [await client.get(path.format(one)) for one in (key, expected)]
        assert (by_key.status, by_key.json) == (200, by_id.json)
    (found,) = by_key.json["competitors"]["competitor"]
    assert found["id"] == child
    await client.put(f"competitors/{ben}.json", {"key": ""})
    refused = await client.get(f"competitors.json?parent=key:{ada}")
    assert (refused.status, refused.json["errors"]) == (
        422,
        [{"field": "parent", "message": f"no competitor has the key '{ada}'"}],
    )
    assert (await client.get(f"competitors.json?page=key:{ada}")).status == 400


def naming(name: str) -> dict[str, str]:
    """The fields of an operation that name competitors or competitions, and which of them they name."""
    operation = BY_NAME[name]
    made = operation.command if isinstance(operation, Preview | Write) else operation.question
    return {field.name: field.names for field in fields_of(made, operation.fields) if field.names}


NAMING: Final = {name: fields for name in READS if (fields := naming(name)) or "{compet" in name}


async def test_every_read_takes_a_key_wherever_it_takes_the_id(season: Season, subtests: pytest.Subtests) -> None:
    season = await with_points(season)
    its = {"competitor": season.ids[0], "competition": season.competition_id}
    for kind, one in its.items():
        assert (await season.client.put(f"{kind}s/{one}.json", {"key": "K-1"})).status == 200
    assert len(NAMING) > 15
    for name, fields in NAMING.items():
        with subtests.test(name):
            path = by_key = path_of(name, season)
            for kind, one in its.items():
                by_key = by_key.replace(f"{kind}s/{one}", f"{kind}s/key:K-1")
            needed = {field.name: example_of(name)[field.name] for field in BY_NAME[name].fields if field.required}
            for field, kind in fields.items() or [("", "competitor")]:
                span = {"span": "1"} if field == "around" else {}
                asked, by = (needed | span | ({field: one} if field else {}) for one in (its[kind], "key:K-1"))
                by_id = await season.client.get(f"{path}?{urlencode(asked)}")
                found = await season.client.get(f"{by_key}?{urlencode(by)}")
                assert (found.status, found.body) == (by_id.status, by_id.body), field
                assert by_id.status in (200, 409, 422), field


async def test_points_take_keys_of_competitors_and_of_their_cause(with_keys: Season) -> None:
    client, (ada, *_) = with_keys.client, with_keys.ids
    deltas = [{"competitor_id": f"key:{A7}", "unities": [{"unity_id": with_keys.unity_id, "delta": "5"}]}]
    form = {"participants_delta": json.dumps(deltas), "competition_id": "key:M1"}
    assert (await client.put(f"{with_keys.path}/add.json", form)).status == 200
    line = (await client.get(f"{with_keys.path}/history.json?limit=1000")).json["history"][-1]
    match = (await client.get("competitions/key:M1.json")).json["competition"]["id"]
    assert (line["competitor_id"], line["delta"], line["competition_id"]) == (ada, 5, match)


async def test_a_key_of_nothing_is_a_fault_of_its_field(with_keys: Season) -> None:
    form = {"group_id": 1, "participants": f"key:{A7},key:nobody", "winner": "key:M1", "key": "key:M2"}
    refused = await with_keys.client.post("competitions.json", form)
    assert (refused.status, refused.json["errors"]) == (
        422,
        [
            {"field": "participants", "message": "no competitor has the key 'nobody'"},
            {"field": "winner", "message": "no competitor has the key 'M1'"},
        ],
    )


def of_nothing(season: Season) -> list[tuple[str, str, dict[str, Any], list[tuple[str, str]]]]:
    """Changes with keys of nothing, and the faults of their fields."""
    (ada, *_), path = season.ids, season.path
    delta = {"competitor_id": "key:x", "unities": [{"unity_id": season.unity_id, "delta": "1"}]}
    own = delta | {"competitor_id": ada}
    person, match = "no competitor has the key", "no competition has the key"
    two = [{"competition": "key:y", "result": "1:0"}, {"competition": season.competition_id, "result": {"key:x": "1"}}]
    return [
        ("POST", "competitions.json", {"group_id": 1, "participants": ["key:x", "key:y"]},
         [("participants", f"{person} 'x'"), ("participants", f"{person} 'y'")]),
        ("POST", "competitions.json", {"group_id": 1, "winner": "key:x"}, [("winner", f"{person} 'x'")]),
        ("POST", "competitors.json", {"name": "Eve", "parent": "key:x"}, [("parent", f"{person} 'x'")]),
        ("POST", "rankings.json", {"name": "Cup", "main_unity_name": "goals", "participants": ["key:x"]},
         [("participants", f"{person} 'x'")]),
        ("PUT", f"{path}/participants.json", {"add": ["key:x"]}, [("add", f"{person} 'x'")]),
        ("PUT", f"{path}/participants.json", {"remove": ["key:x"]}, [("remove", f"{person} 'x'")]),
        ("PUT", f"{path}/add.json", {"participants_delta": [delta]}, [("participants_delta", f"{person} 'x'")]),
        ("PUT", f"{path}/add.json", {"participants_delta": [own], "competition_id": "key:x"},
         [("competition_id", f"{match} 'x'")]),
        ("PUT", f"competitions/{season.competition_id}/strike.json", {"competitors": ["key:x"]},
         [("competitors", f"{person} 'x'")]),
        ("PUT", "results.json", two[0], [("competition", f"{match} 'y'")]),
        ("PUT", "results.json", two[1], [("result", f"{person} 'x'")]),
        ("PUT", "results.json", {"items": two},
         [("items[0].competition", f"{match} 'y'"), ("items[1].result", f"{person} 'x'")]),
        ("PUT", "competitions/key:x.json", {"participants": ["key:y"]}, []),
        ("PUT", "competitions/key:x/void.json", {}, []),
    ]  # fmt: skip


async def test_a_change_with_a_key_of_nothing_is_refused_by_that_key(
    with_keys: Season, subtests: pytest.Subtests
) -> None:
    """Whether it may be repeated or not, and each time."""
    headers = {"Content-Type": "application/json"}
    for number, (method, path, fields, faults) in enumerate(of_nothing(with_keys)):
        for more in ({}, keyed(f"k{number}"), keyed(f"k{number}")):
            with subtests.test(path, fields=fields, more=more):
                send = with_keys.client.post if method == "POST" else with_keys.client.put
                refused = await send(path, json.dumps(fields).encode(), headers | more)
                if faults:
                    assert refused.status == 422
                    assert [(one["field"], one["message"]) for one in refused.json["errors"]] == faults
                else:
                    assert (refused.status, refused.json["errors"]) == (404, [])
                    assert refused.json["message"] == "This tournament has no competition 'key:x'."


async def test_performances_are_given_by_key_however_participants_are_named(with_keys: Season) -> None:
    ada, ben, pair = with_keys.ids
    fields = {"group_id": 1, "participants": [ada, ben, pair], "result": {f"key:{A7}": "9.8", str(pair): '"key:x":'}}
    race = await with_keys.client.post(
        "competitions.json", json.dumps(fields).encode(), {"Content-Type": "application/json"}
    )
    assert race.json["competition"]["result"] == {str(ada): "9.8", str(pair): '"key:x":'}


async def test_a_repeat_gets_its_earlier_answer_whatever_has_the_key_now(with_keys: Season, of_ada: str) -> None:
    client, (ada, ben, _) = with_keys.client, with_keys.ids
    path, form = f"competitors/{of_ada}.json", {"parent": f"key:{ada}"}
    assert (await client.put(path, form, keyed("once"))).status == 200
    for who, key in ((ada, ""), (ben, "")):
        await client.put(f"competitors/{who}.json", {"key": key})
    again = await client.put(path, form, keyed("once"))
    assert (again.status, again.headers["Idempotency-Replayed"]) == (200, "true")
    assert (await client.put(path, form, keyed("twice"))).status in (404, 422)


async def test_a_key_that_another_process_has_just_given_is_found(with_keys: Season, peers_client: Client) -> None:
    await peers_client.get("competitors/key:M9.json")
    made = await with_keys.client.post("competitors.json", {"name": "Eve", "key": "M9"})
    shown = await peers_client.get("competitors/key:M9.json")
    assert shown.json["competitor"]["id"] == made.json["competitor"]["id"]
