"""History and explanations as text: tables, CSV, lines of JSON, and sentences.

Names are those of today, so that a competitor has one name in all lines of a page; ids tell apart who shares one.
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
from engine.domain.terms import CompetitionId, CompetitorId, RankingId, Sequence, UnityId
from projections.board.board import Board
from projections.past.explanation import Cause, Overtaking, Step
from projections.past.history import HistoryLine
from projections.past.past import DatedPlace, Explanation

Format = Literal["table", "csv", "ndjson"]
NAME_CELLS_MAX: Final = 32
"""Of a name in a table; the rest is cut, so that a row stays a row."""


class Telling:
    """One way to write lines of history: `head` comes first, then `lines`, as often as there are some."""

    def __init__(self, head: str, lines: Callable[[Items[HistoryLine]], str]) -> None:
        self.head = head
        self.lines = lines


def telling(way: Format, board: Board, ranking_id: RankingId, head: Sequence) -> Telling:
    """`board` is that of today, `head` the greatest sequence that can come."""
    match way:
        case "table":
            return _table(board, ranking_id, head)
        case "csv":
            return _csv(board, ranking_id)
        case "ndjson":
            return Telling("", _ndjson)


# ── Lines of JSON ───────────────────────────────────────────────────────────────────────────────────────


def _ndjson(lines: Items[HistoryLine]) -> str:
    return _encode_lines([line_shape(line) for line in lines]).decode()


_encode_lines: Final = msgspec.json.Encoder().encode_lines


# ── CSV ─────────────────────────────────────────────────────────────────────────────────────────────────

COLUMNS: Final = (
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
)
_FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # noqa: RUF001 - full width


def harmless(text: str) -> str:
    """`text` as a cell that no spreadsheet takes for a formula: an apostrophe goes before what begins like one.

    Source: OWASP, CSV Injection. Blanks are looked past, as some programs trim them.
    """
    return f"'{text}" if text.lstrip(" \u00a0").startswith(_FORMULA_STARTS) else text


def _csv(board: Board, ranking_id: RankingId) -> Telling:
    competitors = {competitor_id: harmless(c.name) for competitor_id, c in board.competitors.items()}
    unities = {unity_id: harmless(u.name) for unity_id, u in board.rankings[ranking_id].unities.items()}

    def write(rows: Iterable[Iterable[object]]) -> str:
        text = io.StringIO()
        csv.writer(text, lineterminator="\r\n").writerows(rows)  # as RFC 4180 has it
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
            )
            for line in lines
        )

    return Telling(write([COLUMNS]), rows)


_time: Final = lru_cache(maxsize=64)(timestamp)
"""The events of a block have one time."""


# ── Tables ──────────────────────────────────────────────────────────────────────────────────────────────


def _table(board: Board, ranking_id: RankingId, head: Sequence) -> Telling:
    """Columns have their width before the first row is known, because rows are written as they come."""
    ranking = board.rankings[ranking_id]
    unities = {unity_id: _cut(unity.name) for unity_id, unity in ranking.unities.items()}
    named = {c for unity in ranking.unities.values() for c in unity.totals}.union(ranking.participants)
    names = {competitor_id: _cut(board.competitors[competitor_id].name) for competitor_id in named}
    widths = (
        max(len("sequence"), len(str(head))),
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
    head_row = "  ".join(
        title.ljust(width) if n in left else title.rjust(width)
        for n, (title, width) in enumerate(zip(titles, widths, strict=True))
    )
    return Telling(f"{head_row.rstrip()}\n", lambda lines: "".join(map(row, lines)))


def _cut(name: str) -> str:
    return name if cell_len(name) <= NAME_CELLS_MAX else set_cell_size(name, NAME_CELLS_MAX - 1).rstrip() + "…"


def _place(position: int | None) -> str:
    return "–" if position is None else str(position)  # noqa: RUF001 - a dash for nothing


def _why(line: HistoryLine) -> str:
    if line.competition_id is None:
        return "free modification"
    reverses = "" if line.reverses is None else f", reverses {line.reverses}"
    return f"competition {line.competition_id}{reverses}"


# ── Sentences ───────────────────────────────────────────────────────────────────────────────────────────


class Sentences:
    """Says how a competitor came to be where they are, as one would write it to them."""

    def __init__(self, board: Board, ranking_id: RankingId, unity_id: UnityId, competitor_id: CompetitorId) -> None:
        self._board = board
        self._ranking = board.rankings[ranking_id]
        self._unity = self._ranking.unities[unity_id]
        self._competitor_id = competitor_id

    def said(self, told: Explanation) -> str:
        """All of it, in lines."""
        name = self._name(self._competitor_id)
        lines = [
            f"{name} in {self._ranking.name}: {self._unity.name}",
            "",
            f"{_after(told.start)}, {name} {_stood(told.start)}.",
            f"{_after(told.end)}, {name} {_stood(told.end)}.",
        ]
        if not told.steps:
            return "\n".join([*lines, "Nothing that concerns that position or total happened in between."])
        lines += ["", *self._sum(told), ""]
        for step in told.steps:
            head = f"{timestamp(step.recorded.recorded_at)}  event {step.recorded.sequence}"
            lines += [head, *(f"    {sentence}" for sentence in self._step(step))]
        return "\n".join(lines)

    def _sum(self, told: Explanation) -> list[str]:
        """What all the steps come to."""
        deltas = [step for step in told.steps if step.delta is not None]
        gained, lost = (sum(s.delta or 0 for s in deltas if ((s.delta or 0) > 0) is way) for way in (True, False))
        passing = [o for step in told.steps for o in step.overtakings if not o.level]
        hers = sum(o.who == self._competitor_id for o in passing)
        counted = [
            f"{_times(len(deltas), 'change')} of the total, {gained} gained and {-lost} lost: {gained + lost:+} in all",
            f"{_times(hers, 'time')} passing somebody, {_times(len(passing) - hers, 'time')} being passed",
        ]
        return [f"In between: {'; '.join(counted)}."]

    def _step(self, step: Step) -> list[str]:
        sentences = []
        if step.cause is Cause.LIST:
            sentences.append(self._list_sentence(step))
        elif step.delta is not None:
            sentences.append(
                f"{step.delta:+} {self._reason(step)}. Total {step.before.total} → {step.after.total}, {_moved(step)}."
            )
        else:
            sentences.append(f"Others moved {self._reason(step)}: {_moved(step)}.")
        return sentences + [self._overtaking(overtaking) for overtaking in step.overtakings]

    def _list_sentence(self, step: Step) -> str:
        name = self._name(self._competitor_id)
        if step.after.position is None:
            return f"{name} left the list."
        if step.before.position is None:
            return f"{name} came into the list: {ordinal(step.after.position)} with {step.after.total}."
        return f"The list of competitors changed: {_moved(step)}."

    def _reason(self, step: Step) -> str:
        if step.competition_id is None:
            return "by a free modification"
        competition = self._competition(step.competition_id)
        if step.cause is Cause.REVERSAL:
            return f"because event {step.reverses} was reversed, of {competition}"
        return f"by {competition}"

    def _competition(self, competition_id: CompetitionId) -> str:
        competition = self._board.competitions[competition_id]
        known = []
        if 0 < len(competition.participants) <= 2:
            known.append(" – ".join(map(self._name, competition.participants)))  # noqa: RUF001 - one against the other
        if isinstance(competition.result, str):
            known.append(competition.result)
        if competition.voided_at is not None:
            known.append("voided by now")
        return f"competition {competition_id}" + (f" ({', '.join(known)})" if known else "")

    def _overtaking(self, overtaking: Overtaking) -> str:
        who, whom = self._name(overtaking.who), self._name(overtaking.whom)
        if overtaking.level:
            return f"{who} drew level with {whom}, at {overtaking.who_total}."
        return f"{who} passed {whom}, {overtaking.who_total} to {overtaking.whom_total}."

    def _name(self, competitor_id: CompetitorId) -> str:
        return self._board.competitors[competitor_id].name


def ordinal(number: int) -> str:
    """1st, 2nd, 3rd, 4th … 11th, 12th, 13th … 21st."""
    suffix = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{'th' if number % 100 in (11, 12, 13) else suffix}"


def _after(stand: DatedPlace) -> str:
    if stand.recorded_at is None:
        return "Before the first event"
    return f"After event {stand.sequence}, recorded at {timestamp(stand.recorded_at)} UTC"


def _stood(stand: DatedPlace) -> str:
    if stand.place.position is None:
        return f"was not in the list, with {stand.place.total}"
    return f"stood {ordinal(stand.place.position)} with {stand.place.total}"


def _moved(step: Step) -> str:
    before, after = step.before.position, step.after.position
    if before is None or after is None:
        return "not in the list" if after is None else f"now {ordinal(after)}"
    return f"still {ordinal(after)}" if before == after else f"{ordinal(before)} → {ordinal(after)}"


def _times(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
