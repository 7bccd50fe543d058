"""Scorings in words."""

from collections.abc import Iterable

from engine.domain.awards import Award, Scoring
from engine.domain.notation import Notation
from projections.answers.rankings import ListedRanking

AWARD_COLUMNS = ("for", "unity", "from", "gives")


def award_rows(ranking: ListedRanking, scorings: Iterable[Scoring]) -> list[tuple[str, str, str, str]]:
    """A row for each award: which competitions its scoring is for, the unity, what is read, and what that gives."""
    return [
        (_for(scoring), unity.name, award.value, _gives(award, unity.notation))
        for scoring in scorings
        for award in scoring.awards
        for unity in [ranking.unity(award.unity_id)]
    ]


def _for(scoring: Scoring) -> str:
    groups = f"group {', '.join(map(str, scoring.groups))}" if scoring.groups else ""
    return " and ".join(filter(None, [scoring.name and f"scale {scoring.name}", groups])) or "all"


def _gives(award: Award, notation: Notation) -> str:
    """What an award gives, such as "3 for win, 1 for draw", or "25 18 15 by place; nothing for DNF"."""
    if isinstance(award.table, dict):
        gives = ", ".join([f"{notation.text(amount)} for {key}" for key, amount in award.table.items()])
    elif award.table is not None:
        gives = f"{' '.join(map(notation.text, award.table))} by place"
    else:
        counted = award.value if award.value != "outcome" else " or ".join(award.outcomes) or "any outcome"
        gives = counted if award.factor == 1 else f"{award.factor} \N{MULTIPLICATION SIGN} {counted}"
    statuses = [
        f"{'nothing' if given is None else given if isinstance(given, str) else notation.text(given)} for {status}"
        for status, given in award.statuses.items()
    ]
    shared = ["the mean of shared places"] if award.ties == "mean" else []
    return "; ".join([gives, *filter(None, [", ".join(statuses)]), *shared])
