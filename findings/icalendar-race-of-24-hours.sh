#!/usr/bin/env bash
# Calendar libraries make a race of 24 hours one of 25, on the night when summer time ends.
#
# Guess: icalendar, ics and vobject add a duration on the wall clock; ical and ical.js know that hours are exact and
# days are nominal (RFC 5545, 3.3.6), and so does node-ical. What happens: none knows both. For a start at 16:00 in
# Berlin, `DURATION:PT24H` must end at 15:00, and `DURATION:P1D` at 16:00. Five libraries end both at 16:00, node-ical
# both at 15:00.
#
# Why it matters to a ranking service: what takes place until when decides which results count. Calendars get an end
# (`DTEND`) with its own zone, never a duration; a race by the clock is computed in UTC.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    icalendar==7.3.2 ical==14.3.1 ics==0.7.3 vobject==0.9.9 tzdata==2026.6
npm install --silent --no-audit --no-fund --prefix "$folder/node" ical.js@2.2.1 node-ical@0.26.1 > "$folder/npm"
"$folder/venv/bin/python" - "$folder" <<'PYTHON'
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from zoneinfo import ZoneInfo

import ics
import vobject
from ical.calendar_stream import IcsCalendarStream
from icalendar import Calendar

BERLIN = ZoneInfo("Europe/Berlin")
EVENT = """BEGIN:VEVENT
UID:{0}
DTSTAMP:20261001T000000Z
DTSTART;TZID=Europe/Berlin:20261024T160000
DURATION:{0}
SUMMARY:{0}
END:VEVENT
"""
TEXT = f"""BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//Races//EN
BEGIN:VTIMEZONE
TZID:Europe/Berlin
BEGIN:DAYLIGHT
TZOFFSETFROM:+0100
TZOFFSETTO:+0200
DTSTART:19700329T020000
RRULE:FREQ=YEARLY;BYMONTH=3;BYDAY=-1SU
END:DAYLIGHT
BEGIN:STANDARD
TZOFFSETFROM:+0200
TZOFFSETTO:+0100
DTSTART:19701025T030000
RRULE:FREQ=YEARLY;BYMONTH=10;BYDAY=-1SU
END:STANDARD
END:VTIMEZONE
{EVENT.format("PT24H")}{EVENT.format("P1D")}END:VCALENDAR
""".replace("\n", "\r\n")
NODE = """
import {readFileSync} from "node:fs";
import ICAL from "ical.js";
import ical from "node-ical";
const text = readFileSync("races.ics", "utf8");
const calendar = new ICAL.Component(ICAL.parse(text));
for (const zone of calendar.getAllSubcomponents("vtimezone")) ICAL.TimezoneService.register(zone);
for (const one of calendar.getAllSubcomponents("vevent")) {
  const event = new ICAL.Event(one);
  console.log(`ical.js 2.2.1|${event.summary}|${event.endDate.toJSDate().toISOString()}`);
}
for (const one of Object.values(ical.sync.parseICS(text)))
  if (one.type === "VEVENT") console.log(`node-ical 0.26.1|${one.summary}|${one.end.toISOString()}`);
"""


def in_berlin(ends: dict[str, datetime]) -> dict[str, str]:
    return {name: f"{end.astimezone(BERLIN):%H:%M}" for name, end in ends.items()}


def python_ends() -> dict[str, dict[str, str]]:
    ends = {
        "icalendar": {str(one["SUMMARY"]): one.end for one in Calendar.from_ical(TEXT).walk("VEVENT")},
        "ical": {one.summary: one.end for one in IcsCalendarStream.calendar_from_ics(TEXT).events},
        "ics": {one.name: one.end.datetime for one in ics.Calendar(TEXT).events},
        "vobject": {
            one.summary.value: one.dtstart.value + one.duration.value
            for one in next(vobject.readComponents(TEXT)).vevent_list
        },
    }
    return {f"{library} {version(library)}": in_berlin(its) for library, its in ends.items()}


def node_ends(folder: Path) -> dict[str, dict[str, str]]:
    (folder / "races.ics").write_bytes(TEXT.encode())
    (folder / "ends.mjs").write_text(NODE)
    said = subprocess.run(["node", "ends.mjs"], cwd=folder, capture_output=True, check=True, text=True).stdout
    ends: dict[str, dict[str, datetime]] = {}
    for line in said.splitlines():
        library, name, end = line.split("|")
        ends.setdefault(library, {})[name] = datetime.fromisoformat(end.replace("Z", "+00:00"))
    return {library: in_berlin(its) for library, its in ends.items()}


start = datetime(2026, 10, 24, 16, tzinfo=BERLIN)
print(f"Python {sys.version.split()[0]}, start {start:%d %B %Y %H:%M} in Berlin")
print(f"24 hours later: {(start.astimezone(UTC) + timedelta(hours=24)).astimezone(BERLIN):%H:%M}, a day later: 16:00")
known = {"PT24H": "16:00", "P1D": "16:00"}
same = True
for library, ends in (python_ends() | node_ends(Path(sys.argv[1], "node"))).items():
    print(f"{library}: PT24H ends at {ends['PT24H']}, P1D at {ends['P1D']}")
    same &= ends == (dict.fromkeys(known, "15:00") if library.startswith("node-ical") else known)
sys.exit(0 if same else "it has changed")
PYTHON
