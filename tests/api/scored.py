"""A league whose results give points, over HTTP."""

import json
from typing import Any, Final

from tests.service import Answer, Client, create_ranking, listed, register, totals

OUTCOMES: Final = {"win": 3, "draw": 1, "loss": 0}


class League:
    """A ranking of three teams, with points, wins and goals by results."""

    def __init__(self, client: Client, ids: list[int], ranking: Any) -> None:
        self.client, self.ids, self.ranking_id = client, ids, ranking["id"]
        self.path = f"rankings/{self.ranking_id}"
        self.points = ranking["unities"][0]["id"]

    async def score(self, *awards: dict[str, Any], **options: Any) -> Answer:
        usual = ({"unity": self.points, "from": "outcome", "table": OUTCOMES},)
        scorings = [{"awards": awards or usual} | options] if awards != (None,) else []
        answer = await self.client.put(f"{self.path}/scoring.json", {"scorings": json.dumps(scorings)})
        assert answer.status == 200, answer.body
        return answer

    async def play(self, a: int, b: int, result: str, **fields: object) -> int:
        form = {"group_id": 1, "participants": listed([a, b]), "result": result} | fields
        answer = await self.client.post("competitions.json", form)
        assert answer.status == 200, answer.body
        return int(answer.json["competition"]["id"])

    async def correct(self, match: int, **fields: object) -> Answer:
        return await self.client.put(f"competitions/{match}.json", fields)

    async def table(self, query: str = "") -> dict[int, int]:
        return totals(await self.client.get(f"{self.path}/standings.json{query}"))


async def league_of(client: Client) -> League:
    ids = await register(client, "Ajax", "Bari", "Celtic")
    return League(client, ids, await create_ranking(client, ids, name="League"))
