"""The terms of the domain: ids, closed sets of values, and limits on content.

Pure. Every limit that a decision depends on is here. Limits of transport are next to the code that enforces them.
"""

import re
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Final, Literal, NewType

from msgspec import Meta

TournamentId = NewType("TournamentId", int)
CompetitorId = NewType("CompetitorId", int)
CompetitionId = NewType("CompetitionId", int)
RankingId = NewType("RankingId", int)
UnityId = NewType("UnityId", int)
ActorId = NewType("ActorId", int)
Sequence = NewType("Sequence", int)

OPERATOR: Final = ActorId(0)
"""The actor of commands from the command line; every other actor is the id of a token."""
NOT_PUBLIC: Final = Meta(extra={"private": True})
"""Marks a field of an answer that the public must not see."""
Sender = Annotated[ActorId, NOT_PUBLIC]
"""Who sent a change, in an answer."""

FIRST_TIME: Final = datetime.min.replace(tzinfo=UTC)
"""The earliest time that there is. Its day is a Monday."""


class Sort(StrEnum):
    """Which totals of a unity are better: the lower (`ASC`) or the higher (`DESC`)."""

    ASC = "ASC"
    DESC = "DESC"


class Reversal(StrEnum):
    """Why points were taken back or restored."""

    VOID = "void"
    """Their competition was voided."""
    UNVOID = "unvoid"
    """It counts again."""
    UNDO = "undo"
    """The event that added them was undone."""
    REDO = "redo"
    """It was redone."""
    STRIKE = "strike"
    """Competitors were struck from their competition."""
    UNSTRIKE = "unstrike"
    """It counts for them again."""
    CORRECTION = "correction"
    """A corrected result, or another scoring, gives others instead."""
    EXPIRY = "expiry"
    """They have expired."""

    @property
    def takes_back(self) -> bool:
        return self not in (Reversal.UNVOID, Reversal.REDO, Reversal.UNSTRIKE)


class Counts(StrEnum):
    """How a unity's totals are made: from all points added (`sum`), the best result (`best`) or the last one
    (`last`)."""

    SUM = "sum"
    BEST = "best"
    LAST = "last"

    @property
    def most(self) -> int:
        """What a delta, or a result, is within, either way."""
        return DELTA_MAX if self is Counts.SUM else RESULT_MAX


NAME_CHARACTERS_MAX: Final = 255
DESCRIPTION_CHARACTERS_MAX: Final = 10_000
SLUG_CHARACTERS_MAX: Final = 106
"""A name gives up to 100, and a number that distinguishes tournaments with the same name up to six more."""
TAGS_MAX: Final = 100
PARTICIPANTS_MAX: Final = 10_000
"""Participants that one request names."""
ENROLLED_MAX: Final = 1_000_000
"""Participants of one ranking."""
ITEMS_MAX: Final = 1_000
"""Competitors or competitions that one request creates."""
COMPETITORS_MAX: Final = 1_000_000
COMPETITIONS_MAX: Final = 1_000_000
RANKINGS_MAX: Final = 1_000
"""Competitors, competitions and rankings of one tournament. The first two may exceed their limits by a few if several
are accepted at the same moment."""
EXCESS_MAX: Final = 100_000
"""By how much a log may exceed COMPETITORS_MAX and COMPETITIONS_MAX: one block from each of several processes."""
UNITIES_MAX: Final = 100
"""Unities of one ranking."""
SCORINGS_MAX: Final = 20
"""Scorings of one ranking."""
SCORED_LINES_MAX: Final = 10_000
"""Lines of points that the results of one request give or take back in all rankings."""
RESCORED_LINES_MAX: Final = 100_000
"""Lines of points that change if all results of a ranking are scored again."""
AWARDS_MAX: Final = 100
"""Awards of one scoring."""
SCORING_TABLE_MAX: Final = 1_000
"""Amounts of one table of an award; statuses of an award, words and groups of a scoring."""
CRITERIA_MAX: Final = 20
"""Criteria of one classification."""
BEST_MAX: Final = 1_000
"""Competitions that a criterion with `best` or `drop` names."""
DROPS_MAX: Final = 20
"""Pairs of a `drop`."""
DELTAS_MAX: Final = 10_000
"""Deltas that one request adds."""
REVERSED_LINES_MAX: Final = 100_000
"""Lines of deltas and results that one voiding or striking, or the opposite of either, reverses in one commit."""
UNDONE_MAX: Final = 20_000
"""Events of one ranking whose points are undone at the same time."""
DELTA_MAX: Final = 2_147_483_647
"""A delta is within ±DELTA_MAX, so that no 64-bit total overflows in fewer than 2³² lines of deltas."""
RESULT_MAX: Final = 2**53 - 1
"""A result is within ±RESULT_MAX."""
SCORE_PARTICIPANTS_MAX: Final = 2
"""Up to this many participants, a result is one score. With more, it is a performance for each."""
SET_ASIDE_MAX: Final = 10**18 - 1
"""The last sequence that can be set aside: the view `set_aside` reads 18 digits."""
CUTS_MAX: Final = 64
"""What cuts, medians and limits of tie-breaks go up to."""
ID_MAX: Final = 9_223_372_036_854_775_807
OPERATION_BYTES: Final = 8
"""The first bytes of the fingerprint of a request, which tell its operation and path. Of a request that named an erased
competitor, only these are left."""

TiebreakCode = Literal[
    "BH", "FB", "AOB", "SB", "DE", "WIN", "WON", "BPG", "BWG", "PS", "REP", "STD", "KS", "ARO", "SOS", "SOSOS"
]  # fmt: skip
"""Those of FIDE's regulations, and of Go."""
TiebreakEdition = Literal["2024-08", "2026-03"]
"""The edition of FIDE's tie-break regulations, by when it came into force."""
TiebreakPairing = Literal["swiss", "predetermined"]
Stage = Literal["archived", "deleted"]
"""Of a tournament that cannot be changed."""


# Control characters, and those that reorder the text around them, in tables and terminals too (Unicode Standard Annex
# 9, section 2). White space is what `strip` removes.
_CONTROLS: Final = r"\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069"
_CONTROLS_OF_TEXTS: Final = r"\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069"
_SPACES: Final = r"\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
# The property Default_Ignorable_Code_Point of the Unicode Standard (section 5.21), without controls; then annotations,
# and characters whose glyph is blank.
_UNSEEN: Final = (
    r"\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2060-\u2065\u206a-\u206f\u3164\ufe00-\ufe0f"
    r"\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    r"\ufff9-\ufffb\u2800\U00013441\U00013442\U00016fe4\U0001d159"
)


def _name_pattern(no: str = "") -> str:
    """Of a text that is a name without the white space around it, and has none of the characters `no`."""
    inner, outer = f"[^{no}{_CONTROLS}]", f"[^{no}{_CONTROLS}{_SPACES}]"
    return f"[{_SPACES}]*{outer}(?:{inner}{{0,{NAME_CHARACTERS_MAX - 2}}}{outer})?[{_SPACES}]*"


NAME_PATTERN: Final = _name_pattern()
TAG_PATTERN: Final = _name_pattern(",")
DESCRIPTION_PATTERN: Final = f"[^{_CONTROLS_OF_TEXTS}]*"
COLOR_PATTERN: Final = "[0-9A-Fa-f]{6}"
SLUG_PATTERN: Final = "[a-z0-9]+(?:-[a-z0-9]+)*"


NOT_SEEN: Final = "must contain a character that can be seen"
"""What is wrong with a name that shows nothing, such as U+200B alone."""


def name_fault(text: str) -> str | None:
    """What is wrong with `text` as a name, or None."""
    if _SEEN.search(text) is None:
        return NOT_SEEN if text.strip() else "must not be empty"
    if len(text) > NAME_CHARACTERS_MAX:
        return f"must have at most {NAME_CHARACTERS_MAX} characters"
    return _control_fault(_CONTROL, text)


def description_fault(text: str) -> str | None:
    """What is wrong with `text` as a description, which may contain line breaks and tabs, or None."""
    if len(text) > DESCRIPTION_CHARACTERS_MAX:
        return f"must have at most {DESCRIPTION_CHARACTERS_MAX} characters"
    return _control_fault(_CONTROL_OF_TEXTS, text)


def slug_fault(slug: str) -> str | None:
    """What is wrong with `slug` as the name of a tournament in paths, or None."""
    if not _SLUG.fullmatch(slug):
        return "must be lower-case letters and digits, in words joined by single hyphens"
    if len(slug) > SLUG_CHARACTERS_MAX:
        return f"must have at most {SLUG_CHARACTERS_MAX} characters"
    return None


_SEEN: Final = re.compile(f"[^{_SPACES}{_UNSEEN}]")
_SLUG: Final = re.compile(SLUG_PATTERN)
_SURROGATES: Final = r"\ud800-\udfff"  # no UTF-8 can hold a lone one
_CONTROL: Final = re.compile(f"[{_CONTROLS}{_SURROGATES}]")
_CONTROL_OF_TEXTS: Final = re.compile(f"[{_CONTROLS_OF_TEXTS}{_SURROGATES}]")


def _control_fault(controls: re.Pattern[str], text: str) -> str | None:
    found = controls.search(text)
    return found and f"must not contain the control character U+{ord(found[0]):04X}"
