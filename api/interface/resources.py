"""One ranking, competitor or competition as it is now, with the ETag that a conditional change of it names.

A ranking has the list and creation shape: all that a change of it needs, and nothing that points change. So a client
can keep it while points are added. `standings.json` has its standings.
"""

import hashlib
from collections.abc import Callable
from typing import Final

from api.desk.conditions import own_tag
from api.http.outgoing import Later, Long
from api.interface import answers
from api.interface.answers import Listing
from api.interface.known import competition_of, competitor_of, ranking_of
from engine.domain.terms import CompetitionId, CompetitorId, RankingId
from projections.board.board import Competition, Competitor, Ranking
from projections.live.live import Live

DIGEST_CHARACTERS: Final = 16
"""Hexadecimal digits of the digest in an ETag: 64 bits tell apart the bodies of a resource whose own state is the
same."""


def ranking(live: Live, ranking_id: RankingId) -> Listing | Later:
    """Raises NotFound."""
    found = ranking_of(live, ranking_id)
    stamp = live.revisions.competitors, live.revisions.rankings
    return _shown(live, ("ranking", ranking_id), stamp, found, lambda: answers.one_ranking(live, "ok", ranking_id))


def competitor(live: Live, competitor_id: CompetitorId) -> Listing | Later:
    """Raises NotFound."""
    found = competitor_of(live, competitor_id)
    stamp = live.revisions.competitors
    key = "competitor", competitor_id
    return _shown(live, key, stamp, found, lambda: answers.one_competitor(live, "ok", competitor_id))


def competition(live: Live, competition_id: CompetitionId) -> Listing | Later:
    """Raises NotFound."""
    found = competition_of(live, competition_id)
    stamp = live.revisions.competitors, live.revisions.competitions
    key = "competition", competition_id
    return _shown(live, key, stamp, found, lambda: answers.one_competition(live, "ok", competition_id))


def _shown(
    live: Live,
    key: tuple[str, int],
    stamp: object,
    found: Competitor | Competition | Ranking,
    make: Callable[[], bytes | Later],
) -> Listing | Later:
    """What `make` makes, with its ETag; kept if it is short. A long one may begin later: its own tag is never newer
    than what it shows."""

    def render() -> Listing | Later:
        made = make()
        if isinstance(made, bytes):
            return Listing(made, _etag(found, hashlib.sha256(made).hexdigest()))
        return lambda: _tagged(made(), found)

    return live.rendered(key, stamp, render, lambda kept: len(kept.body) if isinstance(kept, Listing) else 0)


def _tagged(long: Long, found: Competitor | Competition | Ranking) -> Long:
    return long.with_etag(_etag(found, long.etag))


def _etag(found: Competitor | Competition | Ranking, digest: str) -> str:
    return f"{own_tag(found)}-{digest[:DIGEST_CHARACTERS]}"
