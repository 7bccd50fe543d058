"""What counts, on the command line: voided competitions, and standings had something not been."""

import json
import re

import pytest

from tests.api.cli.conftest import Tallybook
from tests.service import Season, deltas


@pytest.fixture
async def played(season: Season) -> Season:
    """Ada has 3 points by a competition, Ben 2 and Pair 1 without one."""
    ada, ben, pair = season.ids
    path = f"{season.path}/add.json"
    for lines, fields in (
        ([(ada, season.unity_id, 3)], {"competition_id": season.competition_id}),
        ([(ben, season.unity_id, 2), (pair, season.unity_id, 1)], {}),
    ):
        await season.client.put(path, {"participants_delta": deltas(*lines)} | fields)
    return season


def places(rankings: list[dict], unity: str = "points") -> list[tuple[object, ...]]:  # type: ignore[type-arg]
    (moves,) = [u["moves"] for ranking in rankings for u in ranking["unities"] if u["name"] == unity]
    return [(m["name"], m["position_before"], m["total_before"], m["position_after"], m["total_after"]) for m in moves]


WITHOUT_ADA = [("Ben", 2, 2, 1, 2), ("Pair", 3, 1, 2, 1), ("Ada", 1, 3, 3, 0)]


async def test_void_and_unvoid(tallybook: Tallybook, played: Season) -> None:
    slug, match = played.client.tournament, str(played.competition_id)
    assert places(await tallybook.json("void", slug, match, "--dry-run")) == WITHOUT_ADA
    table = await tallybook.done("void", slug, match, "--dry-run")
    assert "▲ 1" in table
    assert "▼ 2" in table
    assert (await tallybook.json("standings", slug, str(played.ranking_id)))["unities"][0]["competitors_ranking"][0][
        "competitor_id"
    ] == played.ids[0]
    assert "sequence" in await tallybook.json("void", slug, match)
    first = (await tallybook.json("standings", slug, str(played.ranking_id)))["unities"][0]["competitors_ranking"][0]
    assert first == {"competitor_id": played.ids[1], "position": 1, "total": 2}
    assert "already voided" in (await tallybook.refused("void", slug, match))[0]
    said = await tallybook("unvoid", slug, match)
    assert (said.code, said.out) == (0, "")
    assert "recorded as event" in said.err
    assert "is not voided" in (await tallybook.refused("unvoid", slug, match))[0]


async def test_points_are_undone_and_redone(tallybook: Tallybook, played: Season) -> None:
    slug, ranking = played.client.tournament, str(played.ranking_id)
    added = json.loads((await tallybook.done("history", slug, ranking, "--json")).splitlines()[0])["sequence"]
    undo = "points", "undo", slug, ranking
    assert places(await tallybook.json(*undo, str(added), "--dry-run")) == WITHOUT_ADA
    undone = (await tallybook.json(*undo, str(added)))["sequence"]
    assert f"name the event that undid it: {undone}" in (await tallybook.refused(*undo, str(added)))[0]
    assert f"undo of {added}" in await tallybook.done("history", slug, ranking)
    assert "was undone" in await tallybook.done("explain", slug, ranking, "Ada")
    await tallybook.done(*undo, str(undone))
    assert f"redo of {added}" in await tallybook.done("history", slug, ranking)


async def test_a_competitor_is_struck_and_unstruck(tallybook: Tallybook, played: Season) -> None:
    slug, match = played.client.tournament, str(played.competition_id)
    assert places(await tallybook.json("strike", slug, match, "Ada", "--dry-run")) == WITHOUT_ADA
    await tallybook.json("strike", slug, match, "Ada")
    assert "already struck" in (await tallybook.refused("strike", slug, match, "Ada"))[0]
    assert "no longer counts" in await tallybook.done("explain", slug, str(played.ranking_id), "Ada")
    await tallybook.done("unstrike", slug, match, "Ada")
    assert "not struck" in (await tallybook.refused("unstrike", slug, match, "Ada"))[0]


async def test_voiding_what_gave_no_points_changes_no_ranking(tallybook: Tallybook, played: Season) -> None:
    said = await tallybook("unvoid", played.client.tournament, str(played.voided_competition_id), "--dry-run")
    assert (said.code, said.out) == (0, "")
    assert "no ranking changes" in said.err


async def test_what_if_shows_the_standings_without_a_competition(tallybook: Tallybook, played: Season) -> None:
    slug, ranking, match = played.client.tournament, str(played.ranking_id), str(played.competition_id)
    without = await tallybook.json("what-if", slug, ranking, "--without-competition", match)
    assert places(without) == WITHOUT_ADA
    assert [unity["name"] for unity in without[0]["unities"]] == ["points", "fouls"]
    of_fouls = await tallybook.json("what-if", slug, ranking, "--without-competition", match, "--unity", "fouls")
    assert [unity["name"] for unity in of_fouls[0]["unities"]] == ["fouls"]
    await tallybook.done("void", slug, match)
    after_voiding = await tallybook.json("what-if", slug, ranking, "--without-competition", match)
    assert places(after_voiding) == [("Ben", 1, 2, 1, 2), ("Pair", 2, 1, 2, 1), ("Ada", 3, 0, 3, 0)]


async def test_what_if_shows_the_standings_without_a_competitor(tallybook: Tallybook, played: Season) -> None:
    slug, ranking, (ada, ben, _) = played.client.tournament, str(played.ranking_id), played.ids
    without = await tallybook.json("what-if", slug, ranking, "--without-competitor", str(ada))
    assert places(without) == [("Ben", 2, 2, 1, 2), ("Pair", 3, 1, 2, 1), ("Ada", 1, 3, None, None)]
    both = await tallybook.json(
        "what-if", slug, ranking, "--without-competitor", str(ada), "--without-competitor", str(ben)
    )
    assert places(both) == [("Pair", 3, 1, 1, 1), ("Ada", 1, 3, None, None), ("Ben", 2, 2, None, None)]
    table = await tallybook.done("what-if", slug, ranking, "--without-competitor", str(ada))
    assert "out" in table


async def test_previews_show_the_classification_where_one_is_declared(tallybook: Tallybook, played: Season) -> None:
    slug, ranking, match = played.client.tournament, str(played.ranking_id), str(played.competition_id)
    (undeclared,) = await tallybook.json("what-if", slug, ranking, "--without-competition", match)
    assert "classification" not in undeclared
    await tallybook.done("classification", "declare", slug, ranking, "points:best=1", "fouls")
    foreseen = await tallybook.json("void", slug, match, "--dry-run")
    places = [
        {"competitor_id": who, "name": name, "position_before": before, "position_after": after}
        for who, (name, before, after) in zip(
            (played.ids[1], played.ids[2], played.ids[0]),
            [("Ben", 2, 1), ("Pair", 3, 2), ("Ada", 1, 3)],
            strict=True,
        )
    ]
    assert foreseen[0]["classification"] == places
    without_match = await tallybook.json("what-if", slug, ranking, "--without-competition", match)
    assert without_match[0]["classification"] == places
    without_ada = await tallybook.json("what-if", slug, ranking, "--without-competitor", str(played.ids[0]))
    assert without_ada[0]["classification"] == [*places[:2], places[2] | {"position_after": None}]
    (of_points,) = await tallybook.json("what-if", slug, ranking, "--without-competition", match, "--unity", "points")
    assert "classification" not in of_points
    table = await tallybook.done("void", slug, match, "--dry-run")
    assert re.search(r"│ 1 +│ 2 +│ ▲ 1 │ Ben", table[table.index("Season: classification") :]), table


async def test_what_if_leaves_expired_points_out_of_both_standings(tallybook: Tallybook, played: Season) -> None:
    client, (ada, ben, _), match = played.client, played.ids, str(played.competition_id)
    declared = {"lasts": "P52W", "expires_on": "week"}
    for counts in ("sum", "best"):
        form = {"name": f"rolling {counts}", "counts": counts, **declared}
        unity = (await client.post(f"{played.path}/unities.json", form)).json["unity"]["id"]
        old = (await client.post("competitions.json", {"group_id": 1, "started_at": "2020-01-01 12:00:00"})).json
        for lines, cause in (
            ([(ada, unity, 9), (ben, unity, 8)], {"competition_id": old["competition"]["id"]}),
            ([(ada, unity, 5), (ben, unity, 1)], {}),
            ([(ben, unity, 7)], {"competition_id": match}),
        ):
            added = await client.put(f"{played.path}/add.json", {"participants_delta": deltas(*lines)} | cause)
            assert added.status == 200
        asked = [client.tournament, str(played.ranking_id), "--without-competition", match]
        shown = places(await tallybook.json("what-if", *asked), form["name"])
        found = {name: (before, after) for name, _, before, _, after in shown}
        assert (found["Ada"], found["Ben"]) == ((5, 5), (8 if counts == "sum" else 7, 1))


async def test_what_if_refuses_what_is_not_there(tallybook: Tallybook, played: Season) -> None:
    slug, ranking = played.client.tournament, str(played.ranking_id)
    for arguments, reason in {
        (slug, "99"): "no ranking 99",
        (slug, ranking, "--without-competition", "99"): "no competition 99",
        (slug, ranking, "--without-competitor", "99"): "no competitor 99",
        (slug, ranking, "--unity", "time"): "no unity 'time'",
        ("nowhere", ranking): "no tournament 'nowhere'",
    }.items():
        assert reason in (await tallybook.refused("what-if", *arguments))[0]


async def test_a_dry_run_of_what_is_refused_is_refused(tallybook: Tallybook, played: Season) -> None:
    slug = played.client.tournament
    await played.client.put(f"{played.path}/close.json")
    assert "closed rankings" in (await tallybook.refused("void", slug, str(played.competition_id), "--dry-run"))[0]
    assert json.loads((await tallybook("what-if", slug, str(played.ranking_id), "--json")).out)
