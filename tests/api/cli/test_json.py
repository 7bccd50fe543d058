"""JSON for programs: every command takes --json, and prints nothing else then."""

import json
import re
from collections.abc import Iterator
from inspect import signature
from pathlib import Path
from typing import Any, Final

from api.cli.main import app
from tests.api.cli.conftest import Tallybook, commands
from tests.conftest import Administrator, DistributedAdministrator
from tests.running import said
from tests.service import Season

WITHOUT: Final = {
    **dict.fromkeys(("serve", "worker", "demo"), "it goes on"),
    **dict.fromkeys(("prove", "check-proof", "competitor export"), "it prints JSON in any case"),
    "tournament export": "an archive has a form of its own",
    "ranking export": "so have files of other programs",
    "completion": "it prints a program of a shell",
}
"""The commands that take no --json, and why."""
GIVEN: Final = {
    "migrate": "",
    "tournament create": "Cup",
    "tournament rename": "{slug} Summer",
    "tournament archive": "{slug}",
    "tournament restore": "{slug}",
    "tournament present": "{slug} --zone Europe/Berlin",
    "tournament list": "",
    "competitor add": "{slug} Cid",
    "competitor import": "{slug} {competitors}",
    "competitor change": "{slug} Cid --color 00ff00",
    "competitor list": "{slug}",
    "ranking create": "{slug} Ladder",
    "ranking rename": "{slug} Ladder Pyramid",
    "ranking describe": "{slug} Pyramid Everybody",
    "ranking zones": "{slug} Pyramid 1~promotion:~Up",
    "ranking list": "{slug}",
    "participants remove": "{slug} Pyramid Cid",
    "participants add": "{slug} Pyramid Cid",
    "unity add": "{slug} Pyramid wins --lasts P52W --expires-on week",
    "unity change": "{slug} Pyramid wins --sort ASC",
    "competition add": "{slug} Ben Cid",
    "competition result": "{slug} Ben~-~Cid 2:1",
    "competition record": "{slug} Ada Ben --group 1 --key M1 --result 1:1",
    "competition history": "{slug} Ben~-~Cid",
    "competition change": "{slug} Ben~-~Cid --location Hall~2",
    "competition import": "{slug} Pyramid {competitions}",
    "fixtures": "{slug} Pyramid 2026-09-05 --dry-run",
    "import list": "{slug}",
    "import undo": "{slug} {import}",
    "bring": "{brought} --yes",
    "competition list": "{slug}",
    "points add": "{slug} Pyramid Ben=3 --competition Ben~-~Cid",
    "points undo": "{slug} Pyramid {added}",
    "classification declare": "{slug} Pyramid wins points",
    "scoring declare": "{slug} Pyramid football",
    "scoring show": "{slug} Pyramid",
    "classification show": "{slug} Pyramid",
    "standings": "{slug} Pyramid",
    "form": "{slug} Pyramid",
    "leaders": "{slug} Pyramid",
    "expiring": "{slug} Pyramid --unity wins --until 2999-01-01",
    "history": "{slug} Pyramid",
    "follow": "{slug} --until 3",
    "explain": "{slug} Pyramid Ada",
    "what-if": "{slug} Pyramid --without-competitor Ada",
    "strike": "{slug} Ben~-~Cid Ben",
    "unstrike": "{slug} Ben~-~Cid Ben",
    "void": "{slug} Ben~-~Cid",
    "unvoid": "{slug} Ben~-~Cid",
    "ranking close": "{slug} Pyramid",
    "ranking reopen": "{slug} Pyramid",
    "ranking order": "{slug} Pyramid",
    "ranking hide": "{slug} Pyramid",
    "ranking show": "{slug} Pyramid",
    "tournament publish": "{slug}",
    "tournament quota": "{slug} --events 1000",
    "freeze": "{slug}",
    "reveal": "{slug} --all",
    "tournament unpublish": "{slug}",
    "token link": "{slug} Ann --group 2 --until 2100-01-01 --at https://scores.example",
    "token create": "someone --scope read",
    "token list": "",
    "token revoke": "{token}",
    "webhook add": "{slug} https://example.org/",
    "webhook list": "",
    "webhook rotate": "{slug} {webhook}",
    "webhook resume": "{slug} {webhook} --after 1",
    "webhook remove": "{slug} {webhook}",
    "digests": "--output {digests}",
    "verify": "--digests {digests}",
    "rebuild": "",
    "competitor withdraw": "{slug} Cid --dry-run",
    "competitor replace": "{slug} Dan Eve",
    "competitor erase": "{slug} Cid",
    "erasures keep": "{erasures}",
    "erasures apply": "{erasures}",
    "tournament delete": "{slug} --without-archive",
}
"""Arguments for each command, in an order in which one may follow the other; ~ is a blank."""
PRINTED: Final = Path(__file__).with_name("printed.txt")
"""The fields that each of them prints."""
REFUSED: Final = {
    "tournament import": "{archive}",
    "set-aside": "{slug} 1",
    "webhook test": "{slug} {webhook}",
}
"""Those that are refused here: the archive is of a tournament that is there, all events can be folded, and nobody
receives the webhook. Their own tests read their JSON."""
_IN_A_PROCESS: Final = {"competitor import", "competition import", "import undo", "bring"}  # they listen to signals
_TIME: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T].*")
_INSTANT: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?Z")
_OF_HTTP: Final = {"created_at", "updated_at", "closed_at"}  # in standings, whose shape is documented without a zone


def test_every_command_takes_json() -> None:
    assert {words for words, command in commands(app).items() if "json" not in _parameters(command)} == set(WITHOUT)
    assert {*GIVEN, *REFUSED, *WITHOUT} == set(commands(app)), "name arguments for it, and its output is looked at too"


def _parameters(command: Any) -> set[str]:
    return set(signature(command.default_command).parameters)


async def test_with_json_a_command_prints_json_and_nothing_else(
    tallybook: Tallybook, season: Season, tmp_path: Path
) -> None:
    files = [tmp_path / name for name in ("competitors.csv", "competitions.csv", "digests", "erasures", "brought.json")]
    files[0].write_text("name\nDan\nEve\n")
    files[1].write_text("date,participants,score\n2026-05-01,Ada|Cid,1:0\n")
    files[4].write_text('{"name": "Cup", "matches": [{"team1": "Ada", "team2": "Cid"}]}')
    given = {file.stem: str(file) for file in files} | {"slug": season.client.tournament}
    fields: set[str] = set()
    for words, arguments in GIVEN.items():
        split = [part.format(**given).replace("~", " ") for part in arguments.split()]
        command = [*words.split(), *split, "--json"]
        in_a_process = words in _IN_A_PROCESS
        ended = said(*command, "--database-url", tallybook.dsn) if in_a_process else await tallybook(*command)
        assert ended.code == 0, (words, ended.err)
        printed = [json.loads(line) for line in ended.out.splitlines()]
        assert len(printed) == 1 or (words in ("history", "follow") and len(printed) > 1), words
        fields |= {f"{words}: {field}" for value in printed for field in _fields(value)}
        times = [(key, text) for value in printed for key, text in _texts(value) if _TIME.fullmatch(text)]
        assert not [(words, key) for key, text in times if not _INSTANT.fullmatch(text) and key not in _OF_HTTP]
        if words in ("token create", "webhook add"):
            given |= {words.split()[0]: str(printed[0]["id"])}
        if words == "import list":
            given |= {"import": printed[0][0]["name"]}
        if words == "points add":
            given |= {"added": str(printed[0]["sequence"])}
    stable = PRINTED.read_text(encoding="utf-8").splitlines()
    assert set(stable) - fields == set(), "what a released version prints never goes away"
    assert {line.partition(":")[0] for line in fields} == {line.partition(":")[0] for line in stable}


def _fields(value: Any, key: str = "") -> Iterator[str]:
    match value:
        case dict():
            for name, item in value.items():
                yield from _fields(item, f"{key}.{name}" if key else name)
        case list():
            for item in value:
                yield from _fields(item, f"{key}[]")
        case _:
            yield key


def _texts(value: Any, key: str = "") -> list[tuple[str, str]]:
    """The texts in it, each with the key that it stands under."""
    match value:
        case str():
            return [(key, value)]
        case list():
            return [found for item in value for found in _texts(item, key)]
        case dict():
            return [found for name, item in value.items() for found in _texts(item, name)]
    return []


async def test_what_was_done_is_printed_as_json(tallybook: Tallybook, season: Season) -> None:
    slug, ranking = season.client.tournament, str(season.ranking_id)
    head = (await tallybook.json("tournament", "list"))[0]["events"]
    assert await tallybook.json("ranking", "rename", slug, ranking, "Ladder") == {"sequence": head + 1}
    assert await tallybook.json("ranking", "close", slug, "Ladder") == {"sequence": head + 2}
    assert await tallybook.json("ranking", "reopen", slug, "Ladder") == {"sequence": head + 3}
    assert await tallybook.json("classification", "declare", slug, "Ladder", "points") == {"sequence": head + 4}
    token = await tallybook.json("token", "create", "someone", "--scope", "read")
    assert await tallybook.json("token", "revoke", str(token["id"])) == {"id": token["id"]}
    webhook = await tallybook.json("webhook", "add", slug, "https://example.org/")
    number = str(webhook["id"])
    assert await tallybook.json("webhook", "resume", slug, number, "--after", "2") == {
        "id": webhook["id"],
        "sequence": 2,
    }
    rotated = await tallybook.json("webhook", "rotate", slug, number)
    assert rotated["secret"].startswith("whsec_")
    assert rotated["secret"] != webhook["secret"]
    assert await tallybook.json("webhook", "remove", slug, number) == {"id": webhook["id"]}
    assert await tallybook.json("webhook", "list", slug) == []


async def test_migrations_and_digests_are_printed_as_json(
    tallybook: Tallybook, season: Season, administrator: Administrator, tmp_path: Path
) -> None:
    topology = "distributed" if isinstance(administrator, DistributedAdministrator) else "plain"
    assert await tallybook.json("migrate") == {"applied": [], "distributed": [], "repaired": []}
    assert await tallybook.json("migrate", "--status") == {"missing": [], "topology": topology}
    file = tmp_path / "digests"
    noted = await tallybook.json("digests", "--output", str(file))
    assert [json.loads(line) for line in file.read_text().splitlines()] == noted


async def test_history_in_json_is_a_line_for_each_delta(tallybook: Tallybook, season: Season) -> None:
    slug = season.client.tournament
    await tallybook.done("points", "add", slug, str(season.ranking_id), "Ada=3", "Ben=1")
    said_so = await tallybook.done("history", slug, str(season.ranking_id), "--json")
    assert said_so == await tallybook.done("history", slug, str(season.ranking_id), "--format", "ndjson")
    assert [json.loads(line)["delta"] for line in said_so.splitlines()] == [3, 1]
    assert (await tallybook("history", slug, str(season.ranking_id), "--json", "--format", "csv")).code == 2
