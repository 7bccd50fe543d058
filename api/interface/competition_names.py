"""What people call a competition: it has no name of its own."""

from typing import Final

from msgspec import UNSET, UnsetType

from api.interface.direction import isolated
from engine.domain.scoring import performances_of
from engine.domain.terms import SCORE_PARTICIPANTS_MAX
from projections.answers.names import NamesById
from projections.board.board import Competition

BETWEEN: Final = " – "  # noqa: RUF001 - one against the other

OF_MANY: Final = "Competition of {number}"


def competition_name(names: NamesById, competition: Competition) -> str:
    """The names of its participants; empty if there are none, or more than two."""
    return BETWEEN.join(_names(names, competition))


def shown_name(names: NamesById, competition: Competition) -> str:
    """As `competition_name`, with each name isolated, to be shown in a line with others."""
    return BETWEEN.join(map(isolated, _names(names, competition)))


def _names(names: NamesById, competition: Competition) -> list[str]:
    if len(competition.participants) > SCORE_PARTICIPANTS_MAX:
        return []
    return [names.competitor(competitor_id).name for competitor_id in competition.participants]


def short_text(names: NamesById, competition: Competition, of_many: str) -> str:
    """A competition in few words: who met, or where, or how many. `of_many`: the words for how many."""
    return (
        shown_name(names, competition)
        or isolated(competition.location)
        or of_many.format(number=len(competition.participants))
    )


def competition_result_text(
    names: NamesById, competition: Competition, score: str | UnsetType = UNSET, of_many: str = OF_MANY
) -> str:
    """A competition with the score or the two performances that it had, and where it was. `of_many`: as in
    `short_text`."""
    score = score or ""
    performances = performances_of(competition.participants, score)
    if performances is not None and len(competition.participants) <= SCORE_PARTICIPANTS_MAX:
        its = [(names.competitor(one).name, performances.get(one)) for one in competition.participants]
        name = ", ".join(" ".join(map(isolated, filter(None, one))) for one in its)
    else:
        name = shown_name(names, competition) or of_many.format(number=len(competition.participants))
        name += f" {isolated(score)}" if score else ""
    return name + _where(competition)


def competition_text(names: NamesById, competition: Competition, of_many: str = OF_MANY) -> str:
    """A competition in a line: who met, or how many and where. `of_many`: as in `short_text`."""
    name = shown_name(names, competition) or of_many.format(number=len(competition.participants))
    return name + _where(competition)


def _where(competition: Competition) -> str:
    return f", {isolated(competition.location)}" if competition.location else ""
