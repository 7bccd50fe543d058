#!/usr/bin/env bash
# pandas ranks a column of whole numbers otherwise once a column of floats stands in the same frame.
#
# Guess: `rank` of 64-bit whole numbers is exact, whichever columns the frame has. What happens: `DataFrame.rank` makes
# one array of all columns, so floats turn the whole numbers into floats, too, and those above 2^53 that differ by one
# share a rank. The same column is exact as a Series, and in a frame without floats. Bottleneck's `rankdata` always does
# it; SciPy's does not.
#
# Why it matters to a ranking service: score and tie-break packed into one whole number, or points in micro-units, reach
# 2^53 early. An analyst's column of percentages then makes two places one. Rank columns one by one.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    pandas==3.1.1 numpy==2.4.6 scipy==1.17.1 bottleneck==1.6.0
"$folder/venv/bin/python" - <<'PYTHON'
import sys

import bottleneck
import numpy
import pandas
import scipy
from scipy.stats import rankdata

print(f"Python {sys.version.split()[0]}, pandas {pandas.__version__}, NumPy {numpy.__version__}")
print(f"SciPy {scipy.__version__}, Bottleneck {bottleneck.__version__}")
points = [2**53, 2**53 + 1, 2**53 + 2]
exact = [1.0, 2.0, 3.0]
shared = [1.5, 1.5, 3.0]
ranks = {
    "pandas, alone": (pandas.DataFrame({"points": points}).rank()["points"], exact),
    "pandas, as a Series": (pandas.Series(points).rank(), exact),
    "pandas, beside floats": (pandas.DataFrame({"points": points, "share": [0.5, 0.2, 0.3]}).rank()["points"], shared),
    "SciPy": (rankdata(numpy.array(points)), exact),
    "Bottleneck": (bottleneck.rankdata(numpy.array(points)), shared),
}
for name, (seen, _) in ranks.items():
    print(f"{name}: {seen.tolist()}")
sys.exit(0 if all(seen.tolist() == known for seen, known in ranks.values()) else "it has changed")
PYTHON
