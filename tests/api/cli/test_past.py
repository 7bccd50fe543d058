"""Commands about the past say the same as HTTP does, in forms for people, spreadsheets and programs."""

import csv
import io
import json
import os
import re
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from rich.cells import cell_len

from api.cli.explanation_text import ordinal
from api.cli.history_text import CSV_COLUMNS, harmless
from tests.api.cli.conftest import Tallybook
from tests.api.service import Client, Season, create_ranking, deltas, listed, register
from tests.api.test_past import history


@pytest.fixture
async def played(season: Season) -> Season:
    """A season in which points were given."""
    ada, ben, pair = season.ids
    for lines, cause, reason in (
        (((ada, 3), (ben, 3)), "", "fair play"),
        (((pair, 5),), season.competition_id, ""),
        (((ben, 1),), "", ""),
        (((ada, -1),), season.competition_id, "late at the start"),
    ):
        form = {
            "participants_delta": deltas(*((who, season.unity_id, n) for who, n in lines)),
            "competition_id": cause,
            "reason": reason,
        }
        assert (await season.client.put(f"{season.path}/add.json", form)).status == 200
    return season


def of(season: Season) -> tuple[str, str]:
    return season.client.tournament, str(season.ranking_id)


# ── Standings ───────────────────────────────────────────────────────────────────────────────────────────


async def test_standings_at_a_moment_are_those_over_http(tallybook: Tallybook, played: Season) -> None:
    async def over_http(query: str) -> Any:
        return (await played.client.get(f"{played.path}/standings.json?{query}")).json["ranking"]

    head = (await over_http(""))["sequence"]
    for sequence in range(head - 4, head + 1):
        said = await tallybook.json("standings", *of(played), "--at-sequence", str(sequence))
        assert said == await over_http(f"at_sequence={sequence}")
    now = await tallybook.json("standings", *of(played), "--at-time", said["recorded_at"])
    assert now == await tallybook.json("standings", *of(played)) == said
    table = await tallybook("standings", *of(played), "--at-sequence", str(head))
    assert table.out == (await tallybook("standings", *of(played))).out
    assert table.err == f"After event {head}, recorded at {said['recorded_at']} UTC:\n"


async def test_a_moment_that_is_not_there_is_refused(tallybook: Tallybook, played: Season) -> None:
    (reason,) = await tallybook.refused("standings", *of(played), "--at-sequence", "9999")
    assert re.fullmatch(r"The log of this tournament ends at sequence \d+; ask for one up to that\.", reason)
    (reason,) = await tallybook.refused("standings", *of(played), "--at-sequence", "1")
    assert "had no ranking" in reason
    (reason,) = await tallybook.refused("standings", *of(played), "--at-time", "1999-12-31")
    assert "not been opened yet" in reason
    (reason,) = await tallybook.refused("standings", *of(played), "--unity", "cards", "--at-time", "2999-01-01")
    assert reason == f"Ranking {played.ranking_id} has no unity 'cards'."


# ── History ─────────────────────────────────────────────────────────────────────────────────────────────


async def test_ndjson_has_the_lines_of_http(tallybook: Tallybook, played: Season, tmp_path: Path) -> None:
    lines = await history(played.client, played.path)
    said = await tallybook.done("history", *of(played), "--format", "ndjson")
    assert [json.loads(line) for line in said.splitlines()] == lines
    file = tmp_path / "lines.ndjson"
    assert await tallybook.done("history", *of(played), "--format", "ndjson", "--output", str(file)) == ""
    assert file.read_text() == said + "\n"
    assert os.listdir(tmp_path) == [file.name]
    some = await tallybook.done("history", *of(played), "--format", "ndjson", "--competitor", str(played.ids[1]))
    assert [json.loads(line) for line in some.splitlines()] == [
        line for line in lines if line["competitor_id"] == played.ids[1]
    ]
    assert await tallybook.done("history", *of(played), "--format", "ndjson", "--unity", "fouls") == ""


async def test_all_filters_are_those_of_http(tallybook: Tallybook, played: Season) -> None:
    first = (await history(played.client, played.path))[0]["sequence"]
    for query in (
        {"competition": played.competition_id},
        {"actor": 0},
        {"from_sequence": first + 1, "to_sequence": first + 2},
        {"from_time": "2000-01-01", "to_time": "2999-01-01"},
        {"from_time": "2999-01-01"},
        {"to_time": "2000-01-01"},
    ):
        options = [part for name, value in query.items() for part in (f"--{name.replace('_', '-')}", str(value))]
        said = await tallybook.done("history", *of(played), "--format", "ndjson", *options)
        assert [json.loads(line) for line in said.splitlines()] == await history(played.client, played.path, **query)


EVIL = ["=1+1", "+49 123", "-20 Cup", "@SUM(A1)", " =1", "＝1", '=HYPERLINK("http://x","y")', "a,b;\"c'", "Zoë"]  # noqa: RUF001 - full width


async def test_csv_is_what_a_spreadsheet_may_open(tallybook: Tallybook, client: Client) -> None:
    ids = await register(client, *EVIL)
    ranking = await create_ranking(client, ids, main_unity_name="=points")
    unity = ranking["unities"][0]["id"]
    for who, name in zip(ids, EVIL, strict=True):
        form = {"participants_delta": deltas((who, unity, -5)), "reason": name}
        await client.put(f"rankings/{ranking['id']}/add.json", form)
    said = await tallybook.done("history", client.tournament, str(ranking["id"]), "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(said)))
    assert tuple(rows[0]) == CSV_COLUMNS
    assert [row["competitor"].removeprefix("'") for row in rows] == [name.strip() for name in EVIL]
    assert [row["reason"] for row in rows] == [row["competitor"] for row in rows]
    for row in rows:
        for name in ("competitor", "unity", "reason"):
            assert row[name][0] not in "=+-@＝＋－＠\t\r"  # noqa: RUF001 - full width
        assert (int(row["delta"]), int(row["total"]), row["competition_id"]) == (-5, -5, "")
    assert [row["position_before"] for row in rows] == ["1"] * len(EVIL)
    assert [row["position_after"] for row in rows] == [str(n) for n in range(len(EVIL), 0, -1)]


@pytest.mark.parametrize("text", ["=1", "+1", "-1", "@a", "\t=1", "\r=1", "\n1", " =1", "\u00a0=1", "＋1"])  # noqa: RUF001
def test_what_begins_like_a_formula_is_made_harmless(text: str) -> None:
    assert harmless(text) == f"'{text}"


@pytest.mark.parametrize("text", ["", "a", "a=1", "1-0", "'=1", "Zoë"])
def test_what_does_not_is_left_as_it_is(text: str) -> None:
    assert harmless(text) == text


async def test_a_table_has_names_and_keeps_its_columns(tallybook: Tallybook, client: Client) -> None:
    names = ["Zoë", "點點", "x" * 200]
    ids = await register(client, *names)
    ranking = await create_ranking(client, ids)
    for who, reason in zip(ids, ("", "延長", "no show"), strict=True):
        form = {"participants_delta": deltas((who, ranking["unities"][0]["id"], 5)), "reason": reason}
        await client.put(f"rankings/{ranking['id']}/add.json", form)
    head, *rows = (await tallybook.done("history", client.tournament, str(ranking["id"]))).splitlines()
    assert head.split() == ["sequence", "recorded_at", "competitor", "unity", "delta", "total", "position", "why"]
    assert [row.split()[3] for row in rows] == ["Zoë", "點點", "x" * 31 + "…"]
    assert len({cell_len(row[: row.index("points")]) for row in rows}) == 1
    why = ["free modification", "free modification: 延長", "free modification: no show"]
    assert [row[row.index("free") :] for row in rows] == why
    assert [re.findall(r"\d → \d", row)[0] for row in rows] == ["1 → 1", "2 → 1", "3 → 1"]


async def test_a_file_that_cannot_be_written_is_refused_and_an_old_one_stays(
    tallybook: Tallybook, played: Season, tmp_path: Path
) -> None:
    (reason,) = await tallybook.refused("history", *of(played), "--output", str(tmp_path / "no" / "such"))
    assert reason.endswith("cannot be written: No such file or directory.")
    (reason,) = await tallybook.refused("history", *of(played), "--output", "/dev/full")
    assert reason == "/dev/full cannot be written: No space left on device."
    old = tmp_path / "old.csv"
    old.write_text("what was there")
    await tallybook.refused("history", *of(played), "--competitor", "999999", "--output", str(old))
    assert old.read_text() == "what was there"
    assert await tallybook.done("history", *of(played), "--output", "/dev/null") == ""


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--unity", "cards"), "Ranking {ranking_id} has no unity 'cards'."),
        (("--competitor", "999999"), "This tournament has no competitor 999999."),
        (("--competition", "999999"), "This tournament has no competition 999999."),
    ],
)
async def test_what_is_not_there_is_refused(
    tallybook: Tallybook, season: Season, arguments: tuple[str, ...], reason: str
) -> None:
    expected = [reason.format(ranking_id=season.ranking_id)]
    assert await tallybook.refused("history", *of(season), *arguments) == expected
    for command in (["history"], ["explain"], ["chart", "--output", "x.svg"]):
        more = ["1"] if command == ["explain"] else []
        (said,) = await tallybook.refused(command[0], of(season)[0], "999999", *more, *command[1:])
        assert said == "This tournament has no ranking 999999."


# ── Explain ─────────────────────────────────────────────────────────────────────────────────────────────


async def test_an_explanation_reads_like_a_letter(tallybook: Tallybook, played: Season) -> None:
    said = await tallybook.done("explain", *of(played), str(played.ids[0]))
    said = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "<time>", said)
    first, *_, last = [line["sequence"] for line in await history(played.client, played.path)]
    created = int(re.findall(r"event (\d+)\n    Ada came", said)[0])
    assert said == (
        "Ada in Season: points\n"
        "\n"
        "Before the first event, Ada was not in the list, with 0.\n"
        f"After event {last}, recorded at <time> UTC, Ada stood 3rd with 2.\n"
        "\n"
        "In between: 2 changes of the total (3 gained, 1 lost, +2 in all); passed somebody 1 time, "
        "was passed 2 times.\n"
        "\n"
        f"<time>  event {created}\n"
        "    Ada came into the list: 1st with 0.\n"
        f"<time>  event {first}\n"
        "    +3 by a free modification (fair play). Total 0 → 3, still 1st.\n"
        "    Ada passed Pair, 3 to 0.\n"
        f"<time>  event {first + 1}\n"
        f"    Others moved by competition {played.competition_id}: 1st → 2nd.\n"
        "    Pair passed Ada, 5 to 3.\n"
        f"<time>  event {first + 2}\n"
        "    Others moved by a free modification: 2nd → 3rd.\n"
        "    Ben passed Ada, 4 to 3.\n"
        f"<time>  event {last}\n"
        f"    -1 by competition {played.competition_id} (late at the start). Total 3 → 2, still 3rd."
    )


async def test_an_explanation_in_json_is_that_of_http(tallybook: Tallybook, played: Season) -> None:
    path = f"{played.path}/explain.json?competitor={played.ids[1]}"
    told = (await played.client.get(path)).json["explanation"]
    assert await tallybook.json("explain", *of(played), str(played.ids[1])) == told
    start, end = told["steps"][1]["sequence"], told["steps"][2]["sequence"]
    said = await tallybook.json("explain", *of(played), str(played.ids[1]), "--from", str(start), "--to", str(end))
    assert said == (await played.client.get(f"{path}&from={start}&to={end}")).json["explanation"]


async def test_voided_points_and_lists_are_explained_too(tallybook: Tallybook, played: Season) -> None:
    form = {"main_unity_name": "points", "participants": listed(played.ids[:1])}
    await played.client.put(f"{played.path}.json", form)
    await played.client.put(f"competitions/{played.competition_id}/void.json")
    await played.client.put(f"{played.path}.json", form | {"participants": listed(played.ids)})
    pair = await tallybook.done("explain", *of(played), str(played.ids[2]))
    assert "Pair left the list." in pair
    assert re.search(r"-5 because event \d+, by competition \d+ \(voided by now\), was reversed\.", pair)
    assert "Total 5 → 0, not in the list." in pair
    assert "Pair came into the list: 3rd with 0." in pair
    ada = await tallybook.done("explain", *of(played), str(played.ids[0]))
    assert "The list of competitors changed: 3rd → 1st." in ada
    nothing = await tallybook.done("explain", *of(played), str(played.ids[0]), "--unity", "fouls", "--from", "12")
    assert nothing.endswith("Nothing in between changed that position or total.")


async def test_another_sort_is_explained_and_history_goes_on_by_it(tallybook: Tallybook, played: Season) -> None:
    ada, _, _ = played.ids
    await played.client.put(f"{played.path}/unities/{played.unity_id}.json", {"sort": "ASC"})
    form = {"participants_delta": deltas((ada, played.unity_id, 7))}
    await played.client.put(f"{played.path}/add.json", form)
    said = await tallybook.done("explain", *of(played), str(ada))
    assert "Which totals are better changed: 3rd → 1st." in said
    told = (await played.client.get(f"{played.path}/explain.json?competitor={ada}")).json["explanation"]
    assert [step["cause"] for step in told["steps"]][-2:] == ["sort", "points"]
    *_, last = await history(played.client, played.path)
    assert (last["delta"], last["position_before"], last["position_after"]) == (7, 1, 3)


async def test_from_and_to_must_be_in_order_and_there(tallybook: Tallybook, played: Season) -> None:
    (reason,) = await tallybook.refused("explain", *of(played), str(played.ids[0]), "--from", "9", "--to", "8")
    assert reason == "There is nothing to explain from event 9 to event 8; --from must not be greater than --to."
    (reason,) = await tallybook.refused("explain", *of(played), str(played.ids[0]), "--to", "9999")
    assert "ends at sequence" in reason
    (reason,) = await tallybook.refused("explain", *of(played), "999999")
    assert reason == "This tournament has no competitor 999999."


@pytest.mark.parametrize(
    ("number", "text"),
    [(1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"), (12, "12th"), (13, "13th"), (21, "21st"),
     (111, "111th"), (112, "112th"), (122, "122nd"), (1003, "1003rd")],
)  # fmt: skip
def test_ordinals(number: int, text: str) -> None:
    assert ordinal(number) == text


# ── Chart ───────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_chart_names_everybody_at_the_end_of_a_line(
    tallybook: Tallybook, played: Season, tmp_path: Path
) -> None:
    file = tmp_path / "season.svg"
    said = await tallybook("chart", *of(played), "--output", str(file))
    assert (said.code, said.out, said.err.replace("\n", "")) == (0, "", f"{file}: 3 competitors")
    texts = [text.strip() for text in ElementTree.parse(file).getroot().itertext() if text.strip()]
    assert {"Season: points", "1  Pair", "2  Ben", "3  Ada", "5  Pair", "4  Ben", "2  Ada"} <= set(texts)
    again = tmp_path / "again.svg"
    await tallybook.done("chart", *of(played), "--output", str(again))
    assert again.read_bytes() == file.read_bytes()


async def test_charts_are_svg_of_something(tallybook: Tallybook, season: Season, tmp_path: Path) -> None:
    (reason,) = await tallybook.refused("chart", *of(season), "--output", "season.png")
    assert reason == "Charts are written as SVG; name a file that ends in .svg, not 'season.png'."
    (reason,) = await tallybook.refused("chart", *of(season), "--output", str(tmp_path / "a.svg"))
    assert reason == "No points have been given in Season: points yet; there is nothing to draw."
    assert os.listdir(tmp_path) == []


async def test_without_matplotlib_it_says_what_is_missing(
    tallybook: Tallybook, played: Season, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "api.cli.charts", raising=False)
    assert await tallybook.refused("chart", *of(played), "--output", "a.svg") == [
        "Charts need matplotlib: pip install 'tallybook[chart]'."
    ]
