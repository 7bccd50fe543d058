#!/usr/bin/env bash
# football-tournament's `head_to_head` lets the order in which teams are passed decide among three.
#
# Guess: among three teams with equal points, the criterion makes a small table of all their matches; where that is
# equal, too, the next criterion, here goal difference, decides. What happens: it compares two teams at a time. Where A
# beat B, B beat C and C beat A, that is no order at all, and sorting by it returns what its algorithm happens to leave.
# Goal difference is never asked. Each of the three becomes the champion, for the same results.
#
# Why it matters to a ranking service: a criterion that compares pairs is no key to sort by. Compute the value of a
# group of equals from the whole group, and test the same results in every order of teams. Needs Python 3.12 or newer.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check football-tournament==0.2.0 pydantic==2.14.4
"$folder/venv/bin/python" - <<'PYTHON'
import sys
from itertools import permutations

from football_tournament.models.match import Match
from football_tournament.models.team import Team
from football_tournament.standings import StandingsCalculator

print(f"Python {sys.version.split()[0]}, football-tournament 0.2.0; A-B 9:0, B-C 1:0, C-A 1:0")
teams = {name: Team(name=name) for name in "ABC"}
matches = []
for home, away, goals in (("A", "B", 9), ("B", "C", 1), ("C", "A", 1)):
    match = Match(tournament_id="1", home_team=teams[home], away_team=teams[away], round_number=1)
    match.set_result(goals, 0)
    matches.append(match)
calculator = StandingsCalculator(tiebreakers=["points", "head_to_head", "goal_difference"])
champions = set()
for names in permutations("ABC"):
    table = calculator.calculate(matches, [teams[name] for name in names])
    champions.add(table[0].team.name)
    order = ", ".join(f"{line.team.name} {line.goal_difference:+}" for line in table)
    print(f"teams passed as {''.join(names)}: {order}")
sys.exit(0 if champions == {"A", "B", "C"} else "it has changed")
PYTHON
