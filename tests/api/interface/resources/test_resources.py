"""Single resources over HTTP: what each shows, and of what it takes no notice."""

from typing import Any

import pytest

from tests.api.asking import NOBODY, refused
from tests.api.leagues import LISTS
from tests.service import Client, Season, deltas


async def items(client: Client, name: str, query: str = "") -> list[Any]:
    found: list[Any] = (await client.get(f"{name}.json{query}")).json[name][LISTS[name]]
    return found


@pytest.mark.parametrize("query", ["", "?omit=competitors"])
async def test_a_resource_is_shown_as_its_list_shows_it(season: Season, query: str) -> None:
    names = ["rankings"] if query else LISTS
    for name in names:
        listed = await items(season.client, name, query)
        assert len(listed) >= 2
        for item in listed:
            answer = await season.client.get(f"{name}/{item['id']}.json{query}")
            assert answer.json == {"status": 200, "message": "ok", LISTS[name]: item}


async def test_a_resource_that_is_not_in_the_tournament_is_404(season: Season) -> None:
    """An id of another kind of resource is no better."""
    ids = {"rankings": season.ranking_id, "competitors": season.ids[0], "competitions": season.competition_id}
    for name in LISTS:
        for one in (NOBODY, 0, "x", *(other for kind, other in ids.items() if kind != name)):
            refused(await season.client.get(f"{name}/{one}.json"), 404)
    refused(await season.client.get(f"rankings/{NOBODY}.json?omit=competitors"), 404)


async def test_nothing_else_can_be_asked_of_a_ranking(season: Season, subtests: pytest.Subtests) -> None:
    for query in ["omit=", "omit=unities", "omit=competitors&omit=competitors", "page=1"]:
        with subtests.test(query):
            refused(await season.client.get(f"{season.path}.json?{query}"), 400, query.partition("=")[0])


async def test_a_ranking_without_competitors_changes_with_its_own_fields_alone(season: Season) -> None:
    """Neither points nor the new name of a competitor change it. If-Match takes its ETag as that of the whole one."""
    client, path = season.client, f"{season.path}.json?omit=competitors"
    before = await client.get(path)
    await client.put(f"{season.path}/add.json", {"participants_delta": deltas((season.ids[0], season.unity_id, 1))})
    await client.put(f"competitors/{season.ids[0]}.json", {"name": "Adelaide"})
    unchanged = await client.get(path, {"If-None-Match": before.headers["ETag"]})
    assert (unchanged.status, unchanged.body) == (304, b"")
    change = {"add": season.ids[0], "remove": season.ids[1]}
    condition = {"If-Match": before.headers["ETag"]}
    assert (await client.put(f"{season.path}/participants.json", change, condition)).status == 200
    refused(await client.put(f"{season.path}/participants.json", change, condition), 412)
    assert (await client.get(path)).headers["ETag"] != before.headers["ETag"]
