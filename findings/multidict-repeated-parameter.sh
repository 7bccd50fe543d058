#!/usr/bin/env bash
# Since multidict 7.1, a query with a parameter sent twice passes as if it were sent once.
#
# Guess: a minor release keeps what is read from a query, and `find(**query)` refuses a repeated parameter, as Python
# refuses an argument given twice. What happens: 7.0 did so. From 7.1 on, iterating over a multidict gives every key
# once (its notes say so), and Python asks `keys()` for the arguments: the first value is taken without a word. Tests
# for repeated names that count keys pass, too, though `len` still counts all. And keys and values are no longer in
# step: `zip` gives a team's name to `points`.
#
# Why it matters to a ranking service: aiohttp hands out queries, forms and headers as multidicts, and a repeated
# parameter is a client's mistake that one layer answers with the first value, another with the last. Read `items()`,
# never `keys()`, and refuse a name that is there twice.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/read.py" <<'PYTHON'
import json
from collections import Counter

from yarl import URL


def find(team: str, points: str) -> str:
    return f"{team} {points}"


query = URL("/results?team=North&team=South&points=3&points=1").query
try:
    found = find(**query)
except TypeError as error:
    found = type(error).__name__
repeated = [name for name, times in Counter(query.keys()).items() if times > 1]
print(json.dumps([len(query), found, repeated, [*zip(query.keys(), query.values(), strict=False)][-2:]]))
PYTHON
for version in 7.0.0 7.2.1; do
    python3 -m venv "$folder/$version"
    "$folder/$version/bin/pip" install --quiet --disable-pip-version-check multidict==$version yarl==1.25.1
    "$folder/$version/bin/python" "$folder/read.py" > "$folder/$version.json"
    MULTIDICT_NO_EXTENSIONS=1 "$folder/$version/bin/python" "$folder/read.py" | cmp - "$folder/$version.json"
done
"$folder/7.2.1/bin/python" - "$folder" <<'PYTHON'
import json
import sys
from pathlib import Path

KNOWN = {
    "7.0.0": [4, "TypeError", ["team", "points"], [["points", "3"], ["points", "1"]]],
    "7.2.1": [4, "North 3", [], [["team", "North"], ["points", "South"]]],
}
seen = {version: json.loads(Path(sys.argv[1], f"{version}.json").read_text()) for version in KNOWN}
print(f"Python {sys.version.split()[0]}, yarl 1.25.1; ?team=North&team=South&points=3&points=1")
for version, (length, found, repeated, last) in seen.items():
    print(f"multidict {version}: {length} items, find(**query): {found}, repeated: {repeated}, last pairs: {last}")
sys.exit(0 if seen == KNOWN else "it has changed")
PYTHON
