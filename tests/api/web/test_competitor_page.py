"""The pages of a competitor and of a competition, on a board and in the console."""

import json
import re
from html import unescape
from typing import Final

import pytest

from tests.api.public_boards import Board, change
from tests.api.scored import OUTCOMES, League
from tests.api.web.test_console import words
from tests.service import Client, create_ranking, deltas, listed, register

DIFFERENCE: Final = "goal difference"


@pytest.fixture
async def played(league: League, client: Client) -> League:
    """Ajax and Bari are level on points, Celtic and Bari have met once and will meet again."""
    made = await client.post(f"{league.path}/unities.json", {"name": DIFFERENCE})
    unity = made.json["unity"]["id"]
    await league.score(
        {"unity": league.points, "from": "outcome", "table": OUTCOMES},
        {"unity": unity, "from": "for", "factor": 1},
        {"unity": unity, "from": "against", "factor": -1},
    )
    criteria = f'[{{"unity":{league.points}}},{{"unity":{unity}}}]'
    assert (await client.put(f"{league.path}/classification.json", {"criteria": criteria})).status == 200
    ajax, bari, celtic = league.ids
    await league.play(ajax, celtic, "4:0", started_at="2026-05-02 15:00:00")
    await league.play(bari, celtic, "2:1", started_at="2026-05-03 15:00:00")
    await league.play(celtic, bari, "", started_at="2026-05-09 15:00:00")
    await change(client, published="true")
    return league


async def page(board: Board, league: League, who: int, query: str = "") -> str:
    answer = await board.get(f"competitors/{league.ids[who]}?ranking={league.ranking_id}{query}")
    assert answer.status == 200, answer.body
    return answer.body.decode()


async def test_the_place_in_the_table_and_what_decided_it_come_first(played: League, board: Board) -> None:
    for who, query, said in (
        (0, "", "1st on goal difference, 4 to 1, as of"),
        (1, "", "2nd on goal difference, 1 to 4, as of"),
        (1, "&lang=de", "Platz 2: Tordifferenz, 1 zu 4, Stand:"),
        (1, "&lang=fr", "2e : différence de buts, 1 contre 4, état au"),
        (1, "&lang=es", "2.º por diferencia de goles, 1 a 4, a fecha de"),
        (2, "", "3rd on points, 0 to 3, as of"),
        (1, "&on=2026-05-02", "2nd on points, 0 to 3, as of"),
        (1, f"&unity={played.points}", "Position 1, 3 in points, as of"),
    ):
        assert said in words(await page(board, played, who, query)), (who, query)


async def test_it_has_the_line_of_the_table_the_next_matches_and_each_result_own_score_first(
    played: League, board: Board
) -> None:
    text = words(await page(board, played, 2, "&lang=de"))
    for said in (
        "Pkt 0 Form N N",
        "Nächste Wettkämpfe Celtic \N{EN DASH} Bari 9. Mai 2026",
        "Gegner Gegner Ergebnisse Ajax 0:4 Bari 1:2 9. Mai 2026",
    ):
        assert said in text
    past = words(await page(board, played, 2, "&on=2026-05-02"))
    assert "Form L" in past
    assert "Fixtures" not in past


async def test_what_was_corrected_or_voided_is_folded_away_and_the_totals_add_up(
    played: League, board: Board, client: Client
) -> None:
    ajax, bari, _ = played.ids
    match = await played.play(ajax, bari, "2:1", started_at="2026-05-16 15:00:00")
    await played.play(bari, ajax, "1:1", started_at="2026-05-23 15:00:00")
    await played.correct(match, result="2:2")
    voided = await played.play(ajax, bari, "1:0", started_at="2026-05-30 15:00:00")
    assert (await client.put(f"competitions/{voided}/void.json", {})).status == 200
    shown, _, folded = (await page(board, played, 0)).partition("<details><summary>Corrected or voided")
    rows = [words(row).partition(" UTC ")[2] for row in re.findall(r"<tr><td.*?</tr>", shown)]
    assert [(row[:26], row[-6:]) for row in rows][:3] == [
        ("1 for the draw with Bari, ", "+1 5 1"),
        ("1 for the draw with Bari, ", "+1 4 1"),
        ("3 for the win over Celtic,", "+3 3 1"),
    ]
    assert "2:2 (corrected on" in rows[1]
    assert words(folded).startswith("(4)")
    assert "Does not count: Ajax \N{EN DASH} Bari 1:0" in words(folded)


async def test_points_are_withdrawn_or_restored_by_what_undoing_them_does_to_the_total(
    played: League, board: Board, client: Client
) -> None:
    ajax, path = played.ids[0], played.path
    taken = {"participants_delta": deltas((ajax, played.points, -3)), "reason": "Appeal"}
    assert (await client.put(f"{path}/add.json", taken)).status == 200
    for _ in "undone", "redone":
        explained = await client.get(f"{path}/explain.json?competitor={ajax}")
        last = explained.json["explanation"]["to"]["sequence"]
        assert (await client.put(f"{path}/reverse.json", {"sequence": last})).status == 200
    for lang, restored, withdrawn in (
        ("en", "Points restored", "Points withdrawn"),
        ("de", "Punkte wieder zuerkannt", "Punkte aberkannt"),
        ("fr", "Points rétablis", "Points retirés"),
        ("es", "Puntos restituidos", "Puntos retirados"),
    ):
        rows = re.findall(r"<tr><td.*?</tr>", await page(board, played, 0, f"&lang={lang}"))
        for said, change_and_total in (restored, " +3 3 "), (withdrawn, " \N{MINUS SIGN}3 0 "):
            (row,) = [one for one in map(words, rows) if said in one]
            assert change_and_total in row, (lang, row)


async def test_the_page_of_a_competition_says_what_it_gave_for_what_and_what_it_was_before(
    played: League, board: Board, client: Client
) -> None:
    ajax, bari, celtic = played.ids
    match = await played.play(ajax, bari, "2:1", round=3, started_at="2026-05-16 15:00:00", location="Park")
    await played.correct(match, result="1:1 wo", winner=bari)
    below = f"competitions/{match}?ranking={played.ranking_id}"
    text = words((await board.get(below)).body.decode())
    for said in (
        "Ajax 1:1 wo Bari Round 3, 16 May 2026, 15:00 UTC , Park , walkover What it gave",
        "Competitor GD Pts Ajax 0 for the loss to Bari, 1:1 wo 0 0 Bari 3 for the win over Ajax, 1:1 wo 0 3 Why",
        "Bari , points: 3 for the win over Ajax, 1:1 wo Corrections (1)",
    ):
        assert said in text
    assert re.search(r"UTC : 2:1 .* UTC : 1:1 wo$", text)
    await client.put(f"competitions/{match}/void.json", {})
    voided = words((await board.get(f"{below}&lang=de")).body.decode())
    assert "kampflos, Zählt nicht" in voided
    assert "Pkt" not in voided
    hidden = await create_ranking(client, [ajax, celtic], name="Secret")
    alone = await played.play(ajax, celtic, "")
    assert (await board.get(f"competitions/{alone}?ranking={played.ranking_id}")).status == 200
    await client.put(f"rankings/{hidden['id']}/visibility.json", {"hidden": "true"})
    for strange in f"{alone}?ranking={played.ranking_id}", "999999", "x":
        assert (await board.get(f"competitions/{strange}")).status == 404, strange


async def test_a_correction_of_many_performances_tells_those_that_changed(
    played: League, board: Board, client: Client
) -> None:
    boats = await register(client, "Alk", "Boje", "Dingi", "Eider", "Falke")
    alk, boje, dingi, eider, falke = map(str, boats)
    regatta = await create_ranking(client, boats, name="Regatta")
    first = {alk: "1", boje: "2", dingi: "3", eider: "DNC", falke: "5"}
    sent = {"group_id": 1, "participants": listed(boats), "result": json.dumps(first)}
    race = (await client.post("competitions.json", sent)).json["competition"]["id"]
    await played.correct(race, result=json.dumps(first | {eider: "4"}))
    await played.correct(race, result=json.dumps({alk: "2", boje: "1", dingi: "3", eider: "4"}))
    arrow, dash = "\N{RIGHTWARDS ARROW}", "\N{EN DASH}"
    told = (
        "Alk 1, Boje 2, Dingi 3, and 2 more",
        f"Eider DNC {arrow} 4",
        f"Alk 1 {arrow} 2, Boje 2 {arrow} 1, Falke 5 {arrow} {dash}",
    )
    shown = (await board.get(f"competitions/{race}?ranking={regatta['id']}")).body.decode()
    assert [words(one).partition("UTC : ")[2] for one in re.findall(r"<li>(.*?)</li>", shown)][-3:] == [*told]


async def test_a_forfeit_is_said_in_words_wherever_it_is_shown(played: League, board: Board, client: Client) -> None:
    ajax, bari, _ = played.ids
    match = await played.play(ajax, bari, "-:+", round=3, started_at="2026-05-16 15:00:00", location="Park")
    both = await played.play(ajax, bari, "-:-", round=3, started_at="2026-05-16 16:00:00")
    below = f"competitions/{match}"
    dash = "\N{EN DASH}"
    said = {
        "en": ("walkover", "not played, lost by both"),
        "de": ("kampflos", "nicht ausgetragen, für beide verloren"),
        "fr": ("par forfait", "non disputé, perdu par les deux"),
        "es": ("por incomparecencia", "no disputado, perdido por ambos"),
    }
    for lang, (walkover, unplayed) in said.items():
        asked = f"ranking={played.ranking_id}&lang={lang}"
        pages = {
            page: words((await board.get(page)).body.decode())
            for page in (
                f"{below}?{asked}",
                f"competitions/{both}?{asked}",
                f"competitors/{bari}?{asked}",
                f"rounds?{asked}&round=3",
                f"tv?{asked}",
                f"calendar.ics?{asked}",
            )
        }
        of_match, of_both, of_competitor, of_round, on_screen, calendar = pages.values()
        assert all("+:-" not in page and "-:" not in page for page in pages.values()), lang
        assert f"Ajax {dash} Bari" in of_match
        assert f"Park , {walkover}" in of_match
        assert f", {unplayed}" in of_both
        assert f"Ajax, {walkover}" in of_competitor
        for page in of_round, calendar.replace("\\, ", ", "):
            assert walkover in page
            assert unplayed in page
        assert unplayed in on_screen
        (shown, *_) = (await board.get(f"table.json?{asked}")).json["competitions"]["results"]
        assert (shown["result"], shown["ended"]) == (None, unplayed)


async def test_the_pages_of_competitions_are_led_to_from_all_that_name_them(played: League, board: Board) -> None:
    asked = f"ranking={played.ranking_id}"
    round_of = f"/rounds?{asked}&round=2026-05-03"
    for below in f"/competitors/{played.ids[1]}?{asked}", round_of, f"/cross?{asked}", f"?{asked}":
        answer = await played.client.send("GET", f"/board/{board.slug}{below}")
        links = re.findall(r'href="/board/[^/"]*/(competitions/[^"]*)"', answer.body.decode())
        assert links, below
        for link in links:
            assert (await board.get(unescape(link))).status == 200
