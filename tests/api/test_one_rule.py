"""What counts is decided in one place: a mistake there shows at every door alike."""

import csv
import io
import json
from collections.abc import Callable, Container
from typing import Final

import asyncpg
import pytest

from engine.database.pool import Database
from engine.domain.lines import Rule
from engine.domain.terms import CompetitionId, CompetitorId, Sequence
from projections.tables.worker import Worker
from tests.projections.verified import verified
from tests.service import Answer, Season, create_ranking, deltas, listed

DOORS: Final = {"live", "past", "on a day", "explanation", "sums of competitions", "expiry", "board", "tables"}
Gone = Container[CompetitorId] | None


def _overlooks_undoing(rule: Rule, _sequence: Sequence, competition_id: CompetitionId | None) -> Gone:
    return None if competition_id in rule.voided else rule.struck.get(competition_id, ())


def _overlooks_voiding(rule: Rule, sequence: Sequence, competition_id: CompetitionId | None) -> Gone:
    return None if sequence in rule.undone else rule.struck.get(competition_id, ())


def _overlooks_striking(rule: Rule, sequence: Sequence, competition_id: CompetitionId | None) -> Gone:
    return None if sequence in rule.undone or competition_id in rule.voided else ()


class _Points:
    """Three points of the first competitor for a match, in a ranking of its own."""

    def __init__(self, season: Season, path: str, competition_id: int, sequence: str) -> None:
        self.season, self.path = season, path
        self._competition_id, self._sequence = competition_id, sequence

    @classmethod
    async def given(cls, season: Season) -> "_Points":
        client, ada = season.client, season.ids[0]
        ranking = await create_ranking(client, season.ids, main_unity_lasts="P30D", main_unity_expires_on="day")
        path, unity = f"rankings/{ranking['id']}", ranking["unities"][0]["id"]
        match = await client.post("competitions.json", {"group_id": 1, "participants": listed(season.ids)})
        competition_id = match.json["competition"]["id"]
        line = {"participants_delta": deltas((ada, unity, 3)), "competition_id": competition_id}
        await client.put(f"{path}/classification.json", {"criteria": json.dumps([{"unity": unity, "best": 5}])})
        added = await client.put(f"{path}/add.json", line)
        return cls(season, path, competition_id, added.headers["Tallybook-Sequence"])

    async def take_back(self, change: str) -> None:
        fields: dict[str, dict[str, object]] = {
            "reverse": {"sequence": self._sequence},
            "void": {},
            "strike": {"competitors": self.season.ids[0]},
        }
        of = self.path if change == "reverse" else f"competitions/{self._competition_id}"
        answer = await self.season.client.put(f"{of}/{change}.json", fields[change])
        assert answer.status == 200, answer.body


async def _at_every_door(points: _Points, owner: asyncpg.Connection, database: Database) -> dict[str, int]:
    """What is left of the points."""
    client, (ada, *_), path = points.season.client, points.season.ids, points.path
    ranking_id = int(path.partition("/")[2])

    async def told(name: str) -> Answer:
        answer = await client.get(f"{path}/{name}")
        assert answer.status == 200, answer.body
        return answer

    def total(answer: Answer) -> int:
        (unity,) = answer.json["ranking"]["unities"]
        return next(line["total"] for line in unity["competitors_ranking"] if line["competitor_id"] == ada)

    live = await told("standings.json")
    sequence, today = live.json["ranking"]["sequence"], live.json["ranking"]["recorded_at"][:10]
    explained = (await told(f"explain.json?competitor={ada}")).json["explanation"]
    classified = (await told("classification.json")).json["classification"]["standings"]
    (expiring,) = (await told(f"expiring.json?until=2100-01-01&competitors={ada}")).json["expiring"]["expiring"]
    board = await client.send("GET", f"/board/{client.tournament}/table.csv?ranking={ranking_id}")
    _, *rows = csv.reader(io.StringIO(board.body.decode()))
    await Worker(database).catch_up()
    tables = "SELECT total FROM standing WHERE ranking_id = $1 AND competitor_id = $2"
    return {
        "live": total(live),
        "past": total(await told(f"standings.json?at_sequence={sequence}")),
        "on a day": total(await told(f"standings.json?on={today}")),
        "explanation": explained["to"]["total"],
        "sums of competitions": next(line["values"][0] for line in classified if line["competitor_id"] == ada),
        "expiry": expiring["total"] - expiring["total_then"],
        "board": next(int(row[4]) for row in rows if row[2] == str(ada)),
        "tables": await owner.fetchval(tables, ranking_id, ada),
    }


@pytest.mark.parametrize(
    ("changes", "mistake"),
    [
        (("reverse", "void"), _overlooks_undoing),
        (("void", "strike"), _overlooks_voiding),
        (("strike", "void"), _overlooks_striking),
    ],
)
async def test_a_mistake_in_the_rule_shows_at_every_door(
    season: Season,
    owner: asyncpg.Connection,
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
    changes: tuple[str, str],
    mistake: Callable[[Rule, Sequence, CompetitionId | None], Gone],
) -> None:
    """Some count twice what was taken back once, others still count it. `verify` finds what was recorded by another
    rule than its own."""

    async def wrong_after_changes() -> set[str]:
        points, wrong = await _Points.given(season), set[str]()
        for change in changes:
            await points.take_back(change)
            shown = await _at_every_door(points, owner, database)
            wrong |= {door for door, left in shown.items() if left != 0}
        return wrong

    await season.client.put("publication.json", {"published": "true"})
    assert await wrong_after_changes() == set()
    assert (await verified(database)).differences == []
    with monkeypatch.context() as mistaken:
        mistaken.setattr(Rule, "_gone", mistake)
        assert (await verified(database)).differences != []
        assert await wrong_after_changes() == DOORS
    assert (await verified(database)).differences != []
