"""What a competitor gets points for, where a scoring gives them: facts that page, text and JSON tell.

Pure. Which award gave a line follows from the scoring in force and the result.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Literal

from msgspec import Struct

from engine.domain.events import Result
from engine.domain.rescoring import CorrectedCompetition
from engine.domain.scoring import (
    NotRead,
    ReadResult,
    ScoredCompetition,
    amounts_of,
    choose,
    places,
    read_in_steps,
    turned,
)
from engine.domain.steps import Steps
from engine.domain.terms import CompetitorId, UnityId
from projections.board.board import Ranking


class EarlierResult(Struct, frozen=True, kw_only=True, gc=False):
    """A result, as it read for the competitor, until it was corrected."""

    result: str
    corrected_at: datetime


class ScoredFor(Struct, frozen=True, kw_only=True, gc=False):
    """What a result gives. `kind`: what for; `result`: for something else, or several awards give it; `nothing`: it
    no longer gives anything. `result`: as it reads for the competitor, own score first. `place`: of that kind.
    `against`: the other one of two. `earlier`: what it was before corrections, the first one first."""

    kind: Literal["win", "draw", "loss", "bye", "place", "result", "absent", "nothing"]
    amount: int
    result: str | None
    place: int | None = None
    against: CompetitorId | None
    earlier: list[EarlierResult]


Corrected = tuple[Result | None, datetime]
"""A result, and when it was corrected."""


def scored_for(
    ranking: Ranking,
    unity_id: UnityId,
    competition: ScoredCompetition,
    her: CompetitorId,
    corrected: Iterable[Corrected] = (),
) -> Steps[ScoredFor | None]:
    """What the competition gives her in the unity of the ranking; None: no scoring is for it."""
    scoring = choose(ranking.scorings, competition)
    if scoring is None:
        return None
    readings: Mapping[CompetitorId, ReadResult] = {}
    amount, kind, place = None, "nothing", None
    try:
        readings = yield from read_in_steps(scoring, competition)
        amount = (yield from amounts_of(scoring, readings, ranking)).get((her, unity_id))
    except NotRead:
        pass
    reading = readings.get(her)
    if amount is not None:
        outcome = None if reading is None else reading.outcome
        awards = [
            one for one in scoring.awards if one.unity_id == unity_id and (not one.outcomes or outcome in one.outcomes)
        ]
        kind = "absent" if reading is None else "result"
        if reading is not None and len(awards) == 1:
            if awards[0].value == "outcome" and outcome and (outcome == "bye" or len(competition.participants) == 2):
                kind = outcome
            elif awards[0].value == "place" and reading.performance:
                kind, place = "place", places(scoring, readings, ranking)[awards[0].among][her][0]

    def text(result: Result | None) -> Steps[str | None]:
        earlier = CorrectedCompetition(competition.group_id, competition.participants, result, None, competition.scale)
        try:
            return _own((yield from read_in_steps(scoring, earlier)).get(her)) or _raw(result, her, competition)
        except NotRead:
            return _raw(result, her, competition)

    result = _own(reading) or _raw(competition.result, her, competition)
    others = [one for one in competition.participants if one != her]
    told = []
    for one, at in corrected:
        told.append(((yield from text(one)), at))
    return ScoredFor(
        kind=kind,  # type: ignore[arg-type] # an outcome is one
        amount=amount or 0,
        result=result,
        place=place,
        against=others[0] if len(others) == 1 and her in competition.participants else None,
        earlier=[EarlierResult(result=was, corrected_at=at) for was, at in told if was and was != result],
    )


def _own(reading: ReadResult | None) -> str | None:
    """A result as it reads for one participant: own score first. None: it has none, as a bye or a forfeit has."""
    if reading is None:
        return None
    score = f"{':'.join(reading.score)} {reading.word}".strip() if reading.score else None
    return reading.performance or reading.status.upper() or score


def _raw(
    result: str | Mapping[CompetitorId, str] | None, her: CompetitorId, competition: ScoredCompetition
) -> str | None:
    """As it was sent, turned for the second of two."""
    if isinstance(result, Mapping):
        return result.get(her)
    if result and len(competition.participants) == 2 and her == competition.participants[1]:
        return turned(result) or result
    return result if her in competition.participants else None
