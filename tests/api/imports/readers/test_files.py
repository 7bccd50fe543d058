"""Each reader, on files of its format: what real programs and specifications put into them, and what is right."""

import json
import re
import zipfile
from fractions import Fraction
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from api.imports.readers import recognising
from api.imports.readers.brought import Brought, Meeting
from api.imports.readers.recognising import read_file
from engine.domain.errors import Unreadable
from tests.api.imports.readers.damaged import FILES


def brought(name: str) -> Brought:
    return read_file((FILES / name).read_bytes(), name)[1]


def read_text(text: str, name: str) -> Brought:
    return read_file(text.encode(), name)[1]


def refused(content: str | bytes, name: str) -> list[str]:
    """What a refusal says, and of which places."""
    with pytest.raises(Unreadable) as caught:
        read_file(content.encode() if isinstance(content, str) else content, name)
    return [caught.value.message, *[f"{fault.field}: {fault.message}" for fault in caught.value.faults]]


def scores(meetings: tuple[Meeting, ...]) -> list[str]:
    return [meeting.score for meeting in meetings]


def performances(meeting: Meeting, of: Brought) -> dict[str, str]:
    """By name."""
    names = {entrant.key: entrant.name for entrant in of.entrants}
    return {names[key]: text for key, text in zip(meeting.participants, meeting.score.split("|"), strict=True)}


@pytest.mark.parametrize(
    ("name", "format_name"),
    [
        ("spring.xml", "IOF XML 3.0"),
        ("gala.lef", "LENEX"),
        ("league.xlsx", "XLSX"),
        ("league.ods", "ODS"),
        ("contest-2023-06.ndjson", "CLICS event feed"),
        ("ranklist.srk.json", "srk ranklist"),
        ("cup.football.json", "football.json"),
        ("swiss.trf", "TRF"),
    ],
)
def test_a_file_is_recognised_by_what_it_begins_with_whatever_its_name_is(name: str, format_name: str) -> None:
    reader, _ = read_file((FILES / name).read_bytes(), "file")
    assert reader.name == format_name


def test_a_file_in_no_known_format_is_refused_with_those_that_are_known() -> None:
    assert refused("hello", "letter.doc")[0].startswith("The file is in none of the known formats: CLICS event feed")
    assert refused("", "empty.csv") == ["The file is empty."]


# ── football.json ────────────────────────────────────────────────────────────────────────────────────────


def test_a_match_that_was_abandoned_has_no_result_and_one_that_was_awarded_has() -> None:
    league = brought("league.football.json")
    assert scores(league.meetings) == ["2:1", "0:0", "3:0 awarded", "", "", "2:2"]
    assert [meeting.round for meeting in league.meetings] == [1, 1, 2, 2, 3, 3]
    assert [(table.name, table.like) for table in league.rankings] == [("Harbour League 2025/26", "football")]


def test_a_shoot_out_that_nobody_has_won_is_a_fault_of_the_file() -> None:
    match = {"team1": "A", "team2": "B", "score": {"ft": [1, 1], "p": [4, 4]}}
    assert refused(json.dumps({"name": "Cup", "matches": [match]}), "x.json") == [
        "The file cannot be brought; correct these places.",
        "match 1, score: p must have a winner",
    ]


def test_a_cup_is_won_after_extra_time_or_penalties_and_its_groups_are_rankings() -> None:
    cup = brought("cup.football.json")
    final = cup.meetings[2]
    assert (final.score, final.winner) == ("2:2 pen", "Eastey")
    assert cup.meetings[3].score == "1:0 aet"
    assert [(table.name, table.entrants, table.groups) for table in cup.rankings] == [
        ("Group A", ("Northey", "Southey"), (1,)),
        ("Group B", ("Eastey", "Westey"), (2,)),
    ]
    assert final.group not in (1, 2)
    assert cup.notes == ("matches of knock-out rounds are recorded, and give no points",)


def test_utc_minus_six_is_an_offset() -> None:
    assert [meeting.date for meeting in brought("cup.football.json").meetings[:2]] == [
        "2026-06-11 13:00-06:00",
        "2026-06-11 20:00+05:30",
    ]


def test_older_seasons_have_rounds_and_objects_for_clubs() -> None:
    old = brought("old.football.json")
    assert [(meeting.participants, meeting.score) for meeting in old.meetings] == [
        (("Pier Rovers", "Quay Athletic"), "2:1"),
        (("Dock United", "Mole Town"), ""),
    ]


def test_a_match_keeps_its_key_when_it_is_moved() -> None:
    text = (FILES / "league.football.json").read_text()
    moved = read_text(text.replace('"2025-08-23"', '"2025-09-30"'), "moved.json")
    assert [one.key for one in moved.meetings] == [one.key for one in brought("league.football.json").meetings]


def test_a_defect_in_football_json_names_the_match() -> None:
    text = (FILES / "league.football.json").read_text().replace("[0, 0]", "[0, -1]")
    assert refused(text, "x.json")[1:] == ["match 2, score: ft must be two numbers of goals"]


# ── IOF XML ──────────────────────────────────────────────────────────────────────────────────────────────


def test_the_places_in_a_result_list_are_not_believed() -> None:
    spring = brought("spring.xml")
    women, series, everybody = spring.meetings
    assert performances(women, spring) == {
        "Anna Birch": "33:21.4",
        "Berta Fern": "33:21.3",
        "Carla Elm": "MP",
        "Eva Pine": "NT",
        "Fay Ash": "33:21.4",
    }
    assert performances(series, spring) == {"Anna Birch": "96", "Berta Fern": "100"}
    assert women.date == "2026-05-03 10:00:00+02:00"
    assert everybody.participants == ("Gus Fern", "Gus Fern 202", "31")


def test_a_runner_in_two_classes_is_one_competitor_and_namesakes_are_two() -> None:
    spring = brought("spring.xml")
    assert [entrant.name for entrant in spring.entrants].count("Anna Birch") == 1
    assert [entrant.name for entrant in spring.entrants].count("Gus Fern") == 2
    assert spring.entrants[0].tags == ("OC Moss",)


def test_those_who_do_not_compete_are_left_out_and_named() -> None:
    spring = brought("spring.xml")
    assert "Dora Oak" not in [entrant.name for entrant in spring.entrants]
    assert spring.notes == (
        "those with the status NotCompeting are left out (line 25, PersonResult)",
        "those with the status OK but without a valid time have no place (line 31, Result)",
    )


def test_a_relay_has_the_time_of_its_last_leg_or_the_sum_of_its_legs() -> None:
    relay = brought("relay.xml")
    assert performances(relay.meetings[0], relay) == {"Moss 1": "1:01:40.5", "Moss 2": "1:01:39", "Heath": "MP"}


def test_each_race_of_a_class_is_a_competition() -> None:
    days = brought("two_days.xml")
    assert [(one.round, one.round_name, one.date) for one in days.meetings] == [
        (1, "Middle", "2026-07-11"),
        (2, "Long", "2026-07-12"),
    ]
    assert scores(days.meetings) == ["33:20|31:40|30:00", "1:06:40|1:10:00|DNS"]


def test_a_race_or_a_leg_of_thousands_of_digits_is_not_a_number() -> None:
    """Python reads at most 4,300 digits of a number."""
    days = (FILES / "two_days.xml").read_text().replace('raceNumber="2"', f'raceNumber="{"9" * 5_000}"')
    assert [one.round for one in read_text(days, "days.xml").meetings] == [1, None]
    legs = (FILES / "relay.xml").read_text().replace("<Leg>1<", f"<Leg>{'9' * 5_000}<")
    relay = read_text(legs, "relay.xml")
    assert performances(relay.meetings[0], relay)["Moss 2"] == "1:01:39"


def test_a_list_of_changes_is_refused() -> None:
    text = (FILES / "spring.xml").read_text().replace('status="Complete"', 'status="Delta"')
    assert refused(text, "x.xml")[0].startswith("The file has only what changed since another one (Delta)")


def test_a_start_list_is_refused() -> None:
    text = '<StartList xmlns="http://www.orienteering.org/datastandard/3.0"/>'
    assert refused(text, "start.xml") == ["The file is a StartList; only a ResultList has results."]


# ── Contests ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["contest-2023-06.ndjson", "contest-2026-01.ndjson"])
def test_a_contest_has_its_last_state_after_rejudgings(name: str) -> None:
    contest = brought(name)
    (only,) = contest.meetings
    assert performances(only, contest) == {
        "Red Herrings": "A:30+1 B:61",
        "Blue Whales": "A:50+1 B:-1 C:?",
        "Sea Cows": "B:50 A:70 C:290+1",
        "Old Salts": "C:-1",
        "Anchors": "-",
    }
    assert contest.notes == (
        "hidden teams, and teams outside the main scoreboard, are left out",
        "submissions without a verdict count when the feed has it (submission s99)",
    )
    assert contest.entrants[0].tags == ("Quay University",)


def test_a_deleted_team_is_not_a_competitor() -> None:
    assert "Nobody" not in [entrant.name for entrant in brought("contest-2026-01.ndjson").entrants]


def test_the_penalty_of_a_wrong_try_is_that_of_the_file() -> None:
    feed = (FILES / "contest-2026-01.ndjson").read_text()
    assert read_text(feed, "x.ndjson").rankings[0].factors == {"tries": 20}
    other = feed.replace('"penalty_time": "0:20:00"', '"penalty_time": "0:10:00"')
    assert read_text(other, "x.ndjson").rankings[0].factors == {"tries": 10}
    odd = feed.replace('"penalty_time": "0:20:00"', '"penalty_time": "0:10:30"')
    assert refused(odd, "x.ndjson") == ["The penalty of a wrong try must be whole minutes."]
    ranklist = (FILES / "ranklist.srk.json").read_text().replace('20,\n    "min"', '1200,\n    "s"')
    assert {table.factors["tries"] for table in read_text(ranklist, "x.json").rankings} == {20}


def test_a_defect_in_a_feed_names_the_line() -> None:
    lines = (FILES / "contest-2023-06.ndjson").read_text().splitlines()
    lines[6] = '{"type": 7, "id": "t1", "data": {}}'
    assert refused("\n".join(lines), "x.ndjson")[1:] == ["line 7: Expected `str`, got `int` - at `$.type`"]


def test_a_ranklist_counts_free_results_and_units_of_time_as_it_says() -> None:
    ranklist = brought("ranklist.srk.json")
    (only,) = ranklist.meetings
    assert performances(only, ranklist) == {
        "Red Herrings": "A:50+1 B:100 P3:?",
        "Blue Whales": "A:60 B:91+1",
        "Sea Cows": "A:-3 B:60",
        "Anchors": "-",
    }
    assert [(table.name, len(table.entrants)) for table in ranklist.rankings] == [
        ("Harbour Ranklist", 3),
        ("Harbour Ranklist: all", 4),
    ]


# ── LENEX ────────────────────────────────────────────────────────────────────────────────────────────────


def test_only_a_place_above_zero_counts_as_placed() -> None:
    gala = brought("gala.lef")
    assert performances(gala.meetings[1], gala) == {
        "Anna Birch": "1:02.03",
        "Berta Fern": "1:02.9",
        "Carla Elm": "1:02.9",
        "Dora Oak": "DSQ",
        "Eva Pine": "NP",
    }


def test_a_result_counts_in_several_age_groups_and_finals_stand_before_preliminaries() -> None:
    gala = brought("gala.lef")
    assert [table.name for table in gala.rankings] == [
        "100 m free women 13–14",  # noqa: RUF001 - a dash
        "100 m free women 13–14 preliminaries",  # noqa: RUF001
        "100 m free women open preliminaries",
        "1500 m freestyle men 15 and over",
    ]
    assert gala.meetings[2].participants[1] == gala.meetings[1].participants[0] == "L1"


def test_competitors_out_of_competition_do_not_participate_and_nonstarters_have_no_place() -> None:
    gala = brought("gala.lef")
    assert performances(gala.meetings[3], gala) == {"Hugo Larch": "16:40", "Jon Yew": "DNS"}


def test_birth_dates_are_in_nothing_that_is_recorded() -> None:
    assert "2012" not in str((brought("gala.lef").entrants, brought("gala.lef").meetings))


def test_a_second_meet_is_read_too() -> None:
    meets = brought("two_meets.lef")
    assert [table.name for table in meets.rankings] == ["Day One: 50 m back men", "Day Two: 50 m back men"]
    assert scores(meets.meetings) == ["0:30.01", "0:29.99"]
    assert len(meets.entrants) == 1


def test_a_relay_of_a_club_is_one_competitor_in_all_its_events() -> None:
    relays = brought("relays.lef")
    free, medley = relays.meetings
    assert performances(free, relays) == {
        "Heath Mixed": "1:59.99",
        "SC Moss 1": "2:01.1",
        "SC Moss 2": "2:05",
        "Heath Swimmers 2": "DSQ",
    }
    assert medley.participants == free.participants[1:2]
    assert {tag for one in relays.entrants for tag in one.tags} == {"SC Moss", "Heath Swimmers"}


def test_a_packed_meet_is_the_same_meet() -> None:
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(FILES / "gala.lef", "gala.lef")
    assert read_file(packed.getvalue(), "gala.lxf")[1] == brought("gala.lef")


# ── TRF ──────────────────────────────────────────────────────────────────────────────────────────────────

_OFFICIAL = {
    "swiss.trf": "2 3.5 3.5 4 4 2.5 3.5 1.5 3 2 4.5 4.5 3 5",
    "round_robin.trf": "2.5 3.5 2 4 0.5 2.5",
    "three_points.trf": "2 11 7 3 5 5 8 2 9",
}
"""The points that FIDE-TEC's program (gacrux 1.11.65) gives."""


@pytest.mark.parametrize("name", _OFFICIAL)
def test_the_games_of_a_report_give_the_official_points(name: str) -> None:
    report = brought(name)
    table = {"win": "1", "draw": "0.5", "loss": "0", "bye": "1", "bye half": "0.5", "bye zero": "0"} | report.rankings[
        0
    ].points
    gives = {outcome: Fraction(points) for outcome, points in table.items()}
    outcomes = {"1:0": ("win", "loss"), "½:½": ("draw", "draw"), "0:1": ("loss", "win"), "+:-": ("win", "loss")}
    outcomes |= {"-:+": ("loss", "win"), "-:-": ("loss", "loss"), "bye": ("bye",), "half bye": ("bye half",)}
    outcomes |= {"zero bye": ("bye zero",), "full bye": ("win",)}
    points = dict.fromkeys((entrant.key for entrant in report.entrants), Fraction(0))
    for meeting in report.meetings:
        for key, outcome in zip(meeting.participants, outcomes[meeting.score], strict=True):
            points[key] += gives[outcome]
    assert [f"{float(amount):g}" for amount in points.values()] == _OFFICIAL[name].split()


def test_the_order_of_a_report_becomes_the_criteria_of_its_edition() -> None:
    (swiss,), (three,), (everybody,) = (
        brought(f"{name}.trf").rankings for name in ("swiss", "three_points", "round_robin")
    )
    assert (swiss.like, three.like, everybody.like) == ("chess-swiss", "chess-swiss", "chess-round-robin")
    assert swiss.criteria[:2] == ({"unity": "points"}, {"unity": "points", "tiebreak": "BH", "cut": 1})
    assert [one.get("tiebreak") for one in three.criteria] == [None, "SB", "PS"]  # RTNG is left out
    assert everybody.criteria == ()
    text = (FILES / "swiss.trf").read_text().replace("042 2026/11/29", "042 2025/11/29")
    text = text.replace("192 FIDE_DUTCH", "192 BERGER_ROUNDROBIN").replace("BH/C1,BH,SB", "KS/L-2,SB/C1")
    assert read_text(text, "x.trf").rankings[0].criteria[1:3] == (
        {"unity": "points", "tiebreak": "KS", "limit": -2, "pairing": "predetermined", "edition": "2024-08"},
        {"unity": "points", "tiebreak": "SB", "cut": 1, "pairing": "predetermined", "edition": "2024-08"},
    )


def test_the_first_participant_of_a_game_had_white() -> None:
    report = brought("round_robin.trf")
    names = {entrant.key: entrant.name for entrant in report.entrants}
    assert [[*map(names.get, one.participants), one.score] for one in report.meetings[:3]] == [
        ["Archer, Ada", "Fisher, Flo", "0:1"],
        ["Baker, Bo", "Eaton, Ed", "+:-"],
        ["Cooper, Cy", "Dyer, Di", "0:1"],
    ]
    assert report.entrants[0].rating == 2224


def test_lines_that_contradict_each_other_and_wrong_points_are_refused_by_line() -> None:
    lines = (FILES / "round_robin.trf").read_text().splitlines()
    lines[10] = lines[10].replace("6 w 0", "6 w 1", 1)
    assert refused("\n".join(lines), "x.trf")[1:] == [
        "line 11, round 1: line 16 says otherwise about this game",
        "line 16, round 1: line 11 says otherwise about this game",
        "line 11: its results give 3.5 points, and it says 2.5",
    ]


def test_a_report_may_have_carriage_returns_other_programs_records_and_latin_1() -> None:
    text = (FILES / "round_robin.trf").read_text().replace("Archer, Ada", "Archér, Ada").replace("\n", "\r")
    report = read_file((text + "\rXXR 9\r### nothing").encode("latin-1"), "x.trf")[1]
    assert report.entrants[0].name == "Archér, Ada"
    assert report.notes == ("record XXR is left out (line 18)",)


def test_columns_that_are_not_aligned_are_refused() -> None:
    lines = (FILES / "round_robin.trf").read_text().splitlines()
    lines[10] = lines[10][:91] + " " + lines[10][91:]
    assert refused("\n".join(lines), "x.trf")[1].startswith(
        "line 11: columns 92 to 99 are not an opponent, a colour and a result"
    )


# ── A reader of others ───────────────────────────────────────────────────────────────────────────────────

_USEBIO = """<USEBIO Version="1.2"><EVENT EVENT_TYPE="PAIRS"><EVENT_DESCRIPTION>Tuesday Pairs</EVENT_DESCRIPTION>
<DATE>12/05/2026</DATE><PARTICIPANTS>
<PAIR><PAIR_NUMBER>1</PAIR_NUMBER><PLACE>2</PLACE><TOTAL_SCORE>142</TOTAL_SCORE>
<PLAYER><PLAYER_NAME>Ada Archer</PLAYER_NAME></PLAYER><PLAYER><PLAYER_NAME>Bo Baker</PLAYER_NAME></PLAYER></PAIR>
<PAIR><PAIR_NUMBER>2</PAIR_NUMBER><PLACE>1</PLACE><TOTAL_SCORE>158</TOTAL_SCORE>
<PLAYER><PLAYER_NAME>Cy Cooper</PLAYER_NAME></PLAYER><PLAYER><PLAYER_NAME>Di Dyer</PLAYER_NAME></PLAYER></PAIR>
</PARTICIPANTS></EVENT></USEBIO>"""


def test_the_reader_in_the_documentation_is_read_as_an_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    page = Path("docs/READERS.md").read_text(encoding="utf-8")
    (program,) = re.findall("```python\n(.*?)```", page, re.DOTALL)
    written: dict[str, Any] = {}
    exec(program, written)  # it is the documentation's own
    point = SimpleNamespace(load=lambda: written["USEBIO"])
    monkeypatch.setattr(recognising, "entry_points", lambda *, group: [point] if group in page else [])
    bridge = read_text(_USEBIO, "pairs.xml")
    assert performances(bridge.meetings[0], bridge) == {
        "Ada Archer and Bo Baker": "142",
        "Cy Cooper and Di Dyer": "158",
    }
    assert bridge.meetings[0].date == "2026-05-12"
    assert refused(_USEBIO.replace("142", "54.5%"), "pairs.xml")[1:] == [
        "line 3, PAIR: it must have two players and a total score in whole match points"
    ]
