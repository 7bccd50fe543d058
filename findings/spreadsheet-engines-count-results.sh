#!/usr/bin/env bash
# Engines that compute spreadsheets without Excel count other results than 2:1, and round points per game otherwise.
#
# Guess: `COUNTIF` of the text 2:1 counts that text, and `ROUND(1.005,2)` is 1.01, as in Excel, which rounds the decimal
# that it shows. What happens: formulas counts every result that has a colon, the 1:2 and the 0:0, too; with 1-0 instead
# it is right. BetterOffice, formulas and HyperFormula round the binary number to 1.00, formulon and excelize to 1.01.
#
# Why it matters to a ranking service: a league's workbook holds what was computed last, by whichever program saved it.
# Bring results, and compute wins and points per game from them; what a workbook has computed is no truth to compare
# with.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    xlsxwriter==3.3.1 openpyxl==3.1.5 formulon==0.18.0 betteroffice-xlsx==0.2.1 excelize==0.1.0 formulas==1.3.4
npm install --silent --no-audit --no-fund --prefix "$folder/node" hyperformula@3.5.0 > "$folder/npm" 2>&1
cd "$folder"
TQDM_DISABLE=1 "$folder/venv/bin/python" - <<'PYTHON'
import json
import subprocess
import sys
from pathlib import Path

import betteroffice_xlsx
import excelize
import formulas
import formulon
import xlsxwriter

RESULTS = ("2:1", "2:1", "1:2", "0:0", "1-0", "0-1")
FORMULAS = ('=COUNTIF(A1:A6,"2:1")', '=COUNTIF(A1:A6,"1-0")', "=ROUND(1.005,2)")
KNOWN = {
    "formulon 0.18.0": [2, 1, 1.01],
    "excelize 0.1.0": [2, 1, 1.01],
    "betteroffice-xlsx 0.2.1": [2, 1, 1.0],
    "formulas 1.3.4": [4, 1, 1.0],
    "HyperFormula 3.5.0": [2, 1, 1.0],
}
NODE = """
const {HyperFormula} = require("hyperformula");
const [results, formulas] = JSON.parse(process.argv[1]);
const rows = results.map((result, row) => ["'" + result, formulas[row] ?? null]);
const sheet = HyperFormula.buildFromArray(rows, {licenseKey: "gpl-v3"});
console.log(JSON.stringify(formulas.map((_, row) => sheet.getCellValue({sheet: 0, row, col: 1}))));
"""
with xlsxwriter.Workbook("league.xlsx") as book:
    sheet = book.add_worksheet("League")
    for row, result in enumerate(RESULTS):
        sheet.write_string(row, 0, result)
    for row, formula in enumerate(FORMULAS):
        sheet.write_formula(row, 1, formula)
rows = range(1, len(FORMULAS) + 1)


def of_formulon() -> list[float]:
    with formulon.Workbook.load(Path("league.xlsx").read_bytes()) as book:
        book.recalc()
        return [book.get_value(0, row - 1, 1).to_python() for row in rows]


def of_betteroffice() -> list[float]:
    book = betteroffice_xlsx.Workbook.open_path("league.xlsx")
    book.recalculate()
    return [book["League"][f"B{row}"] for row in rows]


def of_excelize() -> list[float]:
    book = excelize.open_file("league.xlsx")
    return [float(book.calc_cell_value("League", f"B{row}")) for row in rows]


def of_formulas() -> list[float]:
    solved = formulas.ExcelModel().loads("league.xlsx").finish().calculate()
    return [float(solved[f"'[league.xlsx]LEAGUE'!B{row}"].value[0, 0]) for row in rows]


def of_hyperformula() -> list[float]:
    asked = ["node", "-e", NODE, json.dumps([RESULTS, FORMULAS])]
    return json.loads(subprocess.run(asked, cwd="node", capture_output=True, check=True, text=True).stdout)


print(f"Python {sys.version.split()[0]}, results {', '.join(RESULTS)}")
print(f"formulas {', '.join(FORMULAS)}")
answers = (of_formulon(), of_excelize(), of_betteroffice(), of_formulas(), of_hyperformula())
seen = dict(zip(KNOWN, answers, strict=True))
for engine, values in seen.items():
    print(f"{engine}: {', '.join(f'{value:g}' for value in values)}")
sys.exit(0 if seen == KNOWN else "it has changed")
PYTHON
