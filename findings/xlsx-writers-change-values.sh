#!/usr/bin/env bash
# Writers of XLSX store other values than they were given, without a word.
#
# Guess: 64-bit whole numbers become the nearest double, 2:01 hours stay a time of day or a duration, and the text
# "True" stays a text. What happens: the Python build of excelize keeps the lower 32 bits of a whole number, so
# 3,000,000,000 becomes -1,294,967,296, and 2^32 becomes 0; the same number as a float is exact. Aspose.Cells FOSS
# stores the time 2:01 as that time *today*, so that the file differs every day, makes a truth value of the text "True",
# and with a duration writes a file that openpyxl refuses.
#
# Why it matters to a ranking service: points in small units, keys and times in milliseconds pass 2^31 early, and marks
# are times. Read an export back with another library, and compare every cell.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    excelize==0.1.0 aspose-cells-foss==26.10.0 openpyxl==3.1.5
"$folder/venv/bin/python" - "$folder" <<'PYTHON'
import sys
from datetime import date, time, timedelta
from pathlib import Path

import excelize
import openpyxl
from aspose.cells_foss import Workbook

GIVEN = [3_000_000_000, 2**32, 1_764_000_000_000, 3e9]
STORED = [-1_294_967_296, 0, -1_231_558_656, 3_000_000_000]


def read(file: Path) -> list[object]:
    try:
        return [line[0] for line in openpyxl.load_workbook(file).active.iter_rows(values_only=True)]
    except ValueError as error:
        return [type(error).__name__]


def of_aspose(value: object, file: Path) -> object:
    book = Workbook()
    book.worksheets[0].cells["A1"].value = value
    book.save(str(file))
    return read(file)[0]


file = Path(sys.argv[1], "points.xlsx")
book = excelize.new_file()
for row, number in enumerate(GIVEN, start=1):
    book.set_cell_value("Sheet1", f"A{row}", number)
book.save_as(str(file))
whole = read(file)
print(f"Python {sys.version.split()[0]}, read by openpyxl 3.1.5")
for given, stored in zip(GIVEN, whole, strict=True):
    print(f"excelize 0.1.0: {given!r} is stored as {stored!r}")
written = {value: of_aspose(value, file) for value in ("True", time(2, 1), timedelta(hours=26))}
for given, stored in written.items():
    print(f"aspose-cells-foss 26.10.0: {given!r} is stored as {stored!r}")
today = (date.today() - date(1899, 12, 30)).days
print(f"today is day {today}; 2:01 is {121 / 1440:.6f} of a day")
moment = written[time(2, 1)]
same = whole == STORED and written["True"] is True and written[timedelta(hours=26)] == "ValueError"
same &= isinstance(moment, float) and 0 <= today - int(moment) <= 1 and abs(moment % 1 - 121 / 1440) < 1e-6
sys.exit(0 if same else "it has changed")
PYTHON
