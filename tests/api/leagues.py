"""Competitions and points for the season of a service, and how to ask for its history."""

import json
from typing import Any, Final

from tests.service import Client, Season, deltas


def said(*criteria: dict[str, Any]) -> dict[str, str]:
    return {"criteria": json.dumps(criteria)}


async def shown(client: Client, path: str, query: str = "") -> Any:
    answer = await client.get(f"{path}/classification.json{query}")
    assert answer.status == 200, answer.body
    return answer.json["classification"]


def lines(classification: Any) -> list[tuple[int, int, list[int | None], int | None]]:
    return [
        (line["competitor_id"], line["position"], line["values"], line["decided_by"])
        for line in classification["standings"]
    ]


class League:
    """Ada, Ben and Pair in points and fouls; Ada and Ben have 3 points each, Ben by beating Ada."""

    def __init__(self, season: Season) -> None:
        self.client, self.path, self.points = season.client, season.path, season.unity_id
        self.ada, self.ben, self.pair = season.ids

    async def play(self) -> "League":
        ranking = (await self.client.get(f"{self.path}.json")).json["ranking"]
        self.fouls = ranking["unities"][1]["id"]
        totals = (await self.client.get(f"{self.path}/standings.json")).json["ranking"]["unities"]
        for unity, unity_id in zip(totals, (self.points, self.fouls), strict=True):  # as if nothing had happened
            lines = unity["competitors_ranking"]
            await self.give(None, *[(line["competitor_id"], unity_id, -line["total"]) for line in lines])
        self.duel = await self.meet(self.ada, self.ben)
        other = await self.meet(self.ada, self.pair)
        await self.give(self.duel, (self.ben, self.points, 3), (self.ada, self.points, 0), (self.ben, self.fouls, 4))
        await self.give(other, (self.ada, self.points, 3), (self.pair, self.points, 0))
        return self

    async def meet(self, *ids: int) -> int:
        form = {"group_id": 1, "participants": ",".join(map(str, ids))}
        return int((await self.client.post("competitions.json", form)).json["competition"]["id"])

    async def give(self, competition_id: int | None, *lines: tuple[int, int, int]) -> None:
        form: dict[str, Any] = {"participants_delta": deltas(*lines)}
        if competition_id is not None:
            form["competition_id"] = competition_id
        answer = await self.client.put(f"{self.path}/add.json", form)
        assert answer.status == 200, answer.body

    async def declare(self, *criteria: dict[str, Any]) -> Any:
        answer = await self.client.put(f"{self.path}/classification.json", said(*criteria))
        assert answer.status == 200, answer.body
        assert answer.json["classification"] == {"criteria": list(criteria)}
        return answer

    async def lines(self, query: str = "") -> list[tuple[int, int, list[int | None], int | None]]:
        return lines(await shown(self.client, self.path, query))


async def history(client: Client, path: str, **query: object) -> list[Any]:
    """All pages, one after the other."""
    lines: list[Any] = []
    after: dict[str, object] = {}
    while True:
        text = "&".join(f"{name}={value}" for name, value in (query | after).items())
        answer = await client.get(f"{path}/history.json?{text}")
        assert answer.status == 200, answer.body
        assert answer.json.keys() == {"status", "message", "history", "next"}
        lines += answer.json["history"]
        if answer.json["next"] is None:
            return lines
        after = {"after": answer.json["next"]}


async def play(season: Season, *lines: tuple[int, int], **said: object) -> int:
    """Adds a competition and gives points for it. Returns its id."""
    form = {"group_id": 1, **said}
    competition: int = (await season.client.post("competitions.json", form)).json["competition"]["id"]
    await give(season, competition, *lines)
    return competition


async def give(season: Season, competition: int | str, *lines: tuple[int, int]) -> None:
    its = deltas(*((who, season.unity_id, amount) for who, amount in lines))
    form = {"participants_delta": its, "competition_id": competition}
    assert (await season.client.put(f"{season.path}/add.json", form)).status == 200


LISTS: Final = {"rankings": "ranking", "competitors": "competitor", "competitions": "competition"}
"""Of each list, the key of one of its items."""
