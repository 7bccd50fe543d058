"""A published tournament with a board, and a shorter one."""

import json
from typing import Any, Final

import asyncpg

from engine.domain.terms import TournamentId
from tests.service import Answer, Client, Season, Service, deltas

NOWHERE: Final = "no-such-tournament"


class Board:
    """Asks as the public does: without a token."""

    def __init__(self, service: Service, slug: str) -> None:
        self.slug = slug
        self._client = service.client(slug, None)

    async def get(self, path: str, headers: dict[str, str] | None = None) -> Answer:
        return await self._client.send("GET", f"/board/{self.slug}/{path}", None, headers)

    async def sequence(self) -> int:
        """How far the log reaches for it."""
        sequence: int = (await self.get("tournament.json")).json["tournament"]["sequence"]
        return sequence


async def change(client: Client, **form: object) -> Any:
    """Changes what the public sees; returns what the answer says of it."""
    answer = await client.put("publication.json", form)
    assert answer.status == 200, answer.body
    return answer.json["publication"]


async def give(season: Season, who: int, points: int, **form: object) -> int:
    """Gives points, and returns the sequence of that."""
    form["participants_delta"] = deltas((season.ids[who], season.unity_id, points))
    answer = await season.client.put(f"{season.path}/add.json", form)
    assert answer.status == 200, answer.body
    return int(answer.headers["Tallybook-Sequence"])


def told(answer: Answer) -> tuple[int, bytes, dict[str, str]]:
    """All that an answer tells, but for what each answer has of its own."""
    headers = {name: value for name, value in answer.headers.items() if name.lower() not in ("date", "x-request-id")}
    return answer.status, answer.body, headers


class Shorter:
    """The same log in another database, where it really ends earlier."""

    def __init__(self, whole: asyncpg.Connection, shorter: asyncpg.Connection, tournament_id: TournamentId) -> None:
        self._whole = whole
        self._shorter = shorter
        self._tournament_id = tournament_id

    async def begin(self) -> None:
        for table in ("tournament", "append_lock"):
            await self._copy(table, "true")

    async def add_block(self, last: int) -> None:
        """Lets the log go on with the block that ends at `last`."""
        first = await self._whole.fetchval("SELECT first_sequence FROM block WHERE last_sequence = $1", last)
        for table in "topic", "personal":
            await self._copy(table, f"sequence BETWEEN {first} AND {last}")
        await self._copy("block", f"last_sequence = {last}")

    async def _copy(self, table: str, those: str) -> None:
        statement = f"SELECT * FROM {table} WHERE tournament_id = $1 AND {those}"
        for row in await self._whole.fetch(statement, self._tournament_id):
            places = ", ".join(f"${n}" for n in range(1, len(row) + 1))
            await self._shorter.execute(f"INSERT INTO {table} ({', '.join(row.keys())}) VALUES ({places})", *row)


async def play_on(season: Season) -> None:
    """Something of everything that can be seen."""
    client, path = season.client, season.path
    await give(season, 0, 3, competition_id=season.competition_id)
    await give(season, 1, 5, reason="fair play")
    criteria = json.dumps([{"unity": season.unity_id, "best": 1}, {"unity": season.unity_id}])
    await client.put(f"{path}/classification.json", {"criteria": criteria})
    await client.put(f"competitors/{season.ids[1]}.json", {"name": "Benjamin", "color": "00ff00", "tags": "new"})
    await client.put(f"competitions/{season.competition_id}/void.json")
    await client.put(f"{path}/participants.json", {"remove": season.ids[2]})
    await client.put(f"{path}/unities/{season.unity_id}.json", {"sort": "ASC"})
    await client.put(f"competitions/{season.competition_id}/unvoid.json")
    await client.put(f"{path}/information.json", {"name": "Renamed"})
    await client.put("tournament.json", {"name": "The tournament, renamed"})
    await client.put(f"competitions/{season.competition_id}.json", {"started_at": "2024-03-09 15:00:00"})
    await client.put(f"{path}/close.json")
