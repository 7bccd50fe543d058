"""Sheets of XLSX files: values, the formats that tell dates from durations, and shared texts. Pure.

Libraries either lose the format of a cell, or make an object with a style of each, which takes much longer.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from functools import reduce
from itertools import chain
from posixpath import basename, dirname, join, normpath
from typing import Any, Final
from xml.parsers import expat
from zipfile import ZipFile

from api.imports.readers import archives
from api.imports.readers.brought import whole
from api.imports.readers.cells import COLUMNS_MAX, EMPTY, SHEETS_MAX, Cell, Sheet, number_text
from api.imports.readers.elements import DEPTH_MAX, TOKEN_BYTES_MAX, Element, fed, root_of
from engine.domain.errors import Fault, Unreadable

_KEPT_BYTES_MAX: Final = 32 * 2**20
"""Bytes of a part of an XLSX file that is kept in memory: of each but its sheets."""
_ROWS_MAX: Final = 1_048_576
_CELLS_KEPT: Final = 50_000
"""Different values that are made into cells only once."""
_DAY_MILLISECONDS: Final = 86_400_000
_NOT_SHOWN: Final = re.compile(r'"[^"]*"|\[(?!h+\]|m+\]|s+\])[^\]]*\]|\\.|_.|\*.|AM/PM|;.*', re.IGNORECASE | re.DOTALL)
_BUILT_IN: Final = {
    **dict.fromkeys((14, 22), "m/d"),
    **dict.fromkeys((15, 16), "d-m"),
    17: "m-y",
    **dict.fromkeys((*range(18, 22), *range(32, 36), *range(45, 48)), "h"),
    **dict.fromkeys((*range(27, 32), 36, *range(50, 59)), "y-m-d"),
}
"""What the formats show that a file names by number only: dates, or times."""
_PRONUNCIATION: Final = "rPh"
_MakeCell = Callable[[str, str, str], Cell]
"""Of the style, the type and the text of a value. Raises ValueError and OverflowError."""


def sheets(content: bytes) -> Iterator[Sheet]:
    """The visible ones. Raises Unreadable."""
    archive = archives.checked(content)
    book = next(iter(_related(archive, "", "officeDocument").values()), "xl/workbook.xml")
    root = _tree(archive, book)
    cell = _cells(archive, book, root)
    parts = _related(archive, book, "worksheet")
    for sheet in [*root.each("sheets", "sheet")][:SHEETS_MAX]:
        own = sheet.attributes
        if own.get("state", "visible") == "visible" and own.get("id") in parts:
            yield Sheet(own.get("name", ""), _rows(archives.unpacked(archive, parts[own["id"]]), cell))


def _tree(archive: ZipFile, part: str) -> Element:
    """Raises Unreadable."""
    return root_of(b"".join(_kept(archive, part)))


def _kept(archive: ZipFile, part: str) -> Iterator[bytes]:
    if archive.getinfo(part).file_size > _KEPT_BYTES_MAX:
        raise Unreadable(f"The file has more than {_KEPT_BYTES_MAX:,} bytes in {part!r}.")
    return archives.unpacked(archive, part)


def _related(archive: ZipFile, part: str, kind: str) -> dict[str, str]:
    """The parts of a kind that belong to one, by their ids there. Raises Unreadable."""
    relations = join(dirname(part), "_rels", f"{basename(part)}.rels")
    if relations not in (names := set(archive.namelist())):
        return {}
    found = {}
    for one in _tree(archive, relations).each("Relationship"):
        target = normpath(join("/", dirname(part), one.attributes.get("Target", "")))[1:]
        if one.attributes.get("Type", "").endswith(f"/{kind}") and target in names:
            found[one.attributes.get("Id", "")] = target
    return found


# ── What a cell means ────────────────────────────────────────────────────────────────────────────────────


def _cells(archive: ZipFile, book: str, root: Element) -> _MakeCell:
    """Raises Unreadable."""
    shows = [shown for part in _related(archive, book, "styles").values() for shown in _styles(_tree(archive, part))]
    texts = [
        Cell(text.strip())
        for part in _related(archive, book, "sharedStrings").values()
        for _, _, text in _items(_kept(archive, part), ("si",), ("t",))
    ]
    properties = root.first("workbookPr")
    from_1904 = properties is not None and properties.attributes.get("date1904", "") in ("1", "true")

    def cell(style: str, kind: str, text: str) -> Cell:
        text = text.strip()
        if not text:
            return EMPTY
        match kind:
            case "s":
                return texts[_index(text, texts)]
            case "inlineStr" | "str" | "e":
                return Cell(text)
            case "b":
                return Cell("TRUE" if text == "1" else "FALSE")
            case "d":
                return Cell(date=datetime.fromisoformat(text[:19]))
        number = float(text)
        shown = shows[_index(style, shows)] if style else ""
        if not shown:
            return Cell(number_text(number))
        if shown == "h" or 0 <= number < 1:
            return Cell(milliseconds=round(number * _DAY_MILLISECONDS))
        day_first = "m" not in shown or -1 < shown.find("d") < shown.find("m")
        return Cell(date=_moment(number, from_1904), day_first=day_first)

    return cell


def _index(text: str, of: list[Any]) -> int:
    """Raises ValueError."""
    number = whole(text)
    if number is None or number >= len(of):
        raise ValueError(f"it has no text or style {text}")
    return number


def _moment(days: float, from_1904: bool) -> datetime:
    """Spreadsheets have a 29 February 1900."""
    first = datetime(1904, 1, 1) if from_1904 else datetime(1899, 12, 31 if days < 60 else 30)
    return first + timedelta(milliseconds=round(days * _DAY_MILLISECONDS))


def _styles(root: Element) -> Iterator[str]:
    """What the format of each style shows: an order of day, month and year; or `h`: a time; or nothing of these."""
    own = {
        one.attributes.get("numFmtId"): one.attributes.get("formatCode", "") for one in root.each("numFmts", "numFmt")
    }
    for style in root.each("cellXfs", "xf"):
        number = style.attributes.get("numFmtId", "0")
        code = _NOT_SHOWN.sub("", own[number]).lower() if number in own else _BUILT_IN.get(whole(number) or 0, "")
        if "general" in code:
            yield ""
        elif "y" in code or "d" in code:
            yield code
        else:
            yield "h" if re.search("[hms]", code) else ""


# ── Rows ─────────────────────────────────────────────────────────────────────────────────────────────────

_Value = tuple[bytes, bytes, bytes, bytes]
"""A cell as the file has it: the letters of its column, style, type and text; each empty if it has none."""


class _Columns(dict[bytes, int]):
    """The columns, from 0, by their letters. Raises ValueError."""

    def __missing__(self, letters: bytes) -> int:
        if not re.fullmatch(b"[A-Z]{1,3}", letters):
            raise ValueError("there is no such column")
        self[letters] = reduce(lambda number, letter: number * 26 + letter - 64, letters, 0) - 1
        return self[letters]


def _rows(part: Iterator[bytes], make: _MakeCell) -> Iterator[tuple[int, list[Cell]]]:
    """The rows that have cells. Neither rows nor cells need to say where they are. Raises Unreadable."""
    number, columns = 0, _Columns()
    made: dict[tuple[bytes, bytes, bytes], Cell] = {}
    for said, values in _written_rows(part):
        number = (whole(said.decode()) or _ROWS_MAX + 1) if said else number + 1
        if number > _ROWS_MAX:
            raise Unreadable(f"The file is damaged: it has more than {_ROWS_MAX:,} rows.")
        row: list[Cell] = []
        for letters, style, kind, text in values:
            try:
                at = columns[letters] if letters else len(row)
                cell = made.get((style, kind, text))
                if cell is None:
                    cell = make(style.decode(), kind.decode(), text.decode())
                    if len(made) < _CELLS_KEPT:
                        made[style, kind, text] = cell
            except (ValueError, OverflowError) as error:
                where = f"row {number}, column {letters.decode(errors='replace')}"
                raise Unreadable("The file is damaged.", [Fault(where, str(error))]) from error
            if at == len(row) < COLUMNS_MAX:
                row.append(cell)
            elif at < COLUMNS_MAX:
                row += [EMPTY] * (at + 1 - len(row))
                row[at] = cell
        if row:
            yield number, row


_BEGINNING: Final = re.compile(
    rb'(?:\xef\xbb\xbf)?(?:<\?xml(?: version="1.0"| encoding="utf-8"| standalone="\w+")* ?\?>)?[^!?]*?<sheetData>',
    re.IGNORECASE,
)
_PLAIN_ROW: Final = re.compile(rb'\s*<row(?: r="([0-9]+)")?(?: [\w:]+="[^"<>&]*")* ?(/)?>')
_ROW_END: Final = b"</row>"
_PLAIN_CELL: Final = re.compile(
    rb'<c(?: r="([A-Z]{1,3})[0-9]{1,7}")?(?: s="([0-9]{1,6})")?(?: t="([a-zA-Z]{1,9})")? ?'
    rb"(?:/>|>(?:<f[^<>]*(?:/>|>[^<]*</f>))?"
    rb'(?:(?:<v>|<is><t(?: xml:space="preserve")?>)([^<&]*)(?:</v>|</t></is>)|<v ?/>)?</c>)|.',
    re.DOTALL,
)


def _written_rows(part: Iterator[bytes]) -> Iterator[tuple[bytes, list[_Value]]]:
    """The numbers that the rows say, and their cells. Patterns find what is written as most programs write it, in a
    third of the time of a parser of XML, which takes over from the first row that is not. Raises Unreadable."""
    rest, begun = b"", b""
    for chunk in part:
        rest += chunk
        at = 0
        if not begun:
            beginning = _BEGINNING.match(rest)
            if beginning is None:
                break
            at, begun = beginning.end(), b"<worksheet><sheetData>"
        while (row := _PLAIN_ROW.match(rest, at)) is not None:
            end = row.end() if row[2] else rest.find(_ROW_END, row.end())
            if end < 0:
                break
            inside = rest[row.end() : end]
            values: list[_Value] = _PLAIN_CELL.findall(inside)
            if len(values) != inside.count(b"<c"):  # it has not only plain cells
                break
            yield row[1] or b"", values
            at = end if row[2] else end + len(_ROW_END)
        rest = rest[at:]
        if rest.lstrip().startswith(b"</sheetData>"):
            return
        if _ROW_END in rest or len(rest) > TOKEN_BYTES_MAX:
            break
    yield from _parsed_rows(chain([begun + rest], part))


def _parsed_rows(part: Iterable[bytes]) -> Iterator[tuple[bytes, list[_Value]]]:
    """As `_written_rows`."""
    number, values = b"", None
    for name, own, text in _items(part, ("row", "c"), ("v", "t")):
        said = own.get("r", "").encode()
        if name == "row":
            if values is not None:
                yield number, values
            number, values = said, list[_Value]()
        elif values is not None:
            style, kind = own.get("s", "").encode(), own.get("t", "").encode()
            values.append((said.rstrip(b"0123456789"), style, kind, text.encode()))
    if values is not None:
        yield number, values


def _items(
    part: Iterable[bytes], named: tuple[str, ...], texts: tuple[str, ...]
) -> Iterator[tuple[str, dict[str, str], str]]:
    """The elements `named`, one after another, each with its attributes, and with what elements `texts` say before the
    next one, but not how it is pronounced. Raises Unreadable."""
    parser = expat.ParserCreate()
    parser.buffer_text = True
    found: list[tuple[str, dict[str, str]]] = []
    said: list[str] = []
    depth, is_text, is_mute = 0, False, False

    def start(name: str, own: dict[str, str]) -> None:
        nonlocal depth, is_text, is_mute
        depth += 1
        if depth > DEPTH_MAX:
            raise Unreadable("The file is damaged: its elements are nested too deeply.")
        name = name.rpartition(":")[2]
        is_text = name in texts and not is_mute
        if name in named:
            is_mute = False
            found.append((name, own))
            said.append("")
        elif name == _PRONUNCIATION:
            is_mute = True

    def end(_: str) -> None:
        nonlocal depth, is_text
        depth, is_text = depth - 1, False

    def add(text: str) -> None:
        if is_text and said:
            said[-1] += text

    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, end, add
    for _ in fed(parser, part):
        done = max(len(found) - 1, 0)  # the last one may not have all its text yet
        for (name, own), text in zip(found[:done], said, strict=False):
            yield name, own, text
        del found[:done], said[:done]
    for (name, own), text in zip(found, said, strict=True):
        yield name, own, text
