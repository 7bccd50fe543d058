"""The classification over HTTP: declared, shown in windows, now and at any moment."""

import asyncio
import json
from typing import Any, Final

import pytest

from engine.domain.terms import BEST_MAX, CRITERIA_MAX
from tests.api.asking import NOBODY, refused
from tests.api.leagues import League, history, lines, said, shown
from tests.bounds import Bounds, set_bounds
from tests.service import Season

WRONG_FORM: Final = 'must be of the form [{"unity": 1}, {"unity": 2, "best": 3, "among": "tied"}]'


@pytest.fixture
async def league(season: Season) -> League:
    return await League(season).play()


async def test_what_is_level_is_parted_by_what_is_declared_and_so_it_was_before(league: League) -> None:
    ada, ben, pair = league.ada, league.ben, league.pair
    by_points = [(ada, 1, [3], None), (ben, 1, [3], None), (pair, 3, [0], 0)]
    assert await league.lines() == by_points
    undeclared = (await shown(league.client, league.path))["sequence"]

    await league.declare({"unity": league.points}, {"unity": league.fouls})
    assert await league.lines() == [(ada, 1, [3, 0], None), (ben, 2, [3, 4], 1), (pair, 3, [0, None], 0)]
    await league.declare({"unity": league.points}, {"unity": league.points, "among": "tied"})
    among = [(ben, 1, [3, 3], None), (ada, 2, [3, 0], 1), (pair, 3, [0, None], 0)]
    assert await league.lines() == among
    await league.declare({"unity": league.fouls, "best": 1}, {"unity": league.points, "best": 2})
    best = [(ada, 1, [0, 3], None), (pair, 2, [0, 0], 1), (ben, 3, [4, None], 0)]
    assert await league.lines() == best

    declared = await shown(league.client, league.path)
    assert declared["criteria"] == [{"unity": league.fouls, "best": 1}, {"unity": league.points, "best": 2}]
    assert declared["lines"] == 3
    assert await league.lines(f"?at_sequence={undeclared}") == by_points
    assert await league.lines(f"?at_sequence={declared['sequence'] - 1}") == among
    assert await league.lines(f"?at_sequence={declared['sequence']}") == best
    at_time = declared["recorded_at"].replace(" ", "%20")
    assert await league.lines(f"?at_time={at_time}") == best

    await league.declare()
    assert await league.lines() == by_points
    assert (await shown(league.client, league.path))["criteria"] == [{"unity": league.points}]


async def test_a_voided_competition_counts_no_more_until_it_is_unvoided(league: League) -> None:
    ada, ben, pair = league.ada, league.ben, league.pair
    await league.declare({"unity": league.points, "best": 1}, {"unity": league.points, "among": "tied"})
    before = await league.lines()
    assert before == [(ben, 1, [3, 3], None), (ada, 2, [3, 0], 1), (pair, 3, [0, None], 0)]
    await league.client.put(f"competitions/{league.duel}/void.json")
    assert await league.lines() == [(ada, 1, [3, None], None), (ben, 2, [0, 0], 0), (pair, 2, [0, 0], None)]
    await league.client.put(f"competitions/{league.duel}/unvoid.json")
    assert await league.lines() == before


async def test_every_window_is_a_part_of_the_whole(league: League, subtests: pytest.Subtests) -> None:
    """`criteria`: unities by name, with the best that many; 0: all."""
    for criteria in [[], [{"fouls": 1}], [{"points": 2}, {"among": 1}], [{"fouls": 0}, {"points": 0}]]:
        with subtests.test(str(criteria)):
            chain = []
            for one in criteria:
                ((name, best),) = one.items()
                if name == "among":
                    chain.append({"unity": league.points, "among": "tied"})
                else:
                    chain.append({"unity": getattr(league, name)} | ({"best": best} if best else {}))
            await league.declare(*chain)
            for moment in ("?", f"?at_sequence={(await shown(league.client, league.path))['sequence']}&"):
                whole = await league.lines(moment)
                assert await league.lines(f"{moment}top=2") == whole[:2]
                assert await league.lines(f"{moment}offset=1&limit=1") == whole[1:2]
                assert await league.lines(f"{moment}offset=3") == []
                for offset, line in enumerate(whole):
                    assert (
                        await league.lines(f"{moment}around={line[0]}&span=1") == whole[max(offset - 1, 0) : offset + 2]
                    )
                asked = [line[0] for line in whole[::-1]]
                assert await league.lines(f"{moment}competitors={','.join(map(str, asked))}") == whole[::-1]
                for query, field in (
                    (f"around={NOBODY}&span=1", "around"),
                    (f"competitors={asked[0]},{NOBODY}", "competitors"),
                ):
                    refused(await league.client.get(f"{league.path}/classification.json{moment}{query}"), 422, field)


@pytest.mark.parametrize("criteria", [[], [{"best": 1}], [{}, {"among": "tied"}]])
async def test_a_sub_table_has_the_lines_of_those_with_the_tag_and_positions_of_its_own(
    league: League, criteria: list[dict[str, Any]]
) -> None:
    client, path = league.client, league.path
    for who, tags in ((league.ada, "junior"), (league.ben, "local"), (league.pair, "junior,local")):
        assert (await client.put(f"competitors/{who}.json", {"tags": tags})).status == 200
    await league.declare(*[{"unity": league.points} | one for one in criteria])
    now = await shown(client, path)
    await client.put(f"competitors/{league.ada}.json", {"tags": "former"})
    former = await shown(client, path)
    for moment, whole, tags_of in (
        (f"?at_sequence={now['sequence']}", now, {"junior": "ada pair", "local": "ben pair", "former": ""}),
        (f"?at_sequence={former['sequence']}", former, {"junior": "pair", "local": "ben pair", "former": "ada"}),
        ("?", former, {"junior": "pair", "local": "ben pair", "former": "ada", "nobody": ""}),
    ):
        for tag, names in tags_of.items():
            having = {getattr(league, name) for name in names.split()}
            its = [line for line in whole["standings"] if line["competitor_id"] in having]
            its = [
                line
                | {
                    "position": 1 + sum(other["position"] < line["position"] for other in its),
                    "overall": line["position"],
                }
                for line in its
            ]
            asked = f"{moment}&tag={tag}"
            assert await shown(client, path, asked) == whole | {"lines": len(its), "standings": its}
            assert (await shown(client, path, f"{asked}&offset=1&limit=1"))["standings"] == its[1:2]
            for offset, line in enumerate(its):
                around = await shown(client, path, f"{asked}&around={line['competitor_id']}&span=1")
                assert around["standings"] == its[max(offset - 1, 0) : offset + 2]
                one = await shown(client, path, f"{asked}&competitors={line['competitor_id']}")
                assert one["standings"] == [line]


async def test_a_sub_table_has_only_competitors_with_its_tag_and_tells_how_many(
    league: League, monkeypatch: pytest.MonkeyPatch
) -> None:
    for who in (league.ada, league.ben):
        await league.client.put(f"competitors/{who}.json", {"tags": "junior"})
    head = (await shown(league.client, league.path))["sequence"]
    for moment in ("?", f"?at_sequence={head}&"):
        of = f"{league.path}/classification.json{moment}tag=junior"
        (fault,) = refused(await league.client.get(f"{of}&around={league.pair}&span=1"), 422, "around")
        assert fault == f"competitor {league.pair} is not among the competitors of the ranking that have this tag"
        both = f"{of}&competitors={league.pair},{league.ada},{NOBODY}"
        refused(await league.client.get(both), 422, "competitors", "competitors")
        with monkeypatch.context() as bounded:
            set_bounds(bounded, SUB_TABLE_COMPETITORS_MAX=2)
            assert (await league.client.get(f"{of}&top=1")).status == 200
            set_bounds(bounded, SUB_TABLE_COMPETITORS_MAX=1)
            (fault,) = refused(await league.client.get(f"{of}&top=1"), 422, "tag")
            assert fault == "is that of 2 competitors; a sub-table can be asked for of at most 1"


async def test_criteria_that_cannot_be_taken_are_named(season: Season, subtests: pytest.Subtests) -> None:
    for criteria, fault in [
        ('{"unity": 1}', WRONG_FORM),
        ('[{"best": 1}]', WRONG_FORM),
        ('[{"unity": 1, "worst": 1}]', WRONG_FORM),
        ('[{"unity": 1, "among": "all"}]', WRONG_FORM),
        ('[{"unity": 1, "best": 0}]', WRONG_FORM),
        ('[{"unity": 1, "drop": [[4]]}]', WRONG_FORM),
        ('[{"unity": 1, "drop": [[4, 0]]}]', WRONG_FORM),
        (f'[{{"unity": 1, "best": {BEST_MAX + 1}}}]', WRONG_FORM),
        ('[{"unity": 1, "unity": 2}]', "must not repeat a key in one object"),
        (json.dumps([{"unity": 1, "among": "tied"}] * (CRITERIA_MAX + 1)), f"must be at most {CRITERIA_MAX}"),
    ]:
        with subtests.test(criteria):
            answer = await season.client.put(f"{season.path}/classification.json", {"criteria": criteria})
            refused(answer, 422, "criteria")
            assert answer.json["errors"][0]["message"].startswith(fault)


async def test_a_declaration_is_conditional_on_the_classification_that_was_read(league: League) -> None:
    path = f"{league.path}/classification.json"
    tag = (await league.client.get(path)).headers["ETag"]
    await league.give(None, (league.ada, league.points, 1))
    assert (await league.client.put(path, said({"unity": league.fouls}), {"If-Match": tag})).status == 200
    refused(await league.client.put(path, said({"unity": league.points}), {"If-Match": tag}), 412)
    again = await league.client.get(path)
    unchanged = await league.client.get(path, {"If-None-Match": again.headers["ETag"]})
    assert unchanged.status == 304


async def test_no_window_takes_a_unity_and_a_closed_ranking_takes_no_declaration(season: Season) -> None:
    path = f"{season.path}/classification.json"
    refused(await season.client.get(f"{path}?unity={season.unity_id}"), 400, "unity")
    closed = f"rankings/{season.closed_ranking_id}/classification.json"
    refused(await season.client.put(closed, said({"unity": season.unity_id})), 409)


async def test_a_question_that_takes_too_much_is_503_and_says_so(league: League, bounds: Bounds) -> None:
    await league.declare({"unity": league.points, "best": 1})
    bounds(CLASSIFIED_SUMS_MAX=4)
    for moment in ("", "?at_sequence=19"):
        answer = await league.client.get(f"{league.path}/classification.json{moment}")
        refused(answer, 503)
        assert answer.json["message"].startswith("This would examine more than 4 sums of competitions")
        assert answer.headers["Retry-After"] == "60"


async def test_many_who_ask_while_points_are_added_each_see_what_was_acknowledged_before(league: League) -> None:
    await league.declare({"unity": league.points, "best": 2}, {"unity": league.points, "among": "tied"})
    asked = []
    for _ in range(5):
        await league.give(None, (league.pair, league.points, 2))
        asked += [asyncio.create_task(league.lines()) for _ in range(3)]
    answers = await asyncio.gather(*asked)
    for number, answer in enumerate(answers):
        values = {line[0]: line[2][0] or 0 for line in answer}
        assert values[league.pair] >= 2 * (1 + number // 3)


async def test_a_preview_says_who_moves_in_the_classification_that_is_declared(league: League) -> None:
    path = f"competitions/{league.duel}"

    async def foreseen(change: str) -> Any:
        (ranking,) = (await league.client.get(f"{path}/{change}.json")).json["rankings"]
        return ranking

    def places(moves: Any, when: str) -> dict[int, int]:
        return {move["competitor_id"]: move[f"position_{when}"] for move in moves}

    async def positions() -> dict[int, int]:
        return {line[0]: line[1] for line in await league.lines()}

    assert "classification" not in await foreseen("void")
    await league.declare({"unity": league.points, "best": 1}, {"unity": league.points, "among": "tied"})
    for change in ("void", "unvoid"):
        moves = (await foreseen(change))["classification"]
        assert [move["name"] for move in moves if move["competitor_id"] == league.ben] == ["Ben"]
        assert places(moves, "before") == await positions()
        await league.client.put(f"{path}/{change}.json")
        assert list(places(moves, "after").items()) == list((await positions()).items())
    assert places(moves, "before") == {league.ada: 1, league.ben: 2, league.pair: 2}
    assert places(moves, "after") == {league.ben: 1, league.ada: 2, league.pair: 3}


async def test_a_preview_shows_as_many_lines_and_looks_at_as_many_sums_as_it_may(
    league: League, monkeypatch: pytest.MonkeyPatch, bounds: Bounds
) -> None:
    path = f"competitions/{league.duel}/void.json"
    bounds(PREVIEW_LINES_MAX=6)  # of three competitors in two unities
    assert (await league.client.get(path)).status == 200
    await league.declare({"unity": league.points, "best": 1})
    refused(await league.client.get(path), 422)
    bounds(PREVIEW_LINES_MAX=9)
    assert (await league.client.get(path)).status == 200
    bounds(PREVIEW_LINES_MAX=8)
    refused(await league.client.get(path), 422)
    monkeypatch.undo()
    bounds(CLASSIFIED_SUMS_MAX=7)  # each competitor counts, and each of their four sums
    assert (await league.client.get(path)).status == 200
    bounds(CLASSIFIED_SUMS_MAX=6)
    refused(await league.client.get(path), 503)


async def test_history_lists_declarations_among_the_deltas(league: League) -> None:
    chain = [{"unity": league.points, "best": 3}, {"unity": league.fouls, "among": "tied"}]
    await league.declare(*chain)
    await league.give(None, (league.ada, league.points, 1))
    await league.declare()
    lines = await history(league.client, league.path)
    declared, given, taken_back = lines[-3:]
    assert (declared["criteria"], taken_back["criteria"]) == (chain, [])
    for line in (declared, taken_back):
        assert {name for name, value in line.items() if value is not None} == {
            *("sequence", "recorded_at", "actor", "criteria"),
        }
        assert line.keys() - given.keys() == {"criteria"}
    assert await history(league.client, league.path, limit=1) == lines
    assert (await history(league.client, league.path, actor=given["actor"]))[-3:] == lines[-3:]
    since = {"from_sequence": declared["sequence"]}
    assert await history(league.client, league.path, **since) == lines[-3:]
    assert await history(league.client, league.path, actor=0, **since) == []
    for name, asked in ("competitor", league.ada), ("unity", league.points):
        assert await history(league.client, league.path, **since, **{name: asked}) == [given]
    assert await history(league.client, league.path, **since, competition=league.duel) == []


async def test_an_explanation_shows_what_parts_a_competitor_from_the_neighbours(league: League, bounds: Bounds) -> None:
    async def explained(who: int, query: str = "") -> Any:
        answer = await league.client.get(f"{league.path}/explain.json?competitor={who}{query}")
        assert answer.status == 200, answer.body
        return answer.json["explanation"]["classification"]

    undeclared = (await shown(league.client, league.path))["sequence"]
    assert await explained(league.ben) is None
    await league.declare({"unity": league.points}, {"unity": league.points, "among": "tied"})
    for who in (league.ada, league.ben, league.pair):
        around = await shown(league.client, league.path, f"?around={who}&span=1")
        assert await explained(who) == {"criteria": around["criteria"], "standings": around["standings"]}
    assert [line["decided_by"] for line in (await explained(league.ada))["standings"]] == [None, 1, 0]
    assert await explained(league.ada, f"&to={undeclared}") is None
    assert await explained(league.ada, f"&from={undeclared - 1}&limit=1") is None  # the page ends before
    new = await league.client.post("competitors.json", {"name": "Newcomer"})
    assert (await explained(new.json["competitor"]["id"]))["standings"] == []
    bounds(CLASSIFIED_SUMS_MAX=4)  # of Ada and Ben, who have two sums and one
    assert (await explained(league.ada))["standings"] is None
    bounds(CLASSIFIED_SUMS_MAX=5)
    assert len((await explained(league.ada))["standings"]) == 3


async def test_since_tells_how_many_places_each_line_has_moved_by_the_criteria_then(league: League) -> None:
    ada, ben, pair = league.ada, league.ben, league.pair
    await league.declare({"unity": league.points}, {"unity": league.fouls})
    then = await shown(league.client, league.path)
    assert [line[0] for line in lines(then)] == [ada, ben, pair]
    await league.give(None, (pair, league.points, 9))
    await league.declare({"unity": league.points}, {"unity": league.points, "among": "tied"})
    new = await league.client.post("competitors.json", {"name": "Newcomer"})
    newcomer = new.json["competitor"]["id"]
    await league.client.put(f"{league.path}/participants.json", {"add": newcomer})
    now = await shown(league.client, league.path)
    assert all("moved" not in line for line in now["standings"])
    for since in (f"since={then['sequence']}", f"at_sequence={now['sequence']}&since={then['sequence']}"):
        compared = await shown(league.client, league.path, f"?{since}")
        assert lines(compared) == lines(now)
        moved = {line["competitor_id"]: line["moved"] for line in compared["standings"]}
        assert moved == {pair: 2, ben: 0, ada: -2, newcomer: None}
    (line,) = (await shown(league.client, league.path, f"?around={ada}&span=0&since={then['sequence']}"))["standings"]
    assert line["moved"] == -2
    late = await shown(league.client, league.path, "?since_time=2999-12-31%2023:59:59")
    assert {line["moved"] for line in late["standings"]} == {0}
    refused(await league.client.get(f"{league.path}/classification.json?since=1"), 404)
    both = f"{league.path}/classification.json?since=1&since_time=2999-12-31%2023:59:59"
    refused(await league.client.get(both), 400, "since", "since_time")
