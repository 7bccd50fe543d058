"""Commands about the past say the same as HTTP does, in forms for people, spreadsheets and programs."""

import csv
import io
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from api.cli.explanation_text import ordinal
from api.cli.history_text import CSV_COLUMNS
from api.cli.times import plain
from api.interface.cells import harmless
from projections.answers.form import LAST_MAX
from projections.answers.windows import WINDOW_LINES_MAX
from tests.api.cli.conftest import Tallybook
from tests.api.crowds import append, crowd
from tests.api.leagues import history
from tests.bounds import Bounds
from tests.service import Client, Season, create_ranking, deltas, listed, register


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
    day = "2024-03-10"
    said = await tallybook.json("classification", "show", *of(played), "--on", day, "--since-on", "2024-03-09")
    assert (
        said
        == (await played.client.get(f"{played.path}/classification.json?on={day}&since_on=2024-03-09")).json[
            "classification"
        ]
    )
    said = await tallybook.json("standings", *of(played), "--on", day, "--at-sequence", str(head))
    assert said == await over_http(f"on={day}&at_sequence={head}")
    assert [line["total"] for line in said["unities"][0]["competitors_ranking"]] == [0, 0, 0]
    table = await tallybook("standings", *of(played), "--on", day)
    told = f"event {head}, recorded at {plain(said['recorded_at'])} UTC:\n"
    assert table.err == f"What had taken place by {day} 23:59:59 UTC, as known after {told}"
    assert (await tallybook("standings", *of(played), "--on", "412")).code == 2
    led = (await played.client.get(f"{played.path}/leaders.json?clock=world&limit=1000")).json["leaders"]
    assert await tallybook.json("leaders", *of(played), "--clock", "world") == led
    assert "time at the top" in (await tallybook("leaders", *of(played))).out
    path = f"{played.path}/explain.json?competitor={played.ids[0]}&on=2999-01-01&limit=200"
    explained = await tallybook.json("explain", *of(played), str(played.ids[0]), "--on", "2999-01-01")
    assert explained == (await played.client.get(path)).json["explanation"]
    text = await tallybook.done("explain", *of(played), str(played.ids[0]), "--on", "2999-01-01")
    assert "By what had taken place at 2999-01-01 23:59:59 UTC, as known after event " in text
    table = await tallybook("standings", *of(played), "--at-sequence", str(head))
    assert table.out == (await tallybook("standings", *of(played))).out
    assert table.err == f"After event {head}, recorded at {plain(said['recorded_at'])} UTC:\n"


async def explained_results(tallybook: Tallybook, season: Season, counts: str, *given: tuple[str, int]) -> str:
    """The explanation of Ada's place after these results, each with its day."""
    client, (ada, *_) = season.client, season.ids
    made = {"name": "Jumps", "main_unity_name": "height", "participants": listed(season.ids)}
    ranking = (await client.post("rankings.json", made | {"main_unity_counts": counts})).json["ranking"]
    for day, result in given:
        held = {"group_id": 1, "started_at": f"{day} 15:00:00", "participants": ada}
        competition = (await client.post("competitions.json", held)).json["competition"]["id"]
        line = deltas((ada, ranking["unities"][0]["id"], result))
        form = {"participants_delta": line, "competition_id": competition}
        assert (await client.put(f"rankings/{ranking['id']}/add.json", form)).status == 200
    return await tallybook.done("explain", client.tournament, "Jumps", str(ada))


async def test_an_explanation_says_on_which_result_a_total_stands(tallybook: Tallybook, season: Season) -> None:
    told = await explained_results(tallybook, season, "best", ("2024-03-03", 1_240), ("2024-03-09", 1_180))
    assert "The total is the result 1240 of 2024-03-03 15:00:00." in told
    assert "It did not improve 1240 of 2024-03-03 15:00:00, still 1st." in told
    assert "2 results, 1 of which did not improve the total" in told


async def test_the_last_result_counts_whether_it_is_better_or_not(tallybook: Tallybook, season: Season) -> None:
    given = ("2024-03-03", 50), ("2024-03-09", 40), ("2024-03-16", 40)
    told = await explained_results(tallybook, season, "last", *given)
    assert "The total is the result 40 of 2024-03-16 15:00:00." in told
    assert "In between: 3 results;" in told
    assert "Total 40 \N{RIGHTWARDS ARROW} 40, still 1st." in told
    assert "improve" not in told


async def test_a_moment_that_is_not_there_is_refused(tallybook: Tallybook, played: Season) -> None:
    (reason,) = await tallybook.refused("standings", *of(played), "--at-sequence", "9999")
    assert re.fullmatch(r"The log of this tournament ends at sequence (\d+); ask for one up to \1\.", reason)
    (reason,) = await tallybook.refused("standings", *of(played), "--at-sequence", "1")
    assert "had no ranking" in reason
    (reason,) = await tallybook.refused("standings", *of(played), "--at-time", "1999-12-31")
    assert "did not exist yet" in reason
    (reason,) = await tallybook.refused("standings", *of(played), "--unity", "cards", "--at-time", "2999-01-01")
    assert reason == f"Ranking {played.ranking_id} has no unity 'cards'."


@pytest.fixture
async def tagged(played: Season) -> Season:
    """Ada and Ben are juniors. Then Dora comes, who has nothing."""
    for who in played.ids[:2]:
        await played.client.put(f"competitors/{who}.json", {"tags": "junior"})
    (dora,) = await register(played.client, "Dora")
    await played.client.put(f"{played.path}/participants.json", {"add": dora})
    return played


async def first_points(season: Season) -> int:
    """The event that gave Ada and Ben 3 points each."""
    return int((await history(season.client, season.path))[0]["sequence"])


async def test_lines_and_movement_are_those_over_http(tallybook: Tallybook, tagged: Season) -> None:
    ben, first = tagged.ids[1], await first_points(tagged)
    fouls = (await tagged.client.get(f"{tagged.path}.json")).json["ranking"]["unities"][1]["id"]
    for options, query in (
        ("--top 2", "top=2"),
        ("--around Ben", f"around={ben}&span=5"),
        ("--unity fouls", f"unity={fouls}"),
        ("--tag junior", "tag=junior"),
        ("--tag junior --unity fouls --top 1", f"tag=junior&unity={fouls}&top=1"),
        (f"--since {first}", f"since={first}"),
        (f"--tag junior --since {first}", f"tag=junior&since={first}"),
        (f"--top 1 --since-time 2999-01-01 --at-sequence {first}", f"top=1&since_time=2999-01-01&at_sequence={first}"),
    ):
        over_http = (await tagged.client.get(f"{tagged.path}/standings.json?{query}")).json["ranking"]
        assert await tallybook.json("standings", *of(tagged), *options.split()) == over_http


async def test_movement_is_a_sign_and_a_word(tallybook: Tallybook, tagged: Season) -> None:
    first = await first_points(tagged)

    async def rows(*options: str) -> list[str]:
        table = await tallybook.done("standings", *of(tagged), "--unity", "points", *options)
        return [" ".join(line.replace("│", " ").split()) for line in table.splitlines() if "│" in line]

    assert await rows("--since", str(first)) == [
        "1 ▲ 2 up Pair 5",
        "2 ▼ 1 down Ben 4",
        "3 ▼ 2 down Ada 2",
        "4 new Dora 0",
    ]
    assert await rows("--since", str(first + 1), "--top", "2") == ["1 = same Pair 5", "2 = same Ben 4"]
    assert await rows("--tag", "junior") == ["1 2 Ben 4", "2 3 Ada 2"]
    assert await rows("--around", "Dora") == ["1 Pair 5", "2 Ben 4", "3 Ada 2", "4 Dora 0"]


async def test_lines_that_cannot_be_shown_are_refused(tallybook: Tallybook, tagged: Season) -> None:
    for wrong in ("--top 1 --around Ben", "--since 1 --since-time 2999-01-01", "--top 0", "--since 0"):
        assert (await tallybook("standings", *of(tagged), *wrong.split())).code == 2
    (reason,) = await tallybook.refused("standings", *of(tagged), "--since", "1")
    assert "had no ranking" in reason
    *_, fault = await tallybook.refused("standings", *of(tagged), "--tag", "junior", "--around", "Pair")
    pair = tagged.ids[2]
    assert fault == f"  around: competitor {pair} is not among the competitors of the ranking that have this tag"


@pytest.mark.one_in(3)
@pytest.mark.parametrize("command", ["standings {} 1 --tag all", "classification show {} 1", "form {} 1"])
async def test_all_lines_are_shown_however_many(tallybook: Tallybook, client: Client, dsn: str, command: str) -> None:
    await append(dsn, client.tournament, crowd(WINDOW_LINES_MAX + 1, tags=("all",)))
    shown = await tallybook.json(*command.format(client.tournament).split())
    assert len(shown.get("standings") or shown.get("form") or shown["competitors"]) == WINDOW_LINES_MAX + 1


async def test_form_is_that_over_http(tallybook: Tallybook, tagged: Season) -> None:
    first = await first_points(tagged)
    fouls = (await tagged.client.get(f"{tagged.path}.json")).json["ranking"]["unities"][1]["id"]
    for options, query in (
        ("", ""),
        ("--last 1 --unity fouls", f"last=1&unity={fouls}"),
        ("--top 2", "top=2"),
        ("--on 2024-03-10", "on=2024-03-10"),
        (f"--around Ada --at-sequence {first}", f"around={tagged.ids[0]}&span=5&at_sequence={first}"),
    ):
        over_http = (await tagged.client.get(f"{tagged.path}/form.json?{query}")).json["form"]
        assert await tallybook.json("form", *of(tagged), *options.split()) == over_http
    other = await tagged.client.post("competitions.json", {"group_id": 1, "started_at": "2020-01-01 15:00:00"})
    form = {
        "participants_delta": deltas((tagged.ids[0], tagged.unity_id, 3)),
        "competition_id": other.json["competition"]["id"],
    }
    await tagged.client.put(f"{tagged.path}/add.json", form)
    table = await tallybook.done("form", *of(tagged))
    assert re.findall(r"│ (Ada|Ben|Pair|Dora) +│ (.*?) +│", table) == [
        ("Ada", "3, -1"),
        ("Pair", "5"),
        ("Ben", ""),
        ("Dora", ""),
    ]
    assert (await tallybook("form", *of(tagged), "--last", str(LAST_MAX + 1))).code == 2


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
    history_of = ("history", client.tournament, str(ranking["id"]))
    said = await tallybook.done(*history_of, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(said)))
    excel = await tallybook.done(*history_of, "--format", "excel")
    assert excel.startswith("\ufeffsequence;")
    assert list(csv.DictReader(io.StringIO(excel.removeprefix("\ufeff")), delimiter=";")) == rows
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


@pytest.mark.one_in(3)
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
    for command, more in (("history", []), ("explain", ["1"])):
        (said,) = await tallybook.refused(command, of(season)[0], "999999", *more)
        assert said == "This tournament has no ranking 999999."


# ── Explain ─────────────────────────────────────────────────────────────────────────────────────────────


async def test_an_explanation_reads_like_a_letter(tallybook: Tallybook, played: Season) -> None:
    said = await tallybook.done("explain", *of(played), str(played.ids[0]))
    said = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "<time>", said)
    first, *_, last = [line["sequence"] for line in await history(played.client, played.path)]
    created = int(re.findall(r"event (\d+)\n    Ada joined", said)[0])
    assert said == (
        "Ada in Season: points\n"
        "\n"
        "Before the first event, Ada was not in the list.\n"
        f"After event {last}, recorded at <time> UTC, Ada stood 3rd with 2.\n"
        "\n"
        "In between: 2 changes of the total (3 gained, 1 lost, +2 in all); passed someone 1 time, "
        "was passed 2 times.\n"
        "\n"
        "What Ada got, last entered first:\n"
        "\n"
        f"<time>  event {last}\n"
        "    -1 by Competition of 3, group 2 (late at the start). Total 3 → 2, still 3rd.\n"
        f"<time>  event {first}\n"
        "    +3 by a free modification (fair play). Total 0 → 3, still 1st.\n"
        "    Ada passed Pair, 3 to 0.\n"
        f"<time>  event {created}\n"
        "    Ada joined the list: 1st with 0.\n"
        "\n"
        "When only others moved, newest first:\n"
        "\n"
        f"<time>  event {first + 2}\n"
        "    Others moved by a free modification: 2nd → 3rd.\n"
        "    Ben passed Ada, 4 to 3.\n"
        f"<time>  event {first + 1}\n"
        "    Others moved by Competition of 3, group 2: 1st → 2nd.\n"
        "    Pair passed Ada, 5 to 3."
    )


async def test_an_explanation_names_match_date_and_round(tallybook: Tallybook, played: Season) -> None:
    ada, ben, _ = played.ids
    match = {"group_id": 4, "started_at": "2024-03-09 15:00:00", "participants": listed([ada, ben]), "result": "2-1"}
    competition = (await played.client.post("competitions.json", match | {"location": "Rome"})).json["competition"]
    form = {"participants_delta": deltas((ada, played.unity_id, 9)), "competition_id": competition["id"]}
    added = await played.client.put(f"{played.path}/add.json", form)
    said = await tallybook.done("explain", *of(played), "Ada")
    assert re.search(
        rf"first:\n\n2024-03-09 15:00:00  event {added.headers['Tallybook-Sequence']}, recorded at [-: 0-9]{{19}}\n"
        r"    \+9 by Ada – Ben 2-1, Rome, group 4\. Total 2 → 11, 3rd → 1st\.\n",  # noqa: RUF001
        said,
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
    assert re.search(r"-5 because event \d+, by Competition of 3, group 2, since voided, was reversed\.", pair)
    assert "Total 5 → 0, not in the list." in pair
    assert "Pair joined the list: 3rd with 0." in pair
    ada = await tallybook.done("explain", *of(played), str(played.ids[0]))
    assert "The list of competitors changed: 3rd → 1st." in ada
    nothing = await tallybook.done("explain", *of(played), str(played.ids[0]), "--unity", "fouls", "--from", "12")
    assert nothing.endswith("Nothing in between changed that position or total.")


async def test_another_sort_is_explained_and_history_continues_by_it(tallybook: Tallybook, played: Season) -> None:
    ada, _, _ = played.ids
    await played.client.put(f"{played.path}/unities/{played.unity_id}.json", {"sort": "ASC"})
    form = {"participants_delta": deltas((ada, played.unity_id, 7))}
    await played.client.put(f"{played.path}/add.json", form)
    said = await tallybook.done("explain", *of(played), str(ada))
    assert "The sort order changed: 3rd → 1st." in said
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


async def of_a_dozen(client: Client) -> tuple[str, list[int]]:
    """A ranking of P1 to P12. P1 has nothing, the others 1 to 11; P2 falls below P1 and comes back; P1 gets 20."""
    ids = await register(client, *(f"P{number}" for number in range(1, 13)))
    ranking = await create_ranking(client, ids)
    unity_id = ranking["unities"][0]["id"]
    for points in (
        [(one, place) for place, one in enumerate(ids)],
        [(ids[1], -5)],
        [(ids[1], 5)],
        [(ids[0], 20)],
    ):
        form = {"participants_delta": deltas(*((one, unity_id, amount) for one, amount in points))}
        await client.put(f"rankings/{ranking['id']}/add.json", form)
    return str(ranking["id"]), ids


async def test_of_many_who_are_passed_at_once_the_nearest_are_named(tallybook: Tallybook, client: Client) -> None:
    ranking, _ = await of_a_dozen(client)
    said = await tallybook.done("explain", client.tournament, ranking, "P1")
    *_, last = said.partition("+20 by a free modification. Total 0 → 20, 12th → 1st.\n")
    told = [f"    P1 passed P{number}, 20 to {number - 1}." for number in range(12, 2, -1)]
    assert last.splitlines()[:11] == [*told, "    And 1 more."]
    told_in_full = await tallybook.json("explain", client.tournament, ranking, "P1")
    assert len(told_in_full["steps"][-1]["overtakings"]) == 11


async def test_a_step_that_leaves_overtakings_out_says_how_many(
    tallybook: Tallybook, client: Client, bounds: Bounds
) -> None:
    bounds(OVERTAKINGS_MAX=3)
    ranking, _ = await of_a_dozen(client)
    said = await tallybook.done("explain", client.tournament, ranking, "P1")
    assert " times; 8 more overtakings are not shown." in said
    *_, last = said.partition("+20 by a free modification. Total 0 → 20, 12th → 1st.\n")
    told = [f"    P1 passed P{number}, 20 to {number - 1}." for number in (10, 11, 12)]
    assert last.splitlines()[:4] == [*told, "    And 8 more."]
    step = (await tallybook.json("explain", client.tournament, ranking, "P1"))["steps"][-1]
    assert (len(step["overtakings"]), step["overtakings_left_out"]) == (3, 8)


async def test_of_many_steps_those_in_which_only_others_moved_are_combined(
    tallybook: Tallybook, client: Client, bounds: Bounds
) -> None:
    ranking, _ = await of_a_dozen(client)
    steps = (await tallybook.json("explain", client.tournament, ranking, "P1"))["steps"]
    bounds(STEPS_TOLD_MAX=len(steps) - 1)
    said = await tallybook.done("explain", client.tournament, ranking, "P1")
    assert "In 2 further events only others moved: P1 was passed 1 time and passed 1 time.\n--from and --to," in said
    bounds(STEPS_TOLD_MAX=len(steps))
    assert "further events" not in await tallybook.done("explain", client.tournament, ranking, "P1")


async def test_an_explanation_may_tell_of_some_others_only(tallybook: Tallybook, client: Client) -> None:
    ranking, ids = await of_a_dozen(client)
    command = ("explain", client.tournament, ranking, "P1")
    everything = await tallybook.json(*command)
    for option, others, of_whom in (
        (("--top", "3"), {ids[0], ids[11], ids[10]}, "the first 3"),
        (("--around", "P2"), set(ids[1:7]), "the 6 around P2"),
    ):
        told = await tallybook.json(*command, *option)
        assert told == everything | {
            "steps": [
                step | {"overtakings": overtakings}
                for step in everything["steps"]
                for overtakings in [[o for o in step["overtakings"] if {o["who"], o["whom"]} <= {ids[0], *others}]]
                if overtakings or step["delta"] is not None or step["cause"] == "list"
            ]
        }
        assert f"\nOf the others, only {of_whom} are shown.\n" in await tallybook.done(*command, *option)
    assert (await tallybook(*command, "--top", "3", "--around", "P2")).code == 2
    await tallybook.refused(*command, "--around", "nobody")


@pytest.mark.parametrize(
    ("number", "text"),
    [(1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"), (12, "12th"), (13, "13th"), (21, "21st"),
     (111, "111th"), (112, "112th"), (122, "122nd"), (1003, "1003rd")],
)  # fmt: skip
def test_ordinals(number: int, text: str) -> None:
    assert ordinal(number) == text
