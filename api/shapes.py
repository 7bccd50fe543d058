"""The shapes of what goes out over HTTP, field for field as the interface has them.

A field of type `Raw` holds the finished JSON of the shape named beside it, so that pieces are rendered once and put
together many times. Timestamps are `yyyy-mm-dd HH:ii:ss` in UTC.
"""

from msgspec import Raw, Struct

from engine.errors import Fault
from projections.standing import Standing


class Tag(Struct):
    name: str


class Competitor(Struct, kw_only=True):
    id: int
    name: str
    tags: list[Tag]
    color: str
    level: int
    lft: int
    rgt: int
    created_at: str
    updated_at: str


class Participant(Struct, kw_only=True):
    competitor_id: int
    competitor: Raw  # Competitor
    winner: bool
    result: str | None
    created_at: str
    updated_at: str


class Competition(Struct, kw_only=True):
    id: int
    group_id: int
    started_at: str
    location: str
    participants: list[Participant]
    result: str | dict[int, str] | None
    has_result: bool
    created_at: str
    updated_at: str


class ListedUnity(Struct, kw_only=True):
    id: int
    name: str
    position: int
    general: bool
    sort: str


class ListedRanking(Struct, kw_only=True):
    """The list and creation shape."""

    id: int
    name: str
    description: str | None
    closed_at: str | None
    general: bool
    position: str
    unities: list[ListedUnity]
    competitors: Raw  # list of Competitor


class StandingUnity(Struct, kw_only=True):
    name: str
    version: int
    competitors_ranking: list[Standing]
    general: bool


class RankingBeforeUnities(Struct, kw_only=True):
    """The modification shape, which has `unities` (a list of StandingUnity) after these."""

    id: int
    name: str
    description: str | None
    closed_at: str | None
    competitors: Raw  # list of Competitor


class Rankings(Struct):
    ranking: list[ListedRanking]


class Paged(Struct, kw_only=True):
    page: int
    pages: int
    perpage: int
    total: int


class Competitors(Paged, kw_only=True):
    competitor: list[Raw]  # Competitor


class Competitions(Paged, kw_only=True):
    competition: list[Competition]


class Move(Struct, kw_only=True):
    """Positions and totals are null where the competitor is not in the list."""

    competitor_id: int
    name: str
    position_before: int | None
    total_before: int | None
    position_after: int | None
    total_after: int | None


class ComparedUnity(Struct, kw_only=True):
    id: int
    name: str
    moves: list[Move]


class ComparedRanking(Struct, kw_only=True):
    id: int
    name: str
    unities: list[ComparedUnity]


class Problem(Struct, kw_only=True):
    """What every refusal and failure is answered with; `message` says what to do, `errors` lists each fault."""

    status: int
    message: str
    errors: list[Fault] = []
