#!/usr/bin/env bash
# openskill takes most for a defeat from whoever played least of it; a minute more than the rest doubles a win.
#
# Guess: `rate` takes the minutes that each played as `weights`, as the package supports partial play. Half the minutes
# are about half of what a win gives and a defeat takes, and none leave a rating as it is.
# What happens: the weights of each team are moved to 1 for the least and 2 for the most, whatever they are, and a
# defeat is divided by them. With 90, 60 and 30 minutes, a win gives 3.27, 2.45 and 1.63 points, and a defeat takes
# 0.82, 1.09 and 1.63. With 90, 89 and 89, one minute is double the points of a win, and half of a defeat. Who played
# none is rated as in a match without weights. `weight_bounds=None`, which is documented to switch this off, is refused
# by the wheel, which is compiled for two numbers. TrueSkill does as guessed.
#
# Why it matters to a ranking service: a win gives more than a defeat takes, so two teams that beat each other in turn
# both rise, and furthest those who always play to the end: in 20 matches by 23 points, where all began with 25. What a
# package calls a weight may be a performance: try a win and a defeat, with weights of 1 and 0, before relying on it.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check openskill==6.2.0 trueskill==0.4.5
"$folder/venv/bin/python" - <<'PYTHON'
import sys

import trueskill
from openskill.models import PlackettLuce

print(f"Python {sys.version.split()[0]}, openskill 6.2.0, trueskill 0.4.5")


def changes(teams):
    return [[round(player.mu - 25, 2) for player in team] for team in teams]


model, system = PlackettLuce(), trueskill.TrueSkill()
seen = []
for minutes in ([90, 90, 90], [90, 60, 30], [90, 89, 89], [90, 90, 0]):
    teams = [[model.rating() for _ in minutes] for _ in range(2)]
    by_openskill = changes(model.rate(teams, weights=[minutes, minutes]))
    groups = [tuple(system.create_rating() for _ in minutes) for _ in range(2)]
    parts = tuple(minute / 90 for minute in minutes)
    by_trueskill = changes(system.rate(groups, weights=[parts, parts]))
    print(f"{minutes}: openskill won {by_openskill[0]}, lost {by_openskill[1]}")
    print(f"{minutes}: trueskill won {by_trueskill[0]}, lost {by_trueskill[1]}")
    seen.append(by_openskill)
teams = [[model.rating() for _ in range(3)] for _ in range(2)]
for number in range(20):
    teams = model.rate(teams, ranks=[number % 2, 1 - number % 2], weights=[[90, 60, 30]] * 2)
in_turn = changes(teams)
print(f"20 matches of 90, 60 and 30 minutes, won in turn: {in_turn}")
try:
    PlackettLuce(weight_bounds=None)
    refused = False
except TypeError as error:
    print(f"weight_bounds=None: {error}")
    refused = True
expected = [
    [[1.63, 1.63, 1.63], [-1.63, -1.63, -1.63]],
    [[3.27, 2.45, 1.63], [-0.82, -1.09, -1.63]],
    [[3.27, 1.63, 1.63], [-0.82, -1.63, -1.63]],
    [[3.27, 3.27, 1.63], [-0.82, -0.82, -1.63]],
]
expected_in_turn = [[22.96, 12.97, -0.65], [24.83, 14.46, 0.65]]
sys.exit(0 if seen == expected and in_turn == expected_in_turn and refused else "it has changed")
PYTHON
