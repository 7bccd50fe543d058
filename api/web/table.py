"""The words of a table: the names of its columns, its values, and the name of the last competition."""

from api.interface.competition_names import short_text
from api.interface.sports import column_of
from api.web.words import Words
from engine.domain.table_zones import TableZone
from projections.answers.board_table import BoardTable, Footnote, RecentResult, TableColumn, TableLine
from projections.answers.criteria import tiebreak_name


def column_name(words: Words, column: TableColumn) -> str:
    """The name of the unity, and which of its values the column shows."""
    if column.defended:
        return words("to_defend")
    text, criterion = unity_name(words, column.unity), column.criterion
    if criterion is None:
        return text
    if criterion.tiebreak is not None:
        return tiebreak_name(criterion)
    if column.divisor is not None:
        other = unity_name(words, column.divisor)
        return f"{text} / {other}" if criterion.per is None else words("per", unity=text, other=other)
    if criterion.first:
        return words("reached_first", unity=text)
    if criterion.among:
        text = words("among_tied", unity=text)
    if criterion.drop:
        text = words("after_drops", unity=text)
    return text if criterion.best is None else words("best_of", unity=text, number=criterion.best)


def column_short(words: Words, column: TableColumn) -> str:
    """The abbreviation that tables of its sport have for the column; its name if there is none."""
    name = column_name(words, column)
    return unity_short(words, column.unity) if name == unity_name(words, column.unity) else name


def unity_short(words: Words, name: str) -> str:
    """The abbreviation that tables of its sport have for a unity; another as it is called."""
    known = column_of(name, words.language)
    return name if known is None else known.short


def unity_name(words: Words, name: str) -> str:
    """A unity that many sports have, in the language of the words; another as it is called."""
    known = column_of(name, words.language)
    return name if known is None else known.text


def value_text(words: Words, table: BoardTable, line: TableLine, number: int) -> str:
    """A value, or a dash for a missing total; nothing for what the order did not need."""
    value, column = line.values[number], table.columns[number]
    is_needed = not column.decides or (number == 0 and not line.placed)
    return "" if value is None and not is_needed else words.number(value, column.notation)


def deducted_text(words: Words, table: BoardTable, footnote: Footnote) -> str:
    """What was deducted: a number of points, or of something else."""
    column = table.columns[footnote.column]
    number = words.number(-footnote.deduction.amount, column.notation.of_points)
    if column.unity != "points":
        return f"{number} {unity_name(words, column.unity)}"
    return words("points_one" if number == "1" else "points_other", number=number)


def zone_places(zone: TableZone, count: int) -> str:
    """The places of a zone in a table with this number of lines; empty: it has none of them."""
    places = zone.places(count)
    first, last = places.start, places.stop - 1
    return "" if not places else str(first) if first == last else f"{first}\N{EN DASH}{last}"


def outcome_letter(words: Words, result: RecentResult) -> str | None:
    """The letter of a recent result, as in the head of the column that counts such results; None: it has none."""
    column = None if result.counted is None else column_of(result.counted, words.language)
    return None if column is None else column.short


def last_name(words: Words, table: BoardTable) -> str:
    """The name that people know the last competition by; empty: there is none."""
    return "" if table.last is None else short_text(table.names, table.last.competition, words("competition_of"))
