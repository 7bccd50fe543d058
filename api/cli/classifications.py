"""Commands about the classification of a ranking."""

import re
from collections.abc import Iterable
from typing import Annotated, Final

from cyclopts import Parameter

from api.cli import printing
from api.cli.criteria_text import criteria_text, criterion_notation, criterion_text
from api.cli.lines import (
    AroundText,
    On,
    SinceOn,
    SinceSequence,
    SinceTime,
    TagText,
    TopLines,
    sequence_of,
    window_of,
)
from api.cli.names import RankingText
from api.cli.past import PastSequence, PastTime
from api.cli.standings_text import columns_of_place, place, say_moment, text_or_none
from api.cli.verbs import THE_RANKING, Done, several, verb
from api.cli.where import HERE, Json, Slug, Where, desk_at, tournament_at
from api.interface.names import Names
from api.interface.shapes import shaped
from engine.domain.commands import DeclareClassification
from engine.domain.errors import Unacceptable
from engine.domain.events import Criterion
from engine.domain.terms import RankingId
from projections.answers.classification import Classification, ClassificationQuestion
from projections.answers.criteria import criteria_shape
from projections.answers.lookup import ranking_of
from projections.answers.names import NamesById
from projections.answers.rankings import ListedRanking
from projections.answers.tables import TableQuestion
from projections.answers.view import ask

CriterionTexts = Annotated[
    str,
    Parameter(
        help="The criteria, in the order in which they decide. Each is a unity's name or id, followed by :best=N if "
        "only the N best competitions count, by :among=tied if only points among the tied count, or by :first if the "
        "competitor who reached that total first is ahead. Without any, the declaration is removed."
    ),
]


async def show_classification(
    slug: Slug,
    ranking: RankingText,
    /,
    *,
    tag: TagText = None,
    top: TopLines = None,
    around: AroundText = None,
    at_sequence: PastSequence = None,
    at_time: PastTime = None,
    on: On = None,
    since: SinceSequence = None,
    since_time: SinceTime = None,
    since_on: SinceOn = None,
    json: Json = False,
    where: Where = HERE,
) -> None:
    """
    Parameters
    ----------
    at_sequence
        As it was after the event with this sequence.
    at_time
        As it was at this time: yyyy-mm-dd HH:ii:ss, in UTC unless an offset follows.
    """
    async with desk_at(where) as desk, tournament_at(desk, slug) as view:
        names = Names(view.live.board)
        ranking_id = names.ranking(ranking)
        ranking_of(view.live.board, ranking_id)
        question = ClassificationQuestion(
            ranking_id=ranking_id,
            tag=tag,
            at_sequence=sequence_of(at_sequence),
            at_time=at_time,
            on=on,
            since=sequence_of(since),
            since_time=since_time,
            since_on=since_on,
            **window_of(names, top, around),
        )
        found = await ask(view, question)
        if json:
            printing.json(shaped(found))
            return
        known = await view.names_after(found.sequence)
    say_moment(question, found)
    _print(known.listed(ranking_id), known, question, found)


def _print(ranking: ListedRanking, names: NamesById, question: TableQuestion, found: Classification) -> None:
    """`ranking`: as of the moment that is shown."""
    criteria = [criterion_text(ranking, one) for one in found.criteria]
    notations = [criterion_notation(ranking, one) for one in found.criteria]
    lines = [
        [
            *place(line),
            names.competitor(line.competitor_id).name,
            *[text_or_none(one, value) for one, value in zip(notations, line.values, strict=True)],
            None if line.decided_by is None else criteria[line.decided_by],
        ]
        for line in found.standings
    ]
    printing.table([*columns_of_place(question), "competitor", *criteria, "decided by"], lines, title=ranking.name)


def _classified(done: Done) -> str:
    ranking = done.view.ranking(done.command.ranking_id)
    return f"ranking {ranking.id} is classified by {criteria_text(ranking, criteria_shape(done.command.criteria))}"


declare_classification = verb(
    DeclareClassification,
    THE_RANKING,
    several(
        "criteria",
        CriterionTexts,
        read=lambda reading, texts: criteria_of(reading.names, reading.fields["ranking_id"], texts),
    ),
    says=_classified,
)


_BEHIND: Final = re.compile(r":(?:best=([0-9]{1,9})|among=(tied)|(first))\Z")


def criteria_of(names: Names, ranking_id: RankingId, texts: Iterable[str]) -> tuple[Criterion, ...]:
    """The criteria that `classification declare` is given. Raises Unacceptable and NotFound."""
    return tuple([_criterion(names, ranking_id, text) for text in texts])


def _criterion(names: Names, ranking_id: RankingId, text: str) -> Criterion:
    """Raises Unacceptable and NotFound."""
    name, best, among, first = text, None, None, None
    while found := _BEHIND.search(name):
        name = name[: found.start()]
        if (found[1] and best) or (found[2] and among) or (found[3] and first):
            raise Unacceptable(f"The criterion {text!r} says the same thing twice.")
        best, among, first = found[1] or best, found[2] or among, found[3] or first
    return Criterion(
        unity_id=names.unity(ranking_id, name),
        best=None if best is None else int(best),
        among="tied" if among else None,
        first=first is not None,
    )
