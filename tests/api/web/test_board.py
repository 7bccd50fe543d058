"""The board, as a client without scripts and without a token sees it."""

import asyncio
import csv
import gzip
import io
import re
from datetime import UTC, datetime, timedelta
from functools import partial
from html import unescape
from typing import Any
from unicodedata import normalize
from urllib.parse import quote

import pytest

from api.imports.bringing import Bringing
from api.imports.readers.recognising import read_file
from api.interface.kinds import KindName, create_ranking, kinds
from api.web.competitions import ShownCompetitionShape, ShownCompetitionsShape, SideShape, latest_part
from api.web.files import static_files
from api.web.words import ENGLISH
from engine.domain.commands import (
    AddCompetition,
    AddPoints,
    AddUnity,
    ChangeCompetitor,
    ChangePublication,
    ChangeRankingInformation,
    ChangeVisibility,
    CloseRanking,
    CreateRanking,
    DeclareClassification,
    ReversePoints,
    StrikeCompetitors,
    UnstrikeCompetitors,
    UnvoidCompetition,
    VoidCompetition,
)
from engine.domain.events import Criterion, Delta
from engine.domain.terms import OPERATOR, CompetitionId, RankingId, UnityId
from tests.api.imports.readers.damaged import FILES
from tests.api.visitor import routes_below, unreached
from tests.api.web.season import Championship
from tests.bounds import Bounds
from tests.service import Client
from tests.six_nations import MATCHES, TEAMS

FINAL = {"Ireland": 20, "France": 15, "England": 14, "Scotland": 12, "Italy": 11, "Wales": 4}
GAINED = {"Ireland": "+4", "France": "+4", "England": "+2", "Scotland": "+1", "Italy": "+4", "Wales": "+1"}
"""On the last day."""


async def submit(championship: Championship, command: Any) -> Any:
    return await championship.service.desk.submit(championship.live, command, actor=OPERATOR)


def lines_of(page: str) -> list[list[list[str]]]:
    """The words of each cell of each line of the table of a page."""
    body = page[page.index("<tbody>") : page.index("</tbody>")]
    return [
        [unescape(re.sub(r"<[^>]*>", " ", cell)).split() for cell in re.findall(r"<t[dh].*?</t[dh]>", row)]
        for row in re.findall(r"<tr.*?</tr>", body)
    ]


def table_of_page(page: str) -> dict[str, int]:
    """The value by which the lines are ordered, wherever its column stands."""
    body = page[page.index("<tbody>") : page.index("</tbody>")]
    first = re.findall(r'<td class="value first">([0-9]+)', body)
    return {" ".join(line[2]): int(value) for line, value in zip(lines_of(page), first, strict=True)}


async def page_of(championship: Championship, below: str = "") -> str:
    answer = await championship.get(below)
    assert answer.status == 200, answer.body
    return answer.body.decode()


# ── The page ────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_page_is_whole_without_scripts(championship: Championship) -> None:
    page = await page_of(championship)
    assert table_of_page(page) == FINAL
    assert [line[0] for line in lines_of(page)] == [[str(position)] for position in range(1, 7)]
    assert "<h1><bdi>Championship</bdi></h1>" in page
    assert page.count("<script") == page.count("</script>") == 1
    assert " style=" not in page
    assert "<style" not in page


async def test_links_lead_to_every_page(championship: Championship) -> None:
    """The others are what scripts and programs ask for, and the logo, which this tournament does not have."""
    others = (".json", "/events", "/logo.png", ".trf")
    board = await routes_below(championship.service, "/board/")
    pages = [template for template in board if not template.endswith((*others, "/problems"))]  # those of contests
    assert len(pages) > 5
    get = partial(championship.stranger.send, "GET")
    assert await unreached(get, championship.address, pages) == set()


async def test_a_page_lets_nothing_in_and_only_that_to_embed_may_be_framed(championship: Championship) -> None:
    for below, framed_by in (("", "'none'"), ("/tv", "'none'"), ("/embed", "*")):
        policy = (await championship.get(below)).headers["Content-Security-Policy"]
        rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
        assert rules == {
            "default-src": "'none'",
            "script-src": "'self'",
            "style-src": "'self'",
            "img-src": "'self' data:",
            "connect-src": "'self'",
            "base-uri": "'none'",
            "form-action": "'self'",
            "frame-ancestors": framed_by,
            "require-trusted-types-for": "'script'",
            "trusted-types": "lit-html",
        }


async def test_movement_is_since_the_last_day_of_play_by_sign_and_by_word(championship: Championship) -> None:
    """France beat England: before that day, it was third. Until then it had been fourth for some hours."""
    moved = {" ".join(line[2]): " ".join(line[1]) for line in lines_of(await page_of(championship))}
    assert moved == {
        "Ireland": "– unchanged",  # noqa: RUF001 - the sign that the page has
        "France": "▲ 1 up",
        "England": "▼ 1 down",
        "Scotland": "▼ 1 down",
        "Italy": "– unchanged",  # noqa: RUF001
        "Wales": "– unchanged",  # noqa: RUF001
    }


async def test_a_voided_competition_is_not_the_last_one(championship: Championship) -> None:
    last = list(championship.live.board.competitions)[-3:]
    end = championship.live.head.sequence
    for name, at, its in (("since_on", "", last), ("since", f"?at={end}", last[-1:])):
        before = (await championship.get(f"/table.json{at}")).json[name]
        for one in its:
            await submit(championship, VoidCompetition(competition_id=one))
        end = championship.live.head.sequence
        assert (await championship.get(f"/table.json{at and f'?at={end}'}")).json[name] < before
        for one in its:
            await submit(championship, UnvoidCompetition(competition_id=one))


async def test_what_took_place_last_is_the_latest_and_what_was_entered_late_says_so(
    championship: Championship,
) -> None:
    """A match of February is recorded last. It moves nobody: it counted before the last date, too."""
    desk, teams = championship.service.desk, championship.teams
    late = CompetitionId(await desk.new_id())
    sides, day = (teams["Wales"], teams["Italy"]), datetime(2024, 2, 20, tzinfo=UTC)
    await submit(championship, AddCompetition(competition_id=late, group_id=9, participants=sides, started_at=day))
    await championship.give("Wales", 8, late)
    for below in ("/table.json", "/table.json?on=2024-12-31"):
        table = (await championship.get(below)).json
        moved = {line["name"]: line["moved"] for line in table["lines"]}
        assert moved == {"Ireland": 0, "France": 1, "England": -1, "Scotland": -1, "Wales": 0, "Italy": 0}
        assert {line["name"]: line["gained"] for line in table["lines"]} == GAINED
        assert table["since_on"] == "2024-03-16T14:14:59.999999Z"
        assert table["last"]["date"] == "2024-03-16T20:00:00Z"
        shown = table["competitions"]
        assert (shown["latest"]["result"], shown["late"]["id"]) == ("33-31", str(late))
        assert shown["latest"]["entered_late"] is None
        assert shown["late"]["entered_late"] == (await championship.get("/table.json")).json["recorded_at"]
    today = ENGLISH.day(datetime.now(UTC))
    for below in ("", "/tv"):
        said = latest_of(await page_of(championship, below))
        assert said.startswith("Latest France 33-31 England France +4, England +2 Entered late Wales – Italy Wales +8")  # noqa: RUF001
        assert said.endswith(" Wales +8 20 February 2024")
    explained = await page_of(championship, f"/competitors/{teams['Wales']}")
    assert explained.count("entered late") == 1
    day = '<time datetime="2024-02-20">20 February 2024</time>'
    assert f'{day}<span class="late">entered late, on {today}</span></td>' in explained
    csv_rows = list(csv.DictReader(io.StringIO((await championship.get("/table.csv")).body.decode())))
    assert {row["competitor"]: int(row["moved"]) for row in csv_rows} == moved
    end = championship.live.head.sequence
    published = (await championship.get(f"/table.json?at={end}")).json  # as the log has it
    assert {line["name"]: line["moved"] for line in published["lines"]}["Wales"] == 1
    assert {line["name"]: line["gained"] for line in published["lines"] if line["gained"]} == {"Wales": "+8"}
    assert (published["competitions"]["latest"]["id"], published["competitions"]["late"]) == (str(late), None)
    said = latest_of(await page_of(championship, f"?at={end}"))
    assert said == f"Latest Wales – Italy Wales +8 20 February 2024 , entered late, on {today}"  # noqa: RUF001


@pytest.mark.parametrize("change", ["void", "strike", "undo"])
async def test_what_is_taken_back_and_restored_leaves_every_answer_as_it_was(
    championship: Championship, change: str
) -> None:
    """Also who reached a total first."""
    ranking_id, (points, _) = championship.ranking_id, championship.unity_ids
    criteria = Criterion(unity_id=points, best=2), Criterion(unity_id=points, first=True)
    await submit(championship, DeclareClassification(ranking_id=ranking_id, criteria=criteria))
    match = next(i for i, one in championship.live.board.competitions.items() if one.result == "31-7")
    given = await championship.give("Wales", 3, match)
    who = (championship.teams["Ireland"],)

    async def answers() -> list[Any]:
        below = f"/rankings/{ranking_id}"
        days = [f"{below}/{one}" for one in ("standings.json", "classification.json?top=9", "form.json?top=9")]
        days += [f"{one}{'&' if '?' in one else '?'}on=2024-03-10" for one in days]
        days.append(f"{below}/explain.json?competitor={who[0]}&on=2024-03-10")
        boards = ["/table.json", "/table.json?at=2024-02-11", "/timeline.json", "/race.json"]
        found = [(path, await championship.get(path)) for path in days + boards]
        assert {answer.status for _, answer in found} == {200}, found
        return [(path, without_moments(answer.json)) for path, answer in found]

    before = await answers()
    if change == "void":
        await submit(championship, VoidCompetition(competition_id=match))
        assert await answers() != before
        await submit(championship, UnvoidCompetition(competition_id=match))
    elif change == "strike":
        await submit(championship, StrikeCompetitors(competition_id=match, competitors=who))
        assert await answers() != before
        await submit(championship, UnstrikeCompetitors(competition_id=match, competitors=who))
    else:
        undone = await submit(championship, ReversePoints(ranking_id=ranking_id, sequence=given))
        assert await answers() != before
        await submit(championship, ReversePoints(ranking_id=ranking_id, sequence=undone.last_sequence))
    assert await answers() == before


def without_moments(value: Any) -> Any:
    """Without what says as of which event an answer is."""
    if isinstance(value, list):
        return [without_moments(one) for one in value]
    if not isinstance(value, dict):
        return value
    moments = "sequence", "since", "end", "recorded_at", "version"
    return {key: without_moments(one) for key, one in value.items() if key not in moments}


async def test_nobody_has_moved_at_the_first_competition(championship: Championship) -> None:
    points, _ = championship.unity_ids
    end = championship.live.head.sequence
    passage = (await championship.get(f"/passage.json?ranking={championship.ranking_id}&at={end}")).json
    first, second, *_ = [step[0] for step in passage["steps"]]
    for below in (f"?at={first}", f"?at={first}&unity={points}"):
        assert 'class="moved"' not in await page_of(championship, below)
    moved = {" ".join(line[2]): line[1][-1] for line in lines_of(await page_of(championship, f"?at={second}"))}
    assert (set(moved), "new" in moved.values()) == (set(TEAMS), False)


async def test_new_is_only_who_joined_after_the_round_before(championship: Championship) -> None:
    competitions = [CompetitionId(await championship.service.desk.new_id()) for _ in range(2)]
    for one in competitions:
        await submit(championship, AddCompetition(competition_id=one, group_id=6))
    await championship.enroll([f"Guest {number:03}" for number in range(200)])
    await championship.give("Guest 150", 0, competitions[0])
    await championship.enroll(["Late"])
    await championship.give("Wales", -20, competitions[1])
    since = championship.live.head.sequence - 1
    for query in "", f"&since={since - 2}", f"&at={since + 1}&since={since - 2}":
        lines = {line["name"]: line for line in (await championship.get(f"/table.json?limit=300{query}")).json["lines"]}
        assert {one["moved"] for name, one in lines.items() if name.startswith("Guest")} == {1}
        assert (lines["Wales"]["moved"], lines["Late"]["moved"]) == (-201, None)


async def test_points_taken_by_hand_for_a_reason_are_a_footnote_until_undone(
    championship: Championship, bounds: Bounds
) -> None:
    """Not those of a competition, nor without a reason, nor given."""
    points, difference = championship.unity_ids
    ranking_id, (match, *_) = championship.ranking_id, championship.live.board.competitions
    reason, wales, france = "<b>ineligible</b>", championship.teams["Wales"], championship.teams["France"]

    async def take(*deltas: tuple[int, UnityId, int], **more: Any) -> Any:
        added = AddPoints(ranking_id=ranking_id, deltas=tuple(Delta(*one) for one in deltas), **more)  # type: ignore[arg-type]
        return await submit(championship, added)

    undone = await take((wales, points, -1), (france, difference, -3), reason=reason)
    await take((wales, points, -2), (france, points, 2), reason="late")
    await take((wales, points, -2))
    await take((wales, points, -1), reason="score", competition_id=match)
    page = await page_of(championship)
    notes = [
        unescape(re.sub("<[^>]*>", "", one)) for one in re.findall("<li>(.*?)</li>", page[page.index("notes") :])[:3]
    ]
    assert notes == [
        f"France: 3 points difference deducted: {reason}",
        f"Wales: 1 point deducted: {reason}",
        "Wales: 2 points deducted: late",
    ]
    lines = {" ".join(line[2]): line[4:] for line in lines_of(page)}
    assert (lines["France"][0][:3], lines["Wales"][1][:4]) == (
        ["3", "note", "a"],
        ["\N{MINUS SIGN}2", "note", "b", "c"],
    )
    said = {"de": "Wales: 2 Punkte abgezogen: late", "fr": "Wales : 2 points de pénalité", "es": "2 puntos de sanción"}
    for language, text in said.items():
        assert text in re.sub("<[^>]*>", "", await page_of(championship, f"?lang={language}"))
    await submit(championship, ReversePoints(ranking_id=ranking_id, sequence=undone.last_sequence))
    for below in "", f"?at={championship.live.head.sequence}":
        assert re.findall(">(. points) deducted", re.sub("</?bdi>", "", await page_of(championship, below))) == []
        told = (await championship.get("/table.json" + below)).json["footnotes"]
        assert told == [{"mark": "a", "column": 0, "competitor_id": str(wales), "amount": "2 points", "reason": "late"}]
    bounds(FOOTNOTES_MAX=0)
    assert "footnotes" not in (await championship.get("/table.json?limit=9")).json


async def test_places_of_the_table_are_in_zones_whose_legend_says_what_they_lead_to(
    championship: Championship,
) -> None:
    ranking_id, teams = championship.ranking_id, championship.teams
    zones = "1..2 promotion: <Cup>; -2 play-off: Stay; -2..-1 relegation: Down; 7..9 neutral: Nobody"
    await submit(championship, ChangeRankingInformation(ranking_id=ranking_id, zones=zones))
    for below in "", "/tv", "/embed", "?at=2024-03-17", f"?unity={championship.unity_ids[0]}":
        page = await page_of(championship, below)
        cells = re.findall('<td class="(position[^"]*)">(.*?)</td>', page)
        said = [(kind, unescape(re.sub("<[^>]*>", "", cell))) for kind, cell in cells]
        if "unity" not in below:
            assert [said[0], said[2], *said[4:]] == [
                ("position promotion", "1, <Cup>"),
                ("position", "3"),
                ("position play-off", "5, Stay"),
                ("position relegation", "6, Down"),
            ]
            legend = re.findall('<ul class="zones">(.*?)</ul>', page)
            told = [re.sub("<[^>]*>", "", one) for one in legend[0].split("</li>")]
            assert told == ["1\N{EN DASH}2 &lt;Cup&gt;", "5 Stay", "5\N{EN DASH}6 Down", " Nobody", ""]
    await submit(championship, ChangeCompetitor(competitor_id=teams["Wales"], tags=("celtic",)))
    for below in "?find=wales", "?tag=celtic", f"?unity={championship.unity_ids[1]}":
        page = await page_of(championship, below)
        assert ("zones" in page, 'class="position"' in page) == (False, True)
    lines = (await championship.get("/table.json")).json["lines"]
    assert [line.get("zone") for line in lines] == [0, 0, None, None, 1, 2]


async def test_form_has_the_last_competitions_the_newest_last(championship: Championship) -> None:
    form = {" ".join(line[2]): line[3] for line in lines_of(await page_of(championship))}
    assert form["Ireland"] == ["5", "5", "5", "1", "4"]


@pytest.mark.parametrize(
    ("kind", "results", "letters"),
    [
        ("football", ["2:1", "0:0", "0:1"], (["W", "D", "L"], ["N", "U", "S"])),
        ("ice-hockey", ["2:1", "3:2 ot", "2:3 so"], (["W", "OTW", "OTL"], ["N", "NnV", "SnV"])),
        ("volleyball", ["3:2", "1:3", "3:0"], (["W", "L", "W"], ["N", "S", "N"])),
        ("chess", ["1-0", "½-½", "0-1"], (["1.0", "0.5", "0.0"], ["0.0", "0.5", "1.0"])),
    ],
)
async def test_form_has_the_letters_of_the_sport_in_the_language_of_the_page(
    championship: Championship, kind: KindName, results: list[str], letters: tuple[list[str], list[str]]
) -> None:
    desk, sides = championship.service.desk, tuple(championship.teams.values())[:2]
    made, _ = await create_ranking(
        desk, championship.live, kinds()[kind], name=kind, participants=sides, actor=OPERATOR
    )
    for number, result in enumerate(results, start=1):
        one = CompetitionId(await desk.new_id())
        played = AddCompetition(competition_id=one, group_id=1, participants=sides, result=result, round=number)
        await submit(championship, played)
    for language, side, expected in zip(("en", "de"), sides, letters, strict=True):
        lines = (await championship.get(f"/table.json?ranking={made.ranking_id}&lang={language}")).json["lines"]
        assert {line["competitor_id"]: line["form"] for line in lines}[str(side)][-3:] == expected


async def test_a_moment_of_the_past_is_shown_and_compared_with_another(championship: Championship) -> None:
    end = championship.live.head.sequence
    since = (await championship.get(f"/table.json?at={end}")).json["since"]
    page = await page_of(championship, f"?at={since}&since={end}")
    assert list(table_of_page(page)) == ["Ireland", "Scotland", "England", "France", "Italy", "Wales"]
    assert lines_of(page)[3][1] == ["▼", "2", "down"]
    at = (await championship.get("/table.json")).json["recorded_at"]
    assert table_of_page(await page_of(championship, f"?at={at[:19]}Z")) == FINAL


async def test_a_day_shows_what_had_taken_place_whenever_it_was_recorded(championship: Championship) -> None:
    """The season is typed in long after it was played."""
    page = await page_of(championship, "?at=2024-03-10")
    assert table_of_page(page) == {"Ireland": 16, "England": 12, "France": 11, "Scotland": 11, "Italy": 7, "Wales": 3}
    assert "After Wales \N{EN DASH} France, 10 March 2024; as known on " in page
    assert 'type="date"' in page
    moved = {" ".join(line[2]): line[1] for line in lines_of(page)}
    assert moved["France"] == ["▲", "2", "up"]
    assert (await championship.get("/table.csv?at=2024-03-10")).body.startswith(b"position,moved")
    before = (await championship.get("/table.json?at=2024-02-01")).json
    assert {line["values"][0] for line in before["lines"]} == {"0"}
    since = (await championship.get("/table.json?at=2024-03-10&since=2024-03-09T15:00:00Z")).json
    assert {line["name"]: line["moved"] for line in since["lines"]}["England"] == 1

    voided = next(i for i, c in championship.live.board.competitions.items() if c.result == "24-45")
    published = championship.live.head.sequence
    await submit(championship, VoidCompetition(competition_id=voided))
    page = await page_of(championship, "?at=2024-03-10")
    assert table_of_page(page)["France"] == 6  # as if it had never counted
    assert "After England \N{EN DASH} Ireland, 9 March 2024; as known on " in page
    assert table_of_page(await page_of(championship, f"?at={published}&on=2024-03-10"))["France"] == 11


async def test_a_timeline_folds_to_the_table_of_each_of_its_moments(championship: Championship) -> None:
    """With a match that is voided, points without one, undone ones, and points that the public does not see."""
    board = championship.live.board
    await submit(championship, VoidCompetition(competition_id=next(iter(board.competitions))))
    await championship.give("Wales", 7)
    await championship.give("Wales", 9)
    wrong = ReversePoints(ranking_id=championship.ranking_id, sequence=championship.live.head.sequence)
    await submit(championship, wrong)
    await submit(championship, ChangePublication(freeze="now"))
    await championship.give("Wales", 100)
    told = (await championship.get("/timeline.json")).json
    assert len(told["moments"]) == told["last"] == len(MATCHES) - 1 + 1
    assert told["moments"][-1][1] == "Points outside any competition"
    names = [name for _, name, _ in told["competitors"]]
    totals = dict.fromkeys(names, 0)
    for (at, _), (_, _, _, deltas) in zip(told["moments"], told["steps"], strict=True):
        for competitor, unity, delta in deltas:
            totals[names[competitor]] += delta if unity == 0 else 0
        table = (await championship.get(f"/table.json?at={at}")).json
        assert {line["name"]: int(line["values"][0]) for line in table["lines"]} == totals
    assert totals["Wales"] == 4 + 7


async def test_what_cannot_be_shown_is_refused_on_a_page(championship: Championship, subtests: pytest.Subtests) -> None:
    for query, status in [
        ("?at=100000", 404),
        ("?ranking=999999", 404),
        ("?unity=999999", 404),
        ("?at=soon", 400),
        ("?other=1", 400),
        ("?at=1&at=2", 400),
        ("?at=2024-03-10&on=2024-03-10", 400),
        ("?on=30", 400),
        ("/competitors/999999", 404),
        ("/competitors/x", 404),
    ]:
        with subtests.test(query):
            answer = await championship.get(query)
            assert answer.status == status
            assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
            page = answer.body.decode()
            assert "Nothing to see here" in page
            assert f'<a href="{championship.address}">Back to the table</a> <a href="/">' in page


async def test_a_board_that_is_not_there_leads_on_in_the_language_of_its_reader(championship: Championship) -> None:
    answer = await championship.stranger.send("GET", "/board/nowhere", headers={"Accept-Language": "fr"})
    page = answer.body.decode()
    assert answer.status == 404
    assert '<html lang="fr">' in page
    assert '<p lang="en">' in page
    assert re.findall(r'<a href="([^"]*)"', page) == ["/"]


async def test_a_parameter_that_cannot_be_read_is_named(championship: Championship) -> None:
    page = (await championship.get("?at=banana&other=1")).body.decode()
    assert "<li><code>at</code>: &#x27;banana&#x27; must be a time of the form" in page
    assert "<li><code>other</code>: " in page


@pytest.mark.parametrize("below", ["", "/tv", "/embed"])
async def test_a_tournament_without_a_ranking_shows_its_name(client: Client, below: str) -> None:
    assert (await client.put("publication.json", {"published": "true"})).status == 200
    board = f"/board/{client.tournament}{below}"
    answer = await client.send("GET", board)
    assert answer.status == 200
    assert "Nothing is shown here at the moment." in answer.body.decode()
    assert (await client.send("GET", f"{board}?ranking=1")).status == 404


async def test_a_unity_is_shown_alone(championship: Championship) -> None:
    _, difference = championship.unity_ids
    table = (await championship.get(f"/table.json?unity={difference}")).json
    margins = dict.fromkeys(TEAMS, 0)
    for match in MATCHES:
        margins[match.home] += match.home_points - match.away_points
        margins[match.away] += match.away_points - match.home_points
    shown = {line["name"]: line["values"] for line in table["lines"]}
    assert shown == {name: [str(margin), str(FINAL[name])] for name, margin in margins.items()}
    assert list(shown.values()) == sorted(shown.values(), key=lambda values: -int(values[0]))
    assert table["columns"] == [
        {"name": "points difference", "short": "PD", "place": 0, "decides": True, "notation": {}},
        {"name": "points", "short": "Pts", "place": 1, "decides": False, "notation": {}},
    ]
    assert "−34" in await page_of(championship, f"?unity={difference}")  # noqa: RUF001 - a real minus


async def test_a_classification_shows_every_criterion(championship: Championship) -> None:
    points, difference = championship.unity_ids
    criteria = (Criterion(unity_id=points), Criterion(unity_id=difference, best=2, among="tied"))
    await submit(championship, DeclareClassification(ranking_id=championship.ranking_id, criteria=criteria))
    table = (await championship.get("/table.json")).json
    names = ["points", "points difference, head-to-head, best 2", "points difference"]
    assert [column["name"] for column in table["columns"]] == names
    assert [column["decides"] for column in table["columns"]] == [True, True, False]
    assert table["lines"][0]["values"] == ["20", None, "84"]


async def test_the_head_of_a_column_leads_to_its_table_and_no_tab_does_the_same(championship: Championship) -> None:
    """Of a ranking that one unity decides, the classification is the table of that unity."""
    points, difference = championship.unity_ids

    async def ways(below: str = "") -> tuple[list[str], list[str]]:
        page = await page_of(championship, below)
        nav = re.search(r'aria-label="Tables of this ranking">(.*?)</nav>', page)
        heads = page[page.index("<thead") : page.index("</thead>")]
        led_to = re.findall(r"<a href=[^>]*unity=(\d+)", heads)
        return re.findall(r"<bdi>(.*?)</bdi>", nav[1] if nav else ""), led_to

    alone, both = (Criterion(unity_id=points),), (Criterion(unity_id=points), Criterion(unity_id=difference))
    await submit(championship, DeclareClassification(ranking_id=championship.ranking_id, criteria=alone))
    for below in ("", f"?unity={points}"):
        assert await ways(below) == ([], [str(difference)])
    assert await ways(f"?unity={difference}") == (["Table", "points difference"], [])
    await submit(championship, DeclareClassification(ranking_id=championship.ranking_id, criteria=both))
    assert await ways() == ([], [str(difference), str(points)])
    assert await ways(f"?unity={points}") == (["Table", "points"], [str(difference)])


async def test_names_are_text_whatever_they_hold(championship: Championship) -> None:
    name = "<script>alert(1)</script> \"'&"
    await submit(championship, ChangeCompetitor(competitor_id=championship.teams["Wales"], name=name))
    page = await page_of(championship)
    assert "<script>alert" not in page
    assert name in unescape(re.sub(r"<[^>]*>", "", page))


async def test_a_name_has_a_dot_only_where_its_competitor_has_a_colour(championship: Championship) -> None:
    await submit(championship, ChangeCompetitor(competitor_id=championship.teams["Wales"], color=None))
    wales, italy = championship.teams["Wales"], championship.teams["Italy"]
    for below, in_title in (("", 0), (f"/competitors/{wales}", 0), (f"/competitors/{italy}", 1)):
        title, _, rest = (await page_of(championship, below)).partition("</h1>")
        assert (title.count('class="dot"'), rest.count('class="dot"')) == (in_title, 5 - in_title)


async def test_totals_beyond_the_numbers_of_a_browser_are_exact(championship: Championship) -> None:
    for _ in range(3):
        await championship.give("Wales", 2_147_483_647)
    assert (await championship.get("/table.json")).json["lines"][0]["values"][0] == "6442450945"
    assert "6\u202f442\u202f450\u202f945" in await page_of(championship)


async def test_a_page_gives_what_to_write_into_another_page(championship: Championship) -> None:
    page = (await championship.get(f"?unity={championship.unity_ids[0]}", Host="cup.example")).body.decode()
    frame = re.search(r"<textarea[^>]*>(.*?)</textarea>", page)
    assert frame
    address = f"http://cup.example{championship.address}/embed?unity={championship.unity_ids[0]}"
    assert unescape(frame[1]).startswith(f'<iframe src="{address}" title="Championship, ')
    assert unescape(frame[1]).endswith(' width="100%" height="558"></iframe>')


# ── Lines ───────────────────────────────────────────────────────────────────────────────────────────────


async def test_what_belongs_in_the_head_of_a_page_is_nowhere_else(
    championship: Championship, subtests: pytest.Subtests
) -> None:
    for below in ["", "/tv", "/embed", "/leaders"]:
        with subtests.test(below):
            head, body = (await page_of(championship, below)).split("<body")
            assert "<meta" in head
            assert not re.findall(r"<(?:meta|title|link|base)\b", body)


async def test_a_page_names_the_lines_above_and_below_it(championship: Championship) -> None:
    page = await page_of(championship, "/tv?offset=2")
    assert [line[0] for line in lines_of(page)] == [["3"], ["4"], ["5"], ["6"]]
    assert "Previous lines" in page
    assert "hidden>Next lines" in page
    assert "3–6 of 6" in page  # noqa: RUF001
    assert f'http-equiv="refresh" content="15; url={championship.address}/tv"' in page


async def test_a_large_screen_says_which_page_it_shows(championship: Championship) -> None:
    await championship.enroll([f"Guest {number}" for number in range(20)])
    assert "Page 1 of 3, 1–12 of 26" in await page_of(championship, "/tv")  # noqa: RUF001
    assert "Page 3 of 3, 25–26 of 26" in await page_of(championship, "/tv?offset=24")  # noqa: RUF001


async def test_a_board_of_many_has_pages_that_lead_to_each_other(championship: Championship) -> None:
    await championship.enroll([f"Guest {number:03}" for number in range(244)])
    first, *rest = [await page_of(championship, f"?offset={offset}" if offset else "") for offset in (0, 100, 200)]
    assert [len(lines_of(page)) for page in (first, *rest)] == [100, 100, 50]
    address = championship.address
    assert f'href="{address}?offset=100">Next lines' in first
    assert f'href="{address}">Previous lines' in rest[0]
    assert f'href="{address}?offset=100">Previous lines' in rest[1]


async def test_a_race_is_drawn_of_those_who_lead_and_refused_to_nobody_with_an_error(
    championship: Championship, bounds: Bounds
) -> None:
    await championship.enroll([f"Guest {number:03}" for number in range(240)])
    race = (await championship.get("/race.json")).json
    assert [name for _, name, _ in race["competitors"]][:6] == list(FINAL)
    assert len(race["competitors"]) == 40
    assert "data-races" in await page_of(championship)
    bounds(SERIES_COMPETITORS_MAX=200)
    await championship.give("Wales", 1)
    assert (await championship.get("/race.json")).status == 422
    assert "data-races" not in await page_of(championship)


async def test_where_nobody_has_points_there_is_no_race(championship: Championship) -> None:
    desk = championship.service.desk
    command = CreateRanking(
        ranking_id=RankingId(await desk.new_id()),
        name="Cup",
        participants=tuple(championship.teams.values()),
        main_unity_id=UnityId(await desk.new_id()),
        main_unity_name="points",
    )
    await submit(championship, command)
    race = await championship.get(f"/race.json?ranking={command.ranking_id}")
    assert (race.status, race.json["competitors"], race.json["sequences"]) == (200, [], [])
    assert "data-races" not in await page_of(championship, f"?ranking={command.ranking_id}")


async def test_lines_can_be_asked_for_in_parts(championship: Championship) -> None:
    table = (await championship.get("/table.json?offset=4&limit=1")).json
    assert [line["name"] for line in table["lines"]] == ["Italy"]
    assert table["count"] == 6
    assert (await championship.get("/table.json?limit=501")).status == 400


async def test_a_time_is_shown_as_one_on_every_page(championship: Championship) -> None:
    ranking_id, ireland = championship.ranking_id, championship.teams["Ireland"]
    unity_id = UnityId(await championship.service.desk.new_id())
    await submit(championship, AddUnity(ranking_id=ranking_id, unity_id=unity_id, name="relay", time="ms"))
    await submit(championship, AddPoints(ranking_id=ranking_id, deltas=(Delta(ireland, unity_id, 7_397_400),)))
    asked = f"unity={unity_id}"
    table = (await championship.get(f"/table.json?{asked}")).json
    assert (table["columns"][0]["notation"], table["lines"][0]["values"][0]) == ({"time": "ms"}, "7397400")
    rows = list(csv.reader(io.StringIO((await championship.get(f"/table.csv?{asked}")).body.decode(), newline="")))
    assert [row[4] for row in rows[1:]] == ["2:03:17.4", *["0:00"] * 5]
    excel = (await championship.get(f"/table.csv?{asked}&format=excel")).body.decode()
    assert excel.startswith("\ufeffposition;moved;competitor_id;competitor;relay;")
    assert [line.split(";")[4] for line in excel.splitlines()[1:]] == ["2:03:17,4", *["0:00"] * 5]
    for below in (f"?{asked}", f"/tv?{asked}", "", f"/competitors/{ireland}?{asked}"):
        assert "2:03:17.4" in await page_of(championship, below)
    assert (await championship.get(f"/race.json?{asked}")).json["notation"] == {"time": "ms"}


async def test_the_csv_has_every_line_and_no_formula(championship: Championship) -> None:
    name = "=HYPERLINK(1)"
    await submit(championship, ChangeCompetitor(competitor_id=championship.teams["Wales"], name=name))
    answer = await championship.get("/table.csv")
    rows = list(csv.reader(io.StringIO(answer.body.decode(), newline="")))
    assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
    assert rows[0] == ["position", "moved", "competitor_id", "competitor", "points", "points difference"]
    assert rows[1][0::2] == ["1", str(championship.teams["Ireland"]), "20"]
    assert rows[1][-1] == "84"
    assert rows[-1][3] == f"'{name}"
    excel = (await championship.get("/table.csv?format=excel")).body.decode("utf-8-sig")
    assert list(csv.reader(io.StringIO(excel, newline=""), delimiter=";")) == rows
    assert (await championship.get("/table.csv?format=ods")).status == 400
    assert len(rows) == 7


# ── Looking for competitors ─────────────────────────────────────────────────────────────────────────────


async def test_a_search_finds_names_and_keeps_places_and_a_tag_counts_them_again(championship: Championship) -> None:
    for name, tags in (("Ireland", ("North",)), ("Scotland", ("North", "Isle")), ("Wales", ("Isle",))):
        await submit(championship, ChangeCompetitor(competitor_id=championship.teams[name], tags=tags))

    async def found(below: str) -> list[tuple[str, int]]:
        table = (await championship.get(f"/table.json?{below}")).json
        assert table["count"] == len(table["lines"])
        return [(line["name"], line["position"]) for line in table["lines"]]

    assert await found("find=LAND") == [("Ireland", 1), ("England", 3), ("Scotland", 4)]
    assert await found("find=isle") == [("Scotland", 4), ("Wales", 6)]  # a tag
    assert await found("find=nobody") == []
    address = f"{championship.address}?line={championship.teams['Wales']}#line-{championship.teams['Wales']}"
    assert f'href="{address}">Show in the table' in await page_of(championship, "?find=wales")
    assert await found("tag=Isle") == [("Scotland", 1), ("Wales", 2)]
    assert await found("tag=North&find=scot") == [("Scotland", 2)]
    assert await found("tag=&find=") == [(name, place) for place, name in enumerate(FINAL, start=1)]
    points, _ = championship.unity_ids
    assert await found(f"tag=Isle&unity={points}") == [("Scotland", 1), ("Wales", 2)]
    assert await found(f"find=land&unity={points}&at=12") != []
    page = await page_of(championship, "?tag=Isle")
    assert lines_of(page)[0][1] == ["–", "unchanged"]  # noqa: RUF001
    assert "in <bdi>Isle</bdi>" in page
    assert "<h1><bdi>Championship, Isle</bdi></h1>" in await page_of(championship, "/tv?tag=Isle")
    assert re.findall(r"<option[^>]*>(.*?)</option>", page[page.index('role="search"') :])[:3] == [
        "All",
        "Isle",
        "North",
    ]


async def test_a_search_ignores_accents_and_a_tag_may_be_in_any_form_of_unicode(championship: Championship) -> None:
    name, tag = "\u00c5ngle terre\u0301", "B\u00e9l"
    change = ChangeCompetitor(competitor_id=championship.teams["England"], name=name, tags=(tag,))
    await submit(championship, change)
    for text in ("angle", "TERRE", "\u00e5NGLE", "a\u030angle", "e terr\u00e9", "bel", "be\u0301l"):
        lines = (await championship.get(f"/table.json?find={quote(text)}")).json["lines"]
        assert [(line["name"], line["position"]) for line in lines] == [(name, 3)], text
    lines = (await championship.get(f"/table.json?tag={quote(normalize('NFD', tag))}")).json["lines"]
    assert [(line["name"], line["position"]) for line in lines] == [(name, 1)]


async def test_a_line_has_an_address_that_shows_its_page(championship: Championship) -> None:
    await championship.enroll([f"Guest {number:03}" for number in range(230)])
    points, _ = championship.unity_ids
    teams = championship.teams
    for name, offset in (("Ireland", 0), ("Guest 150", 100), ("Guest 229", 200)):
        for below in (f"?line={teams[name]}", f"?line={teams[name]}&unity={points}"):
            page = await page_of(championship, below)
            assert f'data-offset="{offset}"' in page
            row = re.search(r'<tr id="line-(\d+)" class="here"', page)
            assert row
            assert int(row[1]) == teams[name]
    page = await page_of(championship, f"?line={teams['France']}")
    assert '<meta name="description" content="2 France, 15 points">' in page
    explained = await page_of(championship, f"/competitors/{teams['France']}")
    assert f'href="{championship.address}?line={teams["France"]}#line-{teams["France"]}">Back to the table' in explained
    assert 'data-offset="0"' in await page_of(championship, "?line=999999")


async def test_a_ranking_of_too_many_is_not_searched(championship: Championship, bounds: Bounds) -> None:
    bounds(SEARCHED_COMPETITORS_MAX=5)
    assert 'role="search"' not in await page_of(championship)
    assert (await championship.get("?find=x")).status == 422


# ── Competitions ────────────────────────────────────────────────────────────────────────────────────────


def latest_of(page: str) -> str:
    """The words above the table."""
    latest = re.search(r'<p id="latest".*?</p>', page)
    assert latest
    return " ".join(re.sub(r"<[^>]*>", " ", latest[0]).split())


def competitions_of(page: str, title: str) -> list[str]:
    """The words of each competition of a list."""
    part = re.search(rf"<h2>{title}</h2><ol>(.*?)</ol>", page)
    assert part
    return [" ".join(unescape(re.sub(r"<[^>]*>", " ", one)).split()) for one in re.findall(r"<li>(.*?)</li>", part[1])]


async def test_the_last_result_is_seen_first_and_marks_its_lines(championship: Championship) -> None:
    page = await page_of(championship)
    assert latest_of(page) == "Latest France 33-31 England France +4, England +2"
    assert page.index('id="latest"') < page.index("<table")
    lines = (await championship.get("/table.json")).json["lines"]
    assert {line["name"]: line["gained"] for line in lines} == GAINED
    results = competitions_of(page, "Results")
    assert len(results) == 6
    assert results[1].startswith("Ireland 17-13 Scotland Ireland +4, Scotland +1 16 March 2024, 16:45 UTC , Dublin")
    assert competitions_of(page, "Fixtures") == []


def test_a_performance_that_is_what_was_given_is_said_once() -> None:
    sides = [SideShape("1", "Ann", False, "9.81", "9.81"), SideShape("2", "Bob", False, "+8", "9.9")]
    race = ShownCompetitionShape(
        id="3",
        took_place=datetime(2025, 2, 2, tzinfo=UTC),
        entered_late=None,
        location="",
        result=None,
        sides=sides,
        others=1,
    )
    page = str(latest_part(ENGLISH, ShownCompetitionsShape(latest=race, late=None, results=[], fixtures=[]), str))
    assert " ".join(re.sub(r"<[^>]*>", " ", page).split()) == "Latest Ann 9.81, Bob 9.9, and 1 more Bob +8"


async def test_a_competition_is_a_fixture_until_it_gives_points(championship: Championship) -> None:
    desk, teams = championship.service.desk, championship.teams
    cup, final = CompetitionId(await desk.new_id()), CompetitionId(await desk.new_id())
    sides = teams["Wales"], teams["Italy"]
    later = datetime(2025, 2, 2, tzinfo=UTC)
    await submit(championship, AddCompetition(competition_id=final, group_id=2, participants=sides, started_at=later))
    earlier = later - timedelta(days=1)
    await submit(championship, AddCompetition(competition_id=cup, group_id=1, participants=sides, started_at=earlier))
    expected = ["Wales – Italy 1 February 2025", "Wales – Italy 2 February 2025"]  # noqa: RUF001
    assert competitions_of(await page_of(championship), "Fixtures") == expected
    await championship.give("Wales", 4, cup)
    page = await page_of(championship)
    assert competitions_of(page, "Fixtures") == expected[1:]
    assert competitions_of(page, "Results")[0].startswith("Wales – Italy Wales +4 1 February 2025")  # noqa: RUF001
    await submit(championship, VoidCompetition(competition_id=cup))
    assert competitions_of(await page_of(championship), "Results")[0].startswith("France 33-31 England")


async def test_what_gave_points_in_another_ranking_has_taken_place_and_is_no_fixture(
    championship: Championship,
) -> None:
    """Unless they are undone, or nobody may see that ranking."""
    desk, teams = championship.service.desk, championship.teams
    cup = CreateRanking(
        ranking_id=RankingId(await desk.new_id()),
        name="Cup",
        participants=tuple(teams.values()),
        main_unity_id=UnityId(await desk.new_id()),
        main_unity_name="points",
    )
    await submit(championship, cup)
    match, final = [CompetitionId(await desk.new_id()) for _ in range(2)]
    sides, day = (teams["Wales"], teams["Italy"]), datetime(2025, 2, 1, tzinfo=UTC)
    for one, date in ((match, day), (final, day + timedelta(days=30))):
        await submit(championship, AddCompetition(competition_id=one, group_id=1, participants=sides, started_at=date))
    expected = ["Wales – Italy 1 February 2025", "Wales – Italy 3 March 2025"]  # noqa: RUF001
    address = f"?ranking={championship.ranking_id}"
    assert competitions_of(await page_of(championship, address), "Fixtures") == expected

    delta = Delta(teams["Wales"], cup.main_unity_id, 3)
    added = await submit(championship, AddPoints(ranking_id=cup.ranking_id, deltas=(delta,), competition_id=match))
    assert competitions_of(await page_of(championship, address), "Fixtures") == expected[1:]
    assert competitions_of(await page_of(championship, f"{address}&at=2025-02-02"), "Fixtures") == expected[1:]
    assert competitions_of(await page_of(championship, f"{address}&at=2025-01-02"), "Fixtures") == expected
    assert competitions_of(await page_of(championship, f"?ranking={cup.ranking_id}"), "Fixtures") == expected[1:]

    undo = ReversePoints(ranking_id=cup.ranking_id, sequence=added.last_sequence)
    undone = await submit(championship, undo)
    assert competitions_of(await page_of(championship, address), "Fixtures") == expected
    await submit(championship, ReversePoints(ranking_id=cup.ranking_id, sequence=undone.last_sequence))
    assert competitions_of(await page_of(championship, address), "Fixtures") == expected[1:]

    secret, only = RankingId(await desk.new_id()), UnityId(await desk.new_id())
    wales = (teams["Wales"],)
    await submit(
        championship,
        CreateRanking(
            ranking_id=secret, name="Secret", participants=wales, main_unity_id=only, main_unity_name="points"
        ),
    )
    await submit(championship, ChangeVisibility(ranking_id=secret, hidden=True))
    delta = Delta(teams["Wales"], only, 3)
    await submit(championship, AddPoints(ranking_id=secret, deltas=(delta,), competition_id=final))
    assert competitions_of(await page_of(championship, address), "Fixtures") == expected[1:]


async def test_on_a_day_of_the_past_what_came_later_is_a_fixture(championship: Championship) -> None:
    page = await page_of(championship, "?at=2024-03-10")
    assert [text[:14] for text in competitions_of(page, "Fixtures")] == [
        "Wales – Italy ",  # noqa: RUF001
        "Ireland – Scot",  # noqa: RUF001
        "France – Engla",  # noqa: RUF001
    ]
    assert competitions_of(page, "Results")[0].startswith("Wales 24-45 France")
    assert "33-31" not in page


async def test_a_fixture_that_may_be_one_of_a_hidden_ranking_is_not_shown(championship: Championship) -> None:
    desk, teams = championship.service.desk, championship.teams
    hidden = CreateRanking(
        ranking_id=RankingId(await desk.new_id()),
        name="Secret cup",
        participants=(teams["Wales"], teams["Italy"]),
        main_unity_id=UnityId(await desk.new_id()),
        main_unity_name="points",
    )
    await submit(championship, hidden)
    for sides in (("Wales", "Italy"), ("Wales", "France")):
        one = CompetitionId(await desk.new_id())
        who = tuple(teams[name] for name in sides)
        await submit(championship, AddCompetition(competition_id=one, group_id=1, participants=who))
    assert len(competitions_of(await page_of(championship), "Fixtures")) == 2
    await submit(championship, ChangeVisibility(ranking_id=hidden.ranking_id, hidden=True))
    (fixture,) = competitions_of(await page_of(championship), "Fixtures")
    assert fixture.startswith("Wales – France")  # noqa: RUF001


# ── Explanations ────────────────────────────────────────────────────────────────────────────────────────


async def test_every_row_leads_to_its_explanation(championship: Championship) -> None:
    page = await page_of(championship)
    links = re.findall(r'href="(/board/[^"]*/competitors/\d+)"', page)
    assert len(links) == 6
    explained = (await championship.stranger.send("GET", links[1])).body.decode()
    assert "France" in explained
    assert "France – Ireland 17-38, Marseille" in explained  # noqa: RUF001
    assert "passed England" in explained
    assert "passed Scotland" in explained
    assert "4 → 2" in explained
    assert "5 changes to the total: +15, 0. Passed others" in explained
    own, _, others = explained.partition("When only others moved")
    assert own.index("16 March 2024") < own.index("2 February 2024") < own.index("List of competitors changed")
    assert "Scotland – France 16-20, Edinburgh, division 2" in own  # noqa: RUF001
    assert "Wales – Italy" in others  # noqa: RUF001


async def test_an_explanation_of_a_day_comes_to_the_place_of_that_day(championship: Championship) -> None:
    await championship.give("France", 50)
    page = await page_of(championship, f"/competitors/{championship.teams['France']}?at=2024-03-10")
    assert '3rd, level with Scotland, as of <time datetime="2024-03-10">10 March 2024</time></p>' in page
    assert "4 changes to the total: +11, 0." in page
    assert page.index("Wales \N{EN DASH} France 24-45") < page.index("France \N{EN DASH} Ireland 17-38")
    assert "France \N{EN DASH} England" not in page


async def test_lines_of_a_day_are_not_explained_in_long_logs(championship: Championship, bounds: Bounds) -> None:
    bounds(TIMELINE_EVENTS_MAX=championship.live.head.sequence - 1)
    below = f"/competitors/{championship.teams['France']}"
    refused = await championship.get(f"{below}?on=2024-03-10")
    assert (refused.status, refused.headers["Content-Type"]) == (422, "text/html; charset=utf-8")
    assert "Lines by date can be explained in tournaments of at most" in refused.body.decode()
    assert "changes to the total" in await page_of(championship, below)


async def test_leaders_are_shown_by_both_clocks(championship: Championship) -> None:
    assert '/leaders">Leaders</a>' in await page_of(championship)
    page = await page_of(championship, "/leaders")
    rows = [" ".join(re.sub(r"<[^>]*>", " ", row).split()) for row in re.findall(r"<tr>.*?</tr>", page)]
    assert rows[:8] == [
        "Competitor Duration Competitions Spells Longest",
        "Ireland 42 days 14 2 34 days",
        "England 22 h 15 min 1 1 22 h 15 min",
        "Scotland 2 h 30 min 1 1 2 h 30 min",
        "Competitor Since Until",
        "Ireland 11 February 2024, 15:00 UTC",
        "England 10 February 2024, 16:45 UTC 11 February 2024, 15:00 UTC",
        "Ireland Scotland 10 February 2024, 14:15 UTC 10 February 2024, 16:45 UTC",
    ]
    assert "Where the published leaders differ" in page
    published = await page_of(championship, "/leaders?clock=log")
    assert "Leaders in <bdi>points</bdi>, as published, up to " in published
    assert (await championship.get("/leaders?clock=moon")).status == 400


async def test_a_race_is_run_by_date(championship: Championship) -> None:
    """A match that was played before all others is typed in last."""
    early = CompetitionId(await championship.service.desk.new_id())
    day = datetime(2024, 1, 31, 20, tzinfo=UTC)
    await submit(championship, AddCompetition(competition_id=early, group_id=1, started_at=day))
    await championship.give("Wales", 2, early)
    race = (await championship.get("/race.json")).json
    assert race["clocks"] == sorted(race["clocks"])
    assert race["clocks"][0] == day.timestamp() * 1_000
    assert race["sequences"] == [*range(1, len(MATCHES) + 2)]
    row = [one[1] for one in race["competitors"]].index("Wales")
    assert (race["totals"][row][0], race["totals"][row][-1]) == (2, 6)


async def test_a_race_leads_to_the_moment_of_points_without_a_date(championship: Championship) -> None:
    """They took place when they were recorded, mostly within a second."""
    await championship.give("Wales", 2)
    last = (await championship.get("/race.json")).json["clocks"][-1]
    *_, (moment, _) = (await championship.get("/timeline.json")).json["moments"]
    assert last == int(datetime.fromisoformat(moment).timestamp() * 1_000)
    at = f"{datetime.fromtimestamp(last / 1_000, UTC):%Y-%m-%dT%H:%M:%S}.{last % 1_000:03}Z"
    shown, now = [(await championship.get(f"/table.json{query}")).json["lines"] for query in (f"?at={at}", "")]
    assert [line["values"] for line in shown] == [line["values"] for line in now]


async def test_movement_within_a_tag_is_among_those_who_had_it_then(championship: Championship) -> None:
    first, second, third = list(championship.teams.values())[:3]
    for one in first, third:
        await submit(championship, ChangeCompetitor(competitor_id=one, tags=("junior",)))
    since = championship.live.head.sequence
    await submit(championship, ChangeCompetitor(competitor_id=first, tags=()))
    await submit(championship, ChangeCompetitor(competitor_id=second, tags=("junior",)))
    ranking = f"rankings/{championship.ranking_id}"
    unity = championship.live.board.rankings[championship.ranking_id].unities
    query = f"unity={next(iter(unity))}&tag=junior&since={since}"
    shown = (await championship.get(f"/table.json?ranking={championship.ranking_id}&{query}")).json["lines"]
    asked = (await championship.get(f"/{ranking}/standings.json?{query}&top=9")).json["standings"]["standings"]
    assert [line["moved"] for line in shown] == [line["moved"] for line in asked]


async def test_an_explanation_has_pages_from_the_newest_to_the_oldest(
    championship: Championship, monkeypatch: pytest.MonkeyPatch
) -> None:
    below, row = f"/competitors/{championship.teams['France']}", r'<tr><td class="when">.*?</tr>'
    whole = re.findall(row, await page_of(championship, below))
    for name, most in (
        ("projections.answers.about_competitor.STEPS_SHOWN", 4),
        ("projections.answers.explaining.SCANNED_EVENTS_MAX", 9),
    ):
        await championship.give("Wales", 0)  # the page is made again
        with monkeypatch.context() as patched:
            patched.setattr(name, most)
            found, further, pages = [], below, 0
            while further:
                page = await page_of(championship, further)
                found += re.findall(row, page)
                link = re.search(r'href="/board/[^/]*(/competitors/[^"]*)">Earlier steps', page)
                further, pages = link[1] if link else "", pages + 1
            assert pages > 2
            assert sorted(found) == sorted(whole)


# ── The public end ──────────────────────────────────────────────────────────────────────────────────────


async def test_what_is_not_published_is_as_what_does_not_exist(championship: Championship) -> None:
    nothing = await championship.stranger.send("GET", "/board/nothing")
    await submit(championship, ChangePublication(published=False))
    hidden = await championship.get()
    assert (hidden.status, nothing.status) == (404, 404)
    slug = str(championship.live.slug)
    assert hidden.body.decode().replace(slug, "nothing") == nothing.body.decode()
    for below in ("/tv", "/embed", "/table.json", "/table.csv", f"/competitors/{championship.teams['Wales']}"):
        assert (await championship.get(below)).status == 404


async def test_a_freeze_holds_every_answer_and_a_reveal_moves_it_on(championship: Championship) -> None:
    wales, ranking_id = championship.teams["Wales"], championship.ranking_id
    below = (
        *("", "/tv", "/embed", "/table.json", "/table.csv", "/race.json", f"/competitors/{wales}"),
        f"/passage.json?ranking={ranking_id}&at={championship.live.head.sequence}",
    )
    await submit(championship, ChangePublication(freeze="now"))
    held = {path: await championship.get(path) for path in below}
    assert {answer.status for answer in held.values()} == {200}
    beyond = await championship.give("Wales", 100)
    fixture = CompetitionId(await championship.service.desk.new_id())
    await submit(championship, AddCompetition(competition_id=fixture, group_id=9, participants=(wales,)))
    await submit(championship, ChangeCompetitor(competitor_id=wales, name="Cymru"))
    for path, answer in held.items():
        now = await championship.get(path)
        assert (now.body, now.headers["ETag"]) == (answer.body, answer.headers["ETag"]), path
    for path in (f"?at={beyond}", f"/passage.json?ranking={ranking_id}&at={beyond}", f"?since={beyond}"):
        assert (await championship.get(path)).status == 404
    await submit(championship, ChangePublication(reveal="all"))
    assert table_of_page(await page_of(championship))["Cymru"] == 104


async def test_a_table_says_whether_it_is_frozen_or_final_and_of_the_past_nothing(championship: Championship) -> None:
    end = championship.live.head.sequence
    at_30 = "After event 30 of {}; latest by then: Italy \N{EN DASH} Scotland, 9 March 2024; as known on "

    async def said(below: str = "") -> str:
        found = re.search(r'id="moment">(.*?)<time', await page_of(championship, below))
        assert found
        return found[1]

    assert await said() == "As of "
    await submit(championship, ChangePublication(freeze="now"))
    await championship.give("Wales", 1)
    assert (await said(), await said("?at=30")) == ("Frozen since ", at_30.format(end))
    assert (await championship.get("/table.json")).json["state"] == "frozen"
    await submit(championship, CloseRanking(ranking_id=championship.ranking_id))
    assert await said() == "Frozen since "
    await submit(championship, ChangePublication(reveal="all"))
    assert (await said(), await said("?at=30")) == ("Final, as of ", at_30.format(end + 4))


# ── Caching ─────────────────────────────────────────────────────────────────────────────────────────────


async def test_an_answer_has_a_tag_until_something_happens(championship: Championship) -> None:
    for path in ("", "/table.json"):
        first = await championship.get(path)
        again = await championship.get(path, **{"If-None-Match": first.headers["ETag"]})
        assert (again.status, again.body) == (304, b"")
        await championship.give("Wales", 1)
        assert (await championship.get(path, **{"If-None-Match": first.headers["ETag"]})).status == 200


async def test_the_first_view_of_a_large_board_is_less_than_100_kb(championship: Championship) -> None:
    """A hundred lines with long names; with all that the page loads at once."""
    await championship.enroll([f"The {n}th competitor, of a club with a long name" for n in range(120)])
    page = await championship.get("", **{"Accept-Encoding": "gzip"})
    files = sum(size for name, size in static_files().sizes.items() if not name.startswith("uplot/"))
    assert len(lines_of(page.body.decode())) == 100
    assert len(gzip.compress(page.body)) + files < 100_000


async def test_a_chess_tournament_can_be_fetched_as_a_report_without_the_ids_of_players(
    championship: Championship,
) -> None:
    refused = await championship.get("/report.trf")
    assert (refused.status, b"is not that of results" in refused.body) == (422, True)
    _, brought = read_file((FILES / "swiss.trf").read_bytes(), "swiss.trf")
    ended, nothing = asyncio.Event(), lambda _done, _of: None
    await Bringing(brought).bring(
        championship.service.desk, championship.live, actor=OPERATOR, stop=ended, progress=nothing
    )
    ranking_id = max(championship.live.board.rankings, key=lambda one: championship.live.board.rankings[one].number)
    answer = await championship.get(f"/report.trf?ranking={ranking_id}")
    assert b"2170" not in answer.body
    _, again = read_file(answer.body, "again.trf")
    assert [one.name for one in again.entrants] == [one.name for one in brought.entrants]
    assert [one.score for one in again.meetings] == [one.score for one in brought.meetings]
