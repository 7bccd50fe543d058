"""Imports by the command line: what it says, and that it continues, however it was cut off."""

import asyncio
import csv
import fcntl
import json
import signal
import subprocess
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import asyncpg
import pytest

from tests.api.cli.conftest import Tallybook
from tests.api.football import FOOTBALL, SEASONS
from tests.api.imports.league import CLUBS, League, create_league, places
from tests.api.imports.test_competitions import DAY_ONE, DAY_TWO
from tests.cut_imports import cut_import
from tests.desks import until
from tests.running import TALLYBOOK, Running, Said, environment, opened_by, said, started


class Import(League):
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

    async def events(self) -> int:
        (events,) = [
            one["events"] for one in await self.tallybook.json("tournament", "list") if one["slug"] == self.slug
        ]
        assert isinstance(events, int)
        return events


@pytest.fixture
def imported(tallybook: Tallybook, slug: str, tmp_path: Path) -> Import:
    return Import(tallybook, slug, tmp_path)


# ── Competitors ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.timeout(300)
@pytest.mark.long
async def test_an_import_that_is_cut_off_at_random_registers_everybody_once_and_in_order(
    tallybook: Tallybook, dsn: str, tmp_path: Path
) -> None:
    slug = await tallybook.done("tournament", "create", "Cup")
    cut = await cut_import(["--database-url", dsn], dsn, slug, tmp_path, Random(3), count=1_000, cuts=3)
    assert {one.how for one in cut.cuts if one.code} == {signal.SIGINT, signal.SIGKILL}
    assert cut.right, cut


@pytest.mark.timeout(300)
@pytest.mark.long
async def test_an_import_into_an_embedded_database_that_is_cut_off_continues(tmp_path: Path) -> None:
    where = ["--data-dir", str(tmp_path / "data")]
    slug = said("tournament", "create", "Cup", *where).out.strip()
    dsn = f"postgresql://tallybook@/tallybook?host={tmp_path / 'data' / 'socket.alone'}&port=5432"
    cut = await cut_import(where, dsn, slug, tmp_path, Random(1), count=300, cuts=1)
    assert cut.right, cut


async def test_ctrl_c_before_the_import_has_begun_says_that_nobody_was_registered(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    with (data / "lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with started(tmp_path, "competitor", "import", "cup", "a.csv", "--data-dir", str(data)) as waiting:
            await until(lambda: str(data / "lock") in opened_by(waiting.pid))
            waiting.press_ctrl_c()
            assert await waiting.ended() == 130
            assert (waiting.out, waiting.err) == ("", "Interrupted before this command imported anything.\n")


async def test_it_is_said_how_many_were_registered_and_with_json_also_their_ids(
    tallybook: Tallybook, dsn: str, tmp_path: Path
) -> None:
    slug = await tallybook.done("tournament", "create", "Cup")
    file = tmp_path / "some.csv"
    command = ["competitor", "import", slug, str(file), "--database-url", dsn]
    file.write_text("name\nAnn\nBob\n")
    first = said(*command, "--json")
    ids = [one["id"] for one in await tallybook.json("competitor", "list", slug)]
    assert (first.json, first.err) == ({"registered": 2, "corrected": 0, "already_registered": 0, "ids": ids}, "")
    file.write_text("name\nAnn\nCid\nBob\n")
    second = said(*command)
    assert second == Said(0, "", "1 competitor registered; 2 in the file already were\n")
    assert said(*command) == Said(0, "", "nothing to do: all 3 competitors in the file are already registered\n")
    _, _, cid = [one["id"] for one in await tallybook.json("competitor", "list", slug)]
    third = said(*command, "--json")
    assert (third.json, third.err) == (
        {"registered": 0, "corrected": 0, "already_registered": 3, "ids": [ids[0], cid, ids[1]]},
        "",
    )


async def test_columns_that_mean_nothing_are_left_out_if_an_option_says_so(
    tallybook: Tallybook, dsn: str, tmp_path: Path
) -> None:
    slug = await tallybook.done("tournament", "create", "Cup")
    (file := tmp_path / "some.csv").write_text("name,born\nAnn,2001\n")
    command = ["competitor", "import", slug, str(file), "--database-url", dsn]
    assert said(*command) == Said(
        1, "", "Competitors have no 'born'. Correct the first line, or leave such columns out (--leave-out).\n"
    )
    assert said(*command, "--leave-out") == Said(0, "", "left out: 'born'\n1 competitor registered\n")


@pytest.mark.parametrize("content", ["name;tags\nAnn;a\nBob;\n", '\n{"name":"Ann","tags":"a"}\n{"name":"Bob"}\n'])
async def test_standard_input_may_have_either_form(tallybook: Tallybook, tmp_path: Path, content: str) -> None:
    slug = await tallybook.done("tournament", "create", "Cup")
    file = tmp_path / "some"
    file.write_text(content)
    ended = said("competitor", "import", slug, "-", "--database-url", tallybook.dsn, stdin=file)
    assert ended == Said(0, "", "2 competitors registered\n")
    listed = await tallybook.json("competitor", "list", slug)
    assert [(one["name"], one["tags"]) for one in listed] == [("Ann", ["a"]), ("Bob", [])]


async def test_only_csv_and_ndjson_that_can_be_read_are_imported(tallybook: Tallybook, tmp_path: Path) -> None:
    slug = await tallybook.done("tournament", "create", "Cup")
    (tmp_path / "folder.csv").mkdir()
    for name, reason in (
        ("file.txt", "The file must be .csv or .ndjson, or - for standard input."),
        ("folder.csv", "The file cannot be read: Is a directory."),
        ("nowhere.NDJSON", "The file cannot be read: No such file or directory."),
    ):
        file = str(tmp_path / name)
        ended = await asyncio.to_thread(said, "competitor", "import", slug, file, "--database-url", tallybook.dsn)
        assert ended == Said(1, "", f"{reason}\n")


def test_ctrl_c_ends_a_command_that_waits_for_standard_input(dsn: str) -> None:
    slug = said("tournament", "create", "Cup", "--database-url", dsn).out.strip()
    command = [TALLYBOOK, "competitor", "import", slug, "-", "--database-url", dsn]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()) as process:
        assert process.stdin is not None
        process.stdin.write(b"name\n" * 100_000)  # more than a pipe holds: it is reading
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert said("competitor", "list", slug, "--json", "--database-url", dsn).json == []


# ── Competitions ────────────────────────────────────────────────────────────────────────────────────────


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

    assert await play(matches) == f"{len(matches.splitlines()) - 1} competitions imported"

    for deduction in json.loads((FOOTBALL / "deductions.json").read_text()).get(season, []):
        await tallybook.done("points", "add", slug, "Table", f"{deduction['team']}={deduction['points']}")
    table = await places(tallybook, slug, "Table")
    assert {(unity, team): place for unity, lines in table.items() for team, place in lines.items()} == expected


async def test_scores_for_a_ranking_without_a_scoring_give_no_points_and_a_warning(imported: Import) -> None:
    await imported.tallybook.done("scoring", "declare", imported.slug, "Table")
    ended = await asyncio.to_thread(said, *imported.command(DAY_ONE))
    assert "Scores give no points here: the ranking has no scoring" in ended.err
    assert (await imported.table())["points"] == dict.fromkeys(CLUBS, 0)
    assert (await imported.tallybook("scoring", "declare", imported.slug, "Table", "football")).code == 0
    assert (await imported.table())["points"]["Ajax"] == 3


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


async def test_json_says_what_was_imported(imported: Import) -> None:
    await imported(DAY_ONE)
    outcome = await imported.json(DAY_ONE + DAY_TWO)
    assert outcome.pop("name")
    assert outcome == {
        "imported": 1,
        "corrected": 0,
        "already_imported": 2,
        "ids": [one["id"] for one in await imported.listed()],
    }


async def test_an_import_is_undone_and_the_corrected_file_counts(imported: Import) -> None:
    await imported(DAY_ONE)
    slug, command = imported.slug, imported.tallybook
    where = ("--database-url", command.dsn)
    (name,) = imported.names
    before, events = await imported.table(), await imported.events()
    wrong = DAY_TWO.replace("1:1", "9:0")
    await imported(DAY_ONE + wrong)
    refused = await asyncio.to_thread(said, *imported.command(DAY_ONE + DAY_TWO))
    assert (refused.code, refused.err.count("undo that import first")) == (1, 1)
    shown = await command.done("import", "undo", slug, imported.names[1], "--dry-run")
    assert "Brest" in shown
    assert (await imported.listed())[2]["voided_at"] is None
    ended = await asyncio.to_thread(said, "import", "undo", slug, imported.names[1], *where)
    voided = (await imported.listed())[2]
    assert (ended.out, ended.err) == (
        f"{voided['id']}\n",
        "1 competition voided\n",
    )
    assert voided["voided_at"] is not None
    assert await imported.table() == before
    again = await asyncio.to_thread(said, "import", "undo", slug, imported.names[1], *where)
    assert again.err == f"nothing to do: nothing from import {imported.names[1]} counts\n"
    assert await imported(DAY_ONE + DAY_TWO) == "1 competition imported; 2 in the file already were"
    assert (await imported.table())["points"]["Brest"] == 1
    assert len({*imported.names}) == 3
    listed = await command.json("import", "list", slug)
    assert [(one["name"], one["competitions"], one["points"], one["undone"]) for one in listed] == [
        (name, 2, 0, False),
        (imported.names[1], 1, 0, True),
        (imported.names[2], 1, 0, False),
    ]
    assert listed[0]["event"] == events - 3
    unknown = await asyncio.to_thread(said, "import", "undo", slug, "nothing", *where)
    assert unknown.err == "This tournament has no import 'nothing'; `tallybook import list` shows them.\n"


async def test_the_scores_of_fixtures_are_taken_back_without_the_fixtures(imported: Import) -> None:
    scores = DAY_ONE.replace("2:1", "").replace("0:0", "")
    assert await imported(scores) == "2 competitions imported"
    assert await imported(DAY_ONE) == "2 competitions imported"
    assert len({*imported.names}) == 2
    undo, where = ("import", "undo", imported.slug), ("--database-url", imported.tallybook.dsn)
    before = await imported.table()
    (compared,) = await imported.tallybook.json(*undo, imported.names[1], "--dry-run")
    moves = {move["name"]: move["total_after"] for move in compared["unities"][0]["moves"]}
    assert moves == dict.fromkeys(CLUBS, 0)
    assert await imported.table() == before
    undone = await asyncio.to_thread(said, *undo, imported.names[1], "--json", *where)
    assert undone.json == {"voided": [], "kept": [], "points": 0, "results": 2}
    assert [(one["result"], one["voided_at"]) for one in await imported.listed()] == [(None, None)] * 2
    assert await imported(DAY_ONE) == "2 competitions imported"
    ended = await asyncio.to_thread(said, *undo, imported.names[2], *where)
    assert ended.err == "0 competitions voided, 2 results taken back\n"
    assert (await imported.table())["points"] == dict.fromkeys(CLUBS, 0)


@pytest.mark.one_in(3)
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
        f"nothing from import {name} counted any longer; now that it is undone, its file can be imported again\n",
    )
    assert [one["undone"] for one in await command.json("import", "list", slug)] == [True]
    events = await imported.events()
    assert (await asyncio.to_thread(said, *undo)).err == f"nothing to do: nothing from import {name} counts\n"
    assert await imported.events() == events
    assert await imported(wrong.format("2:1", "3|0")) == "2 competitions imported"
    assert (await imported.table())["points"] == {"Ajax": 3, "Brest": 0, "Celtic": 3, "Dynamo": 0}
    assert [one["voided_at"] is None for one in await imported.listed()] == [False, False, True, True]


@pytest.mark.one_in(3)
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
        "1 competition voided, 1 result taken back",
        f"kept, because they also have points from elsewhere: {kept['id']}",
    ]
    assert (await imported.table())["points"] == {"Ajax": 7, "Brest": 0, "Celtic": 0, "Dynamo": 0}


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
    codes = [await kill_at(owner, "PointsScored", at, tmp_path, imported.command(content)) for at in moments]
    assert -signal.SIGKILL in codes
    outcome = await imported.json(content)
    assert outcome["imported"] + outcome["already_imported"] == count
    counted = await owner.fetchval("SELECT count(*) FROM tallybook.event WHERE kind = 'PointsScored'")
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
    assert again.err == f"nothing to do: nothing from import {imported.names[0]} counts\n"
    assert await imported(content) == f"{count:,} competitions imported"
    assert await imported.table() == played
    assert (await asyncio.to_thread(said, "verify", *where)).code == 0


def _both(score: str) -> tuple[tuple[int, int], tuple[int, int]]:
    home, away = map(int, score.split(":"))
    return (home, away), (away, home)
