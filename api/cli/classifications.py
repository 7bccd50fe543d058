"""Commands about the classification of a ranking."""

import re
from datetime import datetime
from typing import Final

from rich.table import Table
from rich.text import Text

from api.cli import printing
from api.cli.explanation_text import criterion_text
from api.cli.names import Names, RankingText
from api.cli.past import PastSequence, PastTime, moment_of
from api.cli.times import time_text
from api.cli.where import HERE, Json, Slug, Where, desk_at, tournament_at
from api.interface.classifications import classification_shape, classified_lines
from api.interface.lookup import ranking_of
from engine.domain.commands import DeclareClassification
from engine.domain.errors import Unacceptable
from engine.domain.events import Criterion
from engine.domain.terms import OPERATOR, RankingId
from engine.process.turns import in_turns
from projections.board.board import Board
from projections.board.classification import Classified, in_force
from projections.past.past import Past


async def show_classification(
    slug: Slug,
    ranking: RankingText,
    /,
    *,
    at_sequence: PastSequence = None,
    at_time: PastTime = None,
    json: Json = False,
    where: Where = HERE,
) -> None:
    """
    Parameters
    ----------
    at_sequence
        As it was after the event with this sequence.
    at_time
        As it was at this time in UTC: yyyy-mm-dd HH:ii:ss.
    """
    moment = moment_of(at_sequence, at_time)
    async with desk_at(where) as desk, tournament_at(desk, slug) as live:
        past, sequence, board = Past(desk.database), live.head.sequence, live.board
        ranking_id = Names(board).ranking(ranking)
        ranking_of(board, ranking_id)
        if moment is None:
            recorded_at: datetime = await past.recorded_at(live.tournament_id, sequence)
        else:
            then = await past.at(live.tournament_id, ranking_id, moment, sequence)
            board, sequence, recorded_at = then.board, then.sequence, then.recorded_at
        lines = await classified_lines(board, ranking_id)
        classified = await in_turns(lines.run(0, len(lines)))
    if json:
        printing.json(classification_shape(board, ranking_id, sequence, recorded_at, len(lines), classified))
        return
    if moment is not None:
        printing.say(f"After event {sequence}, recorded at {time_text(recorded_at)} UTC:")
    _print(board, ranking_id, classified)


def _print(board: Board, ranking_id: RankingId, classified: list[Classified]) -> None:
    ranking = board.rankings[ranking_id]
    names = [criterion_text(ranking, criterion) for criterion in in_force(ranking)]
    table = Table("position", "competitor", *names, "decided by", title=Text(ranking.name))
    for line in classified:
        decided_by = "" if line.decided_by is None else names[line.decided_by]
        name = board.competitors[line.competitor_id].name
        table.add_row(
            *(str(line.position), printing.cell(name), *map(printing.cell, line.values), printing.cell(decided_by))
        )
    printing.data().print(table, markup=False)


async def declare_classification(slug: Slug, ranking: RankingText, /, *criteria: str, where: Where = HERE) -> None:
    """
    Parameters
    ----------
    criteria
        The criteria, the first decides first: a unity's name or id each, with :best=N or :among=tied behind it if only
        the best so many competitions count, or only what the tied got among themselves. None at all takes the
        declaration back.
    """
    async with desk_at(where) as desk, tournament_at(desk, slug) as live:
        names = Names(live.board)
        ranking_id = names.ranking(ranking)
        chain = tuple([_criterion(names, ranking_id, text) for text in criteria])
        await desk.submit(live, DeclareClassification(ranking_id=ranking_id, criteria=chain), actor=OPERATOR)
        said = [criterion_text(live.board.rankings[ranking_id], criterion) for criterion in chain]
    printing.say(f"ranking {ranking_id} is classified by {'; '.join(said) or 'its main unity'}")


_BEHIND: Final = re.compile(r":(?:best=([0-9]{1,9})|among=(tied))\Z")


def _criterion(names: Names, ranking_id: RankingId, text: str) -> Criterion:
    """Raises Unacceptable and NotFound."""
    name, best, among = text, None, None
    while found := _BEHIND.search(name):
        name = name[: found.start()]
        if (found[1] and best) or (found[2] and among):
            raise Unacceptable(f"The criterion {text!r} says the same thing twice.")
        best, among = found[1] or best, found[2] or among
    return Criterion(
        unity_id=names.unity(ranking_id, name),
        best=None if best is None else int(best),
        among="tied" if among else None,
    )
