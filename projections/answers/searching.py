"""Searches the competitors of a ranking by a part of their name, and counts their tags.

Pure. A search goes through all competitors, so rankings with more than SEARCHED_COMPETITORS_MAX are not searched.
"""

from collections import Counter
from collections.abc import Generator
from typing import Final

from engine.domain.errors import Unacceptable
from engine.domain.terms import CompetitorId
from projections.board.board import Board, Ranking

SEARCHED_COMPETITORS_MAX: Final = 20_000
FOUND_MAX: Final = 1_000
"""Competitors that a search by name finds at most: the first in the order of enrolment."""
TAGS_OFFERED_MAX: Final = 50
"""Tags that can be chosen: the most frequent ones."""
_STEP_COMPETITORS: Final = 500


def is_searched(ranking: Ranking) -> bool:
    return len(ranking.participants) <= SEARCHED_COMPETITORS_MAX


def named(board: Board, ranking: Ranking, text: str) -> Generator[None, None, list[CompetitorId]]:
    """The competitors whose name contains this text, or who have it as a tag, in any case. Raises Unacceptable."""
    found, text = [], text.casefold()
    for place, (competitor_id, competitor) in enumerate(board.competitors.held(_listed(ranking))):
        if place % _STEP_COMPETITORS == 0:
            yield
        if text in competitor.name.casefold() or any(text == tag.casefold() for tag in competitor.tags):
            found.append(competitor_id)
            if len(found) == FOUND_MAX:
                break
    return found


def tags_offered(board: Board, ranking: Ranking) -> Generator[None, None, list[str]]:
    """The most frequent tags of a ranking's competitors, in alphabetical order. Raises Unacceptable."""
    counts: Counter[str] = Counter()
    for place, (_, competitor) in enumerate(board.competitors.held(_listed(ranking))):
        if place % _STEP_COMPETITORS == 0:
            yield
        counts.update(competitor.tags)
    return sorted([tag for tag, _ in counts.most_common(TAGS_OFFERED_MAX)], key=str.casefold)


def _listed(ranking: Ranking) -> list[CompetitorId]:
    if not is_searched(ranking):
        raise Unacceptable(f"Rankings of more than {SEARCHED_COMPETITORS_MAX:,} competitors are not searched.")
    return list(ranking.participants.listed())
