"""The events that result from voiding, striking and undoing, and from the opposite of each.

Pure: part of `judging.decide`. Each reversed event with points gets a PointsReversed of its own.
"""

from collections.abc import Iterable

from engine.domain import commands, events
from engine.domain.counting import (
    NOTHING_KNOWN,
    Known,
    Turned,
    closed_among,
    signed,
    totals_after,
    turned_by,
)
from engine.domain.errors import Conflict, Fault, Forbidden, Unacceptable, existing
from engine.domain.events import Event
from engine.domain.faults import participant_faults, refuse_if_any, unacceptable
from engine.domain.lines import rule_of
from engine.domain.state import State
from engine.domain.steps import finished
from engine.domain.terms import PARTICIPANTS_MAX, REVERSED_LINES_MAX, UNDONE_MAX, CompetitionId, CompetitorId, Sequence


def void_competition(
    state: State, command: commands.VoidCompetition, known: Known = NOTHING_KNOWN
) -> tuple[Event, ...]:
    if existing(state.competitions, "competition", command.competition_id).voided_at is not None:
        raise Conflict(f"Competition {command.competition_id} is already voided.")
    if command.only is not None and holds_others(state, command):
        raise Conflict(f"Competition {command.competition_id} has points from elsewhere.")
    voided = events.CompetitionVoided(competition_id=command.competition_id)
    return voided, *_reversals(state, command.competition_id, command.caused, known, takes_back=True)


def holds_others(state: State, command: commands.VoidCompetition) -> bool:
    """Whether the competition holds points of events other than `only`, apart from undone ones and those of
    scorings."""
    caused, only = command.caused or {}, command.only or ()
    return any(
        sequence not in only
        and sequence not in state.rankings[points.ranking_id].undone
        and not isinstance(points, events.PointsScored)
        for sequence, points in caused.items()
    )


def unvoid_competition(
    state: State, command: commands.UnvoidCompetition, known: Known = NOTHING_KNOWN
) -> tuple[Event, ...]:
    if existing(state.competitions, "competition", command.competition_id).voided_at is None:
        raise Conflict(f"Competition {command.competition_id} is not voided.")
    unvoided = events.CompetitionUnvoided(competition_id=command.competition_id)
    return unvoided, *_reversals(state, command.competition_id, command.caused, known, takes_back=False)


def strike_competitors(
    state: State, command: commands.StrikeCompetitors | commands.UnstrikeCompetitors, known: Known = NOTHING_KNOWN
) -> tuple[Event, ...]:
    competition_id, strike = command.competition_id, isinstance(command, commands.StrikeCompetitors)
    existing(state.competitions, "competition", competition_id)
    faults = participant_faults(state, command.competitors, "competitors")
    if not command.competitors:
        faults.append(Fault("competitors", "must name at least one competitor"))
    refuse_if_any(faults)
    already = state.struck.get(competition_id, ())
    if wrong := [str(one) for one in command.competitors if (one in already) is strike]:
        state_of = "already struck" if strike else "not struck"
        raise Conflict(f"These competitors are {state_of}: {', '.join(wrong)}.")
    if strike and len(already) + len(command.competitors) > PARTICIPANTS_MAX:
        raise Unacceptable(f"Competition {competition_id} can have at most {PARTICIPANTS_MAX:,} struck competitors.")
    kind = events.CompetitorsStruck if strike else events.CompetitorsUnstruck
    fact = kind(competition_id=competition_id, competitors=command.competitors)
    only = command.competitors
    return fact, *_reversals(state, competition_id, command.caused, known, takes_back=strike, only=only, struck=strike)


def _reversals(
    state: State,
    competition_id: CompetitionId,
    caused: commands.CausedPoints | None,
    known: Known,
    *,
    takes_back: bool,
    only: Iterable[CompetitorId] | None = None,
    struck: bool | None = None,
) -> list[Event]:
    """One event for each of `caused` with lines that count before, or, if the points are restored (`takes_back` False),
    afterwards: those of `only` these competitors, or all, including those that have left the ranking.

    Raises Conflict if one of the rankings is closed, Unacceptable beyond REVERSED_LINES_MAX, and LacksResults.
    """
    assert caused is not None
    competitors = None if only is None else frozenset(only)
    before = {one: rule_of(state, one) for one in {points.ranking_id for points in caused.values()}}
    if competitors is None:
        after = {one: rule.voiding(competition_id, voided=takes_back) for one, rule in before.items()}
    else:
        after = {one: rule.striking(competition_id, competitors, struck=takes_back) for one, rule in before.items()}
    rules, reversed_ = before if takes_back else after, list[Turned]()
    for sequence, points in caused.items():
        turned = turned_by(rules[points.ranking_id], sequence, points, known)
        lines = [line for line in turned.lines if competitors is None or line.delta.competitor_id in competitors]
        if lines:
            reversed_.append(Turned(sequence, points, lines))
    if closed := closed_among(state, [one.points.ranking_id for one in reversed_]):
        raise Conflict(f"Competition {competition_id} gave points in closed rankings; reopen them first: {closed}.")
    if sum([len(one.lines) for one in reversed_]) > REVERSED_LINES_MAX:
        raise Unacceptable(
            f"Competition {competition_id} gave more than {REVERSED_LINES_MAX} lines of deltas, "
            "more than can be reversed at once."
        )
    totals = finished(totals_after(known.results, reversed_, after, starting=not takes_back))
    return [
        events.PointsReversed(
            ranking_id=one.points.ranking_id,
            deltas=signed(-1 if takes_back else 1, one.part.deltas),
            competition_id=competition_id,
            reverses=one.sequence,
            struck=struck,
            totals=totals.after_next(one.part.results),
            instead_of=one.points.instead_of,
        )
        for one in reversed_
    ]


def reverse_points(state: State, command: commands.ReversePoints, known: Known = NOTHING_KNOWN) -> tuple[Event, ...]:
    existing(state.rankings, "ranking", command.ranking_id)
    undo, roots = _undo_or_redo(state, command)
    if closed := closed_among(state, [points.ranking_id for points in roots.values()]):
        raise Conflict(f"These points are in closed rankings; reopen them first: {closed}.")
    reversals: list[Event] = []
    before = {one: rule_of(state, one) for one in {points.ranking_id for points in roots.values()}}
    after = {one: rule.undoing(roots, undone=undo) for one, rule in before.items()}
    rules = before if undo else after
    turned = [turned_by(rules[points.ranking_id], sequence, points, known) for sequence, points in roots.items()]
    totals = finished(totals_after(known.results, turned, after, starting=not undo))
    for one in sorted(turned, key=lambda one: one.points.ranking_id != command.ranking_id):
        ranking_id = one.points.ranking_id
        if undo and len(state.rankings[ranking_id].undone) >= UNDONE_MAX:
            raise Unacceptable(f"Ranking {ranking_id} has {UNDONE_MAX:,} undone events, the most it can have.")
        reversals.append(
            events.PointsReversed(
                ranking_id=ranking_id,
                competition_id=one.points.competition_id,
                deltas=signed(-1 if undo else 1, one.part.deltas),
                reverses=one.sequence,
                undone=undo,
                totals=totals.after_next(one.part.results),
            )
        )
    return tuple(reversals)


def _undo_or_redo(state: State, command: commands.ReversePoints) -> tuple[bool, commands.CausedPoints]:
    """Whether the command undoes points, rather than redoing them, and which. Raises a Refusal if it can do neither."""
    assert command.named is not None
    number, event, roots = command.sequence, command.named.event, command.named.points
    if not isinstance(event, events.PointsAdded | events.PointsReversed) or not roots:
        raise unacceptable([Fault("sequence", f"event {number} neither adds points nor undoes any")])
    if command.ranking_id not in [points.ranking_id for points in roots.values()]:
        raise unacceptable([Fault("sequence", f"event {number} is about ranking {event.ranking_id}")])
    by = state.rankings[event.ranking_id].undone.get(events.root(Sequence(number), event))
    refusal: str | None
    if isinstance(event, events.PointsScored) or event.replaced:
        refusal = (
            f"is what a scoring gives for the result of competition {event.competition_id}; correct that result, or "
            "void the competition, or strike competitors from it"
        )
    elif isinstance(event, events.PointsAdded):
        refusal = None if by is None else f"is already undone. To redo it, name the event that undid it: {by}"
    elif event.struck is not None:
        refusal = (
            f"came with a change of who is struck from competition {event.competition_id}; strike or unstrike there"
        )
    elif event.undone is None:
        refusal = f"came with the voiding or unvoiding of competition {event.competition_id}; unvoid or void that"
    elif event.undone:
        refusal = None if by == number else f"undid event {event.reverses}, which was redone after it"
    else:
        refusal = f"redid event {event.reverses}. To undo that again, name it"
    if refusal is not None:
        raise Conflict(f"Event {number} {refusal}.")
    if command.only_of not in (None, command.named.actor):
        raise Forbidden(f"Event {number} came from another sender; reversing it needs a token of scope admin.")
    return isinstance(event, events.PointsAdded), roots
