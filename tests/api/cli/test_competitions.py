"""Competitions on the command line: added, listed, and given their results."""

import re

import pytest

from tests.api.cli.conftest import Tallybook
from tests.service import Season

INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


@pytest.fixture
def slug(season: Season) -> str:
    return season.client.tournament


async def test_a_competition_is_added_with_all_that_is_known(tallybook: Tallybook, season: Season, slug: str) -> None:
    ada, ben, _ = season.ids
    before = await tallybook.json("competition", "list", slug)
    added = await tallybook.done(
        *("competition", "add", slug, "Ben", "Ada", "--group", "7", "--started-at", "2024-05-01 18:30"),
        *("--location", "Hall [b]2[/b]", "--result", "0:1", "--winner", "Ada", "--key", "M7"),
        *("--scale", "double", "--round", "3", "--round-name", "Final"),
    )
    bare = await tallybook.json("competition", "add", slug, str(ada))
    *others, full, empty = await tallybook.json("competition", "list", slug)
    assert others == before
    assert full == {
        "id": int(added),
        "group_id": 7,
        "started_at": "2024-05-01T18:30:00.000000Z",
        "location": "Hall [b]2[/b]",
        "participants": {str(ben): "Ben", str(ada): "Ada"},
        "result": "0:1",
        "winner": ada,
        "voided_at": None,
        "scale": "double",
        "round": 3,
        "round_name": "Final",
        "key": "M7",
    }
    assert INSTANT.fullmatch(empty.pop("started_at"))
    assert empty == {
        "id": bare["id"],
        "group_id": 1,
        "location": "",
        "participants": {str(ada): "Ada"},
        "result": None,
        "winner": None,
        "voided_at": None,
        "scale": "",
        "round": None,
        "round_name": "",
        "key": None,
    }
    listed = await tallybook.done("competition", "list", slug)
    assert "Hall [b]2[/b]" in listed
    assert "started_at (UTC)" in listed


async def test_competitions_are_listed_by_group_competitor_and_result(
    tallybook: Tallybook, season: Season, slug: str
) -> None:
    async def listed(*options: str) -> list[int]:
        return [one["id"] for one in await tallybook.json("competition", "list", slug, *options)]

    duel, sprint, last = await listed()
    await tallybook.json("competition", "change", slug, str(last), "--round", "3")
    assert await listed("--round", "3") == [last]
    assert (duel, last) == (season.voided_competition_id, season.competition_id)
    assert await listed("--group", "2") == [sprint, last]
    assert await listed("--competitor", "Pair") == [sprint, last]
    assert await listed("--has-result") == [duel, sprint]
    assert await listed("--no-has-result") == [last]
    assert await listed("--group", "1", "--no-has-result") == []
    voided, *_ = await tallybook.json("competition", "list", slug)
    assert INSTANT.fullmatch(voided["voided_at"])
    assert await tallybook.refused("competition", "list", slug, "--competitor", "999999") == [
        "This tournament has no competitor 999999."
    ]


async def test_a_result_is_recorded_and_corrected(tallybook: Tallybook, season: Season, slug: str) -> None:
    ada, ben, pair = season.ids
    match = await tallybook.done("competition", "add", slug, "Pair", "Ben")
    assert (await tallybook("competition", "result", slug, "Pair - Ben", "2:1", "--winner", "Pair")).code == 0
    assert set(await tallybook.json("competition", "result", slug, match, " 2:2 ")) == {"sequence"}
    *_, race, duel = await tallybook.json("competition", "list", slug)
    assert (duel["result"], duel["winner"]) == ("2:2", pair)

    performances = '{"Ada": "9.8 s", "%d": "10.1 s"}' % ben  # noqa: UP031 - braces
    await tallybook.done("competition", "result", slug, str(race["id"]), performances, "--winner", "Ada")
    *_, race, _ = await tallybook.json("competition", "list", slug)
    assert (race["result"], race["winner"]) == ({str(ada): "9.8 s", str(ben): "10.1 s"}, ada)


async def test_a_winner_whom_the_result_contradicts_is_refused_where_results_give_points(
    tallybook: Tallybook, season: Season, slug: str
) -> None:
    race = str(season.competition_id)
    places = ("competition", "result", slug, race, '{"Ada": "3", "Ben": "1", "Pair": "2"}', "--winner")
    match = ("competition", "add", slug, "Ada", "Ben", "--result")
    await tallybook.done(*places, "Pair")
    await tallybook.done(*match, "2:2 pen")
    await tallybook.done("ranking", "create", slug, "Regatta", "--like", "sailing")
    await tallybook.done("ranking", "create", slug, "Table", "--like", "football")
    not_first = ["  winner: is not first in the result; leave it empty, or correct the result"]
    no_winner = ["  winner: name the winner: a shoot-out always has one"]
    assert (await tallybook.refused(*places, "Pair"))[1:] == not_first
    assert (await tallybook.refused(*places[:-1]))[1:] == not_first  # the winner from before
    assert (await tallybook.refused("competition", "change", slug, race, "--winner", "Ada"))[1:] == not_first
    await tallybook.done(*places, "Ben")
    await tallybook.done("competition", "change", slug, race, "--location", "Bay")
    for shoot_out in (("2:2 pen",), ("2:2 pen", "--key", "M1")):
        assert (await tallybook.refused(*match, *shoot_out))[1:] == no_winner
    recorded = ("competition", "record", slug, "Ada", "Ben", "--group", "1", "--key", "M2", "--result")
    assert (await tallybook.refused(*recorded, "2:2 pen"))[1:] == no_winner
    await tallybook.done(*recorded, "2:2 pen", "--winner", "Ben")
    await tallybook.done(*recorded, "3:3 pen")
    assert (await tallybook.refused(*recorded, "3:3 pen", "--winner", ""))[1:] == no_winner
    await tallybook.done(*match, "5:4 pen")


async def test_performances_are_an_object_that_names_each_once(
    tallybook: Tallybook, season: Season, slug: str, subtests: pytest.Subtests
) -> None:
    for text, fault in [
        ("1:0", "must be a JSON object"),
        ("[]", "must be a JSON object"),
        ('[["Ada", "1"]]', "must be a JSON object"),
        ('{"Ada": 1}', "must be a JSON object"),
        ('{"Ada": {"Ben": "1"}}', "must be a JSON object"),
        ("[" * 100_000, "must be a JSON object"),
        ('{"Ada": "1", "Ada": "2"}', "names a competitor more than once"),
        ('{"Ada": ""}', "must not be empty"),
    ]:
        with subtests.test(text):
            _, reason = await tallybook.refused("competition", "result", slug, str(season.competition_id), text)
            assert reason.startswith(f"  result: {fault}")


async def test_a_competition_that_is_refused_names_what_is_wrong(
    tallybook: Tallybook, season: Season, slug: str
) -> None:
    assert await tallybook.refused("competition", "add", slug, "Ada", "Ada", "--winner", "Ben") == [
        "The request cannot be accepted as it is; correct the fields named.",
        f"  participants: competitor {season.ids[0]} is named more than once",
        f"  winner: competitor {season.ids[1]} is not a participant",
    ]
    for command in (["add", slug, "Eve"], ["result", slug, str(season.competition_id), '{"Eve": "1"}']):
        assert await tallybook.refused("competition", *command) == ["This tournament has no competitor 'Eve'."]
    assert await tallybook.refused("competition", "result", slug, "999999", "1:0") == [
        "This tournament has no competition 999999."
    ]


async def test_a_competition_is_changed_in_what_is_said_and_emptied_in_what_is_empty(
    tallybook: Tallybook, season: Season, slug: str
) -> None:
    async def shown() -> tuple[object, ...]:
        *_, found = await tallybook.json("competition", "list", slug)
        return found["started_at"][:16], found["location"], found["result"], found["winner"]

    ada = season.ids[0]
    added = await tallybook.done("competition", "add", slug, "Ada", "Ben", "--location", "Hall", "--result", "1:0")
    today, *_ = await shown()
    change = ("competition", "change", slug, added)
    await tallybook.json(*change, "--started-at", "2024-05-01 18:30", "--winner", "Ada")
    assert await shown() == ("2024-05-01T18:30", "Hall", "1:0", ada)
    await tallybook.json(*change, "--result", "", "--winner", "", "--location", "", "--started-at", "")
    assert await shown() == (today, "", None, None)
    await tallybook.json("competition", "result", slug, added, "2:1", "--winner", "Ada")
    await tallybook.json("competition", "result", slug, added, "2:2")
    assert (await shown())[2:] == ("2:2", ada)
    await tallybook.json("competition", "result", slug, added, "", "--winner", "")
    assert (await shown())[2:] == (None, None)


async def test_others_take_part_in_a_competition_with_a_result_that_fits_them(
    tallybook: Tallybook, season: Season, slug: str
) -> None:
    ada, ben, pair = season.ids
    added = await tallybook.done("competition", "add", slug, "Ada", "Ben", "--result", "1:0", "--winner", "Ada")
    change = ("competition", "change", slug, added)
    assert await tallybook.refused(*change, "--participant", "Pair", "--participant", "Ben") == [
        "The request cannot be accepted as it is; correct the fields named.",
        f"  winner: competitor {ada} is not a participant",
    ]
    await tallybook.json(
        *(*change, "--participant", "Pair", "--participant", "Ben", "--winner", "Pair", "--group", "-2"),
        *("--scale", "double", "--round", "7", "--round-name", "Semi-final"),
    )
    *_, found = await tallybook.json("competition", "list", slug)
    assert ([*map(int, found["participants"])], found["winner"]) == ([pair, ben], pair)
    assert (found["group_id"], found["scale"], found["round"], found["round_name"]) == (-2, "double", 7, "Semi-final")
    assert "Semi-final" in await tallybook.done("competition", "list", slug)
    emptied = ("--participant", "", "--winner", "", "--scale", "", "--round", "", "--round-name", "")
    await tallybook.json(*change, *emptied)
    *_, found = await tallybook.json("competition", "list", slug)
    assert (found["participants"], found["scale"], found["round"], found["round_name"]) == ({}, "", None, "")
    assert (await tallybook.refused(*change, "--started-at", "soon"))[0] == "The time cannot be read."


async def test_a_competitor_is_changed_in_what_is_said_and_emptied_in_what_is_empty(
    tallybook: Tallybook, season: Season, slug: str
) -> None:
    async def shown() -> dict[str, object]:
        *_, found = await tallybook.json("competitor", "list", slug)
        return {name: found[name] for name in ("name", "tags", "color", "parent")}

    before = await shown()
    await tallybook.json("competitor", "change", slug, "Pair", "--name", "Duo", "--tag", "a", "--tag", "b")
    assert await shown() == before | {"name": "Duo", "tags": ["a", "b"]}
    await tallybook.json("competitor", "change", slug, "Duo", "--tag", "", "--parent", "", "--color", "")
    assert await shown() == {"name": "Duo", "tags": [], "color": "000000", "parent": None}
    await tallybook.json("competitor", "change", slug, "Duo", "--parent", "Ben")
    assert (await shown())["parent"] == season.ids[1]
    assert "  name: must not be empty" in await tallybook.refused("competitor", "change", slug, "Duo", "--name", "")


async def test_a_ranking_is_described_and_described_no_more(tallybook: Tallybook, season: Season, slug: str) -> None:
    for description in ("Of the spring", ""):
        await tallybook.json("ranking", "describe", slug, "Season", description)
        shown = (await season.client.get(f"{season.path}.json")).json["ranking"]["description"]
        assert shown == (description or None)
