"""Spreadsheets: scores that became dates and times, and durations beyond a day."""

import tracemalloc
import zipfile
from datetime import datetime, timedelta
from io import BytesIO
from typing import Any

import openpyxl
import pytest

from api.imports.readers.recognising import read_file
from api.imports.readers.sheets import SHEET_ROWS_MAX
from tests.api.imports.readers.test_files import brought, read_text, refused, scores


def book(*rows: list[Any], formats: dict[str, str] | None = None) -> bytes:
    made = openpyxl.Workbook()
    for row in rows:
        made.active.append(row)
    for cell, number_format in (formats or {}).items():
        made.active[cell].number_format = number_format
    written = BytesIO()
    made.save(written)
    return written.getvalue()


def test_a_score_that_became_a_date_or_a_time_of_day_is_read_and_reported() -> None:
    league = brought("league.xlsx")
    assert scores(league.meetings) == ["2:1", "0-0", "3:1", "0-3 (awarded)", "2:2", ""]
    assert league.meetings[0].date == "2026-03-07 15:30"
    assert league.notes == (
        "scores that had become dates are read as the day and the month, in the order of the cell (row 4, 2 times)",
        "column 'Referee' is left out",
        "scores that had become times of day are read as hours and minutes (row 8)",
    )


def test_scores_beyond_23_are_hours_beyond_a_day() -> None:
    assert scores(brought("handball.xlsx").meetings) == ["21:19", "25:25", "31:28", "19:30"]
    assert [meeting.key for meeting in brought("handball.xlsx").meetings] == ["H1", "H2", "H3", "H4"]


def test_a_duration_beyond_a_day_and_half_an_hour_are_what_they_are() -> None:
    assert scores(brought("ultra.xlsx").meetings) == ["26:03:04", "30:00", "24:00:00", "23:59:59.5", "DNF"]
    assert scores(brought("run.ods").meetings) == ["26:03:04", "30:00", "24:00:00"]


def test_an_open_document_sheet_is_read_like_others() -> None:
    league = brought("league.ods")
    assert scores(league.meetings) == ["2:1", "3:1", "21:19", "1:1"]
    assert [meeting.date for meeting in league.meetings[::2]] == ["2026-03-07", "2026-03-14"]


@pytest.mark.parametrize(
    ("number_format", "score"),
    [("d-mmm", "3:2"), ("mmm-d", "2:3"), ("m/d", "2:3"), ("dd/mm/yyyy", "3:2"), ("[$-409]d\\-mmm;@", "3:2")],
)
def test_the_goals_stand_in_the_order_of_the_cell(number_format: str, score: str) -> None:
    content = book(["Home", "Away", "Score"], ["A", "B", datetime(2026, 2, 3)], formats={"C2": number_format})
    assert scores(read_file(content, "x.xlsx")[1].meetings) == [score]


def test_a_date_that_cannot_be_a_score_is_refused_by_row() -> None:
    content = book(["Name", "Time"], ["A", datetime(2026, 2, 3)])
    assert refused(content, "x.xlsx")[1:] == ["row 2: 2026-02-03 is a date, not a score"]
    content = book(["Home", "Away", "Score"], ["A", "B", timedelta(hours=2, minutes=1, seconds=7)])
    assert refused(content, "x.xlsx")[1:] == ["row 2: 2:01:07 is a time, not a score"]


def test_the_text_of_a_date_or_time_that_was_a_score_is_refused_by_row() -> None:
    text = "Home,Away,Score\nA,B,02-Jan\nA,B,2-1\nA,B,21:19:00\n"
    assert refused(text.encode(), "x.csv")[1:] == [
        f"row {row}: {score!r} is what a spreadsheet makes of a score such as 2-1 or 21:19; format the column as text "
        "there, and type the score again"
        for row, score in ((2, "02-Jan"), (4, "21:19:00"))
    ]
    assert refused(book(["Home", "Away", "Score"], ["A", "B", "02-Jan"]), "x.xlsx")[1].startswith("row 2: '02-Jan' is")
    race = read_text("Name,Score\nA,21:19:00\n", "x.csv")
    assert scores(race.meetings) == ["21:19:00"]


def test_columns_may_be_named_in_other_languages_and_goals_stand_apart() -> None:
    text = "Spieltag;Heim;Gast;Heimtore;Gasttore;Gruppe\n3. Spieltag;A;B;2;1;Nord\n3. Spieltag;C;D;;;Süd\n"
    league = read_text(text, "x.csv")
    assert [(one.participants, one.score, one.round, one.group) for one in league.meetings] == [
        (("A", "B"), "2:1", 3, 1),
        (("C", "D"), "", 3, 2),
    ]
    assert [(table.name, table.entrants) for table in league.rankings] == [("Nord", ("A", "B")), ("Süd", ("C", "D"))]


def test_a_sheet_whose_columns_have_no_names_is_refused() -> None:
    assert refused(book(["A", "B", "2:1"]), "x.xlsx")[0].startswith("No row names columns: home and away")


def test_what_a_file_says_of_its_size_is_not_believed(tmp_path: Any) -> None:
    content = book(["Home", "Away", "Score"], ["A", "B", "2:1"])
    assert scores(
        read_file(_with(content, b'<dimension ref="A1:C2"', b'<dimension ref="A1:XFD1048576"'), "x.xlsx")[1].meetings
    ) == ["2:1"]
    far = _with(content, b'<row r="2"', b'<row r="9999999999"')
    assert refused(far, "x.xlsx") == ["The file is damaged: it has more than 1,048,576 rows."]


def _with(content: bytes, old: bytes, new: bytes) -> bytes:
    """The file with other bytes in one of its members."""
    changed = BytesIO()
    with zipfile.ZipFile(BytesIO(content)) as archive, zipfile.ZipFile(changed, "w") as other:
        assert any(old in archive.read(name) for name in archive.namelist())
        for name in archive.namelist():
            other.writestr(zipfile.ZipInfo(name), archive.read(name).replace(old, new))
    return changed.getvalue()


_PLAIN = [b"<c r=", b"<row r=", b"</row>"]
_OTHERWISE = [
    [b"<!-- c --><c r=", b"<row r=", b"</row>"],
    [b"<c  r=", b"<row r=", b"\n</row>"],
    [b"<c x=", b"<row x=", b"</row>"],
    [b"<c\nr=", b"<row cm='1' r=", b"</row><?nothing?>"],
]


@pytest.mark.parametrize("otherwise", _OTHERWISE)
def test_a_sheet_is_read_alike_however_its_xml_is_written(otherwise: list[bytes]) -> None:
    content = book(
        ["Home", "Away", "Score", "Club"],
        ["A & B", "Über", datetime(2026, 2, 3), None],
        ["C", "D", "=1+1", True],
        ["E", "F", timedelta(hours=26, seconds=3600), 7],
        formats={"C2": "d-mmm"},
    )
    expected = read_file(content, "x.xlsx")[1]
    assert scores(expected.meetings) == ["3:2", "", "27:0"]
    for plain, other in zip(_PLAIN, otherwise, strict=True):
        content = _with(content, plain, other)
    assert read_file(content, "x.xlsx")[1] == expected


def test_texts_of_several_styles_are_read_whole_and_without_how_they_are_pronounced() -> None:
    content = book(["Home", "Away", "Score"], ["Pier Town", "Quay", "2:1"])
    styled = b'<is><r><t xml:space="preserve">Pier </t></r><r><t>Town</t></r><rPh sb="0" eb="1"><t>PEER</t></rPh></is>'
    assert read_file(_with(content, b"<is><t>Pier Town</t></is>", styled), "x.xlsx")[1] == read_file(content, "")[1]


def test_days_may_be_counted_from_1904() -> None:
    content = book(["Date", "Home", "Away", "Score"], [datetime(2026, 3, 7), "A", "B", "2:1"])
    later = _with(content, b"<workbookPr ", b'<workbookPr date1904="1" ')
    assert read_file(later, "x.xlsx")[1].meetings[0].date == "2030-03-08"


def test_a_part_that_could_name_entities_is_refused_wherever_it_says_so() -> None:
    content = book(["Home", "Away", "Score"], ["A", "B", "2:1"])
    hidden = b"<!--" + b" " * 5_000 + b"--><!DOCTYPE worksheet []><worksheet "
    assert refused(_with(content, b"<worksheet ", hidden), "x.xlsx") == [
        "The file declares a document type, and could name entities; such files are not read."
    ]


def test_a_cell_that_cannot_be_read_is_refused_by_row_and_column() -> None:
    content = book(["Home", "Away", "Score"], ["A", "B", 3])
    assert refused(_with(content, b"<v>3</v>", b"<v>three</v>"), "x.xlsx") == [
        "The file is damaged.",
        "row 2, column C: could not convert string to float: 'three'",
    ]
    assert refused(_with(content, b't="n"><v>3', b't="s"><v>3'), "x.xlsx")[1:] == [
        "row 2, column C: it has no text or style 3"
    ]


@pytest.mark.long
def test_a_hundred_thousand_rows_are_read_within_bounds_of_memory() -> None:
    made = openpyxl.Workbook(write_only=True)
    made.create_sheet().append(["Home", "Away", "Score", "Key"])
    for n in range(SHEET_ROWS_MAX):
        made.worksheets[0].append([f"Club {n % 997}", f"Club {n % 1009 + 1000}", f"{n % 7}:{n % 3}", f"M{n}"])
    written = BytesIO()
    made.save(written)
    tracemalloc.start()
    try:
        assert len(read_file(written.getvalue(), "x.xlsx")[1].meetings) == SHEET_ROWS_MAX
        assert tracemalloc.get_traced_memory()[1] < 80 * 2**20
    finally:
        tracemalloc.stop()
