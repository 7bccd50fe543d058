"""Searches the competitors of a ranking by a part of their name, and counts their tags.

Pure. A search goes through all competitors, so rankings with more than SEARCHED_COMPETITORS_MAX are not searched.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from engine.domain.errors import Unacceptable
from engine.domain.names import search_key
from engine.domain.terms import CompetitorId
from projections.board.board import Board, Competitor, Ranking

SEARCHED_COMPETITORS_MAX: Final = 20_000
FOUND_MAX: Final = 1_000
"""Competitors that a search by name finds at most: the first in the order of enrolment."""
TAGS_OFFERED_MAX: Final = 50
"""Tags that can be chosen: the most frequent ones."""


def is_searched(ranking: Ranking) -> bool:
    return len(ranking.participants) <= SEARCHED_COMPETITORS_MAX


def searched(board: Board, ranking: Ranking) -> Iterator[tuple[CompetitorId, Competitor]]:
    """The competitors of a ranking, in the state at the call. Raises Unacceptable."""
    if not is_searched(ranking):
        raise Unacceptable(f"Rankings of more than {SEARCHED_COMPETITORS_MAX:,} competitors are not searched.")
    return board.competitors.held(list(ranking.participants.listed()))


def is_named(competitor: Competitor, key: str) -> bool:
    """Whether the name contains the text of this `search_key`, or a tag is equal to it."""
    return key in search_key(competitor.name) or key in map(search_key, competitor.tags)


def tags_offered(counts: Counter[str]) -> list[str]:
    """The most frequent tags, in alphabetical order."""
    return sorted([tag for tag, _ in counts.most_common(TAGS_OFFERED_MAX)], key=str.casefold)
