"""Lines of history as text: a table, CSV, or a JSON object a line.

Everybody is called by the name they have today, so that a competitor has one name throughout. Ids tell apart those who
share a name.
"""

from collections.abc import Callable, Iterable
from collections.abc import Sequence as Items
from functools import lru_cache
from typing import Final, Literal

import msgspec
from rich.cells import cell_len, set_cell_size

from api.cli.criteria_text import criteria_text
from api.cli.explanation_text import signed
from api.cli.names import cut_apart
from api.interface.cells import EXCEL, PLAIN, CsvForm, csv_text, harmless
from api.interface.competition_names import shown_name
from api.interface.direction import isolated
from api.interface.shapes import shaped
from engine.domain.notation import Notation
from engine.domain.terms import CompetitionId, Reversal, Sequence, UnityId
from engine.domain.times import timestamp
from projections.answers.history import HistoryLine
from projections.answers.names import NamesById
from projections.answers.rankings import ListedRanking

Format = Literal["table", "csv", "excel", "ndjson"]
NAME_CELLS_MAX: Final = 32
"""Width of a name in a table. The rest is cut where names stay apart, so that a row stays short."""


class HistoryText:
    """One way to write history: `header` comes first, then `rows` of each chunk of lines."""

    def __init__(self, header: str, rows: Callable[[Items[HistoryLine]], str]) -> None:
        self.header = header
        self.rows = rows


def history_text(format_: Format, names: NamesById, ranking: ListedRanking, last: Sequence) -> HistoryText:
    """The way to write the history of a ranking. `names` are today's, `last` is the greatest sequence."""
    match format_:
        case "table":
            return _table(names, ranking, last)
        case "csv":
            return _csv(names, ranking, PLAIN)
        case "excel":
            return _csv(names, ranking, EXCEL)
        case "ndjson":
            return HistoryText("", _ndjson)


# ── Lines of JSON ───────────────────────────────────────────────────────────────────────────────────────


def _ndjson(lines: Items[HistoryLine]) -> str:
    return _encode_lines([shaped(line) for line in lines]).decode()


_encode_lines: Final = msgspec.json.Encoder().encode_lines


# ── CSV ─────────────────────────────────────────────────────────────────────────────────────────────────

CSV_COLUMNS: Final = (
    "sequence",
    "recorded_at",
    "actor",
    "competitor_id",
    "competitor",
    "unity_id",
    "unity",
    "competition_id",
    "delta",
    "result",
    "total",
    "position_before",
    "position_after",
    "reverses",
    "reversal",
    "reason",
    "criteria",
)


def _csv(names: NamesById, ranking: ListedRanking, form: CsvForm) -> HistoryText:
    unities = {unity.id: harmless(unity.name) for unity in ranking.unities}
    notations = {unity.id: unity.notation for unity in ranking.unities}

    def written(unity_id: UnityId, number: int | None) -> str:
        return "" if number is None else form.number(notations[unity_id].text(number))

    def row(line: HistoryLine) -> Iterable[object]:
        if line.unity_id is None or line.competitor_id is None:
            criteria = harmless(criteria_text(ranking, line.criteria or []))
            return line.sequence, _time(line.recorded_at), line.actor, *[None] * 13, criteria
        return (
            line.sequence,
            _time(line.recorded_at),
            line.actor,
            line.competitor_id,
            harmless(names.competitor(line.competitor_id).name),
            line.unity_id,
            unities[line.unity_id],
            line.competition_id,
            written(line.unity_id, line.delta),
            written(line.unity_id, line.result),
            written(line.unity_id, line.total),
            line.position_before,
            line.position_after,
            line.reverses,
            line.reversal,
            None if line.reason is None else harmless(line.reason),
            None,
        )

    def rows(lines: Items[HistoryLine]) -> str:
        return csv_text(map(row, lines), form)

    return HistoryText(form.begins + csv_text([CSV_COLUMNS], form), rows)


_time: Final = lru_cache(maxsize=64)(timestamp)
"""The events of a block have one time."""


# ── Tables ──────────────────────────────────────────────────────────────────────────────────────────────


def _table(names: NamesById, ranking: ListedRanking, last: Sequence) -> HistoryText:
    """Fixes the width of each column before the first row is known, because rows are written as they come."""
    unities = cut_apart({unity.id: unity.name for unity in ranking.unities}, NAME_CELLS_MAX)
    notations = {unity.id: unity.notation for unity in ranking.unities}
    competitors = cut_apart(names.in_ranking(ranking.id), NAME_CELLS_MAX)
    widths = (
        max(len("sequence"), len(str(last))),
        len("yyyy-mm-dd HH:ii:ss"),
        max(cell_len(text) for text in ("competitor", *competitors.values())),
        max(cell_len(text) for text in ("unity", *unities.values())),
        12,
        14,
        13,
        20,
    )

    padded_names = {
        competitor_id: set_cell_size(isolated(name), widths[2]) for competitor_id, name in competitors.items()
    }
    padded_unities = {unity_id: set_cell_size(isolated(name), widths[3]) for unity_id, name in unities.items()}

    blank = " " * (sum(widths[2:7]) + 2 * len(widths[2:7]))

    @lru_cache(maxsize=64)
    def cause(competition_id: CompetitionId) -> str:
        competition = names.competition(competition_id)
        name = "" if competition is None else shown_name(names, competition)
        return name or f"competition {competition_id}"

    def row(line: HistoryLine) -> str:
        if line.unity_id is None or line.competitor_id is None:
            why = f"classified by {criteria_text(ranking, line.criteria or [])}"
            return f"{line.sequence:>{widths[0]}}  {_time(line.recorded_at)}  {blank}{why}\n"
        positions = f"{_place(line.position_before)} → {_place(line.position_after)}"
        name = padded_names.get(line.competitor_id) or isolated(names.competitor(line.competitor_id).name)
        notation = notations[line.unity_id]
        delta, total = _change(notation, line), notation.text(line.total)
        return (
            f"{line.sequence:>{widths[0]}}  {_time(line.recorded_at)}  {name}  {padded_unities[line.unity_id]}  "
            f"{delta:>{widths[4]}}  {total:>{widths[5]}}  {positions:>{widths[6]}}  {_why(line, cause)}\n"
        )

    titles = ("sequence", "recorded_at", "competitor", "unity", "delta", "total", "position", "why")
    left = {1, 2, 3, 7}
    header = "  ".join(
        title.ljust(width) if n in left else title.rjust(width)
        for n, (title, width) in enumerate(zip(titles, widths, strict=True))
    )
    return HistoryText(f"{header.rstrip()}\n", lambda lines: "".join(map(row, lines)))


def _change(notation: Notation, line: HistoryLine) -> str:
    if line.delta is not None:
        return signed(notation, line.delta)
    return "" if line.result is None else notation.text(line.result)


def _place(position: int | None) -> str:
    return "–" if position is None else str(position)  # noqa: RUF001 - a dash for nothing


def _why(line: HistoryLine, cause_of: Callable[[CompetitionId], str]) -> str:
    if line.reversal is Reversal.EXPIRY:
        return "expired"
    cause = "free modification" if line.competition_id is None else cause_of(line.competition_id)
    reverses = "" if line.reversal is None else f", {line.reversal} of {line.reverses}"
    reason = "" if line.reason is None else f": {isolated(line.reason)}"
    return f"{cause}{reverses}{reason}"
