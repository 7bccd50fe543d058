"""Explains how a competitor came to her place, in the order of the log or of time."""

from collections.abc import Generator, Iterable, Iterator, Mapping
from collections.abc import Sequence as Items
from datetime import datetime
from itertools import pairwise

import msgspec
from msgspec import Struct

from engine.domain.errors import LogUnreadable
from engine.domain.events import Recorded
from engine.domain.marks import result_of
from engine.domain.notation import Notation
from engine.domain.steps import Steps
from engine.domain.terms import (
    CompetitionId,
    CompetitorId,
    Counts,
    RankingId,
    Reversal,
    Sequence,
    TournamentId,
    UnityId,
)
from engine.process.time_slices import in_time_slices
from projections.answers.corrected_steps import with_corrections
from projections.answers.explainer import (
    OVERTAKINGS_MAX,
    Cause,
    ClassifiedNeighbours,
    Explainer,
    ExplanationStep,
    Place,
    ResultBefore,
)
from projections.answers.scored_for import scored_for
from projections.board.board import Board
from projections.past import folds, moments
from projections.past.moments import AtSequence
from projections.past.pages import SCANNED_EVENTS_MAX
from projections.past.past import Past, refuse_beyond
from projections.past.recorded_results import RecordedResult, recorded_results
from projections.past.timeline import TimelineStep, replayed
from projections.past.world_clock import drop_totals


class ExplanationPlace(Struct, frozen=True, kw_only=True):
    """The place of a competitor after an event; before the first one, `sequence` is 0."""

    sequence: Sequence
    recorded_at: datetime | None
    position: int | None
    total: int | None


class Explained(Struct, frozen=True):
    """The steps that led a competitor from `start` to `end`. `neighbours`: her neighbours in the classification
    afterwards; None: no classification was declared. `dropped`: the competitions that a criterion in the unity leaves
    out for her afterwards; None: no criterion does. `next`: the sequence to continue from; None: this is the last
    page."""

    start: ExplanationPlace
    end: ExplanationPlace
    steps: list[ExplanationStep]
    neighbours: ClassifiedNeighbours | None
    dropped: frozenset[CompetitionId] | None
    next: Sequence | None


def _place(sequence: Sequence, recorded_at: datetime | None, place: Place) -> ExplanationPlace:
    return ExplanationPlace(sequence=sequence, recorded_at=recorded_at, position=place.position, total=place.total)


async def explanation(
    past: Past,
    tournament_id: TournamentId,
    ranking_id: RankingId,
    unity_id: UnityId,
    competitor_id: CompetitorId,
    *,
    notation: Notation,
    start: Sequence,
    end: Sequence,
    head: Sequence,
    limit: int | None = None,
    latest: bool = False,
) -> Explained:
    """How a competitor came from her place after the event `start` to her place after the event `end`, in a unity
    with this notation. The unity need not exist yet. With a `limit`: at most that many steps, from at most
    SCANNED_EVENTS_MAX events, and none after the step that reaches OVERTAKINGS_MAX. If `latest`, the page has the
    last steps and ends at `end`, and `next` is the event up to which earlier steps are found.

    Raises NotFound if `end` is beyond `head`."""
    refuse_beyond(head, max(start, end))
    last, most = end, None if latest else limit
    if latest:
        start = max(start, Sequence(end - SCANNED_EVENTS_MAX))
    elif limit is not None:
        last = min(end, Sequence(start + SCANNED_EVENTS_MAX))
    async with past.admitted():
        board = await past.board_at(tournament_id, start)
        explainer = Explainer(board, ranking_id, unity_id, competitor_id, notation)
        since = None if start == 0 else await moments.recorded_at(past, tournament_id, start)
        await past.time_slices.work(explainer.prepared())
        begin = reached = _place(start, since, explainer.place)
        steps: list[ExplanationStep] = []
        async for events in past.chunks(tournament_id, start, last):
            seen: list[Recorded] = []
            await past.time_slices.work(_add_steps(tournament_id, explainer, events, most, steps, seen))
            if seen:
                reached = _place(seen[-1].sequence, seen[-1].recorded_at, explainer.place)
            if latest and (dropped := _dropped(steps, limit)) is not None:
                begin = _place(dropped.sequence, dropped.recorded_at, Place(dropped.position_after, dropped.total))
            if len(seen) < len(events):
                break
        asked = explainer.board, ranking_id, unity_id, competitor_id
        steps = await in_time_slices(with_corrections(*asked, steps, explainer.results_before))
        sums = None
        if explainer.needs_sums:
            sums = await folds.folded_sums_then(past, tournament_id, ranking_id, explainer.board, reached.sequence)
        neighbours = await in_time_slices(explainer.neighbours(sums))
        left_out = None if explainer.drops is None else await in_time_slices(explainer.dropped(sums))
    following = reached.sequence if reached.sequence < end else None
    return Explained(begin, reached, steps, neighbours, left_out, (begin.sequence or None) if latest else following)


async def explanation_by_date(
    past: Past,
    tournament_id: TournamentId,
    ranking_id: RankingId,
    unity_id: UnityId,
    competitor_id: CompetitorId,
    *,
    on: datetime,
    upto: Sequence,
    head: Sequence,
    limit: int | None = None,
) -> Explained:
    """How a competitor came to her place by the points that had taken place by `on`, as known after the event
    `upto`: the last steps in order of time. Raises NotFound as `explanation`, and TooMuchWork."""
    then = await moments.at(past, tournament_id, ranking_id, AtSequence(upto), head)
    left_out = None
    if Explainer(then.board, ranking_id, unity_id, competitor_id).drops is not None:
        at = await moments.at(past, tournament_id, ranking_id, AtSequence(upto), head, on)
        sums = await folds.sums_then(past, tournament_id, ranking_id, at.board, at.sequence, at.clock)
        left_out = await in_time_slices(Explainer(at.board, ranking_id, unity_id, competitor_id).dropped(sums))
    timeline = await folds.timeline(past, tournament_id, then.board, ranking_id, upto, on)
    steps = [step for step in timeline if step.at <= on]
    place, told = await in_time_slices(_steps_by_date(then.board, ranking_id, unity_id, competitor_id, steps))
    told = told[-limit:] if limit else told
    named = {one for step in told if (one := step.competition_id) is not None and one in then.board.competitions}
    results = await recorded_results(past, tournament_id, then.board, named, upto, only_corrected=True)
    its = then.board, ranking_id, unity_id, competitor_id
    told = await in_time_slices(_with_scored(*its, told, {one: _before(had) for one, had in results.items()}))
    nothing = then.board.rankings[ranking_id].unities[unity_id].notation.shown(0)
    begin, end = _place(Sequence(0), None, Place(None, nothing)), _place(upto, then.recorded_at, place)
    return Explained(begin, end, told, None, left_out, None)


def _with_scored(
    board: Board,
    ranking_id: RankingId,
    unity_id: UnityId,
    competitor_id: CompetitorId,
    steps: Iterable[ExplanationStep],
    results: Mapping[CompetitionId, Items[ResultBefore]],
) -> Steps[list[ExplanationStep]]:
    """The steps with what a scoring gave their points for. `results`: those that competitions had before."""
    found = []
    for step in steps:
        scored, competition_id = None, step.competition_id
        competition = None if competition_id is None else board.competitions.get(competition_id)
        if competition_id is not None and competition is not None and step.is_own and step.reversal is None:
            corrected = [(one.result, one.recorded_at) for one in results.get(competition_id, ())]
            its = board.rankings[ranking_id], unity_id, competition, competitor_id
            scored = yield from scored_for(*its, corrected)
        is_told = scored is not None and scored.kind != "nothing"
        found.append(msgspec.structs.replace(step, scored=scored) if is_told else step)
        yield
    return (yield from with_corrections(board, ranking_id, unity_id, competitor_id, found, results))


def _before(had: Items[RecordedResult]) -> list[ResultBefore]:
    """The results before each correction of them."""
    return [
        ResultBefore(one.result, then.sequence, then.recorded_at)
        for one, then in pairwise(had)
        if one.result != then.result
    ]


def _steps_by_date(
    board: Board,
    ranking_id: RankingId,
    unity_id: UnityId,
    competitor_id: CompetitorId,
    steps: Items[TimelineStep],
) -> Generator[None, None, tuple[Place, list[ExplanationStep]]]:
    """A competitor's place in a unity after these steps, and the steps that led to it. Takes ownership of the board.
    Pauses for other work."""
    drop_totals(board, ranking_id, board.rankings[ranking_id].unities)
    explainer = Explainer(board, ranking_id, unity_id, competitor_id)
    yield from explainer.prepared()
    unity = board.rankings[ranking_id].unities[unity_id]
    found = []
    for recorded in replayed(board, ranking_id, steps, competitor_id):
        step = yield from explainer.step(recorded)
        if step is not None:
            its = steps[recorded.sequence - 1]
            step = msgspec.structs.replace(step, sequence=its.sequence, recorded_at=its.recorded_at, took_place=its.at)
            if unity.counts is not Counts.SUM:
                result = result_of(its.results.get((competitor_id, unity_id), 0), unity.sort)
                step = msgspec.structs.replace(step, delta=None, result=result)
            if its.is_expiry and step.is_own:
                step = msgspec.structs.replace(step, cause=Cause.REVERSAL, reversal=Reversal.EXPIRY)
            found.append(step)
        yield
    return explainer.place, found


def _add_steps(
    tournament_id: TournamentId,
    explainer: Explainer,
    events: Iterable[Recorded],
    limit: int | None,
    steps: list[ExplanationStep],
    seen: list[Recorded],
) -> Iterator[None]:
    """Adds steps to `steps` until they fill a page, and the scanned events to `seen`. A correction is one step. Raises
    LogUnreadable."""
    for recorded in events:
        if _is_full(steps, limit) and not explainer.continues(recorded):
            return
        try:
            step = yield from explainer.step(recorded)
        except LookupError as error:
            raise LogUnreadable.unfoldable(tournament_id, recorded.sequence, error) from error
        seen.append(recorded)
        while steps and explainer.supersedes is not None and steps[-1].sequence >= explainer.supersedes:
            steps.pop()
        if step is not None:
            steps.append(step)
        yield


def _dropped(steps: list[ExplanationStep], limit: int | None) -> ExplanationStep | None:
    """Drops the first steps that exceed a page, and returns the last one dropped; None: none was."""
    dropped = None
    while len(steps) > 1 and limit is not None and (len(steps) > limit or _overtakings(steps) > OVERTAKINGS_MAX):
        dropped = steps.pop(0)
    return dropped


def _overtakings(steps: list[ExplanationStep]) -> int:
    return sum([len(step.overtakings) for step in steps])


def _is_full(steps: list[ExplanationStep], limit: int | None) -> bool:
    """Whether the steps fill a page."""
    if limit is None:
        return False
    return len(steps) == limit or _overtakings(steps) >= OVERTAKINGS_MAX
