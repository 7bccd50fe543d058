"""Form over HTTP: windows, moments and bounds. What a form is, `tests/projections/test_form.py` says."""

from typing import Any

from projections.answers.form import LAST_DEFAULT, LAST_MAX
from tests.api.asking import NOBODY, refused
from tests.api.leagues import give, play
from tests.bounds import Bounds
from tests.service import Client, Season, create_ranking, listed

Sums = list[tuple[int, int]]


async def asked(client: Client, path: str, *query: str) -> Any:
    answer = await client.get(f"{path}/form.json?{'&'.join(query)}")
    assert answer.status == 200, answer.body
    return answer.json["form"]


def rows(told: Any) -> list[tuple[int, Sums]]:
    return [
        (one["competitor_id"], [(its["competition_id"], its["sum"]) for its in one["competitions"]])
        for one in told["form"]
    ]


async def test_a_form_is_shown_in_the_order_of_dates_now_and_as_it_was(season: Season, peers_client: Client) -> None:
    client, path, (ada, ben, pair) = season.client, season.path, season.ids
    second = await play(season, (ada, 3), (ben, 0), started_at="2026-05-02 15:00:00")
    first = await play(season, (ada, 1), (ben, 1), started_at="2026-05-01 15:00:00")
    await give(season, "", (ben, 50))  # free points are of no competition
    await give(season, second, (ada, 2))
    then = (await asked(client, path))["sequence"]
    assert rows(await asked(client, path)) == [
        (ben, [(first, 1), (second, 0)]),
        (ada, [(first, 1), (second, 5)]),
        (pair, []),
    ]
    await client.put(f"competitions/{first}.json", {"started_at": "2026-05-03 15:00:00"})
    third = await play(season, (pair, -4))  # added just now, so it started now
    for one in (client, peers_client):
        assert rows(await asked(one, path)) == [
            (ben, [(second, 0), (first, 1)]),
            (ada, [(second, 5), (first, 1)]),
            (pair, [(third, -4)]),
        ]
        assert rows(await asked(one, path, "last=1", f"competitors={ada},{ben}")) == [
            (ada, [(first, 1)]),
            (ben, [(first, 1)]),
        ]
        assert rows(await asked(one, path, f"around={ada}&span=0")) == [(ada, [(second, 5), (first, 1)])]
    await client.put(f"competitions/{first}/void.json")
    assert rows(await asked(client, path, "top=1")) == [(ben, [(second, 0)])]
    await client.put(f"competitions/{first}/unvoid.json")
    told = await asked(client, path, f"at_sequence={then}")
    assert rows(told) == [(ben, [(first, 1), (second, 0)]), (ada, [(first, 1), (second, 5)]), (pair, [])]
    assert (told["unity_id"], told["version"], told["sequence"], told["lines"]) == (season.unity_id, 5, then, 3)
    assert told == await asked(client, path, f"version={season.unity_id}:5")
    standings = (await client.get(f"{path}/standings.json?at_sequence={then}")).json["ranking"]
    assert told["recorded_at"] == standings["recorded_at"]
    fouls = (await client.get("rankings.json")).json["rankings"]["ranking"][0]["unities"][1]["id"]
    assert rows(await asked(client, path, f"unity={fouls}")) == [(ada, []), (ben, []), (pair, [])]


async def test_a_competition_without_a_date_took_place_when_its_points_were_recorded(season: Season) -> None:
    """Not when it was added."""
    ada = season.ids[0]
    dated = await play(season, (ada, 1), started_at="2001-11-01 15:00:00")
    added = season.competition_id
    other = await play(season, (ada, 2))
    await give(season, added, (ada, 3))
    assert rows(await asked(season.client, season.path, "top=1")) == [(ada, [(dated, 1), (other, 2), (added, 3)])]


async def test_the_competitions_shown_are_limited(season: Season) -> None:
    client, path, (ada, *_) = season.client, season.path, season.ids
    played = [await play(season, (ada, n)) for n in range(LAST_MAX + 1)]
    for last, query in ((LAST_DEFAULT, []), (1, ["last=1"]), (LAST_MAX, [f"last={LAST_MAX}"])):
        ((_, sums),) = rows(await asked(client, path, "top=1", *query))
        assert sums == [*zip(played, range(LAST_MAX + 1), strict=True)][-last:]
    for wrong in ("0", str(LAST_MAX + 1), "-1", "x"):
        refused(await client.get(f"{path}/form.json?last={wrong}"), 400, "last")


async def test_the_sums_that_one_answer_looks_at_are_limited(season: Season, bounds: Bounds) -> None:
    client, path, (ada, ben, _) = season.client, season.path, season.ids
    for _ in range(2):
        await play(season, (ada, 1), (ben, 1))
    bounds(FORM_SUMS_MAX=3)
    refused(answer := await client.get(f"{path}/form.json?top=2"), 422)
    assert answer.json["message"] == (
        "The competitors of this window have 4 sums of competitions, and one answer looks at no more than 3; "
        "ask for fewer lines."
    )
    bounds(FORM_SUMS_MAX=4)
    assert len(rows(await asked(client, path, "top=2"))) == 2


async def test_what_is_not_there_is_named(season: Season) -> None:
    client, path, (ada, ben, _) = season.client, season.path, season.ids
    other = await create_ranking(client, [ben], name="Other")
    for query in (f"unity={NOBODY}", f"unity={other['unities'][0]['id']}", "at_sequence=99999", f"version={NOBODY}:1"):
        refused(await client.get(f"{path}/form.json?{query}"), 404)
    refused(await client.get(f"rankings/{NOBODY}/form.json"), 404)
    refused(
        await client.get(f"rankings/{other['id']}/form.json?competitors={listed([ben, ada])}"),
        422,
        "competitors",
    )
    refused(await client.get(f"{path}/form.json?at_sequence=1&at_time=2999-01-01"), 400, "at_sequence", "at_time")
    refused(await client.get(f"{path}/form.json?tag=junior"), 400, "tag")
