"""Results give points only where a ranking says how. Where none does, the documented operations only describe
competitions, and points of a competition stay what they were sent as."""

import json
import re
from typing import Final

import asyncpg

from tests.service import Season, deltas, listed

DESCRIBES: Final = {"CompetitionAdded", "CompetitionChanged", "CompetitionVoided", "CompetitionUnvoided"}


_MOMENT: Final = re.compile(rb'"sequence":[0-9]+,"recorded_at":"[^"]*"')


async def tables(season: Season) -> list[bytes]:
    """Every answer about rankings and totals, byte for byte, but for the moment that it is of."""
    paths = [
        "rankings.json",
        f"{season.path}.json",
        f"{season.path}/standings.json",
        f"{season.path}/classification.json",
        f"rankings/{season.closed_ranking_id}/standings.json",
        f"competitors/{season.ids[0]}/standings.json",
    ]
    answers = [await season.client.get(path) for path in paths]
    assert {answer.status for answer in answers} == {200}
    return [_MOMENT.sub(b"", answer.body) for answer in answers]


async def kinds_after(owner: asyncpg.Connection, sequence: int) -> set[str]:
    return {row["kind"] for row in await owner.fetch("SELECT kind FROM event WHERE sequence > $1", sequence)}


async def test_results_and_winners_change_no_total_no_version_and_no_ranking(
    season: Season, owner: asyncpg.Connection
) -> None:
    before, last = await tables(season), await owner.fetchval("SELECT max(last_sequence) FROM block")
    ada, ben, _ = season.ids
    pair = {"group_id": 7, "participants": listed([ada, ben])}
    for said in (
        {"result": "2:0", "winner": ada},
        {"result": "0:2", "winner": ada},
        {"winner": ben},
        {"result": "won"},
    ):
        assert (await season.client.post("competitions.json", pair | said)).status == 200
        assert await tables(season) == before
    race = {"result": json.dumps({one: f"{n}.5 s" for n, one in enumerate(season.ids)}), "winner": ben}
    changes = [
        (f"competitions/{season.competition_id}.json", race),
        (f"competitions/{season.competition_id}.json", {"winner": ada}),
        (f"competitions/{season.competition_id}.json", {"result": ""}),
        (f"competitions/{season.competition_id}/void.json", {}),
        (f"competitions/{season.competition_id}/unvoid.json", {}),
    ]
    for path, form in changes:
        assert (await season.client.put(path, form)).status == 200
        assert await tables(season) == before
    assert await kinds_after(owner, last) == DESCRIBES


async def test_points_that_name_a_competition_stay_as_they_were_sent_whatever_its_result_becomes(
    season: Season, owner: asyncpg.Connection
) -> None:
    ada, ben, _ = season.ids
    given = {
        "participants_delta": deltas((ada, season.unity_id, 3), (ben, season.unity_id, 1)),
        "competition_id": season.competition_id,
    }
    assert (await season.client.put(f"{season.path}/add.json", given)).status == 200
    after, last = await tables(season), await owner.fetchval("SELECT max(last_sequence) FROM block")
    path = f"competitions/{season.competition_id}.json"
    for form in ({"winner": ben}, {"result": json.dumps({ben: "9.1 s"})}, {"result": ""}):
        assert (await season.client.put(path, form)).status == 200
        assert await tables(season) == after
    assert await kinds_after(owner, last) == {"CompetitionChanged"}
