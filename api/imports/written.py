"""What is written of a ranking: its lines, and the competitions that gave its points. Pure."""

from collections.abc import Sequence as Items
from datetime import datetime, tzinfo
from typing import Final

from msgspec import Struct

from engine.domain.errors import Unacceptable
from engine.domain.terms import CompetitorId, Sequence
from projections.board.board import Competition, Ranking

LINES_WRITTEN_MAX: Final = 9_999
"""Competitors of a ranking that is written: reports of chess have four digits for each."""


class WrittenLine(Struct, frozen=True, kw_only=True):
    """A competitor. `key`: empty: there is none, or it must not be seen."""

    competitor_id: CompetitorId
    name: str
    key: str
    position: int


class Written(Struct, frozen=True, kw_only=True):
    """`lines`: in the order of the ranking's list. `competitions`: those that a scoring is for, and that count; they
    give all totals. `end`: the event up to which they are; `at`: when that was recorded."""

    name: str
    end: Sequence
    at: datetime
    zone: tzinfo
    ranking: Ranking
    lines: Items[WrittenLine]
    competitions: Items[Competition]


def unwritable(why: str) -> Unacceptable:
    return Unacceptable(f"The standings cannot be written in this form: {why}.")
