"""Results become points: what scorings give, and what corrections change, over HTTP."""

import json

from engine.database.pool import Database
from engine.domain.events import PointsScored
from engine.log import heads, registry, tails
from tests.api.scored import OUTCOMES, League
from tests.bounds import Bounds
from tests.projections.verified import verified
from tests.service import Season, create_ranking, deltas, listed, register


async def test_a_result_gives_points_and_its_correction_changes_them(league: League, database: Database) -> None:
    a, b, c = league.ids
    await league.score()
    match = await league.play(a, b, "2:1")
    await league.play(b, c, "0:0")
    assert await league.table() == {a: 3, b: 1, c: 1}
    await league.correct(match, result="2:2")
    assert await league.table() == {a: 1, b: 2, c: 1}
    await league.correct(match, result="2:1")
    assert await league.table() == {a: 3, b: 1, c: 1}
    await league.correct(match, result="")
    assert await league.table() == {a: 0, b: 1, c: 1}
    assert not (await verified(database)).differences


async def test_a_result_corrected_while_its_competition_is_voided_or_struck_counts_when_it_counts_again(
    league: League, database: Database
) -> None:
    a, b, c = league.ids
    await league.score()
    match = await league.play(a, b, "2:1")
    await league.client.put(f"competitions/{match}/void.json")
    assert await league.table() == {a: 0, b: 0, c: 0}
    await league.correct(match, result="1:2")
    assert await league.table() == {a: 0, b: 0, c: 0}
    await league.client.put(f"competitions/{match}/unvoid.json")
    assert await league.table() == {a: 0, b: 3, c: 0}
    await league.client.put(f"competitions/{match}/strike.json", {"competitors": b})
    await league.correct(match, result="1:1")
    assert await league.table() == {a: 1, b: 0, c: 0}
    await league.client.put(f"competitions/{match}/unstrike.json", {"competitors": b})
    assert await league.table() == {a: 1, b: 1, c: 0}
    assert not (await verified(database)).differences


async def test_a_closed_ranking_keeps_its_points_and_is_scored_when_it_is_reopened(
    league: League, database: Database
) -> None:
    a, b, c = league.ids
    await league.score()
    match = await league.play(a, b, "2:1")
    await league.client.put(f"{league.path}/close.json")
    refused = await league.correct(match, result="1:2")
    assert refused.status == 409
    assert "'League'" in refused.json["message"]
    await league.play(b, c, "1:0")
    assert await league.table() == {a: 3, b: 0, c: 0}
    listed_ones = (await league.client.get(f"{league.path}/scoring.json")).json["scoring"]["unscored"]
    assert len(listed_ones) == 1
    await league.client.put(f"{league.path}/reopen.json")
    assert await league.table() == {a: 3, b: 3, c: 0}
    assert not (await verified(database)).differences


async def test_a_declared_scoring_scores_earlier_results_and_its_removal_takes_the_points_back(
    league: League, database: Database
) -> None:
    a, b, c = league.ids
    match = await league.play(a, b, "2:1")
    await league.client.put(
        f"{league.path}/add.json", {"participants_delta": deltas((a, league.points, 2)), "competition_id": match}
    )
    await league.play(b, c, "abandoned")
    await league.score()
    assert await league.table() == {a: 5, b: 0, c: 0}
    (unscored,) = (await league.client.get(f"{league.path}/scoring.json")).json["scoring"]["unscored"]
    assert "Forms that count" in unscored["why"]
    await league.score({"unity": league.points, "from": "for", "factor": 1})
    assert await league.table() == {a: 4, b: 1, c: 0}
    await league.client.put(f"{league.path}/scoring.json", {"scorings": "[]"})
    assert await league.table() == {a: 2, b: 0, c: 0}
    assert not (await verified(database)).differences


async def test_a_shoot_out_without_a_winner_is_listed_and_gives_nothing_until_one_is_named(
    league: League, database: Database
) -> None:
    a, b, c = league.ids
    await league.score()
    match = await league.play(a, b, "2:2 pen")
    assert await league.table() == {a: 0, b: 0, c: 0}
    (unscored,) = (await league.client.get(f"{league.path}/scoring.json")).json["scoring"]["unscored"]
    assert unscored["why"].startswith("A shoot-out always has a winner: name the winner.")
    assert (await league.correct(match, winner=b)).status == 200
    assert await league.table() == {a: 0, b: 3, c: 0}
    assert (await league.client.get(f"{league.path}/scoring.json")).json["scoring"]["unscored"] == []
    assert not (await verified(database)).differences


async def test_a_correction_counts_when_its_match_was_first_recorded(league: League, database: Database) -> None:
    a, b, c = league.ids
    await league.score()
    match = await league.play(a, b, "2:1")
    await league.play(b, c, "1:0")
    await league.correct(match, result="1:2")
    assert await league.table() == {a: 0, b: 6, c: 0}
    async with database.connection() as connection:
        tournament_id = await registry.tournament_named(connection, league.client.tournament)
        events = (await tails.tail(connection, tournament_id, heads.beginning(tournament_id), blocks_max=1_000)).events
    scored = [(one, one.event.since) for one in events if isinstance(one.event, PointsScored)]
    assert [since for _, since in scored] == [None, None, scored[0][0].recorded_at]
    assert not (await verified(database)).differences


async def test_points_of_a_scoring_are_not_undone_alone(league: League) -> None:
    a, b, _ = league.ids
    await league.score()
    await league.play(a, b, "2:1")
    history = (await league.client.get(f"{league.path}/history.json")).json["history"]
    sequence = history[-1]["sequence"]
    refused = await league.client.put(f"{league.path}/reverse.json", {"sequence": sequence})
    assert refused.status == 409
    assert "correct that result" in refused.json["message"]


async def test_several_competitions_at_once_give_the_points_of_each_and_are_answered_once(league: League) -> None:
    a, b, c = league.ids
    await league.score()
    items = [
        {"group_id": 1, "participants": [a, b], "result": "2:1"},
        {"group_id": 1, "participants": [b, c], "result": "0:0"},
    ]
    for minimal in ({}, {"Prefer": "return=minimal"}):
        body = json.dumps({"items": items}).encode()
        headers = {"Content-Type": "application/json"} | minimal
        answered = (await league.client.post("competitions.json", body, headers)).json
        assert len(answered["ids"] if minimal else answered["competitions"]["competition"]) == 2
    assert await league.table() == {a: 6, b: 2, c: 2}


async def test_points_of_a_scoring_follow_other_participants_and_those_by_hand_stay(
    league: League, database: Database
) -> None:
    """Points added by hand and strikes stay with those they name, whoever takes part."""
    a, b, c = league.ids
    await league.score()
    match = await league.play(a, b, "2:1", winner=a)
    by_hand = {"participants_delta": deltas((a, league.points, 5)), "competition_id": match}
    assert (await league.client.put(f"{league.path}/add.json", by_hand)).status == 200
    await league.client.put(f"competitions/{match}/strike.json", {"competitors": b})
    assert await league.table() == {a: 8, b: 0, c: 0}
    changed = await league.correct(match, participants=listed([c, b]))
    assert changed.json["competition"]["struck"] == [b]
    assert await league.table() == {a: 5, b: 0, c: 3}
    await league.client.put(f"competitions/{match}/unstrike.json", {"competitors": b})
    assert (await league.correct(match, participants=listed([b, a]), winner=b)).status == 200
    assert await league.table() == {a: 5, b: 3, c: 0}
    assert (await league.correct(match, participants=listed([a, b]), winner=a)).status == 200
    assert await league.table() == {a: 8, b: 0, c: 0}
    assert not (await verified(database)).differences


async def test_a_scale_and_a_group_choose_the_scoring_whenever_they_change(league: League, database: Database) -> None:
    a, b, c = league.ids
    once = {"unity": league.points, "from": "outcome", "table": OUTCOMES}
    twice = once | {"table": {"win": 6, "draw": 2, "loss": 0}}
    plans = [{"awards": [twice], "name": "double"}, {"awards": [once], "groups": [1]}]
    answer = await league.client.put(f"{league.path}/scoring.json", {"scorings": json.dumps(plans)})
    assert answer.status == 200, answer.body
    match = await league.play(a, b, "2:1")
    for fields, points in (
        ({"scale": "double"}, 6),
        ({"group_id": 2}, 6),
        ({"scale": ""}, 0),
        ({"group_id": 1}, 3),
        ({"round": 4, "round_name": "Final"}, 3),
    ):
        assert (await league.correct(match, **fields)).status == 200
        assert await league.table() == {a: points, b: 0, c: 0}, fields


async def test_a_winner_that_the_score_said_follows_it_and_another_one_stays(
    league: League, database: Database
) -> None:
    a, b, _ = league.ids
    await league.score()
    match = await league.play(a, b, "2:1", winner=a)
    for result, points in (("1:2", (0, 3)), ("1:1", (1, 1)), ("3:0 wo", (3, 0)), ("-:+", (0, 3)), ("", (0, 0))):
        await league.correct(match, result=result)
        table = await league.table()
        assert (table[a], table[b]) == points, result
    on_penalties = await league.play(a, b, "2:2 pen", winner=b)
    await league.correct(on_penalties, result="3:3 pen")
    assert (await league.table())[b] == 3
    assert not (await verified(database)).differences


async def test_a_result_without_a_winner_has_that_of_its_score_whenever_it_is_sent(
    league: League, database: Database
) -> None:
    """One rule for new and corrected results: a winner stays only until there is a score that says who has won, or that
    nobody has."""
    a, b, _ = league.ids
    await league.score()

    async def winner(match: int) -> int | None:
        shown = (await league.client.get(f"competitions/{match}.json")).json["competition"]
        return next((one["competitor_id"] for one in shown["participants"] if one["winner"]), None)

    typed = await league.play(a, b, "2:1")
    assert await winner(typed) == a
    for named, sent, expected in (
        ({"result": "2:2 pen", "winner": b}, {"result": "3:3 pen"}, b),
        ({"result": "2:2 pen", "winner": b}, {"result": "3:1"}, a),
        ({"result": "2:1", "winner": b}, {"result": "3:1"}, a),
        ({"result": "2:1 wo", "winner": b}, {"result": "3:1 wo"}, b),
        ({"result": "2:1", "winner": ""}, {"result": "1:2"}, b),
        ({"result": "2:1", "winner": a}, {"participants": listed([b, a])}, b),
        ({"result": "2:1", "winner": b}, {"participants": listed([b, a])}, b),
        ({"result": "1:2", "winner": b}, {"participants": listed([league.ids[2], b])}, b),
        ({"result": "2:1", "winner": a}, {"participants": listed([league.ids[2], b])}, league.ids[2]),
        ({"result": "2:2 pen", "winner": b}, {"result": ""}, None),
        ({"result": "1:0", "winner": b}, {"location": "Hall 2"}, b),
        ({"result": "1:0", "winner": b}, {"result": "1:0"}, b),
        ({"result": "1:1", "winner": b}, {"result": "1:1 aet"}, b),
        ({"result": "wo", "winner": b}, {"result": "wo", "location": "Hall 2"}, b),
        ({"result": "wo", "winner": b}, {"result": "1:1"}, None),
        ({"result": "wo", "winner": b}, {"result": "+:-"}, a),
        ({"result": "wo", "winner": b}, {"result": "-:-"}, None),
        ({"result": "1:2 wo", "winner": a}, {"result": "0:0"}, None),
        ({"result": "2;1", "winner": a}, {"result": "1:1"}, None),
        ({"result": "1:1", "winner": a}, {"result": "2:2"}, None),
    ):
        assert (await league.correct(typed, participants=listed([a, b]), **named)).status == 200
        assert (await league.correct(typed, **sent)).status == 200
        assert await winner(typed) == expected, (named, sent)
        drawn = {a: 1, b: 1, league.ids[2]: 0} if expected is None and sent["result"] not in {"", "-:-"} else None
        assert await league.table() == (drawn or {one: 3 * (one == expected) for one in league.ids}), (named, sent)
    await league.correct(typed, participants=listed([a, b]), result="2:2 pen", winner=b)
    gone = await league.correct(typed, participants=listed([a, league.ids[2]]))
    assert (gone.status, gone.json["errors"][0]["message"]) == (422, f"competitor {b} is not a participant")
    assert not (await verified(database)).differences


async def test_where_points_expire_a_result_may_be_sent_with_the_date_that_the_competition_has(season: Season) -> None:
    ids = await register(season.client, "Ajax", "Bari")
    lasting = {"main_unity_lasts": "P52W", "main_unity_expires_on": "week"}
    league = League(season.client, ids, await create_ranking(season.client, ids, name="Rolling", **lasting))
    await league.score()
    for dated in ({}, {"started_at": "2026-01-04 15:00:00"}):
        match = await league.play(*ids, "", **dated)
        sent = {"started_at": dated.get("started_at", "")}
        assert (await league.correct(match, result="2:1", **sent)).status == 200
        refused = await league.correct(match, result="1:1", started_at="2026-01-05 15:00:00")
        assert (refused.status, "separate request" in refused.json["message"]) == (422, True)


async def test_a_result_with_too_many_steps_is_refused_before_the_first(league: League, bounds: Bounds) -> None:
    await league.score()
    bounds(RESCORED_LINES_MAX=1)
    form = {"group_id": 1, "participants": listed(league.ids[:2]), "result": "2:1"}
    refused = await league.client.post("competitions.json", form)
    assert (refused.status, "would take 2 steps" in refused.json["message"]) == (422, True)
