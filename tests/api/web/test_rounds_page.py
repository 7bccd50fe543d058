"""The page of all rounds of a ranking, on its board, and the calendar of its matches."""

import json
import re
from datetime import UTC, datetime
from html import unescape
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from api.interface.kinds import kinds
from api.web.calendar import CALENDAR_LINE_BYTES_MAX, _escaped, _folded
from tests.api.public_boards import Board, change
from tests.api.scored import League
from tests.api.web.test_console import words
from tests.service import Client, create_ranking, listed, register


async def test_a_board_shows_every_round_of_its_ranking_and_no_match_of_others(
    league: League, board: Board, client: Client
) -> None:
    await league.score()
    ajax, bari, celtic = league.ids
    await league.play(ajax, bari, "2:1", round=1, started_at="2026-05-02 15:00:00")
    await league.play(bari, celtic, "", round=2, started_at="2026-05-09 15:00:00", group_id=1)
    await league.play(bari, ajax, "", round=2, started_at="2026-05-09 15:00:00", group_id=2)
    await league.play(ajax, celtic, "", round=3, started_at="2026-05-16 15:00:00")
    others = await register(client, "Dynamo", "Everton")
    hidden = await create_ranking(client, [*others, ajax, celtic], name="Secret")
    await client.put(f"rankings/{hidden['id']}/visibility.json", {"hidden": "true"})
    await league.play(*others, "1:1", round=2)
    await change(client, published="true")

    async def page(query: str = "") -> Any:
        answer = await board.get(f"rounds?ranking={league.ranking_id}{query}")
        assert answer.status == 200, answer.body
        return words(answer.body.decode())

    current = await page()
    for said in "Round 2", "Division 1", "Bari \N{EN DASH} Celtic", "Division 2":
        assert said in current
    assert "Dynamo" not in current
    first = await page("&round=1&lang=de")
    for said in "Runde 1", "Ergebnisse und Spielplan", "Ajax 2:1 Bari", "Ajax +3, Bari 0", "Alle Runden":
        assert said in first
    for strange in "round=9", "round=3":  # all teams of the third are in a ranking that is hidden
        assert (await board.get(f"rounds?ranking={league.ranking_id}&{strange}")).status == 404
    table = await client.send("GET", f"/board/{board.slug}?ranking={league.ranking_id}")
    assert f"/rounds?ranking={league.ranking_id}" in table.body.decode()


async def test_a_cross_table_has_each_match_in_the_row_of_who_was_named_first_or_of_both(
    league: League, board: Board, client: Client
) -> None:
    await league.score()
    ajax, bari, celtic = league.ids
    await league.play(ajax, bari, "2:1")
    await league.play(bari, ajax, "0:3")
    await league.play(celtic, ajax, "1:4")
    await league.play(bari, celtic, "")
    await league.play(ajax, bari, "5:5")
    await change(client, published="true")

    async def cells() -> list[list[str]]:
        page = (await board.get(f"cross?ranking={league.ranking_id}")).body.decode()
        rows = re.findall(r"<tr>(.*?)</tr>", page.partition("<tbody>")[2])
        return [[words(cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)] for row in rows]

    middle = "\N{MIDDLE DOT}"
    assert await cells() == [
        ["1 Ajax", "", "2:1 5:5", "4:1"],
        ["2 Bari", "0:3", "", middle],
        ["3 Celtic", "1:4", middle, ""],
    ]
    await league.score(None)
    assert (await cells())[0] == ["1 Ajax", "", "2:1 5:5", "4:1"]


async def test_a_cross_table_and_opponents_say_for_whom_a_match_does_not_count(
    league: League, board: Board, client: Client
) -> None:
    await league.score()
    ajax, bari, celtic = league.ids
    await change(client, published="true")
    match = await league.play(ajax, bari, "2:1")
    returned = [await league.play(ajax, celtic, "3:0"), await league.play(celtic, ajax, "1:1")]
    for one, who in ((match, ajax), (returned[0], celtic)):
        assert (await client.put(f"competitions/{one}/strike.json", {"competitors": who})).status == 200

    async def rows(below: str) -> list[str]:
        page = (await board.get(f"{below}?ranking={league.ranking_id}")).body.decode()
        (body,) = re.findall(r"<tbody>(.*?)</tbody>", page.partition("cross" if below == "cross" else "opponents")[2])[
            :1
        ]
        return [words(row) for row in re.findall(r"<tr>(.*?)</tr>", body)]

    unread = " Does not count"
    assert await rows(f"competitors/{ajax}") == [f"Bari 2:1{unread}", "Celtic 3:0 1:1"]
    assert await rows(f"competitors/{bari}") == ["Ajax 1:2"]
    assert await rows(f"competitors/{celtic}") == [f"Ajax 0:3{unread} 1:1"]
    crossed = {row[2:6]: row for row in await rows("cross")}
    assert crossed["Ajax"].count(unread) == 2  # the return match is in the other row
    assert f"2:1{unread}" in crossed["Ajax"]
    assert unread not in crossed["Bari"] + crossed["Celt"]


async def test_a_cross_table_of_races_says_that_it_is_of_two(league: League, board: Board, client: Client) -> None:
    await change(client, published="true")
    await league.score({"unity": league.points, "from": "place"}, order="low")

    async def said(lang: str = "en") -> str:
        return words((await board.get(f"cross?ranking={league.ranking_id}&lang={lang}")).body.decode())

    assert "have been entered yet" in await said()
    result = json.dumps({str(one): str(place) for place, one in enumerate(league.ids, 1)})
    race = {"group_id": 1, "participants": listed(league.ids), "result": result}
    assert (await client.post("competitions.json", race)).status == 200
    for lang, text in (
        ("en", "The cross table shows only competitions between two; there are none here."),
        ("de", "zeigt nur Wettkämpfe, an denen genau zwei teilnehmen; hier gibt es keine."),
        ("fr", "ne montre que les épreuves à deux ; il n\N{RIGHT SINGLE QUOTATION MARK}y en a pas ici."),
        ("es", "solo muestra competiciones entre dos; aquí no hay."),
    ):
        assert text in await said(lang)
        assert "entered yet" not in await said(lang)


async def test_the_columns_of_a_table_are_those_of_its_sport_in_their_order(board: Board, client: Client) -> None:
    ids = await register(client, "Ajax", "Bari")
    cup = (await create_ranking(client, ids, name="Cup", main_unity_name="points"))["id"]
    for name in "goals against", "played":
        assert (await client.post(f"rankings/{cup}/unities.json", {"name": name})).status == 200
    await change(client, published="true")
    page = (await client.send("GET", f"/board/{board.slug}?ranking={cup}&lang=fr")).body.decode()
    head = page[page.index("<thead") : page.index("</thead>")]
    assert re.findall(r'<abbr title="([^"]+)">([^<]+)</abbr>', head)[1:] == [
        ("jou\N{LATIN SMALL LETTER E WITH ACUTE}s", "J"),
        ("buts contre", "BC"),
        ("points", "Pts"),
    ]
    columns = (await board.get(f"table.json?ranking={cup}&lang=fr")).json["columns"]
    assert [(one["short"], one["place"]) for one in columns] == [("Pts", 2), ("BC", 1), ("J", 0)]
    assert ">Nom</th>" in head
    for name in {unity.name for unity in kinds()["football"].unities} - {"points", "goals against", "played"}:
        assert (await client.post(f"rankings/{cup}/unities.json", {"name": name})).status == 200
    for lang, (team, matches, coming, none) in {
        "en": ("Team", "Matches", "Fixtures", "No matches have been entered yet."),
        "de": ("Mannschaft", "Spiele", "Nächste Spiele", "Noch sind keine Spiele eingetragen."),
        "fr": ("Équipe", "Matchs", "Prochains matchs", "encore saisi pour les matchs."),
        "es": ("Equipo", "Partidos", "Próximos partidos", "Todavía no hay partidos."),
    }.items():
        page = (await client.send("GET", f"/board/{board.slug}?ranking={cup}&lang={lang}")).body.decode()
        for said in f">{team}</th>", f'aria-label="{matches}"', f">{coming}</h2>":
            assert said in page
        for below in "rounds", "cross":
            assert none in words((await board.get(f"{below}?ranking={cup}&lang={lang}")).body.decode())


async def test_recent_results_are_letters_in_the_language_of_the_page(
    league: League, board: Board, client: Client
) -> None:
    await league.score()
    ajax, bari, celtic = league.ids
    for one, other, result in (ajax, bari, "2:1"), (bari, celtic, "1:1"), (celtic, ajax, "3:0"):
        await league.play(one, other, result)
    await change(client, published="true")
    shown = f"ranking={league.ranking_id}&lang=de"
    lines = (await board.get(f"table.json?{shown}")).json["lines"]
    assert {line["name"]: line["form"] for line in lines} == {
        "Celtic": ["U", "S"],
        "Ajax": ["S", "N"],
        "Bari": ["N", "U"],
    }
    assert "<li>U</li><li>S</li>" in (await client.send("GET", f"/board/{board.slug}?{shown}")).body.decode()


async def test_the_calendar_has_the_dated_matches_with_their_results(
    league: League, board: Board, client: Client
) -> None:
    ajax, bari, celtic = league.ids
    await client.put("presentation.json", {"zone": "Europe/Berlin"})
    played = await league.play(ajax, bari, "2:1", started_at="2026-05-02 13:00:00", location="Park, North; 1")
    whole_day = await league.play(bari, celtic, "", started_at="2026-05-08 22:00:00", round=2)
    await league.play(celtic, ajax, "")
    await change(client, published="true")
    answer = await board.get(f"calendar.ics?ranking={league.ranking_id}&lang=fr")
    assert answer.headers["Content-Type"] == "text/calendar; charset=utf-8"
    lines = answer.body.decode().split("\r\n")
    assert (lines[0], lines[-2:]) == ("BEGIN:VCALENDAR", ["END:VCALENDAR", ""])
    assert [line for line in lines if line.startswith(("SUMMARY", "DTSTART", "LOCATION", "DESCRIPTION"))] == [
        "DTSTART:20260502T130000Z",
        "SUMMARY:Ajax 2:1 Bari",
        "LOCATION:Park\\, North\\; 1",
        "DTSTART;VALUE=DATE:20260509",
        "SUMMARY:Bari \N{EN DASH} Celtic",
        "DESCRIPTION:Journ\N{LATIN SMALL LETTER E WITH ACUTE}e 2",
    ]
    ids = [line for line in lines if line.startswith("UID:")]
    assert [one.partition("@")[0] for one in ids] == [f"UID:{played}", f"UID:{whole_day}"]
    stamps = [line.partition(":")[2] for line in lines if line.startswith("DTSTAMP")]
    assert all(datetime.strptime(one, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC) <= datetime.now(UTC) for one in stamps)
    for path, change_of in (
        (f"competitions/{played}.json", {"started_at": "2026-05-03 13:00:00"}),
        (f"competitions/{played}.json", {"location": "Hall"}),
        (f"competitions/{played}.json", {"round": 1, "round_name": "First leg"}),
        (f"competitions/{played}.json", {"result": "2:2"}),
        (f"competitors/{ajax}.json", {"name": "Ajax Amsterdam"}),
        (f"competitors/{ajax}/erase.json", {}),
    ):
        assert (await client.put(path, change_of)).status == 200
        moved = (await board.get(f"calendar.ics?ranking={league.ranking_id}&lang=fr")).body.decode().split("\r\n")
        assert [line for line in moved if line.startswith("UID:")] == ids
        assert lines[: lines.index("END:VEVENT")] != moved[: moved.index("END:VEVENT")]
        for stamp in "SEQUENCE:", "LAST-MODIFIED:", "DTSTAMP:":
            first, last = [[at for at in of if at.startswith(stamp)] for of in (lines, moved)]
            assert (first[0] < last[0] if stamp == "SEQUENCE:" else first[0] <= last[0], last[1]) == (True, first[1])
        lines = moved
    page = (await board.get(f"rounds?ranking={league.ranking_id}")).body.decode()
    addresses = re.findall(r'href="((?:webcal:)?/[^"]*calendar.ics[^"]*)"', page)
    path = f"/board/{board.slug}/calendar.ics?ranking={league.ranking_id}"
    host = client._url.partition("//")[2]
    assert [unescape(one) for one in addresses] == [f"webcal://{host}{path}", path]


@given(st.text())
def test_lines_of_a_calendar_are_short_and_say_the_same_when_they_are_put_together(text: str) -> None:
    folded = _folded(f"SUMMARY:{_escaped(text)}")
    assert all(len(line.encode()) <= CALENDAR_LINE_BYTES_MAX for line in folded.split("\r\n"))
    said = folded.removesuffix("\r\n").replace("\r\n ", "").removeprefix("SUMMARY:")
    assert said == _escaped(text)
    assert said.replace("\\,", ",").replace("\\;", ";").replace("\\\\", "\\") == " ".join(text.splitlines())
