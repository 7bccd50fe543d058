"""Every operation on a tournament over HTTP. Each is declared in the file of its resource."""

from typing import Final

from api.interface import (
    classifications,
    competitions,
    competitor_standings,
    competitors,
    form,
    history,
    points,
    rankings,
    standings,
    voiding,
)
from api.interface.declarations import Operation

OPERATIONS: Final[tuple[Operation, ...]] = (
    *points.OPERATIONS,
    *classifications.OPERATIONS,
    *rankings.OPERATIONS,
    *standings.OPERATIONS,
    *form.OPERATIONS,
    *competitor_standings.OPERATIONS,
    *history.OPERATIONS,
    *competitions.OPERATIONS,
    *voiding.OPERATIONS,
    *competitors.OPERATIONS,
)
"""The router tries them in this order: what is asked for most comes first."""
