"""Whole seasons of football by a scoring: as counted from the matches after every match day, and as they ended;
unchanged after many corrections that end where they began; and with all that happens to an organiser."""

import copy
import csv
import json
from datetime import date, timedelta
from itertools import groupby
from random import Random
from typing import Any, Final

import pytest

from engine.database.pool import Database
from tests.api.football import FOOTBALL, SEASONS, SORTS
from tests.api.interface.resources.test_football import TIED, Standing, recounted
from tests.projections.verified import verified
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


class Calendar:
    """The matches of a season as an organiser has them on paper, and each state of the paper. `teams`: those in the
    table; `played`: by match, who met, when, and the goals, None without a result; `moments`: by event."""

    def __init__(self, league: ScoredLeague) -> None:
        self._league, self.teams = league, set(league.ids)
        self.played: dict[int, tuple[str, str, str, tuple[int, int] | None]] = {}
        self._moments: dict[int, Calendar] = {}

    async def add(self, number: int, day: str, pairs: list[tuple[str, str]]) -> list[int]:
        """The fixtures of a round."""
        ids = self._league.ids
        fields = {"group_id": 1, "round": number, "started_at": f"{day} 15:00:00"}
        items = [fields | {"participants": [ids[one], ids[other]]} for one, other in pairs]
        answer = await self._league.client.post("competitions.json", {"items": json.dumps(items)})
        assert answer.status == 200, answer.body
        added = [one["id"] for one in answer.json["competitions"]["competition"]]
        self.played |= {match: (*pair, day, None) for match, pair in zip(added, pairs, strict=True)}
        return added

    async def say(self, match: int, result: str, day: str = "") -> None:
        """A result, or another one, or none any more; or another day."""
        goals = (int(result[0]), int(result[2])) if result else None
        one, other, before, _ = self.played[match]
        self.played[match] = one, other, day or before, goals
        moved = {"started_at": f"{day} 15:00:00"} if day else {"result": result}
        await self._do(f"competitions/{match}.json", moved)

    async def withdraw(self, team: str) -> None:
        """Without its results."""
        for match in [match for match, (one, other, *_) in self.played.items() if team in (one, other)]:
            del self.played[match]
            await self._do(f"competitions/{match}/void.json", {})
        self.teams.remove(team)
        await self._do(f"{self._league.path}/participants.json", {"remove": self._league.ids[team]})

    async def _do(self, path: str, form: dict[str, object]) -> None:
        answer = await self._league.client.put(path, form)
        assert answer.status == 200, answer.body
        self._moments[int(answer.headers["Tallybook-Sequence"])] = then = copy.copy(self)
        then.teams, then.played = {*self.teams}, {**self.played}

    def counted(self, on: str = "9999") -> Standing:
        """The table by the matches until a day."""
        totals = {(unity, team): 0 for unity in SORTS for team in self.teams}
        for *pair, day, goals in self.played.values():
            if goals is not None and day <= on:
                for team, own, other in (pair[0], *goals), (pair[1], *goals[::-1]):
                    points = 3 if own > other else 1 if own == other else 0
                    for unity, amount in zip(SORTS, (points, own - other, own, other), strict=True):
                        totals[unity, team] += amount
        return {
            (unity, team): (1 + sum(self._is_better(unity, totals[unity, one], total) for one in self.teams), total)
            for (unity, team), total in totals.items()
        }

    @staticmethod
    def _is_better(unity: str, one: int, other: int) -> bool:
        return one < other if SORTS[unity] == "ASC" else one > other

    async def compare(self, days: list[str], moments: int) -> None:
        """The table now, on these days, and after the last changes."""
        assert await self._league.standing() == self.counted()
        for day in days:
            assert await self._league.standing(f"?on={day}") == self.counted(day), day
        for sequence, then in [*self._moments.items()][-moments:]:
            assert await self._league.standing(f"?at_sequence={sequence}") == then.counted(), sequence


def _rounds(teams: list[str]) -> list[list[tuple[str, str]]]:
    """Everybody meets everybody once at home and once away."""
    first, *others = teams
    rounds = []
    for _ in others:
        row = [first, *others]
        rounds.append(list(zip(row[: len(row) // 2], row[: len(row) // 2 - 1 : -1], strict=True)))
        others.append(others.pop(0))
    return rounds + [[pair[::-1] for pair in pairs] for pairs in rounds]


async def test_a_season_of_fixtures_corrections_a_walkover_a_withdrawal_and_a_postponed_match(
    client: Client, database: Database
) -> None:
    league = await ScoredLeague.of(client, ["Ajax", "Bari", "Celtic", "Derby", "Everton", "Fulham"])
    calendar, random = Calendar(league), Random(7)
    rounds = _rounds([*league.ids])
    days = [str(date(2026, 3, 1) + timedelta(weeks=week)) for week in range(len(rounds) + 1)]
    matches = [await calendar.add(n, day, pairs) for n, (day, pairs) in enumerate(zip(days, rounds, strict=False), 1)]
    await calendar.compare(days, 0)  # fixtures give nothing
    postponed, walkover = matches[2][0], matches[3][1]
    for number, of_a_round in enumerate(matches, start=1):
        for match in of_a_round:
            if match == walkover:
                await calendar.say(match, "0:3 wo")
            elif match == postponed:
                await calendar.say(match, "", day=days[6])
            elif match in calendar.played:
                await calendar.say(match, f"{random.randrange(5)}:{random.randrange(5)}")
        if number == 3:
            one, other = calendar.played[matches[1][0]][3] or (0, 0)
            await calendar.say(matches[1][0], f"{other}:{one + 1}")  # the wrong way round, and a goal too few
        if number == 5:
            await calendar.say(matches[4][2], "")  # of another match
            await calendar.say(matches[4][2], "2:2")
        if number == 7:
            await calendar.say(postponed, "1:0")
            await calendar.withdraw("Fulham")
        if number == 9:
            await calendar.say(matches[0][1], "4:4")
        await calendar.compare([days[number - 1]], 2)
    await calendar.compare(days, 100)
    assert len(calendar.played) == 20
    assert not (await verified(database)).differences
