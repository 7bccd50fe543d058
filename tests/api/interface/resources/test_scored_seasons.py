"""Whole seasons of football by a scoring: as counted from the matches after every match day, and as they ended; and
unchanged after many corrections that end where they began."""

import csv
import json
from itertools import groupby
from random import Random
from typing import Any, Final

import pytest

from tests.api.football import FOOTBALL, SEASONS, SORTS
from tests.api.interface.resources.test_football import TIED, Standing, recounted
from tests.service import Client, create_ranking, deltas, listed, register

CORRECTED: Final = 100
"""Matches that are corrected, each twice."""


class ScoredLeague:
    """A ranking that football's scoring gives points to."""

    def __init__(self, client: Client, names: list[str], ids: list[int], ranking: Any) -> None:
        self.client, self.names, self.path = client, dict(zip(ids, names, strict=True)), f"rankings/{ranking['id']}"
        self.ids = dict(zip(names, ids, strict=True))
        self.unities, self.last = {"points": ranking["unities"][0]["id"]}, 0

    @classmethod
    async def of(cls, client: Client, names: list[str]) -> "ScoredLeague":
        ids = await register(client, *names)
        league = cls(client, names, ids, await create_ranking(client, ids))
        for name in [*SORTS][1:]:
            answer = await client.post(f"{league.path}/unities.json", {"name": name, "sort": SORTS[name]})
            league.unities[name] = answer.json["unity"]["id"]
        unities = league.unities
        awards = [
            {"unity": unities["points"], "from": "outcome", "table": {"win": 3, "draw": 1, "loss": 0}},
            {"unity": unities["goal difference"], "from": "for"},
            {"unity": unities["goal difference"], "from": "against", "factor": -1},
            {"unity": unities["goals for"], "from": "for"},
            {"unity": unities["goals against"], "from": "against"},
        ]
        answer = await client.put(f"{league.path}/scoring.json", {"scorings": json.dumps([{"awards": awards}])})
        assert answer.status == 200, answer.body
        return league

    async def play(self, match: dict[str, Any]) -> int:
        form = {
            "group_id": 1,
            "started_at": f"{match['date']} 15:00:00",
            "participants": listed([self.ids[match["team1"]], self.ids[match["team2"]]]),
            "result": _score(match),
        }
        answer = await self.client.post("competitions.json", form)
        assert answer.status == 200, answer.body
        self.last = int(answer.headers["Tallybook-Sequence"])
        return int(answer.json["competition"]["id"])

    async def correct(self, match: int, result: str) -> None:
        answer = await self.client.put(f"competitions/{match}.json", {"result": result})
        assert answer.status == 200, answer.body

    async def standing(self, query: str = "") -> Standing:
        answer = await self.client.get(f"{self.path}/standings.json{query}")
        assert answer.status == 200, answer.body
        return {
            (unity["name"], self.names[line["competitor_id"]]): (line["position"], line["total"])
            for unity in answer.json["ranking"]["unities"]
            for line in unity["competitors_ranking"]
        }


def _score(match: dict[str, Any]) -> str:
    return ":".join(map(str, match["score"]["ft"]))


@pytest.mark.skipif(not SEASONS, reason="the seasons' data is not beside the project")
@pytest.mark.parametrize(
    "year", [pytest.param(year, marks=() if year == TIED else pytest.mark.long) for year in SEASONS or [TIED]]
)
async def test_a_scored_season_is_a_count_of_its_matches_and_survives_corrections(year: str, client: Client) -> None:
    matches = json.loads((FOOTBALL / f"{year}.json").read_text())["matches"]
    matches.sort(key=lambda match: (match["date"], match["time"]))
    teams = {match["team1"] for match in matches}
    league, played, ids, days = await ScoredLeague.of(client, sorted(teams)), [], list[int](), list[str]()
    for day, of_a_day in groupby(matches, key=lambda match: match["date"]):
        for match in of_a_day:
            ids.append(await league.play(match))
            played.append(match)
        days.append(day)
        counted, found = recounted(played), await league.standing()
        # A team that has not played yet has 0 in every unity, and is ranked accordingly.
        assert {named: total for named, (_, total) in found.items() if named in counted} == {
            named: total for named, (_, total) in counted.items()
        }
        assert all(total == 0 for named, (_, total) in found.items() if named not in counted)
    random = Random(year)
    queries = ["", *[f"?on={day}" for day in random.sample(days, 5)]]
    queries += [f"?at_sequence={sequence}" for sequence in random.sample(range(100, league.last), 3)]
    before = [await league.standing(query) for query in queries]
    corrected = random.sample(range(len(matches)), CORRECTED)
    for number in corrected:
        await league.correct(ids[number], f"{random.randrange(6)}:{random.randrange(6)}")
    assert [await league.standing(query) for query in queries] != before
    for number in random.sample(corrected, CORRECTED):
        await league.correct(ids[number], _score(matches[number]))
    assert [await league.standing(query) for query in queries] == before

    for deduction in json.loads((FOOTBALL / "deductions.json").read_text()).get(year, []):
        line = league.ids[deduction["team"]], league.unities["points"], deduction["points"]
        await client.put(f"{league.path}/add.json", {"participants_delta": deltas(line)})
    with (FOOTBALL / f"{year}.expected.csv").open(newline="") as file:
        expected = {(r["unity"], r["team"]): (int(r["position"]), int(r["total"])) for r in csv.DictReader(file)}
    assert await league.standing() == expected
