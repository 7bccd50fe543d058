"""The criteria of a classification in words."""

from msgspec import UNSET

from engine.domain.notation import WHOLE, Notation
from engine.domain.terms import Sort
from projections.answers.criteria import Criteria, CriterionShape, tiebreak_name, value_notation
from projections.answers.rankings import ListedRanking


def criteria_text(ranking: ListedRanking, criteria: Criteria) -> str:
    """A chain of criteria: "points; goals among the tied". None at all: the main unity alone decides."""
    return "; ".join([criterion_text(ranking, one) for one in criteria]) or "its main unity"


def criterion_text(ranking: ListedRanking, criterion: CriterionShape) -> str:
    """A criterion: "points", "goals among the tied, best 18", "score, reached first", "places, drop 1 from 4", "SB"."""
    name, *others = [ranking.unity(one).name for one in criterion.unities]
    if others:
        return f"{name} {'/' if criterion.per is UNSET else 'per'} {others[0]}"
    if criterion.tiebreak is not None:
        return tiebreak_name(criterion)
    if criterion.first:
        return f"{name}, reached first"
    dropped = [f"drop {number} from {start}" for start, number in criterion.drop]
    among, best = " among the tied" if criterion.among else "", criterion.best and f"best {criterion.best}"
    return ", ".join([f"{name}{among}", *dropped, *([best] if best else [])])


def criterion_notation(ranking: ListedRanking, criterion: CriterionShape) -> Notation:
    """The notation of its values."""
    unity = ranking.unity(criterion.unities[0])
    return WHOLE if criterion.first else value_notation(criterion, unity.notation, Sort(unity.sort))
