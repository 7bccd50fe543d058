#!/usr/bin/env bash
# SportOrg gives a rogaine of 500 points and one of 300 the first place together, if both took the same time.
#
# Guess: where points are ranked, the one with more of them is ahead, and the time decides among equal points only, as
# the rules of rogaining have it (B29). Who is equal in both shares the place.
# What happens: the list is sorted by points, and then by time. But whether two that follow each other share a place is
# decided by their times alone. So 500 and 300 points in 58:12 are both first, and both get the points of a first place
# in the cup; 200 points are third. Its other list by points, of transmitters found (ARDF), does the same. Equal points
# with other times are kept apart, as they should be.
#
# Why it matters to a ranking service: the exported results (IOF XML 3.0) have the places and the times, and no points,
# so nobody who reads them can see that the first two are no tie. What makes two equal must be all that they are sorted
# by. Ask for the points beside such a file, and compute places from them.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    lxml==6.0.2 orjson==3.11.4 python-dateutil==2.9.0.post0
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps sportorg==1.8.0b1 2> "$folder/said"
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import io
import sys
import xml.etree.ElementTree as ET
from importlib.metadata import version

from sportorg.common.otime import OTime
from sportorg.libs.iof.generator import generate_result_list
from sportorg.models.memory import Group, Person, ResultManual, race
from sportorg.models.result.result_calculation import ResultCalculation
from sportorg.models.result.score_calculation import ScoreCalculation

RESULTS = (("Alder", 500, 3492), ("Birch", 300, 3492), ("Cedar", 200, 3400), ("Durian", 200, 3500))
XML = "{http://www.orienteering.org/datastandard/3.0}"


def places(mode: str) -> list[int]:
    event = race()
    for its in (event.groups, event.persons, event.results):
        its.clear()
    for name, value in (("result_processing_mode", mode), ("scores_mode", "array"), ("scores_array", "10,8,6,4")):
        event.set_setting(name, value)
    group = Group()
    group.name = "Open"
    event.groups.append(group)
    for name, points, seconds in RESULTS:
        person, result = Person(), ResultManual()
        person.surname, person.group, result.person = name, group, person
        result.rogaine_score, result.scores_ardf = points, points // 100
        result.start_time, result.finish_time = OTime(hour=10), OTime(hour=10) + OTime(sec=seconds)
        event.persons.append(person)
        event.results.append(result)
    ResultCalculation(event).process_results()
    ScoreCalculation(event).calculate_scores()
    for result in event.results:
        cup = f"{result.scores} points in the cup"
        print(f"{mode}: {result.person.surname}, {result.get_result()}: place {result.place}, {cup}")
    return [result.place for result in event.results]


def exported() -> str:
    file = io.BytesIO()
    generate_result_list(race(), creator="SportOrg").write(file)
    return file.getvalue().decode()


print(f"Python {sys.version.split()[0]}, SportOrg {version('sportorg')}")
seen = {mode: places(mode) for mode in ("ardf", "scores")}
text = exported()
for result in ET.fromstring(text).iter(f"{XML}Result"):
    print("exported:", ", ".join(f"{name} {result.findtext(XML + name)}" for name in ("Time", "Position", "Status")))
print(f"points in the export: {'Score' in text}")
same = seen == {"ardf": [1, 1, 3, 4], "scores": [1, 1, 3, 4]} and "Score" not in text
sys.exit(0 if same else "it has changed")
PYTHON
