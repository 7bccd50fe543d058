"""Registrations corrected: a competitor that was registered twice, and one that withdraws."""

import pytest

from tests.api.cli.conftest import Tallybook
from tests.api.imports.league import League, open_league


class Clubs(League):
    def __init__(self, tallybook: Tallybook, slug: str) -> None:
        self.tallybook = tallybook
        self.slug = slug

    async def points(self) -> dict[str, int]:
        return (await self.table())["points"]

    async def done(self, *words: str) -> str:
        kind, verb, *rest = words
        return (await self.tallybook.done(kind, verb, self.slug, *rest)).strip()

    async def play(self, first: str, second: str, score: str, *more: str) -> str:
        winner = ("--winner", first) if score[0] > score[-1] else ("--winner", second) if score[0] < score[-1] else ()
        return await self.done("competition", "add", first, second, "--result", score, *winner, *more)


@pytest.fixture
async def clubs(tallybook: Tallybook) -> Clubs:
    return Clubs(tallybook, await open_league(tallybook))


async def test_a_competitor_that_was_registered_twice_is_replaced_and_its_results_give_the_other_one_points(
    clubs: Clubs,
) -> None:
    twice = await clubs.done("competitor", "add", "Ajax 1900", "--key", "T1")
    youth = await clubs.done("competitor", "add", "Ajax Youth", "--parent", "Ajax 1900")
    await clubs.done("participants", "add", "Table", "Ajax 1900")
    match = await clubs.play("Ajax 1900", "Brest", "2:1")
    race = await clubs.done(
        *("competition", "add", "Ajax 1900", "Brest", "Celtic"),
        *("--result", '{"Ajax 1900": "9.8", "Brest": "9.9"}', "--winner", "Ajax 1900"),
    )
    await clubs.done("points", "add", "Table", "Ajax 1900=5")
    await clubs.done("points", "add", "Table", "Ajax 1900=1", "--competition", match)
    before = await clubs.points()
    assert (before["Ajax 1900"], before["Ajax"], before["Brest"]) == (9, 0, 0)
    planned = await clubs.tallybook.json("competitor", "replace", clubs.slug, "Ajax 1900", "Ajax", "--dry-run")
    assert (await clubs.points(), planned["sequence"]) == (before, None)
    done = await clubs.tallybook.json("competitor", "replace", clubs.slug, "Ajax 1900", "Ajax")
    assert [(one["amount"], one["competition_id"]) for one in done["points"]] == [(5, None), (1, int(match))]
    assert [str(one) for one in done["competitions"]] == [match, race]
    assert {name: done[name] for name in ("id", "competitions", "rankings", "points")} == {
        name: planned[name] for name in ("id", "competitions", "rankings", "points")
    }
    assert await clubs.points() == {"Ajax": 3, "Brest": 0, "Celtic": 0, "Dynamo": 0}
    people = {str(one["id"]): one for one in await clubs.tallybook.json("competitor", "list", clubs.slug)}
    ajax = next(one for one in people.values() if one["name"] == "Ajax")
    assert (people[twice]["name"], people[twice]["key"]) == (f"#{twice}", None)
    assert (ajax["key"], people[youth]["parent"]) == ("T1", ajax["id"])
    shown = {str(one["id"]): one for one in await clubs.listed()}
    assert shown[race]["winner"] == ajax["id"]
    assert next(iter(shown[race]["result"])) == str(ajax["id"])
    assert await clubs.tallybook.refused("competitor", "replace", clubs.slug, twice, "Ajax") == [
        f"Competitor {twice} was erased."
    ]


async def test_two_that_played_each_other_are_not_merged(clubs: Clubs) -> None:
    match = await clubs.play("Ajax", "Brest", "2:1")
    ids = {one["name"]: one["id"] for one in await clubs.tallybook.json("competitor", "list", clubs.slug)}
    refused = await clubs.tallybook.refused("competitor", "replace", clubs.slug, "Ajax", "Brest")
    assert refused == [
        f"Competitors {ids['Ajax']} and {ids['Brest']} both took part in competition {match}; correct that first."
    ]
    assert await clubs.tallybook.refused("competitor", "replace", clubs.slug, "Ajax", "Ajax") == [
        "The request cannot be accepted as it is; correct the fields named.",
        "  by: must be another competitor",
    ]
    await clubs.done("ranking", "close", "Table")
    (reason,) = await clubs.tallybook.refused("competitor", "replace", clubs.slug, "Ajax", "Celtic")
    assert reason == "These rankings are closed; reopen them first: 'Table'."


async def test_a_club_that_withdraws_is_taken_out_with_its_results(clubs: Clubs) -> None:
    matches = [await clubs.play("Ajax", "Brest", "2:1"), await clubs.play("Celtic", "Ajax", "0:0")]
    await clubs.play("Brest", "Celtic", "1:0")
    race = await clubs.done(
        *("competition", "add", "Ajax", "Brest", "Celtic", "--result", '{"Ajax": "9.8", "Brest": "9.9"}')
    )
    await clubs.done("points", "add", "Table", "Ajax=7", "Brest=2", "--competition", race)
    before = await clubs.points()
    preview = await clubs.tallybook.json("competitor", "withdraw", clubs.slug, "Ajax", "--dry-run")
    assert await clubs.points() == before
    (table,) = preview["compared"]
    moves = {one["name"]: one["total_after"] for one in table["unities"][0]["moves"]}
    done = await clubs.tallybook.json("competitor", "withdraw", clubs.slug, "Ajax")
    assert ([str(one) for one in done["voided"]], [str(one) for one in done["struck"]]) == (matches, [race])
    after = await clubs.points()
    assert after == {"Brest": 5, "Celtic": 0, "Dynamo": 0}
    assert {name: moves.get(name, before[name]) for name in before} == after | {"Ajax": None}
    assert (await clubs.tallybook.json("competitor", "withdraw", clubs.slug, "Ajax"))["sequence"] is None
    assert "out" in await clubs.done("competitor", "withdraw", "Brest", "--dry-run")
    assert await clubs.points() == after


async def test_a_club_that_withdraws_may_keep_what_it_has_played(clubs: Clubs) -> None:
    await clubs.play("Ajax", "Brest", "2:1")
    fixture = await clubs.done("competition", "add", "Ajax", "Celtic")
    before = await clubs.points()
    done = await clubs.tallybook.json("competitor", "withdraw", clubs.slug, "Ajax", "--keep-results")
    assert ([str(one) for one in done["voided"]], done["struck"], done["rankings"]) == ([fixture], [], [])
    assert await clubs.points() == before
