#!/usr/bin/env bash
# tiebreak-core counts no wins where a win gives three points.
#
# Guess: `fide2026.wins` counts the rounds with the points of a win (C.07, article 7.1), and takes `draw_points`, so it
# knows of other points than 1-½-0. What happens: it counts rounds with a score of exactly 1.0. With 3-1-0, that is the
# number of draws. Nothing is refused.
#
# Why it matters to a ranking service: a tie-break that silently counts draws as wins orders the table wrongly. Take the
# points of a win from the scoring, and compare other programs only where they know it.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check tiebreak-core==1.2.0
"$folder/venv/bin/python" - <<'PYTHON'
import sys

from tiebreak_core import GameRecord, PlayerTiebreakData, fide2026

print(f"Python {sys.version.split()[0]}, tiebreak-core 1.2.0")
scores = {1: (3.0, 1.0), 2: (0.0, 1.0)}  # player 1 beats player 2, then they draw
players = {}
for player, its in scores.items():
    games = [
        GameRecord(3 - player, 2000, score, "white", number, kind="played") for number, score in enumerate(its, start=1)
    ]
    players[player] = PlayerTiebreakData(player, 2000, sum(its), games)
wins = [fide2026.wins(player, players, 2, "swiss", 1.0) for player in players.values()]
print(f"Wins of the player with a win and a draw, and of the one with a loss and a draw: {wins}")
sys.exit(0 if wins == [1.0, 1.0] else "it has changed")
PYTHON
