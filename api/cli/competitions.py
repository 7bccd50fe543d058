"""Commands about competitions."""

from datetime import datetime
from typing import Annotated, Final

from cyclopts import Parameter
from msgspec import UNSET

from api.cli import printing
from api.cli.arguments import THE_COMPETITION, Reading, option, positional, several
from api.cli.asking import asking
from api.cli.names import CompetitorTexts
from api.cli.times import begin
from api.cli.verbs import verb
from api.cli.where import HERE, Json, Slug, Where, desk_at, tournament_at
from api.interface.competition_names import competition_text
from api.interface.fields import FORM_OF_TIMES, INTEGER, FieldMisread, begin_of_time
from api.interface.named_winners import refuse_wrong_winner
from api.interface.names import Names
from engine.domain.commands import AddCompetition, ChangeCompetition, RecordResult
from engine.domain.errors import Fault, Unacceptable
from engine.domain.events import Result
from engine.domain.names import name_key
from engine.domain.state import CompetitionState
from engine.domain.steps import finished
from engine.domain.terms import SCORE_PARTICIPANTS_MAX, CompetitorId
from projections.answers.competition_results import CompetitionResults, CompetitionResultsQuestion
from projections.answers.competitions import CompetitionListQuestion
from projections.answers.view import View, ask

StartedAt = Annotated[datetime | None, Parameter(converter=begin, accepts_keys=False)]
ResultText = Annotated[
    str,
    Parameter(
        help="The score; with more than two participants, a JSON object of performances by id or name: "
        '\'{"Ann": "1:02.3", "Bob": "1:03.0"}\'. Empty: removes it.'
    ),
]


def _result(reading: Reading, text: str) -> Result:
    """The score, or with more than two participants the performances by id. Raises Unacceptable and NotFound."""
    is_score = len(_participants(reading)) <= SCORE_PARTICIPANTS_MAX and not text.startswith("{")
    return text if is_score else finished(reading.names.performances(text))


def _known(reading: Reading) -> CompetitionState | None:
    """The competition that is changed; None: it is new."""
    board, key = reading.view.live.board, reading.given.get("key")
    its_id = board.competitions.by_key(name_key(key)) if key else None
    return board.competitions.get(its_id or reading.fields["competition_id"])


def _participants(reading: Reading) -> tuple[CompetitorId, ...]:
    known = _known(reading)
    return reading.fields.get("participants") or (() if known is None else known.participants)


def _time(_reading: Reading, text: str) -> datetime:
    try:
        return begin_of_time(text)
    except FieldMisread:
        raise Unacceptable("The time cannot be read.", [Fault("started_at", f"must be {FORM_OF_TIMES}")]) from None


def _number(_reading: Reading, text: str) -> int:
    try:
        number: int = INTEGER.read(text)
    except FieldMisread as error:
        raise Unacceptable("The round cannot be read.", [Fault("round", one) for one in error.faults]) from None
    return number


_LOCATION: Final = option("location", about="Where it takes place.")
_GROUP: Final = "Number of the group of competitions that it belongs to, such as a division."
_MORE: Final = (
    option("scale", about="Name of the scoring that it uses."),
    option("round", about="Number of its round. Without one, all competitions of its date are one.", read=_number),
    option("round_name", about="Name of its round."),
    option("key", about="The organiser's own id for it, such as a match number, without a comma."),
)
_WINNER: Final = option(
    "winner",
    "winner_id",
    about="Id or name of the winner. Without it, where results give points, the score decides.",
)
_RESULT: Final = option(
    "result",
    about="The score; with more than two participants, as `competition result` takes it.",
    read=_result,
)

add_competition = verb(
    AddCompetition,
    several("participants", CompetitorTexts),
    option("group", "group_id", int, default=1, about=_GROUP),
    option(
        "started_at",
        kind=StartedAt,
        about="When it starts: yyyy-mm-dd HH:ii:ss, in UTC unless an offset follows. Without it, now.",
    ),
    _LOCATION,
    _RESULT,
    _WINNER,
    *_MORE,
    refuse=refuse_wrong_winner,
    makes="competition_id",
)
change_competition = verb(
    ChangeCompetition,
    THE_COMPETITION,
    option(
        "started_at",
        about="When it starts: yyyy-mm-dd HH:ii:ss, in UTC unless an offset follows. Empty: when it was added.",
        read=_time,
    ),
    _LOCATION,
    option(
        "participant",
        "participants",
        Annotated[list[str] | None, Parameter(negative="")],
        about="Id or name of a participant; can be repeated. Together they replace the former ones.",
    ),
    _RESULT,
    _WINNER,
    option("group", "group_id", int | None, about=_GROUP),
    *_MORE,
    refuse=refuse_wrong_winner,
)
record_competition = verb(
    RecordResult,
    several("participants", CompetitorTexts),
    option("group", "group_id", int | None, about=f"{_GROUP} A new competition needs it."),
    option("started_at", about="When it starts: yyyy-mm-dd HH:ii:ss, in UTC unless an offset follows.", read=_time),
    _LOCATION,
    _RESULT,
    _WINNER,
    *_MORE,
    refuse=refuse_wrong_winner,
    makes="competition_id",
    make=lambda participants, **given: RecordResult(**given, participants=participants or UNSET),
)
record_result = verb(
    ChangeCompetition,
    THE_COMPETITION,
    positional("result", ResultText, read=_result),
    option(
        "winner",
        "winner_id",
        about="Id or name of the winner; empty for none. Without it, the winner follows from the score where results "
        "give points, and otherwise stays.",
    ),
    refuse=refuse_wrong_winner,
)


async def _print_results(view: View, question: CompetitionResultsQuestion, found: CompetitionResults) -> None:
    def name_of(competitor_id: CompetitorId | None) -> str | None:
        return None if competitor_id is None else view.names.competitor(competitor_id).name

    def text(result: Result | None) -> str | None:
        if isinstance(result, dict):
            return ", ".join([f"{name_of(who)} {its}" for who, its in result.items()])
        return result

    lines = [(one.sequence, one.recorded_at, text(one.result), name_of(one.winner_id)) for one in found.results]
    title = competition_text(view.names, view.competition(question.competition_id))
    printing.table(("sequence", "recorded_at", "result", "winner"), lines, title=title)


show_results = asking(CompetitionResultsQuestion, THE_COMPETITION, prints=_print_results)

_OPTIONAL: Final = ("round", "round_name", "scale", "key")
"""Columns that are shown if any competition has a value."""


async def list_competitions(
    slug: Slug,
    /,
    *,
    group: int | None = None,
    round: int | None = None,  # noqa: A002 - its name everywhere
    competitor: str | None = None,
    has_result: bool | None = None,
    json: Json = False,
    where: Where = HERE,
) -> None:
    """
    Parameters
    ----------
    group
        Only competitions of the group with this number.
    round
        Only those of the round with this number.
    competitor
        Only those in which the competitor with this id or name takes part.
    has_result
        Only those with a result, or only those without.
    """
    async with desk_at(where) as desk, tournament_at(desk, slug) as view:
        competitor_id = None if competitor is None else Names(view.live.board).competitor(competitor)
        question = CompetitionListQuestion(
            group_id=group, round=round, competitor_id=competitor_id, has_result=has_result
        )
        found, name_of = await ask(view, question), view.names.competitor
        rows: list[dict[str, object]] = [
            {
                "id": competition_id,
                "group_id": one.group_id,
                "round": one.round,
                "round_name": one.round_name,
                "scale": one.scale,
                "started_at": one.started_at,
                "location": one.location,
                "participants": {str(i): name_of(i).name for i in one.participants},
                "result": one.result,
                "winner": one.winner_id,
                "voided_at": one.voided_at,
                "key": one.key,
            }
            for competition_id, one in found.competitions.items()
        ]
    columns = ("id", "group_id", "started_at", "location", "participants", "result", "winner", "voided_at", *_OPTIONAL)
    shown = [one for one in columns if one not in _OPTIONAL or any(row[one] not in (None, "") for row in rows)]
    printing.rows(rows, shown, as_json=json)
