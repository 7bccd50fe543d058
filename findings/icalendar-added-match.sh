#!/usr/bin/env bash
# Calendar libraries lose the first match of a series, or the one that was added, and move what falls on the 31st.
#
# Guess: a match on 3 October with an added date (`RDATE`) on the 6th is two matches in every library, with or without
# a rule that repeats it. What happens: node-ical never lists an added date. ical.js and ical leave out the first match
# where there is no rule (RFC 5545, 3.8.5.2, makes `DTSTART` the first of every series), and ical.js lists a date twice
# that both the rule and `RDATE` name. Found beside it: "monthly from 31 October" goes on with 30 November for
# node-ical, and "yearly from 29 February" with the 28th for node-ical and 1 March for ical.js, though the same RFC
# leaves out what does not exist. recurring-ical-events has all four right.
#
# Why it matters to a ranking service: whoever subscribes to a fixture list sees another list than was published, and a
# count of matches differs by program. Send each match as an event of its own, without rules and added dates.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    ical==14.3.1 icalendar==7.3.2 recurring-ical-events==3.8.2
npm install --silent --no-audit --no-fund --prefix "$folder/node" ical.js@2.2.1 node-ical@0.26.1 > "$folder/npm" 2>&1
"$folder/venv/bin/python" - "$folder" <<'PYTHON'
import json
import subprocess
import sys
from itertools import islice
from pathlib import Path

import recurring_ical_events
from ical.calendar_stream import IcsCalendarStream
from icalendar import Calendar

SERIES = {
    "added": ("20261003", "RDATE:20261006T160000Z"),
    "weekly and added": ("20261003", "RRULE:FREQ=WEEKLY;COUNT=2\nRDATE:20261006T160000Z,20261010T160000Z"),
    "monthly from the 31st": ("20261031", "RRULE:FREQ=MONTHLY;COUNT=3"),
    "yearly from 29 February": ("20280229", "RRULE:FREQ=YEARLY;COUNT=3"),
}
RIGHT = {
    "added": ["2026-10-03", "2026-10-06"],
    "weekly and added": ["2026-10-03", "2026-10-06", "2026-10-10"],
    "monthly from the 31st": ["2026-10-31", "2026-12-31", "2027-01-31"],
    "yearly from 29 February": ["2028-02-29", "2032-02-29", "2036-02-29"],
}
KNOWN = {
    "recurring-ical-events 3.8.2": RIGHT,
    "ical 14.3.1": RIGHT | {"added": ["2026-10-06"]},
    "ical.js 2.2.1": RIGHT
    | {
        "added": ["2026-10-06"],
        "weekly and added": ["2026-10-03", "2026-10-06", "2026-10-10", "2026-10-10"],
        "yearly from 29 February": ["2028-02-29", "2029-03-01", "2030-03-01"],
    },
    "node-ical 0.26.1": {
        "added": ["2026-10-03"],
        "weekly and added": ["2026-10-03", "2026-10-10"],
        "monthly from the 31st": ["2026-10-31", "2026-11-30", "2026-12-30"],
        "yearly from 29 February": ["2028-02-29", "2029-02-28", "2030-02-28"],
    },
}
NODE = """
(async () => {
  const {default: ICAL} = await import("ical.js");
  const {default: ical} = await import("node-ical");
  const of_ical_js = (text) => {
    const days = [];
    const event = new ICAL.Event(new ICAL.Component(ICAL.parse(text)).getFirstSubcomponent("vevent"));
    const iterator = event.iterator();
    for (let at = iterator.next(); at && days.length < 9; at = iterator.next()) days.push(at.toString().slice(0, 10));
    return days;
  };
  const of_node_ical = (text) => {
    const event = Object.values(ical.sync.parseICS(text)).find((part) => part.type === "VEVENT");
    const range = {from: new Date("2026-01-01"), to: new Date("2038-01-01")};
    return ical.expandRecurringEvent(event, range).map((match) => match.start.toISOString().slice(0, 10));
  };
  const texts = Object.entries(JSON.parse(process.argv[1]));
  const all = (read) => Object.fromEntries(texts.map(([name, text]) => [name, read(text)]));
  console.log(JSON.stringify([all(of_ical_js), all(of_node_ical)]));
})();
"""


def calendar(name: str, day: str, series: str) -> str:
    event = f"""BEGIN:VEVENT
UID:{name}
DTSTAMP:20260801T000000Z
DTSTART:{day}T160000Z
DTEND:{day}T180000Z
{series}
SUMMARY:{name}
END:VEVENT"""
    return f"BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:-//Matches//EN\n{event}\nEND:VCALENDAR\n".replace("\n", "\r\n")


def of_recurring(text: str) -> list[str]:
    found = recurring_ical_events.of(Calendar.from_ical(text)).between((2026, 1, 1), (2038, 1, 1))
    return sorted(str(event.start.date()) for event in found)


def of_ical(text: str) -> list[str]:
    timeline = IcsCalendarStream.calendar_from_ics(text).timeline
    return [str(event.start.date()) for event in islice(timeline, 9)]


texts = {name: calendar(name, *series) for name, series in SERIES.items()}
asked = ["node", "-e", NODE, json.dumps(texts)]
node = Path(sys.argv[1], "node")
of_ical_js, of_node_ical = json.loads(
    subprocess.run(asked, cwd=node, capture_output=True, check=True, text=True).stdout
)
seen = {
    "recurring-ical-events 3.8.2": {name: of_recurring(text) for name, text in texts.items()},
    "ical 14.3.1": {name: of_ical(text) for name, text in texts.items()},
    "ical.js 2.2.1": of_ical_js,
    "node-ical 0.26.1": of_node_ical,
}
print(f"Python {sys.version.split()[0]}")
for library, found in seen.items():
    for name, days in found.items():
        print(f"{library}, {name}: {', '.join(days)}{'' if days == RIGHT[name] else '  (wrong)'}")
sys.exit(0 if seen == KNOWN else "it has changed")
PYTHON
