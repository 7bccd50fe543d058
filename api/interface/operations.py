"""Every operation on a tournament over HTTP. Each is declared in the file of its resource."""

from typing import Final

from api.interface.declarations import Action, Operation, Stream
from api.interface.resources import (
    classifications,
    competitions,
    competitor_erasures,
    competitor_exports,
    competitor_standings,
    competitors,
    expiring,
    history,
    leaders,
    points,
    presentation,
    publication,
    rankings,
    recent_results,
    scoring,
    standings,
    stream,
    tokens,
    tournaments,
    voiding,
    webhooks,
)

OPERATIONS: Final[tuple[Operation, ...]] = (
    *points.OPERATIONS,
    *classifications.OPERATIONS,
    *scoring.OPERATIONS,
    *rankings.OPERATIONS,
    *standings.OPERATIONS,
    *recent_results.OPERATIONS,
    *competitor_standings.OPERATIONS,
    *history.OPERATIONS,
    *leaders.OPERATIONS,
    *expiring.OPERATIONS,
    *competitions.OPERATIONS,
    *voiding.OPERATIONS,
    *competitors.OPERATIONS,
    *competitor_erasures.OPERATIONS,
    *competitor_exports.OPERATIONS,
    *publication.OPERATIONS,
    *presentation.OPERATIONS,
    *tournaments.OPERATIONS,
)
"""The router tries them in this order: the most frequent come first."""
STREAMS: Final[tuple[Stream, ...]] = (stream.EVENTS,)
ACTIONS: Final[tuple[Action, ...]] = (
    stream.TICKETS,
    webhooks.TESTS,
    *tournaments.TOURNAMENT_ACTIONS,
    *tokens.TOKEN_ACTIONS,
)
