"""What became of the results that steps of an explanation name: corrections of which no later step tells.

Pure.
"""

from collections.abc import Container, Mapping
from collections.abc import Sequence as Items
from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from engine.domain.steps import Steps
from engine.domain.terms import CompetitionId, CompetitorId, RankingId, Reversal, Sequence, UnityId
from projections.answers.explainer import CorrectedResult, ExplanationStep, ResultBefore
from projections.answers.scored_for import EarlierResult, ScoredFor, scored_for
from projections.board.board import Board

_OF_ONE_EVENT: Final = (Reversal.EXPIRY, Reversal.UNDO, Reversal.REDO)
"""The other reversals are of all that a competition gave."""


def with_corrections(
    board: Board,
    ranking_id: RankingId,
    unity_id: UnityId,
    competitor_id: CompetitorId,
    steps: Items[ExplanationStep],
    results: Mapping[CompetitionId, Items[ResultBefore]],
) -> Steps[list[ExplanationStep]]:
    """The steps of a competitor, with what their results have become. `board`: after all of them; `results`: those that
    competitions had before it."""
    replaced = _replaced(steps)
    scored_at = {step.competition_id: step.sequence for step in steps if step.scored}
    found = []
    for step in steps:
        yield
        its_id = step.competition_id
        if its_id is None or its_id not in results or step.sequence in replaced:
            found.append(step)
            continue
        competition, had = board.competitions[its_id], results[its_id]
        gives_back = step.is_own and step.reversal is not None and not step.reversal.takes_back
        since = scored_at.get(its_id, step.sequence) if gives_back else step.sequence
        corrected = [(one.result, one.recorded_at) for one in had if one.sequence > since]
        scored: ScoredFor | None = None
        if corrected and (step.scored or since < step.sequence):
            its = board.rankings[ranking_id], unity_id, competition, competitor_id
            scored = yield from scored_for(*its, corrected)
        later = [one for one in had if one.sequence > step.sequence]
        found.append(msgspec.structs.replace(step, corrected=_corrected(step, competition.result, later, scored)))
    return found


def _corrected(
    step: ExplanationStep,
    result: str | Mapping[CompetitorId, str] | None,
    later: Items[ResultBefore],
    scored: ScoredFor | None,
) -> CorrectedResult | UnsetType:
    score = result if isinstance(result, str) else None
    earlier = [
        EarlierResult(result=one.result, corrected_at=one.recorded_at)
        for one in later
        if isinstance(one.result, str) and one.result != score
    ]
    if step.scored:
        if scored is None or scored.amount != step.scored.amount or scored.result == step.scored.result:
            return UNSET
        before = [one for one in step.scored.earlier if one.result != scored.result]
        scored = msgspec.structs.replace(scored, earlier=[*before, *scored.earlier])
    elif not step.score or score is None or not later or later[0].result == score:
        earlier = []
    if not earlier and scored is None:
        return UNSET
    return CorrectedResult(score=score, scored=scored or UNSET, earlier=earlier)


def _replaced(steps: Items[ExplanationStep]) -> Container[Sequence]:
    """The steps after which another one tells the result: what a scoring gave until it gave something else, and
    reversals before another reversal."""
    found, scored, reversed_ = set[Sequence](), set[CompetitionId](), set[CompetitionId]()
    for step in reversed(steps):
        its = step.competition_id
        if its is not None and its in (reversed_ if step.reversal is not None else scored if step.scored else ()):
            found.add(step.sequence)
        if its is not None and step.scored:
            scored.add(its)
        if its is not None and step.reversal is not None and step.reversal not in _OF_ONE_EVENT:
            reversed_.add(its)
    return found
