"""What is kept of answers is never shown after what it shows has changed.

A service that has answered everything before is held against one that was just started: the first answers from what
it has kept, the second makes all of it again from the log.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final

import pytest

from tests.service import Answer, Client, Season, create_ranking, deltas, listed, make_token, serve, totals

LISTS: Final = ("rankings.json", "competitions.json", "competitors.json", "competitors.json?page=2&per_page=1")


async def left_as_it_is(client: Client, season: Season) -> Answer:
    """The answer to a modification that changes nothing: the whole ranking, with the competitors in it."""
    return await client.put(f"{season.path}.json", {"main_unity_name": "points", "participants": listed(season.ids)})


async def everything(client: Client, season: Season) -> dict[str, Any]:
    """What the service answers to every question about the tournament that has one answer."""
    answers = {path: await client.get(path) for path in LISTS}
    answers["the ranking"] = await left_as_it_is(client, season)
    answers["a competitor"] = await client.put(f"competitors/{season.ids[2]}.json", {"color": "c0ffee"})
    answers["a competition"] = await client.put(f"competitions/{season.competition_id}.json", {"location": "Here"})
    assert {answer.status for answer in answers.values()} == {200}
    return {name: answer.json for name, answer in answers.items()}


async def rename(season: Season) -> Answer:
    return await season.client.put(f"competitors/{season.ids[0]}.json", {"name": "Ada Lovelace", "tags": "first"})


async def move_in_the_hierarchy(season: Season) -> Answer:
    return await season.client.put(f"competitors/{season.ids[2]}.json", {"parent": season.ids[1]})


async def register(season: Season) -> Answer:
    return await season.client.post("competitors.json", {"name": "Child", "parent": season.ids[0]})


async def move_a_competition(season: Season) -> Answer:
    return await season.client.put(f"competitions/{season.competition_id}.json", {"location": "There"})


async def void(season: Season) -> Answer:
    return await season.client.put(f"competitions/{season.competition_id}/void.json")


async def give_points(season: Season) -> Answer:
    line = {"participants_delta": deltas((season.ids[1], season.unity_id, 5))}
    return await season.client.put(f"{season.path}/add.json", line)


async def add_a_unity(season: Season) -> Answer:
    return await season.client.post(f"{season.path}/unities.json", {"name": "goals"})


async def shorten_the_list(season: Season) -> Answer:
    fewer = {"main_unity_name": "score", "participants": listed(season.ids[1:]), "description": "Of two"}
    return await season.client.put(f"{season.path}.json", fewer)


async def reopen(season: Season) -> Answer:
    return await season.client.put(f"rankings/{season.closed_ranking_id}/reopen.json")


@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    "change",
    [
        rename,
        move_in_the_hierarchy,
        register,
        move_a_competition,
        void,
        give_points,
        add_a_unity,
        shorten_the_list,
        reopen,
    ],
)
async def test_whatever_has_changed_all_answers_are_those_of_a_service_that_has_never_answered_before(
    dsn: str, season: Season, change: Callable[[Season], Awaitable[Answer]]
) -> None:
    before = await everything(season.client, season)
    assert (await change(season)).status == 200
    lists = [await season.client.get(path) for path in LISTS]
    async with serve(dsn) as restarted:
        client = restarted.client(season.client.tournament, await make_token(restarted.database))
        assert [answer.json for answer in lists] == [(await client.get(path)).json for path in LISTS]
        ranking = await left_as_it_is(season.client, season)
        assert ranking.json == (await left_as_it_is(client, season)).json
    assert [ranking.json, *(answer.json for answer in lists)] != [before["the ranking"], *map(before.get, LISTS)]


async def test_a_changed_name_is_shown_wherever_the_competitor_is_shown(season: Season) -> None:
    """Points change nothing of a ranking's list of competitors, so it is kept from one such answer to the next."""
    line = {"participants_delta": deltas((season.ids[1], season.unity_id, 1))}
    for name in ("Ada", "Adah", "Ida"):
        assert (await season.client.put(f"competitors/{season.ids[0]}.json", {"name": name})).status == 200
        (ranking, *_) = (await season.client.get("rankings.json")).json["rankings"]["ranking"]
        *_, last = (await season.client.get("competitions.json")).json["competitions"]["competition"]
        added = (await season.client.put(f"{season.path}/add.json", line)).json["ranking"]
        listing = (await season.client.get("competitors.json")).json["competitors"]["competitor"]
        shown = [ranking["competitors"][0], last["participants"][0]["competitor"], added["competitors"][0], listing[0]]
        assert [(competitor["id"], competitor["name"]) for competitor in shown] == [(season.ids[0], name)] * 4


async def test_two_rankings_that_are_answered_at_one_head_are_two(season: Season) -> None:
    """A repeat appends nothing: the second ranking is shown at the very event at which the first was shown."""
    ada, ben, _ = season.ids
    cup = await create_ranking(season.client, [ada, ben], name="Cup")
    in_cup = {"participants_delta": deltas((ben, cup["unities"][0]["id"], 7))}
    in_season = {"participants_delta": deltas((ada, season.unity_id, 3))}
    key = {"Idempotency-Key": "cup"}
    first = await season.client.put(f"rankings/{cup['id']}/add.json", in_cup, key)
    added = await season.client.put(f"{season.path}/add.json", in_season)
    again = await season.client.put(f"rankings/{cup['id']}/add.json", in_cup, key)
    assert again.headers["Idempotency-Replayed"] == "true"
    assert [answer.json["ranking"]["id"] for answer in (added, again)] == [season.ranking_id, cup["id"]]
    assert totals(again) == {ada: 0, ben: 7}
    assert again.json == first.json


# ── Questions about the past and about what would be ────────────────────────────────────────────────────


async def test_the_past_shows_what_a_peer_has_recorded(season: Season, peers_client: Client) -> None:
    """Also where nobody has asked this service for anything since."""
    ada = season.ids[0]
    query = f"competitor={ada}&unity={season.unity_id}"
    for total in range(1, 6):
        line = {"participants_delta": deltas((ada, season.unity_id, 1))}
        assert (await peers_client.put(f"{season.path}/add.json", line)).status == 200
        match total % 3:
            case 0:
                answer = await season.client.get(f"{season.path}/history.json?{query}")
                assert [line["total"] for line in answer.json["history"]] == list(range(1, total + 1))
            case 1:
                assert totals(await season.client.get(f"{season.path}/standings.json"))[ada] == total
            case 2:
                answer = await season.client.get(f"{season.path}/explain.json?{query}")
                assert answer.json["explanation"]["to"]["total"] == total


async def test_a_preview_is_of_all_that_a_peer_has_recorded(season: Season, peers_client: Client) -> None:
    ada, path = season.ids[0], f"competitions/{season.competition_id}"
    await season.client.get("rankings.json")
    line = {"participants_delta": deltas((ada, season.unity_id, 5)), "competition_id": season.competition_id}
    assert (await peers_client.put(f"{season.path}/add.json", line)).status == 200
    foreseen = (await season.client.get(f"{path}/void.json")).json["rankings"]
    moves = [(m["competitor_id"], m["total_before"], m["total_after"]) for m in foreseen[0]["unities"][0]["moves"]]
    assert (ada, 5, 0) in moves
    assert (await peers_client.put(f"{path}/void.json")).status == 200
    assert (await season.client.get(f"{path}/void.json")).status == 409
