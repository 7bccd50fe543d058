"""Lines of history as text: a table, CSV, or a JSON object a line.

Everybody is called by the name they have today, so that a competitor has one name throughout. Ids tell apart those who
share a name.
"""

import csv
import io
from collections.abc import Callable, Iterable
from collections.abc import Sequence as Items
from functools import lru_cache
from typing import Final, Literal

import msgspec
from rich.cells import cell_len, set_cell_size

from api.interface.history import line_shape
from api.interface.rendering import timestamp
from engine.domain.terms import RankingId, Sequence
from projections.board.board import Board
from projections.past.history import HistoryLine

Format = Literal["table", "csv", "ndjson"]
NAME_CELLS_MAX: Final = 32
"""Width of a name in a table. The rest is cut, so that a row stays one line."""


class HistoryText:
    """One way to write history: `header` comes first, then `rows` of each portion of lines."""

    def __init__(self, header: str, rows: Callable[[Items[HistoryLine]], str]) -> None:
        self.header = header
        self.rows = rows


def history_text(format_: Format, board: Board, ranking_id: RankingId, last: Sequence) -> HistoryText:
    """The way to write the history of a ranking. `board` is today's, `last` the greatest sequence in it."""
    match format_:
        case "table":
            return _table(board, ranking_id, last)
        case "csv":
            return _csv(board, ranking_id)
        case "ndjson":
            return HistoryText("", _ndjson)


# ── Lines of JSON ───────────────────────────────────────────────────────────────────────────────────────


def _ndjson(lines: Items[HistoryLine]) -> str:
    return _encode_lines([line_shape(line) for line in lines]).decode()


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
    "total",
    "position_before",
    "position_after",
    "reverses",
    "reason",
)
_FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # noqa: RUF001 - full width


def harmless(text: str) -> str:
    """`text` as a cell that no spreadsheet takes for a formula: an apostrophe is put before what begins like one.

    Source: OWASP, CSV Injection. Leading blanks are ignored, because some programs trim them.
    """
    return f"'{text}" if text.lstrip(" \u00a0").startswith(_FORMULA_STARTS) else text


def _csv(board: Board, ranking_id: RankingId) -> HistoryText:
    competitors = {competitor_id: harmless(c.name) for competitor_id, c in board.competitors.items()}
    unities = {unity_id: harmless(u.name) for unity_id, u in board.rankings[ranking_id].unities.items()}

    def write(rows: Iterable[Iterable[object]]) -> str:
        text = io.StringIO()
        csv.writer(text, lineterminator="\r\n").writerows(rows)  # line ends of RFC 4180
        return text.getvalue()

    def rows(lines: Items[HistoryLine]) -> str:
        return write(
            (
                line.sequence,
                _time(line.recorded_at),
                line.actor,
                line.competitor_id,
                competitors[line.competitor_id],
                line.unity_id,
                unities[line.unity_id],
                line.competition_id,
                line.delta,
                line.total,
                line.position_before,
                line.position_after,
                line.reverses,
                None if line.reason is None else harmless(line.reason),
            )
            for line in lines
        )

    return HistoryText(write([CSV_COLUMNS]), rows)


_time: Final = lru_cache(maxsize=64)(timestamp)
"""The events of a block have one time."""


# ── Tables ──────────────────────────────────────────────────────────────────────────────────────────────


def _table(board: Board, ranking_id: RankingId, last: Sequence) -> HistoryText:
    """Fixes the width of each column before the first row is known, because rows are written as they come."""
    ranking = board.rankings[ranking_id]
    unities = {unity_id: _cut(unity.name) for unity_id, unity in ranking.unities.items()}
    named = {c for unity in ranking.unities.values() for c in unity.totals}.union(ranking.participants)
    names = {competitor_id: _cut(board.competitors[competitor_id].name) for competitor_id in named}
    widths = (
        max(len("sequence"), len(str(last))),
        len("yyyy-mm-dd HH:ii:ss"),
        max(cell_len(text) for text in ("competitor", *names.values())),
        max(cell_len(text) for text in ("unity", *unities.values())),
        12,
        14,
        13,
        20,
    )

    padded_names = {competitor_id: set_cell_size(name, widths[2]) for competitor_id, name in names.items()}
    padded_unities = {unity_id: set_cell_size(name, widths[3]) for unity_id, name in unities.items()}

    def row(line: HistoryLine) -> str:
        positions = f"{_place(line.position_before)} → {_place(line.position_after)}"
        name = padded_names.get(line.competitor_id) or _cut(board.competitors[line.competitor_id].name)
        return (
            f"{line.sequence:>{widths[0]}}  {_time(line.recorded_at)}  {name}  {padded_unities[line.unity_id]}  "
            f"{line.delta:>+{widths[4]}}  {line.total:>{widths[5]}}  {positions:>{widths[6]}}  {_why(line)}\n"
        )

    titles = ("sequence", "recorded_at", "competitor", "unity", "delta", "total", "position", "why")
    left = {1, 2, 3, 7}
    header = "  ".join(
        title.ljust(width) if n in left else title.rjust(width)
        for n, (title, width) in enumerate(zip(titles, widths, strict=True))
    )
    return HistoryText(f"{header.rstrip()}\n", lambda lines: "".join(map(row, lines)))


def _cut(name: str) -> str:
    return name if cell_len(name) <= NAME_CELLS_MAX else set_cell_size(name, NAME_CELLS_MAX - 1).rstrip() + "…"


def _place(position: int | None) -> str:
    return "–" if position is None else str(position)  # noqa: RUF001 - a dash for nothing


def _why(line: HistoryLine) -> str:
    cause = "free modification" if line.competition_id is None else f"competition {line.competition_id}"
    reverses = "" if line.reverses is None else f", reverses {line.reverses}"
    reason = "" if line.reason is None else f": {line.reason}"
    return f"{cause}{reverses}{reason}"
