"""Tables that tie-breaks decide are the same at every door, and stay as they are in a closed ranking."""

import json
from typing import Any

import pytest

from tests.api.public_boards import Board, change
from tests.service import Client, create_ranking, listed, register

NAMES = "Ana", "Ben", "Cem", "Dora"
OTHERS: list[dict[str, Any]] = [{}, {"best": 2}, {"drop": [[2, 1]]}, {"among": "tied"}, {"first": True}]
"""The last criterion: none, or one that needs what competitors got in each competition."""


class Chess:
    """A ranking of four whose scoring gives points for a win, and nothing for a bye."""

    def __init__(self, client: Client, board: Board, ids: list[int], ranking: Any) -> None:
        self.client, self.board, self.ids = client, board, ids
        self.path, self.unity = f"rankings/{ranking['id']}", ranking["unities"][0]["id"]

    async def declare(self, other: dict[str, Any]) -> None:
        awards = [{"unity": self.unity, "from": "outcome", "table": {"win": 2}}]
        await self.put(f"{self.path}/scoring.json", {"scorings": json.dumps([{"awards": awards}])})
        chain = [{}, *({"tiebreak": one} for one in ("WIN", "BH", "REP")), *([other] if other else [])]
        criteria = json.dumps([{"unity": self.unity} | one for one in chain])
        await self.put(f"{self.path}/classification.json", {"criteria": criteria})

    async def put(self, path: str, form: dict[str, Any]) -> None:
        answer = await self.client.put(path, form)
        assert answer.status == 200, answer.body

    async def play(self, in_round: int, result: str, *places: int) -> None:
        form = {"group_id": 1, "participants": listed([self.ids[place] for place in places]), "result": result}
        answer = await self.client.post("competitions.json", form | {"round": in_round})
        assert answer.status == 200, answer.body

    async def lines(self) -> list[tuple[str, int, list[int | None]]]:
        """The table, which all doors show alike."""
        end = (await self.client.get("tournament.json")).json["tournament"]["sequence"]
        shown = []
        for query in "", f"?at_sequence={end}", "?on=2199-01-01":
            answer = await self.client.get(f"{self.path}/classification.json{query}")
            assert answer.status == 200, answer.body
            told = answer.json["classification"]
            names = dict(zip(self.ids, NAMES, strict=True))
            shown.append([(names[one["competitor_id"]], one["position"], one["values"]) for one in told["standings"]])
        table = (await self.board.get(f"table.json?ranking={self.path.partition('/')[2]}")).json
        assert [(one["name"], one["position"]) for one in table["lines"]] == [one[:2] for one in shown[0]]
        assert shown[1:] == [shown[0], shown[0]]
        return shown[0]


@pytest.fixture
async def chess(client: Client, board: Board) -> Chess:
    ids = await register(client, *NAMES)
    ranking = await create_ranking(client, ids)
    await change(client, published="true")
    return Chess(client, board, ids, ranking)


@pytest.mark.parametrize("other", OTHERS, ids=str)
async def test_games_that_give_nothing_count_for_tie_breaks_at_every_door(chess: Chess, other: dict[str, Any]) -> None:
    await chess.declare(other)
    await chess.play(1, "1-0", 0, 1)
    await chess.play(2, "bye", 2)
    values = {name: values for name, _, values in await chess.lines()}
    assert (values["Cem"][3], values["Dora"][3]) == (1, 0)


@pytest.mark.parametrize("other", OTHERS, ids=str)
async def test_a_result_recorded_while_a_ranking_is_closed_is_no_game_there_until_it_is_reopened(
    chess: Chess, other: dict[str, Any]
) -> None:
    await chess.declare(other)
    await chess.play(1, "1-0", 0, 1)
    published = await chess.lines()
    await chess.put(f"{chess.path}/close.json", {})
    await chess.play(2, "1-0", 2, 3)
    assert await chess.lines() == published
    await chess.put(f"{chess.path}/reopen.json", {})
    assert await chess.lines() != published
