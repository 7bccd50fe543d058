"""The competitions around the moment that a board shows, as the script of the page takes them."""

from datetime import datetime

from msgspec import Struct

from api.web.page import number_text, signed_text
from engine.domain.notation import Notation
from projections.answers.around import ShownCompetition, Side
from projections.answers.board_table import BoardTable


class SideShape(Struct, frozen=True, gc=False):
    """A participant. `gained`: their points in the unity shown, formatted for people; None: they got none.
    `performance`: their own part of the result."""

    competitor_id: str
    name: str
    won: bool
    gained: str | None
    performance: str | None


class ShownCompetitionShape(Struct, frozen=True, kw_only=True):
    """`result`: the score. `sides`: the participants, or some if there are more than two; `others`: the number of the
    rest."""

    id: str
    started_at: datetime
    location: str
    result: str | None
    sides: list[SideShape]
    others: int


class ShownCompetitionsShape(Struct, frozen=True, kw_only=True):
    """`latest`: the one that gave points last, whatever its date. `results`: newest first; `fixtures`: the next
    first."""

    latest: ShownCompetitionShape | None
    results: list[ShownCompetitionShape]
    fixtures: list[ShownCompetitionShape]


def competitions_shape(table: BoardTable) -> ShownCompetitionsShape:
    shown, notation = table.competitions, table.form_notation
    return ShownCompetitionsShape(
        latest=None if shown.latest is None else _competition(shown.latest, notation),
        results=[_competition(one, notation) for one in shown.results],
        fixtures=[_competition(one, notation) for one in shown.fixtures],
    )


def _competition(shown: ShownCompetition, notation: Notation) -> ShownCompetitionShape:
    competition = shown.competition
    return ShownCompetitionShape(
        id=str(shown.competition_id),
        started_at=competition.started_at,
        location=competition.location,
        result=competition.result if isinstance(competition.result, str) else None,
        sides=[_side(one, notation) for one in shown.sides],
        others=shown.others,
    )


def _side(side: Side, notation: Notation) -> SideShape:
    gained = None if side.gained is None else _gained_text(side.gained, notation)
    return SideShape(str(side.competitor_id), side.name, side.won, gained, side.performance)


def _gained_text(gained: int, notation: Notation) -> str:
    """What a competition gave: points, or a result."""
    return signed_text(gained, notation) if notation.results is None else number_text(gained, notation)
