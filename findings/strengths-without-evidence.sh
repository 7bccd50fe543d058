#!/usr/bin/env bash
# Models of strength rank teams that never met, and are surest of the team of which they know least.
#
# Guess: for a team that won all its matches, whose strength has no upper bound, a model refuses or says so; two groups
# that never met are refused, or called incomparable. What happens: arenakit refuses the groups. arena-rank, choix and
# rankit rank them in one list, without a warning. For the unbeaten team of three matches, arena-rank gives 4397 ± 0.02,
# where teams that won and lost have 1000 ± 241: at that rating, another match would say nothing, so the interval
# closes. rankit's Keener rating puts the unbeaten team level with two that it beat.
#
# Why it matters to a ranking service: divisions are such groups, newcomers are unbeaten, and an interval looks like
# care. Compare strengths only among teams that matches connect, and mark who has never lost or never won.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check arena-rank==0.1.1 jax==0.8.1 jaxlib==0.8.1 \
    choix==0.4.1 rankit==0.3.3 arenakit==0.1.1 numpy==2.3.3 pandas==3.0.5 scipy==1.17.1
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import csv
import sys

import choix
import numpy
import pandas
from arena_rank.models.bradley_terry import BradleyTerry
from arena_rank.utils.data_utils import PairDataset
from arenakit import Arena, fit_bt, load_battles
from rankit.Ranker import KeenerRanker, MasseyRanker
from rankit.Table import Table

UNBEATEN = ["AB", "AC", "AD", "BC", "CB", "BD", "CD"]  # winner, loser
APART = ["AB", "BA", "AB", "CD", "DC", "CD", "CD"]


def of_arena_rank(games: list[str]) -> dict[str, tuple[float, float]]:
    """The rating of each, and half of its interval."""
    frame = pandas.DataFrame([{"model_a": won, "model_b": lost, "winner": "model_a"} for won, lost in games])
    teams = PairDataset.from_pandas(frame)
    its = BradleyTerry(n_competitors=len(teams.competitors)).compute_ratings_and_cis(teams)
    halves = (numpy.array(its["rating_upper"]) - numpy.array(its["rating_lower"])) / 2
    rated = zip(its["competitors"], its["ratings"], halves, strict=True)
    return {name: (float(rating), float(half)) for name, rating, half in rated}


def order_of_choix(games: list[str]) -> str:
    strengths = choix.mm_pairwise(4, [("ABCD".index(won), "ABCD".index(lost)) for won, lost in games])
    return "".join("ABCD"[index] for index in numpy.argsort(-strengths))


def of_rankit(ranker: object, games: list[str]) -> dict[str, float]:
    frame = pandas.DataFrame([(won, lost, 1, 0) for won, lost in games], columns=["host", "visit", "hscore", "vscore"])
    ranked = ranker.rank(Table(frame, ["host", "visit", "hscore", "vscore"]))
    return {line["name"]: float(line["rating"]) for _, line in ranked.iterrows()}


def order(ratings: dict[str, float]) -> str:
    return "".join(sorted(ratings, key=lambda name: -ratings[name]))


def of_arenakit(games: list[str]) -> str:
    with open("games.csv", "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerows([("model_a", "model_b", "winner"), *((won, lost, "model_a") for won, lost in games)])
    try:
        return str(fit_bt(Arena(load_battles("games.csv")).counts(), ties="half").scores)
    except ValueError as error:
        return f"{type(error).__name__}: {error}"


print(f"Python {sys.version.split()[0]}, arena-rank 0.1.1, choix 0.4.1, rankit 0.3.3, arenakit 0.1.1")
print(f"A won all, D lost all: {' '.join(UNBEATEN)}")
ratings = of_arena_rank(UNBEATEN)
print("arena-rank:", ", ".join(f"{name} {rating:.0f} ± {half:.2f}" for name, (rating, half) in ratings.items()))
keener = of_rankit(KeenerRanker(), UNBEATEN)
print("rankit, Keener:", ", ".join(f"{name} {rating:.3f}" for name, rating in sorted(keener.items())))
print(f"A and B never met C and D: {' '.join(APART)}")
orders = {
    "arena-rank": order({name: rating for name, (rating, _) in of_arena_rank(APART).items()}),
    "choix": order_of_choix(APART),
    "rankit, Massey": order(of_rankit(MasseyRanker(), APART)),
}
for name, teams in orders.items():
    print(f"{name}: {', '.join(teams)}")
refused = of_arenakit(APART)
print(f"arenakit: {refused}")
same = ratings["A"][1] < 0.1 < 100 < ratings["B"][1] and set(orders.values()) == {"CABD"}
same &= round(keener["A"], 3) == round(keener["B"], 3) and refused.startswith("DisconnectedBoardError")
sys.exit(0 if same else "it has changed")
PYTHON
