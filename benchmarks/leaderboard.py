"""A leaderboard counted independently of the product, by sorting, and the windows that must result from it."""

import random
from collections.abc import Iterable, Mapping
from typing import Any, Final

import asyncpg
import msgspec
from msgspec import Struct

from benchmarks import ledger
from benchmarks.asking import Asker
from benchmarks.ledger import WrongAnswer
from benchmarks.service import Service
from benchmarks.world import Tournament

TOP: Final = 10
SPAN: Final = 5
SEED: Final = 20


class Line(Struct, frozen=True):
    """`position`: one more than how many have a higher total."""

    competitor_id: int
    position: int
    total: int


class Board:
    """All lines of a unity, the highest total first. Equal totals are in the order of enrolment."""

    def __init__(self, members: Iterable[int], totals: Mapping[int, int]) -> None:
        ordered = sorted(((-totals.get(member, 0), place, member) for place, member in enumerate(members)))
        self.lines: list[Line] = []
        for number, (negated, _, member) in enumerate(ordered, start=1):
            before = self.lines[-1] if self.lines else None
            position = before.position if before is not None and before.total == -negated else number
            self.lines.append(Line(member, position, -negated))
        self._places = {line.competitor_id: place for place, line in enumerate(self.lines)}

    def top(self) -> list[Line]:
        return self.lines[:TOP]

    def around(self, member: int) -> list[Line]:
        place = self._places[member]
        return self.lines[max(place - SPAN, 0) : place + SPAN + 1]


def top_query() -> str:
    return f"top={TOP}"


def around_query(member: int) -> str:
    return f"around={member}&span={SPAN}"


async def counted(connection: asyncpg.Connection, tournament: Tournament) -> Board:
    """The board of the tournament's ranking in its main unity, from the log."""
    return _board(tournament, await ledger.log_totals(connection, [tournament]))


async def best_counted(connection: asyncpg.Connection, tournament: Tournament) -> Board:
    """Like `counted`, but the best result of each competitor counts."""
    return _board(tournament, await ledger.log_bests(connection, [tournament]))


def _board(tournament: Tournament, totals: ledger.Totals) -> Board:
    main = tournament.unity_ids[0]
    return Board(tournament.competitor_ids, {c: total for (unity_id, c), total in totals.items() if unity_id == main})


async def check(service: Service, tournament: Tournament, board: Board, *, around: int, seed: int = SEED) -> None:
    """Compares the top ten, and `around` windows around randomly drawn competitors, with a board that was counted
    independently. Raises WrongAnswer."""
    drawn = random.Random(seed).sample(tournament.competitor_ids, around)
    expected = {top_query(): board.top()} | {around_query(member): board.around(member) for member in drawn}
    async with Asker(service.url, service.token) as asker:
        for query, lines in expected.items():
            path = f"{tournament.path}/rankings/{tournament.ranking_id}/standings.json?{query}"
            answered = _lines(msgspec.json.decode(await asker.get(path)))
            if answered != lines:
                raise WrongAnswer(f"{path} was answered {answered}, but must be {lines}")


def _lines(answer: Any) -> list[Line]:
    (unity,) = answer["ranking"]["unities"]
    return [Line(one["competitor_id"], one["position"], one["total"]) for one in unity["competitors_ranking"]]
