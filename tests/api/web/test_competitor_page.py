"""The page of a competitor, on a board and in the console."""

import re

import pytest

from tests.api.public_boards import Board, change
from tests.api.scored import OUTCOMES, League
from tests.api.web.test_console import words
from tests.service import Client

DIFFERENCE = "goal difference"


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
