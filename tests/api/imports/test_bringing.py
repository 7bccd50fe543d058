"""Bringing the files of other programs: the tables that they give, their next state, and what is refused."""

import asyncio
import json
import random
from pathlib import Path
from typing import Final

import pytest

from api.cli.where import Where, desk_at, tournament_at
from api.imports.bringing import Bringing
from api.imports.dates import DateOrder
from api.imports.played import FORM_OF_DATES
from api.imports.readers.brought import Brought, BroughtRanking, Entrant, Meeting
from api.imports.readers.recognising import read_file
from api.interface.kinds import KindName
from engine.domain.terms import OPERATOR
from tests.api.cli.conftest import Tallybook
from tests.api.imports.readers.damaged import FILES
from tests.api.imports.readers.test_sheets import book
from tests.running import said


async def table(tallybook: Tallybook, slug: str, ranking: str) -> list[tuple[str, int, int | None]]:
    """The name, the place, and the total in the main unity of each competitor."""
    shown = await tallybook.json("standings", slug, ranking)
    names = {one["id"]: one["name"] for one in shown["competitors"]}
    totals = {one["competitor_id"]: one["total"] for one in shown["unities"][0]["competitors_ranking"]}
    classified = (await tallybook.json("classification", "show", slug, ranking))["standings"]
    found = [(names[one["competitor_id"]], one["position"], totals[one["competitor_id"]]) for one in classified]
    return sorted(found, key=lambda line: (line[1], line[0]))


async def bring(
    tallybook: Tallybook,
    file: Path | str,
    slug: str = "",
    *,
    like: KindName | None = None,
    name: str | None = None,
    dates: DateOrder | None = None,
) -> str:
    """Does what the command does, which listens for signals and so needs a process of its own. Returns the slug."""
    _, brought = read_file((FILES / file).read_bytes(), Path(file).name)
    return await bring_value(tallybook, brought, slug, like=like, name=name, dates=dates)


async def bring_value(
    tallybook: Tallybook,
    brought: Brought,
    slug: str = "",
    *,
    like: KindName | None = None,
    name: str | None = None,
    dates: DateOrder | None = None,
) -> str:
    slug = slug or await tallybook.done("tournament", "create", brought.name or "Sheet")
    async with desk_at(Where(database_url=tallybook.dsn)) as desk, tournament_at(desk, slug) as view:
        await Bringing(brought, like=like, name=name, dates=dates).bring(
            desk, view.live, actor=OPERATOR, stop=asyncio.Event(), progress=lambda _done, _of: None
        )
    return slug


async def ranked(tallybook: Tallybook, slug: str) -> list[str]:
    return [one["name"] for one in await tallybook.json("ranking", "list", slug)]


# ── The tables ───────────────────────────────────────────────────────────────────────────────────────────

_TABLES: Final[dict[str, dict[str, str]]] = {
    "league.football.json": {
        "Harbour League 2025/26": "Quay Athletic 1 4, Pier Rovers 2 3, Mole Town 3 2, Dock United 4 1"
    },
    "old.football.json": {
        "Harbour League 2014/15": "Pier Rovers 1 3, Dock United 2 0, Mole Town 2 0, Quay Athletic 4 0"
    },
    "cup.football.json": {"Group A": "Northey 1 3, Southey 2 0", "Group B": "Eastey 1 1, Westey 1 1"},
    "league.xlsx": {"Fixtures": "Pier Rovers 1 7, Quay Athletic 2 3, Dock United 3 2, Mole Town 4 1"},
    "league.ods": {"Spiele": "Pier Rovers 1 4, Quay Athletic 2 3, Dock United 3 3, Mole Town 4 1"},
    "divisions.ods": {"North": "Alder 1 4, Birch 2 1", "South": "Dogwood 1 3, Cedar 2 0"},
    "season.csv": {"Table": "Birch 1 4, Dogwood 2 4, Alder 3 2, Cedar 4 0"},
    "runde.csv": {"Table": "Gum 1 4, Elm 2 3, Holly 3 1, Fir 4 0"},
    "times.csv": {"Table": "Berta Fern 1 1799000, Anna Birch 2 1865200, Carla Elm 3 None"},
    "handball.xlsx": {"Spiele": "Kai 1 4, Mole 2 2, Dock 3 1, Pier 4 1"},
    "ultra.xlsx": {
        "Ultra": "Berta Fern 1 1800000, Dora Oak 2 86399500, Carla Elm 3 86400000, Anna Birch 4 93784000, "
        "Eva Pine 5 None"
    },
    "run.ods": {"Lauf": "Berta Fern 1 1800000, Carla Elm 2 86400000, Anna Birch 3 93784000"},
    "spring.xml": {
        "Women": "Berta Fern 1 2001300, Anna Birch 2 2001400, Fay Ash 2 2001400, Carla Elm 4 None, Eva Pine 4 None",
        "Women: Series": "Berta Fern 1 100, Anna Birch 2 96",
        "Open": "Anna Birch 1 3600000, Gus Fern 2 4000000, Gus Fern 3 None",
    },
    "relay.xml": {"Mixed": "Moss 2 1 3699000, Moss 1 2 3700500, Heath 3 None"},
    "two_days.xml": {"Men": "Hugo Larch 1 6000000, Ivo Lime 2 6100000, Jon Yew 3 1800000"},
    "contest-2023-06.ndjson": {
        "Harbour Contest 2023": "Sea Cows 1 3, Red Herrings 2 2, Blue Whales 3 1, Anchors 4 0, Old Salts 4 0"
    },
    "contest-2026-01.ndjson": {
        "Harbour Contest 2026": "Sea Cows 1 3, Red Herrings 2 2, Blue Whales 3 1, Anchors 4 0, Old Salts 4 0"
    },
    "ranklist.srk.json": {
        "Harbour Ranklist": "Red Herrings 1 2, Sea Cows 2 1, Anchors 3 0",
        "Harbour Ranklist: all": "Red Herrings 1 2, Blue Whales 2 2, Sea Cows 3 1, Anchors 4 0",
    },
    "equal.srk.json": {"Equal Penalty": "Clean 1 1, Tries 1 1, Empty 3 0"},
    "seconds.srk.json": {"In Seconds": "First 1 2, Late 2 1, Open 3 0"},
    "scoreboard.json": {"Contest": "t1 1 2, t2 2 1, t3 2 1, t4 4 0"},
    "gala.lef": {
        "100 m free women 13–14": "Berta Fern 1 61490, Anna Birch 2 61500",  # noqa: RUF001 - a dash
        "100 m free women 13–14 preliminaries": "Anna Birch 1 62030, Berta Fern 2 62900, Carla Elm 2 62900, "  # noqa: RUF001
        "Dora Oak 4 None, Eva Pine 4 None",
        "1500 m freestyle men 15 and over": "Hugo Larch 1 1000000, Jon Yew 2 None",
    },
    "relays.lef": {
        "4 × 50 m free mixed": "Heath Mixed 1 119990, SC Moss 1 2 121100, SC Moss 2 3 125000, "  # noqa: RUF001 - a sign
        "Heath Swimmers 2 4 None",
        "4 × 50 m medley mixed": "SC Moss 1 1 140000",  # noqa: RUF001
    },
    "two_meets.lef": {"Day Two: 50 m back men": "Jon Yew 1 29990"},
    # Points and places by FIDE-TEC's program (gacrux 1.11.65); totals are tenths of a point.
    "swiss.trf": {
        "Lighthouse Open": "Naylor, Nia 1 50, Knight, Kay 2 45, Locke, Lou 3 45, Eaton, Ed 4 40, Dyer, Di 5 40, "
        "Baker, Bo 6 35, Cooper, Cy 7 35, Glover, Gil 8 35, Ivory, Ida 9 30, Mason, Max 10 30, Fisher, Flo 11 25, "
        "Archer, Ada 12 20, Joiner, Joe 13 20, Hunter, Hal 14 15"
    },
    "round_robin.trf": {
        "Club Final": "Dyer, Di 1 40, Baker, Bo 2 35, Fisher, Flo 3 25, Archer, Ada 4 25, Cooper, Cy 5 20, "
        "Eaton, Ed 6 5"
    },
    "three_points.trf": {
        "Three Points Cup": "Baker, Bo 1 110, Ivory, Ida 2 90, Glover, Gil 3 80, Cooper, Cy 4 70, Fisher, Flo 5 50, "
        "Eaton, Ed 6 50, Dyer, Di 7 30, Hunter, Hal 8 20, Archer, Ada 9 20"
    },
}
"""By file and ranking: places and totals."""
_LIKE: Final[dict[str, KindName]] = {
    "league.xlsx": "football",
    "league.ods": "football",
    "divisions.ods": "football",
    "season.csv": "football",
    "runde.csv": "football",
    "times.csv": "laps",
    "handball.xlsx": "handball",
    "ultra.xlsx": "laps",
    "run.ods": "laps",
}


def test_each_file_has_its_tables() -> None:
    assert {*_TABLES} == {file.name for file in FILES.iterdir()}


@pytest.mark.one_in(4)
@pytest.mark.parametrize("file", _TABLES)
async def test_a_file_gives_the_table_of_its_rules_and_brought_again_changes_nothing(
    tallybook: Tallybook, file: str
) -> None:
    slug = await bring(tallybook, file, like=_LIKE.get(file))
    for ranking, expected in _TABLES[file].items():
        found = await table(tallybook, slug, ranking)
        assert ", ".join(f"{name} {place} {total}" for name, place, total in found) == expected
    before = await tallybook.json("tournament", "list")
    like = ["--like", _LIKE[file]] if file in _LIKE else []
    offer = json.loads(await tallybook.done("bring", str(FILES / file), slug, *like, "--dry-run", "--json"))
    new = [offer[f"{what}_{of}"] for what in ("new", "corrected") for of in ("competitors", "competitions")]
    assert (new, offer["rankings"]) == ([0, 0, 0, 0], {})
    await bring(tallybook, file, slug, like=_LIKE.get(file))
    assert await tallybook.json("tournament", "list") == before


async def test_the_penalty_of_a_contest_counts_wrong_tries_but_no_compile_errors(tallybook: Tallybook) -> None:
    slug = await bring(tallybook, "contest-2026-01.ndjson")
    solved, penalty, last = (await tallybook.json("standings", slug, "Harbour Contest 2026"))["unities"]
    assert sorted(one["total"] for one in solved["competitors_ranking"]) == [0, 0, 1, 2, 3]
    assert sorted(one["total"] for one in penalty["competitors_ranking"]) == [0, 0, 70, 111, 430]
    assert sorted(one["total"] for one in last["competitors_ranking"]) == [0, 0, 50, 61, 290]


async def test_teams_of_a_ranklist_that_are_equal_in_penalty_share_a_place(
    tallybook: Tallybook, tmp_path: Path
) -> None:
    ranklist = json.loads((FILES / "ranklist.srk.json").read_text())
    ranklist["sorter"]["config"]["penalty"] = [30, "min"]
    ranklist["rows"][1]["user"]["official"] = True
    ranklist["rows"][1]["statuses"][0]["time"] = [59, "min"]
    file = tmp_path / "x.srk.json"
    file.write_text(json.dumps(ranklist))
    slug = await bring(tallybook, file)
    first, second, *_ = await table(tallybook, slug, "Harbour Ranklist")
    assert (first, second) == (("Blue Whales", 1, 2), ("Red Herrings", 1, 2))  # 59 + 91 + 30 = 50 + 100 + 30


# ── The next state ───────────────────────────────────────────────────────────────────────────────────────


async def test_the_next_state_of_a_sheet_is_for_the_only_ranking_that_scores_or_for_that_which_is_named(
    tallybook: Tallybook, tmp_path: Path
) -> None:
    """Sheets do not name their ranking: `--as` need not be said again."""
    first, later = tmp_path / "first.csv", tmp_path / "later.csv"
    first.write_text("Nr,Home,Away,Score\n1,A,B,2:1\n2,B,C,0:0\n")
    later.write_text("Nr,Home,Away,Score\n1,A,B,2:2\n2,B,C,0:0\n3,C,A,\n")
    slug = await bring(tallybook, first, like="football", name="Sunday League")
    await tallybook.done("ranking", "create", slug, "Members")
    offer = await tallybook.json("bring", str(later), slug, "--like", "football", "--dry-run")
    assert (offer["known_rankings"], offer["rankings"]) == (["Sunday League"], {})
    assert [offer["new_competitions"], offer["corrected_competitions"]] == [1, 1]
    await bring(tallybook, later, slug, like="football")
    assert await table(tallybook, slug, "Sunday League") == [("B", 1, 2), ("A", 2, 1), ("C", 3, 1)]
    await tallybook.done("ranking", "create", slug, "Cup", "--like", "football")
    assert await tallybook.refused("bring", str(later), slug, "--like", "football", "--yes") == [
        "Which ranking is the file for: 'Sunday League', 'Cup'? Name it (--as); a new name makes a new one."
    ]
    for name in ("Sunday League", "Friendlies"):
        await bring(tallybook, later, slug, like="football", name=name)
    assert await ranked(tallybook, slug) == ["Sunday League", "Members", "Cup", "Friendlies"]


async def test_the_next_state_of_a_file_corrects_and_adds(tallybook: Tallybook, tmp_path: Path) -> None:
    slug = await bring(tallybook, "league.football.json")
    season = json.loads((FILES / "league.football.json").read_text())
    season["matches"][0]["score"]["ft"] = [1, 1]
    season["matches"][4] |= {"date": "2025-09-01", "score": {"ft": [0, 2]}}
    season["matches"].append(
        {"round": "Matchday 4", "team1": "Dock United", "team2": "Sluice FC", "score": {"ft": [1, 0]}}
    )
    later = tmp_path / "later.json"
    later.write_text(json.dumps(season))
    offer = json.loads(await tallybook.done("bring", str(later), slug, "--dry-run", "--json"))
    assert [offer["new_competitors"], offer["new_competitions"], offer["corrected_competitions"]] == [1, 1, 2]
    await bring(tallybook, later, slug)
    assert await table(tallybook, slug, "Harbour League 2025/26") == [
        ("Dock United", 1, 7),
        ("Quay Athletic", 2, 5),
        ("Mole Town", 3, 2),
        ("Pier Rovers", 4, 1),
        ("Sluice FC", 5, 0),
    ]
    matches = await tallybook.json("competition", "list", slug)
    assert [one["started_at"] for one in matches][4] == "2025-09-01T00:00:00.000000Z"


async def test_what_a_file_leaves_empty_stays_as_it_was_recorded(tallybook: Tallybook) -> None:
    slug = await bring(tallybook, "league.football.json")
    await tallybook.done("competition", "result", slug, "Pier Rovers - Dock United", "5:0")
    await bring(tallybook, "league.football.json", slug)
    assert (await table(tallybook, slug, "Harbour League 2025/26"))[0] == ("Pier Rovers", 1, 6)


async def test_a_file_is_undone_as_a_whole_and_can_be_brought_again(tallybook: Tallybook) -> None:
    slug = await bring(tallybook, "swiss.trf")
    before = await table(tallybook, slug, "Lighthouse Open")
    (run,) = await tallybook.json("import", "list", slug)
    undo = ["import", "undo", slug, run["name"], "--database-url", tallybook.dsn]
    assert (await asyncio.to_thread(said, *undo)).code == 0
    assert {total for _, _, total in await table(tallybook, slug, "Lighthouse Open")} == {0}
    await bring(tallybook, "swiss.trf", slug)
    assert await table(tallybook, slug, "Lighthouse Open") == before


async def test_a_second_event_is_brought_into_the_same_tournament(tallybook: Tallybook) -> None:
    slug = await bring(tallybook, "two_days.xml")
    await bring(tallybook, "spring.xml", slug)
    assert await ranked(tallybook, slug) == ["Men", "Women", "Women: Series", "Open"]
    assert (await table(tallybook, slug, "Men"))[0] == ("Hugo Larch", 1, 6000000)
    assert (await table(tallybook, slug, "Open"))[0] == ("Anna Birch", 1, 3600000)


async def test_a_second_tournament_of_the_same_players_leaves_the_first_as_it_was(tallybook: Tallybook) -> None:
    slug = await bring(tallybook, "swiss.trf")
    before = await table(tallybook, slug, "Lighthouse Open")
    await bring(tallybook, "three_points.trf", slug)
    assert await table(tallybook, slug, "Lighthouse Open") == before


async def test_existing_rankings_that_score_everything_or_nothing_or_are_closed_are_reported(
    tallybook: Tallybook,
) -> None:
    slug = await tallybook.done("tournament", "create", "Club")
    await tallybook.done("competitor", "add", slug, "Northey")
    await tallybook.done("ranking", "create", slug, "Group A")
    await tallybook.done("ranking", "create", slug, "All Time", "--like", "football")
    said = await tallybook("bring", str(FILES / "cup.football.json"), slug, "--dry-run")
    assert said.err.splitlines()[-2:] == [
        "  note: ranking 'Group A' has no scoring, so results give no points in it",
        "  note: ranking 'All Time' scores competitions of all groups, including these",
    ]
    await tallybook.done("ranking", "close", slug, "Group A")
    assert await tallybook.refused("bring", str(FILES / "cup.football.json"), slug, "--yes") == [
        "The ranking 'Group A' is closed; reopen it first."
    ]


async def test_a_competitor_with_another_name_in_the_file_is_reported_first(
    tallybook: Tallybook, tmp_path: Path
) -> None:
    slug = await bring(tallybook, "swiss.trf")
    renamed = tmp_path / "renamed.trf"
    renamed.write_text((FILES / "swiss.trf").read_text().replace("Archer, Ada  ", "Archer, Adela"))
    offer = json.loads(await tallybook.done("bring", str(renamed), slug, "--dry-run", "--json"))
    assert offer["notes"] == ["'Archer, Ada' is named 'Archer, Adela' in the file, under the same id"]
    await bring(tallybook, renamed, slug)
    assert "Archer, Adela" in [name for name, _, _ in await table(tallybook, slug, "Lighthouse Open")]


@pytest.mark.parametrize("file", ["league.xlsx", "league.football.json"])
async def test_a_club_that_was_renamed_since_is_the_same_club(tallybook: Tallybook, file: str) -> None:
    slug = await bring(tallybook, file, like="football")
    await tallybook.done("competitor", "change", slug, "Mole Town", "--name", "Mole City")
    before = await tallybook.json("tournament", "list")
    await bring(tallybook, file, slug, like="football")
    assert await tallybook.json("tournament", "list") == before


async def test_existing_competitors_found_by_name_get_the_ids_of_the_file(tallybook: Tallybook) -> None:
    slug = await tallybook.done("tournament", "create", "Club")
    await tallybook.done("competitor", "add", slug, "Anna Birch")
    await bring(tallybook, "spring.xml", slug)
    anna = [one for one in await tallybook.json("competitor", "list", slug) if one["name"] == "Anna Birch"]
    assert [(one["key"], one["tags"]) for one in anna] == [("31", ["OC Moss"])]


# ── What is asked and refused ────────────────────────────────────────────────────────────────────────────


async def test_without_yes_it_shows_what_it_would_make_and_makes_nothing(tallybook: Tallybook) -> None:
    said = await tallybook("bring", str(FILES / "cup.football.json"))
    assert said.err.splitlines() == [
        "football.json; it would make in a new tournament, Island Cup 2026:",
        "  4 competitors",
        "  ranking Group A, like football",
        "  ranking Group B, like football",
        "  4 competitions",
        "  note: matches of knock-out rounds are recorded, and give no points",
        "Nothing was changed. Add --yes to bring the file.",
    ]
    assert await tallybook.json("tournament", "list") == []


async def test_each_match_that_is_left_without_its_result_is_named_with_the_reason(
    tallybook: Tallybook, tmp_path: Path
) -> None:
    file = tmp_path / "x.football.json"
    rows = [{"team1": "A", "team2": "B", "score": {"ft": [n, 0]}, "status": "ABANDONED"} for n in range(22)]
    rows += [{"team1": "B", "team2": "A", "date": "2015-03-01", "status": "POSTPONED"}]  # it has no result
    file.write_text(json.dumps({"name": "League", "matches": rows}))
    offer = await tallybook.json("bring", str(file), "--dry-run")
    (first, *_, last) = offer["notes"]
    assert first == "A - B, 0:0, is recorded without its result, because it was abandoned"
    assert (last, len(offer["notes"])) == ("2 more matches are recorded without their results", 21)
    told = (await tallybook("bring", str(FILES / "league.football.json"), "--dry-run")).err.splitlines()
    note = "Mole Town - Pier Rovers on 2025-08-16, 1:1, is recorded without its result, because it was abandoned"
    assert told[-1] == f"  note: {note}"


async def test_each_result_that_will_give_no_points_is_named_with_the_forms_that_count(
    tallybook: Tallybook, tmp_path: Path
) -> None:
    file = tmp_path / "x.csv"
    file.write_text("Nr,Home,Away,Score\n1,A,B,3:1\n2,B,A,5:4\n3,A,B,won\n4,B,A,\n")
    slug = ""
    for _ in range(2):  # in a new ranking, and in one that is there
        offer = await tallybook.json("bring", str(file), *filter(None, [slug]), "--like", "volleyball", "--dry-run")
        assert [note.split(": ")[0] for note in offer["notes"]] == [
            "line 3 gives no points in Table",
            "line 4 gives no points in Table",
        ]
        assert "Forms that count: a score of two numbers" in offer["notes"][1]
        slug = await bring(tallybook, file, slug, like="volleyball")


async def test_a_file_that_does_not_tell_how_results_count_is_refused(tallybook: Tallybook) -> None:
    (reason,) = await tallybook.refused("bring", str(FILES / "league.xlsx"), "--yes")
    assert reason.startswith("The file does not say how its results count: add --like football, ")
    assert await tallybook.json("tournament", "list") == []


async def test_a_file_with_one_wrong_line_brings_nothing(tallybook: Tallybook, tmp_path: Path) -> None:
    file = tmp_path / "x.xlsx"
    file.write_bytes(
        book(["Date", "Home", "Away", "Score"], ["2015-02-30", "A", "B", "2:1"], ["2015-03-01", "B", "A", "1:1"])
    )
    assert await tallybook.refused("bring", str(file), "--like", "football", "--yes") == [
        "Nothing was brought; correct these lines.",
        "  line 2, date: there is no such day as '2015-02-30'",
    ]
    assert await tallybook.json("tournament", "list") == []


async def test_every_wrong_line_of_a_file_is_named_with_what_it_says(tallybook: Tallybook, tmp_path: Path) -> None:
    (file := tmp_path / "x.csv").write_text(
        "Date,Participants,Score\n31.02.2026,A|B,2:1\n01.03.2026,A|A,2:1\nsoon,A|B,2:1\n"
    )
    assert await tallybook.refused("bring", str(file), "--like", "football", "--yes") == [
        "Nothing was brought; correct these lines.",
        "  line 2, date: there is no such day as '31.02.2026'",
        "  line 3, participants: 'A' is named more than once",
        f"  line 4, date: 'soon' must be {FORM_OF_DATES}",
    ]


async def test_two_lines_with_one_key_are_refused(tallybook: Tallybook, tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    file.write_text("Nr,Home,Away,Score\n1,A,B,2:1\n1,B,A,0:0\n")
    assert await tallybook.refused("bring", str(file), "--like", "football", "--yes") == [
        "Nothing was brought; correct these lines.",
        "  line 3, key: '1' is already the key of an earlier line",
    ]


async def test_a_shoot_out_without_a_winner_and_one_who_is_not_first_are_wrong_lines(
    tallybook: Tallybook, tmp_path: Path
) -> None:
    rows = "Nr,Participants,Score,Winner\n1,A|B,2:2 pen,\n2,A|B,2:2 pen,B\n3,A|B,5:4 pen,\n"
    (cup := tmp_path / "cup.csv").write_text(rows)
    assert await tallybook.refused("bring", str(cup), "--like", "football", "--yes") == [
        "Nothing was brought; correct these lines.",
        "  line 2, winner: name the winner: a shoot-out always has one",
    ]
    (race := tmp_path / "race.csv").write_text("Nr,Participants,Score,Winner\n1,A|B|C,2|1|3,C\n2,A|B|C,2|1|3,B\n")
    for ranking in ("New", "There"):
        slug = "" if ranking == "New" else await tallybook.done("tournament", "create", ranking)
        if slug:
            await tallybook.done("competitor", "add", slug, "D")
            await tallybook.done("ranking", "create", slug, "race", "--like", "sailing")
        assert await tallybook.refused("bring", str(race), *filter(None, [slug]), "--like", "sailing", "--yes") == [
            "Nothing was brought; correct these lines.",
            "  line 2, winner: is not first in the result; leave it empty, or correct the result",
        ]


async def test_a_winner_that_the_score_contradicts_is_refused_and_without_one_the_score_says_it(
    tallybook: Tallybook, tmp_path: Path
) -> None:
    file = tmp_path / "x.csv"
    file.write_text("Nr,Home,Away,Score,Winner\n1,A,B,2:1,B\n")
    assert await tallybook.refused("bring", str(file), "--like", "football", "--yes") == [
        "Nothing was brought; correct these lines.",
        "  line 2, winner: has the lower score; leave it out, or add a word such as wo",
    ]
    slug, winners = "", list[str | None]()
    for line in ("2:1 wo,B", "3:1,", "0:1,", "2:2,"):
        file.write_text(f"Nr,Home,Away,Score,Winner\n1,A,B,{line}\n")
        slug = await bring(tallybook, file, slug, like="football")
        names = {one["id"]: one["name"] for one in await tallybook.json("competitor", "list", slug)}
        winners.append(names.get((await tallybook.json("competition", "list", slug))[0]["winner"]))
    assert winners == ["B", "A", "B", None]


async def test_what_looks_wrong_in_a_file_is_asked_about_and_brought_for_the_sure(
    tallybook: Tallybook, tmp_path: Path
) -> None:
    file, slug = tmp_path / "x.csv", await tallybook.done("tournament", "create", "Cup")
    for name in ("A", "B"):
        await tallybook.done("competitor", "add", slug, name)
    await tallybook.done("ranking", "create", slug, "Table", "--like", "football")
    await tallybook.done("competition", "add", slug, "B", "A", "--started-at", "2024-03-01 15:00", "--group", "1")
    file.write_text("Date,Home,Away,Score,Winner\n2024-03-02,A,B,2:1,A\n9990-03-02,A,B,0:3 wo,A\n9990-04-02,B,A,,\n")
    asked = ("bring", str(file), slug)
    offer = await tallybook.json(*asked, "--dry-run")
    assert [(one["field"], one["message"].partition(".")[0]) for one in offer["questions"]] == [
        ("line 2, date", "There is a match of the same two on 2024-03-01 15:00"),
        ("line 3, winner", "The winner has the lower score"),
        ("line 3, date", "This match is still to come"),
    ]
    shown = await tallybook(*asked, "--dry-run")
    assert "  line 3, winner: The winner has the lower score. Is that right?" in shown.err.splitlines()
    ended = await asyncio.to_thread(said, *asked, "--yes", "--database-url", tallybook.dsn)
    assert ended.code == 0, ended.err
    assert (await tallybook.json(*asked, "--dry-run"))["questions"] == []
    assert len(await tallybook.json("competition", "list", slug)) == 4


async def test_dates_that_could_have_either_order_are_asked_for_once(tallybook: Tallybook, tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    file.write_text("Date;Home;Away;Score\n01/02/2015;A;B;2:1\n")
    (question,) = await tallybook.refused("bring", str(file), "--like", "football", "--yes")
    assert question.startswith("Does 01/02/2015 have the day or the month first?")
    slug = await bring(tallybook, file, like="football", dates="month-first")
    assert (await tallybook.json("competition", "list", slug))[0]["started_at"] == "2015-01-02T00:00:00.000000Z"


async def test_with_json_it_asks_nothing(tallybook: Tallybook) -> None:
    assert await tallybook.refused("bring", str(FILES / "cup.football.json"), "--json") == [
        "With --json, nothing can be asked: add --yes or --dry-run."
    ]


async def test_a_tournament_that_the_file_does_not_name_has_the_name_of_the_file(
    tallybook: Tallybook, tmp_path: Path
) -> None:
    file = tmp_path / "Spring 2026.csv"
    file.write_text("Home,Away,Score\nA,B,2:1\n")
    shown = await tallybook("bring", str(file), "--like", "football", "--dry-run")
    assert shown.err.splitlines()[0] == "CSV; it would make in a new tournament, Spring 2026:"
    brought = ("bring", str(file), "--like", "football", "--yes", "--json", "--database-url", tallybook.dsn)
    assert (await asyncio.to_thread(said, *brought)).json["slug"] == "spring-2026"


async def test_the_command_brings_a_file_into_a_new_tournament(tallybook: Tallybook) -> None:
    where = ["--database-url", tallybook.dsn]
    ended = await asyncio.to_thread(
        said, "bring", str(FILES / "swiss.trf"), "--as", "Our Open", "--yes", "--json", *where
    )
    offer = ended.json
    assert (offer["slug"], offer["new_competitions"]) == ("our-open", 56)
    assert [run["name"] for run in await tallybook.json("import", "list", "our-open")] == [offer["import"]]


# ── Written back ─────────────────────────────────────────────────────────────────────────────────────────

_WRITTEN: Final[dict[str, tuple[str, str]]] = {
    "swiss.trf": ("Lighthouse Open", "trf"),
    "round_robin.trf": ("Club Final", "trf"),
    "three_points.trf": ("Three Points Cup", "trf"),
    "contest-2023-06.ndjson": ("Harbour Contest 2023", "clics"),
    "ranklist.srk.json": ("Harbour Ranklist: all", "clics"),
}


async def same_when_written_and_brought(tallybook: Tallybook, slug: str, ranking: str, form: str, file: Path) -> None:
    """Whether the table of a file that is written, and brought into a new tournament, is the same."""
    await tallybook.done("ranking", "export", slug, ranking, form, "--output", str(file))
    (name,) = await ranked(tallybook, later := await bring(tallybook, file))
    names = {one["key"]: one["name"] for one in await tallybook.json("competitor", "list", slug)}
    found = [(names.get(who, who), place, total) for who, place, total in await table(tallybook, later, name)]
    assert sorted(found) == sorted(await table(tallybook, slug, ranking))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("file", _WRITTEN)
async def test_what_is_written_of_a_ranking_and_brought_again_has_the_same_table(
    tallybook: Tallybook, tmp_path: Path, file: str
) -> None:
    ranking, form = _WRITTEN[file]
    await same_when_written_and_brought(tallybook, await bring(tallybook, file), ranking, form, tmp_path / "again.json")


@pytest.mark.parametrize("seeds", [range(1), pytest.param(range(1, 15), marks=pytest.mark.long)], ids=["one", "all"])
@pytest.mark.parametrize("form", ["trf", "clics"])
async def test_any_tournament_that_can_be_written_has_the_same_table_when_it_is_brought_again(
    tallybook: Tallybook, tmp_path: Path, form: str, seeds: range
) -> None:
    for seed in seeds:
        chance = random.Random(seed)
        made = _games(chance) if form == "trf" else _contest(chance)
        slug = await bring_value(tallybook, made)
        await same_when_written_and_brought(tallybook, slug, "Made", form, tmp_path / f"{seed}.json")


def _games(chance: random.Random) -> Brought:
    players = tuple([f"FIDE {n}" if n % 2 else f"Player {n}" for n in range(1, chance.randrange(4, 9))])
    meetings = []
    for number in range(1, chance.randrange(2, 6)):
        left = chance.sample(players, len(players))
        while left:
            pair = tuple([left.pop() for _ in range(min(len(left), chance.choice((1, 2, 2, 2))))])
            scores = ("1:0", "½:½", "0:1", "+:-", "-:+", "-:-", "0:0")
            score = chance.choice(scores if len(pair) == 2 else ("bye", "half bye", "zero bye", "full bye"))
            key = f"{number} {' '.join(pair)}"
            meetings.append(Meeting(number=1, key=key, participants=pair, score=score, round=number, date="2026-05-01"))
    tiebreaks = chance.sample(("BH", "SB", "DE", "WON", "PS"), 2)
    order = [{"unity": "points"}, *[{"unity": "points", "tiebreak": one} for one in tiebreaks]]
    points = {"win": "3", "draw": "1", "loss": "0", "loss wo": "0", "bye": "1"}
    points |= {"bye full": "3", "bye half": "1", "bye zero": "0"}
    ranking = BroughtRanking(
        name="Made",
        like="chess-swiss",
        entrants=players,
        points=chance.choice(({}, points)),
        criteria=tuple(order),
    )
    entrants = tuple([Entrant(key=one, name=f"Name {one[-1]}") for one in players])
    return Brought(name="Made", entrants=entrants, rankings=(ranking,), meetings=tuple(meetings))


def _contest(chance: random.Random) -> Brought:
    teams = tuple([f"team-{n}" for n in range(chance.randrange(2, 8))])
    runs = []
    for _ in teams:
        labels = chance.sample("ABCDE", chance.randrange(4))
        tries = [(label, chance.choice((0, 60, 120, 299)), chance.randrange(4)) for label in labels]
        runs.append(" ".join(f"{label}:{at}" + f"+{wrong}" * bool(wrong) for label, at, wrong in tries) or "-")
    ranking = BroughtRanking(name="Made", like="icpc", entrants=teams, factors={"tries": chance.choice((0, 5, 20))})
    contest = Meeting(number=1, key="c", participants=teams, score="|".join(runs), date="2026-05-01 10:00+00:00")
    entrants = tuple([Entrant(key=one, name=one.title()) for one in teams])
    return Brought(name="Made", entrants=entrants, rankings=(ranking,), meetings=(contest,))


async def test_a_ranking_whose_totals_are_not_those_of_results_is_not_written(tallybook: Tallybook) -> None:
    slug = await bring(tallybook, "swiss.trf")
    await tallybook.done("points", "add", slug, "Lighthouse Open", "Archer, Ada=1")
    assert await tallybook.refused("ranking", "export", slug, "Lighthouse Open", "trf") == [
        "The standings cannot be written in this form: the total of Archer, Ada is not that of results."
    ]
    assert await tallybook.refused("ranking", "export", slug, "Lighthouse Open", "clics") == [
        "The standings cannot be written in this form: the total of Archer, Ada is not that of results."
    ]
