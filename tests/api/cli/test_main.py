"""The command line: data on standard output, talk on standard error, a code that says how it went.

Most commands are run in this process, as `main` runs them, against the session's cluster; those whose streams, signals
or environment are the point are run as what they are, processes.
"""

import asyncio
import fcntl
import inspect
import io
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest
from rich.console import Console

from api.access import auth
from api.cli.main import app
from api.cli.overview import COLUMNS_MIN, overview_of
from api.cli.tree import PARTS
from api.desk.desk import Desk
from api.desk.opening import STEM_CHARACTERS_MAX
from engine.database.migrator import _CREATE_REGISTER, shipped
from engine.database.pool import Database
from engine.domain.terms import NAME_CHARACTERS_MAX, TournamentId
from tests.api.cli.commands import ranked
from tests.api.cli.conftest import Tallybook, commands, said_here
from tests.desks import until
from tests.running import TALLYBOOK, Said, environment, opened_by, said, started
from tests.service import create_ranking, deltas, make_token, register, serve

INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


@pytest.fixture
async def unmigrated(cluster: str, dsn: str) -> AsyncIterator[str]:
    """The address of a database with nothing in it."""
    name = f"{dsn.partition('/test_')[2].partition('?')[0]}"
    connection = await asyncpg.connect(cluster)
    await connection.execute(f"CREATE DATABASE unmigrated_{name} TEMPLATE template0")
    yield dsn.replace(f"/test_{name}?", f"/unmigrated_{name}?")
    await connection.execute(f"DROP DATABASE unmigrated_{name} WITH (FORCE)")
    await connection.close()


@pytest.fixture
async def slug(tallybook: Tallybook) -> str:
    return await tallybook.done("tournament", "create", "Cup")


# ── Tournaments ─────────────────────────────────────────────────────────────────────────────────────────


async def test_creating_a_tournament_puts_out_its_slug_and_nothing_else(tallybook: Tallybook) -> None:
    assert await tallybook("tournament", "create", "Chess Club Ladder") == Said(0, "chess-club-ladder\n", "")


async def test_with_json_it_puts_out_id_name_and_slug(tallybook: Tallybook) -> None:
    created = await tallybook.json("tournament", "create", "  Chess Club Ladder ")
    assert created == {"id": created["id"], "name": "Chess Club Ladder", "slug": "chess-club-ladder"}
    assert type(created["id"]) is int


async def test_a_slug_that_is_taken_is_numbered(tallybook: Tallybook) -> None:
    slugs = [await tallybook.done("tournament", "create", name) for name in ("Cup", "cup!", "CUP", "Cup 2", "Cup")]
    assert slugs == ["cup", "cup-2", "cup-3", "cup-2-2", "cup-4"]


async def test_tournaments_of_one_name_that_are_created_at_once_have_a_slug_each(dsn: str) -> None:
    create = ["tournament", "create", "Cup", "--database-url", dsn]
    ended = await asyncio.gather(*(asyncio.to_thread(said, *create) for _ in range(4)))
    assert sorted(it.out for it in ended) == ["cup\n", "cup-2\n", "cup-3\n", "cup-4\n"]


@pytest.mark.parametrize(
    ("name", "slug"),
    [("Städte-Pokal München", "stadte-pokal-munchen"), ("Кубок", "kubok"), ("東京", "dong-jing"), ("1. FC 🏆", "1-fc")],
)
async def test_a_name_may_be_in_any_script_and_its_slug_is_ascii(tallybook: Tallybook, name: str, slug: str) -> None:
    assert await tallybook.json("tournament", "create", name) == {
        "id": (await tallybook.json("tournament", "list"))[0]["id"],
        "name": name,
        "slug": slug,
    }


async def test_the_slug_of_a_long_name_is_cut(tallybook: Tallybook) -> None:
    slug = await tallybook.done("tournament", "create", "x" * NAME_CHARACTERS_MAX)
    assert slug == "x" * STEM_CHARACTERS_MAX


async def test_a_name_of_which_nothing_is_left_is_refused(tallybook: Tallybook, subtests: pytest.Subtests) -> None:
    for name in ["🏆", "!?", "—", ""]:
        with subtests.test(name):
            (reason,) = await tallybook.refused("tournament", "create", name)
            assert "letters or digits" in reason or "empty" in reason
            assert await tallybook.json("tournament", "list") == []


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("   ", "must not be empty"),
        ("a\tb", "control character U+0009"),
        ("a\udcff", "control character U+DCFF"),
        ("x" * (NAME_CHARACTERS_MAX + 1), "at most 255 characters"),
    ],
)
async def test_a_name_that_cannot_be_one_is_refused(tallybook: Tallybook, name: str, fault: str) -> None:
    (reason,) = await tallybook.refused("tournament", "create", name)
    assert fault in reason


async def test_a_name_may_begin_with_a_dash_after_two(tallybook: Tallybook) -> None:
    assert await asyncio.to_thread(
        said_here, ["tournament", "create", "--database-url", tallybook.dsn, "--", "-20 Cup"]
    ) == Said(0, "20-cup\n", "")


async def test_what_a_tournament_has_is_shown_with_a_quota_and_without(tallybook: Tallybook) -> None:
    await tallybook.done("tournament", "create", "Cup")

    async def bounds(*options: str) -> dict[str, int | None]:
        rows = await tallybook.json("tournament", "quota", "cup", *options)
        assert [(row["what"], row["used"] > 0) for row in rows] == [
            ("events", True),
            ("competitors", False),
            ("bytes", True),
        ]
        return {row["what"]: row["bound"] for row in rows if row["bound"]}

    assert await bounds() == {}
    assert await bounds("--events", "9") == await bounds() == {"events": 9}
    assert await bounds("--none") == await bounds() == {}


async def test_tournaments_are_listed_oldest_first_with_the_number_of_their_events(tallybook: Tallybook) -> None:
    assert await tallybook.json("tournament", "list") == []
    cup, ladder = [await tallybook.json("tournament", "create", name) for name in ("Cup", "Ladder")]
    await tallybook.done("competitor", "add", "ladder", "Ann")
    assert await tallybook.json("tournament", "list") == [
        {"id": cup["id"], "slug": "cup", "name": "Cup", "events": 1, "deleted": None},
        {"id": ladder["id"], "slug": "ladder", "name": "Ladder", "events": 2, "deleted": None},
    ]
    table = await tallybook.done("tournament", "list")
    assert [cell in table for cell in ("id", "slug", "events", "ladder", "Cup")] == [True] * 5


# ── Competitors ─────────────────────────────────────────────────────────────────────────────────────────


async def test_adding_a_competitor_puts_out_the_id_alone(tallybook: Tallybook, slug: str) -> None:
    added = await tallybook("competitor", "add", slug, "Ann")
    assert re.fullmatch(r"[1-9][0-9]*\n", added.out)
    assert (added.code, added.err) == (0, "")


async def test_with_json_adding_a_competitor_puts_out_id_and_name(tallybook: Tallybook, slug: str) -> None:
    added = await tallybook.json("competitor", "add", slug, " Ann ")
    assert added == {"id": added["id"], "name": "Ann"}


async def test_competitors_are_listed_in_the_order_of_their_registration(tallybook: Tallybook, slug: str) -> None:
    ann = int(await tallybook.done("competitor", "add", slug, "Ann", "--tag", "a b", "--tag", "ü", "--color", "c0FFee"))
    bob = int(
        await tallybook.done("competitor", "add", slug, "[bold]Bob :heart:[/]", "--parent", str(ann), "--key", "7 ")
    )
    assert await tallybook.json("competitor", "list", slug) == [
        {"id": ann, "name": "Ann", "tags": ["a b", "ü"], "color": "c0FFee", "parent": None, "key": None},
        {"id": bob, "name": "[bold]Bob :heart:[/]", "tags": [], "color": "000000", "parent": ann, "key": "7"},
    ]
    table = await tallybook.done("competitor", "list", slug)
    assert "a b, ü" in table
    assert "[bold]Bob :heart:[/]" in table


async def test_every_fault_of_a_competitor_is_listed(tallybook: Tallybook, slug: str) -> None:
    wrong = ["--tag", "x", "--tag", "x", "--color", "red", "--parent", "99"]
    assert await tallybook.refused("competitor", "add", slug, "", *wrong) == [
        "The request cannot be accepted as it is; correct the fields named.",
        "  name: must not be empty",
        "  tags: tag 'x' is given more than once",
        "  color: must be 6 hexadecimal characters, without a leading #",
        "  parent: competitor 99 is not in this tournament",
    ]
    assert await tallybook.json("competitor", "list", slug) == []


async def test_competitors_are_imported_and_counted_aside(tallybook: Tallybook, slug: str, tmp_path: Path) -> None:
    file = tmp_path / "some.csv"
    file.write_text("name,parent\nAnn,\nBob,Ann\n")
    imported = said("competitor", "import", slug, str(file), "--database-url", tallybook.dsn)
    assert imported == Said(0, "", "2 competitors registered\n")
    ann, bob = await tallybook.json("competitor", "list", slug)
    assert (ann["name"], bob["name"], bob["parent"]) == ("Ann", "Bob", ann["id"])


async def test_an_import_that_is_refused_names_the_lines(tallybook: Tallybook, slug: str, tmp_path: Path) -> None:
    file = tmp_path / "some.csv"
    file.write_text("name,color\nAnn,\n,red\n")
    refused = said("competitor", "import", slug, str(file), "--database-url", tallybook.dsn)
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.splitlines() == [
        "Nothing was imported; correct these lines.",
        "  line 3, name: must not be empty",
        "  line 3, color: must be 6 hexadecimal characters, without a leading #",
    ]


async def test_an_unknown_tournament_is_refused_by_its_slug(
    tallybook: Tallybook, slug: str, subtests: pytest.Subtests
) -> None:
    for command in [
        ["tournament", "export", "cap"],
        ["competitor", "add", "cap", "Ann"],
        ["competitor", "import", "cap", "file.csv"],
        ["competitor", "list", "cap"],
        ["competitor", "list", ""],
        ["competitor", "list", "\udcff"],
        ["unity", "add", "cap", "1", "fouls"],
        ["ranking", "close", "cap", "1"],
        ["ranking", "reopen", "cap", "1"],
        ["ranking", "list", "cap"],
        ["ranking", "create", "cap", "Season"],
        ["ranking", "rename", "cap", "1", "Season"],
        ["participants", "add", "cap", "1", "2"],
        ["participants", "remove", "cap", "1", "2"],
        ["competition", "add", "cap", "2", "3"],
        ["competition", "result", "cap", "1", "1:0"],
        ["competition", "import", "cap", "1", "file.csv"],
        ["competition", "list", "cap"],
        ["points", "add", "cap", "1", "2=3"],
        ["void", "cap", "1"],
        ["what-if", "cap", "1"],
        ["standings", "cap", "1"],
        ["history", "cap", "1"],
        ["explain", "cap", "1", "1"],
        ["token", "create", "Ann", "--scope", "read", "--tournament", "cap"],
    ]:
        with subtests.test(str(command)):
            (reason,) = await tallybook.refused(*command)
            assert re.fullmatch(r"There is no tournament '.*'; `tallybook tournament list` shows them\.", reason)


# ── Rankings and unities ────────────────────────────────────────────────────────────────────────────────


async def test_rankings_are_listed_with_their_unities(tallybook: Tallybook, desk: Desk, slug: str) -> None:
    first, second = await ranked(desk, slug), await ranked(desk, slug, name="[b]2nd[/x]", competitors=("Cid",))
    fouls = await tallybook.json("unity", "add", slug, first, " fouls ", "--sort", "ASC")
    assert fouls == {"id": fouls["id"], "name": "fouls", "sort": "ASC"}
    cards = await tallybook.done("unity", "add", slug, first, "cards")
    listed = await tallybook.json("ranking", "list", slug)
    unities = [list(ranking.pop("unities").items()) for ranking in listed]
    assert unities[0][1:] == [(str(fouls["id"]), "fouls"), (cards, "cards")]
    assert [name for _, name in [unities[0][0], *unities[1]]] == ["points", "points"]
    assert listed == [
        {"id": int(first), "name": "Season", "competitors": 2, "closed_at": None, "hidden": False},
        {"id": int(second), "name": "[b]2nd[/x]", "competitors": 1, "closed_at": None, "hidden": False},
    ]
    assert "[b]2nd[/x]" in await tallybook.done("ranking", "list", slug)


async def test_a_unity_of_a_name_that_is_taken_is_refused(tallybook: Tallybook, desk: Desk, slug: str) -> None:
    ranking_id = await ranked(desk, slug)
    reason = await tallybook.refused("unity", "add", slug, ranking_id, "points")
    assert reason[1:] == ["  name: this ranking already has a unity 'points'"]


async def test_a_closed_ranking_refuses_change_until_it_is_reopened(
    tallybook: Tallybook, desk: Desk, slug: str
) -> None:
    ranking_id = await ranked(desk, slug)
    assert await tallybook("ranking", "close", slug, ranking_id) == Said(0, "", f"ranking {ranking_id} is closed\n")
    (ranking,) = await tallybook.json("ranking", "list", slug)
    assert INSTANT.fullmatch(ranking["closed_at"])
    (reason,) = await tallybook.refused("unity", "add", slug, ranking_id, "fouls")
    assert reason == "The ranking 'Season' is closed; reopen it first."
    assert await tallybook("ranking", "reopen", slug, ranking_id) == Said(0, "", f"ranking {ranking_id} is open\n")
    await tallybook.done("unity", "add", slug, ranking_id, "fouls")


@pytest.mark.parametrize(
    "command", [["unity", "add", "cup", "7", "x"], ["ranking", "close", "cup", "7"], ["ranking", "reopen", "cup", "7"]]
)
async def test_an_unknown_ranking_is_refused(tallybook: Tallybook, slug: str, command: list[str]) -> None:
    assert await tallybook.refused(*command) == ["This tournament has no ranking 7."]


# ── Standings ───────────────────────────────────────────────────────────────────────────────────────────


async def test_standings_show_position_name_and_total(tallybook: Tallybook, desk: Desk, slug: str) -> None:
    names = ("Ann", "[red]Bob[/red]", ":heart: Cid")
    ranking_id = await ranked(desk, slug, name="All [/] of :heart: them", competitors=names)
    await tallybook.done("unity", "add", slug, ranking_id, "fouls", "--sort", "ASC")
    table = await tallybook.done("standings", slug, ranking_id)
    rows = [re.split(r"\s*│\s*", line)[1:4] for line in table.splitlines() if line.startswith("│")]
    points = [[str(n + 1), name, str(3 - n)] for n, name in enumerate(names)]
    assert rows == [*points, *(["1", name, "0"] for name in names)]
    assert "All [/] of :heart: them: points" in table
    assert "All [/] of :heart: them: fouls" in table


async def test_standings_in_json_are_the_modification_shape_and_what_it_is_of(
    tallybook: Tallybook, dsn: str, slug: str
) -> None:
    async with serve(dsn) as service:
        client = service.client(slug, await make_token(service.database))
        ids = await register(client, "Ann", "Bob")
        ranking = await create_ranking(client, ids, description="All of it")
        points = ranking["unities"][0]["id"]
        added = await client.put(
            f"rankings/{ranking['id']}/add.json", {"participants_delta": deltas((ids[0], points, -5))}
        )
    standings = await tallybook.json("standings", slug, str(ranking["id"]))
    recorded_at = standings.pop("recorded_at")
    assert INSTANT.fullmatch(recorded_at)
    assert standings.pop("sequence") == int(added.headers["Tallybook-Sequence"])
    assert standings == added.json["ranking"]
    assert list(standings) == ["id", "name", "description", "closed_at", "competitors", "unities"]


async def test_standings_may_be_of_one_unity(tallybook: Tallybook, desk: Desk, slug: str) -> None:
    ranking_id = await ranked(desk, slug)
    await tallybook.done("unity", "add", slug, ranking_id, "fouls")
    standings = await tallybook.json("standings", slug, ranking_id, "--unity", "fouls")
    assert [unity["name"] for unity in standings["unities"]] == ["fouls"]
    assert "points" not in await tallybook.done("standings", slug, ranking_id, "--unity", "fouls")
    assert await tallybook.refused("standings", slug, ranking_id, "--unity", "cards") == [
        f"Ranking {ranking_id} has no unity 'cards'."
    ]
    assert await tallybook.refused("standings", slug, "-1") == ["This tournament has no ranking '-1'."]


# ── Tokens ──────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_new_token_is_put_out_alone(tallybook: Tallybook) -> None:
    made = await tallybook("token", "create", "scorer", "--scope", "write")
    assert auth.well_formed(made.out.removesuffix("\n"))
    assert (made.code, made.err) == (0, "Keep this token; it is not shown again.\n")


async def test_with_json_a_new_token_says_what_it_is_for(tallybook: Tallybook, slug: str) -> None:
    made = await tallybook.json("token", "create", "scorer", "--scope", "write")
    text = made.pop("token")
    assert auth.well_formed(text)
    assert made == {"id": made["id"], "scope": "write", "tournaments": None, "expires_at": None}
    bound = await tallybook.json(
        "token", "create", "b", "--scope", "read", "--tournament", slug, "--expires-in-days", "7"
    )
    assert INSTANT.fullmatch(bound.pop("expires_at"))
    assert (bound["scope"], bound["tournaments"], bound["token"] != text) == ("read", [slug], True)


async def test_tokens_are_listed_without_their_texts(tallybook: Tallybook, slug: str) -> None:
    other = await tallybook.done("tournament", "create", "Other")
    bind = ["--tournament", slug, "--tournament", other]
    made = [
        await tallybook.json("token", "create", "scorer", "--scope", "write"),
        await tallybook.json("token", "create", "both", "--scope", "admin", *bind),
    ]
    await tallybook.done("token", "revoke", str(made[0]["id"]))
    listed = await tallybook.json("token", "list")
    assert INSTANT.fullmatch(listed[0].pop("revoked_at"))
    assert listed[1].pop("revoked_at") is None
    assert all(INSTANT.fullmatch(token.pop("created_at")) for token in listed)
    assert [(token.pop("group_id"), token.pop("round")) for token in listed] == [(None, None)] * 2
    assert listed == [
        {"id": made[0]["id"], "name": "scorer", "scope": "write", "tournaments": None, "expires_at": None},
        {"id": made[1]["id"], "name": "both", "scope": "admin", "tournaments": ["cup", "other"], "expires_at": None},
    ]
    shown = await tallybook.done("token", "list") + json.dumps(listed)
    assert not [token for token in made if token["token"] in shown or token["token"][3:20] in shown]


async def test_a_token_is_revoked_once(tallybook: Tallybook, database: Database) -> None:
    made = await tallybook.json("token", "create", "scorer", "--scope", "write")
    guard = auth.Guard(database)
    assert (await guard.token_of(f"Bearer {made['token']}")).token_id == made["id"]
    assert await tallybook("token", "revoke", str(made["id"])) == Said(0, "", f"token {made['id']} is revoked\n")
    for token_id in (str(made["id"]), "99", "-1", str(2**63 - 1)):
        assert await tallybook.refused("token", "revoke", token_id) == [
            f"There is no token {token_id} in use; `tallybook token list` shows all tokens."
        ]


async def test_every_fault_of_a_token_is_listed_and_none_is_made(tallybook: Tallybook, slug: str) -> None:
    reason = await tallybook.refused("token", "create", " ", "--scope", "read", "--expires-in-days", "0")
    assert reason[1:] == ["  name: must not be empty", "  expires_in_days: must be from 1 to 36500"]
    await tallybook.refused("token", "create", "x", "--scope", "read", "--tournament", slug, "--tournament", "cap")
    assert await tallybook.json("token", "list") == []


@pytest.mark.parametrize("option", ["--empty-tournament", "--no-tournament"])
async def test_a_token_for_no_tournament_cannot_be_asked_for_and_become_one_for_all(
    tallybook: Tallybook, option: str
) -> None:
    assert (await tallybook("token", "create", "x", "--scope", "read", option)).code == 2
    assert await tallybook.json("token", "list") == []


# ── Usage and help ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "arguments",
    [
        "nonsense",
        "tournament nonsense",
        "tournament create",
        "tournament create a b",
        "tournament import",
        "tournament publish",
        "tournament unpublish",
        "tournament create a --colour red",
        "tournament list --database-url",
        "token create a",
        "token create a --scope owner",
        "token create a --scope read --expires-in-days soon",
        "unity add cup 1",
        "ranking create cup",
        "ranking rename cup 1",
        "participants add cup",
        "competition add cup --group one",
        "competition add cup --started-at yesterday",
        "competition result cup 1",
        "competition import cup 1",
        "points add cup",
        "unity add cup 1 fouls --sort asc",
        "standings cup",
        "standings cup 1 --at-sequence 0",
        "standings cup 1 --at-sequence 1 --at-time 2024-01-01",
        "standings cup 1 --at-time yesterday",
        "history cup 1 --format xml",
        "history cup 1 --from-sequence 0",
        "history cup 1 --to-time 2024-02-30",
        "history cup 1 --actor -1",
        "explain cup 1",
        "explain cup 1 1 --from -1",
        "serve --port http",
        "serve --port 65536",
        "serve --port -1",
        "serve --processes 0",
        "serve --processes 65",
        "demo --port 65536",
        "migrate now",
    ],
)
def test_wrong_usage_ends_with_2_and_says_why_on_standard_error(arguments: str) -> None:
    ended = said_here(arguments.split())
    assert (ended.code, ended.out) == (2, "")
    assert "Error" in ended.err


COMMANDS = sorted(commands(app))


@pytest.mark.one_in(4)
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_without_its_variables(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    shown = said_here([*command.split(), "--help"])
    assert (shown.code, shown.err) == (0, "")
    assert f"Usage: tallybook {command}" in shown.out
    assert "env var" not in shown.out
    options = re.findall(r"^│[ *]*--([a-z-]+)", shown.out, re.MULTILINE)
    if command not in ("check-proof", "completion"):
        assert {"database-url", "data-dir"} <= set(options)


def test_the_help_lists_every_command_in_a_group_and_each_description_ends() -> None:
    for name in app:
        if not name.startswith("-"):
            (group,) = app[name].group
            assert group.name in ("Compete", "Watch", "Audit", "Operate"), name
            first, _, _ = inspect.cleandoc(app[name].help).partition("\n\n")
            assert first.endswith("."), f"{name} ends in the middle of a sentence"


def test_what_a_command_is_for_stands_in_the_tree_and_its_docstring_has_its_parameters_alone() -> None:
    for command in commands(app).values():
        docstring = command.default_command.__doc__
        assert docstring is None or docstring.split()[0] == "Parameters", "the tree's help is shown in its place"
        assert command.help != docstring


OF_LISTS = (".overview", ".plain", ".tree")


def imported_by(*arguments: str) -> set[str]:
    """The modules that the command imports before it ends."""
    ended = subprocess.run(
        [sys.executable, "-X", "importtime", TALLYBOOK, *arguments],
        check=False,
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    return set(re.findall(r"^import time:.*\| +(\S+)$", ended.stderr, re.MULTILINE))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["tournament", "--help"]])
def test_what_runs_no_command_imports_none(arguments: list[str]) -> None:
    imported = imported_by(*arguments)
    assert {name for name in imported if name.startswith("api.")} == {f"api.cli{m}" for m in ("", *OF_LISTS)}
    assert not imported & {"cyclopts", "rich", "msgspec", "asyncio", "projections", "engine.domain"}
    assert len(imported) < (160 if arguments == ["--version"] else 70)


def test_a_command_imports_no_large_library_that_it_does_not_need() -> None:
    imported = imported_by("standings", "cup", "1", "--database-url", "")  # it ends for lack of an address
    assert {"asyncpg", "api.cli.standings_text"} <= imported
    assert not imported & {"aiohttp", "email", "http.server", "prometheus_client.exposition", "rich.progress", "uvloop"}
    assert not imported & {
        "api.service",
        "api.cli.explanation_text",
        "api.cli.history_text",
        "api.interface.handlers",
        "api.web.board",
        "api.web.pages",
        "importlib.resources",
        "rich.console",
        "segno",
        "structlog",
        "zipfile",
    }
    assert len(imported) < 505


@pytest.mark.parametrize("columns", [COLUMNS_MIN, 80, 97, 200])
def test_lists_of_commands_are_printed_as_cyclopts_prints_them(columns: int) -> None:
    for words in ([], ["--help"], *([part] for part in PARTS), ["import", "-h"]):
        out = io.StringIO()
        app(words, console=Console(file=out, width=columns))
        shown = overview_of(words, columns)
        assert shown is not None
        assert shown.splitlines() == [line.rstrip() for line in out.getvalue().splitlines()]
    for words in (["standings"], ["standings", "--help"], ["import", "list"], ["nonsense"], ["--help", "import"]):
        assert overview_of(words, columns) is None


def test_without_a_command_the_commands_are_shown() -> None:
    shown = said()
    assert (shown.code, shown.err) == (0, "")
    assert not [name for name in COMMANDS if name.split()[0] not in shown.out]
    assert said("--version") == Said(0, "0.1.0\n", "")


def test_options_come_from_the_environment(dsn: str) -> None:
    assert said("tournament", "create", "Cup", TALLYBOOK_DATABASE_URL=dsn, TALLYBOOK_JSON="true").json["slug"] == "cup"
    made = said("token", "create", "a", "--json", TALLYBOOK_DATABASE_URL=dsn, TALLYBOOK_SCOPE="admin")
    assert made.json["scope"] == "admin"
    assert said("tournament", "list", TALLYBOOK_DATABASE_URL="nonsense").code == 1
    assert said("serve", TALLYBOOK_DATABASE_URL=dsn, TALLYBOOK_PORT="http").code == 2
    given = said("tournament", "list", "--json", "--database-url", dsn, TALLYBOOK_DATABASE_URL="nonsense")
    assert [t["slug"] for t in given.json] == ["cup"], "the command line is stronger"


# ── Migrating, and databases that are not as they should be ─────────────────────────────────────────────


async def test_an_empty_database_is_migrated_once(unmigrated: str) -> None:
    migrations = [f"applied {migration.number:04} {migration.name}\n" for migration in shipped()]
    migrate = Tallybook(unmigrated)
    assert await migrate("migrate") == Said(0, "", "".join(migrations))
    assert await migrate("migrate") == Said(0, "", "nothing to do\n")
    assert await migrate.json("tournament", "list") == []


async def test_a_database_that_is_not_migrated_is_refused_in_a_sentence(unmigrated: str) -> None:
    missing = ", ".join(f"{migration.number:04} {migration.name}" for migration in shipped())
    sentence = f"The database lacks migrations ({missing}); run `tallybook migrate`."
    assert await Tallybook(unmigrated).refused("tournament", "list") == [sentence]
    assert said("serve", "--port", "0", TALLYBOOK_DATABASE_URL=unmigrated) == Said(1, "", f"{sentence}\n")
    assert said("worker", TALLYBOOK_DATABASE_URL=unmigrated) == Said(1, "", f"{sentence}\n")


async def test_a_database_in_the_midst_of_its_first_migration_is_refused_in_the_same_sentence(unmigrated: str) -> None:
    connection = await asyncpg.connect(unmigrated)
    await connection.execute(_CREATE_REGISTER)
    await connection.close()
    (sentence,) = await Tallybook(unmigrated).refused("tournament", "list")
    assert sentence.startswith("The database lacks migrations (0001 log")


@pytest.mark.parametrize("command", ["migrate", "tournament list", "serve --port 0"])
@pytest.mark.parametrize(
    "address",
    [
        "",
        "nonsense",
        "mysql://db/tallybook",
        "postgresql://127.0.0.1:1/x",
        "postgresql://127.0.0.1:99999/x",
        "postgresql://127.0.0.1:http/x",
        "postgresql:///x?host=/nowhere",
        "postgresql:///x?sslmode=perhaps",
        "postgresql://somebody:s3cret@nowhere.invalid/x",
    ],
)
def test_a_bad_address_of_the_database_is_refused_in_a_sentence(command: str, address: str) -> None:
    ended = said_here([*command.split(), "--database-url", address])
    assert (ended.code, ended.out) == (1, "")
    (sentence,) = ended.err.splitlines()
    assert "address" in sentence
    assert "s3cret" not in sentence


async def test_a_database_that_does_not_exist_is_refused(tallybook: Tallybook) -> None:
    for command in ("migrate", "tournament list"):
        (sentence,) = await Tallybook(tallybook.dsn.replace("/test_", "/no_")).refused(*command.split())
        assert "does not exist" in sentence


# ── Streams ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_reader_that_stops_is_not_an_error(dsn: str, form: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    ended = subprocess.run(
        [TALLYBOOK, "tournament", "list", *form, "--database-url", dsn],
        check=False,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (1, "")


@pytest.mark.parametrize("words", ["tournament list", "tournament list --json", "tournament export cup", "prove cup 1"])
def test_standard_output_that_cannot_be_written_is_a_refusal(dsn: str, words: str) -> None:
    said("tournament", "create", "Cup", "--database-url", dsn)
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(
            [TALLYBOOK, *words.split(), "--database-url", dsn],
            check=False,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert (ended.returncode, ended.stderr) == (1, "Standard output cannot be written: No space left on device.\n")


def test_on_a_terminal_a_table_is_as_wide_as_the_terminal_and_cuts_no_name(dsn: str) -> None:
    said("tournament", "create", "Cup", "--database-url", dsn)
    names = [f"The Long Name of a Club in the Capital, No. {number}" for number in (1, 2)]
    ids = [said("competitor", "add", "cup", name, "--database-url", dsn).out.strip() for name in names]
    shown, code = _said_on_a_terminal([TALLYBOOK, "competitor", "list", "cup", "--database-url", dsn], columns=60)
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in shown.splitlines()]
    assert (code, max(map(len, lines))) == (0, 60)
    assert "┃" in lines[1]
    cells = [[part.strip() for part in line.split("│")] for line in lines if "│" in line]
    assert [cell[1] for cell in cells if cell[1]] == ids
    assert " ".join(cell[2] for cell in cells) == " ".join(names)


def _said_on_a_terminal(command: list[str], *, columns: int) -> tuple[str, int]:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    variables = {name: value for name, value in environment().items() if name not in ("COLUMNS", "NO_COLOR")}
    with subprocess.Popen(command, env=variables | {"TERM": "xterm"}, stdin=theirs, stdout=theirs, stderr=theirs) as it:
        os.close(theirs)
        shown = b""
        while chunk := _read(ours):
            shown += chunk
    os.close(ours)
    return shown.decode(), it.returncode


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # what a terminal says when its last user has gone
        return b""


# ── The embedded database ───────────────────────────────────────────────────────────────────────────────


def test_without_an_address_the_database_is_in_the_data_directory(tmp_path: Path) -> None:
    created = said("tournament", "create", "Cup", cwd=tmp_path)
    assert created == Said(0, "cup\n", "")
    assert (tmp_path / "tallybook-data" / "postgres").is_dir()
    elsewhere = said("tournament", "list", "--json", TALLYBOOK_DATA_DIR=str(tmp_path / "tallybook-data"))
    assert [t["slug"] for t in elsewhere.json] == ["cup"]
    assert said("migrate", cwd=tmp_path) == Said(0, "", "nothing to do\n")


async def test_commands_at_once_in_a_new_data_directory_are_all_done(tmp_path: Path) -> None:
    create = ["tournament", "create", "Cup", "--data-dir", str(tmp_path / "data")]
    ended = await asyncio.gather(*(asyncio.to_thread(said, *create) for _ in range(4)))
    assert {(it.code, it.err) for it in ended} == {(0, "")}
    assert sorted(it.out for it in ended) == ["cup\n", "cup-2\n", "cup-3\n", "cup-4\n"]


@pytest.mark.parametrize("place", ["file", "file/below", "link"])
def test_a_data_directory_that_cannot_be_one_is_refused_in_a_sentence(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("/dev/null")
    ended = said("tournament", "create", "Cup", "--data-dir", str(tmp_path / place))
    assert (ended.code, ended.out) == (1, "")
    (sentence,) = ended.err.splitlines()
    assert "choose a data directory that this user can write to" in sentence


async def test_ctrl_c_ends_a_command_that_waits_for_the_data_directory(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    data_dir.mkdir()
    with (data_dir / "lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with started(tmp_path, "tournament", "list", "--data-dir", str(data_dir)) as waiting:
            await until(lambda: str(data_dir / "lock") in opened_by(waiting.pid))
            waiting.press_ctrl_c()
            assert await waiting.ended() == 130
            assert (waiting.out, waiting.err) == ("", "")


# ── A worker of its own ─────────────────────────────────────────────────────────────────────────────────


async def test_a_worker_keeps_the_tables_until_it_is_stopped(
    dsn: str, owner: asyncpg.Connection, tournament_id: TournamentId, tmp_path: Path
) -> None:
    with started(tmp_path, "worker", TALLYBOOK_DATABASE_URL=dsn) as worker:
        await until(lambda: owner.fetchval("SELECT count(*) FROM checkpoint WHERE sequence = 1"))
        assert await worker.stopped() == 0
        assert worker.out == ""
        assert "keeping_tables" in [line["event"] for line in worker.log]
