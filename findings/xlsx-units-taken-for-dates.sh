#!/usr/bin/env bash
# Readers of XLSX take the unit in a cell's format for a date, or lose the whole part of 2½.
#
# Guess: 2.5 points are 2.5 for every reader, whatever unit or fraction the cell shows. What happens: xlsx2csv looks for
# the letters of dates inside quotes: a column shown as "2.5 d" becomes `0.0" 01"`, one of hours (`0.0" Std"`) becomes
# `0.0" st01"`. ExcelJS takes a space as wide as a letter (`0.0_d`), or an escaped letter, for a date in January 1900.
# excelize shows 2½ in the format `??/??`, that of improper fractions, as 1/2: two points are lost.
#
# Why it matters to a ranking service: organisers bring such tables, and the wrong cell is text that looks like a
# result. Read values, not what a library shows, and strip what is quoted, escaped, padding or in brackets before
# looking for the letters of a date.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    xlsxwriter==3.3.1 openpyxl==3.1.5 python-calamine==0.9.1 xlsx2csv==0.8.6 excelize==0.1.0
npm install --silent --no-audit --no-fund --prefix "$folder/node" exceljs@4.4.0 > "$folder/npm" 2>&1
"$folder/venv/bin/python" - "$folder" <<'PYTHON'
import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import excelize
import openpyxl
import python_calamine
import xlsxwriter

FORMATS = ("0.0", '0.0" d"', '0.0" Std"', "0.0_d", "0.0\\h", "??/??")
NODE = """
const {Workbook} = require("exceljs");
(async () => {
  const book = new Workbook();
  await book.xlsx.readFile(process.argv[1]);
  console.log(JSON.stringify(book.worksheets[0].getColumn(1).values.slice(1)));
})();
"""
KNOWN = {
    "openpyxl 3.1.5": [2.5] * 6,
    "python-calamine 0.9.1": [2.5] * 6,
    "xlsx2csv 0.8.6": ["2.5", '0.0" 01"', '0.0" st01"', "0.0_01", "0.012", "2.5"],
    "ExcelJS 4.4.0": [2.5, 2.5, 2.5, "1900-01-01T12:00:00.000Z", "1900-01-01T12:00:00.000Z", 2.5],
    "excelize 0.1.0": ["2.5", "2.5 d", "2.5 Std", "2.5", "2.5h", "1/2"],
}
folder = Path(sys.argv[1])
file = str(folder / "points.xlsx")
with xlsxwriter.Workbook(file) as book:
    sheet = book.add_worksheet("Points")
    for row, shown in enumerate(FORMATS):
        sheet.write_number(row, 0, 2.5, book.add_format({"num_format": shown}))

said = subprocess.run([folder / "venv/bin/xlsx2csv", file], capture_output=True, check=True, text=True).stdout
asked = ["node", "-e", NODE, file]
from_node = json.loads(subprocess.run(asked, cwd=folder / "node", capture_output=True, check=True, text=True).stdout)
shown = excelize.open_file(file)
seen = {
    "openpyxl 3.1.5": [line[0] for line in openpyxl.load_workbook(file).active.iter_rows(values_only=True)],
    "python-calamine 0.9.1": [
        line[0] for line in python_calamine.CalamineWorkbook.from_path(file).get_sheet_by_index(0).to_python()
    ],
    "xlsx2csv 0.8.6": [line[0] for line in csv.reader(io.StringIO(said))],
    "ExcelJS 4.4.0": from_node,
    "excelize 0.1.0": [shown.get_cell_value("Points", f"A{row}").strip() for row in range(1, len(FORMATS) + 1)],
}
print(f"Python {sys.version.split()[0]}, 2.5 in the formats {', '.join(FORMATS)}")
for reader, values in seen.items():
    print(f"{reader}: {', '.join(map(str, values))}")
sys.exit(0 if seen == KNOWN else "it has changed")
PYTHON
