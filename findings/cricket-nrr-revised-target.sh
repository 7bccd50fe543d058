#!/usr/bin/env bash
# cricket-nrr gives the losing side the better net run rate after rain.
#
# Guess: where the second side had a revised target, the first is credited with that target less one, in the overs that
# the second was allotted, as the playing conditions have it. What happens: it is credited with all the runs of its own
# longer innings, in the second's fewer overs. The revised target is a field of the record that no rate reads.
#
# Why it matters to a ranking service: 250 runs in 50 overs become 250 in 20. The side that lost leads by +4.741, the
# one that won has -4.741, and the difference stays in the sum of the whole season. A ratio needs both of its parts
# revised.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check cricket-nrr==0.1.1
"$folder/venv/bin/python" - <<'PYTHON'
import sys
from datetime import date
from fractions import Fraction

from cricket_nrr import InningsRecord, MatchRecord, Over, Tournament

print(f"Python {sys.version.split()[0]}, cricket-nrr 0.1.1")
first = InningsRecord(250, Over("50.0"), 7, False, Over("50.0"))
second = InningsRecord(150, Over("19.2"), 3, False, Over("20.0"), dls_revised_target=150)
match = MatchRecord(
    "1",
    date(2026, 5, 2),
    "North",
    "South",
    first,
    second,
    "team2",
    dls_affected=True,
    dls_team1_overs_credited=Over("20.0"),
    format="ODI",
)
rates = {}
for line in Tournament([match]).standings():
    rates[line.team] = line.nrr_str()
    innings = f"{line.runs_for} runs in {float(line.overs_for):.2f} overs"
    print(f"{line.team}: {line.points} points, {innings}, {line.nrr_str()}")
credited = float(Fraction(149, 20) - Fraction(150) / Fraction(58, 3))
print(f"North with 149 runs (the target less one) in 20 overs would have {credited:+.3f}")
sys.exit(0 if rates == {"North": "+4.741", "South": "-4.741"} else "it has changed")
PYTHON
