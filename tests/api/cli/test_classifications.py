"""Commands about classifications say the same as HTTP does."""

import asyncio
import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from api.interface.kinds import KindName
from tests.api.cli.conftest import Tallybook
from tests.api.leagues import League, history
from tests.bounds import Bounds
from tests.running import said
from tests.service import Season


@pytest.fixture
async def league(season: Season) -> League:
    return await League(season).play()


def of(league: League) -> tuple[str, str]:
    return league.client.tournament, league.path.split("/")[1]


async def test_a_quotient_is_declared_and_shown_by_names(tallybook: Tallybook, league: League) -> None:
    told = await tallybook("classification", "declare", *of(league), "points:per=fouls", "points:ratio=fouls", "points")
    assert "points per fouls; points / fouls; points" in told.err
    (declared, *_) = (await league.client.get(f"{league.path}/classification.json")).json["classification"]["criteria"]
    assert list(declared) == ["per"]
    assert "points per fouls" in await tallybook.done("classification", "show", *of(league))


async def test_what_is_declared_on_the_command_line_is_shown_as_over_http(tallybook: Tallybook, league: League) -> None:
    async def over_http(query: str = "") -> Any:
        return (await league.client.get(f"{league.path}/classification.json{query}")).json["classification"]

    before = (await over_http())["sequence"]
    said = await tallybook(
        "classification",
        "declare",
        *of(league),
        "points:best=18",
        f"{league.fouls}",
        "points:among=tied",
        "fouls:first",
        "points:drop=4:1,8:2:best=9",
    )
    chain = "points, best 18; fouls; points among the tied; fouls, reached first; "
    chain += "points, drop 1 from 4, drop 2 from 8, best 9"
    assert said.err == f"ranking {of(league)[1]} is classified by {chain}\n"
    shown = await over_http()
    assert shown["criteria"] == [
        {"unity": league.points, "best": 18},
        {"unity": league.fouls},
        {"unity": league.points, "among": "tied"},
        {"unity": league.fouls, "first": True},
        {"unity": league.points, "best": 9, "drop": [[4, 1], [8, 2]]},
    ]
    assert await tallybook.json("classification", "show", *of(league)) == shown
    then = await tallybook.json("classification", "show", *of(league), "--at-sequence", str(before))
    assert then == await over_http(f"?at_sequence={before}")
    table = await tallybook.done("classification", "show", *of(league))
    assert re.search(r"2 +│ Ben +│ 3 +│ 4 +│ +│ +│ +│ fouls", table), table
    await tallybook("classification", "declare", *of(league))
    assert (await over_http())["criteria"] == [{"unity": league.points}]


async def test_history_lists_declarations_in_every_format(tallybook: Tallybook, league: League) -> None:
    await tallybook("classification", "declare", *of(league), "points:best=18", "fouls:among=tied")
    await tallybook("classification", "declare", *of(league))
    ndjson = await tallybook.done("history", *of(league), "--format", "ndjson")
    assert [json.loads(line) for line in ndjson.splitlines()] == await history(league.client, league.path)
    said = await tallybook.done("history", *of(league), "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(said)))
    assert [row["criteria"] for row in rows[-3:]] == ["", "points, best 18; fouls among the tied", "its main unity"]
    for row in rows[-2:]:
        assert [name for name, cell in row.items() if cell] == ["sequence", "recorded_at", "actor", "criteria"]
    head, *table = (await tallybook.done("history", *of(league))).splitlines()
    assert [row[head.index("why") :] for row in table[-2:]] == [
        "classified by points, best 18; fouls among the tied",
        "classified by its main unity",
    ]


async def test_lines_of_a_classification_are_chosen_and_compared_as_over_http(
    tallybook: Tallybook, league: League
) -> None:
    for who in (league.ben, league.pair):
        await league.client.put(f"competitors/{who}.json", {"tags": "junior"})
    await league.declare({"unity": league.points}, {"unity": league.fouls})
    head = (await league.client.get(f"{league.path}/classification.json")).json["classification"]["sequence"]
    await league.give(None, (league.pair, league.points, 9))
    for options, query in (
        ("--top 1", "top=1"),
        ("--around Ben", f"around={league.ben}&span=5"),
        ("--tag junior", "tag=junior"),
        (f"--since {head}", f"since={head}"),
        (f"--tag junior --since {head}", f"tag=junior&since={head}"),
        (f"--since-time 2999-01-01 --at-sequence {head}", f"since_time=2999-01-01&at_sequence={head}"),
    ):
        over_http = (await league.client.get(f"{league.path}/classification.json?{query}")).json["classification"]
        assert await tallybook.json("classification", "show", *of(league), *options.split()) == over_http
    table = await tallybook.done("classification", "show", *of(league), "--tag", "junior", "--since", str(head))
    assert re.search(r"1 +│ 1 +│ ▲ 1 up +│ Pair +│ 9 +│", table), table
    assert re.search(r"2 +│ 3 +│ ▼ 1 down +│ Ben +│ 3 +│ 4 +│ fouls", table), table


async def test_a_criterion_that_is_none_is_refused(
    tallybook: Tallybook, league: League, subtests: pytest.Subtests
) -> None:
    for criterion, reason in [
        ("cards", r"Ranking \d+ has no unity 'cards'\."),
        ("points:worst=1", r"Ranking \d+ has no unity 'points:worst=1'\. Similar: 'points'\."),
        ("points:best=1:best=2", r"The criterion 'points:best=1:best=2' says the same thing twice\."),
        ("points:drop=4:1:drop=4:1", r"The criterion 'points:drop=4:1:drop=4:1' says the same thing twice\."),
        ("points:drop=4", r"The drop of 'points:drop=4' must be like 4:1, 8:2: from 4 competitions .*\."),
        ("999999", r"Ranking \d+ has no unity 999999\."),
    ]:
        with subtests.test(criterion):
            (said,) = await tallybook.refused("classification", "declare", *of(league), criterion)
            assert re.fullmatch(reason, said)


async def test_what_if_drops_by_the_remaining_competitions(tallybook: Tallybook, league: League) -> None:
    more = [await league.meet(league.ada, league.ben) for _ in range(2)]
    for number, match in enumerate(more, start=1):
        await league.give(match, (league.ada, league.points, number), (league.ben, league.points, 2 * number))
    await league.declare({"unity": league.points, "drop": [[4, 3]]})
    assert [line[:3] for line in await league.lines()] == [
        (league.ben, 1, [9]),
        (league.ada, 2, [3]),
        (league.pair, 3, [0]),
    ]
    without = await tallybook.json("what-if", *of(league), "--without-competition", str(league.duel))
    after = {move["competitor_id"]: move["position_after"] for move in without[0]["classification"]}
    assert after == {league.ada: 1, league.ben: 1, league.pair: 3}  # three are left of Ada's four: 3, 1 and 2


async def test_an_explanation_says_what_is_left_out(tallybook: Tallybook, league: League) -> None:
    await league.declare({"unity": league.points, "drop": [[2, 1]]})
    said = await tallybook.done("explain", *of(league), str(league.ada))
    left_out = "    The classification leaves this competition out, as one of the worst.\n"
    told, _, rest = said.partition(left_out)
    assert told.splitlines()[-1] == "    Ben passed Ada, 3 to 0.", said
    assert left_out not in rest


async def test_an_explanation_begins_with_what_decides_the_classification(
    tallybook: Tallybook, league: League, bounds: Bounds
) -> None:
    silent = await tallybook.done("explain", *of(league), str(league.ben))
    assert "classification" not in silent
    undeclared = (await league.client.get(f"{league.path}/classification.json")).json["classification"]["sequence"]
    await league.declare({"unity": league.points}, {"unity": league.fouls})
    assert (
        "\n\nIn the classification, Ben stands 2nd.\n"
        "Ada stands above Ben by fouls, 0 to 4.\n"
        "Ben stands above Pair by points, 3 to 0.\n\nWhat "
    ) in await tallybook.done("explain", *of(league), str(league.ben))
    await league.declare({"unity": league.points}, {"unity": league.points, "among": "tied"})
    assert (
        "\n\nIn the classification, Ada stands 2nd.\n"
        "Ben stands above Ada by points among the tied.\n"
        "Ada stands above Pair by points, 3 to 0.\n\nWhat "
    ) in await tallybook.done("explain", *of(league), str(league.ada))
    assert await tallybook.done("explain", *of(league), str(league.ben), "--to", str(undeclared)) == silent
    over_http = (await league.client.get(f"{league.path}/explain.json?competitor={league.ada}")).json["explanation"]
    assert await tallybook.json("explain", *of(league), str(league.ada)) == over_http
    bounds(CLASSIFIED_SUMS_MAX=1)
    assert ("\n\nWhat decides the classification would take too long to find out.\n\n") in await tallybook.done(
        "explain", *of(league), str(league.ada)
    )


# ── Well-known kinds ────────────────────────────────────────────────────────────────────────────────────

GROUP_H = """\
date,participants,score
2022-11-24 13:00,Uruguay|South Korea,0:0
2022-11-24 16:00,Portugal|Ghana,3:2
2022-11-28 13:00,South Korea|Ghana,2:3
2022-11-28 19:00,Portugal|Uruguay,2:0
2022-12-02 15:00,Ghana|Uruguay,0:2
2022-12-02 15:00,South Korea|Portugal,2:1
"""
# The two games of each pair, won (1), drawn (=) or lost (0) by the first: the candidates of London, 2013.
CANDIDATES = """\
Carlsen: Kramnik ==, Svidler 10, Aronian ==, Gelfand 11, Grischuk 1=, Ivanchuk =0, Radjabov =1
Kramnik: Svidler =1, Aronian =1, Gelfand ==, Grischuk =1, Ivanchuk =0, Radjabov =1
Svidler: Aronian =1, Gelfand ==, Grischuk ==, Ivanchuk =1, Radjabov 1=
Aronian: Gelfand 10, Grischuk ==, Ivanchuk 11, Radjabov 11
Gelfand: Grischuk ==, Ivanchuk ==, Radjabov =1
Grischuk: Ivanchuk ==, Radjabov 1=
Ivanchuk: Radjabov 0=
"""

REGATTA = """\
date,participants,score
2024-06-01,Ann|Bob|Cid,1|2|3
2024-06-02,Ann|Bob|Cid,2|1|OCS
2024-06-03,Ann|Bob|Cid,1|3|2
2024-06-04,Ann|Bob|Cid,OCS|2|1
"""


def games(crosstable: str) -> str:
    """A file with the games, by the last days of the two halves."""
    rows = ["date,participants,score"]
    for line in crosstable.splitlines():
        player, others = line.split(": ")
        for opponent, results in (pair.split() for pair in others.split(", ")):
            for day, result in zip(("2013-03-23", "2013-04-01"), results, strict=True):
                rows.append(f"{day},{player}|{opponent},{ {'1': '1:0', '=': '½:½', '0': '0:1'}[result] }")
    return "\n".join(rows)


RACES = """\
date,participants,score,points,wins,seconds,thirds,4ths,5ths,6ths,7ths,8ths,9ths,10ths
2022-03-20,LEC|SAI|HAM|RUS|MAG|BOT|OCO|TSU|ALO|ZHO,1|2|3|4|5|6|7|8|9|10,26|18|15|12|10|8|6|4|2|1,\
1|||||||||,|1||||||||,||1|||||||,|||1||||||,||||1|||||,|||||1||||,||||||1|||,|||||||1||,||||||||1|,|||||||||1
2022-03-27,VER|LEC|SAI|PER|RUS|OCO|NOR|GAS|MAG|HAM,1|2|3|4|5|6|7|8|9|10,25|19|15|12|10|8|6|4|2|1,\
1|||||||||,|1||||||||,||1|||||||,|||1||||||,||||1|||||,|||||1||||,||||||1|||,|||||||1||,||||||||1|,|||||||||1
"""

# The medals of the ICPC World Finals, Beijing 2018: for each problem, the minute in which it was solved, and attempts
# before that.
FINALS = """\
Moscow State: 79 87 - 258 296+3 47+3 140+1 41+1 224+2 - 55
MIPT: 66 17 - 272 229+1 55 - 91 122 - 48+2
Peking: 102+1 41 - 203+1 - 76+1 296+1 149+1 170 - 33+1
Tokyo: 128+1 76 - 281+3 298+6 65+4 - 120 216+3 - 42
Seoul: 105+1 16 - - 262+4 53 - 74 82 - 27
New South Wales: 52 31 - 233 - 65 275+1 - 123+1 - 16+1
Tsinghua: 105 22 - - 286+2 42+1 - 146+3 181+1 - 80
Shanghai Jiao Tong: 99 63+2 - - 273+1 49+2 - 130+1 175 - 87+1
ITMO: 47 28 - - - 13 285+7 184+3 154+3 - 95+1
Central Florida: 115 26 - - - 139 219+7 142+1 265+1 - 47
MIT: 112 93 - - 257+4 185+6 - 146+2 69 - 42
Vilnius: 25+2 74 - - 255 196+4 - 140 209+3 - 95
Ural: 135+2 30 - - 286 68+1 - 293+3 177 - 85+2
"""


def solutions(scoreboard: str) -> str:
    """A file with each problem that was solved, in the order of their letters. An attempt costs 20 minutes."""
    teams = {name: cells.split() for name, cells in (line.split(": ") for line in scoreboard.splitlines())}
    rows = ["date,participants,score,solved,penalty"]
    for problem in range(11):
        solved = {name: cells[problem].partition("+") for name, cells in teams.items() if cells[problem] != "-"}
        if solved:
            penalties = [int(minute) + 20 * int(attempts or 0) for minute, _, attempts in solved.values()]
            minutes, ones = "|".join(minute for minute, *_ in solved.values()), "|".join("1" * len(solved))
            rows.append(f"2018-04-19,{'|'.join(solved)},{minutes},{ones},{'|'.join(map(str, penalties))}")
    return "\n".join(rows)


# Two throws of each: javelin, men, Tokyo, the final of 7 August 2021, in centimetres.
THROWS = """\
date,participants,score,high score
2021-08-07 11:00,Chopra|Vadlejch|Vesely|Weber|Nadeem,87.03|83.98|85.44|85.30|82.40,8703|8398|8544|8530|8240
2021-08-07 11:10,Chopra|Vadlejch|Vesely|Weber|Nadeem,87.58|86.67|84.98|85.15|84.62,8758|8667|8498|8515|8462
"""
# The fastest of 2009 over 100 metres.
RUNS = """\
date,participants,score,time
2009-07-10,Gay,9.77,9.770
2009-08-16,Bolt|Gay|Powell|Bailey,9.58|9.71|9.84|9.93,9.580|9.710|9.840|9.930
2009-09-15,Powell,9.82,9.820
2009-09-20,Gay|Powell,9.69|9.85,9.690|9.850
"""


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("kind", "file", "standings", "totals"),
    [
        # The group of the World Cup in which goals scored decided who went on.
        ("football", GROUP_H, [(1, "Portugal"), (2, "South Korea"), (3, "Uruguay"), (4, "Ghana")], "6 4 4 3"),
        # Two had 8½ points and drew both of their games; Carlsen won more others, as did Gelfand of two with 6½. Of two
        # with 8, Svidler won against Aronian.
        (
            "chess",
            games(CANDIDATES),
            [(1, "Carlsen"), (2, "Kramnik"), (3, "Svidler"), (4, "Aronian"), (5, "Gelfand"), (6, "Grischuk"),
             (7, "Ivanchuk"), (8, "Radjabov")],
            "85 85 80 80 65 65 60 40",
        ),
        # After two races of a season: two had 12 points, and one of them a fourth place.
        (
            "formula-one",
            RACES,
            [(1, "LEC"), (2, "SAI"), (3, "VER"), (4, "RUS"), (5, "HAM"), (6, "OCO"), (7, "PER"), (8, "MAG"), (9, "BOT"),
             (10, "NOR"), (11, "GAS"), (11, "TSU"), (13, "ALO"), (14, "ZHO")],
            "450 330 250 220 160 140 120 120 80 60 40 40 20 10",
        ),
        # Of those with the same number, the one with less penalty time stands first.
        (
            "icpc",
            solutions(FINALS),
            [*enumerate([line.partition(":")[0] for line in FINALS.splitlines()], start=1)],
            "9 8 8 8 7 7 7 7 7 7 7 7 7",
        ),
        # The best throw counts: Weber's second was farther than Vesely's.
        (
            "high-score",
            THROWS,
            [(1, "Chopra"), (2, "Vadlejch"), (3, "Vesely"), (4, "Weber"), (5, "Nadeem")],
            "8758 8667 8544 8530 8462",
        ),
        # The shortest time counts; the last of Powell was longer than the one before.
        ("laps", RUNS, [(1, "Bolt"), (2, "Gay"), (3, "Powell"), (4, "Bailey")], "9580 9690 9820 9930"),
        # The worst of four races is left out; who starts too early gets one point more than there are boats.
        ("sailing", REGATTA, [(1, "Ann"), (2, "Bob"), (3, "Cid")], "40 50 60"),
    ],
)  # fmt: skip
async def test_a_ranking_of_a_known_kind_is_classified_as_it_was(
    kind: KindName, file: str, standings: list[tuple[int, str]], totals: str, tallybook: Tallybook, tmp_path: Path
) -> None:
    slug = await tallybook.done("tournament", "create", "Known")
    clubs = tmp_path / "clubs.csv"
    clubs.write_text("name\n" + "\n".join(sorted(name for _, name in standings)))
    played = tmp_path / "played.csv"
    played.write_text(file)
    await asyncio.to_thread(said, "competitor", "import", slug, str(clubs), "--database-url", tallybook.dsn)
    await tallybook.done("ranking", "create", slug, "Table", "--like", kind)
    imported = ["competition", "import", slug, "Table", str(played), "--database-url", tallybook.dsn]
    assert (await asyncio.to_thread(said, *imported)).code == 0
    names = {one["id"]: one["name"] for one in await tallybook.json("competitor", "list", slug)}
    shown = await tallybook.json("classification", "show", slug, "Table")
    assert sorted((line["position"], names[line["competitor_id"]]) for line in shown["standings"]) == standings
    assert " ".join(str(line["values"][0]) for line in shown["standings"]) == totals


# The results of two in 2023, as the ATP's ranking counted them.
TENNIS = """\
date,location,participants,score,points
2023-01-08,Adelaide,Djokovic,W,250
2023-01-29,Melbourne,Djokovic,W,2000
2023-02-19,Buenos Aires,Alcaraz,W,250
2023-02-26,Rio de Janeiro,Alcaraz,F,300
2023-03-04,Dubai,Djokovic,SF,180
2023-03-19,Indian Wells,Alcaraz,W,1000
2023-04-02,Miami,Alcaraz,SF,360
2023-04-16,Monte Carlo,Djokovic,R16,90
2023-04-23,Banja Luka,Djokovic,QF,45
2023-04-23,Barcelona,Alcaraz,W,500
2023-05-07,Madrid,Alcaraz,W,1000
2023-05-21,Rome,Djokovic|Alcaraz,QF|R32,180|45
2023-06-11,Paris,Djokovic|Alcaraz,W|SF,2000|720
2023-06-25,London,Alcaraz,W,500
2023-07-16,Wimbledon,Djokovic|Alcaraz,F|W,1200|2000
2023-08-13,Toronto,Alcaraz,QF,180
2023-08-20,Cincinnati,Djokovic|Alcaraz,W|F,1000|600
2023-09-10,New York,Djokovic|Alcaraz,W|SF,2000|720
2023-10-04,Beijing,Alcaraz,SF,180
2023-10-15,Shanghai,Alcaraz,R16,90
2023-11-05,Paris,Djokovic|Alcaraz,W|R32,1000|10
2023-11-19,Turin,Djokovic|Alcaraz,W|SF,1300|400
"""


async def test_a_ranking_like_that_of_tennis_has_the_official_points_of_each_monday(
    tallybook: Tallybook, tmp_path: Path
) -> None:
    slug = await tallybook.done("tournament", "create", "Tour")
    (played := tmp_path / "played.csv").write_text(TENNIS)
    for player in ("Alcaraz", "Djokovic"):
        await tallybook.done("competitor", "add", slug, player)
    await tallybook.done("ranking", "create", slug, "Ranking", "--like", "tennis")
    imported = ["competition", "import", slug, "Ranking", str(played), "--database-url", tallybook.dsn]
    assert (await asyncio.to_thread(said, *imported)).code == 0
    names = {one["id"]: one["name"] for one in await tallybook.json("competitor", "list", slug)}

    async def shown(*on: str) -> Any:
        return await tallybook.json("classification", "show", slug, "Ranking", *on)

    async def points(*on: str) -> dict[str, int]:
        return {names[line["competitor_id"]]: line["values"][0] for line in (await shown(*on))["standings"]}

    assert [one["best"] for one in (await shown())["criteria"]] == [19]
    # The official table at the end of the year.
    assert await points("--on", "2023-11-20") == {"Djokovic": 11_245, "Alcaraz": 8_855}
    # What was won in the same week of the year before counts until Sunday.
    for on, djokovic, alcaraz in (
        ("2024-01-07", 11_245, 8_855),
        ("2024-01-08", 10_995, 8_855),
        ("2024-01-28", 10_995, 8_855),
        ("2024-01-29", 8_995, 8_855),
        ("2024-02-19", 8_995, 8_605),
    ):
        assert await points("--on", on) == {"Djokovic": djokovic, "Alcaraz": alcaraz}, on
    # By the log's clock, all of it expired as it was recorded.
    assert await points() == {"Djokovic": 0, "Alcaraz": 0}
