"""Voiding competitions and striking competitors."""

from typing import Final

from api.access.auth import Scope
from api.interface.declarations import Operation, Preview, Write
from api.interface.fields import IDS, Field
from api.interface.rendering import Answer
from api.interface.resources.competitions import CompetitionShape, render_competition
from api.interface.resources.previews import COMPARED
from engine.domain.commands import StrikeCompetitors, UnstrikeCompetitors, UnvoidCompetition, VoidCompetition
from engine.domain.terms import PARTICIPANTS_MAX

_COMPETITION: Final = Answer("competition", CompetitionShape)
_COMPETITORS: Final = Field(
    "competitors",
    IDS,
    f"ids of competitors, in a form separated by commas, at most {PARTICIPANTS_MAX:,}",
    required=True,
)

OPERATIONS: Final[tuple[Operation, ...]] = (
    Write(
        "PUT",
        "competitions/{competition_id}/void.json",
        "Void a competition: all points it gave are taken back",
        operation_id="voidCompetition",
        command=VoidCompetition,
        answer=_COMPETITION,
        render=render_competition,
        scope=Scope.ADMIN,
    ),
    Write(
        "PUT",
        "competitions/{competition_id}/unvoid.json",
        "Make a voided competition count again",
        operation_id="unvoidCompetition",
        command=UnvoidCompetition,
        answer=_COMPETITION,
        render=render_competition,
        scope=Scope.ADMIN,
    ),
    Write(
        "PUT",
        "competitions/{competition_id}/strike.json",
        "Strike competitors from a competition: all points it gave them are taken back",
        operation_id="strikeCompetitors",
        command=StrikeCompetitors,
        answer=_COMPETITION,
        render=render_competition,
        fields=(_COMPETITORS,),
        scope=Scope.ADMIN,
        example={"competitors": [1]},
    ),
    Write(
        "PUT",
        "competitions/{competition_id}/unstrike.json",
        "Make a competition count for struck competitors again",
        operation_id="unstrikeCompetitors",
        command=UnstrikeCompetitors,
        answer=_COMPETITION,
        render=render_competition,
        fields=(_COMPETITORS,),
        scope=Scope.ADMIN,
        example={"competitors": [2]},
    ),
    Preview(
        "competitions/{competition_id}/strike.json",
        "Show what striking competitors would lead to",
        operation_id="previewStrikeCompetitors",
        command=StrikeCompetitors,
        answer=COMPARED,
        fields=(_COMPETITORS,),
        example={"competitors": [1]},
    ),
    Preview(
        "competitions/{competition_id}/unstrike.json",
        "Show what unstriking competitors would lead to",
        operation_id="previewUnstrikeCompetitors",
        command=UnstrikeCompetitors,
        answer=COMPARED,
        fields=(_COMPETITORS,),
        example={"competitors": [2]},
    ),
    Preview(
        "competitions/{competition_id}/void.json",
        "Show what voiding a competition would lead to",
        operation_id="previewVoidCompetition",
        command=VoidCompetition,
        answer=COMPARED,
    ),
    Preview(
        "competitions/{competition_id}/unvoid.json",
        "Show what unvoiding a competition would lead to",
        operation_id="previewUnvoidCompetition",
        command=UnvoidCompetition,
        answer=COMPARED,
    ),
)
