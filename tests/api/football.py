"""The football seasons outside of the project, by which standings are checked."""

from pathlib import Path

FOOTBALL = Path(__file__).parents[3] / "shared" / "data" / "football"
SEASONS = sorted(path.name.removesuffix(".expected.csv") for path in FOOTBALL.glob("*.expected.csv"))
SORTS = {"points": "DESC", "goal difference": "DESC", "goals for": "DESC", "goals against": "ASC"}
