"""Commands about competitions."""

import json as stdlib_json
from datetime import datetime
from pathlib import Path
from typing import Annotated, Final, Literal

from cyclopts import Parameter

from api.cli import printing
from api.cli.files import read_text
from api.cli.interruptions import interruptible
from api.cli.names import CompetitorTexts, RankingText
from api.cli.progress import progress
from api.cli.times import begin
from api.cli.verbs import THE_COMPETITION, Reading, option, positional, several, verb
from api.cli.where import HERE, Json, Slug, Where, desk_at, tournament_at
from api.imports.competition_files import Reader, Scoring, read
from api.imports.competition_imports import play_competitions
from api.imports.templates import TEMPLATES
from api.interface.fields import FORM_OF_TIMES, FieldMisread, begin_of_time
from api.interface.names import Names
from engine.domain.commands import AddCompetition, ChangeCompetition
from engine.domain.errors import Fault, Unacceptable
from engine.domain.events import Result
from engine.domain.terms import OPERATOR, SCORE_PARTICIPANTS_MAX, CompetitionId
from projections.answers.lookup import competitor_of
from projections.board.board import Board, Competition
from projections.board.selection import CompetitionFilter

StartedAt = Annotated[datetime | None, Parameter(converter=begin, accepts_keys=False)]
ResultText = Annotated[
    str,
    Parameter(
        help="The score; with more than two participants, a JSON object of performances by id or name: "
        '\'{"Ann": "1:02.3", "Bob": "1:03.0"}\'. Empty: there is none any more.'
    ),
]
CompetitionsFile = Annotated[Path, Parameter(help="A CSV file; - means standard input.", allow_leading_hyphen=True)]


def _result(reading: Reading, text: str) -> Result:
    """The score, or with more than two participants the performances by id. Raises Unacceptable and NotFound."""
    found = reading.view.live.board.competitions.get(reading.fields["competition_id"])
    participants = reading.fields.get("participants", () if found is None else found.participants)
    if len(participants) <= SCORE_PARTICIPANTS_MAX:
        return text
    try:
        pairs = stdlib_json.loads(text, object_pairs_hook=tuple)  # keeps a key that is there twice; an array is a list
    except (ValueError, RecursionError):
        pairs = None
    if not isinstance(pairs, tuple) or not all(isinstance(performance, str) for _, performance in pairs):
        raise _misread('must be a JSON object of performances by id or name: {"Ann": "1:02.3", "Bob": "1:03.0"}')
    result = {reading.names.competitor(name): performance for name, performance in pairs}
    if len(result) < len(pairs):
        raise _misread("names a competitor more than once")
    return result


def _time(_reading: Reading, text: str) -> datetime:
    try:
        return begin_of_time(text)
    except FieldMisread:
        raise Unacceptable("The time cannot be read.", [Fault("started_at", f"must be {FORM_OF_TIMES}")]) from None


def _misread(reason: str) -> Unacceptable:
    return Unacceptable("The result cannot be read.", [Fault("result", reason)])


_LOCATION: Final = option("location", about="Where it takes place.")
_WINNER: Final = option("winner", "winner_id", about="Id or name of the participant that won.")
_RESULT: Final = option(
    "result",
    about="The score; with more than two participants, as `competition result` takes it.",
    read=_result,
)

add_competition = verb(
    AddCompetition,
    several("participants", CompetitorTexts),
    option(
        "group",
        "group_id",
        int,
        default=1,
        about="Number of the group of competitions that it belongs to, such as a round.",
    ),
    option(
        "started_at",
        kind=StartedAt,
        about="When it starts: yyyy-mm-dd HH:ii:ss, in UTC unless an offset follows. Without it, now.",
    ),
    _LOCATION,
    _RESULT,
    _WINNER,
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
    _RESULT,
    _WINNER,
)
record_result = verb(
    ChangeCompetition,
    THE_COMPETITION,
    positional("result", ResultText, read=_result),
    option(
        "winner",
        "winner_id",
        about="Id or name of the participant that won. Empty: none did. Without it, the winner stays.",
    ),
)


async def import_competitions(
    slug: Slug,
    ranking: RankingText,
    file: CompetitionsFile,
    /,
    *,
    like: Literal["football", "chess"] | None = None,
    win: str | None = None,
    draw: str | None = None,
    loss: str | None = None,
    goal_difference: str | None = None,
    goals_for: str | None = None,
    goals_against: str | None = None,
    played: str | None = None,
    won: str | None = None,
    drawn: str | None = None,
    lost: str | None = None,
    json: Json = False,
    where: Where = HERE,
) -> None:
    """
    Parameters
    ----------
    like
        The ranking was created --like this: its unities are filled, unless another option says how.
    win
        Points of the main unity for a win, if no column gives them; 3 by default. Where a draw is half a point, create
        the ranking with --decimals 1; then use --win 1 --draw 0.5.
    draw
        Points of the main unity for a draw; 1 by default.
    loss
        Points of the main unity for a loss; 0 by default.
    goal_difference
        Unity, by id or name, that gets the goals scored less those conceded.
    goals_for
        Unity, by id or name, that gets the goals scored.
    goals_against
        Unity, by id or name, that gets the goals conceded.
    played
        Unity, by id or name, that counts competitions with a score.
    won
        Unity, by id or name, that counts those won.
    drawn
        Unity, by id or name, that counts those drawn.
    lost
        Unity, by id or name, that counts those lost.
    """
    options = {
        "win": win,
        "draw": draw,
        "loss": loss,
        "goal_difference": goal_difference,
        "goals_for": goals_for,
        "goals_against": goals_against,
        "played": played,
        "won": won,
        "drawn": drawn,
        "lost": lost,
    }
    given = {name: value for name, value in options.items() if value is not None}
    scoring = Scoring(**((TEMPLATES[like].scoring if like else {}) | given))
    with interruptible("imported anything") as listen:
        async with desk_at(where) as desk, tournament_at(desk, slug) as view:
            ranking_id = Names(view.live.board).ranking(ranking)
            columns, lines = read(read_text(file))
            reader = Reader(view.live.board, ranking_id, columns, scoring)
            stop = listen()
            with progress("importing") as advance:
                imported = await play_competitions(
                    desk, view.live, ranking_id, reader, lines, actor=OPERATOR, stop=stop, progress=advance
                )
    if json:
        printing.json(imported)
    elif imported.imported or not imported.already_imported:
        already = f"; {imported.already_imported} of the file were already" if imported.already_imported else ""
        printing.say(f"{printing.count(imported.imported, 'competition')} imported{already}")
        if imported.imported:
            printing.say(f"to take this import back: tallybook import undo {slug} {imported.name}")
    else:
        printing.say(f"nothing to do: all {imported.already_imported} competitions of the file are imported already")


async def list_competitions(
    slug: Slug,
    /,
    *,
    group: int | None = None,
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
    competitor
        Only those in which the competitor with this id or name takes part.
    has_result
        Only those with a result, or only those without.
    """
    async with desk_at(where) as desk, tournament_at(desk, slug) as view:
        board = view.live.board
        competitor_id = None if competitor is None else Names(board).competitor(competitor)
        if competitor_id is not None:
            competitor_of(board, competitor_id)
        wanted = CompetitionFilter(group_id=group, competitor_id=competitor_id, has_result=has_result)
        rows = [_row(board, i, c) for i, c in board.competitions.items() if wanted.lets_through(c)]
    columns = ("id", "group_id", "started_at", "location", "participants", "result", "winner", "voided_at")
    printing.rows(rows, columns, as_json=json)


def _row(board: Board, competition_id: CompetitionId, competition: Competition) -> dict[str, object]:
    return {
        "id": competition_id,
        "group_id": competition.group_id,
        "started_at": competition.started_at,
        "location": competition.location,
        "participants": {str(i): board.competitors[i].name for i in competition.participants},
        "result": competition.result,
        "winner": competition.winner_id,
        "voided_at": competition.voided_at,
    }
