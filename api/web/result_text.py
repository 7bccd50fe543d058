"""Results in the words of a board. A score stays as it was entered; what has none, such as a forfeit, is told."""

from collections.abc import Mapping
from typing import Final

from api.interface.direction import isolated
from api.web.words import Words
from engine.domain.events import Result
from engine.domain.notation import NONE
from engine.domain.scoring import FORFEIT_OF_BOTH, score_and_word
from engine.domain.terms import CompetitorId
from projections.answers.names import NamesById

_PERFORMANCES_TOLD: Final = 3
_CHANGES_TOLD: Final = 20

_ENDINGS: Final[Mapping[str, str]] = {
    "aet": "ended_extra_time",
    "ot": "ended_extra_time",
    "so": "ended_shootout",
    "pen": "ended_penalties",
    "wo": "ended_walkover",
    "walkover": "ended_walkover",
    "awarded": "ended_awarded",
    "abandoned": "ended_abandoned",
    "bye": "bye",
    FORFEIT_OF_BOTH: "ended_unplayed",
}
"""What words of results say."""


def ended_text(words: Words, result: str) -> str:
    """How it ended, in words; empty: the result says nothing about it."""
    key = _ENDINGS.get(score_and_word(result)[1])
    return "" if key is None else words(key)


def score_text(words: Words, result: str) -> str:
    """What stands between those who met: the result; empty: it has no score, and `ended_text` says all of it."""
    return result if score_and_word(result)[0] or not ended_text(words, result) else ""


def result_text(words: Words, result: str) -> str:
    """The result where it stands alone."""
    return score_text(words, result) or ended_text(words, result)


def performances_text(
    words: Words, names: NamesById, performances: Mapping[CompetitorId, str], before: Result | None = None
) -> str:
    """The first of many performances; after others (`before`), those that changed, from what to what."""
    if isinstance(before, Mapping) and before != performances:
        turns = {one: (before.get(one), performances.get(one)) for one in {**performances, **before}}
        told = {
            one: " \N{RIGHTWARDS ARROW} ".join(result_text(words, its) if its else NONE for its in turn)
            for one, turn in turns.items()
            if turn[0] != turn[1]
        }
        most = _CHANGES_TOLD
    else:
        told, most = {**performances}, _PERFORMANCES_TOLD
    text = ", ".join([f"{isolated(names.competitor(one).name)} {its}" for one, its in [*told.items()][:most]])
    return text + (words("and_more", number=len(told) - most) if len(told) > most else "")
