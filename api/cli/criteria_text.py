"""The criteria of a classification in words."""

from engine.domain.notation import WHOLE, Notation
from engine.domain.terms import UnityId
from projections.answers.criteria import Criteria, CriterionShape
from projections.answers.rankings import ListedRanking


def criteria_text(ranking: ListedRanking, criteria: Criteria) -> str:
    """A chain of criteria: "points; goals among the tied". None at all: the main unity alone decides."""
    return "; ".join([criterion_text(ranking, one) for one in criteria]) or "its main unity"


def criterion_text(ranking: ListedRanking, criterion: CriterionShape) -> str:
    """A criterion: "points", "goals among the tied, best 18", "score, reached first"."""
    name, best = ranking.unity(UnityId(criterion.unity)).name, criterion.best
    if criterion.first:
        return f"{name}, reached first"
    return f"{name}{' among the tied' if criterion.among else ''}{'' if best is None else f', best {best}'}"


def criterion_notation(ranking: ListedRanking, criterion: CriterionShape) -> Notation:
    """The notation of its values."""
    return WHOLE if criterion.first else ranking.unity(UnityId(criterion.unity)).notation
