"""What people call a competition: it has no name of its own."""

from typing import Final

from api.interface.direction import isolated
from engine.domain.terms import SCORE_PARTICIPANTS_MAX
from projections.board.board import Board, Competition

BETWEEN: Final = " – "  # noqa: RUF001 - one against the other

OF_MANY: Final = "Competition of {number}"


def competition_name(board: Board, competition: Competition) -> str:
    """The names of its participants; empty if there are none, or more than two."""
    return BETWEEN.join(_names(board, competition))


def shown_name(board: Board, competition: Competition) -> str:
    """As `competition_name`, with each name isolated, to be shown in a line with others."""
    return BETWEEN.join(map(isolated, _names(board, competition)))


def _names(board: Board, competition: Competition) -> list[str]:
    if len(competition.participants) > SCORE_PARTICIPANTS_MAX:
        return []
    return [board.competitors[competitor_id].name for competitor_id in competition.participants]


def short_text(board: Board, competition: Competition, of_many: str) -> str:
    """A competition in few words: who met, or where, or how many. `of_many`: the words for how many."""
    return (
        shown_name(board, competition)
        or isolated(competition.location)
        or of_many.format(number=len(competition.participants))
    )


def result_text(board: Board, competition: Competition, of_many: str = OF_MANY) -> str:
    """A competition with its score, and where it was. `of_many`: as in `short_text`."""
    name = shown_name(board, competition) or of_many.format(number=len(competition.participants))
    score = f" {isolated(competition.result)}" if isinstance(competition.result, str) else ""
    return name + score + _where(competition)


def competition_text(board: Board, competition: Competition) -> str:
    """A competition in a line: who met, or how many and where."""
    return (shown_name(board, competition) or OF_MANY.format(number=len(competition.participants))) + _where(
        competition
    )


def _where(competition: Competition) -> str:
    return f", {isolated(competition.location)}" if competition.location else ""
