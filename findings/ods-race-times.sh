#!/usr/bin/env bash
# Readers of OpenDocument tables make other times of a race of 1:05.5, or lose it.
#
# Guess: a cell of the type time holds a duration of its own (`PT00H01M05.5S`), and every reader gives 65.5 seconds.
# What happens: odfdo leaves out the point, and 5.5 seconds become 55: 1:55. It writes 65.5 seconds as 65. pandas reads
# what the cell shows, 01:05.5, as hours: 1:05:30. pyexcel-ods3 gives nothing. SheetJS cuts the half second, and the
# sign of a bonus of ten seconds. A race of 25½ hours is an error for pandas, text for python-calamine, and null for
# polars in a column of times. Only odsslicer has them all.
#
# Why it matters to a ranking service: with odfdo, the runner of 1:06 beats the one of 1:05.5, without a word, and the
# file looks right on every screen. Take the text of `office:time-value`, and parse it in one place; or ask for seconds
# as numbers.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check odfdo==3.27.3 pandas==3.1.1 odfpy==1.4.1 \
    pyexcel-ods3==0.6.1 python-calamine==0.9.1 polars==2.1.0 fastexcel==0.21.0 odsslicer==1.0.1
npm install --silent --no-audit --no-fund --prefix "$folder/node" xlsx@0.18.5 > "$folder/npm" 2>&1
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import json
import subprocess
import sys
from datetime import time, timedelta
from zipfile import ZipFile

import odsslicer
import pandas
import polars
import pyexcel_ods3
import python_calamine
from odfdo import Cell, Document

NAMES = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
    for name in ("office", "table", "text", "manifest")
)
KIND = "application/vnd.oasis.opendocument.spreadsheet"
PARTS = {"content.xml": "text/xml", "styles.xml": "text/xml", "meta.xml": "text/xml"}
SHORT = [("PT00H01M05.5S", "01:05.5"), ("PT00H01M06S", "01:06.0")]
LONG = [*SHORT, ("PT25H30M00S", "25:30:00"), ("-PT00H00M10S", "-00:10.0")]
NODE = """
const {readFile} = require("xlsx");
const sheet = readFile(process.argv[1]).Sheets.Times;
const cells = Object.keys(sheet).filter((name) => /^B[2-9]/.test(name));
console.log(JSON.stringify(cells.map((name) => Math.round(sheet[name].v * 864e5) / 1000)));
"""
KNOWN = {
    "odfdo 3.27.3": ([115.0, 66.0], [115.0, 66.0, 91800.0, -10.0]),
    "pandas 3.1.1": ([3930.0, 3960.0], "DateParseError"),
    "pyexcel-ods3 0.6.1": ([None, 66.0], [None, 66.0, 91800.0, None]),
    "python-calamine 0.9.1": ([65.5, 66.0], [65.5, 66.0, "PT25H30M00S", "-PT00H00M10S"]),
    "polars 2.1.0": ([65.5, 66.0], [65.5, 66.0, None, None]),
    "odsslicer 1.0.1": ([65.5, 66.0], [65.5, 66.0, 91800.0, -10.0]),
    "SheetJS 0.18.5": ([65.0, 66.0], [65.0, 66.0, 91800.0, 10.0]),
}


def write(file: str, times: list[tuple[str, str]]) -> None:
    """As office programs do, with nothing that a reader of values needs not."""
    cell = "<table:table-cell office:value-type={}><text:p>{}</text:p></table:table-cell>"
    lines = [cell.format('"string"', "runner") + cell.format('"string"', "time")]
    for number, (value, shown) in enumerate(times, start=1):
        timed = cell.format(f'"time" office:time-value="{value}"', shown)
        lines.append(cell.format('"string"', f"Runner {number}") + timed)
    rows = "".join(f"<table:table-row>{line}</table:table-row>" for line in lines)
    table = f'<table:table table:name="Times">{rows}</table:table>'
    version = 'office:version="1.3"'
    body = f"<office:body><office:spreadsheet>{table}</office:spreadsheet></office:body>"
    entry = '<manifest:file-entry manifest:full-path="{}" manifest:media-type="{}"/>'
    entries = "".join(entry.format(*part) for part in [("/", KIND), *PARTS.items()])
    with ZipFile(file, "w") as archive:
        archive.writestr("mimetype", KIND)
        archive.writestr("META-INF/manifest.xml", f"<manifest:manifest {NAMES}>{entries}</manifest:manifest>")
        archive.writestr("content.xml", f"<office:document-content {NAMES} {version}>{body}</office:document-content>")
        archive.writestr("styles.xml", f"<office:document-styles {NAMES} {version}/>")
        archive.writestr("meta.xml", f"<office:document-meta {NAMES} {version}><office:meta/></office:document-meta>")


def seconds(value: object) -> object:
    if isinstance(value, time):
        value = timedelta(hours=value.hour, minutes=value.minute, seconds=value.second, microseconds=value.microsecond)
    return value.total_seconds() if isinstance(value, timedelta) else value


def of_pandas(file: str) -> list[object]:
    return pandas.read_excel(file, engine="odf")["time"].tolist()


def of_pyexcel(file: str) -> list[object]:
    return [row[1] if len(row) > 1 else None for row in pyexcel_ods3.get_data(file)["Times"][1:]]


def of_node(file: str) -> list[object]:
    asked = ["node", "-e", NODE, f"../{file}"]
    return json.loads(subprocess.run(asked, cwd="node", capture_output=True, check=True, text=True).stdout)


readers = {
    "odfdo 3.27.3": lambda file: [row[1] for row in Document(file).body.tables[0].get_values()[1:]],
    "pandas 3.1.1": of_pandas,
    "pyexcel-ods3 0.6.1": of_pyexcel,
    "python-calamine 0.9.1": lambda file: [
        row[1] for row in python_calamine.load_workbook(file).get_sheet_by_index(0).to_python()[1:]
    ],
    "polars 2.1.0": lambda file: polars.read_ods(file)["time"].to_list(),
    "odsslicer 1.0.1": lambda file: [row[1].value for row in odsslicer.ODSReader(file).sheets[0][1:, :]],
    "SheetJS 0.18.5": of_node,
}
write("short.ods", SHORT)
write("long.ods", LONG)
print(f"Python {sys.version.split()[0]}; times of 65.5 and 66 seconds; then with 91800 and -10 in the same column")
seen = {}
for name, read in readers.items():
    found = []
    for file in ("short.ods", "long.ods"):
        try:
            found.append([seconds(value) for value in read(file)])
        except Exception as error:
            found.append(type(error).__name__)
    seen[name] = tuple(found)
    print(f"{name}: {found[0]}; {found[1]}")
written = Cell(timedelta(seconds=65.5)).get_attribute("office:time-value")
print(f"odfdo 3.27.3 writes 65.5 seconds as {written}")
sys.exit(0 if seen == KNOWN and written == "PT00H01M05S" else "it has changed")
PYTHON
