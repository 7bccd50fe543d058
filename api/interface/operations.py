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
    publication,
    rankings,
    standings,
    stream,
    tournaments,
    voiding,
)
from api.interface.declarations import Issue, Operation, Stream

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
    *publication.OPERATIONS,
    *tournaments.OPERATIONS,
)
"""The router tries them in this order: the most frequent come first."""
STREAMS: Final[tuple[Stream | Issue, ...]] = (stream.EVENTS, stream.TICKETS)
"""What belongs to streams, which are no answers about a state."""
