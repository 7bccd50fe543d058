"""What organisers do in an hour, all by results: a regatta, a gala and a chess club, as their kinds score them."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.api.cli.conftest import Tallybook
from tests.running import said


class Club:
    """A tournament of a kind of ranking, into which files are imported."""

    def __init__(self, tallybook: Tallybook, slug: str, file: Path) -> None:
        self.tallybook, self.slug, self._file = tallybook, slug, file

    async def open(self, kind: str, *names: str) -> None:
        for name in names:
            await self.tallybook.done("competitor", "add", self.slug, name)
        await self.tallybook.done("ranking", "create", self.slug, "Table", "--like", kind)

    async def play(self, *rows: str) -> None:
        self._file.write_text("\n".join(rows), encoding="utf-8")
        command = ["competition", "import", self.slug, "Table", str(self._file)]
        imported = await asyncio.to_thread(said, *command, "--database-url", self.tallybook.dsn)
        assert imported.code == 0, imported.err

    async def correct(self, competition: str, result: str) -> None:
        assert (await self.tallybook("competition", "result", self.slug, competition, result)).code == 0

    async def table(self, *options: str) -> list[tuple[int, str, Any]]:
        """Position, name and the first value of each, in their order."""
        shown = await self.tallybook.json("classification", "show", self.slug, "Table", *options)
        names = {one["id"]: one["name"] for one in await self.tallybook.json("competitor", "list", self.slug)}
        return [(line["position"], names[line["competitor_id"]], line["values"][0]) for line in shown["standings"]]


@pytest.fixture
async def club(tallybook: Tallybook, tmp_path: Path) -> Club:
    return Club(tallybook, await tallybook.done("tournament", "create", "Club"), tmp_path / "played.csv")


BOATS = ("Albatros", "Bora", "Calypso", "Dorade")
RACES = (
    ("1", "2", "3", "4"),
    ("2", "1", "DNF", "3"),
    ("1", "2", "2", "4"),
    ("4", "1", "2", "3"),
    ("OCS", "1", "2", "3"),
    ("1", "3", "2", "4"),
    ("2", "3", "1", "4"),
    ("3", "1", "2", "DSQ"),
    ("1", "2", "3", "4"),
)
"""Nine races of four boats: the place of each boat."""


def low_points(places: tuple[str, ...]) -> list[float]:
    """Tenths of the points of a race: the mean of shared places; those who did not finish get one more than four."""
    finished = [int(place) for place in places if place.isdigit()]
    means = {one: sum(range(one, one + finished.count(one))) / finished.count(one) for one in finished}
    return [10 * (means[int(place)] if place.isdigit() else len(BOATS) + 1) for place in places]


async def test_a_regatta_drops_more_of_the_worst_races_as_it_grows(club: Club) -> None:
    await club.open("sailing", *BOATS)
    points: list[list[float]] = [[] for _ in BOATS]
    for first, number in (1, 3), (4, 4), (5, 7), (8, 8), (9, 9):
        rows = []
        for race, places in enumerate(RACES[first - 1 : number], start=first):
            rows.append(f"2015-07-0{race},{race},{'|'.join(BOATS)},{'|'.join(places)}")
            for boat, its in zip(points, low_points(places), strict=True):
                boat.append(its)
        await club.play("date,round,participants,score", *rows)
        drops = 2 if number >= 8 else 1 if number >= 4 else 0
        expected = {boat: sum(sorted(its)[: number - drops]) for boat, its in zip(BOATS, points, strict=True)}
        assert {boat: value for _, boat, value in await club.table()} == expected, number
    assert await club.table() == [(1, "Bora", 105), (2, "Albatros", 110), (3, "Calypso", 145), (4, "Dorade", 250)]
    fifth = (await club.tallybook.json("competition", "list", club.slug))[4]
    on_time = dict(zip(fifth["result"], "1234", strict=True))  # the one that was said to be over early had won
    await club.correct(str(fifth["id"]), json.dumps(on_time))
    assert await club.table() == [(1, "Albatros", 90), (2, "Bora", 115), (3, "Calypso", 155), (4, "Dorade", 260)]


async def test_a_swim_gala_is_counted_to_half_a_point(club: Club) -> None:
    await club.open("swim-gala", "Otters", "Pikes", "Seals")
    await club.play(
        "date,round,scale,participants,score",
        "2015-03-07,50 back,,Otters|Pikes|Seals,31.20|31.20|33.05",
        "2015-03-07,100 free,,Otters|Pikes|Seals,1:02.31|59.80|DQ",
        "2015-03-07,relay,relay,Otters|Pikes|Seals,2:10.4|2:12.0|2:10.4",
    )
    # 5.5 + 5 + 11; 5.5 + 6 + 8; 4 + 0 + 11
    assert await club.table() == [(1, "Otters", 215), (2, "Pikes", 195), (3, "Seals", 150)]


async def test_a_chess_club_has_byes_and_forfeits_and_corrects_a_result(club: Club) -> None:
    await club.open("chess", "Ada", "Ben", "Cid")
    await club.play(
        "date,round,participants,score",
        "2015-01-05,1,Ada|Ben,1:0",
        "2015-01-05,1,Cid,bye",
        "2015-01-12,2,Cid|Ada,½-½",
        "2015-01-12,2,Ben,half bye",
        "2015-01-19,3,Ben|Cid,-:-",
        "2015-01-19,3,Ada,zero bye",
    )
    assert await club.table() == [(1, "Ada", 15), (2, "Cid", 15), (3, "Ben", 5)]
    await club.correct("Ada - Ben", "0:1")
    assert await club.table() == [(1, "Ben", 15), (2, "Cid", 15), (3, "Ada", 5)]
    assert (await club.table("--on", "2015-01-06"))[0][1:] == ("Ben", 10), "as if it had been known on that day"
