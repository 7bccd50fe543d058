"""Why somebody has points from results: what for, against whom, and what was corrected, in one step and sentence."""

import json
from typing import Any

import pytest

from tests.api.interface.resources.test_results import give, sequence_of
from tests.api.public_boards import Board, change
from tests.api.scored import OUTCOMES, League
from tests.api.web.test_console import words
from tests.service import deltas, listed


async def steps_of(league: League, competitor: int, query: str = "") -> list[dict[str, Any]]:
    answer = await league.client.get(f"{league.path}/explain.json?competitor={competitor}{query}")
    assert answer.status == 200, answer.body
    steps: list[dict[str, Any]] = answer.json["explanation"]["steps"]
    return steps


def told(steps: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Of each step: what for, how many points, the result, the results before, the change and the total."""
    return [
        (
            step["scored"]["kind"],
            step["scored"]["amount"],
            step["scored"]["result"],
            [one["result"] for one in step["scored"]["earlier"]],
            step["delta"],
            step["total"],
        )
        for step in steps
        if "scored" in step
    ]


async def test_a_corrected_result_is_one_step_that_says_what_it_was(league: League) -> None:
    a, b, c = league.ids
    await league.score()
    match = await league.play(b, a, "2:2", started_at="2026-03-09 15:00:00")
    await league.play(b, c, "1:0")
    await league.correct(match, result="1:2")
    steps = await steps_of(league, a)
    assert told(steps) == [("draw", 1, "2:2", [], 1, 1), ("win", 3, "2:1", ["2:2"], 2, 3)]
    assert steps[-1]["scored"]["against"] == b
    assert (steps[-1]["cause"], steps[-1]["reversal"]) == ("points", None)
    (step,) = [one for one in await steps_of(league, a, "&on=2026-03-10") if "scored" in one]
    assert told([step]) == [("win", 3, "2:1", ["2:2"], 3, 3)]
    assert step["took_place"].startswith("2026-03-09")


async def test_points_of_a_scoring_declared_after_a_correction_correct_nothing(league: League) -> None:
    a, b, _ = league.ids
    match = await league.play(a, b, "2:2")
    await league.correct(match, result="2:1")
    await league.score()
    assert told(await steps_of(league, a)) == [("win", 3, "2:1", [], 3, 3)]


async def test_overtakings_of_a_correction_are_those_from_before_it_to_after_it(league: League) -> None:
    a, b, c = league.ids
    await league.score()
    await league.play(a, b, "1:0")
    match = await league.play(c, b, "1:1")
    await league.correct(match, result="2:1")
    (*_, last) = await steps_of(league, c)
    passed = [(one["who"], one["whom"], one["level"]) for one in last["overtakings"]]
    assert passed == [(c, a, True), (c, b, False)]
    assert (last["position_before"], last["position_after"]) == (2, 1)


async def test_pages_of_an_explanation_do_not_split_a_correction(league: League) -> None:
    a, b, c = league.ids
    await league.score()
    match = await league.play(a, b, "2:2")
    await league.correct(match, result="2:1")
    await league.play(a, c, "1:0")
    whole, pages, start = told(await steps_of(league, a)), list[tuple[Any, ...]](), 0
    while True:
        answer = await league.client.get(f"{league.path}/explain.json?competitor={a}&limit=1&from={start}")
        page = answer.json["explanation"]
        pages += told(page["steps"])
        if page["next"] is None:
            break
        start = page["next"]
    assert (
        pages == whole == [("draw", 1, "2:2", [], 1, 1), ("win", 3, "2:1", ["2:2"], 2, 3), ("win", 3, "1:0", [], 3, 6)]
    )


async def test_a_removed_result_gives_nothing(league: League) -> None:
    a, b, _ = league.ids
    await league.score()
    match = await league.play(a, b, "2:1")
    await league.correct(match, result="")
    assert told(await steps_of(league, a)) == [("win", 3, "2:1", [], 3, 3), ("nothing", 0, None, ["2:1"], -3, 0)]
    history = (await league.client.get(f"{league.path}/history.json?competitor={a}")).json["history"]
    assert [line["reversal"] for line in history] == [None, "correction"]


async def test_every_step_names_the_result_that_its_competition_had_then_and_says_when_it_was_corrected(
    league: League, board: Board
) -> None:
    a, b, c = league.ids
    await league.score()
    await change(league.client, published="true")
    match = await league.play(a, b, "2:1", started_at="2026-03-09 15:00:00")
    await league.play(b, c, "0:0", started_at="2026-03-16 15:00:00")
    await league.correct(match, result="0:0")
    await league.client.put(f"competitions/{match}/void.json")
    await league.correct(match, result="1:3")
    await league.client.put(f"competitions/{match}/unvoid.json")
    await league.client.put(f"competitions/{match}/strike.json", {"competitors": b})
    await league.correct(match, result="")
    scores = [step.get("score") for step in await steps_of(league, c) if step["competition_id"] == match]
    assert scores == ["2:1", "0:0", "0:0", "1:3", "1:3"]
    page = words((await board.get(f"competitors/{b}?ranking={league.ranking_id}")).body.decode())
    for sentence in (
        "0 for the loss to Ajax, 1:2",
        "1 for the draw with Ajax, 0:0, on 9 March 2026 (corrected on",
        "Does not count: Ajax – Bari 0:0, division 1, on 9 March 2026",  # noqa: RUF001 - a dash
        "Counts again: Ajax – Bari 1:3, division 1, on 9 March 2026",  # noqa: RUF001
        "Struck from the results: Ajax – Bari 1:3, division 1, on 9 March 2026",  # noqa: RUF001
    ):
        assert sentence in page, sentence
    assert "No points any more" not in page  # they no longer counted
    steps = page.partition(" Steps ")[2]
    assert steps.count("9 March 2026, 15:00 UTC") == 1  # when it was played; corrections have the time of theirs
    await league.correct(match, result="4:0")
    by_date = words((await board.get(f"competitors/{a}?ranking={league.ranking_id}&on=2026-03-10")).body.decode())
    assert "Does not count" not in by_date
    today = by_date.partition("(corrected on ")[2].partition(" from ")[0]
    assert f"4:0 (corrected on {today} from 2:1, 0:0, 1:3)" in by_date
    assert "From position" not in by_date  # it stayed first


async def test_a_correction_that_changes_no_points_is_told_wherever_its_result_is(league: League, board: Board) -> None:
    a, b, c = league.ids
    await league.score()
    await change(league.client, published="true")
    match = await league.play(a, b, "2:2", started_at="2026-03-09 15:00:00")
    fair_play = {"participants_delta": deltas((a, league.points, 1)), "competition_id": match}
    await league.client.put(f"{league.path}/add.json", fair_play)
    before = (await league.client.get(f"{league.path}/explain.json?competitor={a}")).json["explanation"]["to"]
    await league.correct(match, result="3:3")
    await league.play(b, c, "1:0", started_at="2026-03-16 15:00:00")

    async def page(who: int, query: str = "") -> str:
        return words((await board.get(f"competitors/{who}?ranking={league.ranking_id}{query}")).body.decode())

    for query, lines_of_match in ("", 2), ("&on=2026-03-20", 1):  # by date, a competition has one line
        shown = await page(a, query)
        assert "1 for the draw with Bari, 3:3 (corrected on" in shown
        assert shown.count(" from 2:2)") == lines_of_match
        assert "1 for the draw with Ajax, 3:3 (corrected on" in await page(b, query)
    assert "Ajax – Bari 3:3, division 1 (corrected on" in await page(a)  # noqa: RUF001 - a dash
    earlier = await page(a, f"&at={before['sequence']}")
    assert "1 for the draw with Bari, 2:2" in earlier
    assert "3:3" not in earlier
    first, second = [step for step in await steps_of(league, a) if step["competition_id"] == match]
    assert [step["score"] for step in (first, second)] == ["2:2", "2:2"]
    assert first["scored"]["result"] == "2:2"
    assert first["corrected"]["scored"]["result"] == second["corrected"]["score"] == "3:3"
    assert [one["result"] for one in second["corrected"]["earlier"]] == ["2:2"]
    assert "corrected" not in (await steps_of(league, b))[-1]
    await league.correct(match, result="2:2")
    assert "corrected" not in (await steps_of(league, a))[1]  # it has the result of the line again


async def test_a_line_whose_match_counts_again_with_another_result_says_what_it_gives(
    league: League, board: Board
) -> None:
    a, b, _ = league.ids
    await league.score()
    await change(league.client, published="true")
    match = await league.play(a, b, "2:1", started_at="2026-03-09 15:00:00")

    async def page() -> str:
        return words((await board.get(f"competitors/{a}?ranking={league.ranking_id}")).body.decode())

    await league.client.put(f"competitions/{match}/void.json")
    await league.correct(match, result="3:1")
    assert "Does not count: Ajax – Bari 3:1, division 1, on 9 March 2026 (corrected on" in await page()  # noqa: RUF001
    await league.client.put(f"competitions/{match}/unvoid.json")
    kept, _, folded = (await page()).partition("Corrected or voided")
    assert "3 for the win over Bari, 3:1 (corrected on" in kept
    assert "Does not count: Ajax – Bari 2:1," in folded  # noqa: RUF001
    assert "Counts again: Ajax – Bari 3:1," in folded  # noqa: RUF001
    await league.client.put(f"competitions/{match}/void.json")
    await league.correct(match, result="1:2")
    await league.client.put(f"competitions/{match}/unvoid.json")
    kept, _, folded = (await page()).partition("Corrected or voided")
    assert "0 for the loss to Bari, 1:2 (corrected on" in kept
    assert " from 2:1, 3:1)" in kept
    assert "3 for the win over Bari, 2:1" in folded
    await league.client.put(f"competitions/{match}/strike.json", {"competitors": a})
    await league.correct(match, result="0:2")
    folded = (await page()).partition("Corrected or voided")[2]
    assert "Struck from the results: Ajax – Bari 0:2, division 1, on 9 March 2026 (corrected on" in folded  # noqa: RUF001


async def test_a_line_of_a_race_says_the_performance_that_is_in_force(league: League) -> None:
    a, b, c = league.ids
    await league.score({"unity": league.points, "from": "place"}, order="low")
    result = {str(a): "9.8", str(b): "9.9", str(c): "10.2"}
    race = {"group_id": 1, "participants": listed(league.ids), "result": json.dumps(result)}
    match = (await league.client.post("competitions.json", race)).json["competition"]["id"]
    await league.correct(match, result=json.dumps(result | {str(a): "9.7"}))
    (step,) = [one for one in await steps_of(league, a) if "scored" in one]
    assert told([step]) == [("place", 1, "9.8", [], 1, 1)]
    now = step["corrected"]["scored"]
    assert (now["kind"], now["place"], now["result"]) == ("place", 1, "9.7")
    assert [one["result"] for one in now["earlier"]] == ["9.8"]
    assert "corrected" not in (await steps_of(league, b))[-1]


async def test_the_page_has_the_position_of_the_table_and_says_that_its_steps_compare_points_alone(
    league: League, board: Board
) -> None:
    a, b, c = league.ids
    goals = (await league.client.post(f"{league.path}/unities.json", {"name": "goals"})).json["unity"]["id"]
    await league.score({"unity": league.points, "from": "outcome", "table": OUTCOMES}, {"unity": goals, "from": "for"})
    await change(league.client, published="true")
    await league.play(a, c, "1:0", started_at="2026-03-09 15:00:00")
    await league.play(b, c, "4:0", started_at="2026-03-09 15:00:00")

    async def page(query: str = "") -> str:
        return words((await board.get(f"competitors/{a}?ranking={league.ranking_id}{query}")).body.decode())

    note = " positions are by points alone."
    before = await page()
    assert "1st, level with Bari" in before
    assert note not in before
    criteria = json.dumps([{"unity": league.points}, {"unity": goals}])
    await league.client.put(f"{league.path}/classification.json", {"criteria": criteria})
    for query, said, noted in (
        ("", "2nd on goals, 1 to 4", True),
        (f"&unity={league.points}", "Position 1, 3 in points", False),
        ("&on=2026-03-10", "Positions on this page are by points alone.", False),
    ):
        found = await page(query)
        assert (said in found, note in found) == (True, noted), (query, found)


async def test_a_place_a_status_and_an_absence_say_what_points_are_for(league: League) -> None:
    a, b, c = league.ids
    statuses = {"DNF": "entries+1", "absent": 9}
    await league.score({"unity": league.points, "from": "place", "statuses": statuses}, order="low")
    await league.play(a, b, "9.8|DNF")
    assert told(await steps_of(league, a)) == [("place", 1, "9.8", [], 1, 1)]
    assert told(await steps_of(league, b)) == [("result", 4, "DNF", [], 4, 4)]
    assert told(await steps_of(league, c)) == [("absent", 9, None, [], 9, 9)]


async def test_where_nothing_is_scored_a_step_says_nothing_of_it(league: League) -> None:
    a, b, _ = league.ids
    match = await league.play(a, b, "2:1")
    lines = [{"competitor_id": a, "unities": [{"unity_id": league.points, "delta": 3}]}]
    fields = {"participants_delta": json.dumps(lines), "competition_id": match}
    await league.client.put(f"{league.path}/add.json", fields)
    assert "scored" not in (await steps_of(league, a))[-1]


async def test_the_history_of_a_match_shows_each_of_its_results(league: League) -> None:
    a, b, _ = league.ids
    match = await league.play(a, b, "")
    await league.correct(match, result="2:2")
    await league.correct(match, location="Cork")
    await league.correct(match, result="2:1", winner=a)
    await league.correct(match, result="", winner="")
    answer = await league.client.get(f"competitions/{match}/results.json")
    had = [(one["result"], one["winner_id"]) for one in answer.json["competition"]["results"]]
    assert had == [(None, None), ("2:2", None), ("2:1", a), (None, None)]
    sequences = [one["sequence"] for one in answer.json["competition"]["results"]]
    assert sequences == sorted(sequences)
    assert (await league.client.get("competitions/999/results.json")).status == 404


@pytest.mark.parametrize(
    ("results", "deltas"),
    [
        (("1:0", "3:0", "0:3"), [3, -3]),
        (("1:0", "3:0", "2:2"), [3, -2]),
        (("1:0", "3:0", ""), [3, -3]),
        (("1:0", "3:0", "won"), [3, -3]),
        (("0:1", "0:3", "3:0"), [0, 3]),
    ],
)
async def test_a_correction_is_one_step_whichever_events_gave_what_it_takes_back(
    league: League, results: tuple[str, ...], deltas: list[int]
) -> None:
    """Only the goals differ first, then the points as well."""
    a, b, _ = league.ids
    goals = (await league.client.post(f"{league.path}/unities.json", {"name": "goals"})).json["unity"]["id"]
    await league.score({"unity": league.points, "from": "outcome", "table": OUTCOMES}, {"unity": goals, "from": "for"})
    first, *corrected = results
    match = await league.play(a, b, first)
    for result in corrected:
        await league.correct(match, result=result)
    assert await _changes(league, a, league.points) == deltas
    assert sum(deltas) == (await league.table())[a]
    await _changes(league, a, goals)
    (*_, last) = await steps_of(league, a)
    assert [one["result"] for one in last["scored"]["earlier"]] == [corrected[0]]


async def test_points_that_a_new_scoring_moves_to_another_unity_leave_the_first_in_a_step(league: League) -> None:
    a, b, _ = league.ids
    form = {"name": "season", "lasts": "P3D", "expires_on": "day"}
    season = (await league.client.post(f"{league.path}/unities.json", form)).json["unity"]["id"]
    by_outcome = {"from": "outcome", "table": OUTCOMES}
    await league.score()
    await league.play(a, b, "1:0")
    await league.score({"unity": season, **by_outcome})
    assert await _changes(league, a, league.points) == [3, -3]
    await league.score({"unity": season, **by_outcome}, {"unity": league.points, **by_outcome})
    await league.score({"unity": season, **by_outcome})
    assert await _changes(league, a, league.points) == [3, -3, 3, -3]


async def test_points_undone_right_after_a_correction_are_a_step_of_their_own(league: League) -> None:
    a, b, _ = league.ids
    await league.score()
    match = await league.play(a, b, "1:0")
    added = await give(league.client, league.path, (a, league.points, 5), competition_id=match)
    await league.correct(match, result="1:1")
    assert (await league.client.put(f"{league.path}/reverse.json", {"sequence": sequence_of(added)})).status == 200
    assert await _changes(league, a, league.points) == [3, 5, -2, -5]


async def _changes(league: League, competitor: int, unity: int) -> list[int]:
    """The delta of each step with one. The steps lead from one to the next, and to the total."""
    query = f"competitor={competitor}&unity={unity}"
    told = (await league.client.get(f"{league.path}/explain.json?{query}")).json["explanation"]
    before = [step["total_before"] for step in told["steps"]]
    assert [told["from"]["total"], *[step["total"] for step in told["steps"]]] == [*before, told["to"]["total"]]
    return [step["delta"] for step in told["steps"] if step["delta"] is not None]
