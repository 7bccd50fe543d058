"""Whole seasons of football, played over HTTP by a client that knows nothing but the interface, come out right."""

import asyncio
import csv
import json
from collections import Counter
from itertools import groupby
from typing import Any

import asyncpg
import pytest

from api.interface.resources.rankings import RankingQuestion
from api.interface.resources.standings import PastView
from engine.database.pool import Database
from engine.domain.events import (
    CompetitionAdded,
    CompetitorRegistered,
    Delta,
    Event,
    PointsAdded,
    RankingCreated,
    UnityAdded,
)
from engine.domain.terms import CompetitionId, CompetitorId, RankingId, Sequence, Sort, TournamentId, UnityId
from engine.log import registry
from projections.past import moments
from projections.past.moments import AtSequence
from projections.past.past import Past
from projections.tables import snapshots
from projections.tables.worker import Worker
from tests.api.football import FOOTBALL, SEASONS, SORTS
from tests.api.rendered import ADD, answered
from tests.bounds import Bounds
from tests.desks import record
from tests.service import Answer, Client
from tests.shares import every

TIED = "2018-19_it.1"
"""The season whose order was decided among clubs with the same points."""

Standing = dict[tuple[str, str], tuple[int, int]]
"""Position and total by unity and team."""


@pytest.mark.one_in(2)
@pytest.mark.skipif(not SEASONS, reason="the seasons' data is not beside the project")
@pytest.mark.parametrize("year", SEASONS or ["no season"])
async def test_a_season_ends_as_it_did(
    year: str, client: Client, peers_client: Client, database: Database, owner: asyncpg.Connection
) -> None:
    matches = json.loads((FOOTBALL / f"{year}.json").read_text())["matches"]
    matches.sort(key=lambda match: (match["date"], match["time"]))
    deductions = json.loads((FOOTBALL / "deductions.json").read_text()).get(year, [])
    with (FOOTBALL / f"{year}.expected.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    expected = {(line["unity"], line["team"]): (int(line["position"]), int(line["total"])) for line in lines}
    assert {line["unity"]: line["sort"] for line in lines} == SORTS

    league = await League.found(client, sorted({match["team1"] for match in matches}))
    for _, of_a_day in groupby(matches, key=lambda match: match["date"]):
        await asyncio.gather(*map(league.play, of_a_day))
    for deduction in deductions:
        await league.give({deduction["team"]: {"points": deduction["points"]}})

    for asked in (client, peers_client):  # whichever service answers
        listing = (await asked.get("competitions.json?per_page=1")).json["competitions"]
        assert listing["total"] == len(matches)
        answer = await league.left_as_it_is(asked)
        assert league.standing(answer) == expected
        assert league.versions(answer) == {unity: 1 + named for unity, named in league.named.items()}

    await Worker(database).catch_up()
    rows = await owner.fetch("SELECT unity, competitor, position, total, version FROM standing")
    assert {(row["unity"], row["competitor"]): (row["position"], row["total"]) for row in rows} == expected
    assert {(row["unity"], row["version"]) for row in rows} == set(league.versions(answer).items())


@pytest.mark.skipif(not SEASONS, reason="the seasons' data is not beside the project")
@pytest.mark.long
async def test_each_match_of_a_season_can_be_voided_and_had_back(client: Client) -> None:
    """In turn: without it the standing is that of the other matches, and with it again what it was."""
    matches = json.loads((FOOTBALL / f"{SEASONS[0]}.json").read_text())["matches"]
    league = await League.found(client, sorted({match["team1"] for match in matches}))
    for match in matches:
        await league.play(match)
    season = league.standing(await league.left_as_it_is(client))
    assert season == recounted(matches)
    for number, match in enumerate(matches):
        await league.void(match)
        others = matches[:number] + matches[number + 1 :]
        assert league.standing(await league.left_as_it_is(client)) == recounted(others)
        await league.void(match, un="un")
        assert league.standing(await league.left_as_it_is(client)) == season


def recounted(matches: list[dict[str, Any]]) -> Standing:
    """Who stands where after these matches, counted from their scores alone."""
    totals = {(unity, team): 0 for unity in SORTS for match in matches for team in (match["team1"], match["team2"])}
    for match in matches:
        goals, conceded = match["score"]["ft"]
        for team, gains in (match["team1"], _gains(goals, conceded)), (match["team2"], _gains(conceded, goals)):
            for unity, gain in gains.items():
                totals[unity, team] += gain
    return {
        (unity, team): (1 + sum(u == unity and _better(unity, t, total) for (u, _), t in totals.items()), total)
        for (unity, team), total in totals.items()
    }


def _better(unity: str, total: int, other: int) -> bool:
    return total > other if SORTS[unity] == "DESC" else total < other


@pytest.mark.skipif(not SEASONS, reason="the seasons' data is not beside the project")
@pytest.mark.parametrize(
    "year", [pytest.param(year, marks=() if year == TIED else pytest.mark.long) for year in SEASONS or [TIED]]
)
@every(4)
async def test_every_moment_of_a_season_is_a_recount_of_the_matches_until_then(
    year: str,
    database: Database,
    tournament_id: TournamentId,
    bounds: Bounds,
    step: int,
) -> None:
    matches = json.loads((FOOTBALL / f"{year}.json").read_text())["matches"]
    matches.sort(key=lambda match: (match["date"], match["time"]))
    deductions = json.loads((FOOTBALL / "deductions.json").read_text()).get(year, [])
    bounds(INTERVAL_EVENTS_MIN=50, INTERVAL_EVENTS_PER_ROW=0, TAIL_EVENTS_MAX=60)
    ledger = await Ledger.kept(database, tournament_id, sorted({match["team1"] for match in matches}))
    await ledger.note(matches, deductions)
    await Worker(database).catch_up()
    async with database.connection() as connection:
        assert len(await snapshots.sequences(connection, tournament_id)) > 10
    past = Past(database)
    for sequence in range(ledger.last, ledger.first - 1, -step):
        then = await moments.at(past, tournament_id, ledger.ranking_id, AtSequence(Sequence(sequence)), ledger.last)
        listing = answered(PastView(tournament_id, then), ADD, RankingQuestion(ledger.ranking_id))
        assert shown(json.loads(listing)["ranking"]) == ledger.expected[sequence], sequence
    with (FOOTBALL / f"{year}.expected.csv").open(newline="") as file:
        lines = [(r["unity"], r["team"], int(r["position"]), int(r["total"])) for r in csv.DictReader(file)]
    assert sorted(line[:4] for line in ledger.expected[ledger.last]) == sorted(lines)


def shown(ranking: Any) -> list[tuple[str, str, int, int, int]]:
    """Unity, team, position, total and version of the unity, in the order shown."""
    names = {competitor["id"]: competitor["name"] for competitor in ranking["competitors"]}
    return [
        (unity["name"], names[line["competitor_id"]], line["position"], line["total"], unity["version"])
        for unity in ranking["unities"]
        for line in unity["competitors_ranking"]
    ]


class Ledger:
    """A season in the log, and beside it, counted from the matches alone, what is to be shown after each event."""

    def __init__(self, database: Database, tournament_id: TournamentId, teams: dict[str, CompetitorId]) -> None:
        self.expected: dict[int, list[tuple[str, str, int, int, int]]] = {}
        self.first = self.last = Sequence(0)
        self.ranking_id = RankingId(0)
        self._unities: dict[str, UnityId] = {}
        self._database = database
        self._tournament_id = tournament_id
        self._teams = teams
        self._played: list[tuple[str, int, int]] = []  # team, goals, conceded
        self._deducted: Counter[str] = Counter()
        self._versions: Counter[str] = Counter()

    @classmethod
    async def kept(cls, database: Database, tournament_id: TournamentId, names: list[str]) -> "Ledger":
        async with database.connection() as connection:
            ids = await registry.next_ids(connection, len(names) + 1 + len(SORTS))
        ledger = cls(database, tournament_id, dict(zip(names, map(CompetitorId, ids), strict=False)))
        ledger.ranking_id = RankingId(ids[len(names)])
        ledger._unities = dict(zip(SORTS, map(UnityId, ids[len(names) + 1 :]), strict=True))
        main, *others = SORTS
        await ledger._append(*(CompetitorRegistered(competitor_id=i, name=name) for name, i in ledger._teams.items()))
        await ledger._append(
            RankingCreated(
                ranking_id=ledger.ranking_id,
                name="League",
                participants=tuple(ledger._teams.values()),
                main_unity_id=ledger._unities[main],
                main_unity_name=main,
            )
        )
        for name in others:
            unity = UnityAdded(
                ranking_id=ledger.ranking_id, unity_id=ledger._unities[name], name=name, sort=Sort(SORTS[name])
            )
            await ledger._append(unity)
        ledger._versions = Counter(dict.fromkeys(SORTS, 1))
        ledger.first = ledger.last
        ledger.expected = {ledger.first: ledger._recount()}
        return ledger

    async def note(self, matches: list[dict[str, Any]], deductions: list[dict[str, Any]]) -> None:
        """The matches day by day, each day in one block, and the deductions on their days."""
        pending = sorted(deductions, key=lambda deduction: deduction["date"])
        for day, of_a_day in groupby(matches, key=lambda match: match["date"]):
            block: list[Event] = []
            while pending and pending[0]["date"] <= day:
                self._deduct(block, pending.pop(0))
            for match in of_a_day:
                await self._play(block, match)
            await self._append(*block)
        block = []
        for deduction in pending:
            self._deduct(block, deduction)
        await self._append(*block)

    async def _play(self, block: list[Event], match: dict[str, Any]) -> None:
        home, away = match["team1"], match["team2"]
        goals, conceded = match["score"]["ft"]
        async with self._database.connection() as connection:
            competition_id = CompetitionId((await registry.next_ids(connection, 1))[0])
        participants = self._teams[home], self._teams[away]
        block.append(
            CompetitionAdded(
                competition_id=competition_id, group_id=1, participants=participants, result=f"{goals}:{conceded}"
            )
        )
        self._expect(block)
        gains = {home: _gains(goals, conceded), away: _gains(conceded, goals)}
        block.append(self._points(gains, competition_id))
        self._played += [(home, goals, conceded), (away, conceded, goals)]
        self._versions.update({unity for given in gains.values() for unity in given})
        self._expect(block)

    def _deduct(self, block: list[Event], deduction: dict[str, Any]) -> None:
        block.append(self._points({deduction["team"]: {"points": deduction["points"]}}, None))
        self._deducted[deduction["team"]] += deduction["points"]
        self._versions["points"] += 1
        self._expect(block)

    def _points(self, gains: dict[str, dict[str, int]], competition_id: CompetitionId | None) -> PointsAdded:
        deltas = tuple(
            Delta(self._teams[team], self._unities[unity], gain)
            for team, given in gains.items()
            for unity, gain in given.items()
        )
        return PointsAdded(ranking_id=self.ranking_id, deltas=deltas, competition_id=competition_id)

    def _expect(self, block: list[Event]) -> None:
        """What there is to be shown after the last event of `block`, which is about to be appended."""
        self.expected[self.last + len(block)] = self._recount()

    def _recount(self) -> list[tuple[str, str, int, int, int]]:
        """From the matches played so far, and nothing else."""
        counts: dict[str, Counter[str]] = {unity: Counter() for unity in SORTS}
        for team, goals, conceded in self._played:
            counts["points"][team] += 3 if goals > conceded else 1 if goals == conceded else 0
            counts["goal difference"][team] += goals - conceded
            counts["goals for"][team] += goals
            counts["goals against"][team] += conceded
        for team, points in self._deducted.items():
            counts["points"][team] += points
        lines = []
        for unity, sort in SORTS.items():
            sign = 1 if sort == "ASC" else -1
            totals = {team: counts[unity][team] for team in self._teams}
            for team in sorted(totals, key=lambda team: sign * totals[team]):
                better = sum(sign * other < sign * totals[team] for other in totals.values())
                lines.append((unity, team, 1 + better, totals[team], self._versions[unity]))
        return lines

    async def _append(self, *block: Event) -> None:
        if block:
            async with self._database.connection() as connection:
                appended = await record(connection, self._tournament_id, *block)
            assert appended.last_sequence is not None
            self.last = appended.last_sequence


class League:
    """What a client keeps: the ids that it was told, and how many of its requests named each unity."""

    def __init__(self, client: Client, ranking_id: int, teams: dict[str, int], unities: dict[str, int]) -> None:
        self.named: Counter[str] = Counter()
        self._client = client
        self._ranking = f"rankings/{ranking_id}"
        self._teams = teams
        self._unities = unities
        self._matches: dict[tuple[str, str], int] = {}

    @classmethod
    async def found(cls, client: Client, names: list[str]) -> "League":
        """Registers the teams, and creates a ranking with all the unities."""
        teams = {
            name: (await client.post("competitors.json", {"name": name})).json["competitor"]["id"] for name in names
        }
        main, *others = SORTS
        form = {"name": "League", "main_unity_name": main, "participants": ",".join(map(str, teams.values()))}
        ranking = (await client.post("rankings.json", form)).json["ranking"]
        unities = {main: ranking["unities"][0]["id"]}
        for name in others:
            answer = await client.post(f"rankings/{ranking['id']}/unities.json", {"name": name, "sort": SORTS[name]})
            unities[name] = answer.json["unity"]["id"]
        return cls(client, ranking["id"], teams, unities)

    async def play(self, match: dict[str, Any]) -> None:
        """Records the match with its score, and then what it gives the two teams."""
        home, away = match["team1"], match["team2"]
        goals, conceded = match["score"]["ft"]
        form = {
            "group_id": match["round"].removeprefix("Matchday "),
            "started_at": f"{match['date']} {match['time']}:00",
            "participants": f"{self._teams[home]},{self._teams[away]}",
            "result": f"{goals}:{conceded}",
        }
        if goals != conceded:
            form["winner"] = str(self._teams[home if goals > conceded else away])
        answer = await self._client.post("competitions.json", form)
        assert answer.status == 200, answer.body
        self._matches[home, away] = answer.json["competition"]["id"]
        await self.give(
            {home: _gains(goals, conceded), away: _gains(conceded, goals)}, answer.json["competition"]["id"]
        )

    async def give(self, gains: dict[str, dict[str, int]], competition_id: int | None = None) -> None:
        """Adds to the unities of teams; without a competition it is a free modification."""
        delta = [
            {
                "competitor_id": self._teams[team],
                "unities": [{"unity_id": self._unities[unity], "delta": f"{gain:+}"} for unity, gain in given.items()],
            }
            for team, given in gains.items()
        ]
        form = {"participants_delta": json.dumps(delta)}
        if competition_id is not None:
            form["competition_id"] = str(competition_id)
        answer = await self._client.put(f"{self._ranking}/add.json", form)
        assert answer.status == 200, answer.body
        self.named.update({unity for given in gains.values() for unity in given})

    async def void(self, match: dict[str, Any], un: str = "") -> None:
        """Voids a match that was played, or unvoids it."""
        path = f"competitions/{self._matches[match['team1'], match['team2']]}/{un}void.json"
        answer = await self._client.put(path)
        assert answer.status == 200, answer.body

    async def left_as_it_is(self, client: Client) -> Answer:
        """The answer to a modification that changes nothing: the ranking as it is."""
        form = {"main_unity_name": "points", "participants": ",".join(map(str, self._teams.values()))}
        answer = await client.put(f"{self._ranking}.json", form)
        assert answer.status == 200, answer.body
        return answer

    def standing(self, answer: Answer) -> Standing:
        names = {competitor["id"]: competitor["name"] for competitor in answer.json["ranking"]["competitors"]}
        return {
            (unity["name"], names[line["competitor_id"]]): (line["position"], line["total"])
            for unity in answer.json["ranking"]["unities"]
            for line in unity["competitors_ranking"]
        }

    def versions(self, answer: Answer) -> dict[str, int]:
        return {unity["name"]: unity["version"] for unity in answer.json["ranking"]["unities"]}


def _gains(goals: int, conceded: int) -> dict[str, int]:
    """What a match gives a team, by unity. Points are given also where it is none; of goals, only what changes."""
    points = 3 if goals > conceded else 1 if goals == conceded else 0
    rest = {"goal difference": goals - conceded, "goals for": goals, "goals against": conceded}
    return {"points": points} | {unity: gain for unity, gain in rest.items() if gain}
