"""Standings, and how two states of them compare, as tables and JSON; times as they are shown."""

from collections.abc import Sequence as Items
from datetime import datetime

from rich.table import Table
from rich.text import Text

from api.cli import printing
from api.interface.rendering import View, timestamp_or_none
from api.interface.standings import standings_shape
from api.interface.voiding import ComparedRankingShape, MoveShape
from engine.domain.terms import RankingId
from projections.board.board import Board
from projections.board.standing import standings as lines_of


def moment(value: datetime | None) -> str | None:
    return timestamp_or_none(value)


def standings(board: Board, ranking_id: RankingId, only: str | None = None) -> None:
    """A table for each unity of the ranking, or for the one named `only`."""
    ranking = board.rankings[ranking_id]
    for unity in ranking.unities.values():
        if only in (None, unity.name):
            table = Table("position", "competitor", "total", title=Text(f"{ranking.name}: {unity.name}"))
            for standing in lines_of(ranking.participants, unity.totals, unity.sort):
                name = board.competitors[standing.competitor_id].name
                table.add_row(str(standing.position), printing.cell(name), str(standing.total))
            printing.data().print(table, markup=False)


def standings_json(view: View, ranking_id: RankingId, only: str | None, recorded_at: datetime) -> None:
    """The modification shape of the interface, with the sequence it is of and the time of that event."""
    printing.json(standings_shape(view, ranking_id, recorded_at, only))


def comparison(rankings: Items[ComparedRankingShape]) -> None:
    """A table for each unity; who moves is marked with by how many positions."""
    for ranking in rankings:
        for unity in ranking.unities:
            table = Table(
                "position", "was", "", "competitor", "total", "was", title=Text(f"{ranking.name}: {unity.name}")
            )
            for move in unity.moves:
                table.add_row(
                    printing.cell(move.position_after),
                    printing.cell(move.position_before),
                    _moved(move),
                    printing.cell(move.name),
                    printing.cell(move.total_after),
                    printing.cell(move.total_before),
                )
            printing.data().print(table, markup=False)
    if not rankings:
        printing.say("no ranking changes")


def _moved(move: MoveShape) -> str:
    if move.position_before is None or move.position_after is None:
        return "" if move.position_before == move.position_after else "in" if move.position_before is None else "out"
    up = move.position_before - move.position_after
    return "" if up == 0 else f"▲ {up}" if up > 0 else f"▼ {-up}"
