"""A terminal whose encoding lacks a character gets it escaped, in tables, JSON and sentences, and never a traceback."""

import csv
import json
import subprocess
from pathlib import Path

import pytest

from api.desk.desk import Desk
from tests.api.cli.commands import ranked
from tests.api.cli.conftest import Tallybook
from tests.running import TALLYBOOK, Said, environment, said

CUP = "Zoë's Cup 🏆"
NAMES = ("Zoë", "李四 🏆")
ESCAPED = (r"Zo\u00eb", r"\u674e\u56db \ud83c\udfc6")


class Spoken:
    """The command line for somebody whose terminal knows nothing but ASCII, with a ranking of two competitors."""

    def __init__(self, dsn: str, slug: str, ranking_id: str, first_id: int) -> None:
        self.slug = slug
        self.ranking_id = ranking_id
        self.first_id = str(first_id)
        self.dsn = dsn

    def __call__(self, *arguments: str) -> Said:
        ended = said(*arguments, TALLYBOOK_DATABASE_URL=self.dsn, PYTHONIOENCODING="ascii")
        assert "Traceback" not in ended.err
        return ended

    def done(self, *arguments: str) -> str:
        ended = self(*arguments)
        assert ended.code == 0, ended.err
        assert ended.out.isascii()
        return ended.out


@pytest.fixture
async def spoken(tallybook: Tallybook, desk: Desk, dsn: str) -> Spoken:
    slug = await tallybook.done("tournament", "create", CUP)
    ranking_id = await ranked(desk, slug, name="Säsong", competitors=NAMES)
    first, _ = await tallybook.json("competitor", "list", slug)
    return Spoken(dsn, slug, ranking_id, first["id"])


def test_tables_show_what_the_encoding_lacks_as_escapes(spoken: Spoken) -> None:
    assert r"Zo\u00eb's Cup \ud83c\udfc6" in spoken.done("tournament", "list")
    for command in (["competitor", "list", spoken.slug], ["standings", spoken.slug, spoken.ranking_id]):
        shown = spoken.done(*command)
        assert [name for name in ESCAPED if name not in shown] == []
    assert r"S\u00e4song: points" in shown


@pytest.mark.long
def test_the_columns_of_a_table_stay_columns(spoken: Spoken) -> None:
    lines = spoken.done("competitor", "list", spoken.slug).splitlines()
    assert len({len(line) for line in lines}) == 1


@pytest.mark.long
def test_json_stays_json_and_means_the_same(spoken: Spoken) -> None:
    (tournament,) = json.loads(spoken.done("tournament", "list", "--json"))
    assert tournament["name"] == CUP
    standings = json.loads(spoken.done("standings", spoken.slug, spoken.ranking_id, "--json"))
    assert [competitor["name"] for competitor in standings["competitors"]] == list(NAMES)
    explained = spoken.done("explain", spoken.slug, spoken.ranking_id, spoken.first_id, "--json")
    assert json.loads(explained)["steps"]


@pytest.mark.long
def test_history_is_printed_in_every_form(spoken: Spoken, tmp_path: Path) -> None:
    history = ["history", spoken.slug, spoken.ranking_id]
    assert ESCAPED[0] in spoken.done(*history)
    assert ESCAPED[1] in spoken.done(*history, "--format", "csv")
    assert [json.loads(line)["delta"] for line in spoken.done(*history, "--format", "ndjson").splitlines()] == [3, 2]


def test_a_file_is_in_utf_8_whatever_the_terminal_is(spoken: Spoken, tmp_path: Path) -> None:
    file = tmp_path / "history.csv"
    spoken.done("history", spoken.slug, spoken.ranking_id, "--format", "csv", "--output", str(file))
    with file.open(encoding="utf-8", newline="") as opened:
        assert [row["competitor"] for row in csv.DictReader(opened)] == list(NAMES)


def test_an_explanation_is_printed(spoken: Spoken) -> None:
    told = spoken.done("explain", spoken.slug, spoken.ranking_id, spoken.first_id)
    assert rf"{ESCAPED[0]} in S\u00e4song" in told


@pytest.mark.long
def test_refusals_and_reports_are_printed(spoken: Spoken, tmp_path: Path) -> None:
    refused = spoken("standings", "zoë", spoken.ranking_id)
    assert refused.code == 1
    assert refused.err == "There is no tournament 'zo\\u00eb'; `tallybook tournament list` shows them.\n"
    file = tmp_path / "some.csv"
    file.write_text("name,parent\nÅsa,Örjan\n", encoding="utf-8")
    assert (
        r"'\u00d6rjan': no competitor has this name or id" in spoken("competitor", "import", spoken.slug, str(file)).err
    )


@pytest.mark.one_in(3)
@pytest.mark.parametrize("command", ["", "tournament", "serve", "competitor import", "history", "verify"])
def test_help_is_shown(command: str) -> None:
    shown = said(*command.split(), "--help", PYTHONIOENCODING="ascii")
    assert (shown.code, shown.err) == (0, "")
    assert shown.out.isascii()
    assert "Usage: tallybook" in shown.out


def test_wrong_usage_is_reported() -> None:
    ended = said("standings", "zoë", "1", "--at-sequence", "första", PYTHONIOENCODING="ascii")
    assert (ended.code, ended.out) == (2, "")
    assert "Traceback" not in ended.err
    assert r"f\u00f6rsta" in ended.err


def test_only_what_an_encoding_lacks_is_escaped(spoken: Spoken) -> None:
    ended = subprocess.run(
        [TALLYBOOK, "competitor", "list", spoken.slug],
        check=True,
        env=environment(TALLYBOOK_DATABASE_URL=spoken.dsn, PYTHONIOENCODING="gb2312"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
    )
    assert r"李四 \ud83c\udfc6" in ended.stdout.decode("gb2312")
