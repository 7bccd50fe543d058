"""Standings, and two states of them compared, as tables and JSON."""

from collections.abc import Sequence as Items
from datetime import datetime
from typing import Final, Protocol

from msgspec import UNSET, UnsetType

from api.cli import printing
from api.cli.times import plain
from api.interface.sports import column_of, in_order
from api.web.table import column_name, value_text, zone_places
from api.web.words import ENGLISH
from engine.domain.notation import NONE, Notation
from projections.answers.board_table import BoardTable
from projections.answers.classification import ClassificationLine
from projections.answers.foreseen import ClassificationMove, ComparedRanking, StandingMove
from projections.answers.standings import StandingLine, Standings, StandingsQuestion
from projections.answers.tables import TableQuestion
from projections.answers.view import View
from projections.answers.windows import PastWindow


def print_standings(shown: Standings, question: StandingsQuestion) -> None:
    """Prints a table for each unity of the answer to `question`."""
    for unity in shown.unities:
        lines = [
            [*place(line), shown.competitors.competitor(line.competitor_id).name, unity.notation.text(line.total)]
            for line in unity.lines
        ]
        columns = [*columns_of_place(question), "competitor", "total"]
        printing.table(columns, lines, title=printing.title_of(shown.name, unity.name))


def print_table(table: BoardTable) -> None:
    """Prints the table that people know: a line for each competitor, with a column for each unity."""
    order = in_order(one.unity for one in table.columns)
    names = [column_name(ENGLISH, one) for one in table.columns]
    shorts = [names[number] if (known := column_of(names[number], "en")) is None else known.short for number in order]
    lines = [
        [line.place, line.name, *[value_text(ENGLISH, table, line, number) for number in order]] for line in table.lines
    ]
    title = next(one.name for one in table.rankings if one.id == table.ranking_id)
    printing.table(["", "competitor", *shorts], lines, title=title)
    for zone in table.zones:
        printing.say(f"{zone_places(zone, table.count)} {zone.text}")


class _Shown(Protocol):
    """An answer that shows a moment."""

    @property
    def sequence(self) -> int: ...
    @property
    def recorded_at(self) -> datetime | str: ...
    @property
    def on(self) -> datetime | str | UnsetType: ...


def say_moment(question: PastWindow, shown: _Shown) -> None:
    """Says which moment the answer to `question` shows, unless that is now."""
    recorded = f"event {shown.sequence}, recorded at {plain(shown.recorded_at)} UTC"
    if shown.on is not UNSET:
        printing.say(f"What had taken place by {plain(shown.on)} UTC, as known after {recorded}:")
    elif question.moment is not None:
        printing.say(f"After {recorded}:")


def columns_of_place(question: TableQuestion) -> list[str]:
    """The heads of what `place` tells of a line of the answer to `question`."""
    overall = [] if question.tag is None else ["overall"]
    return ["position", *overall, *([] if not question.is_compared else ["moved"])]


def place(line: StandingLine | ClassificationLine) -> list[str]:
    """Where a line stands, in a sub-table and in the whole, and how it has moved, as far as that was asked for."""
    positions = [line.position] if line.overall is UNSET else [line.position, line.overall]
    if line.placed is not UNSET:
        return [NONE for _ in positions] + ([] if line.moved is UNSET else [""])
    return [*map(str, positions), *([] if line.moved is UNSET else [moved_text(line.moved)])]


def moved_text(moved: int | None) -> str:
    """Places gained or lost, as a sign and a word; None: the competitor is new in the table."""
    if moved is None:
        return "new"
    if moved == 0:
        return "= same"
    return f"▲ {moved} up" if moved > 0 else f"▼ {-moved} down"


def print_comparison(view: View, rankings: Items[ComparedRanking]) -> None:
    """Prints a table for each unity, and for the classification if one is declared. A mark shows how many positions a
    competitor moves."""
    for ranking in rankings:
        for unity in ranking.unities:
            notation = view.ranking(ranking.id).unity(unity.id).notation
            lines = [
                [
                    *_moved(move, move.total_after, move.total_before),
                    move.name,
                    text_or_none(notation, move.total_after),
                    text_or_none(notation, move.total_before),
                ]
                for move in unity.moves
            ]
            columns = [*_MOVED, "competitor", "total", "was"]
            printing.table(columns, lines, title=printing.title_of(ranking.name, unity.name))
        if ranking.classification is not UNSET:
            places = [[*_moved(place), place.name] for place in ranking.classification]
            printing.table([*_MOVED, "competitor"], places, title=printing.title_of(ranking.name, "classification"))
    if not rankings:
        printing.say("no ranking changes")


def text_or_none(notation: Notation, number: int | None) -> str | None:
    return None if number is None else notation.text(number)


_MOVED: Final = ("position", "was", "")


def _moved(
    move: StandingMove | ClassificationMove, total_after: int | None = 0, total_before: int | None = 0
) -> tuple[int | str | None, int | str | None, str]:
    """The position, the one before, and what lies between them."""
    after, before = move.position_after, move.position_before
    shown = NONE if after and total_after is None else after, NONE if before and total_before is None else before
    if before is None or after is None:
        return *shown, "" if before == after else "in" if before is None else "out"
    up = before - after
    return *shown, "" if up == 0 else f"▲ {up}" if up > 0 else f"▼ {-up}"
