"""Commands about the classification of a ranking."""

import re
from collections.abc import Iterable
from typing import Annotated, Any, Final

import msgspec
from cyclopts import Parameter

from api.cli import printing
from api.cli.arguments import THE_RANKING, several
from api.cli.asking import asking
from api.cli.criteria_text import criteria_text, criterion_notation, criterion_text
from api.cli.lines import AT, SINCE, TAG, WINDOW, windowed
from api.cli.standings_text import columns_of_place, place, say_moment, text_or_none
from api.cli.verbs import Done, verb
from api.interface.names import Names
from engine.domain.commands import DeclareClassification
from engine.domain.errors import Unacceptable
from engine.domain.events import Criterion
from engine.domain.terms import RankingId
from projections.answers.classification import Classification, ClassificationQuestion
from projections.answers.criteria import criteria_shape, drop_of, named_tiebreak
from projections.answers.view import View

CriterionTexts = Annotated[
    str,
    Parameter(
        help="The criteria, in the order in which they decide. Each is a unity's name or id, followed by :best=N if "
        "only the N best competitions count, by :drop=4:1,8:2 if from 4 competitions on the worst one does not count, "
        "and from 8 on the two worst, by :among=tied if only points among the tied count, by :first if the competitor "
        "who reached that total first is ahead, by :ratio=UNITY or :per=UNITY if it is divided by another unity, such "
        "as a goal average or points per game, or by a tie-break over opponents, such as :BH/C1 or :SB; it may end "
        "with :predetermined if rounds are not paired as in a Swiss tournament, and with an edition of the rules, "
        "such as :2024-08. Without any, the declaration is removed."
    ),
]


async def _print(view: View, question: ClassificationQuestion, found: Classification) -> None:
    known = await view.names_after(found.sequence)
    ranking = known.listed(question.ranking_id)
    criteria = [criterion_text(ranking, one) for one in found.criteria]
    notations = [criterion_notation(ranking, one) for one in found.criteria]
    lines = [
        [
            *place(line),
            known.competitor(line.competitor_id).name,
            *[text_or_none(one, value) for one, value in zip(notations, line.values, strict=True)],
            None if line.decided_by is None else criteria[line.decided_by],
        ]
        for line in found.standings
    ]
    say_moment(question, found)
    printing.table([*columns_of_place(question), "competitor", *criteria, "decided by"], lines, title=ranking.name)


show_classification = asking(
    ClassificationQuestion,
    THE_RANKING,
    TAG,
    *WINDOW,
    *AT,
    *SINCE,
    make=windowed(ClassificationQuestion),
    prints=_print,
)


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


_BEHIND: Final = re.compile(
    r":(?:best=(?P<best>[0-9]{1,9})|among=(?P<among>tied)|(?P<first>first)|drop=(?P<drop>[0-9:, ]+)"
    r"|(?P<pairing>swiss|predetermined)|(?P<edition>20[0-9]{2}-[01][0-9])"
    r"|(?P<tiebreak>[A-Z]{2,5}(?:/[A-Z][-+]?[0-9]+)?))\Z"
)


_QUOTIENT: Final = re.compile(r"(.+):(ratio|per)=(.+)")


def criteria_of(names: Names, ranking_id: RankingId, texts: Iterable[str]) -> tuple[Criterion, ...]:
    """The criteria that `classification declare` is given. Raises Unacceptable and NotFound."""
    return tuple([_criterion(names, ranking_id, text) for text in texts])


def _criterion(names: Names, ranking_id: RankingId, text: str) -> Criterion:
    """Raises Unacceptable and NotFound."""
    if pair := _QUOTIENT.fullmatch(text):
        divisor = {pair[2]: names.unity(ranking_id, pair[3])}
        return msgspec.convert({**divisor, "unity_id": names.unity(ranking_id, pair[1])}, Criterion)
    name, said = text, dict[str, str]()
    while found := _BEHIND.search(name):
        name, more = name[: found.start()], {key: value for key, value in found.groupdict().items() if value}
        if said.keys() & more:
            raise Unacceptable(f"The criterion {text!r} says the same thing twice.")
        said |= more
    try:
        fields: dict[str, Any] = {**said, "first": "first" in said, "drop": drop_of(said.get("drop", ""))}
    except ValueError as error:
        raise Unacceptable(f"The drop of {text!r} {error}.") from None
    if "tiebreak" in said:
        fields |= named_tiebreak(said["tiebreak"]) or {}
    try:
        return msgspec.convert({**fields, "unity_id": names.unity(ranking_id, name)}, Criterion, strict=False)
    except msgspec.ValidationError as error:
        raise Unacceptable(f"The criterion {text!r} cannot be read: {error}.") from None
