"""Rankings, their lists of competitors, and points: what the interface can do, the command line can."""

import json
from datetime import UTC, datetime
from typing import Any

import asyncpg
import pytest

from api.interface.direction import isolated
from engine.domain.terms import DELTA_MAX
from tests.api.cli.conftest import Tallybook
from tests.told_clock import told_clock

CORRECT = "The request cannot be accepted as it is; correct the fields named."


@pytest.fixture
async def slug(tallybook: Tallybook) -> str:
    """A tournament of Ann, Bob and Cid."""
    slug = await tallybook.done("tournament", "create", "Cup")
    for name in ("Ann", "Bob", "Cid"):
        await tallybook.done("competitor", "add", slug, name)
    return slug


async def ids(tallybook: Tallybook, slug: str) -> dict[str, int]:
    return {one["name"]: one["id"] for one in await tallybook.json("competitor", "list", slug)}


async def table(tallybook: Tallybook, slug: str, ranking: str, unity: int = 0) -> list[tuple[str, int, int]]:
    """Name, position and total of each line of a unity."""
    names = {i: name for name, i in (await ids(tallybook, slug)).items()}
    lines = (await tallybook.json("standings", slug, ranking))["unities"][unity]["competitors_ranking"]
    return [(names[line["competitor_id"]], line["position"], line["total"]) for line in lines]


async def listed(tallybook: Tallybook, slug: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = await tallybook.json("ranking", "list", slug)
    return found


async def test_a_ranking_is_of_all_competitors_unless_some_are_named(tallybook: Tallybook, slug: str) -> None:
    everybody = await tallybook.json("ranking", "create", slug, " Season ")
    assert everybody == {"id": everybody["id"], "name": "Season", "unity_id": everybody["unity_id"]}
    two = await tallybook.done(
        "ranking", "create", slug, "Final", "Cid", "Ann", "--unity", "goals", "--description", "The last\ntwo"
    )
    assert await listed(tallybook, slug) == [
        {"id": everybody["id"], "name": "Season", "unities": {str(everybody["unity_id"]): "points"}, "competitors": 3,
         "closed_at": None, "hidden": False},
        {"id": int(two), "name": "Final", "unities": (await listed(tallybook, slug))[1]["unities"], "competitors": 2,
         "closed_at": None, "hidden": False},
    ]  # fmt: skip
    assert await table(tallybook, slug, "Final") == [("Cid", 1, 0), ("Ann", 1, 0)]
    assert (await tallybook.json("standings", slug, two))["description"] == "The last\ntwo"


async def test_every_fault_of_a_ranking_is_listed(tallybook: Tallybook, slug: str) -> None:
    assert await tallybook.refused("ranking", "create", slug, "", "Ann", "Ann", "--unity", "a\tb") == [
        CORRECT,
        "  name: must not be empty",
        "  main_unity_name: must not contain the control character U+0009",
        f"  participants: competitor {(await ids(tallybook, slug))['Ann']} is named more than once",
    ]
    empty = await tallybook.done("tournament", "create", "Empty")
    assert await tallybook.refused("ranking", "create", empty, "Season") == [
        CORRECT,
        "  participants: must name at least one competitor",
    ]


async def test_a_known_kind_decides_the_unities(tallybook: Tallybook, slug: str) -> None:
    assert await tallybook.refused("ranking", "create", slug, "Contest", "--like", "icpc", "--unity", "solved") == [
        "--like already sets the unities; leave out --unity, --sort, --decimals, --time, --counts and --absent."
    ]
    await tallybook.done("ranking", "create", slug, "Contest", "--like", "icpc")
    (contest,) = await listed(tallybook, slug)
    assert list(contest["unities"].values()) == ["solved", "penalty", "last solved"]
    await tallybook.done("points", "add", slug, "Contest", "Ann=2", "Bob=2", "Cid=1")
    await tallybook.done("points", "add", slug, "Contest", "Ann=90", "Bob=80", "Cid=5", "--unity", "penalty")
    shown = await tallybook.json("classification", "show", slug, "Contest")
    names = {i: name for name, i in (await ids(tallybook, slug)).items()}
    assert [names[line["competitor_id"]] for line in shown["standings"]] == ["Bob", "Ann", "Cid"]


async def test_an_empty_lifetime_is_refused_and_not_taken_for_none(tallybook: Tallybook, slug: str) -> None:
    for kind in ([], ["--like", "tennis"]):
        assert "main_unity_lasts" in "".join(
            await tallybook.refused("ranking", "create", slug, "R", "--lasts", "", *kind)
        )


async def test_a_ranking_is_renamed(tallybook: Tallybook, slug: str) -> None:
    ranking_id = await tallybook.done("ranking", "create", slug, "Season")
    said = await tallybook("ranking", "rename", slug, "Season", " Saison ")
    assert (said.code, said.out, said.err) == (0, "", f"ranking {ranking_id} is named Saison\n")
    assert [ranking["name"] for ranking in await listed(tallybook, slug)] == ["Saison"]
    assert await tallybook.refused("ranking", "rename", slug, "Saison", " ") == [CORRECT, "  name: must not be empty"]


async def test_names_from_the_right_are_isolated_in_titles_and_sentences(tallybook: Tallybook, slug: str) -> None:
    league, points = "\u05d0\u05d1", "\u05d2\u05d3"
    await tallybook.done(
        "ranking", "create", slug, "League", "--unity", points, "--lasts", "P52W", "--expires-on", "day"
    )
    renamed = await tallybook("ranking", "rename", slug, "League", league)
    assert f"is named {isolated(league)}" in renamed.err
    title = f"{isolated(league)}: {isolated(points)}"
    for command, *options in (["standings"], ["form"], ["leaders"], ["expiring", "--until", "2099-01-01"]):
        assert title in await tallybook.done(command, slug, league, *options), command
    named = await tallybook("tournament", "rename", slug, points)
    assert f"is named {isolated(points)}" in named.err
    other = await tallybook.done("tournament", "create", points)
    assert isolated(points) in await tallybook.done("tournament", "delete", other, "--without-archive")


async def test_rankings_are_ordered_and_hidden(tallybook: Tallybook, slug: str) -> None:
    first, second, third = [await tallybook.done("ranking", "create", slug, name) for name in ("A", "B", "C")]
    await tallybook.done("ranking", "order", slug, "C", second)
    assert [one["name"] for one in await listed(tallybook, slug)] == ["C", "B", "A"]
    assert (await tallybook("ranking", "hide", slug, "A")).err == f"ranking {first} is hidden\n"
    assert [one["hidden"] for one in await listed(tallybook, slug)] == [False, False, True]
    assert await tallybook.refused("ranking", "hide", slug, "A") == [f"Ranking {first} is already hidden."]
    await tallybook.done("ranking", "show", slug, "A")
    assert not any(one["hidden"] for one in await listed(tallybook, slug))
    assert await tallybook.refused("ranking", "order", slug, third, "C") == [
        CORRECT,
        f"  order: ranking {third} is named more than once",
    ]


async def test_a_unity_is_changed(tallybook: Tallybook, slug: str) -> None:
    """The main one here: a race, where the lowest total wins."""
    await tallybook.done("ranking", "create", slug, "Race", "Ann", "Bob")
    await tallybook.done("points", "add", slug, "Race", "Ann=61", "Bob=60")
    said = await tallybook("unity", "change", slug, "Race", "points", "--sort", "ASC", "--name", "seconds")
    assert (said.code, said.out, said.err) == (0, "", "recorded as event 7\n")
    assert (await tallybook.json("standings", slug, "Race"))["unities"][0]["name"] == "seconds"
    assert await table(tallybook, slug, "Race") == [("Bob", 1, 60), ("Ann", 2, 61)]
    assert await tallybook.refused("unity", "change", slug, "Race", "seconds", "--name", "") == [
        CORRECT,
        "  name: must not be empty",
    ]


async def test_a_ranking_is_created_in_which_the_lowest_time_wins(tallybook: Tallybook, slug: str) -> None:
    race = ("Race", "Ann", "Bob", "--unity", "time", "--sort", "ASC", "--time", "ms")
    await tallybook.done("ranking", "create", slug, *race)
    await tallybook.done("points", "add", slug, "Race", "Ann=2:03:17.4", "Bob=1:59:40")
    assert await table(tallybook, slug, "Race") == [("Bob", 1, 7_180_000), ("Ann", 2, 7_397_400)]
    assert await tallybook.refused("points", "add", slug, "Race", "Ann=2h") == [
        "These points cannot be read.",
        "  Ann=2h: must be COMPETITOR=POINTS, and the points must be a time, such as 2:03:17.4, 3:05 or 45",
    ]


async def test_points_may_have_decimals(tallybook: Tallybook, slug: str) -> None:
    await tallybook.done("ranking", "create", slug, "Chess", "Ann", "Bob")
    await tallybook.done("unity", "add", slug, "Chess", "half", "--decimals", "1")
    await tallybook.done("points", "add", slug, "Chess", "Ann=0.5", "Bob=-1", "--unity", "half")
    assert await table(tallybook, slug, "Chess", 1) == [("Ann", 1, 5), ("Bob", 2, -10)]
    await tallybook.done("points", "add", slug, "Chess", "Ann=½", "Bob=1,5", "--unity", "half")
    assert await table(tallybook, slug, "Chess", 1) == [("Ann", 1, 10), ("Bob", 2, 5)]
    (refused,) = (await tallybook.refused("points", "add", slug, "Chess", "Ann=0.25", "--unity", "half"))[1:]
    assert refused.endswith("must be a number with at most 1 decimal, such as 12.5")


async def test_participants_come_and_go_and_have_their_points_again(tallybook: Tallybook, slug: str) -> None:
    await tallybook.done("ranking", "create", slug, "Season", "Ann")
    assert await tallybook.json("participants", "add", slug, "Season", "Cid", "Bob") == {"sequence": 6}
    assert (await tallybook("points", "add", slug, "Season", "Cid=5")).err == "recorded as event 7\n"
    assert (await tallybook("participants", "remove", slug, "Season", "Cid", "Ann")).err == "recorded as event 8\n"
    assert await table(tallybook, slug, "Season") == [("Bob", 1, 0)]
    await tallybook.done("participants", "add", slug, "Season", "Cid")
    assert await table(tallybook, slug, "Season") == [("Cid", 1, 5), ("Bob", 2, 0)]
    assert await tallybook.refused("participants", "remove", slug, "Season", "Cid", "Bob") == [
        CORRECT,
        "  remove: must leave at least one competitor in the ranking",
    ]
    assert await tallybook.refused("participants", "add", slug, "Season") == [
        CORRECT,
        "  add: must name at least one competitor, unless remove does",
    ]


async def test_points_are_added_to_several_at_once(tallybook: Tallybook, slug: str) -> None:
    await tallybook.done("ranking", "create", slug, "Season")
    await tallybook.done("unity", "add", slug, "Season", "fouls", "--sort", "ASC")
    match = await tallybook.done("competition", "add", slug, "Ann", "Bob")
    win = ["points", "add", slug, "Season", "Ann=3", "Bob=+0", "--competition", "Ann - Bob"]
    assert set(await tallybook.json(*win)) == {"sequence"}
    await tallybook.done("points", "add", slug, "Season", "Cid=-2", "Ann=1", "--unity", "fouls")
    assert await table(tallybook, slug, "Season") == [("Ann", 1, 3), ("Bob", 2, 0), ("Cid", 2, 0)]
    assert await table(tallybook, slug, "Season", 1) == [("Cid", 1, -2), ("Bob", 2, 0), ("Ann", 3, 1)]
    lines = (await tallybook.done("history", slug, "Season", "--format", "csv")).splitlines()[1:]
    assert len(lines) == 4
    assert [f",{match}," in line for line in lines] == [True, True, False, False]


async def test_points_may_have_a_reason(tallybook: Tallybook, slug: str) -> None:
    await tallybook.done("ranking", "create", slug, "Season")
    await tallybook.done("points", "add", slug, "Season", "Bob=-10", "--reason", " licence ")
    (line,) = (await tallybook.done("history", slug, "Season", "--format", "ndjson")).splitlines()
    assert (json.loads(line)["delta"], json.loads(line)["reason"]) == (-10, "licence")
    assert await tallybook.refused("points", "add", slug, "Season", "Bob=1", "--reason", "x" * 256) == [
        CORRECT,
        "  reason: must have at most 255 characters",
    ]


async def test_a_name_may_hold_an_equals_sign(tallybook: Tallybook, slug: str) -> None:
    await tallybook.done("competitor", "add", slug, "E=mc²")
    await tallybook.done("ranking", "create", slug, "Season")
    await tallybook.done("points", "add", slug, "Season", "E=mc²=7")
    assert (await table(tallybook, slug, "Season"))[0] == ("E=mc²", 1, 7)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("text", ["Ann", "Ann=", "Ann=x", "Ann=1.5", "Ann=٣", "Ann=3 "])
async def test_what_does_not_say_whom_and_how_many_is_refused(tallybook: Tallybook, slug: str, text: str) -> None:
    await tallybook.done("ranking", "create", slug, "Season")
    said = await tallybook.refused("points", "add", slug, "Season", "Bob=1", text)
    assert said == [
        "These points cannot be read.",
        f"  {text}: must be COMPETITOR=POINTS, and the points must be a whole number, in digits only",
    ]
    assert [total for _, _, total in await table(tallybook, slug, "Season")] == [0, 0, 0]


async def test_points_are_judged_as_everywhere(tallybook: Tallybook, slug: str) -> None:
    await tallybook.done("ranking", "create", slug, "Season", "Ann")
    assert await tallybook.refused("points", "add", slug, "Season", f"Bob={DELTA_MAX + 1}", "--competition", "9") == [
        CORRECT,
        f"  participants_delta: competitor {(await ids(tallybook, slug))['Bob']} is not in this ranking",
        f"  participants_delta: delta {DELTA_MAX + 1} is not within ±{DELTA_MAX}",
        "  competition_id: competition 9 is not in this tournament",
    ]
    assert await tallybook.refused("points", "add", slug, "Season") == [
        CORRECT,
        "  participants_delta: must contain at least one delta",
    ]
    await tallybook.done("ranking", "close", slug, "Season")
    assert await tallybook.refused("points", "add", slug, "Season", "Ann=1") == [
        "The ranking 'Season' is closed; reopen it first."
    ]


async def test_no_command_shows_points_that_have_expired(
    tallybook: Tallybook, slug: str, owner: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = await told_clock(owner, monkeypatch)
    await clock.set(datetime.now(UTC))  # the fixture has recorded events until now
    await tallybook.done(
        "ranking", "create", slug, "Rolling", "--unity", "points", "--lasts", "PT1H", "--expires-on", "minute"
    )
    await tallybook.done("points", "add", slug, "Rolling", "Ann=5")
    await clock.pass_by(hours=2)
    assert {total for _, _, total in await table(tallybook, slug, "Rolling")} == {0}
