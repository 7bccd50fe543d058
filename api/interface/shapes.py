"""The shapes of what goes out over HTTP, field for field as the interface has them.

A field of type `Raw` holds finished JSON, of the shape that the name of its type says. So pieces are rendered once and
put together many times. Timestamps are `yyyy-mm-dd HH:ii:ss` in UTC. `openapi.py` describes answers by these shapes.
"""

from typing import Annotated, Final

from msgspec import Meta, Raw, Struct, field

from projections.board.standing import Standing
from projections.past.explanation import Overtaking

SCHEMAS: Final = "#/components/schemas/"
"""Where the description of a shape stands in the OpenAPI document."""
RawCompetitor = Annotated[Raw, Meta(extra_json_schema={"$ref": f"{SCHEMAS}Competitor"})]
RawCompetitors = Annotated[Raw, Meta(extra_json_schema={"type": "array", "items": {"$ref": f"{SCHEMAS}Competitor"}})]


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
    competitor: RawCompetitor
    winner: bool
    result: str | None
    created_at: str
    updated_at: str


class Competition(Struct, kw_only=True):
    """`voided_at` is ours: since when the competition does not count; null: it counts."""

    id: int
    group_id: int
    started_at: str
    location: str
    participants: list[Participant]
    result: str | dict[int, str] | None
    has_result: bool
    created_at: str
    updated_at: str
    voided_at: str | None


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
    competitors: RawCompetitors


class StandingUnity(Struct, kw_only=True):
    name: str
    version: int
    competitors_ranking: list[Standing]
    general: bool


class RankingBeforeUnities(Struct, kw_only=True):
    """The fields of the modification shape before its last, `unities`."""

    id: int
    name: str
    description: str | None
    closed_at: str | None
    competitors: RawCompetitors


class ModifiedRanking(RankingBeforeUnities, kw_only=True):
    """The modification shape."""

    unities: list[StandingUnity]


class PastRanking(ModifiedRanking, kw_only=True):
    """The modification shape as of the event `sequence`."""

    sequence: int
    recorded_at: str


class Rankings(Struct):
    ranking: list[ListedRanking]


class Paged(Struct, kw_only=True):
    page: int
    pages: int
    perpage: int
    total: int


class Competitors(Paged, kw_only=True):
    competitor: list[RawCompetitor]


class Competitions(Paged, kw_only=True):
    competition: list[Competition]


class Move(Struct, kw_only=True):
    """Positions and totals are null if the competitor is not in the list."""

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


class Line(Struct, kw_only=True):
    """A line of history: one delta."""

    sequence: int
    recorded_at: str
    actor: int
    competitor_id: int
    unity_id: int
    competition_id: int | None
    delta: int
    total: int
    position_before: int | None
    position_after: int | None
    reverses: int | None


class Stand(Struct, kw_only=True):
    """Where a competitor stood after an event; before the first one, `sequence` is 0."""

    sequence: int
    recorded_at: str | None
    position: int | None
    total: int


class Step(Struct, kw_only=True):
    """An event that changed something for a competitor. `delta` null: it gave the competitor nothing, others moved."""

    sequence: int
    recorded_at: str
    actor: int
    cause: str
    competition_id: int | None
    reverses: int | None
    delta: int | None
    total: int
    position_before: int | None
    position_after: int | None
    overtakings: list[Overtaking]


class Explanation(Struct, kw_only=True):
    """`next`: what to send as `from` for the rest; null: there is none."""

    competitor_id: int
    unity_id: int
    start: Stand = field(name="from")
    end: Stand = field(name="to")
    steps: list[Step]
    next: int | None
