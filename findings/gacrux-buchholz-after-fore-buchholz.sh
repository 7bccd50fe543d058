#!/usr/bin/env bash
# gacrux computes another Buchholz if Fore Buchholz was asked for before it.
#
# Guess: tie-breaks of one list are computed independently, so BH has the same values after FB as alone. What happens:
# for FB, a player who was paired in the last round was present until then, so an earlier requested bye no longer counts
# as a draw for opponents. gacrux keeps that mark, and BH of the opponents is lower by half a point.
#
# Why it matters to a ranking service: the order of tie-breaks is a rule of the tournament, and the same file is ranked
# otherwise by the list PTS FB BH than by PTS BH. Compute each tie-break by itself, as an oracle, too.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check gacrux==1.11.65 networkx==3.6.1
cat > "$folder/open.trf" <<'TRF'
012 Open
042 2026/05/05
142 3
162  W 1.0    D 0.5    L 0.0    A 0.0    P 1.0    X 0.5
001    1 m    Player 1                          2000                             1.0    1  0002 w 1  0000 - Z  0003 w -
001    2 m    Player 2                          2000                             2.0    2  0001 b 0  0003 w 1  0004 b 1
001    3 m    Player 3                          2000                             2.0    3  0004 w 1  0002 b 0  0001 b +
001    4 m    Player 4                          2000                             1.0    4  0003 b 0  0000 - U  0002 w 0
TRF
"$folder/venv/bin/python" - "$folder/open.trf" <<'PYTHON'
import json
import subprocess
import sys


def buchholz(*names: str) -> list[str]:
    asked = [sys.executable, "-m", "gacrux.tiebreakchecker", "-i", sys.argv[1], "-s", "-t", "PTS", *names]
    answer = json.loads(subprocess.run(asked, capture_output=True, check=True).stdout)
    lines = answer["tiebreakResult"]["competitors"]
    return [str(line["tiebreakScore"][-1]) for line in sorted(lines, key=lambda line: line["cid"])]


print(f"Python {sys.version.split()[0]}, gacrux 1.11.65")
alone, after = buchholz("BH"), buchholz("FB", "BH")
print(f"Buchholz of players 1 to 4: {', '.join(alone)}; after Fore Buchholz: {', '.join(after)}")
sys.exit(0 if alone != after else "it has changed")
PYTHON
