"""Spreadsheets: scores that became dates and times, and durations beyond a day."""

import sys
import zipfile
from datetime import datetime, timedelta
from io import BytesIO
from typing import Any

import openpyxl
import pytest

from api.imports.readers.recognising import read_file
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


def test_a_score_that_became_a_date_or_a_time_of_day_is_read_and_said() -> None:
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


def test_a_date_that_is_no_score_of_two_is_refused_by_row() -> None:
    content = book(["Name", "Time"], ["A", datetime(2026, 2, 3)])
    assert refused(content, "x.xlsx")[1:] == ["row 2: 2026-02-03 is a date, not a score"]
    content = book(["Home", "Away", "Score"], ["A", "B", timedelta(hours=2, minutes=1, seconds=7)])
    assert refused(content, "x.xlsx")[1:] == ["row 2: 2:01:07 is a time, not a score"]


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


def test_without_openpyxl_the_refusal_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    assert refused(book(["Home", "Away", "Score"]), "x.xlsx") == [
        "Reading XLSX needs openpyxl: pip install 'tallybook[files]'. Or save the file as CSV."
    ]
