"""Spreadsheets whose rows are competitions: XLSX, ODS and CSV. Pure.

A row that names columns is looked for: home and away, or participants, with a score; perhaps date, time, round, group,
place and key, in the words of several languages. Spreadsheets take scores for dates and times of day: 2-1 becomes 2
January, whose day and month are the goals, in the order that the cell shows them; 21:19 becomes a time, whose hours and
minutes are the goals. For a single participant, a time is the performance. The text `02-Jan`, as in CSV, is refused:
its order is not known.
"""

import re
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from api.imports.dates import spoilt
from api.imports.readers import ods, xlsx
from api.imports.readers.brought import (
    Brought,
    BroughtRanking,
    Entrant,
    FileReader,
    Meeting,
    Noticed,
    clock,
    text_of,
    whole,
)
from api.imports.readers.cells import EMPTY, Cell, Sheet
from api.interface.cells import csv_rows
from engine.domain.errors import Unreadable

SHEET_ROWS_MAX: Final = 100_000
"""Rows of a spreadsheet that is brought."""
_ROWS_ABOVE: Final = 20
"""Rows in which the one that names the columns is looked for."""
_WORDS: Final = {
    "date": "date datum data fecha dato matchdate gamedate tag dag jour day",
    "time": "time uhrzeit zeit hora heure kickoff ora tijd",
    "home": "home hometeam heim heimmannschaft local domicile casa team1 player1 white hjemme",
    "away": "away awayteam gast gastmannschaft visitante exterieur ospite team2 player2 black ude visitors",
    "participants": "participants participant name competitor player runner athlete driver team teilnehmer nombre nom",
    "club": "club verein equipe klub",
    "score": "score result ergebnis resultado resultat risultato uitslag ft performance points mark",
    "home goals": "homegoals homescore fthg hg score1 goals1 heimtore",
    "away goals": "awaygoals awayscore ftag ag score2 goals2 gasttore",
    "round": "round matchday spieltag runde week md jornada journee giornata ronde",
    "group": "group gruppe division pool grupo groupe girone",
    "location": "location venue ground ort stadium place lieu lugar luogo",
    "key": "key id matchid matchnumber matchno gameid gameno number no nr nummer",
    "winner": "winner sieger ganador vainqueur",
}
_ROLES: Final = {word: role for role, words in _WORDS.items() for word in words.split()}


class _Columns(Struct, frozen=True):
    """Where the columns of each role are. `others`: the names of the columns that mean nothing."""

    at: dict[str, int]
    others: tuple[str, ...]

    def cell(self, row: list[Cell], role: str) -> Cell | None:
        """None: there is no such column, or the cell is empty."""
        at = self.at.get(role)
        cell = row[at] if at is not None and at < len(row) else EMPTY
        return None if cell == EMPTY else cell

    def text(self, row: list[Cell], role: str) -> str:
        cell = self.cell(row, role)
        return "" if cell is None else _shown(cell)


def _shown(cell: Cell) -> str:
    if cell.date is not None:
        return _date(cell)
    return cell.text if cell.milliseconds is None else clock(abs(cell.milliseconds))


def _date(cell: Cell) -> str:
    if cell.date is None:
        return cell.text
    return cell.date.isoformat(" ", "minutes").removesuffix(" 00:00")


def _columns(row: list[Cell]) -> _Columns | None:
    """None: the row names no columns."""
    at: dict[str, int] = {}
    others = []
    for number, cell in enumerate(row):
        role = _ROLES.get(re.sub(r"[^a-z0-9]", "", cell.text.casefold().replace("é", "e").replace("ê", "e")))
        if role is None or role in at:
            others += [cell.text] if cell.text else []
        else:
            at[role] = number
    if "score" not in at and "participants" in at and "time" in at:
        at["score"] = at.pop("time")
    is_one = ("home" in at and "away" in at) or ("participants" in at and "score" in at)
    return _Columns(at, tuple(others)) if is_one else None


def _score(columns: _Columns, row: list[Cell], participants: int, where: str, found: Noticed) -> str:
    goals = [columns.text(row, f"{side} goals") for side in ("home", "away")]
    if "home goals" in columns.at and "away goals" in columns.at:
        return ":".join(goals) if any(goals) else ""
    cell = columns.cell(row, "score")
    if cell is None:
        return ""
    is_duel = participants == 2
    if cell.date is not None and is_duel:
        found.note("scores that had become dates are read as the day and the month, in the order of the cell", where)
        pair = (cell.date.day, cell.date.month) if cell.day_first else (cell.date.month, cell.date.day)
        return "{}:{}".format(*pair)
    if cell.date is not None:
        found.fault(where, f"{_date(cell)} is a date, not a score")
    elif cell.milliseconds is not None and is_duel:
        hours, rest = divmod(cell.milliseconds, 3_600_000)
        if rest % 60_000:
            found.fault(where, f"{clock(cell.milliseconds)} is a time, not a score")
        found.note("scores that had become times of day are read as hours and minutes", where)
        return f"{hours}:{rest // 60_000}"
    elif cell.milliseconds is not None and cell.milliseconds < 0:
        found.fault(where, "it is a time before zero")
    elif cell.milliseconds is None and (why := spoilt(cell.text, participants)) is not None:
        found.fault(where, why)
    return _shown(cell)


def _read(sheet: Sheet) -> Brought | None:
    """None: the sheet names no columns."""
    rows = iter(sheet.rows)
    columns = None
    for _, row in islice(rows, _ROWS_ABOVE):
        if (columns := _columns(row)) is not None:
            break
    if columns is None:
        return None
    found, entrants, meetings, groups = Noticed(), dict[str, Entrant](), list[Meeting](), list[str]()
    for other in columns.others:
        found.note(f"column {other!r} is left out")
    for number, row in rows:
        if len(meetings) >= SHEET_ROWS_MAX:
            raise Unreadable(f"The sheet has more than {SHEET_ROWS_MAX:,} rows; bring that many at a time.")
        names = _names(columns, row, f"row {number}", found)
        if names:
            club = columns.text(row, "club").replace(",", " ") if len(names) == 1 else ""
            for name in names:
                if name not in entrants:
                    entrants[name] = Entrant(key="", name=name, tags=(club,) if club else ())
            meetings.append(_meeting(columns, row, number, names, found))
            groups.append(columns.text(row, "group"))
    found.refuse_if_any()
    placed, tables = _grouped(meetings, groups)
    return Brought(
        name=sheet.name,
        entrants=tuple(entrants.values()),
        rankings=tables,
        meetings=placed,
        notes=found.notes,
    )


def _names(columns: _Columns, row: list[Cell], where: str, found: Noticed) -> tuple[str, ...]:
    """Of the participants; empty: the row has none."""
    if "home" in columns.at:
        names = [columns.text(row, "home"), columns.text(row, "away")]
    else:
        names = [name.strip() for name in columns.text(row, "participants").split("|")]
    given = tuple([name for name in names if name])
    if not given:
        found.note("rows without participants are left out", where)
    return given


def _meeting(columns: _Columns, row: list[Cell], number: int, names: tuple[str, ...], found: Noticed) -> Meeting:
    day, time, said = columns.cell(row, "date"), columns.cell(row, "time"), columns.text(row, "round")
    in_round = re.search(r"[0-9]{1,4}", said)
    return Meeting(
        number=number,
        key=columns.text(row, "key"),
        participants=names,
        score=_score(columns, row, len(names), f"row {number}", found),
        winner=columns.text(row, "winner"),
        date=" ".join(filter(None, ("" if day is None else _date(day), "" if time is None else _time(time)))),
        round=int(in_round[0]) if in_round else None,
        round_name=said if in_round is None else "",
        location=columns.text(row, "location"),
    )


def _grouped(meetings: list[Meeting], texts: list[str]) -> tuple[tuple[Meeting, ...], tuple[BroughtRanking, ...]]:
    """The competitions in their groups, and the ranking of each group. `texts`: the group of each, as the file has
    it."""
    groups = {text: n for n, text in enumerate(sorted(filter(None, set(texts))), start=1)}
    if all(whole(text) is not None for text in groups):
        groups = {text: int(text) for text in groups}
    placed = tuple(
        [
            replace(meeting, group=groups[text]) if text else meeting
            for meeting, text in zip(meetings, texts, strict=True)
        ]
    )
    of_groups: dict[int, dict[str, None]] = {}
    for meeting in placed:
        of_groups.setdefault(meeting.group, {}).update(dict.fromkeys(meeting.participants))
    names = {number: text for text, number in groups.items()} if len(of_groups) > 1 else {}
    tables = [
        BroughtRanking(name=names.get(number, ""), entrants=tuple(its), groups=(number,))
        for number, its in sorted(of_groups.items())
    ]
    return placed, tuple(tables)


def _time(cell: Cell) -> str:
    if cell.milliseconds is None:
        return cell.text
    minutes = cell.milliseconds // 60_000
    return f"{minutes // 60:02}:{minutes % 60:02}"


def _read_first(sheets: Iterable[Sheet]) -> Brought:
    """The first sheet with columns. Raises Unreadable."""
    for sheet in sheets:
        if (brought := _read(sheet)) is not None:
            return brought
    raise Unreadable(
        "No row names columns: home and away, or participants and score; and perhaps date, time, round, group, place, "
        "key and winner."
    )


def _csv(content: bytes) -> Iterable[Sheet]:
    rows = ((number, [Cell(field.strip()) for field in row]) for number, row in csv_rows(text_of(content)))
    return [Sheet("", rows)]


def _reader(name: str, suffix: str, sheets: Callable[[bytes], Iterable[Sheet]], sign: bytes) -> FileReader:
    def recognises(head: bytes) -> bool:
        return head.startswith(b"PK") and sign in head

    return FileReader(
        name=name, suffixes=(suffix,), recognises=recognises, read=lambda content: _read_first(sheets(content))
    )


XLSX_READER: Final = _reader("XLSX", ".xlsx", xlsx.sheets, b"xl/")
ODS_READER: Final = _reader("ODS", ".ods", ods.sheets, b"opendocument.spreadsheet")
CSV_READER: Final = FileReader(
    name="CSV", suffixes=(".csv",), recognises=lambda _: False, read=lambda content: _read_first(_csv(content))
)
