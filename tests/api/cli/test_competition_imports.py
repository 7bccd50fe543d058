"""Competitions from files: a season in one command, nothing twice, and every wrong line named."""

import asyncio
import csv
import json
import os
import re
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import asyncpg
import pytest

from api.desk.desk import Desk
from api.imports import importer
from api.imports.competitions import IMPORT_COMPETITIONS_MAX, read_competitions
from api.imports.importer import Imported, Interrupted, import_lines
from api.imports.played import FORM_OF_DATES, Scoring
from api.imports.rows import read_csv
from api.interface.names import Names
from engine.domain.errors import Unreadable
from engine.domain.terms import OPERATOR, RankingId
from engine.log import registry
from tests.api.cli.conftest import Tallybook
from tests.api.football import FOOTBALL, SEASONS, SORTS
from tests.conftest import EMPTY, Administrator
from tests.desks import desk_at, until
from tests.running import TALLYBOOK, Running, environment, said, started

BEFORE = r" now; [1-9][0-9]* of the file's [0-9]+ competitions were imported before"
NOTHING = re.compile(rf"Nothing was imported(?:{BEFORE})?; correct these lines\.")
DASHED = "1\N{EN DASH}3"
CLUBS = ("Ajax", "Brest", "Celtic", "Dynamo")


LEAGUE = f"tallybook_league_{os.getpid()}"
"""The database that tests with a `slug` have a copy of: to play it takes longer than to copy it."""


@pytest.fixture(scope="module")
def template_slug(administrator: Administrator) -> Iterator[str]:
    """The slug of the tournament in the template LEAGUE."""
    yield administrator.make_template(LEAGUE, lambda dsn: open_league(Tallybook(dsn)))
    administrator.drop(LEAGUE)


@pytest.fixture
def template(request: pytest.FixtureRequest) -> str:
    if "slug" not in request.fixturenames:
        return EMPTY
    request.getfixturevalue("template_slug")
    return LEAGUE


@pytest.fixture
def slug(tallybook: Tallybook, template_slug: str) -> str:
    return template_slug


async def open_league(tallybook: Tallybook) -> str:
    """The slug of a tournament of four clubs, in a ranking with all unities of football."""
    slug = await tallybook.done("tournament", "create", "League")
    for name in CLUBS:
        await tallybook.done("competitor", "add", slug, name)
    await create_league(tallybook, slug)
    return slug


async def create_league(tallybook: Tallybook, slug: str) -> None:
    main, *others = SORTS
    await tallybook.done("ranking", "create", slug, "Table", "--unity", main)
    for unity in others:
        await tallybook.done("unity", "add", slug, "Table", unity, "--sort", SORTS[unity])


GOALS = [part for unity in SORTS if unity != "points" for part in (f"--{unity.replace(' ', '-')}", unity)]


class Import:
    """Imports files into a ranking of a tournament: a process each time, because signals are heard by processes."""

    def __init__(self, tallybook: Tallybook, slug: str, folder: Path) -> None:
        self.tallybook = tallybook
        self.slug = slug
        self.names: list[str] = []  # of its imports
        self._file = folder / "some.csv"

    def command(self, content: str, *options: str, ranking: str = "Table") -> list[str]:
        self._file.write_text(content, encoding="utf-8")
        where = ["--database-url", self.tallybook.dsn]
        return ["competition", "import", self.slug, ranking, str(self._file), *options, *where]

    async def __call__(self, content: str, *options: str, ranking: str = "Table") -> str:
        """What it says before it names the import."""
        ended = await asyncio.to_thread(said, *self.command(content, *options, ranking=ranking))
        assert (ended.code, ended.out) == (0, ""), ended.err
        first, *rest = ended.err.splitlines()
        self.names += [
            named.removeprefix(f"to take this import back: tallybook import undo {self.slug} ") for named in rest
        ]
        return first

    async def json(self, content: str) -> Any:
        return (await asyncio.to_thread(said, *self.command(content, "--json"))).json

    async def refused(self, content: str, *options: str, ranking: str = "Table") -> list[str]:
        """The lines of the reason; nothing is in the log that was not before."""
        before = await self.events()
        ended = await asyncio.to_thread(said, *self.command(content, *options, ranking=ranking))
        assert (ended.code, ended.out) == (1, "")
        assert await self.events() == before
        return ended.err.splitlines()

    async def faults(self, content: str, *options: str, ranking: str = "Table") -> list[str]:
        first, *faults = await self.refused(content, *options, ranking=ranking)
        assert NOTHING.fullmatch(first)
        return [fault.strip() for fault in faults]

    async def events(self) -> int:
        (events,) = [
            one["events"] for one in await self.tallybook.json("tournament", "list") if one["slug"] == self.slug
        ]
        assert isinstance(events, int)
        return events

    async def listed(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = await self.tallybook.json("competition", "list", self.slug)
        return found

    async def table(self, ranking: str = "Table") -> dict[str, dict[str, int]]:
        """Totals by unity and name."""
        return {
            unity: {name: total for name, (_, total) in lines.items()}
            for unity, lines in (await places(self.tallybook, self.slug, ranking)).items()
        }


async def places(tallybook: Tallybook, slug: str, ranking: str) -> dict[str, dict[str, tuple[int, int]]]:
    """Position and total by unity and name, in the order of the standing."""
    shown = await tallybook.json("standings", slug, ranking)
    names = {one["id"]: one["name"] for one in shown["competitors"]}
    return {
        unity["name"]: {
            names[line["competitor_id"]]: (line["position"], line["total"]) for line in unity["competitors_ranking"]
        }
        for unity in shown["unities"]
    }


@pytest.fixture
def imported(tallybook: Tallybook, slug: str, tmp_path: Path) -> Import:
    return Import(tallybook, slug, tmp_path)


# ── A season ────────────────────────────────────────────────────────────────────────────────────────────


def season_file(season: str) -> str:
    matches = json.loads((FOOTBALL / f"{season}.json").read_text())["matches"]
    lines = [
        ",".join(
            (
                f"{match['date']} {match['time']}",
                match["round"].removeprefix("Matchday "),
                f"{match['team1']}|{match['team2']}",
                ":".join(map(str, match["score"]["ft"])),
            )
        )
        for match in sorted(matches, key=lambda match: (match["date"], match["time"]))
    ]
    return "\n".join([",".join(("date", "group", "participants", "score")), *lines])


@pytest.mark.one_in(2)
@pytest.mark.skipif(not SEASONS, reason="the seasons' data is not beside the project")
@pytest.mark.parametrize("season", SEASONS or ["no season"])
async def test_a_season_played_by_one_command_ends_as_it_did(tallybook: Tallybook, tmp_path: Path, season: str) -> None:
    with (FOOTBALL / f"{season}.expected.csv").open(newline="") as file:
        expected = {
            (row["unity"], row["team"]): (int(row["position"]), int(row["total"])) for row in csv.DictReader(file)
        }
    slug = await tallybook.done("tournament", "create", season)
    clubs = tmp_path / "clubs.csv"
    clubs.write_text("\n".join(["name", *sorted({team for _, team in expected})]), encoding="utf-8")
    await asyncio.to_thread(said, "competitor", "import", slug, str(clubs), "--database-url", tallybook.dsn)
    await create_league(tallybook, slug)
    play = Import(tallybook, slug, tmp_path)
    matches = season_file(season)

    assert await play(matches, *GOALS) == f"{len(matches.splitlines()) - 1} competitions imported"

    for deduction in json.loads((FOOTBALL / "deductions.json").read_text()).get(season, []):
        await tallybook.done("points", "add", slug, "Table", f"{deduction['team']}={deduction['points']}")
    table = await places(tallybook, slug, "Table")
    assert {(unity, team): place for unity, lines in table.items() for team, place in lines.items()} == expected


# ── What a file may hold ────────────────────────────────────────────────────────────────────────────────


async def test_a_score_gives_points_and_goals(imported: Import) -> None:
    rows = [
        "date,participants,score",
        "2024-03-01,Ajax|Brest,2:1",
        "2024-03-02,Celtic|Ajax,0 - 0",
        f"2024-03-03,Brest|Celtic,{DASHED}",
    ]
    assert await imported("\n".join(rows), *GOALS) == "3 competitions imported"
    assert await imported.table() == {
        "points": {"Ajax": 4, "Celtic": 4, "Brest": 0, "Dynamo": 0},
        "goal difference": {"Celtic": 2, "Ajax": 1, "Dynamo": 0, "Brest": -3},
        "goals for": {"Celtic": 3, "Ajax": 2, "Brest": 2, "Dynamo": 0},
        "goals against": {"Dynamo": 0, "Ajax": 1, "Celtic": 1, "Brest": 5},
    }
    first, second, third = await imported.listed()
    names = {name: int(i) for one in (first, second) for i, name in one["participants"].items()}
    assert (first["started_at"], first["group_id"], first["location"]) == ("2024-03-01T00:00:00.000000Z", 1, "")
    assert [one["result"] for one in (first, second, third)] == ["2:1", "0 - 0", DASHED]
    assert [one["winner"] for one in (first, second, third)] == [names["Ajax"], None, names["Celtic"]]


async def test_other_points_for_a_win_a_draw_and_a_loss(imported: Import) -> None:
    rows = [
        "date;group;location;participants;score",
        "2024-03-01 18:30;7;Hall 2;Ajax|Brest;2:1",
        "2024-03-02;;;Ajax|Celtic;1:1",
    ]
    await imported("\n".join(rows), "--win", "2", "--draw", "1", "--loss", "-1")
    assert (await imported.table())["points"] == {"Ajax": 3, "Celtic": 1, "Dynamo": 0, "Brest": -1}
    first, second = await imported.listed()
    assert (first["started_at"], first["group_id"], first["location"]) == ("2024-03-01T18:30:00.000000Z", 7, "Hall 2")
    assert (second["group_id"], second["location"]) == (1, "")


async def test_columns_give_points_of_their_unities(imported: Import) -> None:
    """A race of three, two who did not finish, and a game whose score says nothing of points."""
    rows = [
        '"date","participants","score","points","goals for"',
        "2024-03-01,Dynamo|Ajax|Brest,1:02.3||1:04.0,25|0|15,",
        "2024-03-02, Ajax | Celtic ,6:4 3:6 7:5,+2|-1,|3",
        "2024-03-03,Celtic,won by default,,9",
        "2024-03-04,Ajax|Brest|Celtic,,,",
        "2024-03-05,Brest,,,1",
    ]
    assert await imported("\n".join(rows)) == "5 competitions imported"
    table = await imported.table()
    assert table["points"] == {"Dynamo": 25, "Brest": 15, "Ajax": 2, "Celtic": -1}
    assert table["goals for"] == {"Celtic": 12, "Brest": 1, "Ajax": 0, "Dynamo": 0}
    race, game, default, empty, without = await imported.listed()
    assert without["result"] is None
    names = {name: i for one in (race, game) for i, name in one["participants"].items()}
    assert race["result"] == {names["Dynamo"]: "1:02.3", names["Brest"]: "1:04.0"}
    assert [one["result"] for one in (game, default, empty)] == ["6:4 3:6 7:5", "won by default", None]
    assert {one["winner"] for one in (race, game, default, empty)} == {None}
    lines = await imported.tallybook.done("history", imported.slug, "Table", "--format", "ndjson")
    assert len(lines.splitlines()) == 3 + 2 + 1 + 1 + 1


async def test_a_column_is_stronger_than_what_the_score_would_give(imported: Import) -> None:
    await imported("date,participants,score,points\n2024-03-01,Ajax|Brest,0:1,5|4\n", "--goals-for", "goals for")
    table = await imported.table()
    assert (table["points"]["Ajax"], table["points"]["Brest"]) == (5, 4)
    assert (table["goals for"]["Ajax"], table["goals for"]["Brest"]) == (0, 1)


async def test_standard_input_is_a_file(tallybook: Tallybook, slug: str) -> None:
    content = b"\xef\xbb\xbfdate;participants;score\r\n2024-03-01;Ajax|Brest;2:1\r\n"
    process = await asyncio.create_subprocess_exec(
        *(TALLYBOOK, "competition", "import", slug, "Table", "-", "--database-url", tallybook.dsn),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environment(),
    )
    out, err = await process.communicate(content)
    assert (process.returncode, out) == (0, b"")
    assert err.startswith(b"1 competition imported\nto take this import back: ")


# ── What is refused ─────────────────────────────────────────────────────────────────────────────────────


async def test_every_wrong_line_is_named_by_its_number_and_nothing_is_imported(imported: Import) -> None:
    await imported.tallybook.done("competitor", "add", imported.slug, "Eve")
    rows = [
        "date,group,participants,score",
        "2024-03-01,1,Ajax|Brest,2:1",
        "2024-02-30,1,Ajax|Brest,2:1",
        ",one,Ajax|Zenit,2-x",
        "",
        "2024-03-01,1,Ajax|Brest|Celtic,2:1",
        "2024-03-01,1,Ajax|Ajax,2:1",
        "2024-03-01,1,Ajax|Eve,2:1",
        "2024-03-01,1,Ajax|Brest,",
    ]
    two = "must be two numbers, such as 2:1, for two participants, to give points; or add a column 'points'"
    faults = await imported.faults("\n".join(rows))
    assert faults == [
        f"line 3, date: '2024-02-30' must be {FORM_OF_DATES}",
        f"line 4, date: '' must be {FORM_OF_DATES}",
        "line 4, group: 'one' is not a whole number",
        "line 4, participants: This tournament has no competitor 'Zenit'.",
        f"line 4, score: {two}",
        f"line 6, score: {two}",
        "line 6, score: must have a performance for each participant, separated by |",
        f"line 9, score: {two}",
    ]
    found = await imported.faults("\n".join(rows[:2] + rows[6:8]))
    assert [fault.partition(": competitor")[0] for fault in found] == ["line 3, participants", "line 4, points"]
    assert "is named more than once" in found[0]
    assert "is not in this ranking" in found[1]


async def test_a_draw_is_half_a_point_where_points_have_decimals(imported: Import) -> None:
    await imported.tallybook.done("ranking", "create", imported.slug, "Chess", "--decimals", "1")
    await imported.tallybook.done("unity", "add", imported.slug, "Chess", "time", "--time", "s", "--sort", "ASC")
    rows = ["date,participants,score,time", "2024-03-01,Ajax|Brest,1:1,2:03:17|1:59:40", "2024-03-02,Ajax|Celtic,1:0,"]
    options = ("--win", "1", "--loss", "0", "--draw")
    ended = await asyncio.to_thread(said, *imported.command("\n".join(rows), *options, "0.25", ranking="Chess"))
    assert ended.err.splitlines() == [
        "The points of a result cannot be read.",
        "  draw: '0.25' must be a number with at most 1 decimal, such as 12.5",
    ]
    await imported("\n".join(rows), *options, "0.5", ranking="Chess")
    told = (await imported.tallybook("standings", imported.slug, "Chess")).out.splitlines()
    assert [line.split()[-2] for line in told if "Ajax" in line] == ["1.5", "2:03:17"]
    csv = (await imported.tallybook.done("history", imported.slug, "Chess", "--format", "csv")).splitlines()
    assert {line.split(",")[8] for line in csv[1:]} >= {"0.5", "1.0", "2:03:17"}


async def test_a_score_may_have_halves(imported: Import) -> None:
    await imported.tallybook.done("ranking", "create", imported.slug, "Chess", "--decimals", "1")
    await imported.tallybook.done("unity", "add", imported.slug, "Chess", "games", "--decimals", "1")
    await imported.tallybook.done("unity", "add", imported.slug, "Chess", "goals")
    scores = ["½:½", "1/2-1/2", "0.5:0.5", "1½-½", "1:0", '"2,5:1,50"']
    rows = ["date,participants,score"]
    rows += [f"2024-03-0{day},Ajax|Brest,{score}" for day, score in enumerate(scores, start=1)]
    options = ("--win", "1", "--draw", "0.5")
    assert await imported.faults("\n".join(rows), *options, "--goals-for", "goals", ranking="Chess") == [
        "line 2, score: '½:½' gives 0.5 in the unity 'goals', which must be a whole number, in digits only",
        "line 3, score: '1/2-1/2' gives 0.5 in the unity 'goals', which must be a whole number, in digits only",
        "line 4, score: '0.5:0.5' gives 0.5 in the unity 'goals', which must be a whole number, in digits only",
        "line 5, score: '1½-½' gives 1.5 in the unity 'goals', which must be a whole number, in digits only",
        "line 7, score: '2,5:1,50' gives 2.5 in the unity 'goals', which must be a whole number, in digits only",
    ]
    await imported("\n".join(rows), *options, "--goals-for", "games", ranking="Chess")
    told = (await imported.tallybook("standings", imported.slug, "Chess")).out.splitlines()
    cells = [line.replace("│", " ").split() for line in told if "Ajax" in line or "Brest" in line]
    assert [line[-2:] for line in cells][:4] == [["Ajax", "4.5"], ["Brest", "1.5"], ["Ajax", "6.5"], ["Brest", "3.5"]]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("points", "fault"),
    [
        ("3", "must have points for each participant, separated by |"),
        ("3|0|0", "must have points for each participant, separated by |"),
        ("3|x", "'x' must be a whole number, in digits only"),
        ("1.5|0", "'1.5' must be a whole number, in digits only"),
        ("99999999999|0", "delta 99999999999 is not within ±2147483647"),
        ("2147483648|0", "delta 2147483648 is not within ±2147483647"),
    ],
)
async def test_points_in_a_column_are_one_for_each(imported: Import, points: str, fault: str) -> None:
    rows = ["date,participants,score,points", f"2024-03-01,Ajax|Brest,2:1,{points}"]
    assert await imported.faults("\n".join(rows)) == [f"line 2, points: {fault}"]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "The first line must name the columns"),
        ("date,participants\n", "The first line must name the columns"),
        ("date,participants,score,date\n", "The first line must name the columns"),
        ("date,participants,score,corners\n", "has no unity 'corners'."),
        ('date,participants,score\n2024-03-01,"Ajax|Brest,2:1\n', "The file is not CSV: "),
    ],
)
async def test_a_file_that_is_none_is_refused(imported: Import, content: str, reason: str) -> None:
    assert reason in (await imported.refused(content))[0]


async def test_a_row_of_too_many_or_too_few_fields_is_named(imported: Import) -> None:
    rows = [
        "date,participants,score",
        "2024-03-01,Ajax|Brest",
        "2024-03-01,Ajax|Brest,2:1",
        "2024-03-01,Ajax,Brest,2:1",
    ]
    fault = "it has more or fewer fields than the first line has columns"
    assert await imported.refused("\n".join(rows)) == [
        "Nothing was imported; correct these lines.",
        f"  line 2: {fault}",
        f"  line 4: {fault}",
    ]


@pytest.mark.parametrize(
    ("columns", "options"),
    [
        (",goals for", ["--goals-for", "goals for"]),
        ("", ["--goals-for", "goals for", "--goals-against", "goals for"]),
    ],
)
async def test_two_sources_of_one_unity_are_refused(imported: Import, columns: str, options: list[str]) -> None:
    (reason,) = await imported.refused(f"date,participants,score{columns}\n", *options)
    assert reason == "Two columns or options give points in the unity 'goals for'; leave one out."


async def test_competitions_are_counted_as_a_league_table_has_them(imported: Import) -> None:
    counts = ("played", "won", "drawn", "lost")
    for unity in counts:
        await imported.tallybook.done("unity", "add", imported.slug, "Table", unity)
    rows = (
        "date,participants,score",
        "2024-03-01,Ajax|Brest,2:1",
        "2024-03-02,Brest|Celtic,0:0",
        "2024-03-03,Celtic|Ajax,1:4",
    )
    await imported("\n".join(rows), *[part for unity in counts for part in (f"--{unity}", unity)])
    table = await imported.table()
    assert {name: tuple(table[unity][name] for unity in ("points", *counts)) for name in CLUBS} == {
        "Ajax": (6, 2, 2, 0, 0),
        "Brest": (1, 2, 0, 1, 1),
        "Celtic": (1, 2, 0, 1, 1),
        "Dynamo": (0, 0, 0, 0, 0),
    }


async def test_a_file_of_too_many_lines_is_refused() -> None:
    for count, refused in ((IMPORT_COMPETITIONS_MAX, False), (IMPORT_COMPETITIONS_MAX + 1, True)):
        file = read_csv(b"date,participants,score\n" + b"2024-03-01,Ajax|Brest,2:1\n" * count)
        if refused:
            with pytest.raises(Unreadable, match=f"more than {IMPORT_COMPETITIONS_MAX:,} lines"):
                read_competitions(file, RankingId(1), Scoring())
        else:
            assert len(read_competitions(file, RankingId(1), Scoring()).rows) == count


async def test_a_closed_ranking_is_refused_before_anything_is_added(imported: Import) -> None:
    await imported.tallybook.done("ranking", "close", imported.slug, "Table")
    (reason,) = await imported.refused("date,participants,score\n2024-03-01,Ajax|Brest,2:1\n")
    assert "is closed; have it reopened first" in reason


# ── Nothing twice ───────────────────────────────────────────────────────────────────────────────────────

DAY_ONE = "date,participants,score\n2024-03-01,Ajax|Brest,2:1\n2024-03-01,Celtic|Dynamo,0:0\n"
DAY_TWO = "2024-03-08,Brest|Ajax,1:1\n"


async def test_a_file_may_grow_and_be_imported_again(imported: Import) -> None:
    assert await imported(DAY_ONE) == "2 competitions imported"
    table, events = await imported.table(), await imported.events()
    assert await imported(DAY_ONE) == "nothing to do: all 2 competitions of the file are imported already"
    again = DAY_ONE.replace(",", ";").replace("\n", "\r\n").replace("2:1", " 2:1 ")
    assert await imported(again) == "nothing to do: all 2 competitions of the file are imported already"
    assert (await imported.table(), await imported.events()) == (table, events)
    assert await imported(DAY_ONE + DAY_TWO) == "1 competition imported; 2 of the file were already"
    assert (await imported.table())["points"] == {"Ajax": 4, "Brest": 1, "Celtic": 1, "Dynamo": 1}


async def test_two_games_of_the_same_two_at_the_same_time_are_two(imported: Import) -> None:
    assert await imported(DAY_ONE + "2024-03-01,Ajax|Brest,2:1\n") == "3 competitions imported"
    assert (await imported.table())["points"]["Ajax"] == 6


async def test_json_says_what_was_imported(imported: Import) -> None:
    await imported(DAY_ONE)
    outcome = await imported.json(DAY_ONE + DAY_TWO)
    assert outcome.pop("name")
    assert outcome == {"imported": 1, "already_imported": 2, "ids": [one["id"] for one in await imported.listed()]}


async def test_a_club_is_the_same_by_id_and_by_name(imported: Import) -> None:
    await imported(DAY_ONE)
    ids = {one["name"]: one["id"] for one in await imported.tallybook.json("competitor", "list", imported.slug)}
    by_id = DAY_ONE.replace("Ajax", str(ids["Ajax"]))
    assert await imported(by_id) == "nothing to do: all 2 competitions of the file are imported already"


async def test_a_line_that_has_another_score_or_other_points_by_now_is_refused(imported: Import) -> None:
    await imported(DAY_ONE)
    match = (await imported.listed())[0]["id"]
    scored, *other_points = await imported.faults(DAY_ONE.replace("2:1", "2:2") + DAY_TWO)
    assert scored == (
        f"line 2: it was imported as competition {match}, with another score, group or location; undo that import "
        "first, or correct that competition and leave this line out"
    )
    assert len(other_points) == 1
    (fault,) = await imported.faults(DAY_ONE, "--win", "2")
    assert fault.startswith(f"line 2: competition {match} was imported with other points (event ")
    rest = "date,participants,score\n2024-03-01,Celtic|Dynamo,0:0\n" + DAY_TWO
    assert await imported(rest) == "1 competition imported; 1 of the file were already"


async def test_another_ranking_gets_points_of_the_same_competitions(imported: Import) -> None:
    await imported(DAY_ONE)
    await imported.tallybook.done("ranking", "create", imported.slug, "Old rules")
    assert await imported(DAY_ONE, "--win", "2", ranking="Old rules") == "2 competitions imported"
    assert len(await imported.listed()) == 2
    assert (await imported.table("Old rules"))["points"]["Ajax"] == 2
    assert (await imported.table())["points"]["Ajax"] == 3


async def test_an_import_is_undone_and_the_corrected_file_counts(imported: Import) -> None:
    await imported(DAY_ONE)
    slug, command = imported.slug, imported.tallybook
    where = ("--database-url", command.dsn)
    (name,) = imported.names
    before, events = await imported.table(), await imported.events()
    wrong = DAY_TWO.replace("1:1", "9:0")
    await imported(DAY_ONE + wrong)
    corrected, _of_points = await imported.faults(DAY_ONE + DAY_TWO)
    assert "undo that import first" in corrected
    shown = await command.done("import", "undo", slug, imported.names[1], "--dry-run")
    assert "Brest" in shown
    assert (await imported.listed())[2]["voided_at"] is None
    ended = await asyncio.to_thread(said, "import", "undo", slug, imported.names[1], *where)
    voided = (await imported.listed())[2]
    assert (ended.out, ended.err) == (
        f"{voided['id']}\n",
        "1 competition voided, points of 1 event taken back\n",
    )
    assert voided["voided_at"] is not None
    assert await imported.table() == before
    again = await asyncio.to_thread(said, "import", "undo", slug, imported.names[1], *where)
    assert again.err == f"nothing to do: nothing of import {imported.names[1]} counts\n"
    assert await imported(DAY_ONE + DAY_TWO) == "1 competition imported; 2 of the file were already"
    assert (await imported.table())["points"]["Brest"] == 1
    assert len({*imported.names}) == 3
    listed = await command.json("import", "list", slug)
    assert [(one["name"], one["competitions"], one["points"], one["undone"]) for one in listed] == [
        (name, 2, 2, False),
        (imported.names[1], 1, 1, True),
        (imported.names[2], 1, 1, False),
    ]
    assert listed[0]["event"] == events - 3
    unknown = await asyncio.to_thread(said, "import", "undo", slug, "nothing", *where)
    assert unknown.err == "This tournament has no import 'nothing'; `tallybook import list` shows them.\n"


@pytest.mark.parametrize("by_hand", ["voided", "voided, and their points undone", "voided, and never had points"])
async def test_an_import_that_was_taken_back_by_hand_can_be_undone_and_the_corrected_file_counts(
    imported: Import, owner: asyncpg.Connection, by_hand: str
) -> None:
    slug, command = imported.slug, imported.tallybook
    wrong = "date,participants,score,points\n2024-03-01,Ajax|Brest,{0},{1}\n2024-03-02,Celtic|Dynamo,{0},{1}\n"
    await imported(wrong.format("0:9", "" if by_hand.endswith("never had points") else "0|3"))
    if by_hand.endswith("undone"):
        for given in await owner.fetch("SELECT sequence FROM tallybook.event WHERE kind = 'PointsAdded'"):
            await command.done("points", "undo", slug, "Table", str(given["sequence"]))
    for match in await imported.listed():
        await command.done("void", slug, str(match["id"]))
    undo = ("import", "undo", slug, *imported.names, "--database-url", command.dsn)
    before = await imported.events()
    assert (await asyncio.to_thread(said, *undo, "--dry-run")).code == 0
    assert await imported.events() == before
    undone = await asyncio.to_thread(said, *undo)
    (name,) = imported.names
    assert (undone.out, undone.err) == (
        "",
        f"nothing of import {name} counted any more; now that it is undone, its file can be imported again\n",
    )
    assert [one["undone"] for one in await command.json("import", "list", slug)] == [True]
    events = await imported.events()
    assert (await asyncio.to_thread(said, *undo)).err == f"nothing to do: nothing of import {name} counts\n"
    assert await imported.events() == events
    assert await imported(wrong.format("2:1", "3|0")) == "2 competitions imported"
    assert (await imported.table())["points"] == {"Ajax": 3, "Brest": 0, "Celtic": 3, "Dynamo": 0}
    assert [one["voided_at"] is None for one in await imported.listed()] == [False, False, True, True]


@pytest.mark.parametrize(
    ("options", "kept", "expected"),
    [
        (("--counts", "best"), (("Ann", 5),), {"Ann": 5, "Ben": None}),  # of two better results, neither counts
        (("--lasts", "P1D", "--expires-on", "day"), (), {"Ann": 0, "Ben": 0}),  # they expired as they were imported
        ((), (("Ben", 5),), {"Ann": 0, "Ben": 5}),
    ],
)
async def test_the_preview_of_an_undoing_shows_what_the_undoing_leads_to(
    tallybook: Tallybook,
    tmp_path: Path,
    options: tuple[str, ...],
    kept: tuple[tuple[str, int], ...],
    expected: dict[str, int | None],
) -> None:
    slug = await tallybook.done("tournament", "create", "Heats")
    for name in ("Ann", "Ben"):
        await tallybook.done("competitor", "add", slug, name)
    await tallybook.done("ranking", "create", slug, "Laps", "--unity", "laps", *options)
    for name, laps in kept:
        await tallybook.done("points", "add", slug, "Laps", f"{name}={laps}")
    (file := tmp_path / "heats.csv").write_text(
        "date,participants,score,laps\n2020-05-02,Ann|Ben,1:0,12|9\n2020-05-03,Ann|Ben,0:1,10|11\n"
    )
    where = ("--database-url", tallybook.dsn)
    imported = await asyncio.to_thread(said, "competition", "import", slug, "Laps", str(file), *where)
    assert imported.code == 0, imported.err
    ((name,),) = [[one["name"]] for one in await tallybook.json("import", "list", slug)]

    async def totals() -> dict[str, Any]:
        (unity,) = (await tallybook.json("standings", slug, "Laps"))["unities"]
        names = {one["id"]: one["name"] for one in await tallybook.json("competitor", "list", slug)}
        return {names[line["competitor_id"]]: line["total"] for line in unity["competitors_ranking"]}

    before = await totals()
    compared = await tallybook.json("import", "undo", slug, name, "--dry-run")
    moved = {move["name"]: move["total_after"] for one in compared for of in one["unities"] for move in of["moves"]}
    assert before | moved == expected
    undone = await asyncio.to_thread(said, "import", "undo", slug, name, *where)
    assert (undone.code, await totals()) == (0, expected)
    again = await asyncio.to_thread(said, "competition", "import", slug, "Laps", str(file), *where)
    assert (again.code, await totals()) == (0, before)


async def test_a_competition_with_points_of_others_is_kept(imported: Import) -> None:
    await imported(DAY_ONE)
    await imported.tallybook.done("points", "add", imported.slug, "Table", "Ajax=7", "--competition", "Ajax - Brest")
    ended = await asyncio.to_thread(
        said, "import", "undo", imported.slug, *imported.names, "--database-url", imported.tallybook.dsn
    )
    kept, voided = await imported.listed()
    assert (kept["voided_at"], ended.out) == (None, f"{voided['id']}\n")
    assert ended.err.splitlines() == [
        "1 competition voided, points of 2 events taken back",
        f"kept, because they hold points of others: {kept['id']}",
    ]
    assert (await imported.table())["points"] == {"Ajax": 7, "Brest": 0, "Celtic": 0, "Dynamo": 0}


# ── Cut off ─────────────────────────────────────────────────────────────────────────────────────────────


async def test_cut_off_after_a_chunk_it_continues(
    desk: Desk, imported: Import, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importer, "IMPORT_REQUESTS_MAX", 2)
    rows = [f"2024-03-{day:02},Ajax|Brest,1:0" for day in range(1, 8)]
    file = tmp_path / "week.csv"
    file.write_text("\n".join(["date,participants,score", *rows]))
    async with desk.database.connection() as connection:
        tournament_id = await registry.tournament_named(connection, imported.slug)
    assert tournament_id is not None

    async def play(stop_at: int | None) -> Imported:
        stop = asyncio.Event()

        def progress(done: int, total: int) -> None:
            assert total == len(rows)
            if stop_at is not None and done >= stop_at:
                stop.set()

        async with desk.live_pool.pinned(tournament_id) as live:
            await desk.live_pool.make_current(live)
            kind = read_competitions(read_csv(file.read_bytes()), Names(live.board).ranking("Table"), Scoring())
            return await import_lines(desk, live, kind, actor=OPERATOR, stop=stop, progress=progress)

    with pytest.raises(Interrupted) as caught:
        await play(3)
    assert caught.value.message == (
        "Interrupted: 4 of the file's 7 competitions are imported. "
        "Import it again: that adds the others, and none twice."
    )
    assert (await imported.table())["points"]["Ajax"] == 12
    outcome = await play(None)
    assert (outcome.made, outcome.already, len(set(outcome.ids))) == (3, 4, 7)
    assert (await imported.table())["points"]["Ajax"] == 21
    assert [one["id"] for one in await imported.listed()] == outcome.ids


def some_season(random: Random, count: int) -> str:
    """A file of as many competitions."""
    rows = [
        f"{2000 + n // 336}-{1 + n // 28 % 12:02}-{1 + n % 28:02},{'|'.join(random.sample(CLUBS, 2))},"
        f"{random.randrange(4)}:{random.randrange(4)}"
        for n in range(count)
    ]
    return "\n".join(["date,participants,score", *rows])


async def kill_at(owner: asyncpg.Connection, kind: str, at: int, folder: Path, command: list[str]) -> int | None:
    """Runs the command, and kills it as soon as there are `at` events of a kind. Returns how it ended."""
    counted = "SELECT count(*) FROM tallybook.event WHERE kind = $1"

    async def has_come_to_it(running: Running) -> bool:
        return running.process.poll() is not None or await owner.fetchval(counted, kind) >= at

    with started(folder, *command) as running:
        await until(partial(has_come_to_it, running), 60)
        running.send(signal.SIGKILL)
        return await running.ended()


@pytest.mark.long
async def test_killed_at_any_moment_it_continues_and_doubles_nothing(
    imported: Import, owner: asyncpg.Connection, tmp_path: Path
) -> None:
    random, count = Random(16), 2_000
    content = some_season(random, count)
    moments = sorted(random.sample(range(1, count), 3))
    codes = [await kill_at(owner, "PointsAdded", at, tmp_path, imported.command(content)) for at in moments]
    assert -signal.SIGKILL in codes
    outcome = await imported.json(content)
    assert outcome["imported"] + outcome["already_imported"] == count
    counted = await owner.fetchval("SELECT count(*) FROM tallybook.event WHERE kind = 'PointsAdded'")
    assert counted == len(await imported.listed()) == len(set(outcome["ids"])) == count
    expected = dict.fromkeys(CLUBS, 0)
    for row in content.splitlines()[1:]:
        _, clubs, score = row.split(",")
        for club, (scored, conceded) in zip(clubs.split("|"), _both(score), strict=True):
            expected[club] += 3 if scored > conceded else scored == conceded
    assert (await imported.table())["points"] == expected


@pytest.mark.long
async def test_an_undoing_that_is_killed_at_any_moment_continues_and_takes_back_each_competition_once(
    imported: Import, owner: asyncpg.Connection, tmp_path: Path
) -> None:
    random, count = Random(33), 1_000
    content = some_season(random, count)
    await imported(content)
    played, where = await imported.table(), ("--database-url", imported.tallybook.dsn)
    undo = ["import", "undo", imported.slug, *imported.names, *where]
    moments = sorted(random.sample(range(1, count), 3))
    codes = [await kill_at(owner, "CompetitionVoided", at, tmp_path, undo) for at in moments]
    assert -signal.SIGKILL in codes
    assert (await asyncio.to_thread(said, *undo)).code == 0
    assert all(one["voided_at"] for one in await imported.listed())
    assert await owner.fetchval("SELECT count(*) FROM tallybook.event WHERE kind = 'CompetitionVoided'") == count
    assert (await imported.table())["points"] == dict.fromkeys(CLUBS, 0)
    again = await asyncio.to_thread(said, *undo)
    assert again.err == f"nothing to do: nothing of import {imported.names[0]} counts\n"
    assert await imported(content) == f"{count:,} competitions imported"
    assert await imported.table() == played
    assert (await asyncio.to_thread(said, "verify", *where)).code == 0


def _both(score: str) -> tuple[tuple[int, int], tuple[int, int]]:
    home, away = map(int, score.split(":"))
    return (home, away), (away, home)


async def test_each_of_two_imports_of_a_file_at_once_tells_what_it_did_itself(
    imported: Import, desk: Desk, dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that finds nothing imported is overtaken by the other: by the whole file, or while both are at it."""
    file = tmp_path / "season.csv"

    async def play(desk: Desk, days: range) -> Imported:
        rows = [f"2024-03-{day:02},Ajax|Brest,{day}:0" for day in days]
        file.write_text("\n".join(["date,participants,score", *rows]))
        async with desk.database.connection() as connection:
            tournament_id = await registry.tournament_named(connection, imported.slug)
        assert tournament_id is not None
        async with desk.live_pool.pinned(tournament_id) as live:
            await desk.live_pool.make_current(live)
            kind = read_competitions(read_csv(file.read_bytes()), Names(live.board).ranking("Table"), Scoring())
            stop = asyncio.Event()
            return await import_lines(desk, live, kind, actor=OPERATOR, stop=stop, progress=lambda *_: None)

    async with desk_at(dsn) as other:
        draw = registry.next_ids

        async def after_the_other(connection: asyncpg.Connection, count: int) -> list[int]:
            monkeypatch.setattr(registry, "next_ids", draw)
            assert (await play(other, range(1, 4))).made == 3
            return await draw(connection, count)

        monkeypatch.setattr(registry, "next_ids", after_the_other)
        late = await play(desk, range(1, 6))
        assert (late.made, late.already) == (2, 3)
        monkeypatch.setattr(importer, "IMPORT_REQUESTS_MAX", 2)
        both = await asyncio.gather(play(desk, range(6, 30)), play(other, range(6, 30)))
        assert sum(one.made for one in both) == 24
        assert [one.made + one.already for one in both] == [24, 24]
        assert both[0].ids == both[1].ids
    assert (await imported.table())["points"]["Ajax"] == 3 * 29
