"""Commands to run in tests, and what they print."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin

from cyclopts import ArgumentCollection

from api.cli.main import app
from api.desk.desk import Desk
from engine.domain.commands import AddPoints, CreateRanking, RegisterCompetitor
from engine.domain.events import Delta
from engine.domain.terms import OPERATOR, CompetitorId, RankingId, UnityId
from engine.log import registry
from tests.api.cli.conftest import commands

FINAL_TABLE = [("Harbour", 13), ("Station", 11), ("Mill Lane", 9), ("Meadow", 6), ("Northgate", 5), ("Old Bridge", 5)]


async def ranked(desk: Desk, slug: str, *, name: str = "Season", competitors: tuple[str, ...] = ("Ann", "Bob")) -> str:
    """The id of a new ranking in which the first of new competitors has 3 points, the second 2, and so on."""
    async with desk.database.connection() as connection:
        tournament_id = await registry.tournament_named(connection, slug)
        unity_id, ranking_id, *ids = await registry.next_ids(connection, 2 + len(competitors))
    assert tournament_id is not None
    commands = [
        *(RegisterCompetitor(competitor_id=CompetitorId(i), name=n) for i, n in zip(ids, competitors, strict=True)),
        CreateRanking(
            ranking_id=RankingId(ranking_id),
            main_unity_id=UnityId(unity_id),
            name=name,
            main_unity_name="points",
            participants=tuple(CompetitorId(i) for i in ids),
        ),
        AddPoints(
            ranking_id=RankingId(ranking_id),
            deltas=tuple(Delta(CompetitorId(i), UnityId(unity_id), 3 - n) for n, i in enumerate(ids)),
        ),
    ]
    async with desk.live_pool.pinned(tournament_id) as live:
        for command in commands:
            await desk.submit(live, command, actor=OPERATOR)
    return str(ranking_id)


ARGUMENTS: Final = {words: command.assemble_argument_collection() for words, command in commands(app).items()}
"""Those of every command. To collect them takes most of a second."""


def _required(words: str, arguments: ArgumentCollection) -> Iterator[str]:
    """A value for each argument without which the command is not taken, made up from its type; and one of the options
    of which it takes just one."""
    yield from ["--next"] if words.endswith("reveal") else []
    yield from ["--listed"] if words.endswith("present") else []
    for argument in arguments:
        if argument.required:
            if argument.name.startswith("--"):
                yield argument.name
            yield _value(argument.hint)


def _value(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return str(get_args(hint)[0])
    return {str: "cup", int: "1", Path: "file.svg", datetime: "2999-01-01"}[hint]


COMMANDS: Final = {words: [*words.split(), *_required(words, its)] for words, its in ARGUMENTS.items()}
"""Every command, with arguments that it takes."""
