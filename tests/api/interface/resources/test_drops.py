"""A regatta of nine races: the fewest points win. The worst race is left out from four on, the two worst from eight."""

from datetime import date, timedelta
from typing import Any, Final

import pytest
from msgspec import Struct

from tests.api.leagues import said, shown
from tests.api.public_boards import Board, change
from tests.service import Client, create_ranking, deltas, listed, register

DROP: Final = [[4, 1], [8, 2]]
RACES: Final = {
    "Anna": [1, 2, 6, 3, 1, 1, 2, 6, 4],
    "Bela": [2, 1, 1, 2, 6, 2, 1, 1, 6],
    "Cleo": [3, 3, 2, 1, 2, 3, 3, 2, 1],
}
FIRST_DAY: Final = date(2024, 6, 1)


def net(places: list[int]) -> int:
    dropped = 2 if len(places) >= 8 else 1 if len(places) >= 4 else 0
    return sum(sorted(places)[: len(places) - dropped])


class Regatta(Struct):
    client: Client
    boats: dict[str, int]
    path: str
    unity: int
    races: list[int] = []
    after: list[int] = []
    """The last event after each race."""

    async def sail(self) -> None:
        number, boats = len(self.races), self.boats
        day = FIRST_DAY + timedelta(days=number)
        form = {"group_id": 1, "participants": listed([*boats.values()]), "started_at": f"{day} 12:00:00"}
        race = (await self.client.post("competitions.json", form)).json["competition"]["id"]
        lines = [(boats[name], self.unity, places[number]) for name, places in RACES.items()]
        form = {"participants_delta": deltas(*lines), "competition_id": race}
        assert (await self.client.put(f"{self.path}/add.json", form)).status == 200
        self.races.append(race)
        self.after.append((await shown(self.client, self.path))["sequence"])

    async def values(self, query: str = "") -> dict[str, int]:
        """In the order of the table."""
        names = {one: name for name, one in self.boats.items()}
        lines = (await shown(self.client, self.path, query))["standings"]
        return {names[line["competitor_id"]]: line["values"][0] for line in lines}

    async def dropped(self, name: str, query: str = "") -> list[int]:
        """The numbers of the races that an explanation says to be left out."""
        answer = await self.client.get(f"{self.path}/explain.json?competitor={self.boats[name]}{query}")
        return [self.races.index(one) + 1 for one in answer.json["explanation"]["dropped"]]


@pytest.fixture
async def regatta(client: Client) -> Regatta:
    ids = await register(client, *RACES)
    ranking = await create_ranking(client, ids, main_unity_sort="ASC")
    path, unity = f"rankings/{ranking['id']}", ranking["unities"][0]["id"]
    criteria = said({"unity": unity, "drop": DROP}, {"unity": unity})
    assert (await client.put(f"{path}/classification.json", criteria)).status == 200
    sailed = Regatta(client, dict(zip(RACES, ids, strict=True)), path, unity, [], [])
    for _ in range(9):
        await sailed.sail()
    return sailed


def expected(races: int, *, without: int = 0) -> dict[str, int]:
    """The net points after this many races, without the race numbered `without`."""
    sailed = {name: [one for n, one in enumerate(all_[:races], 1) if n != without] for name, all_ in RACES.items()}
    order = sorted(RACES, key=lambda name: (net(sailed[name]), sum(sailed[name])))
    return {name: net(sailed[name]) for name in order}


async def test_discards_grow_with_the_races_at_every_moment_of_both_clocks(regatta: Regatta) -> None:
    assert (await shown(regatta.client, regatta.path))["criteria"][0] == {"unity": regatta.unity, "drop": DROP}
    assert await regatta.values() == expected(9) == {"Bela": 10, "Anna": 14, "Cleo": 14}
    for races, sequence in enumerate(regatta.after, start=1):
        day = FIRST_DAY + timedelta(days=races - 1)
        assert await regatta.values(f"?at_sequence={sequence}") == expected(races)
        assert await regatta.values(f"?on={day}") == expected(races)


async def test_a_voided_race_is_not_counted_and_a_preview_shows_who_moves(regatta: Regatta) -> None:
    path = f"competitions/{regatta.races[5]}"
    (foreseen,) = (await regatta.client.get(f"{path}/void.json")).json["rankings"]
    names = {one: name for name, one in regatta.boats.items()}
    after = sorted(foreseen["classification"], key=lambda move: move["position_after"])
    assert [names[move["competitor_id"]] for move in after] == [*expected(9, without=6)]
    assert (await regatta.client.put(f"{path}/void.json")).status == 200
    assert await regatta.values() == expected(9, without=6)
    other = f"competitions/{regatta.races[0]}/void.json"
    assert (await regatta.client.put(other)).status == 200  # seven are left, so one is dropped
    left = {name: [one for n, one in enumerate(its) if n not in (0, 5)] for name, its in RACES.items()}
    assert await regatta.values() == {name: net(its) for name, its in left.items()}
    assert (await regatta.client.put(f"{path}/unvoid.json")).status == 200
    assert await regatta.values() == expected(9, without=1)


async def test_an_explanation_says_which_races_are_left_out(regatta: Regatta) -> None:
    assert await regatta.dropped("Anna") == [3, 8]
    assert await regatta.dropped("Bela") == [5, 9]
    assert await regatta.dropped("Anna", f"&to={regatta.after[6]}") == [3]
    assert await regatta.dropped("Anna", f"&to={regatta.after[2]}") == []
    assert await regatta.dropped("Anna", f"&on={FIRST_DAY + timedelta(days=4)}") == [3]
    assert await regatta.dropped("Anna", f"&on={FIRST_DAY + timedelta(days=7)}") == [3, 8]
    await regatta.client.put(f"{regatta.path}/classification.json", said({"unity": regatta.unity, "best": 8}))
    assert await regatta.dropped("Anna") == [8]  # of equal ones, the last
    await regatta.client.put(f"{regatta.path}/classification.json", said())
    answer = await regatta.client.get(f"{regatta.path}/explain.json?competitor={regatta.boats['Anna']}")
    assert "dropped" not in answer.json["explanation"]


async def test_the_board_marks_what_is_left_out_and_names_the_column(regatta: Regatta, board: Board) -> None:
    await change(regatta.client, published="true")
    table: Any = (await board.get(f"table.json?ranking={regatta.path.split('/')[1]}")).json
    assert table["columns"][0]["name"].endswith(" after discards")
    assert [line["values"][0] for line in table["lines"]] == ["10", "14", "14"]
    page = (await board.get(f"competitors/{regatta.boats['Anna']}?ranking={regatta.path.split('/')[1]}")).body.decode()
    assert page.count(">discarded<") == 2
