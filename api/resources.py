"""One ranking, competitor or competition, as it is now, with the ETag that a conditional change of it names.

A ranking has the list and creation shape: all that a change of it needs, and nothing that points change, so it can be
kept while they are added. Its standings are to be had at `standings.json`.
"""

import hashlib
from typing import Final

from api import answers
from api.answers import Listing
from api.conditions import own_tag
from api.known import competition_of, competitor_of, ranking_of
from engine.terms import CompetitionId, CompetitorId, RankingId
from projections.board import Competition, Competitor, Ranking
from projections.live import Live

DIGEST_CHARACTERS: Final = 16
"""Of the digest in an ETag: 64 bits tell the bodies apart that a resource has in one state of its own."""


def ranking(live: Live, ranking_id: RankingId) -> Listing:
    """Raises NotFound."""
    found = ranking_of(live, ranking_id)
    stamp = live.revisions.competitors, live.revisions.rankings
    return live.rendered(("ranking", ranking_id), stamp, lambda: _tagged(found, answers.ranking(live, ranking_id)))


def competitor(live: Live, competitor_id: CompetitorId) -> Listing:
    """Raises NotFound."""
    return _tagged(competitor_of(live, competitor_id), answers.competitor(live, competitor_id))


def competition(live: Live, competition_id: CompetitionId) -> Listing:
    """Raises NotFound."""
    found = competition_of(live, competition_id)
    stamp = live.revisions.competitors, live.revisions.competitions
    return live.rendered(
        ("competition", competition_id), stamp, lambda: _tagged(found, answers.competition(live, competition_id))
    )


def _tagged(resource: Competitor | Competition | Ranking, body: bytes) -> Listing:
    digest = hashlib.sha256(body).hexdigest()[:DIGEST_CHARACTERS]
    return Listing(body, f"{own_tag(resource)}-{digest}")
