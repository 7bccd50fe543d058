#!/usr/bin/env bash
# Pairing engines of the FIDE Dutch system let different players rest, or find no pairing where one exists.
#
# Guess: four published engines pair five players alike after two rounds without absences. What happens: gacrux applies
# the regulations of 1 February 2026, whose criterion C5 gives the bye to the lowest score that allows a pairing: 4,
# with half a point. py4swiss pairs Dubov by those regulations, but Dutch by the former ones, which fill the upper
# brackets first: the bye, and its point, goes to 1. pairing-core's `dutch-2026` says that no pairing exists; four do.
#
# Why it matters to a ranking service: a bye is a point, and no opponent for Buchholz. That an engine is called Dutch,
# or 2026, does not say what it pairs: keep the rounds as they were paired, and derive none again with another engine.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    gacrux==1.11.65 networkx==3.6.1 py4swiss==0.3.1 pydantic==2.14.4 pairing-core==0.4.1
cat > "$folder/open.trf" <<'TRF'
012 Open
XXR 5
XXC black1
001    1      Player 1                          2400                             1.0    1     3 b 1     2 w 0
001    2      Player 2                          2300                             1.5    2     4 w =     1 b 1
001    3      Player 3                          2200                             1.0    3     1 w 0  0000 - U
001    4      Player 4                          2100                             0.5    4     2 b =     5 w 0
001    5      Player 5                          2000                             2.0    5  0000 - U     4 b 1
TRF
"$folder/venv/bin/python" - "$folder/open.trf" <<'PYTHON'
import json
import subprocess
import sys
from pathlib import Path

from pairing_core.errors import PairingError
from pairing_core.fide2026 import DUTCH_2026, P26Player, P26Request, pair_2026
from py4swiss.engines import DutchEngine
from py4swiss.trf import TrfParser

file = sys.argv[1]


def of_gacrux() -> list[list[int]]:
    asked = [sys.executable, "-m", "gacrux.pairingchecker", "-i", file, "-p", "-n", "3", "-N", "5", "-m", "dutch"]
    answer = json.loads(subprocess.run([*asked, "-t", "b"], capture_output=True, check=True).stdout)
    print(f"gacrux says it applies the rules of {answer['pairingResult']['rules']}")
    return answer["pairingResult"]["pairs"]


def of_pairing_core() -> list[list[int]] | str:
    players = (
        P26Player(id=1, tpn=1, score=1.0, colors="BW", opponents=(3, 2), prev_float="", last_float="U", played=2),
        P26Player(id=2, tpn=2, score=1.5, colors="WB", opponents=(4, 1), prev_float="", last_float="D", played=2),
        P26Player(
            id=3, tpn=3, score=1.0, colors="Wu", opponents=(1,), last_float="D", played=1, unplayed=1, got_pab=True
        ),
        P26Player(id=4, tpn=4, score=0.5, colors="BW", opponents=(2, 5), prev_float="", last_float="D", played=2),
        P26Player(
            id=5, tpn=5, score=2.0, colors="uB", opponents=(4,), prev_float="D", played=1, unplayed=1, got_pab=True
        ),
    )
    request = P26Request(players=players, ruleset=DUTCH_2026, round_number=3, total_rounds=5, initial_colour="B")
    try:
        found = pair_2026(request)
    except PairingError as error:
        return f"{type(error).__name__}: {error}"
    return [[pair.white_id, pair.black_id] for pair in found.pairs] + [[found.bye_id, 0]]


gacrux = of_gacrux()
py4swiss = [[pair.white, pair.black] for pair in DutchEngine.generate_pairings(TrfParser.parse(Path(file)))]
core = of_pairing_core()
print(f"Python {sys.version.split()[0]}, round 3 (white, black; 0: the bye)")
print(f"gacrux 1.11.65:     {gacrux}")
print(f"py4swiss 0.3.1:     {py4swiss}")
print(f"pairing-core 0.4.1: {core}")
same = [4, 0] in gacrux and [1, 0] in py4swiss and str(core).startswith("ImpossiblePairingError")
sys.exit(0 if same else "it has changed")
PYTHON
