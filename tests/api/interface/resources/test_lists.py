"""Lists of competitors and competitions over HTTP: cursors, filters, and what they are refused for."""

import asyncio
from typing import Any, Final

import pytest

from api.interface.fields import read_query
from api.interface.paging import FIELDS, PER_PAGE_MAX, PageQuestion
from engine.domain.terms import NAME_CHARACTERS_MAX
from tests.api.asking import NOBODY, refused
from tests.api.crowds import crowd, live_of, recorded
from tests.api.leagues import LISTS
from tests.bounds import Bounds
from tests.service import Client, Season, create_ranking, register

NAMES: Final = ("competitors", "competitions")


async def part(client: Client, name: str, query: str) -> tuple[dict[str, Any], list[int]]:
    """What the answer says of the list, and the ids in it."""
    answer = await client.get(f"{name}.json?{query}")
    assert answer.status == 200, answer.body
    said = answer.json[name]
    return {key: value for key, value in said.items() if key != LISTS[name]}, [item["id"] for item in said[LISTS[name]]]


async def walk(client: Client, name: str, query: str = "", per_page: int = 2) -> list[int]:
    """The ids of a whole list, part after part."""
    seen: list[int] = []
    after: int | None = 0
    while after is not None:
        said, ids = await part(client, name, f"after={after}&per_page={per_page}{query}")
        assert said.keys() == {"perpage", "next"}
        seen += ids
        after = said["next"]
    return seen


# ── Cursors ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", NAMES)
async def test_a_cursor_continues_after_any_item(season: Season, name: str) -> None:
    client = season.client
    _, ids = await part(client, name, "")
    assert len(ids) == 3
    assert await part(client, name, "after=0") == ({"perpage": 100, "next": None}, ids)
    for number, item_id in enumerate(ids, start=1):
        assert await part(client, name, f"after={item_id}") == ({"perpage": 100, "next": None}, ids[number:])
        following = None if number > 1 else ids[1]
        assert await part(client, name, f"after={item_id}&per_page=1") == (
            {"perpage": 1, "next": following},
            ids[number : number + 1],
        )
    assert await walk(client, name, per_page=1) == await walk(client, name) == ids


@pytest.mark.parametrize("name", NAMES)
async def test_what_is_made_later_comes_after_what_was_the_last(
    season: Season, peers_client: Client, name: str
) -> None:
    """A client that keeps the last id it has seen asks for what is new."""
    client = season.client
    _, ids = await part(client, name, "")
    assert await part(client, name, f"after={ids[-1]}") == ({"perpage": 100, "next": None}, [])
    made = await client.post(f"{name}.json", {"name": "New"} if name == "competitors" else {"group_id": 1})
    new = made.json[LISTS[name]]["id"]
    assert await part(peers_client, name, f"after={ids[-1]}") == ({"perpage": 100, "next": None}, [new])


def test_a_part_has_as_many_items_as_a_page() -> None:
    competitors = live_of(recorded(crowd(PER_PAGE_MAX + 1))).board.competitors
    for text, most in (("200", PER_PAGE_MAX), ("201", PER_PAGE_MAX), ("1", 1)):
        question = PageQuestion(**read_query([("per_page", text), ("after", "0")], FIELDS))
        assert question.part(competitors, "competitor").ids == (*range(1, most + 1),)


async def test_a_walk_shows_all_once_while_others_register(client: Client, peers_client: Client) -> None:
    """Through two processes, with a filter and without."""
    first = await register(client, *(f"first {n}" for n in range(30)))
    registered = asyncio.create_task(register(peers_client, *(f"later {n}" for n in range(60))))

    async def walks() -> None:
        while True:
            done = registered.done()
            for asked in (client, peers_client):
                for query, expected in (
                    ("", first),
                    ("&name=FIRST", first),
                    ("&name=first%201", [first[1], *first[10:20]]),
                ):
                    seen = await walk(asked, "competitors", query, per_page=7)
                    assert len(seen) == len(set(seen))
                    assert seen[: len(expected)] == expected
                    assert (len(seen) > len(expected)) <= (query == "")
            if done:
                assert await walk(client, "competitors") == [*first, *await registered]
                return

    await walks()


# ── Filters ─────────────────────────────────────────────────────────────────────────────────────────────


async def test_competitors_are_found_by_name_tag_and_parent(season: Season) -> None:
    client, (ada, ben, pair) = season.client, season.ids
    changed = {"name": "ÄNNE", "tags": "mixed,J\u00fan", "parent": ada}
    accented = (await client.post("competitors.json", changed)).json
    anne = accented["competitor"]["id"]
    for query, ids in (
        ("name=a", [ada]),
        ("name=ADA", [ada]),
        ("name=%C3%A4n", [anne]),
        ("name=a%CC%88n", [anne]),
        ("name=an", []),
        ("tag=Ju%CC%81n", [anne]),
        ("name=x", []),
        ("tag=mixed", [pair, anne]),
        ("tag=Mixed", []),
        ("tag=mix", []),
        (f"parent={ada}", [pair, anne]),
        (f"parent={ben}", []),
        (f"parent={ada}&tag=mixed&name=P", [pair]),
    ):
        assert await part(client, "competitors", query) == (
            {"page": 1, "pages": 1, "perpage": 100, "total": len(ids)},
            ids,
        )
        assert await walk(client, "competitors", f"&{query}", per_page=1) == ids


async def test_competitions_are_found_by_group_competitor_result_and_time(season: Season) -> None:
    client, (ada, ben, pair) = season.client, season.ids
    _, (duel, sprint, last) = await part(client, "competitions", "")
    for competition_id, time in ((duel, "12:00:00"), (sprint, "12:00:01"), (last, "13:00:00")):
        await client.put(f"competitions/{competition_id}.json", {"started_at": f"2030-01-01 {time}"})
    await client.put(f"competitions/{last}.json", {"round": "3"})
    for query, ids in (
        ("group_id=2", [sprint, last]),
        ("group_id=-3", []),
        ("round=3", [last]),
        ("round=0", []),
        (f"competitor={pair}", [sprint, last]),
        (f"competitor={ben}", [duel, sprint, last]),
        ("has_result=true", [duel, sprint]),
        ("has_result=false", [last]),
        ("from=2030-01-01%2012:00:01", [sprint, last]),
        ("to=2030-01-01%2012:00:00", [duel]),
        ("to=2030-01-01%2012:00", [duel, sprint]),
        ("from=2030-01-01%2012:00:01&to=2030-01-01%2012:00:01", [sprint]),
        ("from=2030-01-01&to=2030-01-01", [duel, sprint, last]),
        (f"from=2030-01-02&competitor={ada}", []),
        (f"competitor={ada}&group_id=2&has_result=true&to=2030-01-01", [sprint]),
    ):
        assert await part(client, "competitions", query) == (
            {"page": 1, "pages": 1, "perpage": 100, "total": len(ids)},
            ids,
        )
        assert await walk(client, "competitions", f"&{query}", per_page=1) == ids


async def test_pages_of_what_is_found_are_cut_from_all_of_it(season: Season, bounds: Bounds) -> None:
    bounds(LOOKED_AT_ONCE=2)
    ids = await register(season.client, *(f"{'xy'[n % 2]}{n}" for n in range(9)))
    for page, found in ((1, ids[0:4:2]), (2, ids[4:8:2]), (3, ids[8:]), (4, []), (10**18, [])):
        assert await part(season.client, "competitors", f"name=x&per_page=2&page={page}") == (
            {"page": page, "pages": 3, "perpage": 2, "total": 5},
            found,
        )


async def test_a_filter_goes_by_what_is_so_now(season: Season, peers_client: Client) -> None:
    client, (ada, ben, pair) = season.client, season.ids
    duel = (await part(client, "competitions", ""))[1][0]

    async def assert_found(name: str, query: str, *ids: int) -> None:
        for asked in (client, peers_client):
            assert (await part(asked, name, query))[1] == [*ids]
            assert await walk(asked, name, f"&{query}") == [*ids]

    await assert_found("competitors", "name=b", ben)
    await assert_found("competitors", f"parent={ben}")
    await assert_found("competitions", "has_result=false", season.competition_id)
    await assert_found("competitions", "from=2040-01-01")
    await client.put(f"competitors/{ada}.json", {"name": "Bea"})
    await client.put(f"competitors/{pair}.json", {"parent": ben})
    await client.put(f"competitions/{season.competition_id}.json", {"result": f'{{"{ada}":"a"}}'})
    await client.put(f"competitions/{duel}.json", {"started_at": "2040-01-01 00:00:00"})
    await assert_found("competitors", "name=b", ada, ben)
    await assert_found("competitors", f"parent={ben}", pair)
    await assert_found("competitions", "has_result=false")
    await assert_found("competitions", "from=2040-01-01", duel)
    await client.put(f"competitors/{ben}.json", {"name": "Cas"})
    await assert_found("competitors", "name=b", ada)


@pytest.mark.parametrize("query", ["after=0", "name=a&after=0", "has_result=true", "group_id=2&after=0"])
async def test_a_part_that_is_long_shows_the_same(season: Season, bounds: Bounds, query: str) -> None:
    name = "competitors" if "name" in query else "competitions"
    short = await season.client.get(f"{name}.json?{query}")
    assert (await season.client.get(f"{name}.json?{query}", {"If-None-Match": short.headers["ETag"]})).status == 304
    bounds(LONG_BYTES=0)
    long = await season.client.get(f"{name}.json?{query}")
    assert "Transfer-Encoding" in long.headers
    assert long.json == short.json
    assert (await season.client.get(f"{name}.json?{query}", {"If-None-Match": long.headers["ETag"]})).status == 304
    other = await season.client.get(f"{name}.json?{query}&per_page=1")
    assert other.headers["ETag"] != long.headers["ETag"]


# ── Refusals ────────────────────────────────────────────────────────────────────────────────────────────


async def test_what_is_not_there_is_422_and_named(season: Season) -> None:
    client = season.client
    ranking = (await create_ranking(client, season.ids))["id"]
    for name, query, field in (
        ("competitors", f"after={NOBODY}", "after"),
        ("competitors", f"after={season.competition_id}", "after"),
        ("competitors", f"after={ranking}&name=a", "after"),
        ("competitors", f"parent={NOBODY}", "parent"),
        ("competitions", f"after={season.ids[0]}", "after"),
        ("competitions", f"after={NOBODY}&group_id=2", "after"),
        ("competitions", f"competitor={season.competition_id}", "competitor"),
    ):
        (said,) = refused(await client.get(f"{name}.json?{query}"), 422, field)
        assert said.endswith("is not in this tournament")


async def test_what_cannot_be_read_is_400_and_named(season: Season, subtests: pytest.Subtests) -> None:
    for name, query, fields in [
        ("competitors", "after=0&page=1", ["page", "after"]),
        ("competitions", "after=5&page=2&group_id=1", ["page", "after"]),
        ("competitors", "after=-1", ["after"]),
        ("competitors", "after=x", ["after"]),
        ("competitors", "name=", ["name"]),
        ("competitors", f"name={'a' * (NAME_CHARACTERS_MAX + 1)}", ["name"]),
        ("competitors", "tag=&parent=0", ["tag", "parent"]),
        ("competitors", "group_id=1", ["group_id"]),
        ("competitions", "has_result=1", ["has_result"]),
        ("competitions", "has_result=True", ["has_result"]),
        ("competitions", "group_id=x&from=yesterday&to=2030-02-30", ["group_id", "from", "to"]),
        ("competitions", "from=2030-01-02&to=2030-01-01", ["from"]),
        ("competitions", "name=a", ["name"]),
    ]:
        with subtests.test(name):
            refused(await season.client.get(f"{name}.json?{query}"), 400, *fields)


async def test_the_longest_name_can_be_looked_for(season: Season) -> None:
    name = "n" * NAME_CHARACTERS_MAX
    (found,) = await register(season.client, name)
    assert await walk(season.client, "competitors", f"&name={name}") == [found]
